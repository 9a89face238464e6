"""Attainable traffic: the least backing-store traffic of schedules with one buffer, by the buffer's capacity.

The machine is that of Orojenesis: an infinite backing store, one buffer, one multiplier. ``space`` brings an einsum of
the IR into the mapper's form, ``tiles`` lists tile sizes and counts what tiles cover, ``orders`` reduces loop orders to
what they do to traffic, ``curves`` holds the results, ``search`` finds the curve of one einsum, ``chains`` those of
products that feed each other, and ``report`` walks a program.

A curve is the optimum inside that space of schedules. Other schedules may do better, so it is never a bound, and
nothing of it enters T_SOL.

The search needs NumPy (the extra ``run``); importing this package does not import it.
"""

from solar.mapper.report import attainable

__all__ = ["attainable"]
