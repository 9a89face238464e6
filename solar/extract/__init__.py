"""solar/extract"""
