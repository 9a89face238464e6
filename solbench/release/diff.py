"""What changed between two releases, number by number.

Objects of one hash are the same. Of those that differ, each kind shows what a reader asks of it: scores and entries
their numbers, bounds T_SOL and what binds, code what the kernels take, definitions and solutions their changed fields,
with texts as numbers of lines. Pure: two :class:`Contents` in, frozen values out.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from solbench.release.reading import Contents
from solbench.release.root import STAGES
from solbench.release.schemas import same
from solbench.store import Descriptor

SCHEMA: Final = "solbench.release-diff.v1"
# Where its view shows nothing, or it has none: so many changed fields of an artifact are named.
_MOST_FIELDS: Final = 20
_DEEPEST: Final = 8
# Longer texts are not aligned line by line, which takes time by the square of their lines.
_MOST_LINES: Final = 2000
_NAMED_BY_HASH: Final = frozenset({"kernel", "code-object", "assembly"})

Artifact = Mapping[str, Any]


@dataclass(frozen=True)
class Field:
    """One value of an artifact that differs; None is a missing one."""

    name: str
    old: Any
    new: Any

    @property
    def ratio(self) -> float | None:
        """New over old, of numbers where that is one."""
        if not _is_number(self.old) or not _is_number(self.new) or self.old == 0:
            return None
        try:
            ratio = float(self.new / self.old)
        except OverflowError:
            return None
        return ratio if math.isfinite(ratio) else None

    def as_dict(self) -> dict[str, Any]:
        return {"field": self.name, "old": self.old, "new": self.new, "ratio": self.ratio}


@dataclass(frozen=True)
class Change:
    """One logical name with two contents. ``fields``: what differs of what its kind shows; ``absent``: which of
    ``old`` and ``new`` could not be read, as its content is not here."""

    name: str
    old: Descriptor
    new: Descriptor
    fields: tuple[Field, ...]
    absent: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "old": self.old.as_dict(),
            "new": self.new.as_dict(),
            "fields": [field.as_dict() for field in self.fields],
            "not_here": list(self.absent),
        }


@dataclass(frozen=True)
class StageDiff:
    """One stage. ``added`` and ``removed``: logical names; ``moved``: old and new name of the same content; ``same``:
    how many have the same content under the same name."""

    stage: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    moved: tuple[tuple[str, str], ...]
    changed: tuple[Change, ...]
    same: int

    @property
    def compared(self) -> int:
        """How many of the changed could be read on both sides."""
        return sum(not change.absent for change in self.changed)

    @property
    def differs(self) -> bool:
        return bool(self.added or self.removed or self.moved or self.changed)

    def as_dict(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "added": list(self.added),
            "removed": list(self.removed),
            "moved": [{"old": old, "new": new} for old, new in self.moved],
            "changed": [change.as_dict() for change in self.changed],
            "compared": [self.compared, len(self.changed)],
            "same": self.same,
        }


@dataclass(frozen=True)
class Side:
    """One of the two releases: where it was found, its root, and what the root says; None where that is not here."""

    label: str
    root: str | None
    release: Mapping[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        names = ("name", "corpora", "problems", "workloads", "targets")
        stated = None if self.release is None else {name: self.release[name] for name in names}
        return {"where": self.label, "root": self.root, "release": stated}


@dataclass(frozen=True)
class Diff:
    """``a`` to ``b``, in the order of the stages."""

    a: Side
    b: Side
    stages: tuple[StageDiff, ...]

    @property
    def differs(self) -> bool:
        roots = self.a.root != self.b.root and None not in (self.a.root, self.b.root)
        return roots or any(stage.differs for stage in self.stages)

    @property
    def compared(self) -> tuple[int, int]:
        """How many of the changed artifacts could be read on both sides, of how many."""
        return sum(stage.compared for stage in self.stages), sum(len(stage.changed) for stage in self.stages)

    def as_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "a": self.a.as_dict(),
            "b": self.b.as_dict(),
            "differs": self.differs,
            "compared": list(self.compared),
            "stages": [stage.as_dict() for stage in self.stages],
        }


def diff(a: Contents, b: Contents) -> Diff:
    """What changes from ``a`` to ``b``. :class:`IntegrityError` where an object is not what its hash says."""
    stages = tuple(_stage(stage, a, b) for stage in STAGES)
    sides = [Side(one.label, one.root.digest if one.root else None, one.release) for one in (a, b)]
    return Diff(sides[0], sides[1], stages)


def named_by_hash(name: str) -> bool:
    """Whether a logical name of the stage ``code`` is its object's digest: it comes and goes, and never changes."""
    return name.partition("/")[0] in _NAMED_BY_HASH


