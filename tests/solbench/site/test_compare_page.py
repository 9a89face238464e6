"""The page Compare in a real browser: two bundles chosen or dropped, their differences as text, nothing asked for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compared_releases import FASTER, MOVED, PREDICATE, WIDER, build
from playwright import sync_api as playwright

from solbench import canonical
from solbench.release import bundle
from solbench.site import render
from solbench.store import Store

HOSTILE = "<img src=x onerror=alert(1)>\\u{202e}/gone"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with ``site`` of the newer release, and both as ``.zip``, ``.tar`` and folder."""
    root = tmp_path_factory.mktemp("compared")
    build(root)
    render(root / "new/store", root / "site")
    for name in ("old", "new"):
        store = Store(root / name / "store")
        bundle.write_bundle(store, root / f"{name}.zip", PREDICATE)
        bundle.write_bundle(store, root / f"{name}.tar", PREDICATE, form="tar")
        bundle.write_directory(store, root / f"{name}-folder", PREDICATE)
    return root


@pytest.fixture
def page(made: Path, offline: Any) -> Iterator[Any]:
    """The page Compare from disk, offline; it must ask for nothing but its own files, and complain of nothing."""
    page = offline.new_page()
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url))
    page.on("console", lambda message: seen.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: seen.append(f"error: {error}"))
    page.on("dialog", lambda dialog: seen.append(f"dialog: {dialog.message}"))
    page.goto((made / "site/compare.html").as_uri())
    yield page
    assert [line for line in seen if not line.startswith((made / "site").as_uri())] == []
    page.close()


def side(page: Any, title: str) -> Any:
    return page.locator("fieldset", has=page.get_by_text(title, exact=True))


def choose(page: Any, title: str, path: Path) -> None:
    side(page, title).get_by_label("Folder" if path.is_dir() else "Archive").set_input_files(path)


def compared(page: Any, old: Path, new: Path) -> Any:
    choose(page, "Earlier release", old)
    choose(page, "Later release", new)
    report = page.locator("#compare-report")
    playwright.expect(report.locator("table").first).to_be_visible(timeout=60_000)
    return report


def rows(report: Any, title: str) -> dict[str, list[str]]:
    """Cells of a table by the head of their row."""
    box = report.locator("div", has=report.page.get_by_role("heading", name=title)).last
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent.replaceAll('\\u00a0', ' ')))"
    return {row[0]: row[1:] for row in box.locator("tbody tr").evaluate_all(cells)}


def names(report: Any, title: str) -> list[str]:
    block = report.locator("details", has=report.page.get_by_text(title, exact=True))
    return block.locator("li").all_text_contents()


@pytest.mark.parametrize(("old", "new"), [("old.zip", "new.tar"), ("old.tar", "new-folder"), ("old-folder", "new.zip")])
def test_two_bundles_in_any_form(made, page, old, new):
    report = compared(page, made / old, made / new)
    roots = [Store(made / name / "store").index("release")["release"].digest for name in ("old", "new")]
    for title, name, root in (("Earlier release", "earlier", roots[0]), ("Later release", "published", roots[1])):
        assert side(page, title).locator("output").inner_text() == f"{name}, root {root}"
    assert report.locator(".verdict strong").all_inner_texts() == ["Two releases", "Not verified"]
    assert report.get_by_role("link", name="Verify").get_attribute("href") == "verify.html"
    sections = rows(report, "Sections")
    for stage in ("corpus", "graphs", "bounds", "timings", "scores"):
        one, two = (Store(made / name / "store").index(stage) for name in ("old", "new"))
        both = one.keys() & two.keys()
        changed = sum(one[name] != two[name] for name in both)
        counts = (len(two.keys() - one.keys()), len(one.keys() - two.keys()), changed, len(both) - changed)
        assert sections[stage] == [str(count) for count in counts]
    assert sections["graphs"] == ["1", "2", "0", "8"] and sections["bounds"][2] == "10"


