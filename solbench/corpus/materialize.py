"""A corpus for one target: which workloads it can run, decided by static rules and then by a trusted probe.

Every workload gets one decision, included or not, and the rule that decided. What is written is a corpus of its own,
with nothing in it that depends on when or where the probe ran, but for workloads that the probe could not run.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import Field

from solbench.child import ask
from solbench.corpus.document import read_yaml
from solbench.corpus.load import Problem, load_problem
from solbench.corpus.manifest import FILES, Corpus, Target, file_digests, require_pinned
from solbench.errors import InputError, SolbenchError
from solbench.model.definition import storage_bytes
from solbench.model.record import Value
from solbench.model.workload import Workload
from solbench.workspace import new_folder, require_absent

SCHEMA: Final = "solbench.materialization.v1"
MATERIALIZATION: Final = "materialization.json"
Reason = Literal[
    "unsupported_target_dtype", "target_memory", "probe_passed", "probe_timeout", "probe_out_of_memory", "probe_failed"
]


class Probe(Value):
    """``limit_bytes``: inputs and outputs up to which a workload is probed at its own size, above it at a reduced one.
    ``timeout_s``: for each workload. ``memory_bytes``: what the probe's process may take."""

    limit_bytes: int = 64 << 20
    timeout_s: float = 120.0
    memory_bytes: int = 4 << 30


class Decision(Value):
    """Whether a workload is in, which stage decided, why, and what was seen."""

    problem: str
    workload: str
    included: bool
    stage: Literal["static", "probe"]
    reason: Reason
    detail: str = ""


class Materialization(Value):
    """``materialization.json``: what was decided, for which target, from which manifest, and the files written."""

    schema_: Literal["solbench.materialization.v1"] = Field(SCHEMA, alias="schema")
    corpus: str
    revision: str
    manifest: str
    target: str
    rules: Target
    probe: Probe
    decisions: tuple[Decision, ...]
    problems: dict[str, dict[str, str]]


def materialize(corpus: Corpus, target: str, output: Path, probe: Probe) -> list[Decision]:
    """Decide every workload and write the corpus of ``target`` to ``output``, whole or not at all.

    :class:`InputError` where the corpus is not what its manifest pins, the target is unknown, or ``output`` exists.
    """
    require_absent(output)
    rules = target_rules(corpus, target)
    require_pinned(corpus)
    decisions = [decision for problem in corpus.problems for decision in _decide(corpus, problem, rules, probe)]
    with new_folder(output) as temporary:
        written = {}
        for problem in corpus.problems:
            name = folder_name(corpus, problem)
            included = [decision.workload for decision in decisions if decision.problem == name and decision.included]
            if included:
                folder = temporary / corpus.manifest.corpus / name
                _write_problem(problem, included, folder)
                written[name] = file_digests(folder)
        record = Materialization(
            schema=SCHEMA,
            corpus=corpus.manifest.corpus,
            revision=corpus.manifest.source.revision,
            manifest=corpus.digest,
            target=target,
            rules=rules,
            probe=probe,
            decisions=tuple(decisions),
            problems=written,
        )
        (temporary / MATERIALIZATION).write_text(json.dumps(record.as_dict(), indent=1) + "\n")
    return decisions


def target_rules(corpus: Corpus, target: str) -> Target:
    """The manifest's static rules of ``target``; :class:`InputError` names those there are."""
    rules = corpus.manifest.targets.get(target)
    if rules is None:
        raise InputError(target, f"no such target; the manifest has {', '.join(corpus.manifest.targets)}")
    return rules


def folder_name(corpus: Corpus, problem: Problem) -> str:
    """A problem's folder below its corpus, its name in manifests."""
    return problem.path.relative_to(corpus.folder).as_posix()


def static_decisions(corpus: Corpus, problem: Problem, rules: Target) -> dict[str, Decision]:
    """Decisions of the workloads that the target's rules exclude, by uuid. Pure: no device, no process."""
    definition, name = problem.definition, folder_name(corpus, problem)
    specs = [*definition.inputs.values(), *definition.outputs.values()]
    foreign = sorted({spec.dtype for spec in specs if spec.shape is not None} - set(rules.dtypes))
    decisions = {}
    for workload in problem.workloads:
        axes = definition.resolve_axes(workload.axes, workload.uuid)
        size = sum(storage_bytes(spec, axes) for spec in specs)
        if foreign:
            why: tuple[Reason, str] = ("unsupported_target_dtype", ", ".join(foreign))
        elif size > rules.memory_bytes:
            why = ("target_memory", f"inputs and outputs take {size} bytes, the target has {rules.memory_bytes}")
        else:
            continue
        decisions[workload.uuid] = _decision(name, workload.uuid, "static", *why)
    return decisions


