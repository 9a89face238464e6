"""The levels that derive again what a release states: cross references, scores, counts and bounds. No PyTorch.

Everything here reads artifacts that keep their contracts and hashes; what they state is still anybody's claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from solar.errors import SolarError
from solbench.errors import InputError
from solbench.model.configuration import Configuration, load_selection
from solbench.model.definition import Definition
from solbench.model.workload import Workload
from solbench.release import code, emulated, shares, verdicts
from solbench.release.findings import Finding, Findings
from solbench.release.root import STAGES, describe
from solbench.release.schemas import machine, same
from solbench.score.release import score_sections
from solbench.store import Descriptor, without_kind

Sections = Mapping[str, Mapping[str, Descriptor]]
Load = Callable[[str, Descriptor], dict[str, Any]]

# What arithmetic over a hostile graph can raise. It leaves the question open: the fault may be ours.
_BROKEN = (
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    AssertionError,
    RecursionError,
    MemoryError,
)


def cross_references(sections: Sections, load: Load, findings: Findings) -> None:
    """Names agree with contents, and workloads, graphs, bounds and their references with one another."""
    for stage in STAGES:
        if stage not in sections:
            findings.add("schemas", "schema", "release: sections", f"a section {stage}", "none")
    for stage in sections:
        if stage not in STAGES:
            findings.add("schemas", "version", f"release: sections.{stage}", ", ".join(STAGES), stage)
    if not findings.clean("schemas"):
        return
    definitions = {
        key: Definition.load(without_kind(load("corpus", entry)), key)
        for key, entry in sections["corpus"].items()
        if entry.kind == "definition"
    }
    checks = (_corpus, _workloads, _graphs, _bounds, _code, _emulated, _verdicts)
    for check in checks:
        for name, expected, found in check(sections, load, definitions):
            findings.add("schemas", "cross-ref", name, expected, found)


Problem = tuple[str, object, object]
Definitions = Mapping[str, Definition]


def _corpus(sections: Sections, load: Load, definitions: Definitions) -> Iterator[Problem]:
    for name, entry in sections["corpus"].items():
        if entry.kind == "definition":
            continue
        key, separator, solution = name.rpartition("/solutions/")
        if entry.kind != "solution" or not separator or key not in definitions:
            yield f"corpus: {name}", "a definition, or a solution of one", entry.kind
            continue
        artifact = load("corpus", entry)
        stated = artifact["name"], artifact["definition"]
        if stated != (solution, definitions[key].name):
            yield f"corpus: {name}", (solution, definitions[key].name), stated


def _workloads(sections: Sections, load: Load, definitions: Definitions) -> Iterator[Problem]:
    for name, entry in sections["workloads"].items():
        where = f"workloads: {name}"
        if entry.kind == "configuration":
            yield from _configuration(name, load("workloads", entry), sections)
            continue
        key, _, uuid = name.rpartition("/")
        if entry.kind != "workload" or key not in definitions:
            yield where, "a workload of a definition", entry.kind
            continue
        artifact = load("workloads", entry)
        workload = Workload.load(artifact["workload"], name)
        if (artifact["problem"], workload.uuid) != (key, uuid):
            yield where, (key, uuid), (artifact["problem"], workload.uuid)
        if artifact["definition"] != sections["corpus"][key].as_dict():
            yield where, sections["corpus"][key].digest, artifact["definition"]["digest"]
        try:
            axes = workload.validate_against(definitions[key], name)
        except InputError as error:
            yield where, "a workload that fits its definition", error
            continue
        if axes != artifact["axes"]:
            yield where, axes, artifact["axes"]


def _configuration(name: str, artifact: Mapping[str, Any], sections: Sections) -> Iterator[Problem]:
    """A configuration stands under its own name, and what it selects are workloads of the release."""
    configuration = Configuration.load(without_kind(artifact), name)
    if configuration.name != name:
        yield f"workloads: {name}", configuration.name, name
    names = _names(sections)
    for decision in configuration.decisions:
        for slot in decision.workloads:
            workload = f"{decision.problem}/{slot.uuid}"
            if workload not in names or not workload.startswith(f"{configuration.corpus}/"):
                yield f"workloads: {name}", "workloads of the release", workload


def _names(sections: Sections) -> dict[str, Descriptor]:
    """The workloads of the release, in the order of their section."""
    return {name: entry for name, entry in sections["workloads"].items() if entry.kind == "workload"}


def _graphs(sections: Sections, load: Load, definitions: Definitions) -> Iterator[Problem]:
    allowed: dict[str, dict[str, tuple[str, ...]]] = {
        "graphs": {"": ("operator-graph", "no-graph")},
        "einsums": {"/graph": ("einsum-graph", "no-graph"), "/attestation": ("attestation",)},
    }
    names = _names(sections)
    for stage, suffixes in allowed.items():
        for name, entry in sections[stage].items():
            fits = any(
                name.endswith(suffix) and name[: len(name) - len(suffix)] in names and entry.kind in kinds
                for suffix, kinds in suffixes.items()
            )
            if not fits:
                yield f"{stage}: {name}", "a graph of a workload of the release", entry.kind
            elif entry.kind == "attestation":
                yield from _attestation(name, load(stage, entry), sections, load)
    for name in names:
        if name not in sections["graphs"]:
            yield f"graphs: {name}", "an operator graph, or why there is none", "nothing"
        elif sections["graphs"][name].kind == "operator-graph":
            graph = sections["einsums"].get(f"{name}/graph")
            if graph is None:
                yield f"einsums: {name}/graph", "the IR of its operator graph, or why there is none", "nothing"
            elif graph.kind == "einsum-graph" and f"{name}/attestation" not in sections["einsums"]:
                yield f"einsums: {name}/attestation", "an attestation of its IR", "nothing"


def _attestation(name: str, artifact: Mapping[str, Any], sections: Sections, load: Load) -> Iterator[Problem]:
    """An attestation names the definition and the IR beside it."""
    stated = {subject["name"]: subject["digest"].get("blake3") for subject in artifact["subject"]}
    workload = name.removesuffix("/attestation")
    definition = sections["corpus"].get(workload.rpartition("/")[0])
    graph = sections["einsums"].get(f"{workload}/graph")
    if graph is None or graph.kind != "einsum-graph":
        yield f"einsums: {name}", "an IR that it attests", "none"
        return
    expected = {"definition": definition.digest if definition else None, "einsum-graph": graph.digest}
    for subject, digest in expected.items():
        if f"blake3:{stated.get(subject)}" != digest:
            yield f"einsums: {name}: subject {subject}", digest, stated.get(subject)


def _bounds(sections: Sections, load: Load, definitions: Definitions) -> Iterator[Problem]:
    bounds = sections["bounds"]
    targets = sorted(name.removeprefix("hardware/") for name, entry in bounds.items() if entry.kind == "hardware")
    selection, names = load_selection(sections["workloads"], load), _names(sections)
    for target in targets:
        machine = load("bounds", bounds[f"hardware/{target}"])
        if f"hardware/{target}" not in bounds or machine.get("name") != target:
            yield f"bounds: hardware/{target}", target, machine.get("name")
        for name in names:
            if selection.includes(name, target) and f"{name}@{target}" not in bounds:
                yield f"bounds: {name}@{target}", "a bound, or why there is none", "nothing"
    for name, entry in bounds.items():
        if entry.kind == "hardware":
            continue
        where = f"bounds: {name}"
        workload, _, target = name.rpartition("@")
        selected = workload in names and selection.includes(workload, target)
        if entry.kind != "bound" or not selected or target not in targets:
            yield where, "a bound of a workload on a target of the release", entry.kind
            continue
        artifact = load("bounds", entry)
        instance = load("workloads", sections["workloads"][workload])
        graph = sections["einsums"].get(f"{workload}/graph")
        attestation = sections["einsums"].get(f"{workload}/attestation")
        expected = {
            "problem": instance["problem"],
            "workload": instance["workload"]["uuid"],
            "target": target,
            "instance": sections["workloads"][workload].as_dict(),
            "graph": graph.as_dict() if graph is not None and graph.kind == "einsum-graph" else None,
            "hardware": bounds[f"hardware/{target}"].as_dict(),
            "attestation": attestation.as_dict() if attestation is not None else None,
            "rejected_formats": instance["workload"]["rejected_formats"],
        }
        for field, value in expected.items():
            if artifact[field] != value:
                yield f"{where}: {field}", value, artifact[field]


def scores(sections: Sections, load: Load, findings: Findings) -> tuple[int, int]:
    """Estimates, scores, entries and the release's own counts, derived again; equality is exact. (scores, entries)."""
    try:
        artifacts = score_sections(sections, load)
        derived = {name: (kind, value) for name, kind, value in artifacts}
    except InputError as error:
        findings.add("scores", "cross-ref", error.where, error.rule)
        return 0, 0
    except _BROKEN as error:
        findings.add("scores", "cannot-recompute", "scores", "scores and entries", f"{type(error).__name__}: {error}")
        return 0, 0
    stated = sections["scores"]
    for name in sorted(stated.keys() | derived.keys()):
        where = f"scores: {name}"
        if name not in derived:
            findings.add("scores", "cross-ref", where, "a score of a record of the release", stated[name].kind)
        elif name not in stated:
            findings.add("scores", "count-mismatch", where, derived[name][0], "nothing")
        else:
            kind, value = derived[name]
            if kind != stated[name].kind:
                findings.add("scores", "score-mismatch", where, kind, stated[name].kind)
                continue
            found = without_kind(load("scores", stated[name]))
            # Both are as one contract writes them, so that no truth value stands where the other has a number.
            if value != found:
                _compare("scores", "score-mismatch", where, value, found, findings)
    kinds = [kind for _, kind, _ in artifacts]
    return kinds.count("score"), kinds.count("entry")


