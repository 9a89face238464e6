"""The other side of :mod:`solbench.analysis`: runs one request, writes artifacts, and leaves an answer."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solbench import canonical, store
from solbench.analysis import FILES, MANIFEST, MANIFEST_SCHEMA, SCHEMA, Request
from solbench.corpus.document import read_text
from solbench.errors import InputError, SolbenchError

if TYPE_CHECKING:
    from solar.analysis import Analysis
    from solar.einsum import Program
    from solar.hardware import Machine

NO_ATTESTATION_SCHEMA = "solbench.no-attestation.v1"

Artifacts = dict[str, Mapping[str, Any]]


def answers(request: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any] | None]:
    """In the child: artifacts below ``folder/out``, and null or the reason why there are none."""
    warnings.simplefilter("ignore")
    yield answer(Request(**request), folder / "out")


def answer(request: Request, out: Path) -> dict[str, Any] | None:
    """Write every artifact below ``out``; where there is no analysis, its reason: ``message``, ``exit_code``."""
    try:
        encoded = {
            name: store.encode(str(artifact.get("kind", FILES[name])), artifact)
            for name, artifact in artifacts_of(request).items()
        }
    except BaseException as error:  # noqa: BLE001 (a process boundary: whatever was raised is the answer)
        return {"message": _line(request, error), "exit_code": _exit_code(request, error)}
    for name, data in encoded.items():
        (out / name).write_bytes(data)
    return None


def artifacts_of(request: Request) -> Artifacts:
    """Artifacts by file name; one that is not of the file's usual kind says so in ``kind``."""
    from solar.hardware import Machine

    machine = Machine.from_dict(request.machine)
    if request.subject == "program":
        return _program(request, machine)
    return _problem(request, machine) if request.subject == "problem" else _module(request, machine)


def _problem(request: Request, machine: Machine) -> Artifacts:
    from solar.analysis import analyze
    from solbench.bounds import attested, solar_inputs, structures
    from solbench.corpus.load import load_problem
    from solbench.corpus.reference import load_reference

    problem = load_problem(Path(request.file))
    workload = next(item for item in problem.workloads if item.uuid == request.workload)
    definition = problem.definition
    axes = workload.validate_against(definition, request.name)
    analysis = analyze(
        load_reference(definition),
        solar_inputs(definition, workload, axes),
        machine,
        path=request.path,
        outputs=list(definition.outputs),
        in_place=definition.in_place,
        structures=structures(workload),
        rejected_formats=workload.rejected_formats,
        attestor=(lambda program: attested(program, definition, workload)) if request.attest else None,
    )
    subject = {"problem": request.name, "workload": workload.uuid}
    return _artifacts(request, machine, analysis, subject, workload.rejected_formats, ())


def _module(request: Request, machine: Machine) -> Artifacts:
    from solar.analysis import analyze, record
    from solar.module import Module, load
    from solar.small import attest_module

    file = Path(request.file)
    module = load(file)
    digest = canonical.digest(file.read_bytes())

    def recorded(module: Module) -> Program:
        return record(
            module.run, module.inputs, path=request.path, in_place=module.in_place, structures=module.structures
        )[1]

    def attestor(program: Program) -> Mapping[str, Any] | str:
        with contextlib.redirect_stdout(io.StringIO()):  # it loads and runs the file again, a dozen times
            return attest_module(
                file,
                program,
                recorded,
                subject={"module": digest},
                digest=lambda value: canonical.digest(store.encode("einsum-graph", value)),
            )

    analysis = analyze(
        module.run,
        module.inputs,
        machine,
        path=request.path,
        in_place=module.in_place,
        structures=module.structures,
        attestor=attestor if request.attest else None,
    )
    return _artifacts(request, machine, analysis, {"module": module.name, "digest": digest}, (), module.notes)


