"""FlashInfer-Trace data sets, exports of what other systems cannot say, traces, and KernelBench modules."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from solbench.cli import run
from solbench.corpus.exchange import zeros
from solbench.corpus.exchange.flashinfer_trace import read_flashinfer_trace, write_flashinfer_trace
from solbench.corpus.exchange.kernelbench import read_kernelbench
from solbench.corpus.exchange.module_probe import answers
from solbench.corpus.exchange.notes import Carried, Notes
from solbench.corpus.exchange.sol_execbench import write_sol_execbench
from solbench.corpus.exchange.traces import Observed, read_traces
from solbench.corpus.load import Problem, load_corpus, load_problem
from solbench.corpus.reference import load_reference, named_outputs
from solbench.errors import InputError, UnsupportedError
from solbench.evaluate.sandbox import isolation
from solbench.inputs import draw
from solbench.model.trace import Trace

ROOT = Path(__file__).resolve().parents[3]
BLOB = "blob/workloads/norm/rms/w0.safetensors"
DEFINITION: dict[str, Any] = {
    "name": "rms",
    "op_type": "norm",
    "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 4}},
    "inputs": {"x": {"shape": ["M", "N"], "dtype": "bfloat16"}, "i": {"shape": ["M"], "dtype": "int32"}},
    "outputs": {"y": {"shape": ["M", "N"], "dtype": "bfloat16"}},
    "reference": "def run(x, i):\n    return x\n",
    "description": "one",
}
WORKLOAD: dict[str, Any] = {
    "uuid": "w0",
    "axes": {"M": 2},
    "inputs": {"x": {"type": "random"}, "i": {"type": "safetensors", "path": BLOB, "tensor_key": "i"}},
}
SOLUTION: dict[str, Any] = {
    "name": "fused",
    "definition": "rms",
    "author": "some one",
    "spec": {
        "language": "triton",
        "target_hardware": ["NVIDIA H100"],
        "entry_point": "main.py::run",
        "dependencies": [],
        "destination_passing_style": True,
    },
    "sources": [{"path": "main.py", "content": "def run(x, i, y): ...\n"}],
}
TOLERANCE_NOTE = "loss rms: tolerance: is no part of these files"


def write_data_set(root: Path, definition: Any = DEFINITION, workload: Any = WORKLOAD, *solutions: Any) -> None:
    kind, name = definition["op_type"], definition["name"]
    row = {"definition": name, "workload": workload, "solution": None, "evaluation": None}
    for path, text in (
        (f"definitions/{kind}/{name}.json", json.dumps(definition)),
        (f"workloads/{kind}/{name}.jsonl", json.dumps(row) + "\n"),
        *((f"solutions/some-one/{kind}/{name}/{s['name']}.json", json.dumps(s)) for s in solutions),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / BLOB).parent.mkdir(parents=True, exist_ok=True)
    save_file({"i": torch.tensor([1, 0], dtype=torch.int32)}, root / BLOB)


def contents(root: Path) -> dict[str, Any]:
    """Every file of a data set, parsed where it is JSON."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            lines = path.read_bytes().splitlines() if path.suffix == ".jsonl" else [path.read_bytes()]
            found[path.relative_to(root).as_posix()] = [
                line if path.suffix == ".safetensors" else json.loads(line) for line in lines
            ]
    return found


def what(carried: Carried) -> str:
    return "\n".join(f"{note.kind} {note.where}: {note.what}" for note in carried.notes)