def counts(release: Mapping[str, Any], sections: Sections, load: Load, findings: Findings) -> None:
    """The release object's counts, targets and corpora against its sections."""
    references = {
        stage: Descriptor(entry["kind"], entry["digest"], entry["size"]) for stage, entry in release["sections"].items()
    }
    expected = describe(release["name"], sections, load, references).as_dict()
    _compare("scores", "count-mismatch", "release", expected, without_kind(release), findings)


# Fields of an entry that count something.
_COUNTS = frozenset(
    {"scored", "failed", "audit", "too_narrow", "not_timed", "no_bound", "not_attempted", "workloads"}
    | {"problem_n", "problem_total"}
)


def _compare(
    level: str, code: str, where: str, expected: Mapping[str, Any], found: Mapping[str, Any], findings: Findings
) -> None:
    for field in sorted(expected.keys() | found.keys()):
        if (field in expected) != (field in found) or not same(expected.get(field), found.get(field)):
            which = "count-mismatch" if field in _COUNTS else code
            findings.add(level, which, f"{where}: {field}", expected.get(field), found.get(field))


def bounds(sections: Sections, load: Load, findings: Findings) -> int:
    """Every bound from its IR and its machine model, derived again; equality is exact. Returns their number."""
    by_workload: dict[str, list[str]] = {}
    for name, entry in sorted(sections["bounds"].items()):
        if entry.kind == "bound":
            by_workload.setdefault(name.rpartition("@")[0], []).append(name)
    machines: dict[str, Any] = {}

    def derived(workload: str) -> list[list[str | None]]:
        found = Findings()
        _bounds_of(workload, by_workload[workload], sections, load, machines, found)
        return [[each.code, each.path, each.expected, each.found] for each in found.sorted()]

    workloads = list(by_workload)
    graphs = sum(entry.kind == "einsum-graph" for entry in sections["einsums"].values())
    for each in shares.over(workloads, derived, shares.workers_for(graphs)):
        for fields in each:
            findings.put("bounds", Finding(*fields))
    return sum(map(len, by_workload.values()))


