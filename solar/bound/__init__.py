"""Stage 3: the lower bound on the time of any kernel for one program on one machine.

``axes`` and ``regions`` count parts of tensors, ``views`` maps them through views and copies; ``facts`` runs forwards
(structural zeros, masks, repetition), ``demand`` backwards (what is needed); ``traffic`` turns it into bytes, ``work``
and ``chains`` (over ``networks``, priced by ``formats``) into operations, and ``sol`` takes the maximum.
"""

from solar.bound.sol import bound

__all__ = ["bound"]
