"""A corpus's manifest, source, materialization and oracles, on a small corpus bound to a git repository made here."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from click.testing import CliRunner

from solbench.cli import run
from solbench.cli.corpus import corpus
from solbench.corpus.load import load_corpus
from solbench.corpus.manifest import SCHEMA, Manifest, file_digests, load_manifested, manifest_bytes
from solbench.corpus.materialize import static_decisions, target_rules

PUBLISHED = Path(__file__).parents[3] / "problems"
REVISION = "869228138e07e773b61dd7fc1d8cdc0435c7b405"

PROBLEM = """\
schema: solbench.definition.v1
name: NAME
suite: tiny
source: {project: Fake, revision: "REVISION", task: tasks/tiny/NAME}
axes:
  M: {type: var}
inputs:
  x: {shape: [M], dtype: float16}
  factor: {shape: null, dtype: float32}
outputs:
  y: {shape: [M], dtype: DTYPE}
"""
WORKLOADS = """\
schema: solbench.workloads.v1
defaults:
  inputs: {x: {type: normal}, factor: {type: constant, value: 3}}
  checks: [{type: numeric, output: y, atol: 1.0e-06, rtol: 1.0e-03}]
workloads:
  - {uuid: NAME-w0, axes: {M: 8}}
  - {uuid: NAME-w1, axes: {M: 4096}}
