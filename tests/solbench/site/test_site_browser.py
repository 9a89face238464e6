"""The site in a real browser (Debian's chromium through playwright), from disk, offline.

Skipped where there is no chromium, but not in CI (``.ci/run`` sets CI and installs it).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from page_kinds import KINDS, build_site, kind
from playwright import sync_api as playwright


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("browser"))


# 640 is 1280 at 200 %; the device scale is 2.
WIDTHS = (360, 640, 1280, 3840)
ROOT = "document.documentElement"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_ask_for_nothing_and_complain_of_nothing(site, browser, scheme):
    context = browser.new_context(device_scale_factor=2, color_scheme=scheme, offline=True)
    page = context.new_page()
    requests, complaints = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    paths = sorted(site.rglob("*.html"))
    assert {kind(path.relative_to(site).as_posix()) for path in paths} == set(KINDS)
    for path in paths:
        requests.clear()
        page.goto(path.as_uri())
        assert all(url.startswith(site.as_uri()) for url in requests) and len(requests) >= 3, path
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(f"{ROOT}.scrollWidth <= {ROOT}.clientWidth"), f"{path} is wider than {width} px"
        assert complaints == [], path
    # All of this can be told from what is wrong.
    page.set_viewport_size({"width": 360, "height": 900})
    page.evaluate("document.querySelector('main').append('x'.repeat(99), document.createElement('img'))")
    page.evaluate("document.querySelector('main').style.whiteSpace = 'pre'")
    assert page.evaluate(f"{ROOT}.scrollWidth > {ROOT}.clientWidth")
    page.evaluate("document.querySelector('img').src = 'https://example.org/x.svg'")
    playwright.expect(page.locator("img")).to_have_js_property("complete", True)
    assert len(complaints) == 1 and "Content Security Policy" in complaints[0]
    context.close()


# A4 between margins of 1 cm. Chromium makes a page that is too wide smaller, to two thirds at most; the rest is cut.
PAPER, SMALLEST = 718, 2 / 3
# Elements with less room than their content, where it cannot be scrolled to; and what a reader needs but is not there.
CUT = """() => [...document.querySelectorAll('main *')].filter((one) => {
    const style = getComputedStyle(one);
    return one.clientWidth > 1 && (style.overflowX !== 'visible' && one.scrollWidth > one.clientWidth + 1
        || style.overflowY !== 'visible' && one.scrollHeight > one.clientHeight + 1);
}).map((one) => one.outerHTML.slice(0, 200))"""
HIDDEN = """() => [...document.querySelectorAll(
    'details > :not(.files, .filter), main :is(h1, h2, h3, h4, table, pre, dl, figure, tbody tr, thead th)')]
    .filter((one) => !one.checkVisibility({ contentVisibilityAuto: true }) || one.getBoundingClientRect().height < 1)
    .map((one) => one.outerHTML.slice(0, 200))"""


def test_print_shows_everything(site, browser):
    context = browser.new_context(viewport={"width": PAPER, "height": 1046}, offline=True)
    page = context.new_page()
    closed = 0
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        page.emulate_media(media="screen")
        found = page.locator("details:not([open])").count()
        assert (len(page.evaluate(HIDDEN)) > 0) == (found > 0), path
        page.emulate_media(media="print")
        assert page.evaluate(HIDDEN) == [], path
        assert page.evaluate(CUT) == [], path
        assert page.evaluate(f"{ROOT}.scrollWidth") * SMALLEST <= PAPER, path
        assert page.locator(":not(th) > button:visible, input:visible, .top nav:visible").count() == 0, path
        # A button that is a box is printed in the first of the repeated heads of a table only.
        boxes = "all => all.filter(one => getComputedStyle(one).display !== 'contents').length"
        assert page.locator("thead button").evaluate_all(boxes) == 0, path
        closed += found
    assert closed > 20
    page.evaluate(
        "document.querySelector('main pre').style.cssText = 'width: 2rem; overflow: hidden; white-space: pre'"
    )
    assert len(page.evaluate(CUT)) == 1
    context.close()


# The words of a page without what only scripts make, which has no number of the release.
WORDS = """() => {
    const main = document.querySelector('main').cloneNode(true);
    main.querySelectorAll('.copy, .filter, .said, noscript, #tool').forEach(one => one.remove());
    return main.textContent;
}"""


@pytest.mark.parametrize("name", KINDS)
def test_words_and_numbers_do_not_need_scripts(site, browser, name):
    texts = []
    for scripts in (True, False):
        context = browser.new_context(java_script_enabled=scripts, offline=True)
        page = context.new_page()
        page.goto((site / KINDS[name]).as_uri())
        texts.append(" ".join(page.evaluate(WORDS).split()))
        if not scripts:
            assert page.locator("button:visible").count() == 0 and page.locator("input:visible").count() == 0
        context.close()
    assert texts[0] == texts[1] and len(texts[0]) > 500


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
