"""Importing and exporting: what comes back, what is named as lost, what is refused."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from solbench.cli import run
from solbench.corpus.exchange.notes import Carried, Notes
from solbench.corpus.exchange.sol_execbench import read_sol_execbench, write_sol_execbench
from solbench.corpus.load import Problem, load_corpus, load_problem
from solbench.errors import SolbenchError, UnsupportedError
from solbench.inputs import draw

DEFINITION: dict[str, Any] = {
    "name": "scaled",
    "op_type": "elementwise",
    "axes": {
        "H": {"type": "expr", "expression": "M // 2 + N"},
        "M": {"type": "var", "description": "rows"},
        "N": {"type": "const", "value": 4},
    },
    "inputs": {
        "x": {"shape": ["M", "N"], "dtype": "float32", "description": "left"},
        "w": {"shape": ["H"], "dtype": "bfloat16"},
        "a": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["M", "4"], "dtype": "float32"}, "z": {"shape": [], "dtype": "float32"}},
    "reference": "import torch\r\n\n\ndef run(x, w, a):\n    return x * a, w.float().sum()  # \u00e9\n",
    "hf_id": "some/model",
}
TOLERANCE = {
    "max_atol": 0.5, "max_rtol": 0.25, "required_matched_ratio": 0.9, "max_error_cap": 2.0, "allow_negative_inf": True,
}  # fmt: skip
WORKLOAD: dict[str, Any] = {
    "uuid": "w0",
    "axes": {"M": 2},
    "inputs": {
        "x": {"type": "safetensors", "path": "data/x.safetensors", "tensor_key": "k"},
        "w": {"type": "random"},
        "a": {"type": "scalar", "value": 2.5},
    },
    "tolerance": TOLERANCE,
}
SOLUTION: dict[str, Any] = {
    "name": "native",
    "definition": "scaled",
    "author": "someone",
    "spec": {
        "languages": ["cuda_cpp"],
        "target_hardware": ["B200"],
        "entry_point": "src/main.cu::run",
        "dependencies": ["cub"],
        "destination_passing_style": False,
        "binding": "torch",
        "compile_options": {"cflags": ["-O2"], "cuda_cflags": ["-O3"], "ld_flags": []},
    },
    "sources": [{"path": "src/main.cu", "content": "// one\n"}, {"path": "src/a.h", "content": "\t\u2192\r\n"}],
}

Write = Callable[..., Path]


def write_sol(folder: Path, definition: Any, workloads: list[Any], *solutions: Any) -> None:
    folder.mkdir(parents=True)
    (folder / "definition.json").write_text(json.dumps(definition))
    (folder / "workload.jsonl").write_text("".join(json.dumps(row) + "\n" for row in workloads))
    if len(solutions) == 1:
        (folder / "solution.json").write_text(json.dumps(solutions[0]))
    elif solutions:
        (folder / "solutions").mkdir()
        for number, solution in enumerate(solutions):
            (folder / "solutions" / f"{number}.json").write_text(json.dumps(solution))


def write_flashinfer(root: Path, definition: Any, workloads: list[Any], *solutions: Any) -> None:
    kind, name = definition["op_type"], definition["name"]
    rows = [{"definition": name, "workload": row, "solution": None, "evaluation": None} for row in workloads]
    for path, text in (
        (f"definitions/{kind}/{name}.json", json.dumps(definition)),
        (f"workloads/{kind}/{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows)),
        *((f"solutions/{s['author']}/{kind}/{name}/{s['name']}.json", json.dumps(s)) for s in solutions),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def store_x(path: Path, rows: int = 2) -> torch.Tensor:
    path.parent.mkdir(parents=True, exist_ok=True)
    x = torch.arange(4.0 * rows).reshape(rows, 4)
    save_file({"k": x}, path)
    return x


def export_sol(corpora: Path, output: Path) -> Carried:
    return write_sol_execbench(load_corpus(corpora), [], output, Notes())


def what(carried: Carried) -> str:
    return "\n".join(f"{note.kind} {note.where}: {note.what}" for note in carried.notes)


def only(corpora: Path) -> Problem:
    (problem,) = load_corpus(corpora)
    return problem


@pytest.fixture
def sol(tmp_path: Path) -> Path:
    folder = tmp_path / "source" / "L1" / "scaled"
    write_sol(folder, DEFINITION, [WORKLOAD], SOLUTION)
    store_x(folder / "data" / "x.safetensors")
    return tmp_path / "source"


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    (tmp_path / "corpora").mkdir()
    return tmp_path / "corpora"


def test_sol_execbench_comes_back_whole(sol: Path, corpora: Path, tmp_path: Path) -> None:
    carried = read_sol_execbench(sol, corpora / "SOL")
    assert (carried.problems, carried.solutions) == (("SOL/L1/scaled",), ("SOL/L1/scaled: native",))
    assert carried.notes == ()
    problem = only(corpora)
    assert problem.definition.reference == DEFINITION["reference"]
    axes = problem.definition.resolve_axes({"M": 2}, "")
    drawn = draw(problem.definition, problem.workloads[0], axes, 0, folder=problem.path)
    assert torch.equal(drawn["x"], torch.arange(8.0).reshape(2, 4)) and drawn["a"] == 2.5  # type: ignore[arg-type]
    assert tuple(drawn["w"].shape) == (5,)  # type: ignore[union-attr]
    exported = export_sol(corpora, tmp_path / "out")
    assert exported.notes == ()
    folder = tmp_path / "out" / "L1" / "scaled"
    assert json.loads((folder / "definition.json").read_text()) == DEFINITION
    assert json.loads((folder / "workload.jsonl").read_text()) == WORKLOAD
    assert json.loads((folder / "solution.json").read_text()) == SOLUTION
    assert (folder / "data/x.safetensors").read_bytes() == (sol / "L1/scaled/data/x.safetensors").read_bytes()


AXES = st.dictionaries(
    st.from_regex(r"[A-Z][A-Za-z0-9_]{0,6}", fullmatch=True),
    st.one_of(
        st.fixed_dictionaries({"type": st.just("const"), "value": st.integers(1, 2**40)}),
        st.fixed_dictionaries({"type": st.just("var")}, optional={"description": st.text(max_size=20)}),
    ),
    min_size=1,
    max_size=4,
)
DTYPES = st.sampled_from([
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2", "int64", "int32",
    "int16", "int8", "bool",
])  # fmt: skip


@st.composite
def foreign(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A Definition and workloads in SOL-ExecBench's form."""
    axes = draw(AXES)
    names = list(axes)
    term = st.sampled_from([*names, "1", "3", "64"])
    operator = st.sampled_from(["+", "*"])
    for number in range(draw(st.integers(0, 2))):
        text = f"({draw(term)} {draw(operator)} {draw(term)}) // {draw(st.integers(1, 9))}"
        axes[f"e{number}"] = {"type": "expr", "expression": text}
    shape = st.lists(st.sampled_from([*axes, "1", "128"]), max_size=3)
    spec = st.fixed_dictionaries({"shape": shape, "dtype": DTYPES}, optional={"description": st.text(max_size=20)})
    inputs = {f"x{n}": draw(spec) for n in range(draw(st.integers(0, 3)))}
    if draw(st.booleans()):
        inputs["s"] = {"shape": None, "dtype": "float32"}
    tolerance = st.fixed_dictionaries({
        "max_atol": st.floats(0, 1e3), "max_rtol": st.floats(0, 1e3), "required_matched_ratio": st.floats(0.001, 1.0),
        "max_error_cap": st.none() | st.floats(1e-9, 1e9), "allow_negative_inf": st.booleans(),
    })  # fmt: skip
    definition = {
        "name": draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)),
        "op_type": draw(st.text(min_size=1, max_size=20)),
        "axes": axes,
        "inputs": inputs,
        "outputs": {f"y{n}": draw(spec) for n in range(draw(st.integers(1, 2)))},
        "reference": f"def run({', '.join(inputs)}):\n    return {draw(st.text(max_size=30))!r}\n",
        "description": draw(st.text(max_size=40)),
    }
    workloads = [
        {
            "uuid": f"w{number}",
            "axes": {name: draw(st.integers(1, 10**6)) for name in names if axes[name]["type"] == "var"},
            "inputs": {
                name: {"type": "scalar", "value": draw(st.floats(allow_nan=False, allow_infinity=False))}
                if name == "s"
                else {"type": "random"}
                for name in inputs
            },
            "tolerance": draw(tolerance),
        }
        for number in range(draw(st.integers(1, 3)))
    ]
    return definition, workloads


