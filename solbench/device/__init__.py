"""solbench/device"""
