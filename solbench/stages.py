"""The function behind each DVC stage: read indexes, call one function, write artifacts; parallel where it pays."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from solbench import canonical
from solbench.errors import InputError
from solbench.evaluate.identity import workload_artifact
from solbench.jobs import COMPILATION, CONVERSION, EXTRACTION, code_of, mapped
from solbench.model.configuration import load_selection
from solbench.workspace import StageOutput, Workspace, replace_folder, stage_output, write_file

# An eager call takes about this many times the bound of the calibrated cpu model; only decides what is left out.
ESTIMATE_OVER_BOUND = 4.0
OMISSION_SCHEMA = "solbench.omission.v1"
NO_GRAPH_SCHEMA = "solbench.no-graph.v1"


def corpus(workspace: Workspace, output: StageOutput) -> str:
    """Definitions and solutions of every problem, the eager baseline and the compiled reference included."""
    from solbench.corpus.compiled import with_compiled
    from solbench.corpus.configured import release_corpus
    from solbench.corpus.load import eager_solution

    problems = with_compiled(release_corpus(workspace.problems, workspace.parameters().capacity_gib).problems)
    for problem in problems:
        output.put(problem.key, "definition", problem.definition.as_dict())
        for solution in (eager_solution(problem.definition), *problem.solutions):
            output.put(f"{problem.key}/solutions/{solution.name}", "solution", solution.as_dict())
    return f"{len(problems)} problems, {len(output.index) - len(problems)} solutions"


def workloads(workspace: Workspace, output: StageOutput) -> str:
    """One artifact a workload: the workload, its resolved axes, and the definition that it belongs to.

    And one a configuration: which of them are for which target.
    """
    from solbench.corpus.configured import release_corpus

    found = release_corpus(workspace.problems, workspace.parameters().capacity_gib)
    for problem in found.problems:
        for workload in problem.workloads:
            output.put(f"{problem.key}/{workload.uuid}", "workload", workload_artifact(problem, workload))
    for configuration in found.configurations:
        output.put(configuration.name, "configuration", configuration.as_dict())
    return f"{len(output.index) - len(found.configurations)} workloads, {len(found.configurations)} configurations"


def graphs(workspace: Workspace, output: StageOutput) -> str:
    """Operator graph of every workload, or a record of why there is none."""
    from solbench.bounds import record_graph

    path = workspace.parameters().path
    jobs = [(name, instance, {**definition, "path": path}) for name, instance, definition in _instances(workspace)]
    code = code_of(EXTRACTION)
    results, computed = mapped(workspace.memo, "graphs", code, record_graph, [job[1:] for job in jobs])
    missing = 0
    for (name, _, _), result in zip(jobs, results, strict=True):
        if result["graph"] is not None:
            output.put(name, "operator-graph", result["graph"])
        else:
            missing += 1
            output.put(name, "no-graph", {"schema": NO_GRAPH_SCHEMA, "reason": result["reason"]})
    return f"{len(jobs)} workloads, {computed} computed, {missing} without a graph"


def einsums(workspace: Workspace, output: StageOutput) -> str:
    """IR and attestation of every workload that has a graph; what is replayed for several is replayed once."""
    from solbench.bounds import attestation, convert_and_reduce, examined

    recorded = workspace.store.index("graphs")
    jobs = []
    for name, instance, definition in _instances(workspace):
        graph = recorded[name]
        if graph.kind == "operator-graph":
            jobs.append((name, instance, {**definition, "graph": workspace.store.load("graphs", graph)}))
    code = code_of(CONVERSION)
    results, computed = mapped(workspace.memo, "einsums", code, convert_and_reduce, [job[1:] for job in jobs])
    keys = [canonical.digest(canonical.dumps(result["witness"])) for result in results]
    witnesses = {key: result["witness"] for key, result in zip(keys, results, strict=True) if result["witness"]}
    replays, replayed = mapped(workspace.memo, "witnesses", code, examined, [(small,) for small in witnesses.values()])
    found = dict(zip(witnesses, replays, strict=True))
    missing = 0
    for (name, _, _), key, result in zip(jobs, keys, results, strict=True):
        attested = attestation(result, found[key]) if result["witness"] else result
        if attested["program"] is None:
            missing += 1
            output.put(f"{name}/graph", "no-graph", {"schema": NO_GRAPH_SCHEMA, "reason": attested["reason"]})
            continue
        output.put(f"{name}/graph", "einsum-graph", attested["program"])
        output.put(f"{name}/attestation", "attestation", attested["attestation"])
    return (
        f"{len(jobs)} graphs, {computed} computed, {replayed} of {len(witnesses)} replays run, {missing} not converted"
    )


def code(workspace: Workspace, output: StageOutput) -> str:
    """What candidates for a card become on it: a record a workload, a kernel's evidence, and what was compiled."""
    from solbench.code.artifacts import compiled
    from solbench.code.section import candidates, put, recorded

    found = candidates(workspace.store, workspace.parameters().targets)
    jobs = [candidate.job for candidate in found if "triton" in candidate.languages]
    results, computed = mapped(workspace.memo, "code", code_of(COMPILATION, ("triton",)), compiled, jobs)
    hip = recorded(found, workspace.checkout / "measurements" / "code")
    codes = [code for result in (*results, *hip) for code in put(output, result)]
    done = sum(code["status"] == "COMPILED" for code in codes)
    return f"{done} of {len(codes)} workloads of {len(found)} candidates compiled, {computed} candidates anew"


