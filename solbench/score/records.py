"""The records of a release's measurement sets: which trace or omission is about which workload of which entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from solbench.errors import InputError
from solbench.model.trace import Omission, SetHeader, Trace
from solbench.store import Descriptor

Sections = Mapping[str, Mapping[str, Descriptor]]
Load = Callable[[str, Descriptor], dict[str, Any]]


@dataclass(frozen=True)
class Record:
    set_name: str
    header: SetHeader
    header_reference: Descriptor
    reference: Descriptor
    value: Trace | Omission


def measured(sections: Sections, load: Load) -> dict[tuple[str, str], dict[tuple[str, str], Record]]:
    """(target, solution) -> (problem, uuid) -> record, over all measurement sets."""
    timings = sections["timings"]
    headers = {
        name.removesuffix("header"): (entry, SetHeader.load(_body(load("timings", entry)), f"timings: {name}"))
        for name, entry in timings.items()
        if entry.kind == "measurement-set"
    }
    result: dict[tuple[str, str], dict[tuple[str, str], Record]] = {}
    for name, entry in sorted(timings.items()):
        if entry.kind == "measurement-set":
            continue
        where = f"timings: {name}"
        prefix = max((prefix for prefix in headers if name.startswith(prefix)), key=len, default=None)
        if prefix is None:
            raise InputError(where, "belongs to no measurement set")
        reference, header = headers[prefix]
        fields = _body(load("timings", entry))
        value: Trace | Omission
        if entry.kind == "trace":
            value = Trace.load(fields, where)
        else:
            value = Omission.load({k: v for k, v in fields.items() if k != "schema"}, where)
        place, _, solution = name.removeprefix(prefix).rpartition("/")
        key, _, uuid = place.rpartition("/")
        if (value.workload, value.solution) != (uuid, solution) or (
            isinstance(value, Trace) and value.target != header.target
        ):
            raise InputError(where, "says that it is of another workload, solution or target")
        records = result.setdefault((header.target, solution), {})
        if (key, uuid) in records:
            raise InputError(where, f"is measured twice, also in {records[key, uuid].set_name}; a release takes one")
        records[key, uuid] = Record(prefix.rstrip("/"), header, reference, entry, value)
    return result


def stale(record: Trace | Omission, name: str, sections: Sections) -> str | None:
    if record.workload_digest != sections["workloads"][name].digest:
        return "stale: measured on another version of this workload"
    solution = sections["corpus"].get(f"{name.rpartition('/')[0]}/solutions/{record.solution}")
    if isinstance(record, Trace) and (solution is None or record.solution_digest != solution.digest):
        return "stale: measured with another version of this solution"
    return None


def incomparable(headers: Sequence[SetHeader]) -> str | None:
    """Why the sets of one entry may not be added up, or None. One card, one environment, one protocol."""
    differing = [
        field
        for field in ("protocol", "harness", "environment", "device", "clocks")
        if any(getattr(header, field) != getattr(headers[0], field) for header in headers[1:])
    ]
    return f"its measurement sets differ in {', '.join(differing)}" if differing else None


def _body(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in value.items() if name != "kind"}
