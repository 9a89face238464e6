"""A small release with one of everything: made by hand, scored and bundled by the code under test.

Problems ``DEMO/unit/scale`` (two workloads, solutions eager and fast) and ``DEMO/unit/add`` (one workload, eager only,
not attempted). Targets ``cpu`` (timed) and ``gfx1200`` (bounds, a kernel that ``fast`` is said to launch, and its
verdicts: passed on w1, out of bounds on w2).
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import solar.bound
from solar import einsum, graph, hardware
from solbench import canonical, store
from solbench.code import section
from solbench.code.artifacts import artifacts
from solbench.code.compiling import Launch, Recorded
from solbench.model.definition import Definition
from solbench.model.readiness import Readiness
from solbench.model.solution import Solution
from solbench.model.trace import Omission, SetHeader, Trace
from solbench.model.verdict import Verdict
from solbench.model.workload import Workload
from solbench.release import bundle, readiness, schemas
from solbench.release.root import build_release
from solbench.score.release import score_release
from solbench.store import RAW_KINDS, Descriptor, Store
from solbench.workspace import StageOutput

PREDICATE = {"buildDefinition": {"buildType": "test", "externalParameters": {}}, "runDetails": {"builder": {"id": "t"}}}
SIZES = {"DEMO/unit/scale": {"w1": 1 << 20, "w2": 1 << 22}, "DEMO/unit/add": {"w1": 1 << 20}}
FLOOR_S = 2e-5
# Times in units of T_SOL, one a process.
BASELINE = (4.0, 4.01, 4.0, 3.99, 4.0, 4.02)
FAST = (2.0, 2.0, 2.01, 1.99, 2.0, 2.0)
OBJECTS = Path(__file__).resolve().parents[1] / "solbench" / "code" / "objects"


def definition(key: str) -> Definition:
    name = key.rpartition("/")[2]
    body = "x * 2" if name == "scale" else "x + x"
    return Definition.load(
        {
            "name": name,
            "op_type": "elementwise",
            "axes": {"n": {"type": "var"}},
            "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
            "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
            "reference": f"def run(x):\n    return {body}\n",
        },
        key,
    )


def workload(uuid: str, n: int) -> Workload:
    return Workload.load(
        {
            "uuid": uuid,
            "axes": {"n": n},
            "inputs": {"x": {"type": "normal"}},
            "checks": [{"type": "numeric", "output": "y", "atol": 1e-6, "rtol": 1e-6}],
        },
        uuid,
    )


def solution(name: str, key: str) -> Solution:
    spec = {"languages": ["pytorch"], "entry_point": "main.py::run"}
    source = "def run(x):\n    return x.mul(2)\n"
    fields = {"name": name, "definition": key.rpartition("/")[2], "author": "tests", "spec": spec}
    return Solution.load({**fields, "sources": [{"path": "main.py", "content": source}]}, name)


def operator_graph(n: int) -> dict[str, Any]:
    tensor = {"shape": (n,), "dtype": "float32", "strides": (1,)}
    return graph.to_dict(
        graph.OperatorGraph(
            path="aten",
            tensors={"x": graph.Tensor(**tensor, storage=0), "y": graph.Tensor(**tensor, storage=1)},
            inputs=(("x", "x"),),
            outputs=(("y", "y"),),
            nodes=(graph.Node("mul", "aten.mul.Tensor", {"self": graph.Ref("x"), "other": 2}, ("y",)),),
        )
    )


def program(n: int) -> dict[str, Any]:
    tensor = einsum.Tensor((n,), "float32")
    mul = einsum.Op("mul", "map", "mul", ("x",), ("y",), {"scalars": {"1": 2}})
    return einsum.to_dict(einsum.Program("aten", {"x": tensor, "y": tensor}, (("x", "x"),), (("y", "y"),), (mul,)))


def attestation(of: Descriptor, ir: Descriptor) -> dict[str, Any]:
    subjects = {"definition": of.digest, "einsum-graph": ir.digest}
    return {
        "schema": "solar.attestation.v1",
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": k, "digest": {"blake3": v.removeprefix("blake3:")}} for k, v in subjects.items()],
        "predicateType": "https://example.org/replay/v1",
        "predicate": {"verdict": "passed", "seeds": [1, 2], "sizes": "small"},
    }


def machine(target: str) -> dict[str, Any]:
    return {**hardware.load("gfx1200").to_dict(), "name": target}


def header() -> SetHeader:
    return SetHeader.load(
        {
            "target": "cpu",
            "protocol": {"name": "full", "processes": 6, "samples": 6, "max_call_s": 0.25, "isolation": ["rlimits"]},
            "harness": "blake3:" + "1" * 64,
            "environment": {"torch": "2.13.0"},
            "device": {"name": "Example CPU", "cores": 2},
            "floor_s": FLOOR_S,
            "clocks": "unlocked",
        },
        "header",
    )


def sample_sets(times: tuple[float, ...], t_sol_s: float) -> list[dict[str, Any]]:
    return [
        {
            "process": process,
            "warmups": 3,
            "event_s": [time * t_sol_s, time * t_sol_s * 1.001],
            "clock_s": [time * t_sol_s * 1.01 + 1e-6] * 2,
        }
        for process, time in enumerate(times)
    ]


def trace(
    key: str, uuid: str, name: str, digests: tuple[str, str], times: tuple[float, ...] | None, t_sol_s: float
) -> Trace:
    check = {"output": "y", "type": "numeric", "passed": times is not None, "compared": 8, "mismatched": 0}
    fields: dict[str, Any] = {
        "definition": key.rpartition("/")[2],
        "workload": uuid,
        "workload_digest": digests[0],
        "solution": name,
        "solution_digest": digests[1],
        "target": "cpu",
        "status": "PASSED" if times else "INCORRECT_NUMERICAL",
        "reason": None if times else "y: 3 of 8 elements differ",
        "correctness": {"rounds": 6, "checks": [check]},
    }
    if times:
        fields["timing"] = {
            "method": "cpu_clock",
            "flush_bytes": 1 << 26,
            "stop_reason": "count reached",
            "candidate": sample_sets(times, t_sol_s),
            "baseline": sample_sets(BASELINE, t_sol_s),
        }
    return Trace.load(fields, name)


def verdict(key: str, uuid: str, name: str, n: int, references: tuple[Descriptor, Descriptor]) -> Verdict:
    """One that passed on w1; elsewhere a store is out of bounds."""
    passed = uuid == "w1"
    executed = {
        "launches": [{"kernel": "scale", "grid": [n // 128, 1, 1], "block": [32, 1, 1], "instructions": 5 * n // 128}],
        "count": 1, "instructions": 5 * n // 128, "engines": {"valu": n // 32, "end": n // 128},
        "wmma_operations": {}, "loaded_bytes": {"global": 4 * n}, "stored_bytes": {"global": 4 * n},
    }  # fmt: skip
    size = {
        "axes": {"n": n}, "reduced": None, "calls": ["lock-step"], "executed": executed if passed else None,
        "ended": None if passed else "scale: out of bounds",
    }  # fmt: skip
    small = {**size, "axes": {"n": 64}, "reduced": "reduced: n", "calls": ["lock-step, checked", "permuted"]}
    check = {"output": "y", "type": "numeric", "passed": True, "compared": 8, "mismatched": 0}
    return Verdict.load(
        {
            "problem": key,
            "workload": uuid,
            "solution": name,
            "target": "gfx1200",
            "instance": references[0].as_dict(),
            "candidate": references[1].as_dict(),
            "toolchain": {"emulator": "blake3:" + "e" * 64, "tools": {"numpy": "2.0"}, "instructions": 3_000_000},
            "status": "PASSED" if passed else "RUNTIME_ERROR",
            "reason": None if passed else "out-of-bounds store",
            "log": "" if passed else "out-of-bounds store: y, byte 4096, lane 0",
            "correctness": {"rounds": 3, "checks": [check]} if passed else None,
            "emulation": {"limit": 3_000_000, "instances": [size, {**small, "executed": None}] if passed else [size]},
        },
        name,
    )


class Stages:
    """Writes stages into a store the way the pipeline does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.outputs: dict[str, StageOutput] = {}

    def put(self, stage: str, name: str, kind: str, value: Mapping[str, Any]) -> Descriptor:
        if stage not in self.outputs:
            objects = self.root / stage / "objects"
            objects.mkdir(parents=True)
            self.outputs[stage] = StageOutput(objects)
        return self.outputs[stage].put(name, kind, value)

    def code(self, candidate: Solution, instance: Mapping[str, Any]) -> None:
        """The stage ``code`` with one record of one kernel, which has 64 products in 4 of its instructions."""
        data = [(OBJECTS / f"product.{suffix}").read_bytes() for suffix in ("hsaco", "s")]
        names = [canonical.digest(one).removeprefix("blake3:") for one in data]
        launch = Launch(
            kernel="product", config=None, grid=(1, 1, 1), threads=32, dynamic_lds_bytes=0, stages=2,
            dots=(("f16", "f16", "f32"),), code_object=names[0], assembly=names[1],
        )  # fmt: skip
        recorded = [Recorded("w1", "COMPILED", (launch,), {})]
        objects = self.root / "code" / "objects"
        objects.mkdir(parents=True)
        self.outputs["code"] = StageOutput(objects)
        tools = {"compiler": "triton", "version": "3.9.0"}
        section.put(
            self.outputs["code"], artifacts(candidate, [instance], "gfx1200", recorded, dict(zip(names, data)), tools)
        )

    def finish(self) -> None:
        for stage, output in self.outputs.items():
            (self.root / f"{stage}.json").write_bytes(store.index_bytes(output.index))


