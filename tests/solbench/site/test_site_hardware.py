"""The page Hardware: every number of every machine model, beside the others, with its source and what it rests on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from html_check import read
from site_fixture import HOSTILE, Builder, build_store

from solbench import canonical
from solbench.site import hardware, pages, render
from solbench.site.build import CSP, environment
from solbench.site.links import Links, Objects, paths
from solbench.site.reading import load
from solbench.store import Store

TEMPLATES = Path(__file__).resolve().parents[3] / "site_templates"


def model(root: Path, target: str) -> dict[str, Any]:
    entry = canonical.parse((root / "bounds.json").read_bytes())["entries"][f"hardware/{target}"]
    digits = entry["digest"].removeprefix("blake3:")
    return dict(json.loads((root / "bounds" / "objects" / digits[:2] / digits[2:]).read_bytes()))


def replaced(builder: Builder, target: str, **changes: Any) -> None:
    value = model(builder.root, target) | changes
    del value["kind"]
    builder.put("bounds", f"hardware/{target}", "hardware", value)
    builder.finish()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hardware")
    builder = build_store(root / "store")
    fast = {
        "ops_per_clock": 32768, "published_ops_per_s": 103.0e12, "published_clock_hz": 3.13e9,
        "dense": True, "source": f"the vendor's page {HOSTILE}", "confidence": "high",
    }  # fmt: skip
    engines = model(builder.root, "gfx1200")["engines"]
    replaced(builder, "gfx1200", engines={"matrix": {"float16": fast}, "valu": engines["valu"]})
    render(root / "store", root / "site")
    return root / "site"


def table(site: Path, name: str) -> list[dict[str, Any]]:
    """Rows of a table's JSON file by head."""
    value = json.loads((site / f"hardware.{name}.json").read_bytes())
    heads = [column["name"] for column in value["columns"]]
    return [dict(zip(heads, row)) for row in value["rows"]]


def used(rate: dict[str, Any], unit: str, highest: float | None) -> float:
    """What the bound divides by (solar.hardware's docstring, rule 7)."""
    if "margin" in rate:
        return float(rate[f"measured_{unit}_per_s"] * rate["margin"])
    return float(max(rate[f"{unit}_per_clock"] * (highest or 0), rate[f"published_{unit}_per_s"]))


def expected(site: Path) -> dict[tuple[str, str], tuple[float, str, str]]:
    """(number, target) -> value, source, confidence: from the JSON of the models alone."""
    found = {}
    for target in ("cpu", "gfx1200"):
        value = model(site.parent / "store", target)
        clock = value["clock"]
        for engine, formats in value["engines"].items():
            for form, rate in formats.items():
                rated = used(rate, "ops", clock and clock["highest_hz"])
                found[f"{engine}, {form}", target] = (rated, rate["source"], rate["confidence"])
        memory = value["memory"]
        rated = used(memory, "bytes", memory.get("highest_clock_hz"))
        found["memory", target] = (rated, memory["source"], memory["confidence"])
        cache, stores = value["caches"]["last_level_bytes"], value["absorbed_store_bytes"]
        found["last-level cache", target] = (cache["value"], cache["source"], cache["confidence"])
        name = "stores that the cache may absorb inside the timed window"
        found[name, target] = (stores["value"], stores["source"], stores["confidence"])
        if clock:
            found["highest clock that can be set", target] = (clock["highest_hz"], clock["source"], clock["confidence"])
    return found


def test_every_number_stands_beside_those_of_the_other_targets(site):
    numbers = expected(site)
    rows = table(site, "side-by-side")
    names = [row["Rate or figure"] for row in rows]
    assert sorted(names) == sorted({name for name, _ in numbers}) and len(names) == 7
    # Memory first, then the engines, each in the order of its formats.
    assert names[:4] == ["memory", "matrix, float16", "matrix, bfloat16", "valu, float32"]
    for row in rows:
        for target in ("cpu", "gfx1200"):
            known = numbers.get((row["Rate or figure"], target))
            cell = row[target]
            if known is None:
                assert (cell["value"], cell["text"], cell["object"]) == (None, "none", None)
            else:
                assert cell["value"] == pytest.approx(known[0]) and cell["text"].endswith(known[2])
    # 32,768 operations at 3.13 GHz are less than the 103 Tops/s that are published, so these are used.
    assert rows[1]["gfx1200"]["value"] == 103.0e12 and rows[1]["gfx1200"]["text"].startswith("103\u00a0Top/s")


def test_every_number_has_its_source_as_given(site):
    rows = table(site, "sources")
    shown = {(row["Rate or figure"], row["Target"]): (row["Source"], row["Confidence"]) for row in rows}
    stated = {key: (source, confidence) for key, (_, source, confidence) in expected(site).items()}
    fast = ("matrix, float16", "gfx1200")
    assert stated[fast][0].endswith(HOSTILE)
    assert shown[fast][0] == 'the vendor\'s page <script>alert(1)</script> "q" \\u202egnp.exe\\u200b & \\x07'
    assert {**shown, fast: ""} == {**stated, fast: ""} and len(rows) == len(stated) == 11
    checks = {(row["Rate or figure"], row["Target"]): row["Check"] for row in rows}
    # 32,768 * 3.13e9 = 102.564e12, 0.42 % below 103e12.
    words = "32\u202f768\u00a0op × 3.13\u00a0GHz = 103\u00a0Top/s, 0.4\u00a0% below the published figure"
    assert checks[fast] == words
    assert checks["memory", "gfx1200"] == "128\u00a0B × 2.50\u00a0GHz = 320\u00a0GB/s, as published"
    assert checks["memory", "cpu"].startswith("no published figure")
    page = read((site / "hardware.html").read_text())
    assert page.tags.count("script") == 1 and page.records == []


