"""Time and memory of `solbench verify`: `python benchmarks/verify.py [--published BUNDLE] [--repeat N] [--json]`.

Bundles are made in a temporary folder (about 3 GiB, gone at the end) and verified in a process of its own each time,
with the page cache warm. Printed are medians over the repetitions: seconds of the whole command, of the call without
the interpreter's start and imports, of the processor, and the peak memory; then how many of the targets held.

- `large`: 1 GiB in 16 raw objects of 64 MiB, as a directory and as an archive. Beside it, in the same minutes, two
  threads over the same bytes, one with BLAKE3 and one with SHA-256; the target is 60 % of their throughput.
- `small`: 10,000 objects of a kilobyte or so: 200 problems with a solution each, 2,400 workloads without a graph, each
  with a bound that says why there is none, a score, and a record (one in four a trace with samples, else an omission).
  The target is 1.5 s for the whole command, all levels.
- `bounds`: 1,000 workloads of one elementwise operation each with graph, IR, attestation and one bound derived again.
- `graphs`: 400 MiB of operator graphs of 2 MiB each, most of it known contents.
- `document`: one operator graph of nearly the largest size that is parsed by default.
- `published`: the bundle that `--published` names, as `solbench bundle` writes it.

The target for memory is 300 MB in every case, for the largest of the processes (many bounds are derived in several).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from blake3 import blake3

import solar.bound
from solar import einsum, graph, hardware
from solbench import store
from solbench.model.definition import Definition
from solbench.model.solution import Solution
from solbench.model.trace import Omission, SetHeader, Trace
from solbench.model.workload import Workload
from solbench.release import bundle, readiness, schemas
from solbench.release.root import STAGES, describe, section_object
from solbench.release.source import Limits
from solbench.score.release import score_sections
from solbench.store import Descriptor

TARGET = "cpu"
PREDICATE = {"buildDefinition": {"buildType": "benchmark"}, "runDetails": {"builder": {"id": "benchmark"}}}
MEMORY_BYTES = 300_000_000
SMALL_S = 1.5
SHARE = 0.6
PIECE = 1 << 20
FLOOR_S = 2e-5
SOURCE = "def run(x):\n    return x * 2\n"

# What a child process prints of itself; VmHWM is the peak of its own memory, where ru_maxrss may be its parent's.
CHILD = """
import gc, json, resource, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[3])
if sys.argv[1] == "verify":
    from solbench.release.verify import verify
else:
    from benchmarks.verify import hash_twice
start = time.perf_counter()
if sys.argv[1] == "verify":
    result = verify(Path(sys.argv[2]))
    assert result.exit_code == 0, result.errors[:3]
else:
    hash_twice(Path(sys.argv[2]))
call = time.perf_counter() - start
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
peak = 0
try:
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            peak = int(line.split()[1]) * 1024
except OSError:
    peak = used[0].ru_maxrss * 1024
