"""solbench/evaluate"""
