"""Time and size of the site: `python benchmarks/site.py [--store STORE] [--workloads N] [--repeat N] [--json]`.

The published release's records are copied, under other problem keys, until there are 1,000 workloads, each with a bound
on three targets (a target that has none gets another's); times, scores, code, verdicts, graphs and IR come along. What
is made is a store for the renderer, not a release that verifies. It lies in a temporary folder, gone at the end.

Printed are medians over the repetitions, in seconds, of the whole command in a process of its own:

- `all`: nothing kept from before. The target is 10 s on two processors.
- `same`: again, nothing changed, with the pages kept from before.
- `one`: after one definition was changed; everything else is kept. The target is 2 s.

and the size of the first page with what it needs (style sheet, script), gzip -9; the target is 300 KiB.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from solbench import canonical, store
from solbench.model.release import Release, Section
from solbench.store import Descriptor, Index, Store

TARGETS = ("cpu", "gfx1200", "sm_90")
STAGES = ("corpus", "workloads", "graphs", "einsums", "code", "verdicts", "bounds", "timings", "scores")
TEMPLATES = Path(__file__).resolve().parents[1] / "site_templates"
ALL_S, ONE_S, FIRST_PAGE_BYTES = 10.0, 2.0, 300 << 10
CHILD = """
import sys
from solbench.cli import run
sys.exit(run(sys.argv[1:]))
"""


class Copies:
    """A store of the published records and copies of them, with ``workloads`` workloads on every target."""

    def __init__(self, source: Path, root: Path, workloads: int) -> None:
        self.source, self.root = Store(source), root
        self.stages: dict[str, Index] = {stage: self.source.index(stage) for stage in STAGES}
        self.made: dict[str, Index] = {stage: {} for stage in STAGES}
        self.traces = {entry.digest: name for name, entry in self.stages["timings"].items()}
        self.wanted = workloads
        self.release = self.source.load("release", self.source.index("release")["release"])
        for target in TARGETS:
            self._take("bounds", f"hardware/{target}")
        self.bandwidths = {target: self._bandwidth(target) for target in TARGETS}
        for stage, kinds in (("code", ("kernel", "code-object", "assembly")), ("timings", ("measurement-set",))):
            for name, entry in self.stages[stage].items():
                if entry.kind in kinds:
                    self._take(stage, name)
        for name, entry in self.stages["scores"].items():
            if entry.kind == "entry":
                self._take("scores", name)
        definitions = [name for name, entry in self.stages["corpus"].items() if entry.kind == "definition"]
        turn = 0
        while self._count() < workloads:
            for key in definitions:
                if self._count() < workloads:
                    self._problem(key, key if not turn else f"{key}-{turn}")
            turn += 1

    def _bandwidth(self, target: str) -> float:
        """Of the target's memory in bytes/s, as its own bounds state it."""
        bounds = (self.load("bounds", name) for name in self.stages["bounds"] if name.endswith(f"@{target}"))
        return float(next(b["result"]["memory"]["bandwidth_bytes_per_s"] for b in bounds if b["result"] is not None))

    def _count(self) -> int:
        return len(self.made["workloads"])

    def _take(self, stage: str, name: str) -> None:
        entry = self.stages[stage][name]
        target = self.root / stage / "objects" / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.source.root / stage / "objects" / entry.path, target)
        self.made[stage][name] = entry

    def put(self, stage: str, name: str, value: Mapping[str, Any]) -> Descriptor:
        fields = {field: entry for field, entry in value.items() if field != "kind"}
        found = store.put_json(self.root / stage / "objects", value["kind"], fields)
        self.made[stage][name] = found
        return found

    def load(self, stage: str, name: str) -> dict[str, Any]:
        return self.source.load(stage, self.stages[stage][name])

    def _problem(self, key: str, copy: str) -> None:
        for name in self.stages["corpus"]:
            if name == key or name.startswith(f"{key}/"):
                self.put("corpus", copy + name.removeprefix(key), self.load("corpus", name))
        for name in [name for name in self.stages["workloads"] if name.rpartition("/")[0] == key]:
            if self._count() < self.wanted:
                self._workload(name, copy + name.removeprefix(key), copy)

    def _workload(self, name: str, copy: str, problem: str) -> None:
        self.put("workloads", copy, {**self.load("workloads", name), "problem": problem})
        for stage in ("graphs", "einsums"):
            for found in (name, f"{name}/graph", f"{name}/attestation"):
                if found in self.stages[stage]:
                    self.put(stage, copy + found.removeprefix(name), self.load(stage, found))
        bounds = [found for found in self.stages["bounds"] if found.startswith(f"{name}@")]
        for target in TARGETS if bounds else ():
            own = f"{name}@{target}"
            bound = self.load("bounds", own if own in bounds else bounds[0])
            if own not in bounds and bound["result"] is not None:
                # The renderer refuses two memories under one roofline.
                bound["result"]["memory"]["bandwidth_bytes_per_s"] = self.bandwidths[target]
            self.put("bounds", f"{copy}@{target}", {**bound, "target": target, "problem": problem})
        for found in self.stages["scores"]:
            if not found.startswith(tuple(f"{name}@{target}/" for target in TARGETS)):
                continue
            score = self.load("scores", found)
            if score["trace"] is not None:
                # One of its own: the renderer refuses a trace that no score refers to.
                trace = self.load("timings", self.traces[score["trace"]["digest"]])
                made = self.put("timings", f"cpu/copy-{copy}{found.removeprefix(name)}", trace)
                score["trace"] = made.as_dict()
            self.put("scores", copy + found.removeprefix(name), score)
        if copy == name:
            for stage in ("code", "verdicts"):
                for found in [n for n in self.stages[stage] if n.startswith(f"{name}/")]:
                    self._take(stage, found)

    def finish(self) -> str:
        """Write indexes, sections and the release; returns its digest."""
        objects = self.root / "release" / "objects"
        index: Index = {}
        sections: dict[str, Any] = {}
        for stage, entries in self.made.items():
            (self.root / f"{stage}.json").write_bytes(store.index_bytes(entries))
            fields = {"stage": stage, "entries": {name: entry.as_dict() for name, entry in entries.items()}}
            section = Section.load(fields, stage)
            index[f"sections/{stage}"] = store.put_json(objects, "section", section.as_dict())
            sections[stage] = index[f"sections/{stage}"].as_dict()
        states = {state["target"]: state for state in self.release["targets"]}
        targets = []
        for target in TARGETS:
            names = [name for name in self.made["bounds"] if name.endswith(f"@{target}")]
            bounds = sum(self._bounded(name) for name in names)
            targets.append({**states[target], "bounds": bounds, "workloads": self._count()})
        value = {name: entry for name, entry in self.release.items() if name != "kind"}
        problems = sum(entry.kind == "definition" for entry in self.made["corpus"].values())
        value |= {"targets": targets, "sections": sections, "problems": problems, "workloads": self._count()}
        index["release"] = store.put_json(objects, "release", Release.load(value, "release").as_dict())
        (self.root / "release.json").write_bytes(store.index_bytes(index))
        return index["release"].digest

    def _bounded(self, name: str) -> bool:
        entry = self.made["bounds"][name]
        value = canonical.loads_again((self.root / "bounds" / "objects" / entry.path).read_bytes())
        return value["result"] is not None

    def change_one(self, turn: int) -> None:
        key = next(name for name, entry in self.made["corpus"].items() if entry.kind == "definition")
        self.put("corpus", key, {**self.load("corpus", key), "description": f"Changed, turn {turn}."})
        self.finish()


