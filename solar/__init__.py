"""Speed-of-light analysis: a lower bound on the time of a PyTorch reference on a target, without the candidate."""
