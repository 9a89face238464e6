"""Functional emulation of gfx1200 machine code in NumPy: a verdict without the card, never a time."""
