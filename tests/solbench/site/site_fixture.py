"""A small, realistic store of made-up numbers: two targets, three problems, two solutions, every state of a score."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from solar import einsum, graph
from solbench import canonical
from solbench.code import section
from solbench.code.artifacts import artifacts
from solbench.code.compiling import Launch, Recorded
from solbench.model.definition import Definition, resolve_shape
from solbench.model.release import Release, Section
from solbench.model.score import Entry, Score
from solbench.model.solution import Solution
from solbench.model.trace import Omission, SetHeader, Trace
from solbench.model.verdict import Verdict
from solbench.model.workload import Workload
from solbench.store import Descriptor, Index, index_bytes, put_json
from solbench.workspace import StageOutput as Output

STAGES = ("corpus", "workloads", "graphs", "einsums", "code", "verdicts", "bounds", "timings", "scores")
OBJECTS = Path(__file__).resolve().parents[1] / "code" / "objects"
HOSTILE = '<script>alert(1)</script> "q" \u202egnp.exe\u200b & \x07'

SOFTMAX = '''"""Softmax over the last axis."""
import torch


def run(x: torch.Tensor) -> torch.Tensor:
    # The largest value goes first, so that exp does not overflow.
    shifted = x - x.amax(dim=-1, keepdim=True)
    e = torch.exp(shifted)
    return e / e.sum(dim=-1, keepdim=True)
'''
MATMUL = """import torch


