"""The page Compare as rendered: what changed since an earlier release, wherever that lies, or that none was given."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compared_releases import FASTER, PREDICATE, SOFTMAX, build
from html_check import Found, read

from solbench.cli import run
from solbench.errors import InputError
from solbench.release import bundle
from solbench.site import compare, render
from solbench.store import Store

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``old`` and ``new``, each a folder with a store; and ``site``, the newer one beside the older one."""
    root = tmp_path_factory.mktemp("compare")
    build(root)
    render(root / "new/store", root / "site", compare_with=str(root / "old/store"))
    return root


def page(site: Path) -> Found:
    return read((site / "compare.html").read_text())


def table(site: Path, name: str) -> list[dict[str, Any]]:
    """Rows of a table's JSON file by head, numbers by their exact values."""
    value = json.loads((site / f"compare.{name}.json").read_bytes())
    heads = [column["name"] for column in value["columns"]]
    cells = [[cell["value"] if isinstance(cell, dict) else cell for cell in row] for row in value["rows"]]
    return [dict(zip(heads, row)) for row in cells]


def test_without_an_earlier_release_it_says_so_and_what_to_do(releases, tmp_path):
    render(releases / "new/store", tmp_path / "site")
    found = page(tmp_path / "site")
    assert "No earlier release was given when this page was rendered" in found.text
    assert "solbench site --compare-with OLD" in found.text and "Verify both first" in found.text
    assert "solbench release diff OLD release/published.zip --json" in found.text
    assert "table" not in found.tags and "JavaScript is off" in found.text


def test_both_releases_and_their_roots(releases):
    found = page(releases / "site")
    roots = [Store(releases / name / "store").index("release")["release"].digest for name in ("old", "new")]
    assert roots[0] != roots[1] and all(root in found.text for root in roots)
    assert "Since release “earlier”" in found.text and "28 of 28 changed artifacts could be compared" in found.text
    facts = {row["Of the release"]: (row["Earlier"], row["This one"]) for row in table(releases / "site", "releases")}
    assert facts["name"] == ("earlier", "published") and facts["workloads"] == ("9", "the same")
    assert facts["target cpu"] == ("timed, 7 of 9 timed, 9 bounds (a made-up processor)", "the same")
    assert found.records == []


def test_each_stage_in_numbers(releases):
    rows = {row["Stage"]: row for row in table(releases / "site", "stages")}
    counts = ("Added", "Removed", "Moved", "Changed", "Compared", "Same")
    # All 16 scores of gfx1200 changed, and one of cpu.
    scores = len(Store(releases / "new/store").index("scores"))
    assert [rows["scores"][name] for name in counts] == [0, 0, 0, 17, "17 of 17", scores - 17]
    assert [rows["bounds"][name] for name in counts] == [0, 0, 0, 10, "10 of 10", 10]
    assert [rows["graphs"][name] for name in counts] == [0, 1, 1, 0, "0 of 0", 8]
    assert rows["corpus"]["Changed"] == rows["timings"]["Added"] == 0 and rows["timings"]["Changed"] == 1


def test_changed_scores_with_old_new_and_ratio(releases):
    rows = table(releases / "site", "scores")
    assert len(rows) == 17
    # The one whose S moved comes first. Its T_k was 3.5 and is 2.5 bounds of 8 * 1024 * 4096 B at 42 GB/s.
    first, bound = rows[0], 8 * 1024 * 4096 / 4.2e10
    assert first["Workload"] == f"{SOFTMAX} aka-l1n23_softmax-w1"
    assert (first["Target"], first["Solution"]) == ("cpu", "openmp") and FASTER.endswith("w1@cpu/openmp")
    assert [first["S, earlier"], first["S, now"]] == pytest.approx([1 / 1.5, 1 / 1.3])
    assert first["S, ratio"] == pytest.approx(1.5 / 1.3)
    assert [first["T_k, earlier"], first["T_k, now"]] == pytest.approx([3.5 * bound, 2.5 * bound])
    assert first["T_k, ratio"] == pytest.approx(2.5 / 3.5)
    assert "low end of S" in first["Also"] and "T_b" not in first["Also"]
    other = next(row for row in rows if row["Target"] == "gfx1200" and "23_softmax-w1" in row["Workload"])
    assert other["S, earlier"] is None and other["Also"] == "T_SOL 52.4\u00a0µs → 105\u00a0µs"