@settings(max_examples=60, deadline=None, derandomize=True)
@given(foreign())
def test_any_definition_comes_back_whole(pair: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    definition, workloads = pair
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "corpora").mkdir()
        write_sol(root / "source" / "L1" / "p", definition, workloads)
        assert read_sol_execbench(root / "source", root / "corpora" / "C").notes == ()
        folder = root / "out" / "L1" / definition["name"]
        assert export_sol(root / "corpora", root / "out").notes == ()
        assert json.loads((folder / "definition.json").read_text()) == definition
        assert [json.loads(line) for line in (folder / "workload.jsonl").read_text().splitlines()] == workloads


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


JSON = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 2**70), st.text(max_size=5), st.just([]), st.just({}), st.just([[1]]),
    st.just({"type": "custom"}), st.just({"type": "safetensors", "path": "../x", "tensor_key": "k"}),
    st.just("a\ud800"),
)  # fmt: skip


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_any_broken_file_is_one_line(data: st.DataObject) -> None:
    documents = copy.deepcopy([DEFINITION, WORKLOAD, SOLUTION])
    place = data.draw(st.sampled_from([path for path in places(documents) if len(path) > 1]))
    target: Any = documents
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = data.draw(JSON)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_sol(root / "in" / "p", documents[0], [documents[1]], documents[2])
        store_x(root / "in" / "p" / "data" / "x.safetensors")
        try:
            read_sol_execbench(root / "in", root / "C")
        except SolbenchError as error:
            assert "\n" not in str(error) and error.exit_code in (2, 4)
            assert sorted(path.name for path in root.iterdir()) == ["in"]
        else:
            assert list((root / "C").iterdir())


