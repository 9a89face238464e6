"""``solbench analyze``: what it prints and writes, and how it refuses."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from solar.hardware import MODELS
from solar.hardware import load as load_machine
from solbench import canonical, explain
from solbench.analysis import MANIFEST, Request, analyse, manifest, require_new, write
from solbench.analysis_process import answer
from solbench.cli import run
from solbench.errors import InputError, UndecidedError
from solbench.evaluate import namespaces
from solbench.store import Descriptor

ROOT = Path(__file__).resolve().parents[2]
PROBLEM = ["l1n23_softmax", "--workload", "aka-l1n23_softmax-w3", "--root", str(ROOT / "problems")]
MODULE = """
import torch
import torch.nn as nn
print("made\\x1b[2J")
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 8)
    def forward(self, x):
        return torch.relu(self.linear(x))
def get_inputs():
    return [torch.randn(16, 32)]
def get_init_inputs():
    return [32]
"""
FUNCTION = "import torch\ndef run(x): {body}\ndef get_inputs(): return [{inputs}]\n"
REQUIRED = {
    "target", "path", "coverage", "uncounted", "t_sol_s", "binds", "compute", "memory", "macs", "flops",
}  # fmt: skip


def module(folder: Path, text: str = MODULE) -> Path:
    path = folder / "given.py"
    path.write_text(text)
    return path


def request(file: Path, subject: str = "module", **fields: object) -> Request:
    return Request(subject, file.name, str(file), load_machine("gfx1200").to_dict(), **fields)


def artifacts(folder: Path, asked: Request) -> dict[str, bytes]:
    """What the other process writes, had in this one."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    assert answer(asked, out) is None
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def refusal(folder: Path, asked: Request) -> tuple[str, int]:
    out = folder / "out"
    out.mkdir(exist_ok=True)
    said = answer(asked, out)
    assert said is not None
    assert not list(out.iterdir())
    assert "\n" not in said["message"]
    return said["message"], said["exit_code"]


