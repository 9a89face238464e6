"""``solbench verify``: check a bundle without trusting who made it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

_BYTES = click.IntRange(min=1)


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--expect-root", metavar="HASH", help="The root that it must have (blake3:...), from git or a friend.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
@click.option("--quiet", is_flag=True, help="Print nothing but what is wrong.")
@click.option("--max-files", type=click.IntRange(min=1), default=200_000, show_default=True, help="Members to read.")
@click.option("--max-manifest", type=_BYTES, default=8 << 20, show_default=True, help="Bytes of one JSON document.")
@click.option("--max-object", type=_BYTES, default=8 << 30, show_default=True, help="Bytes of one member.")
@click.option("--max-total", type=_BYTES, default=256 << 30, show_default=True, help="Bytes of all members.")
@click.option("--max-expansion", type=_BYTES, default=200, show_default=True, help="Times its size, if compressed.")
@click.option("--replay", is_flag=True, help="Run its references in the full sandbox: graphs, IRs, attestations again.")
@click.option("--replay-problem", multiple=True, metavar="NAME", help="Replay only this problem (repeatable): PARTIAL.")
@click.option("--max-replay-seconds", type=click.FloatRange(min=1), default=600, show_default=True, help="A problem.")
@click.option("--max-replay-memory", type=_BYTES, default=4 << 30, show_default=True, help="Bytes that a problem maps.")
def verify(
    bundle: Path,
    expect_root: str | None,
    as_json: bool,
    quiet: bool,
    max_files: int,
    max_manifest: int,
    max_object: int,
    max_total: int,
    max_expansion: int,
    replay: bool,
    replay_problem: tuple[str, ...],
    max_replay_seconds: float,
    max_replay_memory: int,
) -> int:
    """Check the BUNDLE (zip, tar, tar.gz or a directory): every byte, hash, reference, contract, score and bound.

    Needs no GPU and no PyTorch, writes nothing, and runs nothing of the bundle. Exit code: 0 verified, 1 proven bad,
    3 could not decide (unreadable, or beyond a limit), 4 unsupported version.

    --replay does run something: the references, which are somebody's code, in the full sandbox (bubblewrap and
    Landlock) or not at all. It needs PyTorch. docs/release.md says what it proves.
    """
    # "verify" is also the name of this command, so the module is imported whole.
    from solbench.release import verify as verification
    from solbench.release.findings import escape
    from solbench.release.source import Limits

    limits = Limits(max_files, max_manifest, max_object, max_total, max_expansion)
    lines = not as_json and not quiet
    if replay_problem and not replay:
        raise click.UsageError("--replay-problem needs --replay")
    progress = _progress if lines and sys.stderr.isatty() else _silent
    request = None
    if replay:
        from solbench.release.replay import Request

        request = Request(replay_problem, max_replay_seconds, max_replay_memory, progress)
    if lines and bundle.is_symlink():
        click.echo(f"{escape(str(bundle))} is a link to {escape(os.path.realpath(bundle))}")
    try:
        result = verification.verify(bundle, expect_root, limits, _print_level if lines else _ignore, replay=request)
    except (
        AssertionError,
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        RecursionError,
    ) as error:
        # A defect of the verifier must never read as "proven bad", let alone as "verified".
        click.echo(f"solbench: cannot decide, a defect of the verifier: {escape(repr(error))}", err=True)
        return 3
    if as_json:
        click.echo(json.dumps(result.as_dict(), indent=2, sort_keys=True))
        return result.exit_code
    for finding in result.errors:
        parts = [f"{finding.code}  {finding.path}"]
        parts += [f"expected {finding.expected}"] if finding.expected is not None else []
        parts += [f"found {finding.found}"] if finding.found is not None else []
        click.echo(": ".join([parts[0], ", ".join(parts[1:])]) if parts[1:] else parts[0])
    if result.more_errors:
        click.echo(f"... and {result.more_errors} more")
    if not quiet:
        replayed = "" if result.replay is None else f"; {result.replay.statement}"
        found = result.verdict, result.root, result.objects, result.bytes, result.matches_expected
        click.echo(_verdict(*found, replayed))
        click.echo("Hashes prove that nothing was changed since, not who made it.")
    return result.exit_code


def _ignore(level: object) -> None:
    return None


def _print_level(level: object) -> None:
    name, state, note = (getattr(level, field) for field in ("name", "state", "note"))
    click.echo(f"{name:<10}{'ok' if state == 'verified' else state:<13}{note}")


def _silent(done: int, total: int, problem: str) -> None:
    return None


def _progress(done: int, total: int, problem: str) -> None:
    """One line that is written over, on a terminal only; the last call wipes it."""
    from solbench.release.findings import escape

    shown = f"replay: {done} of {total} problems, {escape(problem)}"[:79] if done < total else ""
    click.echo(f"\r{shown:<79}" + ("" if shown else "\r"), nl=False, err=True)


def _verdict(verdict: str, root: str | None, objects: int, size: int, matches: bool | None, replayed: str) -> str:
    name = root or "no release"
    if verdict == "verified":
        statement = "matches the expected root" if matches else "self-consistent; no expected root given"
        return f"verified {name}: {objects} objects, {size} bytes ({statement}{replayed})"
    if verdict == "bad" and matches is False:
        return f"BAD {name}: not the expected root, or not what it says"
    words = {"bad": "BAD", "undecided": "CANNOT DECIDE", "unsupported": "UNSUPPORTED"}
    return f"{words[verdict]} {name}"