def timed(root: Path, *arguments: str) -> float:
    """Seconds of the command, run where no pages are kept but where it is told."""
    command = [sys.executable, "-c", CHILD, "site", "--templates", str(TEMPLATES), *arguments]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=root)
    return time.perf_counter() - start


def repeated(times: int, run: Callable[[int], float]) -> float:
    return statistics.median(run(turn) for turn in range(times))


def first_page_bytes(site: Path) -> int:
    names = ("index.html", "assets/site.css", "assets/site.js", "assets/icon.svg")
    return sum(len(gzip.compress((site / name).read_bytes(), 9)) for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("store"))
    parser.add_argument("--workloads", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copies = Copies(options.store, root / "store", options.workloads)
        copies.finish()
        base = ["--store", str(root / "store"), "--output", str(root / "site"), "--objects", "../store/{stage}/objects"]
        kept = [*base, "--memo", str(root / "memo")]
        found: dict[str, Any] = {"all_s": repeated(options.repeat, lambda turn: timed(root, *base))}
        found["first_with_memo_s"] = timed(root, *kept)
        found["same_s"] = repeated(options.repeat, lambda turn: timed(root, *kept))

        def changed(turn: int) -> float:
            copies.change_one(turn)
            return timed(root, *kept)

        found["one_s"] = repeated(options.repeat, changed)
        pages = sorted((root / "site").rglob("*.html"))
        found |= {
            "workloads": copies._count(),
            "bounds": sum(entry.kind == "bound" for entry in copies.made["bounds"].values()),
            "pages": len(pages),
            "files": sum(path.is_file() for path in (root / "site").rglob("*")),
            "bytes": sum(path.stat().st_size for path in (root / "site").rglob("*") if path.is_file()),
            "first_page_gzip_bytes": first_page_bytes(root / "site"),
        }
    held = [found["all_s"] <= ALL_S, found["one_s"] <= ONE_S, found["first_page_gzip_bytes"] <= FIRST_PAGE_BYTES]
    found["targets_held"] = [sum(held), len(held)]
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:24} {value:.3g}" if isinstance(value, float) else f"{name:24} {value}")


if __name__ == "__main__":
    main()