def verdicts(workspace: Workspace, output: StageOutput) -> str:
    """Recorded verdicts from the emulated card, of solutions and workloads as they are in this release."""
    from solbench.evaluate.verdict_section import put

    return str(put(workspace.store, workspace.checkout / "measurements" / "verdicts", output))


def bounds(workspace: Workspace, output: StageOutput) -> str:
    """T_SOL of every workload on every target, and the machine models that they were derived for."""
    from solbench.bounds import bound_artifact

    machines = _machines(workspace)
    models = {
        machine.name: output.put(f"hardware/{machine.name}", "hardware", machine.to_dict()) for machine in machines
    }
    instances = workspace.store.index("workloads")
    programs = workspace.store.index("einsums")
    selection = load_selection(instances, workspace.store.load)
    total = without = 0
    for name, instance, _ in _instances(workspace):
        graph = programs.get(f"{name}/graph")
        program, reason = None, "no operator graph"
        if graph is None:
            recorded = workspace.store.index("graphs")[name]
            reason = workspace.store.load("graphs", recorded)["reason"]
        elif graph.kind == "einsum-graph":
            program = workspace.store.load("einsums", graph)
        else:
            reason = workspace.store.load("einsums", graph)["reason"]
        attestation = programs.get(f"{name}/attestation")
        for machine in machines:
            if not selection.includes(name, machine.name):
                continue
            total += 1
            references = {
                "instance": instances[name].as_dict(),
                "graph": graph.as_dict() if program is not None and graph is not None else None,
                "hardware": models[machine.name].as_dict(),
                "attestation": attestation.as_dict() if attestation is not None else None,
            }
            value = bound_artifact(instance, references, program, machine, reason)
            without += value["result"] is None
            output.put(f"{name}@{machine.name}", "bound", value)
    return f"{total - without} of {total} bounds on {', '.join(machine.name for machine in machines)}"


def calibrate(workspace: Workspace) -> str:
    """Measure what this cpu can do into ``hardware/cpu.json`` (local release only)."""
    from solbench.device.calibrate import calibrate_cpu

    model = calibrate_cpu()
    write_file(workspace.root / "hardware" / "cpu.json", canonical.dumps(model))
    return "machine model cpu, measured"