def _artifacts(
    request: Request, machine: Machine, analysis: Analysis, subject: Mapping[str, str],
    rejected_formats: tuple[str, ...], notes: tuple[str, ...],
) -> Artifacts:  # fmt: skip
    from solar import einsum, graph

    missing = {"kind": "no-attestation", "schema": NO_ATTESTATION_SCHEMA, "reason": analysis.not_attested}
    return {
        "operator_graph.yaml": graph.to_dict(analysis.graph),
        "einsum_graph.yaml": einsum.to_dict(analysis.program),
        "conversion-attestation.yaml": missing if analysis.attestation is None else analysis.attestation,
        **_bounded(
            request, machine, analysis.program, analysis.bound, subject, analysis.not_attested, rejected_formats, notes
        ),
    }


def _bounded(
    request: Request, machine: Machine, program: Program, bound: Mapping[str, Any], subject: Mapping[str, str],
    not_attested: str | None, rejected_formats: tuple[str, ...], notes: tuple[str, ...],
) -> Artifacts:  # fmt: skip
    result: Artifacts = {
        "solar-analysis.yaml": {
            **bound,
            "schema": SCHEMA,
            "subject": dict(subject),
            "hardware": machine.to_dict(),
            "rejected_formats": list(rejected_formats),
            "attestation": "passed" if not_attested is None else None,
            "not_attested": not_attested,
            "notes": list(notes),
        }
    }
    if request.attainable:
        from solar.mapper import attainable

        traffic: Callable[[Program], Mapping[str, Any]] = attainable
        result["attainable-traffic.json"] = traffic(program)
    return result


def _program(request: Request, machine: Machine) -> Artifacts:
    """The bound of an einsum graph that an earlier analysis, or somebody, wrote."""
    from solar import einsum
    from solar.bound import bound

    file = Path(request.file)
    data = read_text(file).encode()
    _require_listed(file, data)
    value = canonical.parse(data, str(file))
    if not isinstance(value, dict) or value.pop("kind", None) != "einsum-graph":
        raise InputError(str(file), "not an einsum graph (kind: einsum-graph)")
    program = einsum.from_dict(value)
    return {
        "einsum_graph.yaml": einsum.to_dict(program),
        **_bounded(
            request, machine, program, bound(program, machine), {"program": canonical.digest(data)},
            "the program was given without its reference", (), (),
        ),
    }  # fmt: skip


def _require_listed(file: Path, data: bytes) -> None:
    """Where a manifest lies beside the file, the file is what it says."""
    beside = file.parent / MANIFEST
    if not beside.is_file():
        return
    listed = canonical.parse(read_text(beside).encode(), str(beside))
    entries = listed.get("files") if isinstance(listed, dict) and listed.get("schema") == MANIFEST_SCHEMA else None
    entry = entries.get(file.name) if isinstance(entries, dict) else None
    if entry is None or store.Descriptor.parse(entry, str(beside)) != store.Descriptor.of("einsum-graph", data):
        raise InputError(str(file), f"is not the file that {MANIFEST} beside it lists; move it elsewhere to analyse it")


def _line(request: Request, error: BaseException) -> str:
    from solar.errors import ModuleError, SolarError

    text = " ".join(str(error).split())
    if isinstance(error, (SolbenchError, ModuleError)):
        return text
    if isinstance(error, SolarError):
        return f"{request.name}{'/reference.py' if request.subject == 'problem' else ''}: {text}"
    return f"{request.name}: {type(error).__name__}{': ' + text[:300] if text else ''}"


def _exit_code(request: Request, error: BaseException) -> int:
    """2 where what was given is wrong or has an unknown operator, 3 where it cannot be decided."""
    from solar.errors import ConversionError, ExtractionError, GraphError, ModuleError

    given = (ModuleError, ExtractionError, ConversionError)
    if isinstance(error, given) or (isinstance(error, GraphError) and request.subject == "program"):
        return 2
    # Bytes that are not what a manifest says are input here, not a bundle that was to be judged.
    return 2 if isinstance(error, SolbenchError) and error.exit_code == 1 else getattr(error, "exit_code", 3)
