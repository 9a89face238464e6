"""What a store really holds towards official scores, one target at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from solbench.model.readiness import Readiness
from solbench.model.trace import SetHeader
from solbench.release import official, pins, readiness
from solbench.release.root import STAGES
from solbench.store import Store, without_kind


@dataclass(frozen=True)
class TargetStatus:
    """One line a fact, n of N, and every entry with the conditions of an official score."""

    target: str
    lines: tuple[str, ...]
    entries: tuple[official.Official, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "facts": list(self.lines),
            "entries": [entry.as_dict() for entry in self.entries],
        }


def of_targets(store: Store) -> list[TargetStatus]:
    """Every target of the store's release."""
    sections = {stage: store.index(stage) for stage in STAGES}
    return [_of_target(store, sections, target) for target in readiness.targets_of(sections)]


def _of_target(store: Store, sections: Any, target: str) -> TargetStatus:
    corpora = pins.pinned(sections, store.load, target)
    states = ", ".join(f"{name} {'pinned' if holds else 'NOT the pinned one'}" for name, holds in corpora.items())
    bounds = [entry for name, entry in sections["bounds"].items() if name.endswith(f"@{target}")]
    derived = sum(store.load("bounds", entry)["result"] is not None for entry in bounds)
    lines = [f"corpus: {states or 'no workload'}", f"bounds: {derived} of {len(bounds)}"]
    for level in readiness.LEVELS:
        reference = sections[readiness.STAGE].get(f"{target}/{level}")
        if reference is None:
            lines.append(f"readiness {level}: none")
            continue
        matrix = Readiness.load(without_kind(store.load(readiness.STAGE, reference)), f"{target}/{level}")
        lines.append(f"readiness {level}: {matrix.ready} of {matrix.total}")
    named = [entry for name, entry in sections["verdicts"].items() if name.endswith(f"@{target}")]
    if named:
        passed = sum(store.load("verdicts", entry)["status"] == "PASSED" for entry in named)
        lines.append(f"emulated verdicts: {passed} of {len(named)} passed; none of them is a time or a score")
    sets = 0
    for name, entry in sorted(sections["timings"].items()):
        if entry.kind == "measurement-set" and name.startswith(f"{target}/"):
            header = SetHeader.load(without_kind(store.load("timings", entry)), name)
            prefix = name.removesuffix("header")
            traces = sum(other.startswith(prefix) and one.kind == "trace" for other, one in sections["timings"].items())
            protocol = f"{header.protocol.name} protocol, clocks {header.clocks}"
            lines.append(f"measurement set {prefix.rstrip('/')}: {traces} traces, {protocol}")
            sets += 1
    if not sets:
        lines.append("measurement sets: none; not timed, so there is no score")
    return TargetStatus(target, tuple(lines), tuple(official.entries(sections, store.load, target)))