def measure(workspace: Workspace) -> str:
    """Measure every solution on this cpu into ``measurements/cpu/local.jsonl`` (local release only)."""
    from solbench.corpus.load import load_corpus
    from solbench.errors import UndecidedError
    from solbench.evaluate import sandbox
    from solbench.evaluate.controls import controls_here, reads_wrong
    from solbench.evaluate.measure import measure
    from solbench.evaluate.protocols import protocol
    from solbench.evaluate.session import Session

    unsandboxed = False
    try:
        sandbox.isolation()
    except UndecidedError as refusal:
        # The solutions of a checkout that its owner builds anyway; every trace says how they ran.
        print(f"  {refusal}: measuring unsandboxed", flush=True)
        unsandboxed = True
    parameters = workspace.parameters()
    bounds = {
        (value["problem"], value["workload"]): value["result"]["t_sol_s"]
        for _, _, value in workspace.store.items("bounds", "bound")
        if value["target"] == "cpu" and value["result"] is not None
    }
    # Kept across a kill: the next run of this stage finishes what this one began.
    working = workspace.root / ".measurements"
    hardware = canonical.loads((workspace.root / "hardware" / "cpu.json").read_bytes(), "hardware/cpu.json")
    say: Callable[[str], None] = lambda line: print(f"  {line}", flush=True)  # noqa: E731
    with Session(unsandboxed=unsandboxed) as session:
        controls = controls_here(session, hardware, progress=say)
        # A busy machine has a release all the same, which says why it has no times.
        wrong = reads_wrong(controls or ())
        if wrong is not None:
            say(f"{wrong}: nothing is measured")
        summary = measure(
            load_corpus(workspace.problems),
            working / "cpu" / "local.jsonl",
            protocol=protocol(parameters.protocol, max_call_s=parameters.max_call_s),
            estimates={case: ESTIMATE_OVER_BOUND * t_sol_s for case, t_sol_s in bounds.items()},
            budget_s=parameters.budget_s,
            final=True,
            hardware=hardware,
            controls=controls,
            withheld=wrong,
            session=session,
            progress=say,
        )
    replace_folder(working, workspace.root / "measurements")
    return str(summary)


def timings(workspace: Workspace, output: StageOutput) -> str:
    """Traces of every measurement set whose workloads are those of this release; stale ones are left out, counted."""
    from solbench.evaluate.recording import read_set
    from solbench.release.measurements import measurement_sets
    from solbench.score.records import set_name

    instances = workspace.store.index("workloads")
    solutions = workspace.store.index("corpus")
    stale = kept = 0
    for found in measurement_sets(workspace.root / "measurements"):
        header, records = read_set(found.path)
        if found.target != header.target:
            raise InputError(str(found.path), f"is a set of {header.target}, and belongs below measurements/ there")
        name = set_name(found.target, found.path.stem, found.origin)
        output.put(f"{name}/header", "measurement-set", header.as_dict())
        for problem, record in records:
            instance = instances.get(f"{problem}/{record.workload}")
            solution = solutions.get(f"{problem}/solutions/{record.solution}")
            expected = getattr(record, "solution_digest", None)
            if (
                instance is None
                or instance.digest != record.workload_digest
                or solution is None
                or (expected is not None and expected != solution.digest)
            ):
                stale += 1
                continue
            kept += 1
            logical = f"{name}/{problem}/{record.workload}/{record.solution}"
            if expected is None:
                output.put(logical, "omission", {"schema": OMISSION_SCHEMA, **record.as_dict()})
            else:
                output.put(logical, "trace", record.as_dict())
    return f"{kept} records, {stale} stale and left out"


def scores(workspace: Workspace, output: StageOutput) -> str:
    """S of every trace, and every entry's aggregate."""
    from solbench.score.release import score_release

    for name, kind, value in score_release(workspace.store):
        output.put(name, kind, value)
    entries = sum(descriptor.kind == "entry" for descriptor in output.index.values())
    return f"{len(output.index) - entries} scores, {entries} entries"


def readiness(workspace: Workspace, output: StageOutput) -> str:
    """What each target shows: the static matrix, derived here, and what was recorded of runs under ``readiness/``."""
    from solbench.release import readiness as matrices

    store = workspace.store
    sections = {stage: store.index(stage) for stage in ("corpus", "workloads", "bounds", "code")}
    said = []
    for target in matrices.targets_of(sections):
        derived = matrices.static(sections, store.load, target)
        if derived is not None:
            output.put(f"{target}/static", "readiness", derived.as_dict())
            said.append(f"{target} {derived.ready} of {derived.total}")
    stale = 0
    for path in sorted((workspace.root / "readiness").glob("*/*.json")):
        matrix = matrices.read(path)
        if any(matrices.problems(matrix, sections, store.load)):
            stale += 1
            continue
        output.put(f"{matrix.target}/{matrix.level}", "readiness", matrix.as_dict())
        said.append(f"{matrix.target} {matrix.level} {matrix.ready} of {matrix.total}")
    return f"{', '.join(said)}; {stale} recorded matrices stale and left out"