peak = max(peak, used[1].ru_maxrss * 1024)
print(json.dumps({"call": call, "cpu": sum(u.ru_utime + u.ru_stime for u in used), "peak": peak}))
gc.freeze()  # as the command ends
"""


class Bench:
    """A store that is written quickly: no fsync, and every artifact's reference at hand."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sections: dict[str, dict[str, Descriptor]] = {stage: {} for stage in (*STAGES, "release")}

    def put(self, stage: str, name: str, kind: str, value: Mapping[str, Any]) -> Descriptor:
        return self.put_bytes(stage, name, kind, store.encode(kind, value))

    def put_bytes(self, stage: str, name: str, kind: str, data: bytes) -> Descriptor:
        descriptor = Descriptor.of(kind, data)
        path = self.root / stage / "objects" / descriptor.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.sections[stage][name or f"{kind}/{descriptor.digest.removeprefix('blake3:')}"] = descriptor
        return descriptor

    def finish(self) -> None:
        """Scores, sections, the release and the indexes."""
        load = store.Store(self.root).load
        for name, kind, value in score_sections(self.sections, load):
            self.put("scores", name, kind, value)
        static = readiness.static(self.sections, load, TARGET)
        if static is not None:
            self.put("readiness", f"{TARGET}/static", "readiness", static.as_dict())
        references = {
            stage: self.put("release", f"sections/{stage}", "section", section_object(stage, self.sections[stage]))
            for stage in STAGES
        }
        stages = {stage: self.sections[stage] for stage in STAGES}
        self.put("release", "release", "release", describe("benchmark", stages, load, references).as_dict())
        for stage, index in self.sections.items():
            (self.root / f"{stage}.json").write_bytes(store.index_bytes(index))

    # -- artifacts

    def problem(self, key: str) -> tuple[Descriptor, Descriptor]:
        """A definition and its eager solution."""
        name = key.rpartition("/")[2]
        tensor = {"shape": ["n"], "dtype": "float32"}
        definition = {
            "name": name, "op_type": "elementwise", "axes": {"n": {"type": "var"}}, "inputs": {"x": tensor},
            "outputs": {"y": tensor}, "reference": SOURCE,
        }  # fmt: skip
        solution = {
            "name": "eager", "definition": name, "author": "benchmark",
            "spec": {"languages": ["pytorch"], "entry_point": "main.py::run"},
            "sources": [{"path": "main.py", "content": SOURCE}],
        }  # fmt: skip
        return (
            self.put("corpus", key, "definition", Definition.load(definition, key).as_dict()),
            self.put("corpus", f"{key}/solutions/eager", "solution", Solution.load(solution, key).as_dict()),
        )

    def workload(self, key: str, uuid: str, definition: Descriptor, n: int) -> Descriptor:
        fields = {
            "uuid": uuid, "axes": {"n": n}, "inputs": {"x": {"type": "normal"}},
            "checks": [{"type": "numeric", "output": "y", "atol": 1e-6, "rtol": 1e-6}],
        }  # fmt: skip
        value = {
            "schema": "solbench.workload-instance.v1", "problem": key, "definition": definition.as_dict(),
            "workload": Workload.load(fields, uuid).as_dict(), "axes": {"n": n},
        }  # fmt: skip
        return self.put("workloads", f"{key}/{uuid}", "workload", value)

    def machine(self) -> Descriptor:
        value = {**hardware.load("gfx1200").to_dict(), "name": TARGET}
        return self.put("bounds", f"hardware/{TARGET}", "hardware", value)

    def bound(self, key: str, uuid: str, instance: Descriptor, machine: Descriptor, **found: Any) -> Descriptor:
        value = {
            "schema": "solbench.bound.v1", "problem": key, "workload": uuid, "target": TARGET,
            "instance": instance.as_dict(), "graph": None, "hardware": machine.as_dict(), "attestation": None,
            "rejected_formats": [], "result": None, "reason": None, **found,
        }  # fmt: skip
        return self.put("bounds", f"{key}/{uuid}@{TARGET}", "bound", value)

    def header(self) -> None:
        fields = {
            "target": TARGET,
            "protocol": {"name": "full", "processes": 6, "samples": 6, "max_call_s": 0.25, "isolation": ["rlimits"]},
            "harness": "blake3:" + "1" * 64,
            "environment": {"torch": "2.13.0"},
            "device": {"name": "Example CPU", "cores": 2},
            "floor_s": FLOOR_S,
            "clocks": "unlocked",
        }
        self.put("timings", f"{TARGET}/full/header", "measurement-set", SetHeader.load(fields, "header").as_dict())

    def record(self, key: str, uuid: str, digests: tuple[str, str], draw: random.Random | None) -> None:
        """A trace of six processes with times from ``draw``, or an omission."""
        fields: dict[str, Any] = {
            "definition": key.rpartition("/")[2], "workload": uuid, "workload_digest": digests[0], "solution": "eager",
        }  # fmt: skip
        name = f"{TARGET}/full/{key}/{uuid}/eager"
        if draw is None:
            record = Omission.load({**fields, "reason": "over the budget of this machine"}, name).as_dict()
            self.put("timings", name, "omission", {"schema": "solbench.omission.v1", **record})
            return
        sides = []
        for _ in range(2):
            times = [[draw.uniform(1e-3, 1.02e-3) for _ in range(6)] for _ in range(6)]
            sides.append(
                [
                    {"process": i, "warmups": 3, "event_s": row, "clock_s": [1.01 * time for time in row]}
                    for i, row in enumerate(times)
                ]
            )
        check = {"output": "y", "type": "numeric", "passed": True, "compared": 8, "mismatched": 0}
        timing = {"method": "cpu_clock", "flush_bytes": 1 << 26, "stop_reason": "count reached"}
        fields |= {
            "solution_digest": digests[1], "target": TARGET, "status": "PASSED", "reason": None,
            "correctness": {"rounds": 6, "checks": [check]},
            "timing": {**timing, "candidate": sides[0], "baseline": sides[1]},
        }  # fmt: skip
        self.put("timings", name, "trace", Trace.load(fields, name).as_dict())


def operator_graph(n: int, values: tuple[int, ...] | None = None) -> dict[str, Any]:
    """x * 2; with ``values`` known contents of a second input."""
    tensor: dict[str, Any] = {"shape": (n,), "dtype": "float32", "strides": (1,)}
    tensors = {"x": graph.Tensor(**tensor, storage=0), "y": graph.Tensor(**tensor, storage=1)}
    inputs: tuple[tuple[str, str], ...] = (("x", "x"),)
    if values is not None:
        tensors["known"] = graph.Tensor((len(values),), "int64", (1,), 2, 0, values)
        inputs += (("known", "known"),)
    node = graph.Node("mul", "aten.mul.Tensor", {"self": graph.Ref("x"), "other": 2}, ("y",))
    return graph.to_dict(graph.OperatorGraph("aten", tensors, inputs, (("y", "y"),), (node,)))