def test_changed_bounds_with_old_new_and_ratio(releases):
    rows = table(releases / "site", "bounds")
    found = {row["Workload"].rpartition(" ")[2]: row for row in rows}
    assert len(rows) == len(found) == 9 and {row["Target"] for row in rows} == {"gfx1200"}
    new = 8 * 1024 * 4096 / 3.2e11
    row = found["aka-l1n23_softmax-w1"]
    assert [row["T_SOL, earlier"], row["T_SOL, now"], row["Ratio"]] == pytest.approx([new / 2, new, 2.0])
    assert row["Also"] == "—"
    # Neither release bounds this one; what differs is the model that it names.
    assert rows[-1]["Workload"].endswith("aka-moe_topk_softmax-w1") and rows[-1]["T_SOL, now"] is None
    assert "hardware.digest" in rows[-1]["Also"]
    hardware, trace = table(releases / "site", "others")
    assert hardware["Artifact"] == "hardware/gfx1200" and "memory.published_bytes_per_s" in hardware["What differs"]
    assert (trace["Stage"], trace["Artifact"]) == ("timings", f"cpu/plain/{SOFTMAX}/aka-l1n23_softmax-w1/openmp")


def test_names_that_went_and_moved_stay_text(releases):
    text = (releases / "site/compare.html").read_text()
    found = page(releases / "site")
    assert "img" not in found.tags and "\u202e" not in text and found.tags.count("script") == 5
    assert "graphs: 1 removed <img src=x onerror=alert(1)>\\u202e/gone" in found.text
    assert f"graphs: 1 moved to another name <b>elsewhere</b> → {SOFTMAX}/aka-l1n23_softmax-w0" in found.text


def test_the_page_is_the_same_wherever_the_earlier_release_lies(releases, tmp_path):
    store = Store(releases / "old/store")
    for form in ("zip", "tar", "tar.gz"):
        bundle.write_bundle(store, tmp_path / f"old.{form}", PREDICATE, form=form)
    bundle.write_directory(store, tmp_path / "folder", PREDICATE)
    expected = (releases / "site/compare.html").read_bytes()
    for where in ("old.zip", "old.tar", "old.tar.gz", "folder", releases / "old", releases / "old/store"):
        render(releases / "new/store", tmp_path / "site", compare_with=str(tmp_path / where))
        assert (tmp_path / "site/compare.html").read_bytes() == expected, where


def test_two_builds_are_byte_equal(releases, tmp_path):
    code = "import sys; from solbench.cli import run; sys.exit(run(['site', *sys.argv[1:]]))"
    trees = []
    for seed in ("0", "4242"):
        out = tmp_path / seed
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        stores = ["--store", str(releases / "new/store"), "--compare-with", str(releases / "old/store")]
        command = [sys.executable, "-c", code, *stores, "--output", str(out)]
        subprocess.run(command, check=True, env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL)
        trees.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert trees[0] == trees[1]


def test_the_same_release_differs_in_nothing(releases, tmp_path):
    render(releases / "new/store", tmp_path / "site", compare_with=str(releases / "new"))
    found = page(tmp_path / "site")
    assert "Nothing differs: both are the same release." in found.text and "details" not in found.tags
    assert {(row["Changed"], row["Added"], row["Removed"]) for row in table(tmp_path / "site", "stages")} == {(0, 0, 0)}


def test_what_is_not_here_is_counted(releases, tmp_path):
    shutil.copytree(releases / "old/store", tmp_path / "store")
    entry = Store(tmp_path / "store").index("scores")[FASTER]
    (tmp_path / "store/scores/objects" / entry.path).unlink()
    render(releases / "new/store", tmp_path / "site", compare_with=str(tmp_path / "store"))
    found = page(tmp_path / "site")
    assert "27 of 28 changed artifacts could be compared" in found.text
    assert f"scores: 1 changed, and its earlier content is not here {FASTER}" in found.text
    [scores] = [row for row in table(tmp_path / "site", "stages") if row["Stage"] == "scores"]
    assert scores["Compared"] == "16 of 17" and len(table(tmp_path / "site", "scores")) == 16


def test_what_is_cut_says_where_the_rest_is(releases, tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "MOST_ROWS", 3)
    monkeypatch.setattr(compare, "MOST_NAMES", 0)
    render(releases / "new/store", tmp_path / "site", compare_with=str(releases / "old/store"))
    found = page(tmp_path / "site")
    assert "Shown: 3 of 17, the largest changes first. The command below has all of them." in found.text
    assert "Shown: 3 of 9, the largest" in found.text and "Shown: 0 of 1. The command below" in found.text
    assert len(table(tmp_path / "site", "scores")) == 3
    assert table(tmp_path / "site", "scores")[0]["Target"] == "cpu"


def test_the_command_refuses_what_is_no_release(releases, tmp_path, capsys):
    out = tmp_path / "site"
    command = ["site", "--store", str(releases / "new/store"), "--output", str(out), "--compare-with"]
    assert run([*command, str(releases / "old")]) == 0 and "Since release" in (out / "compare.html").read_text()
    before = (out / "site.json").read_bytes()
    assert run([*command, str(tmp_path / "nowhere.zip")]) == 2
    assert "no such bundle or checkout" in capsys.readouterr().err
    assert (out / "site.json").read_bytes() == before
    with pytest.raises(InputError, match="no index here"):
        (tmp_path / "empty/store").mkdir(parents=True)
        render(releases / "new/store", out, compare_with=str(tmp_path / "empty"))
