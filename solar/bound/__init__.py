"""Stage 3: the lower bound on the time of any kernel for one program on one machine.

``axes``, ``pairs`` and ``regions`` count parts of tensors, ``views`` and ``copies`` map them; ``facts`` runs forwards
(structural zeros, masks, repetition; ``structure``: how much of a tensor is its own), ``demand`` backwards (what is
needed); ``traffic`` turns it into bytes, ``work`` and ``chains`` into operations, ``sol`` takes the maximum. A chain
grows (``expansion``) into a network (``networks``), which ``orders`` multiplies out at prices of ``formats``; ``reuse``
and ``symmetry`` find what counts once.
"""

from solar.bound.sol import analyse, bound, price

__all__ = ["analyse", "bound", "price"]