def target_words(target: Mapping[str, Any]) -> str:
    """What a release says of one of its targets, in one line."""
    device = f" ({target['device']})" if target["device"] else ""
    return f"{target['state']}, {target['timed']} of {target['workloads']} timed, {target['bounds']} bounds{device}"


def _stage(stage: str, a: Contents, b: Contents) -> StageDiff:
    old, new = a.indexes[stage], b.indexes[stage]
    changed, same_content = [], 0
    for name in sorted(old.keys() & new.keys()):
        if old[name] == new[name]:
            same_content += 1
        else:
            changed.append(_change(stage, name, a, b))
    left: dict[Descriptor, list[str]] = {}
    for name in sorted(old.keys() - new.keys(), reverse=True):
        left.setdefault(old[name], []).append(name)
    added, moved = [], []
    for name in sorted(new.keys() - old.keys()):
        if left.get(new[name]):
            moved.append((left[new[name]].pop(), name))
        else:
            added.append(name)
    removed = sorted(name for names in left.values() for name in names)
    return StageDiff(stage, tuple(added), tuple(removed), tuple(moved), tuple(changed), same_content)


def _change(stage: str, name: str, a: Contents, b: Contents) -> Change:
    old, new = a.indexes[stage][name], b.indexes[stage][name]
    before, after = a.load(stage, old), b.load(stage, new)
    absent = tuple(word for word, value in (("old", before), ("new", after)) if value is None)
    if before is None or after is None:
        return Change(name, old, new, (), absent)
    found: list[Field] = []
    if old.kind != new.kind:
        found.append(Field("kind", old.kind, new.kind))
    if old.kind == new.kind == "code":
        views = _code(before, a), _code(after, b)
    elif old.kind in _VIEWS or new.kind in _VIEWS:
        views = _view(old.kind, before), _view(new.kind, after)
    else:
        return Change(name, old, new, (*found, *_leaves("", before, after)), absent)
    for key in [*views[0], *(key for key in views[1] if key not in views[0])]:
        if not same(views[0].get(key), views[1].get(key)):
            found.append(Field(key, views[0].get(key), views[1].get(key)))
    # Nothing of what a reader asks first: then whatever it is.
    return Change(name, old, new, tuple(found) or _leaves("", before, after), absent)


# -- what a kind shows. Older releases have fewer fields, and nobody has checked these: every step may be missing.


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _picked(paths: Mapping[str, str]) -> Callable[[Artifact], dict[str, Any]]:
    return lambda value: {name: _at(value, path) for name, path in paths.items()}


_SCORE: Final = {
    "state": "state", "s": "s", "s_low": "s_low", "s_high": "s_high", "t_k_s": "t_k.point_s", "t_b_s": "t_b.point_s",
    "t_sol_s": "t_sol_s", "reason": "reason", "trust": "trust",
}  # fmt: skip
_ENTRY: Final = {
    name: name
    for name in (
        "s", "s_low", "s_high", "scored", "workloads", "problem_n", "problem_total", "geometric_mean_speedup",
        "s_without_launch_bound", "fast_1", "fast_2", "failed", "audit", "too_narrow", "not_timed", "no_bound",
        "not_attempted", "withheld", "protocol",
    )
}  # fmt: skip
_BOUND: Final = {
    "t_sol_s": "result.t_sol_s",
    "binds": "result.binds",
    "coverage": "result.coverage",
    "reason": "reason",
}


def _verdict(value: Artifact) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "status": value.get("status"), "reason": value.get("reason"), "rounds": _at(value, "correctness.rounds"),
        "emulator": _at(value, "toolchain.emulator"),
    }  # fmt: skip
    instances = _at(value, "emulation.instances")
    for one in instances if isinstance(instances, list) else ():
        size = str(_at(one, "reduced") or "whole")
        shown[f"{size}: ended"] = _at(one, "ended")
        shown[f"{size}: instructions"] = _at(one, "executed.instructions")
    return shown


def _trace(value: Artifact) -> dict[str, Any]:
    sets = _at(value, "timing.candidate")
    return {
        "status": value.get("status"),
        "reason": value.get("reason"),
        "processes": len(sets) if isinstance(sets, list) else None,
        "method": _at(value, "timing.method"),
        "workload_digest": value.get("workload_digest"),
        "solution_digest": value.get("solution_digest"),
    }