def test_a_problem_is_analysed_and_written(tmp_path, capsys):
    folder = tmp_path / "new" / "analysis"
    assert run(["analyze", *PROBLEM, "--target", "gfx1200", "--output", str(folder), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) >= REQUIRED
    assert {"engine", "mode", "ops", "rate_per_s", "seconds"} <= set(printed["compute"][0])
    assert {"live_bytes", "declared_bytes", "seconds"} <= set(printed["memory"])
    assert printed["memory"]["live_bytes"] == 2 * 4096 * 8192 * 4
    # Read and written once at 320 GB/s: what binds.
    assert printed["t_sol_s"] == pytest.approx(268435456 / 320e9)
    assert (printed["binds"], printed["coverage"], printed["attestation"]) == ("memory", "complete", "passed")
    written = {path.name: path.read_bytes() for path in folder.iterdir()}
    listed = json.loads(written.pop(MANIFEST))["files"]
    assert set(written) == set(listed) == {
        "operator_graph.yaml", "einsum_graph.yaml", "conversion-attestation.yaml", "solar-analysis.yaml",
    }  # fmt: skip
    for name, data in written.items():
        assert Descriptor.of(listed[name]["kind"], data).as_dict() == listed[name]
        assert canonical.loads(data)["kind"] == listed[name]["kind"]
        assert yaml.safe_load(data)["schema"] == canonical.loads(data)["schema"]
    assert canonical.loads(written["solar-analysis.yaml"]) == printed
    assert [path.name for path in folder.parent.iterdir()] == ["analysis"]


def test_a_folder_with_something_in_it_is_refused(tmp_path, capsys):
    (tmp_path / "kept").write_text("kept")
    assert run(["analyze", *PROBLEM, "--output", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"solbench: {tmp_path}: is there already and not empty; name a new folder\n"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    with pytest.raises(InputError, match="is no folder"):
        require_new(tmp_path / "kept")
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty", {"a.yaml": b'{"kind":"a"}'})
    assert {path.name for path in (tmp_path / "empty").iterdir()} == {"a.yaml", MANIFEST}


def test_a_write_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="File name too long"):
        write(tmp_path / "new", {"a.yaml": b'{"kind":"a"}', "b" * 300: b'{"kind":"b"}'})
    assert not list(tmp_path.iterdir())


def test_a_module_in_a_process_of_its_own(tmp_path, capsys):
    assert run(["analyze", str(module(tmp_path)), "--explain"]) == 0
    out, err = capsys.readouterr()
    assert "given.py on gfx1200, path aten" in out
    assert "attested: passed" in out
    assert "linear.weight" in out
    assert "\x1b" not in out
    assert err == "made\\x1b[2J\n"


@pytest.mark.parametrize(
    ("text", "reason", "timeout_s"),
    [
        ("import os; os._exit(7)", "given.py: the process ended with exit code 7 before the analysis was done", 300),
        ("import os; os._exit(0)", "given.py: the process left with exit code 0 before the analysis was done", 300),
        (
            "import os; open(os.environ['HOME'] + '/answers', 'w').write('null\\n'); os._exit(0)",
            "given.py: the process gave no answer that can be read",
            300,
        ),
        ("import os; os.kill(os.getpid(), 11)", "given.py: the process ended by SIGSEGV before", 300),
        (
            "import subprocess\nsubprocess.Popen(['sleep', '100'])\nwhile True: pass",
            "given.py: no analysis after 8 s",
            8,
        ),
    ],
)
def test_a_crash_a_hang_and_an_exit_are_one_line(tmp_path, text, reason, timeout_s):
    with pytest.raises(UndecidedError) as caught:
        analyse(request(module(tmp_path, text)), timeout_s)
    assert reason in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_file_may_write_nowhere(tmp_path, capsys):
    path = module(tmp_path, f"open({str(tmp_path / 'written')!r}, 'w')")
    code = run(["analyze", str(path), "--output", str(tmp_path / "out")])
    if (tmp_path / "written").exists():
        pytest.skip("no namespaces and no Landlock here")
    assert code == 2
    # In namespaces it sees its folder, read-only.
    refused = "PermissionError" if namespaces.missing() else "OSError: [Errno 30]"
    assert capsys.readouterr().err.startswith(f"solbench: {path}: at its top level: {refused}")
    assert [item.name for item in tmp_path.iterdir()] == ["given.py"]


@pytest.mark.parametrize(
    ("body", "inputs", "reason", "code"),
    [
        ("return torch.special.bessel_j0(x)", "torch.randn(4)", "no rule for this operator", 2),
        ("return x[x > 0]", "torch.randn(4)", "decides the result's shape", 2),
        ("return x[: int(x.sum())]", "torch.randn(4)", "needs the contents of a float32 tensor", 2),
        ("return x * 2", "torch.randn(4, dtype=torch.complex64)", "complex numbers are not supported", 2),
        ("return x + torch.rand_like(x)", "torch.randn(4)", "draws random numbers without a seed", 2),
        ("return x.add_(1)", "torch.randn(4)", "writes its input 'x', which is not declared in place", 2),
        ("return None", "torch.randn(4)", "an output is a tensor", 2),
        ("raise SystemExit(0)", "torch.randn(4)", "the call ends in sys.exit(0)", 2),
        ("return x", "no_such_name", "get_inputs: NameError: name 'no_such_name' is not defined", 2),
    ],
)
def test_what_cannot_be_analysed_says_why(tmp_path, body, inputs, reason, code):
    said, exit_code = refusal(tmp_path, request(module(tmp_path, FUNCTION.format(body=body, inputs=inputs))))
    assert reason in said
    assert "given.py: " in said
    assert exit_code == code


def test_the_same_file_gives_the_same_bytes_on_either_path(tmp_path):
    asked = request(module(tmp_path))
    first = artifacts(tmp_path, asked)
    assert artifacts(tmp_path, asked) == first
    assert str(tmp_path) not in "".join(data.decode() for data in first.values())
    other = artifacts(tmp_path, request(module(tmp_path), path="torchview"))
    assert json.loads(other["operator_graph.yaml"])["path"] == "torchview"
    assert json.loads(other["solar-analysis.yaml"])["t_sol_s"] == json.loads(first["solar-analysis.yaml"])["t_sol_s"]


def test_without_an_attestation_the_file_says_why(tmp_path):
    files = artifacts(tmp_path, request(module(tmp_path), attest=False))
    assert json.loads(files["conversion-attestation.yaml"]) == {
        "kind": "no-attestation", "schema": "solbench.no-attestation.v1", "reason": "not asked for",
    }  # fmt: skip
    analysis = json.loads(files["solar-analysis.yaml"])
    assert (analysis["attestation"], analysis["not_attested"]) == (None, "not asked for")


def test_attainable_traffic_is_written_when_asked(tmp_path, capsys):
    files = artifacts(tmp_path, request(module(tmp_path), attainable=True))
    assert json.loads(files["attainable-traffic.json"])["einsums"]
    assert "attainable-traffic.json" in json.loads(manifest(files))["files"]
    assert run(["analyze", *PROBLEM, "--attainable"]) == 2
    assert "needs --output DIR, or --json" in capsys.readouterr().err


# An einsum graph that was written before.


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder as an analysis leaves it."""
    folder = tmp_path / "before"
    write(folder, artifacts(tmp_path, request(module(tmp_path))))
    shutil.rmtree(tmp_path / "out")
    return folder


def test_a_program_is_bounded_without_its_reference(tmp_path, written, capsys):
    assert run(["analyze", "--program", str(written / "einsum_graph.yaml"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    before = json.loads((written / "solar-analysis.yaml").read_bytes())
    assert printed["t_sol_s"] == before["t_sol_s"]
    assert printed["not_attested"] == "the program was given without its reference"


def edited(folder: Path, edit: object) -> Path:
    """The program with a change by hand, away from its manifest."""
    value = json.loads((folder / "einsum_graph.yaml").read_bytes())
    edit(value)
    path = folder.parent / "edited.yaml"
    path.write_text(json.dumps(value))
    return path


def _einsum(value: dict) -> dict:
    return next(op for op in value["ops"] if op["kind"] == "einsum")


def _bad_rank(value: dict) -> None:
    _einsum(value)["attributes"]["operands"][0].pop()


def _cycle(value: dict) -> None:
    value["ops"].reverse()


def _missing_operand(value: dict) -> None:
    del value["tensors"][_einsum(value)["operands"][0]]


def _missing_field(value: dict) -> None:
    del _einsum(value)["function"]


def _other_schema(value: dict) -> None:
    value["schema"] = "solar.einsum-graph.v0"


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (_bad_rank, "has rank 2, its map 1"),
        (_cycle, "is used before it is defined (a cycle, or wrong order)"),
        (_missing_operand, "unknown "),
        (_missing_field, "'function'"),
        (_other_schema, "expected 'solar.einsum-graph.v1'"),
        (lambda value: value.update(kind="operator-graph"), "not an einsum graph"),
    ],
)
def test_a_program_edited_by_hand(tmp_path, written, edit, reason):
    said, code = refusal(tmp_path, request(edited(written, edit), "program"))
    assert reason in said
    assert "edited.yaml: " in said
    assert code == 2


def test_a_program_that_is_not_what_its_manifest_lists(tmp_path, written):
    path = written / "einsum_graph.yaml"
    assert artifacts(tmp_path, request(path, "program"))
    shutil.rmtree(tmp_path / "out")
    path.write_bytes(path.read_bytes().replace(b"relu", b"sqrt"))
    said, code = refusal(tmp_path, request(path, "program"))
    assert "is not the file that manifest.yaml beside it lists" in said
    assert code == 2
    path.write_text("{")
    (written / MANIFEST).unlink()
    assert refusal(tmp_path, request(path, "program"))[1] == 2


def test_a_folder_that_cannot_be_made_is_bad_input(tmp_path):
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "out"
    with pytest.raises(InputError, match=f"^{folder}: cannot be made: "):
        write(folder, {})
    write(tmp_path / "out", {})
    assert [item.name for item in (tmp_path / "out").iterdir()] == ["manifest.yaml"]


# Arguments.


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "give either PROBLEM or FILE.py, or --program FILE"),
        (["no_such_problem", "--root", str(ROOT / "problems")], "no_such_problem: no such problem"),
        (["none.py"], "none.py: no such file"),
        (["--program", "none.yaml"], "none.yaml: no such file"),
        ([PROBLEM[0], *PROBLEM[3:]], "--workload: which one? AMD_AKA/torch2hip/l1n23_softmax has aka-l1n23_softmax-w0"),
        ([*PROBLEM, "--workload", "w9"], "--workload w9: no such workload"),
        ([str(Path(__file__)), "--workload", "w0"], "its sizes are those of get_inputs()"),
        ([*PROBLEM, "--target", "gfx9"], "gfx9: no such machine model; there are gfx1200"),
        ([*PROBLEM, "--target", "gfx9"], ", cpu, or give a file"),
    ],
)
def test_arguments_that_do_not_fit(arguments, reason, capsys):
    assert run(["analyze", *arguments]) == 2
    out, err = capsys.readouterr()
    assert reason in err
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("ops_per_clock: 32768", "ops_per_clock: 0", "engines.matrix.float16.ops_per_clock: 0 is not positive"),
        ("ops_per_clock: 32768", "ops_per_clock: -1", "engines.matrix.float16.ops_per_clock: -1 is not positive"),
        ("      ops_per_clock: 32768\n", "", "engines.matrix.float16.ops_per_clock: missing"),
    ],
)
def test_a_machine_model_without_a_positive_rate(tmp_path, old, new, reason, capsys):
    text = (MODELS / "gfx1200.yaml").read_text()
    assert old in text
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(old, new, 1))
    assert run(["analyze", *PROBLEM, "--target", str(path), "--output", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"solbench: {path}: {reason}")
    assert not (tmp_path / "out").exists()


def test_a_machine_model_of_ones_own_is_taken(tmp_path, written, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text((MODELS / "gfx1200.yaml").read_text().replace("name: gfx1200", "name: mine"))
    assert run(["analyze", "--program", str(written / "einsum_graph.yaml"), "--target", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target"] == "mine"


# Tables.


def _bound(**fields: object) -> dict:
    base = {
        "subject": {"module": "m\x1b.py"}, "target": "t", "path": "aten", "coverage": "complete", "uncounted": [],
        "attestation": "passed", "not_attested": None, "t_sol_s": 3e-6, "binds": "memory", "macs": 10,
        "memory": {"seconds": 3e-6, "live_bytes": 300, "bandwidth_bytes_per_s": 1e8, "absorbed_write_bytes": 0},
        "compute": [{"engine": "valu", "mode": "elementwise", "ops": 10.0, "rate_per_s": 1e7, "seconds": 1e-6}],
        "terms": [{"op": "a", "kind": "map", "function": "exp", "engine": "valu", "mode": "elementwise", "work": 10.0}],
        "tensors": [
            {"name": "x", "role": "input", "live_bytes": 200, "declared_bytes": 200},
            {"name": "output", "role": "output", "live_bytes": 100, "declared_bytes": 100},
        ],
        "assumptions": ["a\x1b[31m"], "looseness": [], "notes": [],
    }  # fmt: skip
    return {**base, **fields}


_PROGRAM = {
    "inputs": [["x", "in.x"]], "outputs": [["output", "b"]],
    "ops": [
        {"name": "v", "kind": "view", "operands": ["in.x"], "outputs": ["w"]},
        {"name": "a", "kind": "map", "operands": ["w"], "outputs": ["u"]},
        {"name": "r", "kind": "view", "operands": ["u"], "outputs": ["b"]},
    ],
}  # fmt: skip


def test_bytes_belong_to_the_operation_behind_the_views():
    assert explain.bytes_by_operation(_bound(), _PROGRAM) == {"a": 300}
    passed = {**_PROGRAM, "ops": _PROGRAM["ops"][:1], "outputs": [["output", "w"]]}
    assert explain.bytes_by_operation(_bound(terms=[]), passed) == {"": 300}


def test_what_would_have_to_change_when_memory_binds():
    lines = list(explain.changes(_bound()))
    # x is 2 of 3 µs; at half its width 1 µs less.
    assert lines[0] == "fewer bytes: x is 66.7% of them (200 B read); in a dtype of half the width T_SOL is 2 µs"
    assert lines[-1] == "below 1 µs (33.3% of T_SOL) valu binds"


@pytest.mark.parametrize(
    ("mode", "rates", "change"),
    [
        # 4 µs at 1e7 a second would be 2 µs in float16; memory takes 3 µs.
        ("float32", {"float32": 1e7, "float16": 2e7}, "in one product of float16 (2 times as fast) T_SOL is 3 µs"),
        # One product instead of three; float32 would be slower.
        ("float16*3", {"float32": 5e6, "float16": 2e7}, "in one product of float16 (3 times as fast) T_SOL is 3 µs"),
    ],
)
def test_what_would_have_to_change_when_an_engine_binds(mode, rates, change):
    rate_per_s = rates[mode.partition("*")[0]]
    hardware = {"engines": {"valu": {name: {"published_ops_per_s": rate} for name, rate in rates.items()}}}
    compute = [{"engine": "valu", "mode": mode, "ops": 4e-6 * rate_per_s, "rate_per_s": rate_per_s, "seconds": 4e-6}]
    terms = [{"op": "a", "kind": "einsum", "function": "matmul", "engine": "valu", "mode": mode}]
    terms[0]["work"] = compute[0]["ops"]
    lines = list(explain.changes(_bound(binds="valu", t_sol_s=4e-6, compute=compute, terms=terms, hardware=hardware)))
    assert lines[0] == "fewer operations: a (matmul): 100 % of valu's time"
    assert change in lines[1]
    assert lines[-1] == "below 3 µs (75.0% of T_SOL) memory binds"


def test_operations_that_cost_the_same_are_one_line():
    compute = [{"engine": "valu", "mode": "elementwise", "ops": 40.0, "rate_per_s": 1e7, "seconds": 4e-6}]
    terms = [
        {"op": name, "kind": "map", "function": function, "engine": "valu", "mode": "elementwise", "work": work}
        for name, function, work in (("a", "mul", 12.0), ("b", "exp", 9.0), ("c", "exp", 9.0), ("d", "exp", 10.0))
    ]
    hardware = {"engines": {"valu": {"float32": {"published_ops_per_s": 1e7}}}}
    lines = list(explain.changes(_bound(binds="valu", t_sol_s=4e-6, compute=compute, terms=terms, hardware=hardware)))
    assert lines[:3] == [
        "fewer operations: b and 1 like it (exp): 45.0% of valu's time",
        "fewer operations: a (mul): 30.0% of valu's time",
        "fewer operations: d (exp): 25.0% of valu's time",
    ]


def test_tables_are_safe_on_a_terminal(capsys):
    explain.print_tables(_bound(), _PROGRAM, sys.stdout, 100)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "m\\x1b.py on t" in out
    assert "a\\x1b[31m" in out


def test_partial_coverage_is_named():
    lines = list(explain.heading(_bound(coverage="partial", uncounted=["qr"], attestation=None, not_attested="why")))
    assert lines[2:] == ["coverage partial: not counted: qr", "not attested: why"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.5, "2.5 s"), (1.2e-3, "1.2 ms"), (999e-9, "999 ns"), (5e-12, "0.005 ns"), (0.0, "0 ns"), (1234.4, "1234 s")],
)
def test_times_have_a_fitting_unit(value, text):
    assert explain.seconds(value) == text
