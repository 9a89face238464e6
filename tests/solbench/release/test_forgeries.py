"""Every leaf of every artifact of the sample release, changed by a forger who makes every hash above it anew.

What is derived must not pass, whatever it is changed to. What is nobody's derivation may: it is listed below, with why.
"""

from __future__ import annotations

import copy
import hashlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forging import REFERENCE, Forger, packed

from solbench import canonical
from solbench.release.verify import Result, verify
from solbench.store import RAW_KINDS

Place = tuple[str | int, ...]

# Where another value may pass, and why: nothing in a bundle derives it. A place stands for all that is below it.
PROBLEM = "the problem itself: what is asked is nobody's derivation, and everything after it names its digest"
CANDIDATE = "the candidate itself"
REPLAY = "what stage 1 or 2 made of the reference; only `--replay` can repeat it, and the attestation names the IR"
MACHINE = "a figure of the machine model with its source; what follows from it is derived again"
LAUNCH = "what the compiler and the launch were seen to be; only `solbench compile` can repeat it"
MEASURED = "an observation of whoever measured; what follows from it is derived again"
EMULATED = "an observation of the emulator; only `solbench verdicts check` can repeat it"
READINESS = "a recorded run of the harness's own checks on that machine"
ALLOWED = {
    "definition": PROBLEM,
    "workload: workload.checks": PROBLEM,
    "workload: workload.inputs": PROBLEM,
    "solution": CANDIDATE,
    "operator-graph": REPLAY,
    "einsum-graph": REPLAY,
    "attestation": REPLAY,
    "hardware": MACHINE,
    "code: launches": LAUNCH,
    "code: library_calls": LAUNCH,
    "code: toolchain": LAUNCH,
    "kernel: launch": LAUNCH,
    "measurement-set": MEASURED,
    "trace: correctness.checks[].compared": MEASURED,
    "trace: correctness.checks[].mismatched": MEASURED,
    "trace: correctness.checks[].max_absolute_error": MEASURED,
    "trace: correctness.checks[].max_relative_error": MEASURED,
    "trace: correctness.checks[].has_nan": MEASURED,
    "trace: correctness.checks[].has_inf": MEASURED,
    "trace: correctness.rounds": MEASURED,
    "trace: log": MEASURED,
    "trace: reason": "the harness's own words; beside a failure the score repeats them",
    "trace: timing": MEASURED,
    "verdict: correctness": EMULATED,
    "verdict: emulation.instances": EMULATED,
    "verdict: log": EMULATED,
    "verdict: reason": EMULATED,
    "verdict: toolchain.tools": EMULATED,
    "verdict: toolchain.emulator": EMULATED,
    "readiness: items[].reason": READINESS,
    "readiness: place": READINESS,
    "release: name": "the name that it was given",
}
# The same, and not for what is below.
ITSELF = {
    "trace: correctness": "a failure may come before there is anything to compare, as a truth value never written",
    "verdict: emulation": "a failure may come before anything is run",
}
# Of these kinds every number is derived, so that it has but one value; the code that says so.
DERIVED = {
    "score": {"score-mismatch"},
    "entry": {"score-mismatch", "count-mismatch"},
    "bound": {"bound-mismatch"},
    "kernel": {"evidence-mismatch"},
    "release": {"count-mismatch"},
}


def may_pass(where: str) -> bool:
    """Whether a place is, or is below, one of :data:`ALLOWED`."""
    return where in ITSELF or any(below(where, one) for one in ALLOWED)


def below(where: str, one: str) -> bool:
    return where == one or where.startswith((f"{one}: ", f"{one}.", f"{one}["))