def _bounds_of(
    workload: str, names: list[str], sections: Sections, load: Load, machines: dict[str, Any], findings: Findings
) -> None:
    """The bounds of one workload; ``machines``: models that were read before, by target."""
    program: Any = None
    for name in names:
        where = f"bounds: {name}"
        artifact = load("bounds", sections["bounds"][name])
        target = name.rpartition("@")[2]
        if artifact["graph"] is None:
            missing = _why_no_graph(workload, sections, load)
            if artifact["reason"] != missing:
                findings.add("bounds", "bound-mismatch", f"{where}: reason", missing, artifact["reason"])
            continue
        # Only here: it takes a while, and many a bundle has no graph.
        from solar import einsum
        from solar.bound import analyse, price

        result: dict[str, Any] | None = None
        reason: str | None = None
        try:
            if program is None:
                program = analyse(
                    einsum.from_dict(without_kind(load("einsums", sections["einsums"][f"{workload}/graph"])))
                )
            if target not in machines:
                machines[target] = machine(load("bounds", sections["bounds"][f"hardware/{target}"]))
            rejected = tuple(artifact["rejected_formats"])
            result = price(program, machines[target], rejected_formats=rejected)
        except SolarError as error:
            reason = str(error)
        except _BROKEN as error:
            findings.add("bounds", "cannot-recompute", where, "a bound", f"{type(error).__name__}: {error}")
            continue
        if result is None or artifact["result"] is None:
            if artifact["result"] is not None or artifact["reason"] != reason:
                stated = artifact["reason"] if artifact["result"] is None else "a bound"
                findings.add("bounds", "bound-mismatch", where, reason or "a bound", stated)
        elif not same(result, artifact["result"]):
            _compare("bounds", "bound-mismatch", where, result, artifact["result"], findings)


def _code(sections: Sections, load: Load, definitions: Definitions) -> Iterator[Problem]:
    yield from code.cross_references(sections, load)


def _emulated(sections: Sections, load: Load, definitions: Definitions) -> Iterator[Problem]:
    yield from emulated.cross_references(sections, load)


def _verdicts(sections: Sections, load: Load, definitions: Definitions) -> Iterator[Problem]:
    yield from verdicts.cross_references(sections, load)


def _why_no_graph(workload: str, sections: Sections, load: Load) -> str:
    for stage, name in (("einsums", f"{workload}/graph"), ("graphs", workload)):
        entry = sections[stage].get(name)
        if entry is not None and entry.kind == "no-graph":
            return str(load(stage, entry)["reason"])
    return "no operator graph"
