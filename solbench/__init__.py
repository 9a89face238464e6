"""Is a GPU kernel right, and how far is it from what the hardware allows?"""

__version__ = "0.1.0"