def test_balance_is_rate_over_memory(site):
    rows = {row["Engine, format"]: row for row in table(site, "balance")}
    # 103e12 / 320e9, and 4.1e11 / 4 / 4.2e10.
    assert rows["matrix, float16"]["gfx1200"]["value"] == pytest.approx(321.875)
    assert rows["matrix, float16"]["gfx1200"]["text"] == "322\u00a0op/B"
    assert rows["valu, float32"]["cpu"]["value"] == pytest.approx(2.4404761904761907)
    assert rows["matrix, float16"]["cpu"] == {"value": None, "text": "none", "object": None}
    assert set(rows) == {"matrix, float16", "matrix, bfloat16", "valu, float32"}
    page = read((site / "hardware.html").read_text()).text
    assert "Derived, not stored: the rate of an engine divided by the rate of the memory" in page


def test_targets_say_the_same_of_themselves(site):
    """Rates and what they rest on are worded once, for this page and for the target's."""
    for target in ("cpu", "gfx1200"):
        value = json.loads((site / f"targets/{target}.rates.json").read_bytes())
        heads = [column["name"] for column in value["columns"]]
        own = [dict(zip(heads, row)) for row in value["rows"]]
        rows = {row["Rate or figure"]: row for row in table(site, "sources") if row["Target"] == target}
        assert len(own) >= 2
        for row in own:
            there = rows[row["Rate"]]
            same = [row["Used by bounds"]["text"], row["Rests on"], row["Source"], row["Confidence"]]
            assert same == [there[head] for head in ("Used by bounds", "Rests on", "Source", "Confidence")]
        page = (site / f"targets/{target}.html").read_text()
        assert 'href="../hardware.html"' in page


def test_models_say_where_they_are_from(site):
    cpu, gfx1200 = table(site, "models")
    assert (cpu["Device of the model"], cpu["Origin"]) == (
        "a made-up model of cpu",
        "calibrated: measured, times a margin",
    )
    assert cpu["Device measured in this release"] == "a made-up processor"
    assert (gfx1200["Origin"], gfx1200["Device measured in this release"]) == ("from specifications", "none")
    linted = "none found: each rate a clock times its clock is within 2\u00a0% of the published figure"
    page = read((site / "hardware.html").read_text()).text
    assert "solbench hardware show gfx1200" in page and "show cpu" not in page and "solbench hardware lint" in page
    assert (cpu["Contradictions in the model"], gfx1200["Contradictions in the model"]) == ("none found", linted)


def test_a_contradiction_is_shown(tmp_path):
    builder = build_store(tmp_path / "store")
    memory = model(builder.root, "gfx1200")["memory"]
    replaced(builder, "gfx1200", memory={**memory, "bytes_per_clock": memory["bytes_per_clock"] * 1.1})
    render(tmp_path / "store", tmp_path / "site")
    [_, row] = table(tmp_path / "site", "models")
    assert row["Contradictions in the model"].startswith("memory.published_bytes_per_s: 3.2e+11 is published")
    assert "(+10.0%)" in row["Contradictions in the model"]
    checks = {(row["Rate or figure"], row["Target"]): row["Check"] for row in table(tmp_path / "site", "sources")}
    assert checks["memory", "gfx1200"].endswith("10\u00a0% above the published figure")


def drawn(book: Any, root: Path) -> str:
    links = Links(Objects(book, root, "../objects"), paths(book), "hardware.html")
    context = pages.base(book, links, "hardware", "", "Hardware", book.release.descriptor)
    context |= hardware.hardware_page(book, links)
    return environment(TEMPLATES).get_template("hardware.html").render(context, csp=CSP)


def test_what_has_no_model_says_so(site):
    book = load(Store(site.parent / "store"))
    cpu, gfx1200 = book.targets
    page = drawn(replace(book, targets=(cpu, replace(gfx1200, hardware=None))), site.parent / "store")
    assert "<td>no model</td>" in page and page.count('<th scope="col" class="num" data-type="number">') == 1
    page = drawn(replace(book, targets=(cpu,)), site.parent / "store")
    assert "hardware show" not in page and "solbench hardware lint" in page
    bare = tuple(replace(target, hardware=None) for target in book.targets)
    page = drawn(replace(book, targets=bare), site.parent / "store")
    assert "This release holds no machine model" in page and "solbench repro" in page and "Side by side" not in page
    page = drawn(replace(book, targets=()), site.parent / "store")
    assert "This release holds no machine model" in page and "<table" not in page