"""
REFERENCES = {
    "scaled": "def run(x, factor):\n    return (x.float() * factor).half()\n",
    "coded": "import torch\n\n\ndef run(x, factor):\n    return (x.float() * factor).to(torch.float8_e4m3fn)\n",
}
DTYPES = {"scaled": "float16", "coded": "float8_e4m3fn"}
ORACLES = {
    "scaled": "def module_fn(x, factor, unused=None):\n    return x * factor\n",
    "coded": "class Model:\n    pass\n",
}
ARTIFACTS = {"config": "config.yaml", "semantic_reference": "oracle.py", "correctness_runner": "oracle.py"}


def git(folder: Path, *arguments: str) -> str:
    who = {f"GIT_{kind}_{what}": "someone" for kind in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**plain, **who}).stdout.strip()


def make(where: Path, oracles: dict[str, str]) -> tuple[Path, Path]:
    """Root of a corpus FAKE of two problems, and the repository that its manifest pins."""
    repository, root = where / "origin", where / "problems"
    for name, source in oracles.items():
        task = repository / "tasks" / "tiny" / name
        task.mkdir(parents=True)
        (task / "config.yaml").write_text(f"name: {name}\n")
        (task / "oracle.py").write_text(source)
    git(where, "init", "--quiet", str(repository))
    git(repository, "add", "-A")
    git(repository, "commit", "--quiet", "-m", "tasks")
    revision = git(repository, "rev-parse", "HEAD")
    entries = []
    for name, source in REFERENCES.items():
        folder = root / "FAKE" / "tiny" / name
        folder.mkdir(parents=True)
        text = PROBLEM.replace("NAME", name).replace("DTYPE", DTYPES[name]).replace("REVISION", revision)
        (folder / "problem.yaml").write_text(text)
        (folder / "workloads.yaml").write_text(WORKLOADS.replace("NAME", name))
        (folder / "reference.py").write_text(source)
        task = f"tasks/tiny/{name}"
        sums = {role: hashlib.sha256((repository / task / file).read_bytes()) for role, file in ARTIFACTS.items()}
        entries.append(
            {
                "problem": f"tiny/{name}",
                "role": "scored",
                "workloads": 2,
                "task": task,
                "files": file_digests(folder),
                "artifacts": {
                    role: {"path": file, "sha256": f"sha256:{sums[role].hexdigest()}"}
                    for role, file in ARTIFACTS.items()
                },
            }
        )
    fields = {
        "schema": SCHEMA,
        "corpus": "FAKE",
        "source": {"project": "Fake", "repository": f"file://{repository}", "revision": revision, "license": "MIT"},
        "targets": {
            "wide": {"dtypes": ["float16", "float8_e4m3fn"], "memory_bytes": 1 << 30},
            "small": {"dtypes": ["float16"], "memory_bytes": 8192},
        },
        "entries": entries,
    }
    (root / "FAKE" / "manifest.yaml").write_bytes(manifest_bytes(fields))
    return root, repository


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path, ORACLES)[0]


def call(verb: str, root: Path, *arguments: object) -> tuple[int, str]:
    name = [] if root == PUBLISHED else ["--corpus", "FAKE"]
    result = CliRunner().invoke(corpus, [verb, *map(str, arguments), "--root", str(root), *name])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.output


def refused(capsys: pytest.CaptureFixture[str], verb: str, root: Path, *arguments: object) -> tuple[int, str]:
    """Exit code and the one line on stderr of a call that ends with an error."""
    code = run(["corpus", verb, *map(str, arguments), "--root", str(root), "--corpus", "FAKE"])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return code, lines[0]


def edit(path: Path, change: Callable[[dict], object]) -> None:
    fields = yaml.safe_load(path.read_text())
    change(fields)
    path.write_text(yaml.safe_dump(fields, sort_keys=False))


def test_the_published_corpus_is_what_its_manifest_says() -> None:
    code, text = call("audit", PUBLISHED)
    assert code == 0, text
    assert "AMD_AKA: 45 problems, 169 workloads; scored 43 / 163; 135 artifacts\n" in text
    manifest = Manifest.load(yaml.safe_load((PUBLISHED / "AMD_AKA" / "manifest.yaml").read_text()), "manifest")
    assert manifest.source.revision == REVISION
    assert {len(entry.artifacts) for entry in manifest.entries} == {3}
    # Two of the published checksums, by hand.
    sums = {f"{entry.problem}:{role}": artifact.sha256 for entry, role, artifact in manifest.artifacts}
    assert sums["torch2hip/3267_doubled_matmul:config"].startswith("sha256:d7af662143e7f96b8dab4e7eab268c62d30ffb2774a")
    assert sums["torch2hip/l1n1_square_matmul:config"].startswith("sha256:db2acd2bf9bcb9745efe2ae74bb8c998511a48f60ca0")


def test_a_manifest_is_no_problem(root: Path) -> None:
    assert [problem.key for problem in load_corpus(root)] == ["FAKE/tiny/coded", "FAKE/tiny/scaled"]


def test_changed_files_are_named_and_nothing_is_written(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = root / "FAKE" / "tiny" / "scaled" / "reference.py"
    reference.write_text(reference.read_text() + "# other\n")
    code, text = call("audit", root)
    assert code == 2 and f"corpus: {reference}: is not the file that the manifest pins\ncorpus: 1 differences" in text
    code, line = refused(capsys, "materialize", root, "--target", "wide", "--output", tmp_path / "out")
    assert code == 2 and str(reference) in line and not (tmp_path / "out").exists()
    assert call("audit", root, "--pin")[0] == 0
    assert call("audit", root)[0] == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["entries"][0]["files"].pop("reference.py"), "has one of each of"),
        (lambda m: m["entries"].append(json.loads(json.dumps(m["entries"][0]))), "a problem occurs twice"),
        (lambda m: m["source"].update(revision="main"), "source.revision"),
        (lambda m: m["entries"][0]["artifacts"]["config"].update(path="../config.yaml"), "not a plain relative path"),
        (lambda m: m.update(corpus="OTHER"), "the folder is FAKE"),
    ],
)
def test_a_corrupt_manifest_is_one_line(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[dict], object], said: str
) -> None:
    edit(root / "FAKE" / "manifest.yaml", change)
    for arguments in (["audit"], ["audit", "--pin"], ["materialize", "--target", "wide", "--output", tmp_path / "out"]):
        verb, *options = arguments
        code, line = refused(capsys, verb, root, *options)
        assert code == 2 and said in line and "manifest.yaml" in line
    assert not (tmp_path / "out").exists()


def test_a_corpus_without_a_manifest_is_one_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "FAKE" / "manifest.yaml").unlink()
    code, line = refused(capsys, "audit", root)
    assert code == 2 and "FAKE/manifest.yaml: no such file: this corpus is bound to no source" in line


def test_audit_sees_what_the_manifest_has_otherwise(root: Path) -> None:
    def change(manifest: dict) -> None:
        manifest["entries"][0] |= {"role": "apart", "workloads": 3, "task": "tasks/tiny/other"}
        manifest["entries"].pop(1)

    edit(root / "FAKE" / "manifest.yaml", change)
    code, text = call("audit", root)
    assert code == 2 and "corpus: 4 differences" in text
    assert "role is scored, the manifest says apart" in text and "workloads is 2, the manifest says 3" in text
    assert f"{root}/FAKE/tiny/coded: is not in the manifest" in text


def test_fetch_source_and_binding(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clone = tmp_path / "clone"
    code, text = call("fetch-source", root, clone)
    assert code == 0 and text.endswith("bound by 6 artifacts\n"), text
    code, text = call("audit", root, "--source", clone)
    assert code == 0 and "source: bound\n" in text
    # A changed file, a missing file, a link to the right bytes, another revision: each is named.
    task = clone / "tasks" / "tiny"
    (task / "scaled" / "config.yaml").write_text("name: other\n")
    (task / "coded" / "config.yaml").rename(task / "coded" / "real.yaml")
    (task / "coded" / "config.yaml").symlink_to("real.yaml")
    git(clone, "commit", "--quiet", "--all", "-m", "mine")
    code, text = call("audit", root, "--source", clone)
    assert code == 1 and "source: 3 differences" in text and "source: HEAD: is " in text
    assert "source: tasks/tiny/scaled/config.yaml: tiny/scaled's config is not the file that the manifest pins" in text
    assert "source: tasks/tiny/coded/config.yaml: tiny/coded's config is not there" in text
    assert refused(capsys, "fetch-source", root, clone)[0] == 2  # a folder that is there stays as it is
    code, line = refused(capsys, "audit", root, "--source", tmp_path)
    assert code == 2 and "is no git clone" in line


def test_offline_is_one_line_and_leaves_nothing(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(tmp_path.iterdir())
    # Port 9 of this machine: nobody answers there.
    code, line = refused(capsys, "fetch-source", root, tmp_path / "c", "--repository", "http://127.0.0.1:9/x.git")
    assert code == 3 and "http://127.0.0.1:9/x.git: revision" in line and "offline" in line
    edit(root / "FAKE" / "manifest.yaml", lambda manifest: manifest["source"].update(revision="0" * 40))
    code, line = refused(capsys, "fetch-source", root, tmp_path / "c")
    assert code == 3 and "0" * 40 in line
    assert sorted(tmp_path.iterdir()) == before


def test_a_source_with_other_files_is_not_kept(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "sha256:" + "0" * 64
    edit(root / "FAKE" / "manifest.yaml", lambda m: m["entries"][0]["artifacts"]["config"].update(sha256=other))
    code, line = refused(capsys, "fetch-source", root, tmp_path / "clone")
    assert code == 3 and "not the pinned source: tasks/tiny/scaled/config.yaml" in line
    assert not (tmp_path / "clone").exists()


def test_materialize_decides_every_workload(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    code, text = call("materialize", root, "--target", "small", "--output", out)
    assert code == 0 and text.endswith(
        f"2 problems, 4 workloads; scored 2 / 4\n{out}: 1 problems, 1 of 4 workloads for small\n"
    )
    decisions = json.loads((out / "materialization.json").read_text())["decisions"]
    assert [(d["workload"], d["included"], d["stage"], d["reason"]) for d in decisions] == [
        ("coded-w0", False, "static", "unsupported_target_dtype"),
        ("coded-w1", False, "static", "unsupported_target_dtype"),
        ("scaled-w0", True, "probe", "probe_passed"),
        ("scaled-w1", False, "static", "target_memory"),  # 2 tensors of 8192 bytes
    ]
    (problem,) = load_corpus(out)
    assert problem.key == "FAKE/tiny/scaled" and [w.uuid for w in problem.workloads] == ["scaled-w0"]
    again = tmp_path / "again"
    assert call("materialize", root, "--target", "small", "--output", again)[0] == 0
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        assert path.read_bytes() == (again / path.relative_to(out)).read_bytes()
    assert refused(capsys, "materialize", root, "--target", "small", "--output", out)[0] == 2
    code, line = refused(capsys, "materialize", root, "--target", "gfx0", "--output", tmp_path / "new")
    assert code == 2 and "wide, small" in line and not (tmp_path / "new").exists()


@pytest.mark.parametrize("there", ["folder", "file", "link"])
def test_what_is_there_stays(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], there: str) -> None:
    out = tmp_path / "out"
    make_it = {"folder": out.mkdir, "file": lambda: out.write_text("x"), "link": lambda: out.symlink_to("nowhere")}
    make_it[there]()
    before = sorted(path for path in tmp_path.rglob("*"))
    for arguments in (["materialize", root, "--target", "wide", "--output", out], ["fetch-source", root, out]):
        code, line = refused(capsys, *arguments)
        assert code == 2 and f"{out}: exists already; name a new folder" in line
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_materialize_on_a_full_disk_leaves_nothing(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(shutil, "copyfile", full)
    before = sorted(tmp_path.iterdir())
    code, line = refused(capsys, "materialize", root, "--target", "small", "--output", tmp_path / "out")
    assert code == 3 and "No space left on device (free some space and run again)" in line
    assert sorted(tmp_path.iterdir()) == before


def test_a_workload_without_an_axis_is_one_line(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = root / "FAKE" / "tiny" / "scaled" / "workloads.yaml"
    sizes.write_text(sizes.read_text().replace("{M: 4096}", "{}"))
    manifest = (root / "FAKE" / "manifest.yaml").read_bytes()
    for arguments in (
        ["audit", root],
        ["audit", root, "--pin"],
        ["materialize", root, "--target", "wide", "--output", tmp_path / "out"],
    ):
        code, line = refused(capsys, *arguments)
        assert code == 2 and f"{sizes}: workloads[1]: axes.M: is not bound" in line
    assert (root / "FAKE" / "manifest.yaml").read_bytes() == manifest and not (tmp_path / "out").exists()


def test_audit_of_a_materialization(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call("materialize", root, "--target", "small", "--output", out)[0] == 0
    code, text = call("audit", root, "--materialized", out)
    assert code == 0 and "materialized: as its record says" in text, text
    record, kept = out / "materialization.json", (out / "materialization.json").read_text()
    (out / "FAKE" / "tiny" / "scaled" / "extra.txt").write_text("")
    (out / "FAKE" / "tiny" / "scaled" / "reference.py").write_text("def run(x, factor):\n    return x\n")
    code, text = call("audit", root, "--materialized", out)
    assert code == 1 and "extra.txt: is not recorded" in text and "reference.py: is not the file that was" in text
    # Who records the changed file is found out by the corpus itself.
    fields = json.loads(kept)
    fields["problems"]["tiny/scaled"] = file_digests(out / "FAKE" / "tiny" / "scaled")
    record.write_text(json.dumps(fields))
    assert "reference.py: is not the corpus's" in call("audit", root, "--materialized", out)[1]
    fields = json.loads(kept)
    fields["decisions"].pop(0)
    record.write_text(json.dumps(fields))
    text = call("audit", root, "--materialized", out)[1]
    assert "does not decide each of the 4 workloads once" in text and "static decisions are not those" in text
    record.write_text(kept.replace('"included": false', '"included": true', 1))
    assert "coded-w0: unsupported_target_dtype, but included is True" in call("audit", root, "--materialized", out)[1]


@pytest.mark.parametrize(
    ("reference", "reason", "detail"),
    [
        ("def run(x, factor):\n    while len(x) > 8:\n        pass\n    return x\n", "probe_timeout", "timeout"),
        (
            "import os\n\n\ndef run(x, factor):\n    return x if len(x) == 8 else os.abort()\n",
            "probe_failed",
            "SIGABRT",
        ),
        ("def run(x, factor):\n    return x if len(x) == 8 else x.float()\n", "probe_failed", "float32"),
        (
            "import torch\n\n\ndef run(x, factor):\n    return x if len(x) == 8 else torch.zeros(1 << 40)\n",
            "probe_out_of_memory",
            "allocate",
        ),
    ],
)
def test_a_probe_that_fails_loses_its_workload_only(
    root: Path, tmp_path: Path, reference: str, reason: str, detail: str
) -> None:
    (root / "FAKE" / "tiny" / "scaled" / "reference.py").write_text(reference)
    assert call("audit", root, "--pin")[0] == 0
    limit = 6 if reason == "probe_timeout" else 60
    code, text = call("materialize", root, "--target", "wide", "--output", tmp_path / "o", "--timeout", limit, "--json")
    decisions = {decision["workload"]: decision for decision in json.loads(text)["decisions"]}
    assert code == 0 and [uuid for uuid, decision in decisions.items() if not decision["included"]] == ["scaled-w1"]
    assert decisions["scaled-w1"]["reason"] == reason and detail in decisions["scaled-w1"]["detail"]


def test_equivalence(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clone = tmp_path / "origin"
    code, text = call("equivalence", root, "--source", clone, "FAKE/tiny/scaled")
    assert code == 0 and "1 problems: 2 of 2 workloads agree, 0 differ, 0 not compared" in text, text
    code, text = call("equivalence", root, "--source", clone)
    assert code == 3 and "coded-w0: not compared: the oracle: AttributeError" in text, text
    oracle = clone / "tasks" / "tiny" / "scaled" / "oracle.py"
    oracle.write_text("raise SystemExit\n")  # not the pinned code: it is not run
    code, line = refused(capsys, "equivalence", root, "--source", clone, "FAKE/tiny/scaled")
    assert code == 2 and "only pinned code is run" in line and str(oracle) in line


MODULE = """\
import torch