def test_flashinfer_trace_comes_back_whole(tmp_path: Path) -> None:
    write_data_set(tmp_path / "in", DEFINITION, WORKLOAD, SOLUTION)
    (tmp_path / "corpora").mkdir()
    carried = read_flashinfer_trace(tmp_path / "in", tmp_path / "corpora" / "FI")
    assert carried.problems == ("FI/norm/rms",) and carried.solutions == ("FI/norm/rms: fused",)
    assert what(carried).startswith(TOLERANCE_NOTE) and len(carried.notes) == 1
    problems = load_corpus(tmp_path / "corpora")
    drawn = draw(problems[0].definition, problems[0].workloads[0], {"M": 2, "N": 4}, 0, folder=problems[0].path)
    assert drawn["i"].tolist() == [1, 0]  # type: ignore[union-attr]
    (check,) = problems[0].workloads[0].checks
    assert (check.atol, check.rtol, check.required_matched_ratio) == (0.01, 0.01, 1.0)  # type: ignore[union-attr]
    exported = write_flashinfer_trace(problems, [], tmp_path / "out", Notes())
    assert exported.notes == ()
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    kind=st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True).filter(lambda kind: kind not in ("moe", "sampling")),
    sizes=st.lists(st.integers(1, 10**6), min_size=1, max_size=3),
    text=st.text(max_size=30),
    dtype=st.sampled_from(["float16", "bfloat16", "float8_e4m3fn", "int64", "int8", "bool"]),
)
def test_any_data_set_comes_back_whole(
    tmp_path_factory: pytest.TempPathFactory, kind: str, sizes: list[int], text: str, dtype: str
) -> None:
    root = tmp_path_factory.mktemp("any")
    axes: dict[str, Any] = {f"A{n}": {"type": "const", "value": size} for n, size in enumerate(sizes)}
    axes["M"] = {"type": "var", "description": text}
    definition = {
        **DEFINITION, "op_type": kind, "axes": axes, "description": text,
        "inputs": {"x": {"shape": list(axes), "dtype": dtype}, "i": {"shape": ["M"], "dtype": "int32"}},
        "outputs": {"y": {"shape": list(axes)[::-1], "dtype": dtype, "description": text}},
    }  # fmt: skip
    write_data_set(root / "in", definition)
    read_flashinfer_trace(root / "in", root / "FI")
    problem = load_problem(root / "FI" / kind / "rms")
    assert write_flashinfer_trace([problem], [], root / "out", Notes()).notes == ()
    assert contents(root / "out") == contents(root / "in")


@pytest.mark.parametrize(
    ("definition", "solution", "note"),
    [
        ({"tags": ["stage:decode"]}, {}, "loss rms: tags: has no counterpart"),
        ({"constraints": ["M > 1"]}, {}, "loss rms: constraints: has no counterpart"),
        ({}, {"language": "tilelang"}, "fused.json: language tilelang: there is nothing here"),
        ({}, {"language": "cuda", "entry_point": "main.cu::run"}, "fused.json: binding tvm-ffi"),
        ({}, {"binding": "torch"}, "fused.json: spec.binding: torch has no meaning"),
    ],
)
def test_what_does_not_fit_is_named(definition: Any, solution: Any, note: str, tmp_path: Path) -> None:
    changed = {**SOLUTION, "spec": {**SOLUTION["spec"], **solution}}
    write_data_set(tmp_path / "in", {**DEFINITION, **definition}, WORKLOAD, changed)
    (tmp_path / "in" / "traces").mkdir()
    (tmp_path / "in" / "traces" / "a.jsonl").write_text("{}\n")
    text = what(read_flashinfer_trace(tmp_path / "in", tmp_path / "FI"))
    assert note in text and "loss traces/a.jsonl: traces of another protocol" in text


def test_what_is_left_to_a_default_leaves_the_workload_out(tmp_path: Path) -> None:
    inputs = {**DEFINITION["inputs"], "cache": {"shape": ["M"], "dtype": "float32", "optional": True}}
    definition = {**DEFINITION, "inputs": inputs, "reference": "def run(x, i, cache=None):\n    return x\n"}
    write_data_set(tmp_path / "in", definition)
    with pytest.raises(UnsupportedError, match=r"inputs\.cache: is left to its default"):
        read_flashinfer_trace(tmp_path / "in", tmp_path / "NONE")
    given = {**WORKLOAD, "inputs": {**WORKLOAD["inputs"], "cache": {"type": "random"}}}
    write_data_set(tmp_path / "given", definition, given)
    assert "loss rms: inputs.cache: optional: has no counterpart" in what(
        read_flashinfer_trace(tmp_path / "given", tmp_path / "FI")
    )


