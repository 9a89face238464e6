"""The site in a real browser (Debian's chromium through playwright), from disk, offline.

Skipped where there is no chromium, but not in CI (``.ci/run`` sets CI and installs it).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright import sync_api as playwright
from site_fixture import build_store

from solbench.site import render

CHROMIUM = shutil.which("chromium")
if CHROMIUM is None and not os.environ.get("CI"):
    pytest.skip("no chromium; apt-get install chromium", allow_module_level=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("browser")
    build_store(root / "store")
    render(root / "store", root / "site")
    return root / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280, 3840])
def test_pages_fit_ask_for_nothing_and_complain_of_nothing(site, browser, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    for path in sorted(site.rglob("*.html")):
        page = context.new_page()
        requests, complaints = [], []
        page.on("request", lambda request, seen=requests: seen.append(request.url))
        page.on("console", lambda message, seen=complaints: seen.append(message.text))
        page.on("pageerror", lambda error, seen=complaints: seen.append(str(error)))
        page.goto(path.as_uri())
        assert complaints == [], path
        assert all(url.startswith(site.as_uri()) for url in requests) and len(requests) >= 3, path
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), f"{path} is wider than {width} px"
        page.close()
    context.close()


def test_numbers_do_not_need_scripts(site, browser):
    texts = []
    for scripts in (True, False):
        context = browser.new_context(java_script_enabled=scripts)
        page = context.new_page()
        page.goto((site / "problems/AMD_AKA/torch2hip/l1n23_softmax.html").as_uri())
        texts.append([row.all_inner_texts() for row in page.locator("tbody tr").all()])
        if not scripts:
            assert page.locator("button:visible").count() == 0 and page.locator("input").count() == 0
        context.close()
    plain = [[" ".join(text.replace("copy", "").split()) for text in row] for row in texts[0]]
    assert plain == [[" ".join(text.split()) for text in row] for row in texts[1]]


def test_sorting_filtering_copying_and_colours(site, browser):
    context = browser.new_context(color_scheme="light")
    page = context.new_page()
    page.goto((site / "problems/AMD_AKA/torch2hip/l1n23_softmax.html").as_uri())
    table = page.locator("section", has=page.locator("#results-1")).locator("table")
    head = table.locator("thead th").nth(5)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    values = table.locator("tbody tr td:nth-child(6)").evaluate_all("cells => cells.map(c => c.dataset.sort)")
    known = [float(value) for value in values if value]
    assert known == sorted(known) and len(known) == 6 and values[-1] == ""
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    values = table.locator("tbody tr td:nth-child(6)").evaluate_all("cells => cells.map(c => c.dataset.sort)")
    assert [float(value) for value in values[:-1]] == sorted(known, reverse=True) and values[-1] == ""

    field = page.get_by_label("Filter results")
    field.fill("openmp audit")
    assert table.locator("tbody tr:visible").count() == 1
    assert page.locator(".filter output").first.inner_text() == "1 of 7 results"
    field.fill("")
    assert table.locator("tbody tr:visible").count() == 7

    button = page.locator("footer .copy")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    button.click()
    playwright.expect(button).to_have_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == button.get_attribute("data-copy")

    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.get_by_role("button", name="Switch to dark colours").click()
    dark = page.evaluate(colour)
    page.reload()
    assert page.evaluate(colour) == dark != light
    context.close()
