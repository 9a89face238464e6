"""What a kernel's code shows, and whether a call with these kernels would launch. No compiler, no PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from solbench.code.evidence import Launch, evidence
from solbench.errors import InputError, UnsupportedError
from solbench.model.code import LaunchFacts

WOULD_NOT_LAUNCH = "would not launch"
# What an artifact says of a kernel beside its evidence.
_BESIDE = ("schema", "kernel", "target", "launch")


def evidence_of(code: bytes, text: bytes, kernel: str, target: str, facts: LaunchFacts) -> dict[str, Any]:
    """The evidence of one kernel, from its code object and the compiler's text alone; :class:`InputError`."""
    launch = Launch(facts.threads, facts.dynamic_lds_bytes, facts.dots)
    try:
        found = evidence(code, text.decode(), kernel, launch, target)
    except UnicodeDecodeError:
        raise InputError(f"{kernel}: assembly", "is not UTF-8") from None
    except UnsupportedError as error:
        raise InputError(f"{kernel}: code object", str(error)) from None
    return {name: value for name, value in found.items() if name not in _BESIDE}


def why_not(launches: Iterable[Mapping[str, Any]], shown: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Why a call with these launches would fail on the card, or None: a kernel that cannot launch, or one that is tuned
    and cannot in any configuration. ``shown``: evidence by the digest of its kernel.
    """
    tuned: dict[str, list[str | None]] = {}
    for launch in launches:
        why = launch["fault"]
        if why is None and (failed := shown[launch["evidence"]["digest"]]["failures"]):
            why = f"{WOULD_NOT_LAUNCH}: {failed[0]}"
        if launch["config"] is not None:
            tuned.setdefault(launch["kernel"], []).append(why)
        elif why is not None:
            return f"{launch['kernel']}: {why}"
    for kernel, reasons in tuned.items():
        if all(reasons):
            return f"{kernel}: in no configuration: {reasons[0]}"
    return None
