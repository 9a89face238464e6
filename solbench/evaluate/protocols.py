"""The named protocols: how many processes and samples, until when, and what comes first."""

from __future__ import annotations

from typing import Any

from solbench.model.trace import Protocol

# Calls slower than this are not measured in a corpus run; a single evaluation has no such budget.
MAX_CALL_S = 0.25
# Both medians of a process shall be known to this share of them, as long as that takes no more than so many times the
# least count; before its first sample the processors are kept busy for that long.
PRECISION, CAP_FACTOR, PREAMBLE_S = 0.02, 3, 0.2
QUICK = Protocol(
    name="quick", processes=1, samples=6, max_call_s=MAX_CALL_S, isolation=(),
    max_samples=CAP_FACTOR * 6, precision=PRECISION, preamble_s=PREAMBLE_S, batches=True,
)  # fmt: skip
FULL = Protocol(
    name="full", processes=6, samples=9, max_call_s=MAX_CALL_S, isolation=(),
    max_samples=CAP_FACTOR * 9, precision=PRECISION, preamble_s=PREAMBLE_S, batches=True,
)  # fmt: skip


def protocol(
    name: str, *, processes: int | None = None, samples: int | None = None, max_call_s: float = MAX_CALL_S
) -> Protocol:
    """The named protocol; other counts make it ``custom``, and a number of samples of one's own is just that number.

    What isolates a worker is the session's to say.
    """
    base = {"quick": QUICK, "full": FULL}[name]
    changes: dict[str, Any] = {"max_call_s": max_call_s}
    if processes is not None and processes != base.processes:
        changes |= {"name": "custom", "processes": processes}
    if samples is not None and samples != base.samples:
        changes |= {"name": "custom", "samples": samples, "max_samples": None, "precision": None}
    return base.model_copy(update=changes)