def test_a_workload_may_repeat_constant_axes(tmp_path: Path) -> None:
    write_data_set(tmp_path / "in", DEFINITION, {**WORKLOAD, "axes": {"M": 2, "N": 4}})
    read_flashinfer_trace(tmp_path / "in", tmp_path / "FI")
    (workload,) = load_problem(tmp_path / "FI" / "norm" / "rms").workloads
    assert workload.axes == {"M": 2}
    write_data_set(tmp_path / "other", DEFINITION, {**WORKLOAD, "axes": {"M": 2, "N": 5}})
    with pytest.raises(InputError, match=r"axes\.N: is constant"):
        read_flashinfer_trace(tmp_path / "other", tmp_path / "NONE")


def test_a_solution_belongs_to_the_definition_that_it_names(tmp_path: Path) -> None:
    write_data_set(tmp_path / "in")
    for name, definition in (("a", "rms"), ("b", "another")):
        path = tmp_path / "in" / "solutions" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**SOLUTION, "definition": definition}))
    carried = read_flashinfer_trace(tmp_path / "in", tmp_path / "FI")
    assert carried.solutions == ("FI/norm/rms: fused",)
    assert "unsupported solutions/b.json: is a solution of no definition" in what(carried)


def test_mixtures_of_experts_have_their_own_ratio_and_sampling_none(tmp_path: Path) -> None:
    write_data_set(tmp_path / "in", {**DEFINITION, "op_type": "moe"})
    read_flashinfer_trace(tmp_path / "in", tmp_path / "FI")
    (workload,) = load_problem(tmp_path / "FI" / "moe" / "rms").workloads
    assert workload.checks[0].required_matched_ratio == 0.95  # type: ignore[union-attr]
    write_data_set(tmp_path / "other", {**DEFINITION, "op_type": "sampling"})
    with pytest.raises(UnsupportedError, match="random draws"):
        read_flashinfer_trace(tmp_path / "other", tmp_path / "NONE")


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\n"])
def test_a_blob_that_was_not_fetched_is_unsupported(content: bytes, tmp_path: Path) -> None:
    write_data_set(tmp_path / "in")
    (tmp_path / "in" / BLOB).unlink()
    if content:
        (tmp_path / "in" / BLOB).write_bytes(content)
    with pytest.raises(UnsupportedError, match="fetch"):
        read_flashinfer_trace(tmp_path / "in", tmp_path / "FI")
    assert not (tmp_path / "FI").exists()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("inputs", "i", "path"), "../in/blob/x"),
        (("inputs", "i", "path"), "blob/../../x"),
        (("axes", "M"), 3),
        (("uuid",), "a/b"),
    ],
)
def test_a_broken_data_set_is_refused_whole(path: Any, value: Any, tmp_path: Path) -> None:
    workload = copy.deepcopy(WORKLOAD)
    target = workload
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    write_data_set(tmp_path / "in", DEFINITION, workload)
    with pytest.raises(InputError) as caught:
        read_flashinfer_trace(tmp_path / "in", tmp_path / "FI")
    assert "\n" not in str(caught.value) and not (tmp_path / "FI").exists()


PROBLEM = """\
schema: solbench.definition.v1
name: gathered
suite: own
axes:
  M: {type: var}
  H: {type: expr, expression: "max(M // 2, 1)"}
inputs:
  x: {shape: [M], dtype: float32}
  i: {shape: [H], dtype: int64}
  s: {shape: null, dtype: float32}
outputs:
  y: {shape: [H], dtype: float32}
  z: {shape: [H], dtype: float32}
"""
WORKLOADS = """\
schema: solbench.workloads.v1
workloads:
  - uuid: w0
    axes: {M: 8}
    inputs: {x: {type: normal}, i: {type: integer, high: M}, s: {type: constant, value: 2.0}}
    checks:
      - {type: numeric, output: y, atol: "1/M", rtol: 0.5}
      - {type: numeric, output: z, atol: 0.25, rtol: 0.75, required_matched_ratio: 0.5}
"""


@pytest.fixture
def own(tmp_path: Path) -> Problem:
    folder = tmp_path / "own" / "gathered"
    folder.mkdir(parents=True)
    (folder / "problem.yaml").write_text(PROBLEM)
    (folder / "workloads.yaml").write_text(WORKLOADS)
    (folder / "reference.py").write_text("def run(x, i, s):\n    return x[i] * s, x[i]\n")
    return load_problem(folder)


