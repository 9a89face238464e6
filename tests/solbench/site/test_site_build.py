"""Pages that are kept from one render to the next: the same bytes as if nothing were kept, whatever changed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from site_fixture import Builder, build_store

from solbench import canonical
from solbench.memo import Memo
from solbench.site import build, render
from solbench.store import without_kind

SOFTMAX = "AMD_AKA/torch2hip/l1n23_softmax"
MATMUL = "AMD_AKA/torch2hip/l1n2_standard_matmul"


DIGITS = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return build_store(tmp_path / "store")


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[build.Page]]:
    """The pages that were rendered in this process, which renders them all."""
    asked: list[build.Page] = []
    render_page = build._files_of

    def watched(site: build.Site, page: build.Page, *more: Any) -> dict[str, str]:
        asked.append(page)
        return render_page(site, page, *more)

    monkeypatch.setattr(build, "_files_of", watched)
    monkeypatch.setattr(build.shares, "workers_for", lambda *_: 1)
    yield asked


def change(builder: Builder, stage: str, name: str, **fields: Any) -> None:
    """Give one artifact other fields."""
    entry = builder.indexes[stage][name]
    path = builder.root / stage / "objects" / entry.path
    builder.put(stage, name, entry.kind, {**without_kind(canonical.loads(path.read_bytes())), **fields})


def both_ways(builder: Builder, root: Path) -> dict[str, bytes]:
    """The site with what is kept below ``root``, which must be the site without."""
    builder.finish()
    render(builder.root, root / "kept", memo=Memo(root / "memo"))
    render(builder.root, root / "fresh")
    found = tree(root / "kept")
    assert found == tree(root / "fresh")
    return found


def test_what_did_not_change_is_not_rendered_again(tmp_path, builder, rendered):
    first = both_ways(builder, tmp_path)
    rendered.clear()
    render(builder.root, tmp_path / "kept", memo=Memo(tmp_path / "memo"))
    assert not [page for page in rendered if page[0] in build.OF_A_PROBLEM]
    assert tree(tmp_path / "kept") == first
    change(builder, "corpus", MATMUL, description="Another description.")
    builder.finish()
    rendered.clear()
    render(builder.root, tmp_path / "kept", memo=Memo(tmp_path / "memo"))
    again = [page for page in rendered if page[0] in build.OF_A_PROBLEM]
    assert again and all(key.startswith(MATMUL) for _, key in again)


# Modules that rendering loads and that say nothing on a page.
SILENT = {
    "solar", "solar.errors", "solbench", "solbench.errors", "solbench.memo", "solbench.release",
    "solbench.release.shares", "solbench.score", "solbench.workspace", "solbench.yaml12",
}  # fmt: skip


def test_code_that_decides_a_page_is_named():
    """Else a page that was kept would outlive the code that made it."""
    script = "import sys, solbench.site; print(*(n for n in sys.modules if n.split('.')[0] in ('solbench', 'solar')))"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    files = {name: name.replace(".", "/") for name in loaded}
    named = [code.removesuffix(".py") for code in build.CODE]
    unnamed = {n for n, path in files.items() if not any(path == one or path.startswith(f"{one}/") for one in named)}
    assert unnamed == SILENT
    assert all((build._ROOT / code).exists() for code in build.CODE)


def test_the_release_is_named_everywhere(tmp_path, builder):
    """Also on pages that were kept from a release before, where its stand-in must be gone."""
    before = builder.finish()
    first = {digits for data in both_ways(builder, tmp_path).values() for digits in DIGITS.findall(data)}
    change(builder, "corpus", SOFTMAX, description="Another description.")
    root = builder.finish()
    found = both_ways(builder, tmp_path)
    for path, data in found.items():
        if path.endswith((".html", ".json")):
            assert root.digest.removeprefix("blake3:") in data.decode(), path
    new = {digits for data in found.values() for digits in DIGITS.findall(data)}
    known = {entry.digest for index in builder.indexes.values() for entry in index.values()}
    listed = set(canonical.loads(found["site.json"])["pages"].values())
    sections = {
        entry["digest"]
        for entry in canonical.loads((builder.root / "release" / "objects" / root.path).read_bytes())[
            "sections"
        ].values()
    }
    others = {f"blake3:{digits.decode()}" for digits in new} - known - listed - sections - {root.digest}
    # What is left stood there before: digests inside of artifacts. The one of the release before does not.
    assert others <= {f"blake3:{digits.decode()}" for digits in first} - {before.digest}


def test_no_text_can_spell_what_stands_for_the_release(tmp_path, builder, monkeypatch):
    """What stands in for it on a page follows from all that the page shows, so a text that names it changes it."""
    spelt: list[str] = []
    root = build.Site.root

    def watched(site: build.Site, page: build.Page) -> Any:
        found = root(site, page)
        if page == ("problem", SOFTMAX):
            spelt.append(found.digest)
        return found

    monkeypatch.setattr(build.Site, "root", watched)
    monkeypatch.setattr(build.shares, "workers_for", lambda *_: 1)
    render(builder.root, tmp_path / "first")
    (stand_in,) = set(spelt)
    assert stand_in.encode() not in (tmp_path / f"first/problems/{SOFTMAX}.html").read_bytes()
    change(builder, "corpus", SOFTMAX, description=f"Not the release: {stand_in}.")
    assert stand_in.encode() in both_ways(builder, tmp_path)[f"problems/{SOFTMAX}.html"]
    assert len(set(spelt)) == 2


CHANGES = [
    ("corpus", SOFTMAX, {"description": "Another description."}),
    ("corpus", f"{SOFTMAX}/solutions/openmp", {"author": "somebody else"}),
    ("workloads", f"{SOFTMAX}/aka-l1n23_softmax-w1", {"note": "an instance says more"}),
    ("graphs", f"{SOFTMAX}/aka-l1n23_softmax-w1", {"scalars": {"seen": 1}}),
    ("einsums", f"{SOFTMAX}/aka-l1n23_softmax-w1/attestation", {"predicate": {"verdict": "passed", "seeds": [7]}}),
    ("bounds", f"{MATMUL}/aka-l1n2_standard_matmul-w1@gfx1200", {"rejected_formats": ["float16"]}),
    ("bounds", "hardware/gfx1200", {"device": "another model"}),
    ("scores", f"{SOFTMAX}/aka-l1n23_softmax-w0@cpu/eager", {"s": 0.25, "s_low": 0.24, "s_high": 0.26}),
    ("scores", "cpu/eager", {"geometric_mean_speedup": 1.5}),
    ("timings", "cpu/plain/header", {"clocks": "locked"}),
]


@pytest.mark.parametrize(
    ("stage", "name", "fields"), CHANGES, ids=[f"{s}-{n.rpartition('/')[2]}" for s, n, _ in CHANGES]
)
def test_a_change_reaches_every_page(tmp_path, builder, stage, name, fields):
    before = both_ways(builder, tmp_path)
    change(builder, stage, name, **fields)
    assert both_ways(builder, tmp_path) != before


def test_a_target_that_changes_its_state_reaches_every_page(tmp_path, builder):
    both_ways(builder, tmp_path)
    builder.targets[1] = {**builder.targets[1], "note": "somebody lost the card"}
    found = both_ways(builder, tmp_path)
    page = f"problems/{SOFTMAX}.html"
    assert b"Somebody lost the card." in found[page]


def test_a_workload_that_is_gone_leaves_no_page(tmp_path, builder):
    both_ways(builder, tmp_path)
    gone = f"{SOFTMAX}/aka-l1n23_softmax-w3"
    for stage, index in builder.indexes.items():
        for name in [name for name in index if gone in name]:
            del builder.indexes[stage][name]
    builder.targets = [{**state, "bounds": state["bounds"] - 1} for state in builder.targets]
    found = both_ways(builder, tmp_path)
    assert f"workloads/{gone}.html" not in found
    assert b"l1n23_softmax-w3" not in found[f"problems/{SOFTMAX}.html"]


def test_other_templates_render_every_page_again(tmp_path, builder, rendered):
    both_ways(builder, tmp_path)
    templates = tmp_path / "templates"
    shutil.copytree(build.Path(__file__).resolve().parents[3] / "site_templates", templates)
    method = templates / "workload.html"
    method.write_text(method.read_text().replace("Attestation", "What was attested"))
    rendered.clear()
    render(builder.root, tmp_path / "kept", templates=templates, memo=Memo(tmp_path / "memo"))
    assert len({page for page in rendered if page[0] == "workload"}) == 9
    assert b"What was attested" in (tmp_path / f"kept/workloads/{SOFTMAX}/aka-l1n23_softmax-w0.html").read_bytes()


def test_a_torn_entry_counts_as_absent(tmp_path, builder):
    first = both_ways(builder, tmp_path)
    for path in (tmp_path / "memo").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert both_ways(builder, tmp_path) == first


def test_what_is_kept_does_not_grow_with_every_release(tmp_path, builder):
    both_ways(builder, tmp_path)
    count = sum(path.is_file() for path in (tmp_path / "memo").rglob("*"))
    change(builder, "corpus", SOFTMAX, description="Another description.")
    both_ways(builder, tmp_path)
    assert sum(path.is_file() for path in (tmp_path / "memo").rglob("*")) == count


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_any_number_of_processes_renders_the_same(tmp_path, builder, monkeypatch, workers):
    render(builder.root, tmp_path / "plain")
    monkeypatch.setattr(build.shares, "workers_for", lambda *_: workers)
    render(builder.root, tmp_path / "other")
    assert tree(tmp_path / "plain") == tree(tmp_path / "other")
