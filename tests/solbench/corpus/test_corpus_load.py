import json
from collections.abc import Callable
from pathlib import Path

import pytest

from solbench.corpus.load import Problem, eager_solution, load_corpus, load_problem, load_solution
from solbench.errors import InputError

PROBLEM = """\
schema: solbench.definition.v1
name: scaled
suite: tiny
op_type: elementwise
axes:
  M: {type: var}
  N: {type: const, value: 4}
inputs:
  x: {shape: [M, N], dtype: float32}
  a: {shape: null, dtype: float32}
outputs:
  y: {shape: [M, N], dtype: float32}
"""
REFERENCE = "def run(x, a):\n    return x * a\n"
WORKLOADS = """\
schema: solbench.workloads.v1
defaults:
  inputs:
    x: {type: normal}
    a: {type: constant, value: 1.0e-05}
  checks:
    - {type: numeric, output: y, atol: 1e-6/N, rtol: 0}
workloads:
  - {uuid: w0, axes: {M: 2}}
  - {uuid: w1, axes: {M: 3}, inputs: {a: {type: constant, value: 2.0}}}
"""

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write the tiny problem with some files changed (None: left out) and return its folder."""

    def write(**files: str | None) -> Path:
        folder = tmp_path / "problems" / "CORPUS" / "tiny" / "scaled"
        folder.mkdir(parents=True)
        texts = {"problem.yaml": PROBLEM, "reference.py": REFERENCE, "workloads.yaml": WORKLOADS}
        texts.update({name.replace("__", "."): text for name, text in files.items()})  # type: ignore[misc]
        for name, text in texts.items():
            if text is not None:
                (folder / name).write_text(text, encoding="utf-8")
        return folder

    return write


def only(folder: Path) -> Problem:
    (problem,) = load_corpus(folder.parents[2])
    return problem


def test_loads_with_defaults(make: Make) -> None:
    problem = only(make())
    assert problem.key == "CORPUS/tiny/scaled"
    assert problem.definition.reference == REFERENCE
    first, second = problem.workloads
    assert first.inputs["a"].value == 1e-5  # type: ignore[union-attr]
    assert second.inputs["a"].value == 2.0  # type: ignore[union-attr]
    assert first.inputs["x"] == second.inputs["x"]
    assert first.checks == second.checks
    assert load_problem(problem.path).key == problem.key


@pytest.mark.parametrize(
    ("files", "where", "rule"),
    [
        ({"problem__yaml": None}, "problem.yaml", "no such file"),
        ({"reference__py": None}, "reference.py", "no such file"),
        ({"workloads__yaml": None}, "workloads.yaml", "no such file"),
        ({"problem__yaml": PROBLEM + "axes: [\n"}, "problem.yaml", ""),
        ({"problem__yaml": PROBLEM + "color: red\n"}, "problem.yaml: color", "not permitted"),
        ({"problem__yaml": PROBLEM + "reference: x\n"}, "problem.yaml: reference", "reference.py"),
        ({"problem__yaml": PROBLEM + "name: twice\n"}, "problem.yaml:13", "appears twice"),
        ({"problem__yaml": PROBLEM.replace("suite: tiny", "suite: &s tiny")}, "problem.yaml:3", "anchors"),
        ({"problem__yaml": PROBLEM.replace("suite: tiny", "suite: !!python/name:os.system x")}, "problem.yaml", "tag"),
        ({"problem__yaml": PROBLEM.replace("v1", "v2")}, "problem.yaml: schema", "solbench.definition.v1"),
        ({"problem__yaml": PROBLEM.replace("value: 4", "value: -4")}, "problem.yaml: axes.N.const.value", "greater"),
        ({"problem__yaml": PROBLEM.replace("[M, N]", "[M, Q]", 1)}, "problem.yaml", "unknown axis 'Q'"),
        ({"problem__yaml": "- a\n- b\n"}, "problem.yaml", "mapping"),
        ({"reference__py": "def run(x):\n    return x\n"}, "problem.yaml", "must take the inputs x, a in order"),
        ({"reference__py": "def go(x, a):\n    return x\n"}, "problem.yaml", "no top-level function 'run'"),
        ({"workloads__yaml": WORKLOADS.replace("v1", "v9")}, "workloads.yaml: schema", "solbench.workloads.v1"),
        ({"workloads__yaml": WORKLOADS + "more: 1\n"}, "workloads.yaml: more", "unknown field"),
        ({"workloads__yaml": WORKLOADS.replace("w1", "w0")}, "workloads.yaml: workloads[1]: uuid", "occurs twice"),
        ({"workloads__yaml": WORKLOADS.replace("M: 2", "M: -2")}, "workloads[0]: axes.M", "not negative"),
        ({"workloads__yaml": WORKLOADS.replace("M: 2", "M: 2, Q: 1")}, "workloads[0]: axes.Q", "unknown axis"),
        ({"workloads__yaml": WORKLOADS.replace("M: 2", "N: 2")}, "workloads[0]: axes.M", "not bound"),
        ({"workloads__yaml": WORKLOADS.replace("1.0e-05", ".nan")}, "workloads[0]: inputs.a", ""),
        ({"workloads__yaml": WORKLOADS.replace("1.0e-05", ".inf")}, "workloads[0]: inputs.a", ""),
        ({"workloads__yaml": WORKLOADS.replace("1.0e-05", "1.0e+999")}, "workloads[0]: inputs.a", ""),
        ({"workloads__yaml": WORKLOADS.replace("rtol: 0", "rtol: .inf")}, "workloads[0]: checks", ""),
        ({"workloads__yaml": WORKLOADS.replace("x: {type: normal}", "z: {type: normal}")}, "inputs.x", "no generator"),
        ({"workloads__yaml": WORKLOADS.split("workloads:\n")[0] + "workloads: []\n"}, "workloads.yaml: workloads", ""),
        ({"workloads__yaml": WORKLOADS.replace("defaults:\n", "defaults:\n  axes: {}\n")}, "defaults: axes", "unknown"),
    ],
)
def test_one_line_names_file_and_field(make: Make, files: dict[str, str | None], where: str, rule: str) -> None:
    folder = make(**files)
    with pytest.raises(InputError) as caught:
        load_problem(folder)
    message = str(caught.value)
    assert message.startswith(str(folder)) and where in message and rule in message
    assert "\n" not in message


def test_symbolic_link_is_refused(make: Make, tmp_path: Path) -> None:
    folder = make(reference__py=None)
    (tmp_path / "elsewhere.py").write_text(REFERENCE)
    (folder / "reference.py").symlink_to(tmp_path / "elsewhere.py")
    with pytest.raises(InputError, match=r"reference\.py: is a symbolic link"):
        load_problem(folder)


def test_not_utf8(make: Make) -> None:
    folder = make()
    (folder / "problem.yaml").write_bytes(b"name: \xff\n")
    with pytest.raises(InputError, match=r"problem\.yaml: is not UTF-8 at byte 6"):
        load_problem(folder)


def test_folder_must_be_the_key(make: Make) -> None:
    folder = make()
    folder.rename(folder.with_name("other"))
    with pytest.raises(InputError, match=r"other: a problem's folder is .*CORPUS/tiny/scaled"):
        load_corpus(folder.parents[2])


DEFINITION_JSON = {
    "name": "scaled",
    "op_type": None,
    "axes": {"M": {"type": "var"}},
    "inputs": {"x": {"shape": ["M"], "dtype": "float32"}, "a": {"shape": None, "dtype": "float32"}},
    "outputs": {"y": {"shape": ["M"], "dtype": "float32"}},
    "reference": REFERENCE,
}
WORKLOAD_JSON = {
    "uuid": "w0",
    "axes": {"M": 2},
    "inputs": {"x": {"type": "random"}, "a": {"type": "scalar", "value": 2.0}},
}


def test_the_fields_own_form_loads(tmp_path: Path) -> None:
    folder = tmp_path / "L1" / "scaled"
    folder.mkdir(parents=True)
    (folder / "definition.json").write_text(json.dumps(DEFINITION_JSON))
    tolerant = {**WORKLOAD_JSON, "uuid": "w1", "tolerance": {"max_atol": 0.5, "required_matched_ratio": 1.0}}
    (folder / "workload.jsonl").write_text(f"{json.dumps(WORKLOAD_JSON)}\n\n{json.dumps(tolerant)}\n")
    problem = load_problem(folder)
    assert problem.key == "L1/scaled" and problem.definition.op_type == "other"
    (check,), (other,) = (workload.checks for workload in problem.workloads)
    assert (check.atol, check.rtol, check.required_matched_ratio) == (0.01, 0.01, 0.99)  # type: ignore[union-attr]
    assert (other.atol, other.rtol, other.required_matched_ratio) == (0.5, 0.01, 1.0)  # type: ignore[union-attr]
    assert problem.workloads[0].inputs["x"].type == "random"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"uuid": "w", "uuid": "v"}', "workload.jsonl: line 1: duplicate key 'uuid'"),
        ("{", "workload.jsonl: line 1: "),
        (json.dumps({**WORKLOAD_JSON, "tolerance": {"atol": 1}}), "line 1: tolerance: atol: unknown field"),
        (json.dumps({**WORKLOAD_JSON, "tolerance": {"max_atol": -1}}), "line 1: checks.y.atol: must not be negative"),
        (json.dumps({**WORKLOAD_JSON, "color": 1}), "line 1: color"),
        ('{"uuid": "w", "axes": {"M": NaN}}', "line 1: NaN is not JSON"),
        ("", "workload.jsonl: has no workload"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "definition.json").write_text(json.dumps(DEFINITION_JSON))
    (tmp_path / "workload.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=message):
        load_problem(tmp_path)


SOLUTION = "name: fast\nauthor: someone\nspec: {languages: [cpp], entry_point: 'kernel.cpp::run', binding: c}\n"


def with_solution(folder: Path, text: str, **files: str) -> Path:
    target = folder / "solutions" / "fast"
    target.mkdir(parents=True)
    (target / "solution.yaml").write_text(text)
    for name, content in files.items():
        (target / name.replace("__", ".")).write_text(content)
    return target


def test_solution_beside_its_problem(make: Make) -> None:
    folder = make()
    with_solution(folder, SOLUTION, kernel__cpp="int x;", tile__h="int y;")
    (folder / "solutions" / "later").mkdir()
    (solution,) = only(folder).solutions
    assert [source.path for source in solution.sources] == ["kernel.cpp", "tile.h"]
    assert solution.definition == "scaled"


def test_solution_lists_its_sources(make: Make) -> None:
    folder = make()
    target = with_solution(folder, SOLUTION + "sources: [kernel.cpp]\n", kernel__cpp="int x;", notes__txt="-")
    assert [source.path for source in load_solution(target, only(folder).definition).sources] == ["kernel.cpp"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SOLUTION.replace("name: fast", "name: slow"), "fast: name: must be the folder's name"),
        (SOLUTION + "sources: [/etc/hostname]\n", "sources: /etc/hostname: path: .*not a plain relative path"),
        (SOLUTION + "sources: [../../problem.yaml]\n", "not a plain relative path"),
        (SOLUTION + "sources: [missing.cpp]\n", "missing.cpp: no such file"),
        (SOLUTION + "definition: other\n", "definition: is 'other', but the problem is 'scaled'"),
        (SOLUTION + "speed: 9\n", "solution.yaml: speed"),
        (SOLUTION.replace("kernel.cpp", "other.cpp"), "no source 'other.cpp'"),
    ],
)
def test_bad_solution(make: Make, text: str, message: str) -> None:
    folder = make()
    with_solution(folder, text, kernel__cpp="int x;")
    with pytest.raises(InputError, match=message):
        load_problem(folder)


def test_source_behind_a_symbolic_link(make: Make, tmp_path: Path) -> None:
    folder = make()
    target = with_solution(folder, SOLUTION + "sources: [kernel.cpp, inc/a.h]\n", kernel__cpp="int x;")
    (tmp_path / "a.h").write_text("int a;")
    (target / "inc").symlink_to(tmp_path)
    with pytest.raises(InputError, match=r"inc/a\.h: leads through a symbolic link"):
        load_problem(folder)


@pytest.mark.parametrize(
    ("line", "language"),
    [
        ("import triton", "triton"),
        ("    from triton import language as tl", "triton"),
        ("import torch, triton, triton.language as tl", "triton"),
        ("import torch as t, triton.language as tl", "triton"),
        ("import tritonic", "pytorch"),
        ("import torch, tritonic", "pytorch"),
        ("x = 'import triton'", "pytorch"),
        ("# import triton", "pytorch"),
    ],
)
def test_a_bare_file_that_imports_triton(make: Make, tmp_path: Path, line: str, language: str) -> None:
    path = tmp_path / "candidate.py"
    path.write_text(f"if True:\n{line}\n" if line.startswith(" ") else f"{line}\n")
    assert load_solution(path, load_problem(make()).definition).spec.languages == (language,)


def test_bare_files(make: Make, tmp_path: Path) -> None:
    definition = only(make()).definition
    python = tmp_path / "my_kernel.py"
    python.write_text(REFERENCE)
    solution = load_solution(python, definition)
    assert (solution.name, solution.spec.languages, solution.spec.entry_point) == (
        "my_kernel", ("pytorch",), "my_kernel.py::run",
    )  # fmt: skip
    native = tmp_path / "kernel.cpp"
    native.write_text('extern "C" void run() {}')
    assert (load_solution(native, definition).spec.languages, load_solution(native, definition).spec.binding) == (
        ("cpp",), "c",
    )  # fmt: skip
    with pytest.raises(InputError, match=r"kernel\.rs: is neither"):
        load_solution(tmp_path / "kernel.rs", definition)


def test_solution_json(make: Make, tmp_path: Path) -> None:
    definition = only(make()).definition
    fields = {
        "name": "fast",
        "definition": "scaled",
        "author": "someone",
        "spec": {"languages": ["pytorch"], "entry_point": "a.py::run"},
        "sources": [{"path": "a.py", "content": REFERENCE}],
    }
    (tmp_path / "solution.json").write_text(json.dumps(fields))
    assert load_solution(tmp_path, definition) == load_solution(tmp_path / "solution.json", definition)


def test_eager_is_the_reference(make: Make) -> None:
    solution = eager_solution(only(make()).definition)
    assert solution.name == "eager" and solution.sources[0].content == REFERENCE
