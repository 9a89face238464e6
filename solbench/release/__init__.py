"""solbench/release"""