def test_axes_keep_their_order_where_it_may_stay(sol: Path, corpora: Path) -> None:
    read_sol_execbench(sol, corpora / "LATE")
    assert list(only(corpora).definition.axes) == ["M", "N", "H"]
    axes = {"M": {"type": "var"}, "H": {"type": "expr", "expression": "M * 2"}, "N": {"type": "const", "value": 4}}
    (sol / "L1/scaled/definition.json").write_text(json.dumps({**DEFINITION, "axes": axes}))
    (sol / "L1/scaled/workload.jsonl").write_text(json.dumps({**WORKLOAD, "inputs": INPUTS}))
    read_sol_execbench(sol, corpora.with_name("other"))
    assert list(load_problem(corpora.with_name("other") / "L1" / "scaled").definition.axes) == ["M", "H", "N"]


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"op_type": None}, "loss L1/scaled: op_type: null becomes 'other'"),
        ({"constraints": ["M > 1"]}, "loss L1/scaled: constraints: has no counterpart here; dropped"),
    ],
)
def test_a_loss_of_a_definition_is_named(change: dict[str, Any], note: str, sol: Path, corpora: Path) -> None:
    (sol / "L1/scaled/definition.json").write_text(json.dumps({**DEFINITION, **change}))
    assert what(read_sol_execbench(sol, corpora / "SOL")) == note


def test_files_that_are_left_behind_are_named(sol: Path, corpora: Path) -> None:
    for name in ("config.json", "notes.txt"):
        (sol / "L1/scaled" / name).write_text("{}")
    (sol / "L1/scaled/reference.py").write_text("def run(x, w, a):\n    return x, a\n")
    text = what(read_sol_execbench(sol, corpora / "SOL"))
    assert text.count("\n") == 2
    for part in ("config.json: settings", "notes.txt: is no file", "reference.py: differs"):
        assert f"loss L1/scaled: {part}" in text


@pytest.mark.parametrize(
    ("dtype", "reason"),
    [
        ("float4_e2m1", "PyTorch has no such dtype"),
        ("complex64", "known are bfloat16, bool"),
        ("a\nb\x1b", "known are bfloat16, bool"),
    ],
)
def test_an_unsupported_dtype_leaves_the_problem_out(dtype: str, reason: str, sol: Path, corpora: Path) -> None:
    other = {**DEFINITION, "name": "other", "inputs": {**DEFINITION["inputs"], "w": {"shape": ["H"], "dtype": dtype}}}
    write_sol(sol / "L1" / "other", other, [WORKLOAD])
    carried = read_sol_execbench(sol, corpora / "SOL")
    assert carried.problems == ("SOL/L1/scaled",)
    shown = dtype.encode("unicode_escape").decode()
    assert what(carried).splitlines()[0].startswith(f"unsupported L1/other: inputs.w: dtype {shown}: {reason}")
    with pytest.raises(UnsupportedError, match=r"no problem to import; other: inputs.w: dtype "):
        read_sol_execbench(sol / "L1" / "other", corpora / "NONE")
    assert not (corpora / "NONE").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"languages": ["cute_dsl"]}, "language cute_dsl"),
        ({"languages": ["cuda_cpp", "cutlass"]}, "language cutlass"),
        ({"binding": "tvm-ffi"}, "binding tvm-ffi"),
        ({"entry_point": "src/a.h::run"}, "entry point in 'src/a.h'"),
    ],
)
def test_a_solution_that_does_not_fit_is_left_out(change: Any, reason: str, sol: Path, corpora: Path) -> None:
    solution = {**SOLUTION, "spec": {**SOLUTION["spec"], **change}}
    (sol / "L1/scaled/solution.json").write_text(json.dumps(solution))
    carried = read_sol_execbench(sol, corpora / "SOL")
    assert carried.solutions == () and f"unsupported L1/scaled: solution.json: {reason}" in what(carried)


