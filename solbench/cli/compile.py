"""``solbench compile``: what a candidate becomes on a card that is not here."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solbench.cli.seconds import Seconds
from solbench.errors import InputError, UnsupportedError

if TYPE_CHECKING:
    from solbench.corpus.load import Problem


@click.command()
@click.argument("solution", type=click.Path(path_type=Path))
@click.option(
    "--problem", metavar="PROBLEM",
    help="A key, its last part, or a folder.  [default: the folder that holds SOLUTION's, else by its definition]",
)  # fmt: skip
@click.option("--target", default="gfx1200", show_default=True, help="Architecture to compile for.")
@click.option("--workload", "uuids", multiple=True, metavar="ID", help="Only this workload; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object in place of the tables.")
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="DIR",
    help="Write records, kernels, code objects and assembly into this new folder, all or none.",
)  # fmt: skip
@click.option("--timeout", type=Seconds(), default=120.0, show_default=True, help="Seconds a workload.")
@click.option("--root", type=click.Path(path_type=Path), default=Path("problems"), show_default=True, help="Corpora.")
def compile(
    solution: Path, problem: str | None, target: str, uuids: tuple[str, ...], as_json: bool, output: Path | None,
    timeout: float, root: Path,
) -> int:  # fmt: skip
    """Compile SOLUTION for a target whose card need not be here, and show what its kernels became.

    SOLUTION is a solution.yaml, its folder, a .py that imports Triton, or a .hip. The host code of a Triton solution
    runs once for each workload, in the sandbox, on tensors without storage: every kernel is specialised exactly as
    that call would launch it, and compiled by the AMD compiler in Triton's own wheel. Of an autotuned kernel every
    configuration is compiled; which one is quickest, only the card can tell. HIP is compiled by the clang that is here.

    For each kernel: registers, LDS, spills, how many waves fit, which instructions it is made of, and findings that
    its author can act on, with the lines of the assembly that show them. Nothing of it ran on a card.

    \b
    Files in DIR:
      code.json          what --json prints: a record a workload, a kernel's evidence by its digest
      <digest>.hsaco     code objects
      <digest>.s         assembly

    Exit code: 0 everything compiled and would launch, 1 something does not, 2 bad input, 4 unknown target or language,
    or no compiler.
    """
    from solbench.cli import printable
    from solbench.cli.compile_table import lines
    from solbench.code.compiling import Limits
    from solbench.code.solutions import compile_solution
    from solbench.corpus.load import load_solution
    from solbench.workspace import new_folder, require_absent, write_file

    if output is not None:
        require_absent(output)
    found = _problem(solution, problem, root)
    candidate = load_solution(solution, found.definition)
    result = compile_solution(found, candidate, _choose(found, uuids), target, Limits(timeout_s=timeout))
    shown = {"schema": "solbench.compilation.v1", "code": result["code"], "kernels": result["kernels"]}
    if as_json:
        click.echo(json.dumps(shown, indent=2))
    else:
        for line in lines(found.key, result):
            click.echo(printable(line))
    if output is not None:
        with new_folder(output) as folder:
            write_file(folder / "code.json", (json.dumps(shown, indent=2) + "\n").encode())
            for name, data in _files(result):
                write_file(folder / name, data)
    return 0 if all(code["status"] == "COMPILED" for code in result["code"]) else 1


def _problem(solution: Path, named: str | None, root: Path) -> Problem:
    """The problem that is named, else the one whose folder holds the solution, else the one that it names itself."""
    from solbench.corpus.document import read_json, read_yaml
    from solbench.corpus.load import find_problems, load_corpus, load_problem

    if named is not None:
        (found,) = find_problems(root, [named])
        return found
    for folder in solution.resolve().parents:
        if (folder / "problem.yaml").is_file():
            return load_problem(folder)
    path = next(
        (p for p in (solution / "solution.yaml", solution / "solution.json", solution) if p.is_file()), solution
    )
    if path.suffix not in (".yaml", ".json"):
        raise InputError("--problem", f"which one does {solution} solve? it does not say")
    fields = read_yaml(path) if path.suffix == ".yaml" else read_json(path)
    name = fields.get("definition") if isinstance(fields, dict) else None
    matching = [problem for problem in load_corpus(root) if problem.definition.name == name]
    if len(matching) != 1:
        raise InputError("--problem", f"{path} names definition {name!r}, of which there are {len(matching)} in {root}")
    return matching[0]


def _choose(problem: Problem, uuids: tuple[str, ...]) -> list[Any]:
    known = {workload.uuid: workload for workload in problem.workloads}
    for uuid in uuids:
        if uuid not in known:
            raise InputError(f"--workload {uuid}", f"no such workload; {problem.key} has {', '.join(known)}")
    if not known:
        raise UnsupportedError(f"{problem.key} has no workloads of its own; generate them (`solbench corpus generate`)")
    return [known[uuid] for uuid in dict.fromkeys(uuids)] or list(known.values())


def _files(result: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    suffixes = {"code_object": "hsaco", "assembly": "s"}
    names = {kernel[field]["digest"].removeprefix("blake3:"): suffix
             for kernel in result["kernels"].values() for field, suffix in suffixes.items()}  # fmt: skip
    for digest, suffix in sorted(names.items()):
        yield f"{digest}.{suffix}", base64.b64decode(result["files"][digest])