def test_what_another_form_cannot_say_is_frozen_or_named(own: Problem, tmp_path: Path) -> None:
    carried = write_sol_execbench([own], [], tmp_path / "out", Notes())
    text, folder = what(carried), tmp_path / "out" / "own" / "gathered"
    for part in (
        "axes.H: an expression that cannot be said there",
        "inputs.x: normal with std 1.0 becomes their random draw",
        "inputs.i: integer has no counterpart; one draw of it is frozen",
        "checks: their outputs share one tolerance; the loosest",
    ):
        assert part in text
    row = json.loads((folder / "workload.jsonl").read_text())
    assert row["axes"] == {"M": 8, "H": 4} and row["inputs"]["s"] == {"type": "scalar", "value": 2.0}
    assert row["tolerance"] == {
        "max_atol": 0.25, "max_rtol": 0.75, "required_matched_ratio": 0.5, "max_error_cap": None,
        "allow_negative_inf": False,
    }  # fmt: skip
    assert json.loads((folder / "definition.json").read_text())["axes"]["H"] == {"type": "var"}
    stored = load_file(folder / row["inputs"]["i"]["path"])["i"]
    drawn = draw(own.definition, own.workloads[0], {"M": 8, "H": 4}, 0)
    assert torch.equal(stored, drawn["i"])  # type: ignore[arg-type]


def test_a_dtype_that_another_form_lacks_is_unsupported(own: Problem, tmp_path: Path) -> None:
    (own.path / "problem.yaml").write_text(PROBLEM.replace("dtype: int64", "dtype: uint8"))
    with pytest.raises(UnsupportedError, match="i: sol-execbench has no dtype uint8"):
        write_sol_execbench([load_problem(own.path)], [], tmp_path / "out", Notes())
    assert not (tmp_path / "out").exists()


def trace(**changes: Any) -> Trace:
    samples = [{"process": 0, "warmups": 1, "event_s": [0.002, 0.004, 0.003], "clock_s": [1.0, 1.0, 1.0]}]
    slower = [{**samples[0], "event_s": [0.006, 0.005, 0.007]}]
    check = {"output": "y", "type": "numeric", "passed": True, "compared": 4, "mismatched": 0}
    fields = {
        "definition": "gathered", "workload": "w0", "workload_digest": "blake3:" + "0" * 64, "solution": "mine",
        "solution_digest": "blake3:" + "1" * 64, "target": "cpu", "status": "PASSED",
        "correctness": {"rounds": 1, "checks": [
            {**check, "max_absolute_error": 0.5, "max_relative_error": 0.125}, {**check, "max_absolute_error": 0.75},
        ]},
        "timing": {"method": "cpu_clock", "flush_bytes": 0, "stop_reason": "", "candidate": samples,
                   "baseline": slower},
    }  # fmt: skip
    return Trace.load({**fields, **changes}, "trace")


def test_traces_become_medians_and_worst_errors(own: Problem, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(trace().as_dict()) + "\n")
    carried = write_sol_execbench([own], read_traces(path, Notes()), tmp_path / "out", Notes())
    assert carried.traces == 1 and "traces: no time stamp is kept here" in what(carried)
    assert "traces: of solution mine, which is not exported itself" in what(carried)
    row = json.loads((tmp_path / "out/own/gathered/traces.jsonl").read_text())
    assert row["workload"] == json.loads((tmp_path / "out/own/gathered/workload.jsonl").read_text())
    evaluation = row["evaluation"]
    assert evaluation["status"] == "PASSED" and row["solution"] == "mine"
    assert evaluation["performance"] == {"latency_ms": 3.0, "reference_latency_ms": 6.0, "speedup_factor": 2.0}
    assert evaluation["correctness"]["max_absolute_error"] == 0.75
    assert evaluation["correctness"]["max_relative_error"] == 0.125