def program(n: int) -> dict[str, Any]:
    tensor = einsum.Tensor((n,), "float32")
    mul = einsum.Op("mul", "map", "mul", ("x",), ("y",), {"scalars": {"1": 2}})
    return einsum.to_dict(einsum.Program("aten", {"x": tensor, "y": tensor}, (("x", "x"),), (("y", "y"),), (mul,)))


NO_GRAPH = {"schema": "solbench.no-graph.v1", "reason": "the benchmark has none"}


def large(one: Bench, count: int = 16, size: int = 64 << 20) -> None:
    """Few workloads, and ``count`` raw objects of ``size`` bytes; the files are written piece by piece."""
    small(one, problems=1, workloads=2)
    for number in range(count):
        block = random.Random(number).randbytes(PIECE)
        b3 = blake3()
        path = one.root / "code" / "objects" / f"new{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for position in range(size // PIECE):
                piece = position.to_bytes(8, "big") + block[8:]
                b3.update(piece)
                file.write(piece)
        descriptor = Descriptor("code-object", f"blake3:{b3.hexdigest()}", size)
        final = one.root / "code" / "objects" / descriptor.path
        final.parent.mkdir(exist_ok=True)
        path.rename(final)
        one.sections["code"][f"code-object/{b3.hexdigest()}"] = descriptor


def small(one: Bench, problems: int = 200, workloads: int = 12) -> None:
    """Definitions, solutions, workloads, bounds that say why they are none, and records; ``workloads`` a problem."""
    one.header()
    machine = one.machine()
    draw = random.Random(7)
    for number in range(problems):
        key = f"BENCH/unit/p{number:03}"
        definition, solution = one.problem(key)
        for position in range(workloads):
            uuid = f"w{position}"
            instance = one.workload(key, uuid, definition, 1024 + number * workloads + position)
            one.put("graphs", f"{key}/{uuid}", "no-graph", NO_GRAPH)
            one.bound(key, uuid, instance, machine, reason=NO_GRAPH["reason"])
            one.record(key, uuid, (instance.digest, solution.digest), draw if position % 4 == 0 else None)


def bounds(one: Bench, problems: int = 50, workloads: int = 20) -> None:
    """Workloads with graph, IR, attestation and a bound derived from them."""
    one.header()
    machine = one.machine()
    model = schemas.machine({**hardware.load("gfx1200").to_dict(), "name": TARGET})
    for number in range(problems):
        key = f"BENCH/unit/p{number:03}"
        definition, solution = one.problem(key)
        for position in range(workloads):
            uuid, n = f"w{position}", 4096 * (1 + number * workloads + position)
            instance = one.workload(key, uuid, definition, n)
            one.put("graphs", f"{key}/{uuid}", "operator-graph", operator_graph(n))
            ir = one.put("einsums", f"{key}/{uuid}/graph", "einsum-graph", program(n))
            attested = one.put("einsums", f"{key}/{uuid}/attestation", "attestation", attestation(definition, ir))
            result = solar.bound.bound(einsum.from_dict(program(n)), model)
            found = {"graph": ir.as_dict(), "attestation": attested.as_dict(), "result": dict(result)}
            one.bound(key, uuid, instance, machine, **found)
            one.record(key, uuid, (instance.digest, solution.digest), None)


def attestation(definition: Descriptor, ir: Descriptor) -> dict[str, Any]:
    subjects = {"definition": definition.digest, "einsum-graph": ir.digest}
    return {
        "schema": "solar.attestation.v1",
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": k, "digest": {"blake3": v.removeprefix("blake3:")}} for k, v in subjects.items()],
        "predicateType": "https://example.org/replay/v1",
        "predicate": {"verdict": "passed", "seeds": [1, 2], "sizes": "small"},
    }


