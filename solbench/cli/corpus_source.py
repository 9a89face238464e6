"""``solbench corpus`` fetch-source, materialize, audit, equivalence: what a corpus is bound to, and a target's part."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import click

_root = click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path("problems"),
    help="Folder that holds the corpora.  [default: problems]",
)
_corpus = click.option("--corpus", "name", default="AMD_AKA", show_default=True, help="The corpus; it has a manifest.")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_folder = click.Path(path_type=Path, file_okay=False)


@click.command("fetch-source")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--repository", help="Another address of the same source.  [default: the manifest's]")
@_corpus
@_root
def fetch_source(folder: Path, repository: str | None, name: str, root: Path) -> None:
    """Clone the corpus's source with git, at the revision that its manifest pins, into FOLDER (a new one).

    Exit code: 0 fetched and bound, 2 bad input, 3 git or the network did not do it; then nothing is left behind.
    """
    from solbench.corpus import clone
    from solbench.corpus.manifest import load_manifested

    corpus = load_manifested(root, name)
    revision = clone.fetch_source(corpus, folder, repository)
    artifacts = sum(1 for _ in corpus.manifest.artifacts)
    click.echo(f"{folder}: {corpus.manifest.source.project} at {revision}, bound by {artifacts} artifacts")


@click.command()
@click.option("--target", required=True, help="A target of the corpus's manifest, such as gfx1200.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The folder to write; a new one.")
@click.option("--timeout", type=click.FloatRange(min=1), default=120.0, show_default=True, help="Seconds a workload.")
@click.option("--memory-gib", type=click.IntRange(min=1), default=4, show_default=True, help="Memory of a probe.")
@_corpus
@_root
@_json
def materialize(
    target: str, output: Path, timeout: float, memory_gib: int, name: str, root: Path, as_json: bool
) -> None:  # fmt: skip
    """Write the part of a corpus that a target can run, with the decision on every workload.

    \b
    A workload is out where
      unsupported_target_dtype      a tensor's dtype is not one of the target's
      target_memory                 its inputs and outputs do not fit into the target's memory
      probe_timeout, _out_of_memory, _failed
                                    a child process on this machine's processor could not draw its inputs, run its
                                    reference and pass its checks (at a reduced size where it is large: it says so)

    Exit code: 0 written, 2 bad input; then nothing is written.
    """
    from solbench.cli import printable
    from solbench.corpus.manifest import load_manifested
    from solbench.corpus.materialize import Probe
    from solbench.corpus.materialize import materialize as write

    corpus = load_manifested(root, name)
    decisions = write(corpus, target, output, Probe(timeout_s=timeout, memory_bytes=memory_gib << 30))
    included = [decision for decision in decisions if decision.included]
    if as_json:
        click.echo(
            json.dumps({"target": target, "decisions": [decision.as_dict() for decision in decisions]}, indent=2)
        )
        return
    for decision in decisions:
        if not decision.included:
            click.echo(printable(f"{decision.workload}: out: {decision.reason}: {decision.detail}"))
    problems = len({decision.problem for decision in included})
    click.echo(corpus.counts())
    click.echo(f"{output}: {problems} problems, {len(included)} of {len(decisions)} workloads for {target}")


@click.command()
@click.option("--source", type=_folder, help="A local clone of the corpus's source, to be bound to.")
@click.option("--materialized", type=_folder, help="What `materialize` wrote.")
@click.option("--pin", is_flag=True, help="First rewrite the manifest's digests of our files to what they are now.")
@_corpus
@_root
@_json
def audit(source: Path | None, materialized: Path | None, pin: bool, name: str, root: Path, as_json: bool) -> None:
    """Check a corpus against its manifest, and with it a clone of the source and a materialization, file by file.

    Exit code: 0 all as recorded, 1 the clone or the materialization is not, 2 the corpus or its manifest is not.
    """
    from solbench.cli import printable
    from solbench.corpus.audit import audit_materialization
    from solbench.corpus.clone import binding
    from solbench.corpus.manifest import differences, load_manifested, pinned
    from solbench.workspace import write_file

    corpus = load_manifested(root, name)
    if pin:
        write_file(corpus.folder / "manifest.yaml", pinned(corpus))
        corpus = load_manifested(root, name)
    found = {"corpus": differences(corpus)}
    if source is not None:
        found["source"] = binding(corpus, source)
    if materialized is not None:
        found["materialized"] = audit_materialization(corpus, materialized)
    if as_json:
        click.echo(json.dumps({"counts": corpus.counts(), "differences": found}, indent=2))
    else:
        good = {"corpus": "as its manifest says", "source": "bound", "materialized": "as its record says"}
        click.echo(f"{name}: {corpus.counts()}; {sum(1 for _ in corpus.manifest.artifacts)} artifacts")
        for part, lines in found.items():
            for line in lines:
                click.echo(printable(f"{part}: {line}"))
            click.echo(f"{part}: {f'{len(lines)} differences' if lines else good[part]}")
    if any(found.values()):
        click.get_current_context().exit(2 if found["corpus"] else 1)


@click.command()
@click.argument("problems", nargs=-1, metavar="[PROBLEM]...")
@click.option("--source", required=True, type=_folder, help="A local clone of the corpus's source.")
@_corpus
@_root
@_json
def equivalence(problems: tuple[str, ...], source: Path, name: str, root: Path, as_json: bool) -> None:
    """Compare references with the oracles of their tasks, which a confined child process runs (needs PyTorch).

    An oracle is a function module_fn of our inputs, or a class Model whose constructor, weights and forward take them.

    Exit code: 0 all agree, 1 one differs, 2 bad input, 3 none differs, but some could not be compared.
    """
    from solbench.cli import printable
    from solbench.corpus.equivalence import equivalence as compare
    from solbench.corpus.load import find_problems
    from solbench.corpus.manifest import load_manifested

    corpus = load_manifested(root, name)
    keys = {problem.key for problem in find_problems(root, problems)} if problems else None
    chosen = [problem for problem in corpus.problems if keys is None or problem.key in keys]
    verdicts = compare(corpus, source, chosen)
    counts = Counter(verdict.verdict for verdict in verdicts)
    if as_json:
        click.echo(json.dumps({"verdicts": [vars(verdict) for verdict in verdicts], "counts": counts}, indent=2))
    else:
        for verdict in verdicts:
            said = verdict.verdict.replace("_", " ") + (f": {verdict.detail}" if verdict.detail else "")
            click.echo(printable(f"{verdict.workload}: {said}"))
        click.echo(
            f"{len(chosen)} problems: {counts['agrees']} of {len(verdicts)} workloads agree, "
            f"{counts['differs']} differ, {counts['not_compared']} not compared"
        )
    if counts["differs"] or counts["not_compared"]:
        click.get_current_context().exit(1 if counts["differs"] else 3)
