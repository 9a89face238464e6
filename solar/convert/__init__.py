"""solar/convert"""