def test_numbers_of_scores_and_bounds_old_and_new(made, page):
    report = compared(page, made / "old.zip", made / "new.zip")
    scores = rows(report, "Scores that changed (17)")
    assert len(scores) == 17
    # S = 1 / 1.5 and 1 / 1.3; T_k = 3.5 and 2.5 times 8 * 1024 * 4096 B / 42 GB/s = 799 us.
    assert scores[FASTER] == ["0.667", "0.769", "2.80 ms", "2.00 ms", "799 µs", "799 µs"]
    assert scores[f"{WIDER}/eager"] == ["none", "none", "none", "none", "52.4 µs", "105 µs"]
    bounds = rows(report, "Bounds that changed (9)")
    assert bounds[WIDER] == ["52.4 µs", "105 µs"]
    routing = "AMD_AKA/torch2flydsl/moe_topk_softmax/aka-moe_topk_softmax-w1@gfx1200"
    assert bounds[routing] == ["none", "none"]
    exact = report.get_by_title("0.6666666666666666", exact=True)
    assert exact.inner_text() == "0.667"
    page.set_viewport_size({"width": 360, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_names_from_a_bundle_stay_text(made, page):
    report = compared(page, made / "old.zip", made / "new.zip")
    assert names(report, "graphs: 2 removed") == ["<b>elsewhere</b>", HOSTILE]
    assert names(report, "graphs: 1 added") == [MOVED]
    assert "hardware/gfx1200" in names(report, "bounds: 10 changed")
    assert report.locator("img, b").count() == 0


def test_the_same_release_twice(made, page):
    report = compared(page, made / "new.zip", made / "new-folder")
    assert report.locator(".verdict strong").all_inner_texts() == ["The same release", "Not verified"]
    assert report.locator("table").count() == 1 and report.locator("details").count() == 0
    # Another choice on one side takes the old answer away and gives a new one.
    choose(page, "Earlier release", made / "old.zip")
    playwright.expect(report.locator(".verdict strong").first).to_have_text("Two releases")


def test_a_bundle_can_be_dropped(made, page):
    session = page.context.new_cdp_session(page)
    for title, name in (("Earlier release", "old.zip"), ("Later release", "new-folder")):
        box = side(page, title)
        box.scroll_into_view_if_needed()
        place = box.bounding_box()
        data = {"items": [], "files": [str(made / name)], "dragOperationsMask": 1}
        for step in ("dragEnter", "dragOver", "drop"):
            where = {"type": step, "x": place["x"] + 20, "y": place["y"] + 30}
            session.send("Input.dispatchDragEvent", {**where, "data": data})
        playwright.expect(box.locator("output")).to_contain_text("root blake3:")
    playwright.expect(page.locator("#compare-report .verdict").first).to_contain_text("Two releases")


def test_a_damaged_object_gives_no_number(made, page, tmp_path):
    folder = Path(shutil.copytree(made / "old-folder", tmp_path / "old"))
    index = Store(made / "old/store").index("scores")
    damaged, missing = (folder / "objects" / index[name].path for name in (FASTER, f"{WIDER}/eager"))
    damaged.write_bytes(damaged.read_bytes().replace(b'"s":0.6', b'"s":0.9'))
    missing.unlink()
    scores = rows(compared(page, folder, made / "new.zip"), "Scores that changed (17)")
    assert scores[FASTER][0].startswith(f"{index[FASTER].digest} is damaged: its bytes hash to blake3:")
    assert scores[FASTER][1] == "0.769"
    assert scores[f"{WIDER}/eager"][0].startswith(f"{index[f'{WIDER}/eager'].digest} is not in the bundle")


def forged(folder: Path, **changes: Any) -> None:
    release = canonical.loads((folder / "release.json").read_bytes())
    (folder / "release.json").write_bytes(canonical.dumps({**release, **changes}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "release.json").unlink(), "There is no release.json in it, so it is no bundle."),
        (lambda folder: (folder / "release.json").write_bytes(b"[1"), "Its release.json is no JSON object."),
        (lambda folder: forged(folder, sections={"<i>": {"digest": "<b>"}}), "<b> is not in the bundle."),
    ],
    ids=["no root", "no JSON", "no object"],
)
def test_what_is_no_bundle_is_refused(made, page, tmp_path, change, words):
    folder = Path(shutil.copytree(made / "old-folder", tmp_path / "old"))
    change(folder)
    choose(page, "Later release", made / "new.zip")
    choose(page, "Earlier release", folder)
    playwright.expect(side(page, "Earlier release").locator("output")).to_contain_text(words)
    assert page.locator("#compare-report").inner_html() == ""


def test_a_root_of_hostile_words_is_text(made, page, tmp_path):
    folder = Path(shutil.copytree(made / "old-folder", tmp_path / "old"))
    forged(folder, name="<img src=x onerror=alert(1)>")
    compared(page, folder, made / "new.zip")
    assert (
        side(page, "Earlier release").locator("output").inner_text().startswith("<img src=x onerror=alert(1)>, root ")
    )
    assert page.locator("#tool img").count() == 0


def test_other_files_are_refused(made, page, tmp_path):
    (tmp_path / "notes.txt").write_text("no archive")
    choose(page, "Earlier release", tmp_path / "notes.txt")
    said = side(page, "Earlier release").locator("output")
    playwright.expect(said).to_have_text("notes.txt is neither a .zip nor a .tar archive.")
    (tmp_path / "cut.zip").write_bytes((made / "old.zip").read_bytes()[:-100])
    choose(page, "Earlier release", tmp_path / "cut.zip")
    playwright.expect(said).to_contain_text("Not a ZIP archive as solbench writes it")


def test_without_scripts_the_page_says_how_else(made, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((made / "site/compare.html").as_uri())
    words = page.locator("main").inner_text()
    assert "JavaScript is off" in words and "solbench release diff OLD release/published.zip --json" in words
    assert page.locator("input:visible").count() == 0
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(made, browser, tmp_path, scheme):
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        if os.environ.get("CI"):
            raise
        pytest.skip("no axe; pip install axe-playwright-python")
    render(made / "new/store", tmp_path / "site", compare_with=str(made / "old.zip"))
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto((tmp_path / "site/compare.html").as_uri())
    report = compared(page, made / "old.zip", made / "new.zip")
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    assert report.locator("details[open]").count() > 3
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    context.close()
