"""Two made-up releases of which it is known what differs: for the tests of the page Compare."""

from __future__ import annotations

from pathlib import Path

import pytest
import site_fixture
from site_fixture import Builder, build_store

PREDICATE = {"buildDefinition": {"buildType": "test"}, "runDetails": {"builder": {"id": "t"}}}
SOFTMAX = "AMD_AKA/torch2hip/l1n23_softmax"
# On cpu, T_k was 3.5 bounds and is 2.5, of a T_b of 6: S was 1 / (1 + 2.5 / 5) and is 1 / (1 + 1.5 / 5).
FASTER = f"{SOFTMAX}/aka-l1n23_softmax-w1@cpu/openmp"
# The older model of gfx1200 had twice the bandwidth.
WIDER = f"{SOFTMAX}/aka-l1n23_softmax-w1@gfx1200"
GONE = "<img src=x onerror=alert(1)>\u202e/gone"
MOVED = f"{SOFTMAX}/aka-l1n23_softmax-w0"


def build(root: Path) -> tuple[Builder, Builder]:
    """The stores ``old/store`` and ``new/store`` below ``root``; the older release is named ``earlier``.

    They differ in the score ``FASTER`` and its trace, in everything that rests on the model of gfx1200 (itself, 9
    bounds, 16 scores), in one operator graph that is gone, and in one that has another name.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(site_fixture.CASES, ("softmax", 1, "openmp"), ("scored", None, 6.0, 3.5))
        patch.setitem(site_fixture.MACHINES, "gfx1200", (6.4e11, 1.03e14))
        old = build_store(root / "old" / "store")
    graph = {"schema": "solar.operator-graph.v1", "path": "aten", "note": "gone"}
    old.put("graphs", GONE, "operator-graph", graph)
    old.indexes["graphs"]["<b>elsewhere</b>"] = old.indexes["graphs"].pop(MOVED)
    old.finish(name="earlier")
    return old, build_store(root / "new" / "store")