def build_store(root: Path) -> Store:
    """Write the whole sample store, scores and release included."""
    stages = Stages(root)
    solutions: dict[tuple[str, str], Descriptor] = {}
    instances: dict[tuple[str, str], Descriptor] = {}
    instance_of: dict[tuple[str, str], dict[str, Any]] = {}
    bounds: dict[tuple[str, str, str], float] = {}
    definitions = {key: stages.put("corpus", key, "definition", definition(key).as_dict()) for key in SIZES}
    for key in SIZES:
        for name in ("eager", "fast") if key.endswith("scale") else ("eager",):
            value = solution(name, key).as_dict()
            solutions[key, name] = stages.put("corpus", f"{key}/solutions/{name}", "solution", value)
    machines = {t: stages.put("bounds", f"hardware/{t}", "hardware", machine(t)) for t in ("cpu", "gfx1200")}
    for key, sizes in SIZES.items():
        for uuid, n in sizes.items():
            name = f"{key}/{uuid}"
            instance = {
                "schema": "solbench.workload-instance.v1",
                "problem": key,
                "definition": definitions[key].as_dict(),
                "workload": workload(uuid, n).as_dict(),
                "axes": {"n": n},
            }
            instances[key, uuid] = stages.put("workloads", name, "workload", instance)
            instance_of[key, uuid] = instance
            stages.put("graphs", name, "operator-graph", operator_graph(n))
            ir = stages.put("einsums", f"{name}/graph", "einsum-graph", program(n))
            attested = stages.put("einsums", f"{name}/attestation", "attestation", attestation(definitions[key], ir))
            for target, model in machines.items():
                result = solar.bound.bound(einsum.from_dict(program(n)), schemas.machine(machine(target)))
                bounds[key, uuid, target] = result["t_sol_s"]
                value = {
                    "schema": "solbench.bound.v1",
                    "problem": key,
                    "workload": uuid,
                    "target": target,
                    "instance": instances[key, uuid].as_dict(),
                    "graph": ir.as_dict(),
                    "hardware": model.as_dict(),
                    "attestation": attested.as_dict(),
                    "rejected_formats": [],
                    "result": dict(result),
                    "reason": None,
                }
                stages.put("bounds", f"{name}@{target}", "bound", value)
    stages.code(solution("fast", "DEMO/unit/scale"), instance_of["DEMO/unit/scale", "w1"])
    for uuid, n in SIZES["DEMO/unit/scale"].items():
        where = "DEMO/unit/scale", uuid, "fast"
        references = instances[where[:2]], solutions["DEMO/unit/scale", "fast"]
        value = verdict(*where, n, references).as_dict()
        stages.put("verdicts", f"{where[0]}/{uuid}/fast@gfx1200", "verdict", value)
    stages.put("timings", "cpu/full/header", "measurement-set", header().as_dict())
    key = "DEMO/unit/scale"
    for uuid in SIZES[key]:
        for name in ("eager", "fast"):
            times = BASELINE if name == "eager" else FAST if uuid == "w1" else None
            digests = instances[key, uuid].digest, solutions[key, name].digest
            value = trace(key, uuid, name, digests, times, bounds[key, uuid, "cpu"]).as_dict()
            stages.put("timings", f"cpu/full/{key}/{uuid}/{name}", "trace", value)
    omission = Omission(
        definition="add",
        workload="w1",
        workload_digest=instances["DEMO/unit/add", "w1"].digest,
        solution="eager",
        reason="over the cpu budget",
    )
    record = {"schema": "solbench.omission.v1", **omission.as_dict()}
    stages.put("timings", "cpu/full/DEMO/unit/add/w1/eager", "omission", record)
    stages.finish()
    finish_store(root)
    return Store(root)