def test_a_measurement_set_is_read_as_a_whole(tmp_path: Path) -> None:
    path = ROOT / "measurements" / "cpu" / "epyc-turin-2-cores.jsonl"
    key = "AMD_AKA/torch2hip/l1n23_softmax"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    timed = [row for row in rows if row.get("problem") == key and row.get("timing")]
    notes = Notes()
    carried = write_sol_execbench(
        [load_problem(ROOT / "problems" / key)], read_traces(path, notes), tmp_path / "o", notes
    )
    written = (tmp_path / "o" / "torch2hip" / "l1n23_softmax" / "traces.jsonl").read_text().splitlines()
    assert carried.traces == len(written) == len(timed) > 0
    assert json.loads(written[0])["evaluation"]["environment"]["hardware"] == "AMD EPYC"
    left_out = [row["workload"] for row in rows if row["record"] == "omission"]
    assert left_out and all(f": {name}: not attempted" in what(carried) for name in left_out)


@pytest.mark.parametrize(
    ("spec", "theirs", "note"),
    [
        (
            {"languages": ["pytorch", "triton"]},
            {"language": "triton", "target_hardware": ["cpu"]},
            "only triton is named",
        ),
        ({"languages": ["pytorch"]}, {"languages": ["pytorch"], "target_hardware": ["LOCAL"]}, "cpu become LOCAL"),
        (
            {"languages": ["cpp"], "binding": "torch"},
            {"language": "cpp", "binding": "torch"},
            "cflags: has no counterpart",
        ),
        ({"languages": ["cpp"], "binding": "torch"}, None, "language cpp: sol-execbench has none"),
        ({"languages": ["cpp"], "binding": "c"}, None, "binding c: flashinfer-trace has none"),
        ({"languages": ["hip_cpp"], "binding": "torch"}, None, "language hip_cpp: sol-execbench has none"),
    ],
)
def test_solutions_the_other_way(spec: Any, theirs: Any, note: str, own: Problem, tmp_path: Path) -> None:
    name = "main.py" if "pytorch" in spec["languages"] else "main.cpp"
    fields = {
        "name": "mine", "definition": "gathered", "author": "me",
        "spec": {**spec, "entry_point": f"{name}::run", "compile_options": {"cflags": ["-O2"] * ("cpp" in name)}},
        "sources": [{"path": name, "content": "x = 1"}],
    }  # fmt: skip
    (own.path / "solutions" / "mine").mkdir(parents=True)
    (own.path / "solutions" / "mine" / "solution.json").write_text(json.dumps(fields))
    sol = "sol-execbench" in note or "LOCAL" in note
    write = write_sol_execbench if sol else write_flashinfer_trace
    carried = write([load_problem(own.path)], [], tmp_path / "out", Notes())
    assert note in what(carried)
    files = [tmp_path / "out/own/gathered/solution.json", tmp_path / "out/solutions/me/other/gathered/mine.json"]
    written = [json.loads(file.read_text()) for file in files if file.exists()]
    assert [value["spec"] | theirs for value in written] == [value["spec"] for value in written]
    assert len(written) == len(carried.solutions) == (theirs is not None)


@pytest.mark.parametrize(
    ("changes", "form", "reason"),
    [
        ({"timing": None}, "sol", "has no PASSED without a time"),
        ({"status": "UNSUPPORTED"}, "sol", "has no status UNSUPPORTED"),
        ({"status": "INCORRECT_NUMERICAL"}, "sol", "has no INCORRECT_NUMERICAL without its errors"),
        ({"status": "REWARD_HACK"}, "flashinfer", "has no status REWARD_HACK"),
        ({"workload": "w9"}, "sol", "trace of a workload that is not exported"),
        ({"definition": "other"}, "sol", "traces of a problem that is not exported"),
    ],
)
def test_a_trace_that_does_not_fit_is_named(changes: Any, form: str, reason: str, own: Problem, tmp_path: Path) -> None:
    if changes.get("status"):
        changes = {**changes, "timing": None, "correctness": None, "reason": "because"}
    write = write_sol_execbench if form == "sol" else write_flashinfer_trace
    carried = write([own], [Observed(trace(**changes))], tmp_path / "out", Notes())
    assert carried.traces == 0 and reason in what(carried)
    assert not list((tmp_path / "out").rglob("traces*"))


MODULE = """\
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.lin = nn.Linear(width, heads)
        self.norm = nn.BatchNorm1d(heads)

    def forward(self, x, scale):
        return torch.relu(self.norm(self.lin(x))) * scale


def get_inputs():
    return [torch.rand(8, 16), 2.0]


def get_init_inputs():
    return [16, 4]
"""


