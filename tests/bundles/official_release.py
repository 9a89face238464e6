"""The sample release with all that an official score of its target ``cpu`` needs, but for the pins of its corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import sample_release

from solbench import store as stores
from solbench.corpus.load import eager_solution
from solbench.model.definition import Definition
from solbench.model.trace import Observed
from solbench.release import pins
from solbench.store import Store

ISOLATION = ["mount namespace", "network namespace", "landlock abi 7", "rlimits"]
LOOK = {"before": {"cpu_hz": 3.0e9}, "after": {"cpu_hz": 3.02e9}}
Change = Callable[[dict[str, Any]], dict[str, Any]]


def build_store(root: Path) -> Store:
    """Every workload is measured, or fails; the baseline is the reference; clocks were read."""
    store = sample_release.build_store(root)
    for key in sample_release.SIZES:
        definition = Definition.load(body(store.load("corpus", store.index("corpus")[key])), key)
        replace(store, "corpus", f"{key}/solutions/eager", "solution", eager_solution(definition).as_dict())
    isolated = {**sample_release.header().protocol.as_dict(), "isolation": ISOLATION}
    change(store, "timings", "cpu/full/header", lambda value: {**value, "protocol": isolated})
    instances, solutions, bounds = (store.index(stage) for stage in ("workloads", "corpus", "bounds"))
    for key, sizes in sample_release.SIZES.items():
        for uuid in sizes:
            t_sol_s = store.load("bounds", bounds[f"{key}/{uuid}@cpu"])["result"]["t_sol_s"]
            digests = instances[f"{key}/{uuid}"].digest, solutions[f"{key}/solutions/eager"].digest
            trace = sample_release.trace(key, uuid, "eager", digests, sample_release.BASELINE, t_sol_s)
            replace(store, "timings", f"cpu/full/{key}/{uuid}/eager", "trace", observed(trace.as_dict()))
    change(store, "timings", "cpu/full/DEMO/unit/scale/w1/fast", observed)
    sample_release.finish_store(root)
    return store


def observed(trace: dict[str, Any], look: Mapping[str, Any] = LOOK, side: str | None = None) -> dict[str, Any]:
    """A trace whose samples, of both sides or of one, have clocks beside them."""
    timing = dict(trace["timing"])
    told = Observed.load(look, "observed").as_dict()
    for name in ("candidate", "baseline"):
        if side in (None, name):
            timing[name] = [{**samples, "observed": told} for samples in timing[name]]
    return {**trace, "timing": timing}


def pin(store: Store) -> dict[tuple[str, str], str]:
    """Pins under which the store's corpora are the pinned ones."""
    sections = {stage: store.index(stage) for stage in ("corpus", "workloads", "bounds")}
    return {
        (corpus, target): digest
        for target in ("cpu", "gfx1200")
        for corpus, digest in pins.corpus_digests(sections, store.load, target).items()
    }


def change(store: Store, stage: str, name: str, new: Change) -> None:
    """Replace one artifact of a stage and its entry in the index; what is derived from it is not made anew."""
    entry = store.index(stage)[name]
    replace(store, stage, name, entry.kind, new(body(store.load(stage, entry))))


def replace(store: Store, stage: str, name: str, kind: str, value: Mapping[str, Any]) -> None:
    index = store.index(stage)
    old = index[name]
    index[name] = stores.put_json(store.root / stage / "objects", kind, value)
    if old not in index.values():
        (store.root / stage / "objects" / old.path).unlink()
    (store.root / f"{stage}.json").write_bytes(stores.index_bytes(index))


def body(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in value.items() if name != "kind"}
