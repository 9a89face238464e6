"""The score S of a solution on a workload, and what the scores of an entry add up to.

``statistics`` turns samples into medians and intervals, ``workload`` scores one trace, ``entry`` adds scores up,
``records`` reads the measurement sets of a release, ``release`` scores it whole.

Everything here is arithmetic on recorded samples and stored bounds: no PyTorch, no device, and the same last bit on
every machine (sums by ``math.fsum``, logarithms by ``decimal``; a processor's ``log`` may differ).
"""