def module(tmp_path: Path, text: str = MODULE) -> Path:
    path = tmp_path / "level1" / "19_Net.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_kernelbench_module_is_a_function_of_inputs_and_weights(tmp_path: Path) -> None:
    carried = read_kernelbench([module(tmp_path)], tmp_path / "KB")
    assert carried.problems == ("KB/level1/19_Net",)
    problem = load_problem(tmp_path / "KB" / "level1" / "19_Net")
    definition = problem.definition
    assert list(definition.inputs) == ["x", "scale", "lin_weight", "lin_bias", "norm_weight", "norm_bias"]
    written = "norm.running_mean, norm.running_var, norm.num_batches_tracked: what a normalization in training writes"
    assert written in what(carried) and len(carried.notes) == 2
    assert "norm.bias: all zeros, as the constructor leaves them" in what(carried)
    roles = {name: spec.role for name, spec in definition.inputs.items() if name.endswith("bias")}
    assert roles == {"lin_bias": "weight", "norm_bias": "bias"} and definition.in_place == ()
    values = draw(definition, problem.workloads[0], {}, 3)
    assert not torch.equal(values["x"], draw(definition, problem.workloads[0], {}, 4)["x"])  # type: ignore[arg-type]
    before = {name: value.clone() for name, value in values.items() if isinstance(value, torch.Tensor)}
    output = named_outputs(definition, load_reference(definition)(*values.values()))["output"]
    hidden = values["x"] @ values["lin_weight"].T + values["lin_bias"]  # type: ignore[operator, union-attr]
    spread = hidden.var(0, unbiased=False)
    expected = torch.relu((hidden - hidden.mean(0)) / torch.sqrt(spread + 1e-5)) * 2
    torch.testing.assert_close(output, expected)
    assert all(torch.equal(values[name], value) for name, value in before.items())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("nn.BatchNorm1d(heads)", "nn.Dropout(0.5)", "forward is random: it calls bernoulli_"),
        ("* scale", "* torch.randn(1, device=x.device)", "forward is random: it calls randn"),
        ("import torch.nn as nn", "import torch.nn as nn\nimport not_here.too", "needs the package not_here"),
        ("return torch.relu", "return x.sum().item() * torch.relu", "does not run on the meta device"),
        ("2.0]", "'text']", "argument 1 of forward is a str"),
        ("self.lin = ", "self.table = torch.ones(3)\n        self.lin = ", "table is, or holds, a tensor"),
        ("self.lin = ", "self.tables = [torch.ones(3)]\n        self.lin = ", "tables is, or holds, a tensor"),
    ],
)
def test_a_module_that_is_no_function_says_why(old: str, new: str, reason: str, tmp_path: Path) -> None:
    assert old in MODULE and "unsupported" not in next(answers({"source": MODULE, "name": "m"}, tmp_path))
    answer = next(answers({"source": MODULE.replace(old, new), "name": "m"}, tmp_path))
    assert reason in answer["unsupported"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("torch.rand(8, 16)", "torch.rand(8, 16, dtype=torch.complex64)", "dtype complex64"),
        ("class Model(", "class Other(", "has no Model"),
        ("def get_inputs", "def run(x): ...\n\n\ndef get_inputs", "defines run itself"),
        (
            "import torch.nn as nn",
            "import torch.nn as nn\nimport os; os._exit(3)",
            "gave no answer (ended with exit code 3)",
        ),
        (
            "import torch.nn as nn",
            "import torch.nn as nn\nopen('PLACE', 'w')",
            "does not run on the meta device: REFUSED",
        ),
    ],
)
def test_a_module_that_cannot_be_a_function_is_unsupported(old: str, new: str, reason: str, tmp_path: Path) -> None:
    assert old in MODULE
    text = MODULE.replace(old, new).replace("PLACE", str(tmp_path / "written"))
    if "REFUSED" in reason:
        sandbox = isolation()
        if not sandbox.namespaces and not sandbox.landlock:
            pytest.skip("no namespaces and no Landlock here")
        # In namespaces that folder is not there.
        reason = reason.replace("REFUSED", "FileNotFoundError" if sandbox.namespaces else "PermissionError")
    with pytest.raises(UnsupportedError) as caught:
        read_kernelbench([module(tmp_path, text)], tmp_path / "KB")
    assert reason in str(caught.value) and not (tmp_path / "KB").exists() and not (tmp_path / "written").exists()