def test_older_solutions_have_names_and_languages_of_their_own(sol: Path, corpora: Path, tmp_path: Path) -> None:
    folder = sol / "L1/scaled"
    (folder / "solution.json").unlink()
    spec = {**SOLUTION["spec"], "language": "cuda", "pip_packages": ["some"], "entry_point": "src/main.cpp::run"}
    del spec["languages"]
    sources = [*SOLUTION["sources"], {"path": "src/main.cpp", "content": "// binds the kernel\n"}]
    (folder / "solution_cuda.json").write_text(json.dumps({**SOLUTION, "spec": spec, "sources": sources}))
    text = what(read_sol_execbench(sol, corpora / "SOL"))
    assert text == "loss L1/scaled: solution_cuda.json: spec: pip_packages: has no counterpart here; dropped"
    export_sol(corpora, tmp_path / "out")
    exported = json.loads((tmp_path / "out" / "L1/scaled/solution.json").read_text())
    assert exported["spec"]["languages"] == ["cuda_cpp"]


def test_a_scalar_from_the_input_function_leaves_the_workload_out(sol: Path, corpora: Path) -> None:
    reference = DEFINITION["reference"] + "\n\ndef make(axes, device):\n    return {}\n"
    definition = {**DEFINITION, "reference": reference, "custom_inputs_entrypoint": "make"}
    rows = [WORKLOAD, {**WORKLOAD, "uuid": "w1", "inputs": {name: {"type": "custom"} for name in WORKLOAD["inputs"]}}]
    (sol / "L1/scaled/definition.json").write_text(json.dumps(definition))
    (sol / "L1/scaled/workload.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = what(read_sol_execbench(sol, corpora / "SOL"))
    assert "inputs.a: a Python scalar from the input function" in text and text.startswith("unsupported L1/scaled")
    assert [workload.uuid for workload in only(corpora).workloads] == ["w0"]


def test_remarks_in_a_tolerance_are_dropped(sol: Path, corpora: Path) -> None:
    row = {**WORKLOAD, "tolerance": {**TOLERANCE, "_provenance": "ten seeds"}}
    (sol / "L1/scaled/workload.jsonl").write_text(json.dumps(row))
    text = what(read_sol_execbench(sol, corpora / "SOL"))
    assert "tolerance._provenance: is a remark; dropped" in text and text.count("\n") == 0


def test_native_defaults_are_written_out(sol: Path, corpora: Path) -> None:
    spec = {key: value for key, value in SOLUTION["spec"].items() if key != "destination_passing_style"}
    (sol / "L1/scaled/solution.json").write_text(json.dumps({**SOLUTION, "spec": {**spec, "compile_options": None}}))
    read_sol_execbench(sol, corpora / "SOL")
    (solution,) = only(corpora).solutions
    assert solution.spec.destination_passing_style
    assert solution.spec.compile_options.cuda_cflags == ("-O3", "--use_fast_math")
    assert solution.spec.compile_options.ld_flags == ("-lcuda",)


def hostile_path(sol: Path, path: str) -> None:
    row = copy.deepcopy(WORKLOAD)
    row["inputs"]["x"]["path"] = path
    (sol / "L1/scaled/workload.jsonl").write_text(json.dumps(row))


def hostile_source(sol: Path, path: str) -> None:
    # Of a language that would only be left out otherwise.
    solution = {**SOLUTION, "spec": {**SOLUTION["spec"], "languages": ["cutlass"]}}
    solution["sources"] = [*SOLUTION["sources"], {"path": path, "content": "x"}]
    (sol / "L1/scaled/solution.json").write_text(json.dumps(solution))


def huge(sol: Path) -> None:
    with (sol / "L1/scaled/definition.json").open("ab") as file:
        file.truncate(9 * 2**20)


def huge_tensor(sol: Path) -> None:
    with (sol / "L1/scaled/data/x.safetensors").open("ab") as file:
        file.truncate(4 * 2**30 + 1)


def twice(sol: Path) -> None:
    write_sol(sol / "L1" / "copy", {**DEFINITION, "name": "Scaled"}, [{**WORKLOAD, "inputs": INPUTS}])


INPUTS = {"x": {"type": "random"}, "w": {"type": "random"}, "a": {"type": "scalar", "value": 1}}
HOSTILE: list[tuple[str, Callable[[Path], object], str]] = [
    ("absolute", lambda sol: hostile_path(sol, "/etc/passwd"), "'/etc/passwd' is not a plain relative path"),
    ("parent", lambda sol: hostile_path(sol, "data/../../../x"), "is not a plain relative path"),
    ("ours", lambda sol: hostile_path(sol, "workload.jsonl"), "is not a safetensors file"),
    ("control", lambda sol: hostile_path(sol, "data/\n"), "is not a plain relative path"),
    ("long", lambda sol: hostile_path(sol, "x" * 300), "is not a plain relative path"),
    ("source", lambda sol: hostile_source(sol, "../x.cu"), "is not a plain relative path"),
    ("hook", lambda sol: hostile_source(sol, "sitecustomize.py"), "start-up hook"),
    ("link", lambda sol: (sol / "L1/link").symlink_to("/etc"), "is a symbolic link"),
    ("file link", lambda sol: (sol / "L1/scaled/reference.py").symlink_to("/etc/passwd"), "is a symbolic link"),
    ("huge", huge, "is longer than"),
    ("huge tensor", huge_tensor, "is longer than"),
    ("name", lambda sol: rename(sol, "../../x"), "name"),
    ("device", lambda sol: rename(sol, "con\n"), "name"),
    ("twice", twice, "two problems have this name"),
    ("uuid", lambda sol: double(sol), "'w0' occurs twice"),
    ("shape", lambda sol: store_x(sol / "L1/scaled/data/x.safetensors", 3), "holds F32 [3, 4], declared is"),
    ("key", lambda sol: save_file({"j": torch.ones(2, 4)}, sol / "L1/scaled/data/x.safetensors"), "no tensor 'k'"),
]


def rename(sol: Path, name: str) -> None:
    (sol / "L1/scaled/definition.json").write_text(json.dumps({**DEFINITION, "name": name}))


def double(sol: Path) -> None:
    (sol / "L1/scaled/workload.jsonl").write_text(f"{json.dumps(WORKLOAD)}\n{json.dumps(WORKLOAD)}\n")


@pytest.mark.parametrize(("case", "spoil", "message"), HOSTILE, ids=[row[0] for row in HOSTILE])
def test_what_breaks_a_rule_is_one_line_and_nothing_is_written(
    case: str,
    spoil: Callable[[Path], object],
    message: str,
    sol: Path,
    corpora: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoil(sol)
    assert run(["import", "sol-execbench", str(sol), "--output", str(corpora / "SOL")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and message in error
    assert list(corpora.iterdir()) == []


def test_an_existing_output_is_refused(sol: Path, corpora: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (corpora / "SOL").mkdir()
    assert run(["import", "sol-execbench", str(sol), "--output", str(corpora / "SOL")]) == 2
    assert run(["import", "sol-execbench", str(sol), "--output", str(corpora / "no" / "SOL")]) == 2
    assert capsys.readouterr().err.count("\n") == 2 and list((corpora / "SOL").iterdir()) == []


def test_the_command_prints_notes_and_counts(
    sol: Path, corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (sol / "L1/scaled/config.json").write_text("{}")
    assert run(["import", "sol-execbench", str(sol), "--output", str(corpora / "SOL")]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("loss         L1/scaled: config.json")
    assert last.endswith("SOL: 1 problems, 1 solutions, 0 traces; 1 losses, 0 warnings, 0 unsupported")
    arguments = [
        "export",
        "sol-execbench",
        "scaled",
        "--root",
        str(corpora),
        "--output",
        str(tmp_path / "out"),
        "--json",
    ]
    assert run(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["problems"] == ["SOL/L1/scaled"] and report["notes"] == []
