"""The root object of a release: one section a stage, and what is measured where. Its digest is the release's identity.

Nothing about who built it, when or with what is in it, so the same artifacts give the same root everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from solbench.errors import InputError
from solbench.model.configuration import load_selection
from solbench.model.record import Descriptor as Reference
from solbench.model.release import SCHEMA, SECTION_SCHEMA, Release, Section, TargetState
from solbench.model.trace import SetHeader
from solbench.store import Descriptor, Store, encode, without_kind

# The stages that every release has, in the order in which data flows.
STAGES: Final = (
    "corpus",
    "workloads",
    "graphs",
    "einsums",
    "code",
    "verdicts",
    "bounds",
    "timings",
    "scores",
    "readiness",
)

Sections = Mapping[str, Mapping[str, Descriptor]]
Load = Callable[[str, Descriptor], dict[str, Any]]


class Output(Protocol):
    """Where a stage puts its artifacts, as :class:`solbench.workspace.StageOutput`."""

    def put(self, name: str, kind: str, value: Mapping[str, Any]) -> Descriptor: ...


@dataclass(frozen=True)
class Root:
    """The release object: its bytes, what it says, and its reference."""

    data: bytes
    value: Release
    descriptor: Descriptor


def build_release(store: Store, name: str, output: Output, *, stages: Sequence[str] = STAGES) -> Root:
    """Put ``sections/<stage>`` for every stage and ``release`` into ``output``, from the indexes below ``store``.

    :class:`InputError` where an index is missing or there is nothing to release.
    """
    sections = {stage: store.index(stage) for stage in stages}
    references = {
        stage: output.put(f"sections/{stage}", "section", section_object(stage, sections[stage])) for stage in stages
    }
    release = describe(name, sections, store.load, references)
    if not release.workloads:
        raise InputError(str(store.root / "workloads.json"), "no workload; there is nothing to release")
    descriptor = output.put("release", "release", release.as_dict())
    return Root(encode("release", release.as_dict()), release, descriptor)


def section_object(stage: str, index: Mapping[str, Descriptor]) -> dict[str, Any]:
    """The index of one stage as an artifact."""
    entries = {name: reference(entry) for name, entry in index.items()}
    return Section(schema=SECTION_SCHEMA, stage=stage, entries=entries).as_dict()


def describe(name: str, sections: Sections, load: Load, references: Mapping[str, Descriptor]) -> Release:
    """The release object over ``sections``: counts and, for each target, what is measured and what is not."""
    problems = [key for key, entry in sections["corpus"].items() if entry.kind == "definition"]
    return Release(
        schema=SCHEMA,
        name=name,
        corpora=tuple(sorted({key.partition("/")[0] for key in problems})),
        problems=len(problems),
        workloads=len(_workloads(sections)),
        targets=_targets(sections, load),
        sections={stage: reference(entry) for stage, entry in sorted(references.items())},
    )


def reference(descriptor: Descriptor) -> Reference:
    """The same reference as a field of a record."""
    return Reference(kind=descriptor.kind, digest=descriptor.digest, size=descriptor.size)


def _targets(sections: Sections, load: Load) -> tuple[TargetState, ...]:
    names = {name.removeprefix("hardware/") for name, entry in sections["bounds"].items() if entry.kind == "hardware"}
    headers: dict[str, list[SetHeader]] = {}
    for name, entry in sorted(sections["timings"].items()):
        if entry.kind == "measurement-set":
            fields = without_kind(load("timings", entry))
            header = SetHeader.load(fields, f"timings: {name}")
            headers.setdefault(header.target, []).append(header)
    bounds: dict[str, int] = {}
    for entry in sections["bounds"].values():
        if entry.kind == "bound":
            artifact = load("bounds", entry)
            bounds[artifact["target"]] = bounds.get(artifact["target"], 0) + (artifact["result"] is not None)
    timed: dict[str, set[str]] = {}
    for name, entry in sections["scores"].items():
        if entry.kind == "score":
            score = load("scores", entry)
            if score["t_k"] is not None:
                timed.setdefault(score["target"], set()).add(name.rpartition("@")[0])
    compiled = {
        name.rpartition("@")[2]
        for name, entry in sections["code"].items()
        if entry.kind == "code" and load("code", entry)["status"] == "COMPILED"
    }
    emulated = {name.rpartition("@")[2] for name in sections["verdicts"]}
    selection = load_selection(sections["workloads"], load)
    states = []
    for name in sorted(names | headers.keys() | bounds.keys()):
        workloads = sum(selection.includes(workload, name) for workload in _workloads(sections))
        counts = bounds.get(name, 0), len(timed.get(name, ())), workloads
        states.append(_target_state(name, *counts, headers.get(name, []), name in compiled, name in emulated))
    return tuple(states)


def _workloads(sections: Sections) -> list[str]:
    return [name for name, entry in sections["workloads"].items() if entry.kind == "workload"]


def _target_state(
    name: str, bounds: int, timed: int, workloads: int, headers: Sequence[SetHeader], compiled: bool, emulated: bool
) -> TargetState:
    devices = sorted({_device(header) for header in headers})
    device = "; ".join(devices) or None
    if timed:
        protocols = "+".join(sorted({header.protocol.name for header in headers}))
        clocks = "+".join(sorted({header.clocks for header in headers}))
        note = f"{timed} of {workloads} workloads timed, {protocols} protocol, clocks {clocks}"
    elif headers:
        note = "attempted, no workload timed; bounds and verdicts only, no time is borrowed from another card"
    else:
        parts = ["bounds", *(["code evidence"] if compiled else []), *(["emulated verdicts"] if emulated else [])]
        held = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
        note = f"no card was measured; {held} only, no time is borrowed from another card"
    return TargetState(
        target=name,
        bounds=bounds,
        timed=timed,
        workloads=workloads,
        state="timed" if timed else "not timed",
        device=device,
        note=note,
    )


def _device(header: SetHeader) -> str:
    for field in ("name", "model", "product"):
        value = header.device.get(field)
        if isinstance(value, str) and value:
            return value
    return f"unnamed {header.target}"