RECURRENT = """\
import torch
from torch import nn
from torch.distributions import Pareto


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell = nn.GRU(width, 5, num_layers=2, batch_first=True)
        self.mask = torch.nn.Buffer(torch.ones(4, 3, device="cuda").tril())
        self.act = lambda x: self.drop(torch.tanh(x))
        self.drop = nn.Dropout(0.0)

    def forward(self, x, h0):
        states, _ = self.cell(self.mask.unsqueeze(-1) * x, h0)
        return self.act(states).transpose(0, 2)


def get_inputs(**sizes):
    return [Pareto(0.5, 1.5).sample((4, 3, 6)).cuda(), torch.rand(2, 4, 5, device="cuda", dtype=torch.float32)]


def get_init_inputs():
    return [6]
"""


def test_a_module_may_name_a_gpu_and_draw_from_distributions(tmp_path: Path) -> None:
    read_kernelbench([module(tmp_path, RECURRENT)], tmp_path / "KB")
    problem = load_problem(tmp_path / "KB" / "level1" / "19_Net")
    values = draw(problem.definition, problem.workloads[0], {}, 0)
    assert values["x"].min() >= 0.5 and tuple(values["x"].shape) == (4, 3, 6)  # type: ignore[union-attr]
    cell = torch.nn.GRU(6, 5, num_layers=2, batch_first=True)
    cell.load_state_dict({key: values[f"cell_{key}"] for key in cell.state_dict()})
    masked = torch.ones(4, 3).tril().unsqueeze(-1) * values["x"]  # type: ignore[operator]
    with torch.no_grad():
        expected = torch.tanh(cell(masked, values["h0"])[0]).transpose(0, 2)
    (output,) = named_outputs(problem.definition, load_reference(problem.definition)(*values.values())).values()
    torch.testing.assert_close(output, expected)
    assert output.is_contiguous() and not expected.is_contiguous()


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("torch.zeros(4)", ["bias"]),
        ("torch.full((4,), 0.0)", []),  # more ways are not followed: the control then says what it sees
        ("nn.init.zeros_(torch.empty(4))", ["bias"]),
        ("nn.init.constant_(torch.empty(4), 0.0)", ["bias"]),
        ("nn.init.constant_(torch.empty(4), 0.5)", []),
        ("nn.init.normal_(torch.zeros(4))", []),
    ],
)
def test_zeros_are_those_of_the_last_write(made: str, found: list[str], tmp_path: Path) -> None:
    text = MODULE.replace("self.norm = nn.BatchNorm1d(heads)", f"self.bias = nn.Parameter({made})")
    text = text.replace("self.norm(self.lin(x))", "self.lin(x) + self.bias")
    assert next(answers({"source": text, "name": "m"}, tmp_path))["zeros"] == found


