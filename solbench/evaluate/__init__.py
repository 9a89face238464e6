"""Evaluation of one solution: three processes that do not trust each other equally (DESIGN §6).

``evaluation`` holds the public function; the orchestrator side imports no PyTorch.
"""