def release(workspace: Workspace, output: StageOutput) -> str:
    """The root object; its bytes also stand in ``release/<name>.json``."""
    from solbench.release.root import build_release

    name = workspace.parameters().release
    root = build_release(workspace.store, name, output)
    write_file(workspace.root / "release" / f"{name}.json", root.data)
    return f"{name} {root.descriptor.digest}"


def site(workspace: Workspace) -> str:
    """The static site into ``site/``."""
    from solbench.memo import Memo
    from solbench.site import render

    pages = render(
        workspace.root / "store",
        workspace.root / "site",
        object_base="../store/{stage}/objects",
        templates=workspace.checkout / "site_templates",
        memo=Memo(workspace.memo),
    )
    return f"{len(pages['pages'])} files"


Writer = Callable[[Workspace, StageOutput], str]
STAGES: dict[str, Writer | Callable[[Workspace], str]] = {
    "corpus": corpus,
    "workloads": workloads,
    "graphs": graphs,
    "einsums": einsums,
    "code": code,
    "verdicts": verdicts,
    "calibrate": calibrate,
    "bounds": bounds,
    "measure": measure,
    "timings": timings,
    "scores": scores,
    "readiness": readiness,
    "release": release,
    "site": site,
}
_WITHOUT_STORE = ("calibrate", "measure", "site")


def run_stage(name: str, workspace: Workspace) -> str:
    """Run one stage; returns a line that says what it did. The stage dies with the DVC process that started it."""
    _die_with_dvc()
    function: Any = STAGES[name]
    if name in _WITHOUT_STORE:
        return str(function(workspace))
    with stage_output(workspace.root / "store", name) as output:
        return str(function(workspace, output))


Job = tuple[str, dict[str, Any], dict[str, Any]]


def _instances(workspace: Workspace) -> Iterable[Job]:
    """(name, workload artifact, definition artifact) of every workload, in name order."""
    definitions = workspace.store.index("corpus")
    loaded: dict[str, dict[str, Any]] = {}
    for name, _, instance in workspace.store.items("workloads", "workload"):
        problem = instance["problem"]
        if problem not in loaded:
            loaded[problem] = workspace.store.load("corpus", definitions[problem])
        yield name, instance, loaded[problem]


def _die_with_dvc() -> None:
    """End this process when DVC is killed: an orphaned stage must not write into the next run's output."""
    ancestors = _dvc_ancestors()
    if not ancestors or not hasattr(os, "pidfd_open"):
        return
    import select

    def watch(pidfds: list[int]) -> None:
        poll = select.poll()
        for pidfd in pidfds:
            poll.register(pidfd, select.POLLIN)
        poll.poll()
        os._exit(1)

    try:
        pidfds = [os.pidfd_open(pid) for pid in ancestors]
    except OSError:
        os._exit(1)
    threading.Thread(target=watch, args=(pidfds,), daemon=True).start()


def _dvc_ancestors() -> list[int]:
    """Process ids from our parent up to the DVC process, empty when DVC did not start us."""
    found: list[int] = []
    pid = os.getppid()
    for _ in range(4):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return []
        found.append(pid)
        if b"dvc" in [part.rpartition(b"/")[2] for part in command[:4]]:
            return found
        pid = parent
    return []


def _machines(workspace: Workspace) -> list[Any]:
    """Machine models of the configured targets, of recorded measurement sets, and of this machine's calibration."""
    from solar.hardware import Machine
    from solbench.bounds import machine_for
    from solbench.evaluate.recording import read_header
    from solbench.release.measurements import measurement_sets

    models = {target: machine_for(target) for target in workspace.parameters().targets}
    calibration = workspace.root / "hardware" / "cpu.json"
    if calibration.is_file():
        models["cpu"] = Machine.from_dict(canonical.loads(calibration.read_bytes(), str(calibration)))
    else:
        for found in measurement_sets(workspace.root / "measurements"):
            header = read_header(found.path)
            if found.origin != "reproductions" and header.hardware is not None and header.target not in models:
                models[header.target] = Machine.from_dict(header.hardware)
    return [models[name] for name in sorted(models)]