def leaves(value: Any, at: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every value of an artifact with its place, lists and mappings included."""
    yield at, value
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from leaves(entry, (*at, key))
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            yield from leaves(entry, (*at, position))


def pattern(kind: str, at: Place) -> str:
    """A place without its numbers: ``trace: timing.candidate[].event_s[]``."""
    text = "".join("[]" if isinstance(part, int) else f".{part}" for part in at).removeprefix(".")
    return f"{kind}: {text}"


def others(value: Any) -> Iterator[Any]:
    """Values that stand for what a forger would write in the place of this one."""
    if isinstance(value, bool):
        yield not value
        yield int(value)
        yield None
    elif isinstance(value, (int, float)):
        yield from (value + 1, value * 2 + 1, value / 2, -value, 0, None, str(value))
        yield math.nextafter(value, math.inf)
    elif isinstance(value, str):
        if re.search(r"[0-9a-f]{64}", value):
            yield re.sub(r"[0-9a-f]{64}", lambda m: ("0" if m[0][0] != "0" else "1") + m[0][1:], value)
            return
        yield from (value + "x", value[:-1], "", None, value.swapcase(), "other")
    elif value is None:
        yield from (0, "other", 1.5, [], {})
    elif isinstance(value, list):
        yield from ([], [*value, *value[-1:]], value[:-1], value[::-1], None)
    elif isinstance(value, dict):
        yield from ({**value, "more": 1}, {}, None)
        for key in value:
            yield {name: entry for name, entry in value.items() if name != key}


def replaced(value: Any, at: Place, new: Any) -> Any:
    if not at:
        return new
    result = copy.copy(value)
    result[at[0]] = replaced(value[at[0]], at[1:], new)
    return result


def mutations(value: Any, known: dict[str, list[Any]], kind: str) -> Iterator[tuple[str, bytes]]:
    """(place, bytes) of every mutation of an artifact: of each leaf others, and what stands there in other ones."""
    original = canonical.dumps(value)
    for at, leaf in leaves(value):
        where = pattern(kind, at)
        seen = {original}
        for new in [*others(leaf), *known.get(where, ())]:
            try:
                data = canonical.dumps(replaced(value, at, new))
            except canonical.IntegrityError:
                continue
            if data not in seen:
                seen.add(data)
                yield where, data


def known_values(forger: Forger) -> dict[str, list[Any]]:
    """What stands at each place over all artifacts, a few of each."""
    known: dict[str, list[Any]] = {}
    for digest, kind in forger.kinds.items():
        if kind in RAW_KINDS or kind == "section":
            continue
        for at, leaf in leaves(canonical.loads(forger.objects[digest])):
            if at and not isinstance(leaf, (dict, list)):
                values = known.setdefault(pattern(kind, at), [])
                if leaf not in values and len(values) < 4:
                    values.append(leaf)
    return known


def check(path: Path, forger: Forger, digest: str, data: bytes) -> Result:
    path.write_bytes(packed(forger.forged(digest, data)))
    return verify(path)


@pytest.fixture(scope="module")
def forger(sample: Path) -> Forger:
    return Forger.of(sample / "sample")


def test_nothing_changed_is_verified(forger: Forger, tmp_path: Path) -> None:
    """The forger's tool itself makes no bundle bad."""
    assert check(tmp_path / "x.zip", forger, forger.root, forger.objects[forger.root]).exit_code == 0


def every_mutation(forger: Forger) -> Iterator[tuple[str, str, bytes]]:
    """(digest, place, bytes) over all artifacts."""
    known = known_values(forger)
    for digest, kind in sorted(forger.kinds.items(), key=lambda item: (item[1], item[0])):
        if kind not in RAW_KINDS:
            for where, data in mutations(canonical.loads(forger.objects[digest]), known, kind):
                yield digest, where, data


def run(path: Path, forger: Forger, part: int) -> tuple[int, dict[str, int], list[str]]:
    """Every ``part``-th mutation: how many were tried, how many passed by place, and what should not have happened."""
    tried, passed, wrong = 0, {}, []
    for digest, where, data in every_mutation(forger):
        # Which of them depends on what they are, not on their order.
        if int.from_bytes(hashlib.sha256(data).digest()[:4], "big") % part:
            continue
        tried += 1
        code = check(path, forger, digest, data).exit_code
        if code == 0:
            passed[where] = passed.get(where, 0) + 1
            if not may_pass(where):
                wrong.append(f"{where} of {forger.names.get(digest)} passed: {data[:300]!r}")
        elif code not in (1, 3, 4):
            wrong.append(f"{where}: exit {code}")
    return tried, passed, wrong


def test_a_part_of_the_forgeries(forger: Forger, tmp_path: Path) -> None:
    tried, _, wrong = run(tmp_path / "x.zip", forger, 149)
    assert wrong == []
    assert tried > 80


@pytest.mark.slow
def test_every_forgery(forger: Forger, tmp_path: Path) -> None:
    """Ten thousand and more; and every place that is said to be open is."""
    tried, passed, wrong = run(tmp_path / "x.zip", forger, 1)
    assert wrong == []
    assert tried > 10_000
    assert [one for one in ALLOWED if not any(below(where, one) for where in passed)] == []


def numbers(forger: Forger, kind: str) -> Iterator[tuple[str, str, bytes]]:
    """(digest, place, bytes) for each number of the artifacts of a kind, the next one in its place."""
    for digest in sorted(digest for digest, one in forger.kinds.items() if one == kind):
        value = canonical.loads(forger.objects[digest])
        references = {at for at, leaf in leaves(value) if isinstance(leaf, dict) and leaf.keys() == REFERENCE}
        for at, leaf in leaves(value):
            if isinstance(leaf, bool) or not isinstance(leaf, (int, float)) or at[:-1] in references:
                continue
            if kind == "kernel" and at[0] != "evidence":
                continue
            new = leaf + 1 if isinstance(leaf, int) else math.nextafter(leaf, 0.0)
            yield digest, pattern(kind, at), canonical.dumps(replaced(value, at, new))


@pytest.mark.parametrize("kind", sorted(DERIVED))
def test_the_next_number_in_the_place_of_each_derived_one(forger: Forger, tmp_path: Path, kind: str) -> None:
    tried = 0
    for digest, where, data in numbers(forger, kind):
        result = check(tmp_path / "x.zip", forger, digest, data)
        codes = {error.code for error in result.errors}
        assert result.exit_code == 1, where
        assert codes & (DERIVED[kind] | {"schema"}), (where, codes)
        tried += 1
    assert tried >= 5