def finish_store(root: Path) -> None:
    """The stages scores, readiness and release over what is in the store; replaces what was there of them."""
    one = Store(root)
    scores = Stages(root / "new")
    for name, kind, value in score_release(one):
        scores.put("scores", name, kind, value)
    _replace(root, scores, "scores")
    sections = {stage: one.index(stage) for stage in ("corpus", "workloads", "bounds", "code")}
    matrices = Stages(root / "new")
    for target in readiness.targets_of(sections):
        derived = readiness.static(sections, one.load, target)
        assert derived is not None
        matrices.put("readiness", f"{target}/static", "readiness", derived.as_dict())
    matrices.put("readiness", "cpu/full", "readiness", full_matrix(one, sections).as_dict())
    _replace(root, matrices, "readiness")
    release = Stages(root / "new")
    output = StageOutput(root / "new" / "release" / "objects")
    release.outputs["release"] = output
    build_release(one, "sample", output)
    _replace(root, release, "release")


def full_matrix(one: Store, sections: readiness.Sections) -> Readiness:
    """What the records of the set say of a full run: the workload of ``add`` was not run."""
    prefix, records = "cpu/full/", []
    for name, entry, value in one.items("timings"):
        body = {field: content for field, content in value.items() if field != "kind"}
        key = name.removeprefix(prefix).rpartition("/")[0].rpartition("/")[0]
        if entry.kind == "trace":
            records.append((key, Trace.load(body, name)))
        elif entry.kind == "omission":
            del body["schema"]
            records.append((key, Omission.load(body, name)))
    return readiness.of_records(sections, one.load, "cpu", "full", header(), records)


