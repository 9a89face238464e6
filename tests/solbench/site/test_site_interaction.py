"""Tables in a real browser: sorting, filtering, the address, copying; and axe on the pages, light and dark."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_kinds import KINDS
from playwright import sync_api as playwright
from site_fixture import HOSTILE, build_store

from solbench.site import render, summary
from solbench.site.cells import Cell

SOFTMAX = "problems/AMD_AKA/torch2hip/l1n23_softmax.html"
MATMUL = "problems/AMD_AKA/torch2hip/l1n2_standard_matmul.html"
TEXTS = "rows => rows.filter(row => !row.hidden).map(row => [...row.cells].map(cell => cell.innerText))"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("interaction")
    build_store(root / "store", description=HOSTILE)
    render(root / "store", root / "site")
    return root / "site"


@pytest.fixture
def page(offline: Any) -> Iterator[Any]:
    page = offline.new_page()
    seen: list[str] = []
    page.on("console", lambda message: seen.append(message.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    yield page
    assert seen == []
    page.close()


def table(page: Any, name: str = "results-1") -> Any:
    return page.locator(f'table[data-table="{name}"]')


def bar(page: Any, name: str = "results-1") -> Any:
    return page.locator(".filter", has=page.locator(f'xpath=following-sibling::*[1]//table[@data-table="{name}"]'))


def shown(page: Any, name: str = "results-1") -> list[list[str]]:
    return table(page, name).locator("tbody tr").evaluate_all(TEXTS)


def sort(page: Any, head: int, name: str = "results-1") -> None:
    table(page, name).locator("thead th").nth(head).locator("button").click()


def fragment(page: Any) -> str:
    return page.evaluate("location.hash")


def test_sorting_is_stable_and_says_its_direction(site, page):
    page.goto((site / SOFTMAX).as_uri())
    before = shown(page)
    sort(page, 2)
    # By solution; within one, workloads stay in their order.
    assert shown(page) == sorted(before, key=lambda row: row[2]) != before
    heads = table(page).locator("thead th")
    assert [heads.nth(i).get_attribute("aria-sort") for i in (1, 2, 3)] == [None, "ascending", None]
    sort(page, 2)
    assert heads.nth(2).get_attribute("aria-sort") == "descending"
    assert shown(page) == sorted(before, key=lambda row: row[2], reverse=True)
    bar(page).get_by_role("button", name="Reset results").click()
    assert shown(page) == before and table(page).locator("[aria-sort]").count() == 0


def test_numbers_sort_by_their_exact_value(site, page):
    page.goto((site / "index.html").as_uri())
    sort(page, 3, "problems")
    cells = table(page, "problems").locator("tbody td:nth-child(4)")
    values = [float(value) for value in cells.evaluate_all("cells => cells.map(cell => cell.dataset.sort)")]
    # As text, 1.64 s would stand before 51.1 ms and 780 ns.
    assert values == sorted(values) and cells.all_inner_texts()[-1].endswith("1.64\u00a0s")


def test_sorting_by_keyboard(site, page):
    page.goto((site / SOFTMAX).as_uri())
    button = table(page).locator("thead th").nth(8).locator("button")
    button.focus()
    page.keyboard.press("Enter")
    assert table(page).locator("thead th").nth(8).get_attribute("aria-sort") == "ascending"
    assert page.evaluate("document.activeElement.textContent") == "Score S"


def test_state_is_in_the_address_and_comes_back(site, page, browser):
    page.goto((site / SOFTMAX).as_uri() + "#bounds")
    sort(page, 8)
    sort(page, 0, "bounds")
    bar(page).get_by_label("Filter results").fill("openmp")
    page.wait_for_function("location.hash.includes('openmp')")
    anchor, state_of_tables = fragment(page).removeprefix("#").split("~")
    assert anchor == "bounds"
    assert set(state_of_tables.split("&")) == {"bounds.sort=1", "results-1.sort=9", "results-1.filter=openmp"}
    state = shown(page), shown(page, "bounds")
    assert len(state[0]) == 4

    other = browser.new_context()
    again = other.new_page()
    again.goto(page.url)
    assert (shown(again), shown(again, "bounds")) == state
    assert bar(again).locator("output").inner_text() == "4 of 7 results"
    other.close()

    page.go_back()
    assert len(shown(page)) == 7 and bar(page).get_by_label("Filter results").input_value() == ""
    assert table(page, "bounds").locator("thead th").nth(0).get_attribute("aria-sort") == "ascending"
    page.go_back()
    assert table(page, "bounds").locator("[aria-sort]").count() == 0
    assert table(page).locator("thead th").nth(8).get_attribute("aria-sort") == "ascending"
    page.go_forward()
    page.go_forward()
    assert (shown(page), shown(page, "bounds")) == state
    page.reload()
    assert (shown(page), shown(page, "bounds")) == state


def test_a_link_to_an_anchor_keeps_the_tables(site, page):
    page.goto((site / SOFTMAX).as_uri())
    bar(page).get_by_label("Filter results").fill("openmp")
    page.locator('.toc a[href="#reference"]').click()
    page.wait_for_function("location.hash.startsWith('#reference~')")
    assert len(shown(page)) == 4
    page.goto((site / SOFTMAX).as_uri() + "#w-aka-l1n23_softmax-w3~results-1.sort=-9")
    playwright.expect(page.locator("#w-aka-l1n23_softmax-w3")).to_be_in_viewport()


@pytest.mark.parametrize(
    "state", ["results-1.sort=99", "results-1.sort=x", "results-1.only=<b>", "nothing.sort=1", "%zz", "~~~"]
)
def test_an_address_that_makes_no_sense_changes_nothing(site, page, state):
    page.goto((site / SOFTMAX).as_uri())
    before = shown(page)
    page.goto("about:blank")
    page.goto(f"{(site / SOFTMAX).as_uri()}#~{state}")
    assert shown(page) == before


def test_only_one_state(site, page):
    page.goto((site / SOFTMAX).as_uri())
    only = bar(page).get_by_label("Only")
    assert only.locator("option").all_inner_texts() == [
        "all results", "in audit", "too narrow to score", "not measured",
    ]  # fmt: skip
    only.select_option("in audit")
    assert [row[-1] for row in shown(page)] == ["in audit: T_k is below T_SOL"]
    assert bar(page).locator("output").inner_text() == "1 of 7 results"
    assert fragment(page) == "#~results-1.only=audit"
    page.go_back()
    assert only.input_value() == "" and len(shown(page)) == 7


def test_the_foot_follows_the_filter(site, page):
    page.goto((site / SOFTMAX).as_uri())
    foot = table(page).locator("tfoot td")
    rendered = [" ".join(words.split()) for words in foot.all_inner_texts()]
    # eager: three times 1 / (1 + 4.7 / 5); openmp: once 1 / (1 + 1.5 / 5), and of one workload neither has a score.
    assert rendered == ["0.515 3 of 4", "0.769 1 of 4"]
    field = bar(page).get_by_label("Filter results")
    # What every row holds: the script's own means are those that were rendered.
    field.fill("w")
    assert len(shown(page)) == 7
    assert [" ".join(words.split()) for words in foot.all_inner_texts()] == rendered
    field.fill("w1")
    assert [" ".join(words.split()) for words in foot.all_inner_texts()] == ["0.515 1 of 1", "0.769 1 of 1"]
    field.fill("audit")
    assert [" ".join(words.split()) for words in foot.all_inner_texts()] == ["— 0 of 0", "— 0 of 1"]
    field.fill("")
    assert [" ".join(words.split()) for words in foot.all_inner_texts()] == rendered


def test_a_mean_is_rounded_as_the_renderer_rounds(site, page, tmp_path):
    values = [0.5125, 0.5135, 0.51249, 0.51251, 0.0003, 0.0005, 0.0007, 0.9996, 0.99949, 2 / 3, 1 / 3, 0.1 + 0.2, 0, 1]
    pairs = [(values[i], values[i - 1]) for i in range(len(values))] + [(value, value) for value in values]
    rows = "".join(
        f'<tr data-groups="{i}"><th>all</th><td data-sort="{one!r}">x</td></tr>'
        for i, p in enumerate(pairs)
        for one in p
    )
    foot = "".join(
        f'<tr data-group="{i}"><th>mean</th><td data-mean="1"><span>?</span> <small>?</small></td></tr>'
        for i in range(len(pairs))
    )
    (tmp_path / "x.html").write_text(
        f'<!doctype html><meta charset="utf-8"><script src="{(site / "assets/site.js").as_uri()}"></script>'
        f'<table data-enhance="filter" data-table="x"><thead><tr><th>a</th><th data-type="number">b</th></tr></thead>'
        f"<tbody>{rows}</tbody><tfoot>{foot}</tfoot></table>"
    )
    page.goto((tmp_path / "x.html").as_uri())
    page.get_by_label("Filter rows").fill("all")
    found = page.locator("tfoot td").evaluate_all("cells => cells.map(c => [...c.children].map(e => e.textContent))")
    means = [summary.mean([Cell("x", sort=repr(one)) for one in pair]) for pair in pairs]
    assert found == [[mean.text, mean.count] for mean in means]


def test_copy_says_that_it_copied(site, browser):
    context = browser.new_context()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto((site / SOFTMAX).as_uri())
    button = page.get_by_role("button", name="Copy the digest of table bounds as CSV")
    button.click()
    playwright.expect(page.locator("output.said")).to_have_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == button.get_attribute("data-copy")
    page.goto((site / "verify.html").as_uri())
    page.get_by_role("button", name="Copy the verify command").click()
    playwright.expect(page.locator("output.said")).to_have_text("copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith("solbench verify release/published.zip")
    context.close()


@pytest.mark.parametrize("path", ["index.html", "targets/cpu.html", MATMUL])
def test_files_hold_the_cells_that_a_reader_sees(site, browser, path):
    """With scripts and without, every cell of a table is in its CSV and JSON, in order."""
    for scripts in (True, False):
        context = browser.new_context(java_script_enabled=scripts)
        page = context.new_page()
        page.goto((site / path).as_uri())
        for found in page.locator("table[data-table]").all():
            name = found.get_attribute("data-table")
            with (site / path).with_suffix(f".{name}.csv").open(newline="", encoding="utf-8") as file:
                head, *lines = csv.reader(file)
            # A number has two columns; the second is what is shown.
            texts = [i for i, after in enumerate([*head[1:], ""]) if not after.endswith(", shown")]
            kept = [[squeezed(line[i].removeprefix("'")) for i in texts] for line in lines]
            rows = found.locator("tbody tr")
            cells = "rows => rows.map(row => [...row.cells].map(cell => { const copy = cell.cloneNode(true);"
            cells += "copy.querySelectorAll('button').forEach(b => b.remove());"
            cells += "copy.querySelectorAll('.hash a').forEach(a => { a.textContent = a.title; });"
            cells += "copy.querySelectorAll('sub').forEach(s => { s.textContent = '_' + s.textContent; });"
            cells += "return copy.textContent; }))"
            assert kept == [[squeezed(cell) for cell in row] for row in rows.evaluate_all(cells)], name
            assert len(lines) > 0
        context.close()


def squeezed(words: str) -> str:
    """Without white space, which a file has between the parts of a cell and a page's text has not."""
    return "".join(words.split())