def graphs(one: Bench, count: int = 200, size: int = 2 << 20) -> None:
    """Workloads whose operator graphs take ``size`` bytes each, in known contents of five digits."""
    one.header()
    machine = one.machine()
    key = "BENCH/unit/p000"
    definition, solution = one.problem(key)
    for number in range(count):
        uuid = f"w{number}"
        draw = random.Random(number)
        values = tuple(draw.randrange(10_000, 100_000) for _ in range((size - 1024) // 6))
        instance = one.workload(key, uuid, definition, 1024 + number)
        one.put("graphs", f"{key}/{uuid}", "operator-graph", operator_graph(1024 + number, values))
        one.put("einsums", f"{key}/{uuid}/graph", "no-graph", NO_GRAPH)
        one.bound(key, uuid, instance, machine, reason=NO_GRAPH["reason"])
        one.record(key, uuid, (instance.digest, solution.digest), None)


def document(one: Bench) -> None:
    graphs(one, 1, Limits().manifest_bytes)


def hash_twice(path: Path) -> None:
    """BLAKE3 over every file of ``path`` on one thread, SHA-256 on another."""

    def over(make: Callable[[], Any]) -> None:
        for file in files:
            digest = make()
            with file.open("rb", buffering=0) as opened:
                while piece := opened.read(PIECE):
                    digest.update(piece)
            digest.hexdigest()

    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    threads = [threading.Thread(target=over, args=(make,)) for make in (blake3, hashlib.sha256)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def child(what: str, path: Path) -> dict[str, float]:
    root = str(Path(__file__).resolve().parent.parent)
    start = time.perf_counter()
    arguments = [sys.executable, "-c", CHILD, what, str(path), root]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    whole = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{path}: {done.stderr.strip()}")
    found: dict[str, float] = json.loads(done.stdout)
    return {**found, "whole": whole}


def made(folder: Path, make: Callable[[Bench], None], *, archive: bool, directory: bool) -> Iterator[tuple[str, Path]]:
    """(form, path) of one bundle in both forms; the store it came from is removed."""
    one = Bench(folder / "store")
    make(one)
    one.finish()
    release = store.Store(one.root)
    forms = []
    if directory:
        forms.append(("directory", bundle.write_directory(release, folder / "bundle", PREDICATE).path))
    if archive:
        forms.append(("archive", bundle.write_bundle(release, folder / "bundle.zip", PREDICATE).path))
    shutil.rmtree(one.root)
    yield from forms


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each bundle: medians, and its targets as (what, value, limit, whether less is better)."""
    cases: list[tuple[str, Callable[[Bench], None], bool, bool]] = [
        ("large", large, True, True),
        ("small", small, True, True),
        ("bounds", bounds, True, False),
        ("graphs", graphs, True, False),
        ("document", document, True, False),
    ]
    for name, make, archive, directory in cases:
        if options.case and name not in options.case:
            continue
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for form, path in made(Path(folder), make, archive=archive, directory=directory):
                yield row(name, form, path, options.repeat)
    if options.published is not None and (not options.case or "published" in options.case):
        yield row(
            "published", "directory" if options.published.is_dir() else "archive", options.published, options.repeat
        )


def row(name: str, form: str, path: Path, repeat: int) -> dict[str, Any]:
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files)
    hash_twice(path)  # the page cache is warm
    runs, both = [], []
    for _ in range(repeat):
        runs.append(child("verify", path))
        if name == "large":
            both.append(child("hash", path))
    median = {key: statistics.median(run[key] for run in runs) for key in ("whole", "call", "cpu", "peak")}
    targets: list[tuple[str, float, float, bool]] = [("peak, MB", median["peak"] / 1e6, MEMORY_BYTES / 1e6, True)]
    if name == "small":
        targets.append(("whole, s", median["whole"], SMALL_S, True))
    if both:
        share = statistics.median(two["call"] / run["call"] for two, run in zip(both, runs, strict=True))
        targets.append(("share of both hashes on two threads", share, SHARE, False))
    return {"case": name, "form": form, "bytes": size, **median, "targets": targets}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--published", type=Path, help="a bundle of the published release, measured as well")
    parser.add_argument("--case", action="append", help="only this one")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each case")
    parser.add_argument("--folder", type=Path, help="where to make the bundles; default the system's temporary folder")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    if not options.json:
        print(f"{'bundle':<22} {'MB':>6} {'whole s':>8} {'call s':>7} {'cpu s':>7} {'MB/s':>6} {'peak MB':>8}")
    for found in measured(options):
        rows.append(found)
        if not options.json:
            name, mb = f"{found['case']}, {found['form']}", found["bytes"] / 1e6
            times = f"{found['whole']:>8.2f} {found['call']:>7.2f} {found['cpu']:>7.2f} {mb / found['call']:>6.0f}"
            print(f"{name:<22} {mb:>6.0f} {times} {found['peak'] / 1e6:>8.0f}", flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"\n{'target':<62} {'value':>8} {'target':>8} {'ratio':>6}")
    held = total = 0
    for found in rows:
        for what, value, limit, less in found["targets"]:
            ratio = value / limit if less else limit / value
            total += 1
            held += ratio <= 1
            print(f"{found['case'] + ', ' + found['form'] + ': ' + what:<62} {value:>8.2f} {limit:>8.2f} {ratio:>6.2f}")
    print(f"{held} of {total} targets held")


if __name__ == "__main__":
    main()
