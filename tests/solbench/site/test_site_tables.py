"""Tables as CSV and JSON: the same cells as the page, bytes that never change, nothing that a spreadsheet runs."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from html_check import read as read_page
from site_fixture import HOSTILE, Builder, build_store

from solbench import canonical
from solbench.errors import SolbenchError
from solbench.site import render, summary, tables
from solbench.site.cells import Cell

TEMPLATES = Path(__file__).resolve().parents[3] / "site_templates"
RELEASE = "blake3:" + "1" * 64
OBJECT = "a" * 64


def page(rows: str, head: str = '<th>Name</th><th data-type="number" data-unit="s">T<sub>k</sub></th>') -> str:
    return (
        '<div class="scroll">\n<table data-enhance="sort" data-table="times">\n'
        f"<thead>\n<tr>{head}</tr>\n</thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>\n<p>after</p>\n"
    )


def published(rows: str, **head: str) -> tuple[str, list[list[str]], dict]:
    def links(name: str, files: list[tables.File]) -> str:
        return f"[{name} {' '.join(file.href for file in files)}]"

    result, files = tables.publish(page(rows, **head), "a/b.html", RELEASE, links)
    assert sorted(files) == ["a/b.times.csv", "a/b.times.json"]
    assert "</div>\n[times b.times.csv b.times.json]<p>after</p>" in result
    lines = list(csv.reader(io.StringIO(files["a/b.times.csv"].decode(), newline=""), strict=True))
    return result, lines, canonical.loads(files["a/b.times.json"])


def test_a_number_keeps_its_digits_and_what_is_shown():
    row = (
        f'<tr><th>w0</th><td data-sort="1.25e-05"><a class="v" href="../objects/aa/{OBJECT[2:]}" title="x">12.5 µs</a>'
        " <small>12.4 – 12.6 µs</small></td></tr>"
    )
    _, lines, value = published(row)
    assert lines == [["Name", "T_k [s]", "T_k, shown"], ["w0", "1.25e-05", "12.5 µs 12.4 – 12.6 µs"]]
    number = {"value": 1.25e-05, "text": "12.5 µs 12.4 – 12.6 µs", "object": f"blake3:{OBJECT}"}
    assert value["rows"] == [["w0", number]]
    assert value["columns"][1] == {"name": "T_k", "type": "number", "unit": "s"}
    assert (value["schema"], value["release"], value["page"]) == ("solbench.table.v1", RELEASE, "a/b.html")


def test_missing_is_no_number():
    _, lines, value = published(
        '<tr><th>w0</th><td data-sort="">not timed</td></tr>\n'
        "<tr><th>w1</th><td>8 of 9</td></tr>\n<tr><th>w2</th><td>1\u202f024</td></tr>"
    )
    assert [line[1:] for line in lines[1:]] == [["", "not timed"], ["", "8 of 9"], ["1024", "1\u202f024"]]
    assert [row[1]["value"] for row in value["rows"]] == [None, None, 1024]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\uff1d", "'"])
def test_a_spreadsheet_runs_nothing(start):
    words = f'{start}HYPERLINK("x";"y"),1'
    escaped = words.replace('"', "&#34;").replace("'", "&#39;")
    _, lines, value = published(f'<tr><th>{escaped}</th><td data-sort="-2.5">-2.5 s</td></tr>')
    # The text is guarded, the number stays one, and leaving off the apostrophe gives the text back.
    assert lines[1] == [f"'{words}", "-2.5", "'-2.5 s"]
    assert value["rows"][0][0] == words and value["rows"][0][1]["value"] == -2.5


def test_a_value_that_is_no_number_stays_text():
    _, lines, _ = published(
        '<tr><th>w</th><td data-sort="=1+1">x</td></tr>\n<tr><th>v</th><td data-sort="1e5)">y</td></tr>'
    )
    assert [line[1:] for line in lines[1:]] == [["", "x"], ["", "y"]]
    assert tables.harmless("\tx") == "'\tx" and tables.harmless("x=1") == "x=1"


def test_a_digest_is_whole_and_a_button_is_no_text():
    digest = f"blake3:{OBJECT}"
    cell = (
        f'<span class="hash"><a href="../objects/aa/{OBJECT[2:]}" title="{digest}"><code>aaaaaaaaaaaa…</code></a>'
        f'<button type="button" data-copy="{digest}" hidden>copy</button></span>'
    )
    _, lines, _ = published(f"<tr><th>w</th><td>{cell}</td></tr>", head="<th>Name</th><th>Object</th>")
    assert lines[1] == ["w", digest]


def test_the_object_of_a_range_is_that_of_its_value():
    ends = "".join(
        f'<a href="objects/{n * 2}/{n * 62}" title="{value} in bound x">{value}</a> '
        for n, value in (("b", 1), ("c", 2))
    )
    _, _, value = published(f'<tr><th>w</th><td data-sort="2">{ends}</td></tr>')
    assert value["rows"][0][1] == {"value": 2, "text": "1 2", "object": "blake3:" + "c" * 64}


def test_columns_of_one_name_stay_apart():
    _, lines, _ = published("<tr><th>w</th><td>a</td><td>b</td></tr>", head="<th>x</th><th>Binds</th><th>Binds</th>")
    assert lines[0] == ["x", "Binds", "Binds (2)"]


def test_the_foot_is_no_row():
    foot = '</tbody>\n<tfoot>\n<tr><th>mean</th><td data-mean="1"><span>1</span></td></tr>\n</tfoot>'
    content = page("<tr><th>w</th><td>1</td></tr>").replace("</tbody>", foot)
    _, files = tables.publish(content, "b.html", RELEASE, lambda name, found: "")
    assert len(files["b.times.csv"].splitlines()) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (page("<tr><th>w</th></tr>"), "1 cells under 2 heads"),
        (page("") * 2, "two tables are named"),
        (page("").replace("</table>\n</div>", "</table>\n<p>x</p></div>"), "not the last thing in a .scroll box"),
        (page("").replace('"times"', '"Times.x"'), "use lower-case words"),
    ],
)
def test_refuses_what_it_cannot_read(content, words):
    with pytest.raises(SolbenchError, match=words):
        tables.publish(content, "b.html", RELEASE, lambda name, found: "")


def test_every_table_that_sorts_has_files():
    found = [tag for path in TEMPLATES.glob("*.html") for tag in re.findall(r"<table[^>]*>", path.read_text())]
    assert [tag for tag in found if "data-enhance" in tag and "data-table" not in tag] == []
    assert sum("data-table" in tag for tag in found) >= 10


def test_means_count_what_they_leave_out():
    cells = [Cell("0.5", sort="0.5"), Cell("0", sort="0.0"), Cell("in audit"), Cell("1", sort="1")]
    assert summary.mean(cells) == summary.Mean("0.500", "3 of 4")
    assert summary.mean([Cell("not timed")]) == summary.Mean("—", "0 of 1")


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Builder]:
    root = tmp_path_factory.mktemp("tables")
    builder = build_store(root / "store", description=HOSTILE)
    render(root / "store", root / "site")
    return root / "site", builder


def test_files_of_a_site_are_listed_linked_and_as_they_were(rendered, tmp_path):
    site, builder = rendered
    manifest = canonical.loads((site / "site.json").read_bytes())["pages"]
    files = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.csv"))
    assert len(files) >= 22 and set(files) < set(manifest)
    linked = set()
    for path in site.rglob("*.html"):
        content = path.read_text()
        for href in read_page(content).links:
            if href.endswith((".csv", ".json")) and "/" not in href:
                file = (path.parent / href).relative_to(site).as_posix()
                linked.add(file)
                # The page names the digest that site.json has, and the bytes have it.
                assert f'title="{manifest[file]}"' in content
                assert canonical.digest((site / file).read_bytes()) == manifest[file]
    assert linked == {name for name in manifest if not name.endswith(".html") and not name.startswith("assets/")}
    assert render(builder.root, tmp_path / "again")["pages"] == manifest


def test_files_say_what_the_store_says(rendered):
    site, builder = rendered
    value = canonical.loads((site / "problems/AMD_AKA/torch2hip/l1n23_softmax.bounds.json").read_bytes())
    column = [c["name"] for c in value["columns"]].index("T_SOL cpu")
    for position, row in enumerate(value["rows"]):
        entry = builder.indexes["bounds"][f"AMD_AKA/torch2hip/l1n23_softmax/aka-l1n23_softmax-w{position}@cpu"]
        stored = canonical.loads((builder.root / "bounds" / "objects" / entry.path).read_bytes())
        assert row[column]["object"] == entry.digest and row[column]["value"] == stored["result"]["t_sol_s"]
    assert len(value["rows"]) == 4
