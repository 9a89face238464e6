"""docs/problems.md followed word for word: its files, its commands, its table of what can be wrong."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from solbench.cli import run

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "problems.md").read_text()
FILES = dict(re.findall(r"`([\w./]+)`:\n\n```\w+\n(.*?)```", PAGE, re.S))
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S) for line in block.splitlines()]
# The rows of the table of mistakes alone.
TABLE = re.findall(r"^\| `(.+?)` \|", PAGE.partition("| it says | do |")[2].partition("\n\n")[0], re.M)
FOLDER = "mine/MINE/norm/rms_rows"


def write(where: Path, names: tuple[str, ...] = tuple(FILES)) -> None:
    for name in names:
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(FILES[name])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what a checkout has for a reader of the page, and the page's files."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "problems").symlink_to(ROOT / "problems")
    write(folder)
    return folder


def test_the_page_has_what_these_tests_follow() -> None:
    assert set(FILES) == {f"{FOLDER}/{name}" for name in ("problem.yaml", "reference.py", "workloads.yaml")} | {
        "rms.py"
    }
    assert len(COMMANDS) == 7 and all(line.startswith("solbench ") for line in COMMANDS)
    assert len(PAGE.splitlines()) < 180


def follow(line: str, place: Path) -> str:
    command = [sys.executable, "-c", "from solbench.cli import main; main()", *shlex.split(line)[1:]]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("corpus list", "MINE/norm/rms_rows"),
        ("corpus validate rms_rows --root", "MINE/norm/rms_rows: 2 workloads are well-formed"),
        ("corpus validate rms_rows --controls", " 0 failed, 0 not run"),
        # 2 x 2048 x 4096 x 4 bytes and the weight, at 320 GB/s.
        ("analyze", "T_SOL 210 µs, bound by memory\ncoverage complete\nattested: passed"),
        pytest.param("evaluate", "1 of 1 workloads passed", marks=pytest.mark.slow),
    ],
)
def test_a_command_does_what_the_page_says(place: Path, verb: str, said: str) -> None:
    (line,) = [line for line in COMMANDS if line.startswith(f"solbench {verb}")]
    assert said in follow(line, place)


def test_the_view_of_the_page(place: Path) -> None:
    generate, validate = [line for line in COMMANDS if "view" in line]
    assert "workloads for gfx1200 in the 16 GiB class: view" in follow(generate, place)
    assert "linear_matmul_bias: 9 workloads are well-formed" in follow(validate, place)


FORM = ["corpus", "validate", "rms_rows"]
CONTROLS = [*FORM, "--controls"]
RETURN = "return x * scale * weight"
# What the page's table says: the file to spoil, how, the command that finds it, its exit code.
MISTAKES = {
    "axes.N: is not bound": ("workloads.yaml", "M: 64, N: 96", "M: 64", FORM, 2),
    "inputs.weight: has no generator": ("workloads.yaml", "weight: {type: normal, mean: 1, std: 0.1}", "", FORM, 2),
    "unknown output 'out'": ("workloads.yaml", "output: output", "output: out", FORM, 2),
    "write a dot and a signed exponent": ("workloads.yaml", "1.0e-6", "1e-6", FORM, 2),
    "a problem's folder is <corpus>/<suite>/<name>": ("problem.yaml", "suite: norm", "suite: other", FORM, 2),
    "must take the inputs x, weight in order": ("reference.py", "run(x, weight)", "run(weight, x)", FORM, 2),
    "zeros must fail: the checks accept it": ("workloads.yaml", "atol: 1.0e-6", "atol: 10", CONTROLS, 1),
    "float64 must pass": ("workloads.yaml", "atol: 1.0e-6, rtol: 1.0e-5", "atol: 0, rtol: 0", CONTROLS, 1),
    "dtype is float16, declared is float32": ("reference.py", RETURN, "return x.half()", CONTROLS, 1),
    "strides are [1, 64], an output is contiguous": ("reference.py", RETURN, "return x.T.contiguous().T", CONTROLS, 1),
    "outputs depend on the draw: constant": ("reference.py", RETURN, "return x * 0 + 1", CONTROLS, 1),
    "reference repeats": ("reference.py", RETURN, f"{RETURN} * torch.rand_like(weight)", CONTROLS, 1),
    "reference leaves its inputs alone": ("reference.py", RETURN, "return x.mul_(scale) * weight", CONTROLS, 1),
    "needs the contents of a bool tensor": (
        "reference.py", RETURN, "return x * scale if x.sum() > 0 else x * weight", ["analyze", "rms_rows"], 2,
    ),
}  # fmt: skip


def test_the_table_lists_these_mistakes() -> None:
    assert sorted(TABLE) == sorted(MISTAKES)


@pytest.mark.parametrize("said", MISTAKES)
def test_a_mistake_is_named_as_in_the_table(said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, old, new, command, code = MISTAKES[said]
    write(tmp_path)
    folder = tmp_path / FOLDER
    sizes = folder / "workloads.yaml"
    sizes.write_text(re.sub(r".*rms_rows-large.*\n", "", sizes.read_text()))  # one small workload is enough
    assert old in (folder / file).read_text()
    (folder / file).write_text((folder / file).read_text().replace(old, new))
    assert run([*command, "--root", str(tmp_path / "mine")]) == code
    printed = capsys.readouterr()
    if code == 2:
        assert said in printed.err and printed.err.count("\n") == 1
    else:
        assert any("FAILED" in line and said in line for line in printed.out.splitlines()), printed.out