def test_what_forward_writes_is_in_place(tmp_path: Path) -> None:
    text = MODULE.replace("return torch.relu(self.norm(self.lin(x)))", "return torch.relu(x[:4].mul_(2)).clone()")
    carried = read_kernelbench([module(tmp_path, text)], tmp_path / "KB")
    assert "warning" in what(carried) and "x: forward writes to it; declared in_place" in what(carried)
    problem = load_problem(tmp_path / "KB" / "level1" / "19_Net")
    assert problem.definition.in_place == ("x",)
    values = draw(problem.definition, problem.workloads[0], {}, 0)
    before = values["x"].clone()  # type: ignore[union-attr]
    load_reference(problem.definition)(*values.values())
    assert torch.equal(values["x"][:4], 2 * before[:4]) and torch.equal(values["x"][4:], before[4:])  # type: ignore[index]


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("x[i] = 0", ("x",)),
        ("x[0][1] *= 2", ("x",)),
        ("x += 1", ("x",)),
        ("x.mul_(2)", ("x",)),
        ("torch.add(x, 1, out=x[0:1])", ("x",)),
        ("x[0], i[0] = 0, 0", ("x", "i")),
        ("y = x.clone(); y[0] = 0", ()),
        ("x = x.clone(); x[0] = 0", ()),
        ("x.float().__class__; x[0] == 0", ()),
    ],
)
def test_what_a_reference_writes_is_in_place(line: str, written: tuple[str, ...], tmp_path: Path) -> None:
    write_data_set(
        tmp_path / "in", {**DEFINITION, "reference": f"import torch\n\n\ndef run(x, i):\n    {line}\n    return x\n"}
    )
    carried = read_flashinfer_trace(tmp_path / "in", tmp_path / "FI")
    assert load_problem(tmp_path / "FI" / "norm" / "rms").definition.in_place == written
    assert (f"warning rms: {', '.join(written)}: the reference writes to it" in what(carried)) == bool(written)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("x / 1000", "y: its check accepts zeros (workload w0)"),  # 1e-2 is the tolerance
        ("x", ""),
        ("x * 0", ""),  # zeros are right
        ("x.view(3)", "its checks could not be tried with zeros (RuntimeError"),
        ("x, x", "its checks could not be tried with zeros (InputError"),
    ],
)
def test_a_check_that_accepts_zeros_is_named(
    result: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data_set(tmp_path / "in", {**DEFINITION, "reference": f"def run(x, i):\n    return {result}\n"})
    read_flashinfer_trace(tmp_path / "in", tmp_path / "FI")
    request = {"folders": [str(tmp_path / "FI" / "norm" / "rms")]}
    (text,) = zeros.answers(request, tmp_path)
    assert text is not None and text.startswith(said) and bool(text) == bool(said)
    monkeypatch.setattr(zeros, "LIMIT_BYTES", 39)  # x, i and y take 16 + 8 + 16
    assert list(zeros.answers(request, tmp_path)) == [None]


def test_large_problems_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zeros, "ask", lambda *_, **__: ([None, "y: its check accepts zeros", None], None))
    carried = zeros.with_warnings(Carried(("FI/a", "FI/b", "FI/c"), (), 0, ()), tmp_path / "FI")
    assert what(carried).splitlines() == [
        "warning FI/b: y: its check accepts zeros",
        "warning FI: 2 of 3 problems: too large to try their checks with zeros at the import",
    ]


@pytest.mark.slow
def test_a_reference_that_ends_its_process_hides_no_other(tmp_path: Path) -> None:
    write_data_set(tmp_path / "in", {**DEFINITION, "reference": "import os\n\n\ndef run(x, i):\n    os._exit(3)\n"})
    small = {**DEFINITION, "name": "small", "reference": "def run(x, i):\n    return x / 1000\n"}
    write_data_set(tmp_path / "in", small)
    carried = zeros.with_warnings(read_flashinfer_trace(tmp_path / "in", tmp_path / "FI"), tmp_path / "FI")
    assert [(note.where, note.what) for note in carried.notes if note.kind == "warning"] == [
        ("FI/norm/rms", "its checks could not be tried with zeros (ended with exit code 3)"),
        ("FI/norm/small", "y: its check accepts zeros (workload w0)"),
    ]


def test_every_output_of_a_module_is_checked(tmp_path: Path) -> None:
    old = "return torch.relu(self.norm(self.lin(x))) * scale"
    path = module(tmp_path, MODULE.replace(old, "return x * scale, x.argmax(-1)"))
    assert "first output only" in what(read_kernelbench([path], tmp_path / "KB"))
    (workload,) = load_problem(tmp_path / "KB" / "level1" / "19_Net").workloads
    assert [(check.type, getattr(check, "output")) for check in workload.checks] == [  # noqa: B009
        ("numeric", "output_0"), ("exact", "output_1"),
    ]  # fmt: skip


def test_a_broken_module_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = module(tmp_path, "def (:\n")
    for file in (path, tmp_path / "level1" / "none.py", tmp_path / "level1"):
        assert run(["import", "kernelbench", str(file), "--output", str(tmp_path / "KB")]) == 2
        assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "KB").exists()
    assert run(["import", "kernelbench", str(module(tmp_path)), str(path), "--output", str(tmp_path / "KB")]) == 2
    assert "two problems have this name" in capsys.readouterr().err