def test_scripts_are_small(site):
    sizes = {path.name: path.stat().st_size for path in (site / "assets").glob("*.js")}
    assert set(sizes) >= {"site.js", "blake3.js", "bundle.js", "verify.js"}
    # Every page loads site.js; only Verify and Compare what reads bundles, and each its own.
    assert sizes["site.js"] < 16 << 10 and sum(sizes.values()) < 64 << 10
    for path in site.rglob("*.html"):
        loaded = {name for name in sizes if f'assets/{name}"' in path.read_text()}
        reading = {"blake3.js", "bundle.js", "choose.js", path.with_suffix(".js").name}
        assert loaded == {"site.js"} | (reading if path.name in ("verify.html", "compare.html") else set()), path


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(site, browser, scheme):
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        if os.environ.get("CI"):
            raise
        pytest.skip("no axe; pip install axe-playwright-python")
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    for path in [*KINDS.values(), "targets/gfx1200.html", SOFTMAX]:
        page.goto((site / path).as_uri())
        page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        if path == "verify.html":
            page.get_by_label("Archive or files").set_input_files(site / "site.json")
            playwright.expect(page.locator("#verify-files")).to_be_visible()
        found = Axe().run(page)
        assert found.violations_count == 0, f"{path}, {scheme}: {found.generate_report()}"
    page.evaluate("document.documentElement.removeAttribute('lang')")
    assert Axe().run(page).violations_count == 1
    context.close()
