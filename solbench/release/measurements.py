"""How measurement sets enter a release: checked, then copied byte for byte to where the pipeline reads them.

``measurements/<target>/`` holds what the publisher took, ``imported/`` below it what somebody else did, and
``reproductions/`` what was taken to repeat the others. A set is never edited, and says nothing of its own origin: the
folder does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from solbench.errors import InputError
from solbench.evaluate.merging import Key, Line, by_card
from solbench.evaluate.protocols import protocol
from solbench.evaluate.recording import read_header, read_lines
from solbench.model.configuration import Selection, load_selection
from solbench.model.record import NAME
from solbench.model.solution import BASELINE
from solbench.model.trace import Control, SetHeader, Trace
from solbench.score.records import FOLDERS, Origin, incomparable
from solbench.store import Descriptor
from solbench.workspace import Workspace, write_file, writing


@dataclass(frozen=True, order=True)
class Recorded:
    """A measurement set below ``measurements/``: its file, the target that its folder names, and whose word it is."""

    path: Path
    target: str
    origin: Origin


@dataclass(frozen=True)
class Added:
    """What was added: ``current`` of ``records`` are about workloads and solutions as the release holds them.

    ``workloads``: how many of those that the release has for the target (``of``) have a record of the set's entries.
    ``notes``: what holds scores back although the set is sound.
    """

    path: Path
    records: int
    current: int
    entries: tuple[str, ...]
    workloads: int
    of: int
    notes: tuple[str, ...]


def measurement_sets(folder: Path) -> list[Recorded]:
    """Every set below ``measurements/``, by path; verdicts have no times, and are sets of another kind."""
    places: tuple[tuple[str, Origin], ...] = (
        ("*", "own"), ("*/imported", "imported"), ("*/reproductions", "reproductions"),
    )  # fmt: skip
    return sorted(
        Recorded(path, path.relative_to(folder).parts[0], origin)
        for place, origin in places
        for path in folder.glob(f"{place}/*.jsonl")
        if path.relative_to(folder).parts[0] != "verdicts"
    )


def add(
    workspace: Workspace, file: Path, *, name: str | None = None, origin: Origin = "own", harness: Iterable[str] = ()
) -> Added:
    """Check the complete set ``file`` and copy it below ``measurements/``; whole or not at all.

    ``name``: of the set, by default the file's. ``harness``: digests of harnesses that are accepted beside this
    checkout's own and those of sets of the target that are there already. :class:`InputError` names the first thing
    that keeps the set out.
    """
    if not file.is_file():
        raise InputError(str(file), "no such file")
    name = name if name is not None else file.name.removesuffix(".jsonl")
    if not re.fullmatch(NAME, name) or name in FOLDERS:
        raise InputError(f"--name {name}", "must be letters, digits, '.', '_' and '-', and no name of a folder there")
    header, lines = read_lines(file)
    there = [found for found in measurement_sets(workspace.root / "measurements") if found.target == header.target]
    folder = workspace.root / "measurements" / header.target
    path = (folder if origin == "own" else folder / origin) / f"{name}.jsonl"
    data = file.read_bytes()
    if path.exists() and path.read_bytes() != data:
        raise InputError(str(path), "is there and holds another set; give this one another --name")
    others = [found for found in there if found.path != path]
    headers = {found.path: read_header(found.path) for found in others}
    _require_protocol(header, file)
    _require_harness(header, file, {*harness, *(other.harness for other in headers.values())})
    _require_device(header, lines, file)
    _require_controls(header, file)
    _require_bounds(workspace, header, file)
    instances, solutions = workspace.store.index("workloads"), workspace.store.index("corpus")
    if origin != "reproductions":
        there = [found for found in others if found.origin != "reproductions"]
        _require_distinct(lines, _taken(there, instances, solutions), file)
    selection = load_selection(instances, workspace.store.load)
    current = [line for line in lines if _is_current(line, instances, solutions)]
    if not current:
        raise InputError(str(file), f"none of its {len(lines)} records is of a workload and solution of this release")
    covered, of = _require_complete(current, header.target, instances, selection, file)
    with writing(str(path)):
        write_file(path, data)
    notes = _notes(header, [headers[found.path] for found in others if found.origin == "own"], origin)
    entries = tuple(sorted({line.record.solution for line in current}))
    return Added(path, len(lines), len(current), entries, covered, of, notes)


def _require_protocol(header: SetHeader, file: Path) -> None:
    """A release compares numbers of the two named protocols, as they are now."""
    found = header.protocol
    if found.name == "custom":
        raise InputError(f"{file}: protocol", "is custom; a release takes sets of the protocols quick and full")
    named = protocol(found.name, max_call_s=found.max_call_s).model_copy(update={"isolation": found.isolation})
    for field, value in named.as_dict().items():
        stated = found.as_dict().get(field)
        if stated != value:
            raise InputError(f"{file}: protocol.{field}", f"is {stated}, {found.name} has {value}; measure again")


def _require_harness(header: SetHeader, file: Path, known: set[str]) -> None:
    from solbench.evaluate.identity import harness_digest

    own = harness_digest()
    if header.harness != own and header.harness not in known:
        raise InputError(
            f"{file}: harness",
            f"is {header.harness}, this checkout's is {own}; add the set from the revision that took it, "
            "measure again, or name that harness with --harness if you have read it",
        )


def _require_device(header: SetHeader, lines: Iterable[Line], file: Path) -> None:
    """The device is the target's, and where it is a card each trace names one that the header describes."""
    if header.target == "cpu":
        if not header.device.get("architecture") or not header.device.get("model"):
            raise InputError(f"{file}: device", "does not say which processor it is")
        if header.cards:
            raise InputError(f"{file}: cards", "a cpu has none")
        return
    if header.device.get("arch") != header.target:
        raise InputError(f"{file}: device.arch", f"is {header.device.get('arch')}, the set's target {header.target}")
    if not by_card(header).cards:
        raise InputError(f"{file}: cards", "is empty; the set does not say on which card it was taken")
    for line in lines:
        if isinstance(line.record, Trace) and line.record.card is None:
            raise InputError(f"{line.where}: card", "is missing; a trace names the card that it was taken on")


