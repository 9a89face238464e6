"""Stage 1: what a reference calls, recorded on the meta device. One module a path; paths are never mixed."""
