"""Every leaf of every artifact of the sample release, changed by a forger who makes every hash above it anew.

What is derived must not pass, whatever it is changed to. What is nobody's derivation may: it is listed below, with why.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forging import Forger, packed

from solbench import canonical
from solbench.release.verify import Result, verify
from solbench.store import RAW_KINDS

Path_ = tuple[str | int, ...]

ALLOWED: dict[str, str] = {}


def leaves(value: Any, at: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every value of an artifact with its place, lists and mappings included."""
    yield at, value
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from leaves(entry, (*at, key))
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            yield from leaves(entry, (*at, position))


def pattern(kind: str, at: Path_) -> str:
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


def replaced(value: Any, at: Path_, new: Any) -> Any:
    if not at:
        return new
    result = copy.copy(value)
    result[at[0]] = replaced(value[at[0]], at[1:], new)
    return result


def mutations(value: Any, known: dict[str, list[Any]], kind: str) -> Iterator[tuple[str, bytes]]:
    """(place, bytes) of every mutation of an artifact: of each leaf others, and what stands there in other artifacts."""
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