def _counted(*names: str) -> Callable[[Artifact], dict[str, Any]]:
    """Graphs: how many there are of what they hold, and why there is none."""

    def view(value: Artifact) -> dict[str, Any]:
        counts = {name: len(value[name]) if isinstance(value.get(name), (list, dict)) else None for name in names}
        return {**counts, "reason": value.get("reason")}

    return view


_VIEWS: Final[Mapping[str, Callable[[Artifact], dict[str, Any]]]] = {
    "score": _picked(_SCORE),
    "entry": _picked(_ENTRY),
    "bound": _picked(_BOUND),
    "trace": _trace,
    "verdict": _verdict,
    "operator-graph": _counted("nodes", "tensors"),
    "einsum-graph": _counted("ops", "tensors"),
    "no-graph": _counted(),
    "readiness": _picked({name: name for name in ("level", "ready", "total")}),
}


def _view(kind: str, value: Artifact) -> dict[str, Any]:
    return _VIEWS[kind](value) if kind in _VIEWS else {"kind": kind}


def _code(value: Artifact, contents: Contents) -> dict[str, Any]:
    """A record of the stage ``code``: its status, and what each of its kernels takes of the card."""
    shown: dict[str, Any] = {"status": value.get("status"), "reason": value.get("reason")}
    launches = value.get("launches")
    counts: dict[str, int] = {}
    for launch in launches if isinstance(launches, list) else ():
        label = str(_at(launch, "kernel")) + (f" [{config}]" if (config := _at(launch, "config")) else "")
        counts[label] = counts.get(label, 0) + 1
        label += f" #{counts[label]}" if counts[label] > 1 else ""
        shown[f"{label}: fault"] = _at(launch, "fault")
        evidence = _at(launch, "evidence")
        if evidence is None:
            continue
        kernel = contents.load("code", Descriptor.parse(evidence, f"{contents.label}: {label}"))
        for name in ("vgprs", "sgprs", "lds_bytes", "vgpr_spills", "sgpr_spills", "scratch_bytes"):
            shown[f"{label}: {name}"] = _at(kernel, f"evidence.resources.{name}")
        shown[f"{label}: waves_per_simd"] = _at(kernel, "evidence.occupancy.waves_per_simd")
    return shown


def _leaves(prefix: str, old: Any, new: Any) -> tuple[Field, ...]:
    """The first of the fields that differ; of texts of several lines how many there are, and how many came and went."""
    found: list[Field] = []
    for field in _walk(prefix, old, new, 0):
        if len(found) == _MOST_FIELDS:
            found.append(Field("...", None, "further fields"))
            break
        found.append(field)
    return tuple(found)


def _walk(path: str, old: Any, new: Any, depth: int) -> Iterator[Field]:
    if same(old, new):
        return
    if (old is None and isinstance(new, Mapping) and new) or (new is None and isinstance(old, Mapping) and old):
        old, new = old or {}, new or {}
    if isinstance(old, Mapping) and isinstance(new, Mapping) and depth < _DEEPEST:
        for name in [*old, *(name for name in new if name not in old)]:
            yield from _walk(f"{path}.{name}" if path else str(name), old.get(name), new.get(name), depth + 1)
        return
    files = _by_path(old), _by_path(new)
    if files[0] is not None and files[1] is not None:
        yield from _walk(path, files[0], files[1], depth + 1)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and depth < _DEEPEST:
        for position, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _walk(f"{path}[{position}]", before, after, depth + 1)
    elif isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
        yield Field(f"{path} (lines)", *_lines(old, new))
    else:
        yield Field(path, _short(old), _short(new))


def _by_path(value: Any) -> dict[str, Any] | None:
    """Source files by their paths, where ``value`` is a list of such."""
    if not isinstance(value, list) or not value:
        return None
    if not all(isinstance(one, Mapping) and one.keys() == {"path", "content"} for one in value):
        return None
    return {str(one["path"]): one["content"] for one in value}


def _lines(old: str, new: str) -> tuple[int | str, int | str]:
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > _MOST_LINES:
        return len(before), len(after)
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    kept = sum(block.size for block in blocks)
    return f"{len(before)} (-{len(before) - kept})", f"{len(after)} (+{len(after) - kept})"


def _short(value: Any) -> Any:
    """``value`` where it is small; how large it is in place of a large one."""
    if isinstance(value, str) and "\n" in value:
        return f"{len(value.splitlines())} lines"
    if isinstance(value, list):
        return value if len(value) <= 16 and not any(isinstance(one, (list, dict)) for one in value) else (
            f"{len(value)} entries"
        )  # fmt: skip
    return f"{len(value)} fields" if isinstance(value, Mapping) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
