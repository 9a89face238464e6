"""solbench/corpus"""
