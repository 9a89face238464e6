"""Rules for the templates that no rendering can break, and how text and charts come out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from solbench.errors import SolbenchError
from solbench.site import chart, text
from solbench.site.build import environment

FOLDER = Path(__file__).resolve().parents[3] / "site_templates"
FORBIDDEN = {
    "unescaped output": r"\|\s*safe\b|Markup|autoescape|\bxmlattr\b",
    "inline script": r"<script(?![^>]*\ssrc=)",
    "inline style": r"<style|\sstyle\s*=",
    "event attribute": r"\son[a-z]+\s*=",
    "external address": r"(?:src|href)\s*=\s*[\"']?\s*(?:[a-z]+:)?//|url\(|@import",
    "unquoted attribute": r"=\{\{",
    "a form or frame": r"<(?:form|iframe|object|embed|base)\b",
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.html")), ids=lambda path: path.name)
def test_templates_obey(path):
    for rule, pattern in FORBIDDEN.items():
        assert not re.search(pattern, path.read_text()), rule


@pytest.mark.parametrize(
    "bad",
    [
        "{{ x|safe }}",
        "<script>x</script>",
        '<p style="x">',
        '<p onclick="x">',
        '<a href="https://x">',
        "<p id={{ x }}>",
        "<form>",
    ],
)
def test_the_rules_catch(bad):
    assert any(re.search(pattern, bad) for pattern in FORBIDDEN.values())


def test_assets_ask_for_nothing():
    for path in (FOLDER / "assets").iterdir():
        content = path.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert not re.search(r"https?:|@import|url\(|fetch\(|XMLHttpRequest|eval\(|innerHTML", content), path


def test_environment_escapes_and_refuses(tmp_path):
    (tmp_path / "x.html").write_text("<p title='{{ x }}'>{{ x }}</p>")
    template = environment(tmp_path).get_template("x.html")
    assert template.render(x="<b>'\u2066") == "<p title='&lt;b&gt;&#39;\\u2066'>&lt;b&gt;&#39;\\u2066</p>"
    with pytest.raises(UndefinedError):
        template.render()
    for value in (None, 1.5, True, float("nan")):
        with pytest.raises(SolbenchError, match="a template prints"):
            template.render(x=value)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (1.23456e-05, "s", "12.3 µs"),
        (0.00099951, "s", "1.00 ms"),
        (9.996e-07, "s", "1.00 µs"),
        (6e-10, "s", "0.600 ns"),
        (1234.5, "s", "1234 s"),
        (0.25, "s", "250 ms"),
        (320e9, "B/s", "320 GB/s"),
        (1048576, "B", "1.05 MB"),
        (512, "B", "512 B"),
        (25.6e12, "op/s", "25.6 Top/s"),
        (0, "op", "0 op"),
        (-2.5e-06, "s", "−2.50 µs"),
    ],
)
def test_quantities_have_three_digits(value, unit, expected):
    assert text.quantity(value, unit) == expected.replace(" ", "\u00a0")


def test_other_numbers():
    assert text.span(1.2e-05, 1.31e-05, "s", 1.25e-05) == "12.0 – 13.1 µs".replace(" ", "\u00a0")
    assert [text.score(value) for value in (0.5, 0.51249, 0, 1)] == ["0.500", "0.512", "0", "1"]
    assert text.score(0.0003) == "<\u00a00.001" and text.score(0.0007) == "0.001"
    assert text.capacity(33554432) == "32\u00a0MiB" and text.capacity(1000) == "1.00\u00a0kB"
    assert text.sentence("no card") == "No card." and text.sentence("") == "."
    assert text.percent(0.96875) == "96.9\u00a0%" and text.percent(1.0) == "100\u00a0%"
    assert text.ratio(3.4159) == "3.42×" and text.ratio(1400.0) == "1400×"
    assert text.grouped(1048576) == "1\u202f048\u202f576"


def test_visible_keeps_words_and_shows_the_rest():
    assert text.visible("größe µ 二") == "größe µ 二"
    assert text.visible("a\u202eb\u200dc\x1b[0m\u3164\n") == "a\\u202eb\\u200dc\\x1b[0m\\u3164\\n"
    assert text.visible(text.Lines("a\tb\n\u2028")) == "a\tb\n\\u2028"


def test_code_is_kept_to_the_letter():
    source = "\n\ndef run(x):\n\treturn x  # <b>\n\n"
    assert "".join(piece for _, piece in text.highlighted(source)) == source
    assert ("k", "return") in text.highlighted(source)


def test_time_chart_places_by_logarithm():
    lines = [chart.Line("w0", "", chart.Point("sol", 1e-6, "bound"), ((chart.Point("a", 1e-4, "k", 9e-5, 2e-4),),))]
    drawn = chart.time_chart("c", "t", "d", lines, [])
    x = {label: float(place) for place, label in drawn.ticks}
    # The bound lies on the tick of 1 µs, the point on that of 100 µs, and decades are equally wide.
    assert abs(float(drawn.rows[0].across.x) - x["1\u00a0µs"]) < 0.11
    assert abs(float(drawn.rows[0].marks[0].x) - x["100\u00a0µs"]) < 0.11
    assert abs((x["10\u00a0µs"] - x["1\u00a0µs"]) - (x["100\u00a0µs"] - x["10\u00a0µs"])) < 0.21
    mark = drawn.rows[0].marks[0]
    assert float(mark.low) < float(mark.x) < float(mark.high) < drawn.right
    assert chart.time_chart("c", "t", "d", [chart.Line("w0", "", None, ())], []) is None


def test_score_chart_runs_from_0_to_1():
    lines = [chart.Line("p", "", None, ((chart.Point("a", 0.0, "k"),), (chart.Point("b", 1.0, "k"),)))]
    drawn = chart.score_chart("c", "t", "d", lines, [])
    assert [float(mark.x) for mark in drawn.rows[0].marks] == [drawn.left, drawn.right]
    assert [label for _, label in drawn.ticks] == ["0", "0.25", "0.5", "0.75", "1"]
