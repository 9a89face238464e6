"""The rendered site of a made-up store: whole, escaped, the same every time, and refused when it would lie."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from blake3 import blake3
from html_check import Found, read
from site_fixture import CASES, HOSTILE, Builder, build_store

from solbench import canonical
from solbench.cli import run
from solbench.errors import InputError, IntegrityError, SolbenchError
from solbench.site import render

ROOT = Path(__file__).resolve().parents[3]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)


def lay_out(root: Path) -> Path:
    """A bundle: site/ beside objects/. Returns site/."""
    render(root / "store", root / "site")
    for path in (root / "store").glob("*/objects/*/*"):
        copy = root / "objects" / path.parent.name / path.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return root / "site"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return build_store(tmp_path_factory.mktemp("plain") / "store")


@pytest.fixture(scope="module")
def site(plain: Builder) -> Path:
    return lay_out(plain.root.parent)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Found]:
    return {path.relative_to(site).as_posix(): read(path.read_text()) for path in site.rglob("*.html")}


@pytest.fixture
def builder(tmp_path: Path, plain: Builder) -> Builder:
    """A store of its own to spoil."""
    copy = Builder(tmp_path / "store")
    shutil.copytree(plain.root, copy.root)
    copy.indexes = {stage: dict(index) for stage, index in plain.indexes.items()}
    copy.targets = list(plain.targets)
    return copy


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SOFTMAX, MATMUL, ROUTING = (
    f"AMD_AKA/{name}"
    for name in ("torch2hip/l1n23_softmax", "torch2hip/l1n2_standard_matmul", "torch2flydsl/moe_topk_softmax")
)
SOLUTIONS = [(ROUTING, "eager"), *((problem, name) for problem in (SOFTMAX, MATMUL) for name in ("eager", "openmp"))]
WORKLOADS = [(ROUTING, 2), (SOFTMAX, 4), (MATMUL, 3)]


def test_pages_are_whole(pages):
    assert sorted(pages) == [
        "compare.html",
        "corpus.html",
        "hardware.html",
        "index.html",
        "method.html",
        "problems/AMD_AKA/torch2flydsl/moe_topk_softmax.html",
        "problems/AMD_AKA/torch2hip/l1n23_softmax.html",
        "problems/AMD_AKA/torch2hip/l1n2_standard_matmul.html",
        *(f"solutions/{problem}/{name}.html" for problem, name in SOLUTIONS),
        "status.html",
        "targets/cpu.html",
        "targets/gfx1200.html",
        "verify.html",
        *(
            f"workloads/{problem}/aka-{problem.rpartition('/')[2]}-w{n}.html"
            for problem, count in WORKLOADS
            for n in range(count)
        ),
    ]
    for path, page in pages.items():
        assert page.policy == POLICY, path
        assert page.tags.count("h1") == 1 and page.tags.count("main") == 1, path
        assert not [name for name in page.attributes if name.startswith("on") or name == "style"], path
        assert "style" not in page.tags, path


def test_manifest_names_the_release_and_every_file(site):
    manifest = canonical.loads((site / "site.json").read_bytes())
    release = canonical.parse((site.parent / "store" / "release.json").read_bytes())["entries"]["release"]
    assert manifest["schema"] == "solbench.site.v1" and manifest["release"] == release
    files = tree(site)
    del files["site.json"]
    assert manifest["pages"] == {path: "blake3:" + blake3(data).hexdigest() for path, data in files.items()}


def test_numbers_and_states_are_there(pages):
    softmax = pages["problems/AMD_AKA/torch2hip/l1n23_softmax.html"].text
    # 16 x 128 fp32, read and written: 16,384 B at 320 GB/s and at 42 GB/s.
    assert "51.2 ns" in softmax and "390 ns" in softmax
    # T_b of w1 is six bounds of 8 * 1024 * 4096 B / 42 GB/s; the interval is 2 % to either side.
    assert "4.79 ms" in softmax and "4.70 – 4.89 ms (96.9 %)" in softmax
    # S = 1 / (1 + (2.5 - 1) / (6 - 1)) and its interval.
    assert "0.769" in softmax and "0.758 – 0.781" in softmax
    for words in (
        "too narrow to score: relative headroom 0.04",
        "in audit: T_k is below T_SOL",
        "not measured: over the cpu budget of 0.25 s a call",
        "not timed: no card with this target was measured",
        "good, launch-bound",
        "normal(mean 0, std 1)",
        "|o − r| ≤ 1.25e-05 + 1.25e-05·|r|",
    ):
        assert words in softmax, words
    matmul = pages["problems/AMD_AKA/torch2hip/l1n2_standard_matmul.html"].text
    assert "0 failed: INCORRECT_NUMERICAL: output: 12 of 131072 values differ" in matmul
    assert "vacuous" in matmul and "not timed: UNSUPPORTED: no timing method" in matmul
    assert "no bound: topk: no rule prices it" in pages["problems/AMD_AKA/torch2flydsl/moe_topk_softmax.html"].text


def test_headline_of_each_target(site, pages):
    index = pages["index.html"].text
    root = canonical.loads((site / "site.json").read_bytes())["release"]["digest"]
    assert f"solbench verify release/published.zip --expect-root {root}" in index
    assert "0.514 0.489 – 0.541" in index and "8 of 9" in index
    assert "withheld: 1 workload is in audit" in index
    assert "not timed no card measured" in index and "8 of 9 workloads; what binds: memory 8" in index
    assert "2 of 16 not measured: over the cpu budget of 0.25 s a call" in index
    cpu = pages["targets/cpu.html"].text
    for words in (
        "full protocol",
        "1.05×",
        "88.9 %",
        "2.10 µs",
        "unlocked",
        "42.0 GB/s",
        "vendor's data sheet",
    ):
        assert words in cpu, words


def test_missing_is_never_zero(pages):
    text = pages["targets/gfx1200.html"].text
    assert "41 152 op a clock" not in text and "128 B a clock; published: 320 GB/s at 2.50 GHz" in text
    assert "No entries: nothing was timed on this target." in text and "No card: bounds only." in text
    cells = {words.strip() for words in pages["targets/gfx1200.html"].words}
    assert not {"0.000", "0\u00a0s", "0×"} & cells


# Shown where what refers to them is.
OF_OTHERS = ("hardware", "kernel", "code-object", "assembly")


def test_every_record_stands_once(site, pages):
    entries = {}
    for stage in ("corpus", "workloads", "code", "bounds", "scores"):
        entries |= canonical.parse((site.parent / "store" / f"{stage}.json").read_bytes())["entries"]
    expected = [name for name, entry in entries.items() if entry["kind"] not in OF_OTHERS]
    verdicts = canonical.parse((site.parent / "store" / "verdicts.json").read_bytes())["entries"]
    expected = sorted([*expected, *(f"verdicts:{name}" for name in verdicts)])
    assert len(verdicts) == 3
    assert sorted(record for page in pages.values() for record in page.records) == expected
    assert len([name for name, entry in entries.items() if entry["kind"] == "score"]) == 32 > len(CASES)


def test_hostile_text_stays_text(tmp_path):
    build_store(tmp_path / "store", description=HOSTILE)
    site = lay_out(tmp_path)
    page = (site / "problems/AMD_AKA/torch2hip/l1n23_softmax.html").read_text()
    found = read(page)
    assert found.tags.count("script") == 1
    assert '<script>alert(1)</script> "q" \\u202egnp.exe\\u200b & \\x07' in found.text
    assert not {"\u202e", "\u200b", "\x07"} & set(page)


def test_hostile_names_become_safe_paths(tmp_path, builder):
    names = ['x/<b>"\u202e', "x/../../etc/passwd", "AMD_AKA/torch2hip/L1N23_SOFTMAX", "x/con", "x/y.html/z"]
    definition = builder.indexes["corpus"]["AMD_AKA/torch2hip/l1n23_softmax"]
    for name in names:
        builder.indexes["corpus"][name] = definition
    builder.finish()
    site = lay_out(tmp_path)
    files = [path.relative_to(site).as_posix() for path in (site / "problems").rglob("*") if path.is_file()]
    assert len({path.lower() for path in files}) == len(files)
    assert sum(path.endswith(".html") for path in files) == 3 + len(names)
    assert all(set(path) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/") for path in files)
    assert not any(part.lower().startswith("con.") or part == ".." for path in files for part in path.split("/"))
    assert sorted(tmp_path.iterdir()) == [tmp_path / name for name in ("objects", "site", "store")]
    records = [record for path in site.rglob("*.html") for record in read(path.read_text()).records]
    assert 'x/<b>"\\u202e' in records


def test_two_builds_are_byte_equal(tmp_path, builder):
    code = "import sys; from solbench.cli import run; sys.exit(run(['site', *sys.argv[1:]]))"
    trees = []
    for number, (seed, zone, mask) in enumerate((("0", "UTC", 0o022), ("4242", "Asia/Tokyo", 0o077))):
        out = tmp_path / f"out{number}"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LANG": "C", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", code, "--store", str(tmp_path / "store"), "--output", str(out)]
        subprocess.run(command, check=True, env=environment, cwd=tmp_path, umask=mask, stdout=subprocess.DEVNULL)
        trees.append(tree(out))
    assert trees[0] == trees[1]


def test_needs_neither_torch_nor_numpy(tmp_path, builder):
    code = (
        "import sys\nfor name in ('torch', 'numpy', 'dvc'): sys.modules[name] = None\n"
        "from solbench.site import render\nrender(sys.argv[1], sys.argv[2])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "store"), str(tmp_path / "site")]
    subprocess.run(command, check=True, cwd=ROOT)


def test_command_prints_the_release(tmp_path, builder, capsys):
    assert run(["site", "--store", str(tmp_path / "store"), "--output", str(tmp_path / "site")]) == 0
    # All but site.json itself.
    files = sum(path.is_file() for path in (tmp_path / "site").rglob("*")) - 1
    assert f"{files} files of release blake3:" in capsys.readouterr().out and files > 50
    assert run(["site", "--store", str(tmp_path / "nowhere"), "--output", str(tmp_path / "site")]) == 2
    assert (tmp_path / "site" / "index.html").is_file()


def refused(tmp_path: Path, words: str, kind: type[SolbenchError] = IntegrityError) -> None:
    with pytest.raises(kind, match=words):
        render(tmp_path / "store", tmp_path / "site")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "store") == []


def test_refuses_a_score_of_no_workload(tmp_path, builder):
    name = next(name for name, entry in builder.indexes["scores"].items() if entry.kind == "score")
    builder.indexes["scores"][name.replace("softmax/", "other/", 1)] = builder.indexes["scores"].pop(name)
    builder.finish()
    refused(tmp_path, "which is no workload of the release")


def test_refuses_a_trace_without_its_score(tmp_path, builder):
    name = next(name for name in builder.indexes["scores"] if "@cpu/openmp" in name)
    del builder.indexes["scores"][name]
    builder.finish()
    refused(tmp_path, "has no score")


def test_refuses_an_artifact_that_has_no_place(tmp_path, builder):
    builder.put("graphs", "somewhere/else", "operator-graph", {"schema": "solar.operator-graph.v1"})
    builder.finish()
    refused(tmp_path, "has no place on the site")


def test_refuses_wrong_counts(tmp_path, builder):
    builder.finish(workloads=8)
    refused(tmp_path, "says 8 workloads, holds 9")


def test_refuses_a_target_that_is_not_listed(tmp_path, builder):
    builder.finish(targets=builder.targets[1:])
    refused(tmp_path, "'cpu' has records and is not listed")


def test_refuses_an_index_that_is_not_the_release(tmp_path, builder):
    index = tmp_path / "store" / "scores.json"
    lines = index.read_text().splitlines()
    del lines[5]
    index.write_text("\n".join(lines) + "\n")
    refused(tmp_path, "differs from the release")


def test_refuses_a_missing_object(tmp_path, builder):
    descriptor = next(entry for entry in builder.indexes["graphs"].values())
    (tmp_path / "store" / "graphs" / "objects" / descriptor.path).unlink()
    refused(tmp_path, "missing; run `solbench pull`")


def test_refuses_a_changed_object(tmp_path, builder):
    descriptor = builder.indexes["scores"]["cpu/eager"]
    path = tmp_path / "store" / "scores" / "objects" / descriptor.path
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data.replace(b"0.514", b"0.914"))
    refused(tmp_path, "digest is")


def test_refuses_a_template_that_loses_a_row(tmp_path, builder):
    templates = tmp_path / "store" / "templates"
    shutil.copytree(ROOT / "site_templates", templates)
    page = templates / "problem.html"
    page.write_text(page.read_text().replace("{% for solution in solutions %}", "{% for solution in solutions[1:] %}"))
    with pytest.raises(IntegrityError, match="is shown 0 times, the release has it 1 times"):
        render(tmp_path / "store", tmp_path / "site", templates=templates)
    page.write_text(page.read_text().replace("solutions[1:]", "solutions + solutions"))
    with pytest.raises(IntegrityError, match="is shown 2 times"):
        render(tmp_path / "store", tmp_path / "site", templates=templates)


def test_replaces_only_a_site(tmp_path, builder):
    out = tmp_path / "site"
    render(tmp_path / "store", out)
    (out / "old.html").write_text("left over")
    render(tmp_path / "store", out)
    assert not (out / "old.html").exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("keep me")
    with pytest.raises(InputError, match="is no rendered site"):
        render(tmp_path / "store", other)
    assert (other / "thesis.txt").read_text() == "keep me"