def run(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    return A @ B
"""
ROUTING = """import torch


def run(gating, topk):
    weights, ids = torch.softmax(gating.float(), -1).topk(topk)
    return weights / weights.sum(-1, keepdim=True), ids.to(torch.int32)
"""
TOOLS = {"compiler": "triton", "version": "3.9.0"}
OPENMP = """#include <cstdint>
// One thread a row.
extern "C" void run(const float* x, float* output, int64_t M, int64_t N) {
#pragma omp parallel for
    for (int64_t m = 0; m < M; ++m) output[m * N] = x[m * N];
}
"""


class Builder:
    """Collects artifacts by stage and writes indexes, sections and the release."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.indexes: dict[str, Index] = {stage: {} for stage in STAGES}
        self.targets: list[dict[str, Any]] = []

    def put(self, stage: str, name: str, kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
        self.indexes[stage][name] = put_json(self.root / stage / "objects", kind, value)
        return self.indexes[stage][name].as_dict()

    def finish(self, name: str = "published", **changes: Any) -> Descriptor:
        objects = self.root / "release" / "objects"
        release_index: Index = {}
        sections = {}
        for stage, index in self.indexes.items():
            (self.root / f"{stage}.json").write_bytes(index_bytes(index))
            value = Section(stage=stage, entries={n: d.as_dict() for n, d in index.items()}).as_dict()
            release_index[f"sections/{stage}"] = put_json(objects, "section", value)
            sections[stage] = release_index[f"sections/{stage}"].as_dict()
        problems = [n for n, d in self.indexes["corpus"].items() if d.kind == "definition"]
        fields: dict[str, Any] = {
            "name": name,
            "corpora": sorted({key.partition("/")[0] for key in problems}),
            "problems": len(problems),
            "workloads": len(self.indexes["workloads"]),
            "targets": self.targets,
            "sections": sections,
        }
        release = put_json(objects, "release", Release.load(fields | changes, "release").as_dict())
        release_index["release"] = release
        (self.root / "release.json").write_bytes(index_bytes(release_index))
        return release


def definition(name: str, reference: str, axes: Any, inputs: Any, outputs: Any, **more: Any) -> Definition:
    fields = {"name": name, "axes": axes, "inputs": inputs, "outputs": outputs, "reference": reference, **more}
    return Definition.load(fields, name)


def _definitions(description: str) -> dict[str, tuple[Definition, list[dict[str, int]], dict[str, Any], list[Any]]]:
    var = {"type": "var"}
    softmax = definition(
        "l1n23_softmax",
        SOFTMAX,
        {"M": var | {"description": "rows"}, "N": var},
        {"x": {"shape": ["M", "N"], "dtype": "float32", "role": "activation"}},
        {"output": {"shape": ["M", "N"], "dtype": "float32"}},
        op_type="softmax",
        suite="torch2hip",
        description=description,
        source={"project": "AgentKernelArena", "revision": "869228138e07", "task": "tasks/torch2hip/l1n23_Softmax"},
    )
    matmul = definition(
        "l1n2_standard_matmul",
        MATMUL,
        {"M": var, "K": var, "N": var, "P": {"type": "expr", "expression": "M * N"}},
        {"A": {"shape": ["M", "K"], "dtype": "bfloat16"}, "B": {"shape": ["K", "N"], "dtype": "bfloat16"}},
        {"output": {"shape": ["M", "N"], "dtype": "bfloat16"}},
        op_type="matmul",
        suite="torch2hip",
        description="Matrix product of two bfloat16 matrices.",
    )
    routing = definition(
        "moe_topk_softmax",
        ROUTING,
        {"T": var, "E": {"type": "const", "value": 64}},
        {
            "gating": {"shape": ["T", "E"], "dtype": "bfloat16", "role": "activation", "description": "router logits"},
            "topk": {"shape": None, "dtype": "int64", "role": "scalar"},
        },
        {"weights": {"shape": ["T", "8"], "dtype": "float32"}, "ids": {"shape": ["T", "8"], "dtype": "int32"}},
        op_type="routing",
        suite="torch2flydsl",
        description="Top-k routing of a mixture of experts.\n\nWeights are renormalised over the chosen experts.",
    )
    normal = {"type": "normal", "mean": 0.0, "std": 1.0}
    numeric = {"type": "numeric", "output": "output", "atol": 1.25e-05, "rtol": 1.25e-05}
    return {
        "AMD_AKA/torch2hip/l1n23_softmax": (
            softmax,
            [{"M": 16, "N": 128}, {"M": 1024, "N": 4096}, {"M": 4096, "N": 16384}, {"M": 8192, "N": 32768}],
            {"x": normal},
            [numeric],
        ),
        "AMD_AKA/torch2hip/l1n2_standard_matmul": (
            matmul,
            [{"M": 128, "K": 256, "N": 64}, {"M": 256, "K": 128, "N": 512}, {"M": 2048, "K": 2048, "N": 2048}],
            {"A": normal, "B": normal | {"std": "1/sqrt(K)"}},
            [numeric | {"atol": 0.0125, "rtol": 0.0125, "mode": "normalized_max", "required_matched_ratio": 0.999}],
        ),
        "AMD_AKA/torch2flydsl/moe_topk_softmax": (
            routing,
            [{"T": 64}, {"T": 4096}],
            {"gating": normal, "topk": {"type": "constant", "value": 8}},
            [
                {
                    "type": "topk_routing",
                    "ids_output": "ids",
                    "weights_output": "weights",
                    "gating_input": "gating",
                    "topk": "8",
                    "tie_atol": 1e-3,
                    "weight_atol": 1e-3,
                }
            ],
        ),
    }


def _graphs(problem: Definition, axes: Mapping[str, int]) -> tuple[graph.OperatorGraph, einsum.Program]:
    """What a reference might call: every output is the exponential of the first input."""
    shapes = {name: resolve_shape(spec, dict(axes)) for name, spec in problem.inputs.items() if spec.shape is not None}
    first = next(iter(shapes))
    nodes, ops, tensors, outputs = [], [], {}, []
    for storage, (name, shape) in enumerate(shapes.items()):
        tensors[f"in.{name}"] = (shape, problem.inputs[name].dtype, storage)
    for position, name in enumerate(problem.outputs):
        made = f"exp_{position}"
        tensors[made] = (shapes[first], problem.inputs[first].dtype, len(shapes) + position)
        nodes.append(graph.Node(made, "aten.exp.default", {"self": graph.Ref(f"in.{first}")}, (made,)))
        ops.append(einsum.Op(made, "map", "exp", (f"in.{first}",), (made,), {"source": "aten.exp.default"}))
        outputs.append((name, made))
    inputs = tuple((name, f"in.{name}") for name in shapes)
    operators = graph.OperatorGraph(
        "aten",
        {
            name: graph.Tensor(shape, dtype, (1,) * len(shape), storage)
            for name, (shape, dtype, storage) in tensors.items()
        },
        inputs,
        tuple(outputs),
        tuple(nodes),
    )
    plain = {name: einsum.Tensor(shape, dtype) for name, (shape, dtype, _) in tensors.items()}
    return operators, einsum.Program("aten", plain, inputs, tuple(outputs), tuple(ops))


def _hardware(target: str, bandwidth: float, rate: float) -> dict[str, Any]:
    def found(unit: str, value: float, source: str, confidence: str) -> dict[str, Any]:
        common = {"dense": True, "source": source, "confidence": confidence}
        if target == "cpu":
            return {f"measured_{unit}_per_s": value / 1.25, "margin": 1.25, **common, "confidence": "measured"}
        clock = 2.5e9 if unit == "bytes" else 3.13e9
        fields = {f"{unit}_per_clock": value / clock, f"published_{unit}_per_s": value, "published_clock_hz": clock}
        return {**fields, **({"highest_clock_hz": clock} if unit == "bytes" else {}), **common}

    memory = found("bytes", bandwidth, "https://vendor.example/specifications", "high")
    clock = {"highest_hz": 3.13e9, "source": "vendor's data sheet", "confidence": "high"}
    return {
        "schema": "solar.hardware.v1",
        "name": target,
        "device": f"a made-up model of {target}",
        "origin": "calibrated" if target == "cpu" else "specified",
        "clock": None if target == "cpu" else clock,
        "engines": {
            "matrix": {"bfloat16": found("ops", rate, "assumed equal to fp16", "medium")},
            "valu": {"float32": found("ops", rate / 4, "vendor's data sheet", "high")},
        },
        "memory": memory,
        "caches": {"last_level_bytes": {"value": 33554432, "source": "vendor's data sheet", "confidence": "high"}},
        "absorbed_store_bytes": {"value": 0, "source": "assumption", "confidence": "low"},
    }


def _result(target: str, bytes_: int, macs: int, bandwidth: float, rate: float) -> dict[str, Any]:
    memory, compute = bytes_ / bandwidth, 2 * macs / rate
    return {
        "schema": "solar.bound.v1",
        "target": target,
        "path": "aten",
        "class": "classical products, any order, any fusion",
        "coverage": "complete",
        "uncounted": [],
        "t_sol_s": max(memory, compute),
        "binds": "memory" if memory >= compute else "matrix",
        "compute": [
            {"engine": "matrix", "mode": "bfloat16", "ops": 2.0 * macs, "rate_per_s": rate, "seconds": compute}
        ],
        "memory": {
            "live_bytes": bytes_,
            "live_read_bytes": bytes_ // 2,
            "live_write_bytes": bytes_ - bytes_ // 2,
            "declared_bytes": bytes_,
            "bandwidth_bytes_per_s": bandwidth,
            "seconds": memory,
        },
        "macs": macs,
        "flops": 2 * macs,
        "terms": [
            {
                "op": "mm",
                "kind": "einsum",
                "function": "mm",
                "engine": "matrix",
                "mode": "bfloat16",
                "work": 2.0 * macs,
            },
            {"op": "cast", "kind": "cast", "function": "to", "engine": None, "mode": None, "work": 0},
        ],
        "tensors": [
            {"name": "x", "role": "input", "live_bytes": bytes_ // 2, "declared_bytes": bytes_ // 2},
            {"name": "output", "role": "output", "live_bytes": bytes_ - bytes_ // 2, "declared_bytes": bytes_ // 2},
        ],
        "draws": "any draw",
        "assumptions": ["stored outputs reach memory inside the timed window"],
        "looseness": ["one rate for all elementwise functions"],
    }


def _estimate(point: float, width: float = 0.02) -> dict[str, Any]:
    return {
        "point_s": point,
        "low_s": point * (1 - width),
        "high_s": point * (1 + width),
        "coverage": 0.96875,
        "processes": 6,
        "samples": 120,
    }


def _samples(point: float) -> list[dict[str, Any]]:
    return [{"process": 0, "warmups": 2, "event_s": [point, point], "clock_s": [point * 1.01, point * 1.01]}]


MACHINES = {"cpu": (4.2e10, 4.1e11), "gfx1200": (3.2e11, 1.03e14)}
# (problem, workload position, solution) -> (state, reason, T_b in T_SOL, T_k in T_SOL)
CASES: dict[tuple[str, int, str], tuple[str, str | None, float, float]] = {
    ("softmax", 0, "openmp"): ("too_narrow", "relative headroom 0.04 is under 8.8 times the timing error", 1.04, 1.03),
    ("softmax", 2, "openmp"): ("audit", "T_k is below T_SOL", 9.0, 0.8),
    ("softmax", 3, "eager"): ("not_attempted", "over the cpu budget of 0.25 s a call", 0, 0),
    ("softmax", 3, "openmp"): ("not_attempted", "over the cpu budget of 0.25 s a call", 0, 0),
    ("matmul", 1, "openmp"): ("failed", "INCORRECT_NUMERICAL: output: 12 of 131072 values differ", 0, 0),
    ("matmul", 2, "openmp"): ("not_timed", "UNSUPPORTED: no timing method", 0, 0),
    ("matmul", 2, "eager"): ("scored", None, 1400.0, 1390.0),
}


def build_store(root: Path, *, description: str = "Softmax over the last axis of a matrix.") -> Builder:
    """Write the store below ``root``; ``description`` is the first problem's. Call ``finish`` on the result again to
    write a changed release."""
    builder = Builder(root)
    for target, (bandwidth, rate) in MACHINES.items():
        builder.put("bounds", f"hardware/{target}", "hardware", _hardware(target, bandwidth, rate))
    header = SetHeader.load(
        {
            "target": "cpu",
            "protocol": {"name": "full", "processes": 6, "samples": 20, "max_call_s": 0.25, "isolation": ["rlimits"]},
            "harness": "blake3:" + "0" * 64,
            "environment": {"torch": "2.13.0", "OMP_NUM_THREADS": "2"},
            "device": {"model": "a made-up processor", "cores": 2, "caches": {"l3_bytes": 33554432}},
            "floor_s": 2.1e-06,
            "clocks": "unlocked",
        },
        "header",
    )
    set_ref = builder.put("timings", "cpu/plain/header", "measurement-set", header.as_dict())
    for key, (problem, axes, inputs, checks) in _definitions(description).items():
        _put_problem(builder, key, problem, axes, inputs, checks, set_ref)
    _put_entries(builder)
    workloads = len(builder.indexes["workloads"])
    builder.targets = [
        _target("cpu", workloads, 7, "timed", "a made-up processor", "plain CPU, full protocol"),
        _target("gfx1200", workloads - 1, 0, "not timed", None, "no card: bounds only"),
    ]
    builder.finish()
    return builder


def _target(name: str, bounds: int, timed: int, state: str, device: str | None, note: str) -> dict[str, Any]:
    return {
        "target": name,
        "bounds": bounds,
        "timed": timed,
        "workloads": 9,
        "state": state,
        "device": device,
        "note": note,
    }


def _put_problem(builder: Builder, key: str, problem: Any, axes: Any, inputs: Any, checks: Any, set_ref: Any) -> None:
    problem_ref = builder.put("corpus", key, "definition", problem.as_dict())
    solutions = {}
    for name, language, path, content in (
        ("eager", "pytorch", "reference.py", problem.reference),
        ("openmp", "cpp", "kernel.cpp", OPENMP),
    ):
        if name == "openmp" and "routing" in problem.op_type:
            continue
        spec = {"languages": [language], "entry_point": f"{path}::run", "binding": "c" if language == "cpp" else None}
        fields = {
            "name": name,
            "definition": problem.name,
            "author": "the project",
            "spec": spec,
            "sources": [{"path": path, "content": content}],
        }
        solution = Solution.load(fields, name)
        solutions[name] = builder.put("corpus", f"{key}/solutions/{name}", "solution", solution.as_dict())
    for position, bound_axes in enumerate(axes):
        uuid = f"aka-{problem.name}-w{position}"
        workload = Workload.load({"uuid": uuid, "axes": bound_axes, "inputs": inputs, "checks": checks}, uuid)
        resolved = workload.validate_against(problem, uuid)
        instance = {
            "schema": "solbench.workload-instance.v1",
            "problem": key,
            "definition": problem_ref,
            "workload": workload.as_dict(),
            "axes": resolved,
        }
        instance_ref = builder.put("workloads", f"{key}/{uuid}", "workload", instance)
        if "matmul" in problem.op_type and position < 2:
            _put_code(builder, solution, instance, position)
        if "matmul" in problem.op_type:
            _put_verdict(builder, f"{key}/{uuid}", position, resolved, (instance_ref, solutions["openmp"]))
        operators, program = _graphs(problem, resolved)
        builder.put("graphs", f"{key}/{uuid}", "operator-graph", graph.to_dict(operators))
        graph_ref = builder.put("einsums", f"{key}/{uuid}/graph", "einsum-graph", einsum.to_dict(program))
        attestation = {
            "schema": "solar.attestation.v1",
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": uuid, "digest": {"blake3": "0" * 64}}],
            "predicate": {"verdict": "passed", "seeds": [1, 2], "tolerance": {"output": {"relative": 1e-05}}},
        }
        attestation_ref = builder.put("einsums", f"{key}/{uuid}/attestation", "attestation", attestation)
        elements = 1
        for extent in bound_axes.values():
            elements *= extent
        for target, (bandwidth, rate) in MACHINES.items():
            unbound = target == "gfx1200" and "routing" in problem.op_type and position == 1
            result = None if unbound else _result(target, 8 * elements, elements * 4, bandwidth, rate)
            bound = {
                "schema": "solbench.bound.v1",
                "problem": key,
                "workload": uuid,
                "target": target,
                "instance": instance_ref,
                "graph": graph_ref,
                "hardware": builder.indexes["bounds"][f"hardware/{target}"].as_dict(),
                "attestation": attestation_ref,
                "rejected_formats": [],
                "result": result,
                "reason": "topk: no rule prices it" if unbound else None,
            }
            bound_ref = builder.put("bounds", f"{key}/{uuid}@{target}", "bound", bound)
            for name, solution_ref in solutions.items():
                case = CASES.get(
                    (problem.op_type, position, name), ("scored", None, 6.0, 5.7 if name == "eager" else 2.5)
                )
                if target == "gfx1200":
                    case = ("not_timed", "no card with this target was measured", 0, 0)
                t_sol = result["t_sol_s"] if result else None
                refs = {"bound": bound_ref, "measurement_set": set_ref if target == "cpu" else None}
                where = (key, uuid, target, name)
                _put_score(builder, where, problem.name, case, t_sol, refs, instance_ref, solution_ref)


def _put_code(builder: Builder, solution: Solution, instance: dict[str, Any], position: int) -> None:
    """A real kernel, launched on the first workload; the second one's needs more LDS than there is."""
    data = [(OBJECTS / f"product.{suffix}").read_bytes() for suffix in ("hsaco", "s")]
    names = [canonical.digest(one).removeprefix("blake3:") for one in data]
    launch = Launch(
        kernel="product", config="N: 256" if position else None, grid=(1, 1, 1), threads=32, stages=2,
        dynamic_lds_bytes=position * 70_000, dots=(("f16", "f16", "f32"),), code_object=names[0], assembly=names[1],
    )  # fmt: skip
    failed = Launch(kernel="product", config="N: 250", fault="product: 250 is no power of 2")
    calls = {"aten.add.Tensor": 2} if position else {}
    recorded = [Recorded(instance["workload"]["uuid"], "COMPILED", (launch, failed) if position else (launch,), calls)]
    found = artifacts(solution, [instance], "gfx1200", recorded, dict(zip(names, data)), TOOLS)
    section.put(Output(builder.root / "code" / "objects", builder.indexes["code"]), found)


def _put_verdict(
    builder: Builder, name: str, position: int, axes: Mapping[str, int], references: tuple[dict[str, Any], ...]
) -> None:
    """Right on the first workload, which loads three times what its bound counts and multiplies 1.25 times as much; out
    of bounds on the second; right on the third at small sizes, as it is too large."""
    elements = axes["M"] * axes["K"] * axes["N"]
    executed = {
        "launches": [{"kernel": "product", "grid": [4, 2, 1], "block": [32, 1, 1], "instructions": 1200}],
        "count": 3, "instructions": 3600, "engines": {"valu": 3000, "wmma": 600},
        "wmma_operations": {"f16": 10 * elements}, "loaded_bytes": {"buffer": 12 * elements, "LDS": 77},
        "stored_bytes": {"global": 4 * elements},
    }  # fmt: skip
    whole = {
        "axes": axes, "reduced": None, "calls": ["lock-step"], "executed": executed if position == 0 else None,
        "ended": (None, "out of bounds", "product: not at its end within the limit of instructions")[position],
    }  # fmt: skip
    small = {
        "axes": {**axes, "M": 64}, "reduced": f"reduced: M {axes['M']} -> 64", "executed": executed, "ended": None,
        "warnings": ["uninitialised memory: lane 0 of wave 0 in group (0, 0, 0) uses byte 0 of y, which nothing wrote"],
        "calls": ["lock-step, checked", "permuted", "permuted"],
    }  # fmt: skip
    check = {
        "output": "output", "type": "numeric", "passed": True, "compared": 8192, "mismatched": 0,
        "max_absolute_error": 0.0625,
    }  # fmt: skip
    failed = position == 1
    problem, _, uuid = name.rpartition("/")
    verdict = Verdict.load(
        {
            "problem": problem, "workload": uuid, "solution": "openmp", "target": "gfx1200",
            "instance": references[0], "candidate": references[1],
            "toolchain": {"emulator": "blake3:" + "e" * 64, "tools": {"numpy": "2.0.0"}, "instructions": 3_000_000},
            "status": "RUNTIME_ERROR" if failed else "PASSED",
            "reason": "out-of-bounds load of A" if failed else None,
            "log": "out-of-bounds load: A, byte 65536, lane 3, kernel.hip:12" if failed else "",
            "correctness": None if failed else {"rounds": 4, "checks": [check]},
            "emulation": {"limit": 3_000_000, "instances": [whole] if failed else [whole, small]},
        },
        name,
    )  # fmt: skip
    builder.put("verdicts", f"{name}/openmp@gfx1200", "verdict", verdict.as_dict())


def _put_score(
    builder: Builder,
    where: Any,
    definition_name: str,
    case: Any,
    t_sol: float | None,
    refs: Any,
    instance: Any,
    sol: Any,
) -> None:
    key, uuid, target, name = where
    state, reason, baseline, kernel = case
    t_b, t_k = (baseline * t_sol, kernel * t_sol) if baseline and t_sol else (None, None)
    trace_ref = None
    common = {"definition": definition_name, "workload": uuid, "workload_digest": instance["digest"], "solution": name}
    if target == "cpu" and state == "not_attempted":
        omission = Omission.load({**common, "reason": reason}, "omission").as_dict()
        value = {"schema": "solbench.omission.v1", **omission}
        trace_ref = builder.put("timings", f"cpu/plain/{key}/{uuid}/{name}", "omission", value)
    elif target == "cpu":
        check = {"output": "output", "type": "numeric", "passed": True, "compared": 10, "mismatched": 0}
        timing = {
            "method": "cpu_clock",
            "flush_bytes": 67108864,
            "stop_reason": "samples",
            "candidate": _samples(t_k or 1.0),
            "baseline": _samples(t_b or 1.0),
        }
        passed = t_k is not None
        trace = Trace.load(
            {
                **common,
                "solution_digest": sol["digest"],
                "target": "cpu",
                "status": "PASSED" if passed else "INCORRECT_NUMERICAL" if state == "failed" else "UNSUPPORTED",
                # A score puts the status before it.
                "reason": None if passed or not reason else reason.partition(": ")[2],
                "labels": ["sandbox: rlimits only"],
                "correctness": {"rounds": 5, "checks": [check]} if passed else None,
                "timing": timing if passed else None,
            },
            "trace",
        )
        trace_ref = builder.put("timings", f"cpu/plain/{key}/{uuid}/{name}", "trace", trace.as_dict())
    s = None
    if state == "scored" and t_b and t_k and t_sol:
        s = 1 / (1 + (t_k - t_sol) / (t_b - t_sol))
    headroom = None if not t_b or not t_sol else t_b / t_sol
    classes = ((2, "narrow"), (15, "good"), (100, "loose"), (1e9, "vacuous"))
    score = Score.load(
        {
            "definition": definition_name,
            "workload": uuid,
            "solution": name,
            "target": target,
            "state": state,
            "reason": reason,
            "t_k": _estimate(t_k) if t_k else None,
            "t_b": _estimate(t_b) if t_b else None,
            "t_sol_s": t_sol,
            "s": 0.0 if state == "failed" else s,
            "s_low": None if s is None else s - 0.011,
            "s_high": None if s is None else s + 0.012,
            "headroom": headroom,
            "headroom_class": next(c for limit, c in classes if headroom <= limit) if headroom else None,
            "launch_bound": None if t_sol is None else t_sol < 2.1e-06,
            "trace": trace_ref,
            **refs,
        },
        uuid,
    )
    builder.put("scores", f"{key}/{uuid}@{target}/{name}", "score", score.as_dict())


def _put_entries(builder: Builder) -> None:
    problems = {
        "eager": [
            ("l1n23_softmax", 0.515, 3, 4),
            ("l1n2_standard_matmul", 0.512, 3, 3),
            ("moe_topk_softmax", 0.515, 2, 2),
        ],
        "openmp": [
            ("l1n23_softmax", 0.769, 1, 4),
            ("l1n2_standard_matmul", 0.385, 2, 3),
            ("moe_topk_softmax", 0.0, 0, 2),
        ],
    }
    suites = {"l1n23_softmax": "torch2hip", "l1n2_standard_matmul": "torch2hip", "moe_topk_softmax": "torch2flydsl"}
    for name, s, withheld in (("eager", 0.514, None), ("openmp", None, "1 workload is in audit")):
        entry = Entry.load(
            {
                "name": name,
                "target": "cpu",
                "protocol": "full",
                "s": s,
                "s_low": None if s is None else 0.489,
                "s_high": None if s is None else 0.541,
                "s_without_launch_bound": None if s is None else 0.513,
                "withheld": withheld,
                "scored": 8 if name == "eager" else 2,
                "failed": 0 if name == "eager" else 1,
                "audit": 0 if name == "eager" else 1,
                "too_narrow": 0 if name == "eager" else 1,
                "not_timed": 0 if name == "eager" else 1,
                "not_attempted": 1 if name == "eager" else 3,
                "workloads": 9,
                "problems": [
                    {"definition": f"AMD_AKA/{suites[p]}/{p}", "s": mean, "n": n, "total": total}
                    for p, mean, n, total in problems[name]
                ],
                "problem_n": 3 if name == "eager" else 2,
                "problem_total": 3,
                "geometric_mean_speedup": 1.047 if name == "eager" else None,
                "fast_1": 0.889 if name == "eager" else None,
                "fast_2": 0.0 if name == "eager" else None,
                "trust": {},
            },
            name,
        )
        builder.put("scores", f"cpu/{name}", "entry", entry.as_dict())