def _decision(problem: str, workload: str, stage: str, reason: str, detail: str) -> Decision:
    fields = {"problem": problem, "workload": workload, "stage": stage, "reason": reason, "detail": detail}
    return Decision.load({**fields, "included": reason == "probe_passed"}, workload)


def _decide(corpus: Corpus, problem: Problem, rules: Target, probe: Probe) -> list[Decision]:
    """One decision a workload, in the order of the workloads."""
    decided = static_decisions(corpus, problem, rules)
    name = folder_name(corpus, problem)
    remaining = [workload.uuid for workload in problem.workloads if workload.uuid not in decided]
    while remaining:
        with tempfile.TemporaryDirectory(prefix="solbench-probe-") as folder:
            request = {"problem": str(problem.path.resolve()), "workloads": remaining, "limit_bytes": probe.limit_bytes}
            answers, fault = ask(
                "solbench.corpus.materialize:probed", request, Path(folder),
                timeout_s=probe.timeout_s * len(remaining), memory_bytes=probe.memory_bytes, reads=[problem.path],
            )  # fmt: skip
        for uuid, (reason, detail) in zip(remaining, answers):
            decided[uuid] = _decision(name, uuid, "probe", reason, detail)
        remaining = remaining[len(answers) :]
        if remaining:  # the process ended in the next one; what comes after gets a process of its own
            uuid, reason = remaining.pop(0), "probe_timeout" if fault == "timeout" else "probe_failed"
            decided[uuid] = _decision(name, uuid, "probe", reason, fault or "no answer")
    return [decided[workload.uuid] for workload in problem.workloads]


def probed(request: Mapping[str, Any], folder: Path) -> Iterator[tuple[Reason, str]]:
    """In the child: (reason, detail) of each of the request's workloads."""
    problem = load_problem(Path(request["problem"]))
    workloads = {workload.uuid: workload for workload in problem.workloads}
    for uuid in request["workloads"]:
        yield _run(problem, workloads[uuid], request["limit_bytes"])


def _run(problem: Problem, workload: Workload, limit_bytes: int) -> tuple[Reason, str]:
    """Draw the inputs, run the reference, and hold its outputs against the declared form and their own checks."""
    from solbench.checks import check_outputs
    from solbench.corpus.reduce import Instance, reduced
    from solbench.corpus.reference import load_reference, named_outputs
    from solbench.inputs import draw

    definition = problem.definition
    axes = workload.validate_against(definition, workload.uuid)
    instance = Instance(definition, workload, axes)
    size = sum(storage_bytes(spec, axes) for spec in (*definition.inputs.values(), *definition.outputs.values()))
    if size > limit_bytes:
        instance = reduced(definition, workload)
    try:
        inputs = draw(instance.definition, instance.workload, instance.axes, 0, folder=problem.path)
        outputs = named_outputs(instance.definition, load_reference(instance.definition)(**inputs))
        status, why, _ = check_outputs(
            instance.definition, instance.workload, instance.axes, inputs, outputs, outputs
        )  # fmt: skip
    except MemoryError:
        return "probe_out_of_memory", "no memory left for Python"
    except (SolbenchError, RuntimeError, TypeError, ValueError, IndexError) as error:
        short = "allocate memory" in str(error)
        return "probe_out_of_memory" if short else "probe_failed", _line(error)
    return ("probe_failed", why or status.value) if why else ("probe_passed", instance.note or "")


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def _write_problem(problem: Problem, included: Sequence[str], folder: Path) -> None:
    """Copy a problem's files; where workloads are left out, write the list of those that stay."""
    folder.mkdir(parents=True)
    for name in FILES:
        shutil.copyfile(problem.path / name, folder / name)
    if len(included) < len(problem.workloads):
        document = read_yaml(problem.path / "workloads.yaml")
        document["workloads"] = [entry for entry in document["workloads"] if entry["uuid"] in included]
        (folder / "workloads.yaml").write_text(yaml.safe_dump(document, sort_keys=False, width=1000))