def _require_controls(header: SetHeader, file: Path) -> None:
    """Calls of known cost were sampled first, on each card, and none read wrong."""
    sets = [header.controls] if not header.cards else [_controls(card, file) for card in header.cards]
    for controls in sets:
        if not controls:
            raise InputError(f"{file}: controls", "none was run before the set; measure again (without --no-calibrate)")
        for control in controls:
            if not control.ok:
                raise InputError(f"{file}: controls.{control.name}", "read wrong, so the times are not to be believed")


def _controls(card: Mapping[str, object], file: Path) -> tuple[Control, ...]:
    found = card.get("controls")
    return tuple(Control.load(control, f"{file}: cards") for control in found) if isinstance(found, list) else ()


def _require_bounds(workspace: Workspace, header: SetHeader, file: Path) -> None:
    if header.hardware is None and header.target not in workspace.parameters().targets:
        raise InputError(
            f"{file}: target",
            f"{header.target} has no machine model, here or in the set; add it to params.yaml: targets",
        )


def _taken(
    sets: Iterable[Recorded], instances: Mapping[str, Descriptor], solutions: Mapping[str, Descriptor]
) -> dict[Key, Path]:
    """What has a record in ``sets``, and in which; a stale one gives no score, and stands in nobody's way."""
    return {
        line.key: found.path
        for found in sets
        for line in read_lines(found.path)[1]
        if _is_current(line, instances, solutions)
    }


def _require_distinct(lines: Iterable[Line], known: Mapping[Key, Path], file: Path) -> None:
    """A release takes one record of a workload and solution on a target."""
    for line in lines:
        if line.key in known:
            raise InputError(
                line.where, f"{line.key} stands in {known[line.key]} as well; a release takes one "
                "(`--reproduces` adds a set that repeats others)",
            )  # fmt: skip


def _is_current(line: Line, instances: Mapping[str, Descriptor], solutions: Mapping[str, Descriptor]) -> bool:
    instance = instances.get(f"{line.problem}/{line.record.workload}")
    solution = solutions.get(f"{line.problem}/solutions/{line.record.solution}")
    if instance is None or solution is None or instance.digest != line.record.workload_digest:
        return False
    return not isinstance(line.record, Trace) or line.record.solution_digest == solution.digest


def _require_complete(
    lines: Iterable[Line], target: str, instances: Mapping[str, Descriptor], selection: Selection, file: Path
) -> tuple[int, int]:
    """Where a set has a problem and a solution, it has all of the problem's workloads for the target, or says why not.

    (workloads that have a record, workloads of the release for the target).
    """
    wanted: dict[str, set[str]] = {}
    for name, entry in instances.items():
        if entry.kind == "workload" and selection.includes(name, target):
            key, _, uuid = name.rpartition("/")
            wanted.setdefault(key, set()).add(uuid)
    found: dict[tuple[str, str], set[str]] = {}
    for line in lines:
        found.setdefault((line.problem, line.record.solution), set()).add(line.record.workload)
    for (problem, solution), uuids in sorted(found.items()):
        missing = sorted(wanted.get(problem, set()) - uuids)
        if missing:
            rest = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise InputError(
                str(file), f"{problem}: {solution} has no record of {missing[0]}{rest}; finish the set "
                "(`solbench measure` goes on, --final says what was left)",
            )  # fmt: skip
    covered = {(problem, uuid) for (problem, _), uuids in found.items() for uuid in uuids}
    return len(covered), sum(len(uuids) for uuids in wanted.values())


def _notes(header: SetHeader, others: Iterable[SetHeader], origin: Origin) -> tuple[str, ...]:
    """What will hold scores back; a set that repeats others may well come from another card and environment."""
    if origin == "reproductions":
        return ()
    apart = {reason for other in others if (reason := incomparable([header], [other])) is not None}
    if not apart:
        return ()
    return (f"beside the sets that are there: {'; '.join(sorted(apart))}; totals of such entries are withheld "
            f"unless the {BASELINE} entry is of the same set",)  # fmt: skip