class Model(torch.nn.Module):
    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return RESULT


def get_inputs():
    return [torch.rand(3, dtype=torch.float16)]


def get_init_inputs():
    return [2.0]
"""


CODES = (
    "import torch\n\n\ndef module_fn(x, factor):\n    return (x * factor).to(torch.float8_e4m3fn).view(torch.BYTE)\n"
)


@pytest.mark.parametrize(
    ("result", "byte", "code", "said"),
    [
        ("(x * self.factor).half()", "uint8", 0, "2 problems: 4 of 4 workloads agree, 0 differ, 0 not compared"),
        ("x * 2", "int8", 1, "2 problems: 0 of 4 workloads agree, 4 differ, 0 not compared"),
    ],
)
def test_modules_and_codes(tmp_path: Path, result: str, byte: str, code: int, said: str) -> None:
    """A module with a scalar in its constructor; floats of one byte, which an oracle may return as uint8."""
    oracles = {"scaled": MODULE.replace("RESULT", result), "coded": CODES.replace("BYTE", byte)}
    root, clone = make(tmp_path, oracles)
    found, text = call("equivalence", root, "--source", clone)
    assert found == code and said in text, text


@pytest.mark.parametrize(
    ("oracle", "code", "said"),
    [
        ("def module_fn(x, factor):\n    return x * factor + 1\n", 1, "differs: "),
        ("def module_fn(x, factor):\n    return x[:1]\n", 1, "differs: y: the oracle's is"),
        ("def module_fn(x, factor):\n    return x, x\n", 1, "differs: the oracle returns 2 tensors"),
        ("def module_fn(x, scale):\n    return x\n", 3, "not compared: the oracle's parameters are not the inputs"),
        ("import os\nos._exit(0)\n", 3, "not compared: the oracle's process: gave no answer"),
        ("import no_such_module\n", 3, "not compared: the oracle: ModuleNotFoundError"),
        ("def module_fn(x, factor):\n    open('FORBIDDEN', 'w')\n    return x * factor\n", 3, "REFUSED"),
    ],
)
def test_oracles_that_do_not_agree(tmp_path: Path, oracle: str, code: int, said: str) -> None:
    forbidden = tmp_path / "written"
    if "FORBIDDEN" in oracle:
        from solbench.evaluate.sandbox import isolation

        sandbox = isolation()
        if not sandbox.namespaces and not sandbox.landlock:
            pytest.skip("no namespaces and no Landlock here")
        # In namespaces that folder is not there.
        said = "FileNotFoundError" if sandbox.namespaces else "PermissionError"
    root, clone = make(tmp_path, {**ORACLES, "scaled": oracle.replace("FORBIDDEN", str(forbidden))})
    found, text = call("equivalence", root, "--source", clone, "FAKE/tiny/scaled")
    assert found == code and said in text and not forbidden.exists(), text


@pytest.mark.parametrize("target", ["gfx1200", "gfx942"])
def test_static_rules_of_the_published_corpus(target: str) -> None:
    bound = load_manifested(PUBLISHED, "AMD_AKA")
    rules = target_rules(bound, target)
    left = [len(problem.workloads) - len(static_decisions(bound, problem, rules)) for problem in bound.problems]
    assert (sum(count > 0 for count in left), sum(left)) == (45, 169)


@pytest.mark.parametrize("kind", ["e4m3fn", "e5m2"])
def test_ocp_bytes_read_as_fnuz_are_half(kind: str) -> None:
    """Why gfx942, whose matrix units are FNUZ, is not excluded from OCP float8, and is bounded at the FNUZ rate."""
    codes = torch.arange(256, dtype=torch.uint8)
    ocp = codes.view(getattr(torch, f"float8_{kind}")).double()
    fnuz = codes.view(getattr(torch, f"float8_{kind.removesuffix('fn')}fnuz")).double()
    carried = ocp.isfinite() & (codes != 0x80)
    assert torch.equal(2 * fnuz[carried], ocp[carried])
    assert int((~carried).sum()) == {"e4m3fn": 2, "e5m2": 8}[kind] + 1  # NaN and infinities, and negative zero
