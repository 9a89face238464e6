"""solar/bound"""
