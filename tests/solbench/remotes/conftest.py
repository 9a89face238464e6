"""The small checkout, its remote and its web servers, as fixtures."""

from remote_checkout import checkout, clone, clone_of, made, serve

__all__ = ["checkout", "clone", "clone_of", "made", "serve"]
