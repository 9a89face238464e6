"""The records of a release's measurement sets: which trace or omission is about which workload of which entry.

A set stands in the section ``timings`` under ``<target>/<name>/``; under ``<target>/imported/<name>/`` when somebody
else than the publisher took it; under ``<target>/reproductions/<name>/`` when it was taken to repeat the others, and
gives no score, only a word about theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from solbench.errors import InputError
from solbench.model.record import NAME
from solbench.model.trace import Omission, SetHeader, Trace
from solbench.store import Descriptor, without_kind

Sections = Mapping[str, Mapping[str, Descriptor]]
Load = Callable[[str, Descriptor], dict[str, Any]]

Origin = Literal["own", "imported", "reproductions"]
# Below ``measurements/<target>/``, and so no names of sets.
FOLDERS: Final = ("imported", "reproductions")
# What baseline and candidates of one target share, or no score of theirs can be added up or compared.
SHARED: Final = ("protocol", "harness", "environment", "device", "clocks")


@dataclass(frozen=True)
class Record:
    """One trace or omission, its set, and the objects of both."""

    set_name: str
    origin: Origin
    header: SetHeader
    header_reference: Descriptor
    reference: Descriptor
    value: Trace | Omission


Entries = dict[tuple[str, str], dict[tuple[str, str], Record]]


@dataclass(frozen=True)
class Measured:
    """``records``: (target, solution) -> (problem, uuid) -> its record. ``reproductions``: (target, solution, problem,
    uuid) -> records that were taken to repeat it.
    """

    records: Entries = field(default_factory=dict)
    reproductions: dict[tuple[str, str, str, str], list[Record]] = field(default_factory=dict)


def set_name(target: str, name: str, origin: Origin = "own") -> str:
    """Logical name of a measurement set in the section ``timings``."""
    return "/".join((target, name) if origin == "own" else (target, origin, name))


def origin_of(name: str, target: str) -> Origin:
    """Origin of the set with this logical name; :class:`InputError` where it is no name of a set of ``target``."""
    origins: tuple[Origin, ...] = ("imported", "reproductions", "own")
    for origin in origins:
        own = name.removeprefix(set_name(target, "", origin))
        if own != name and re.fullmatch(NAME, own) and own not in FOLDERS:
            return origin
    raise InputError(f"timings: {name}", "must be TARGET/NAME, TARGET/imported/NAME or TARGET/reproductions/NAME")


def measured(sections: Sections, load: Load) -> Measured:
    """All records of all measurement sets.

    :class:`InputError` where a record contradicts its name, or a workload of a solution stands in two sets that are to
    give a score.
    """
    timings = sections["timings"]
    headers: dict[str, tuple[Descriptor, SetHeader, Origin]] = {}
    for name, entry in timings.items():
        if entry.kind == "measurement-set":
            header = SetHeader.load(without_kind(load("timings", entry)), f"timings: {name}")
            if not name.endswith("/header"):
                raise InputError(f"timings: {name}", "must end in /header")
            own = name.removesuffix("/header")
            headers[f"{own}/"] = (entry, header, origin_of(own, header.target))
    result = Measured()
    for name, entry in sorted(timings.items()):
        if entry.kind == "measurement-set":
            continue
        where = f"timings: {name}"
        prefix = max((prefix for prefix in headers if name.startswith(prefix)), key=len, default=None)
        if prefix is None:
            raise InputError(where, "belongs to no measurement set")
        reference, header, origin = headers[prefix]
        fields = without_kind(load("timings", entry))
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
        record = Record(prefix.rstrip("/"), origin, header, reference, entry, value)
        if origin == "reproductions":
            result.reproductions.setdefault((header.target, solution, key, uuid), []).append(record)
            continue
        records = result.records.setdefault((header.target, solution), {})
        if (key, uuid) in records:
            raise InputError(where, f"is measured twice, also in {records[key, uuid].set_name}; a release takes one")
        records[key, uuid] = record
    return result


def stale(record: Trace | Omission, name: str, sections: Sections) -> str | None:
    """Why the record is not about the workload ``name`` or the solution that the release holds, or None."""
    if record.workload_digest != sections["workloads"][name].digest:
        return "stale: measured on another version of this workload"
    solution = sections["corpus"].get(f"{name.rpartition('/')[0]}/solutions/{record.solution}")
    if isinstance(record, Trace) and (solution is None or record.solution_digest != solution.digest):
        return "stale: measured with another version of this solution"
    return None


def incomparable(headers: Sequence[SetHeader], baseline: Sequence[SetHeader] = ()) -> str | None:
    """Why the sets of one entry may not be added up, or not be shown beside the target's baseline entry; or None."""
    differing = _differing(headers, headers[0])
    if differing:
        return f"its measurement sets differ in {differing}"
    differing = _differing(baseline, headers[0])
    return f"measured apart from the baseline entry: differs in {differing}" if differing else None


def _differing(headers: Sequence[SetHeader], one: SetHeader) -> str:
    names = [name for name in SHARED if any(getattr(header, name) != getattr(one, name) for header in headers)]
    return ", ".join(names)