def _replace(root: Path, stages: Stages, stage: str) -> None:
    shutil.rmtree(root / stage, ignore_errors=True)
    (root / "new" / stage).rename(root / stage)
    (root / f"{stage}.json").write_bytes(store.index_bytes(stages.outputs[stage].index))
    (root / "new").rmdir()


def build_site(folder: Path, root: Descriptor) -> Path:
    """A rendered site of two files, and its manifest."""
    pages = {
        "index.html": b'<!doctype html><title>sample</title><a href="https://example.org">elsewhere</a>\n',
        "assets/site.css": b"body { margin: 0 }\n",
    }
    for name, data in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    write_site_manifest(folder, root)
    return folder


def write_site_manifest(folder: Path, root: Descriptor) -> None:
    """``site.json`` over the files that are there."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "site.json"]
    value = {
        "schema": "solbench.site.v1",
        "release": root.as_dict(),
        "pages": {path.relative_to(folder).as_posix(): canonical.digest(path.read_bytes()) for path in files},
    }
    (folder / "site.json").write_bytes(canonical.dumps(value))


def build_all(folder: Path) -> tuple[Path, Path]:
    """Store, site, archive and directory bundle below ``folder``; returns (archive, directory)."""
    one = build_store(folder / "store")
    site = build_site(folder / "site", one.index("release")["release"])
    bundle.write_bundle(one, folder / "sample.zip", PREDICATE, site)
    bundle.write_directory(one, folder / "sample", PREDICATE, site)
    return folder / "sample.zip", folder / "sample"


# -- ways to make a bundle bad


def reseal(folder: Path) -> None:
    """Write both checksum files of a directory bundle anew, as a forger would; object folders left empty go."""
    for directory in (folder / "objects").glob("*"):
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path.name not in bundle.SUMS
    }
    (folder / "B3SUMS").write_bytes(
        bundle.sums({n: canonical.digest(d).removeprefix("blake3:") for n, d in files.items()})
    )
    (folder / "SHA256SUMS").write_bytes(bundle.sums({n: hashlib.sha256(d).hexdigest() for n, d in files.items()}))


def forge_root(folder: Path, release: bytes) -> None:
    """Make ``release`` the root of a directory bundle whose objects are there already, and reseal everything."""
    old = canonical.digest((folder / "release.json").read_bytes())
    new = Descriptor.of("release", release)
    (folder / "objects" / Descriptor("release", old, 0).path).unlink()
    (folder / "release.json").write_bytes(release)
    add_object(folder, release)
    (folder / "provenance.json").write_bytes(canonical.dumps(bundle.statement("sample", release, PREDICATE)))
    manifest = canonical.loads((folder / "site.json").read_bytes())
    (folder / "site.json").write_bytes(canonical.dumps({**manifest, "release": new.as_dict()}))
    reseal(folder)


def add_object(folder: Path, data: bytes) -> Descriptor:
    descriptor = Descriptor.of("any", data)
    path = folder / "objects" / descriptor.path
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return descriptor


def rewrite(folder: Path, stage: str, name: str, change: Callable[[Any], Any]) -> None:
    """Change one artifact of a directory bundle and everything that refers to it, up to the root: hashes all fit.

    ``change`` gets the parsed artifact and returns its new value, or the new bytes.
    """
    release = canonical.loads((folder / "release.json").read_bytes())
    sections = {s: _object(folder, reference) for s, reference in release["sections"].items()}
    replaced: dict[str, tuple[str, int]] = {}
    _replace_object(folder, sections[stage]["entries"][name], change, replaced)
    # Artifacts refer to earlier ones: in stage order, and as often as references are deep.
    for _ in range(3):
        for one in sections.values():
            for entry in one["entries"].values():
                if _refer(entry, replaced) or not any(old.encode() in _bytes(folder, entry) for old in replaced):
                    continue
                _replace_object(folder, entry, lambda value: _refer_all(value, replaced), replaced)
    for stage_name, one in sections.items():
        entries = {_renamed(name, replaced): entry for name, entry in one["entries"].items()}
        value = {**one, "entries": entries}
        _replace_object(folder, release["sections"][stage_name], lambda _, value=value: value, replaced)
    forge_root(folder, canonical.dumps(release))


def _renamed(name: str, replaced: Mapping[str, tuple[str, int]]) -> str:
    """An entry that is named by its digest has another name when that changes."""
    kind, _, digest = name.partition("/")
    new = replaced.get(f"blake3:{digest}")
    return f"{kind}/{new[0].removeprefix('blake3:')}" if new else name


def _bytes(folder: Path, reference: Mapping[str, Any]) -> bytes:
    return (folder / "objects" / Descriptor("", reference["digest"], 0).path).read_bytes()


def _object(folder: Path, reference: Mapping[str, Any]) -> Any:
    return canonical.loads(_bytes(folder, reference))


def _replace_object(
    folder: Path, reference: dict[str, Any], change: Callable[[Any], Any], replaced: dict[str, tuple[str, int]]
) -> None:
    old = reference["digest"]
    raw = reference["kind"] in RAW_KINDS
    value = change(_bytes(folder, reference) if raw else _object(folder, reference))
    data = value if isinstance(value, bytes) else canonical.dumps(value)
    (folder / "objects" / Descriptor("", old, 0).path).unlink()
    descriptor = add_object(folder, data)
    reference |= {"digest": descriptor.digest, "size": descriptor.size}
    if descriptor.digest != old:
        replaced[old] = (descriptor.digest, descriptor.size)


def _refer(reference: Any, replaced: Mapping[str, tuple[str, int]]) -> bool:
    if (
        isinstance(reference, dict)
        and reference.keys() == {"kind", "digest", "size"}
        and reference["digest"] in replaced
    ):
        reference["digest"], reference["size"] = replaced[reference["digest"]]
        return True
    return False


def _refer_all(value: Any, replaced: Mapping[str, tuple[str, int]]) -> Any:
    stack = [value]
    while stack:
        item = stack.pop()
        if _refer(item, replaced):
            continue
        if isinstance(item, dict):
            for key, entry in item.items():
                if isinstance(entry, str) and entry in replaced:
                    item[key] = replaced[entry][0]
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return value
