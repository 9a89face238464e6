"""solbench/cli"""
