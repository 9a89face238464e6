"""Pages of workloads and solutions: every number from its object, every object behind it, every line of source."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from html_check import Found, read
from site_fixture import MACHINES, OBJECTS, OPENMP, Builder, build_store

from solbench import canonical
from solbench.errors import IntegrityError
from solbench.site import render
from solbench.store import without_kind

SOFTMAX = "AMD_AKA/torch2hip/l1n23_softmax"
MATMUL = "AMD_AKA/torch2hip/l1n2_standard_matmul"
ROUTING = "AMD_AKA/torch2flydsl/moe_topk_softmax"


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return build_store(tmp_path_factory.mktemp("workload") / "store")


@pytest.fixture(scope="module")
def site(builder: Builder) -> Path:
    render(builder.root, builder.root.parent / "site")
    return builder.root.parent / "site"


def page(site: Path, path: str) -> Found:
    return read((site / path).read_text())


def artifact(builder: Builder, stage: str, name: str) -> dict[str, Any]:
    entry = builder.indexes[stage][name]
    return dict(canonical.loads((builder.root / stage / "objects" / entry.path).read_bytes()))


def test_a_bound_is_explained_with_its_numbers(site):
    text = page(site, f"workloads/{SOFTMAX}/aka-l1n23_softmax-w1.html").text
    # 1024 x 4096 elements, 8 bytes and 8 operations each.
    bandwidth, rate = MACHINES["gfx1200"]
    memory, matrix = 8 * 1024 * 4096 / bandwidth, 8 * 1024 * 4096 / rate
    assert round(memory * 1e6, 1) == 104.9 and round(matrix * 1e9) == 326
    assert "SOL = max(matrix 326 ns, memory 105 µs) = 105 µs : memory binds, complete coverage" in text
    assert f"{100 * matrix / memory:.1f} %" in text and "100.0 %" in text
    assert "M 1 024, N 4 096" in text
    assert "stored outputs reach memory inside the timed window" in text
    assert "one rate for all elementwise functions" in text


def test_a_bound_that_is_missing_says_why(site):
    text = page(site, f"workloads/{ROUTING}/aka-moe_topk_softmax-w1.html").text
    assert "no bound: topk: no rule prices it" in text


def test_times_stand_with_their_witnesses_checks_and_conditions(site):
    text = page(site, f"workloads/{SOFTMAX}/aka-l1n23_softmax-w1.html").text
    # T_b is six bounds, T_k two and a half; the clock says one percent more. The bound: 33,554,432 B at 42 GB/s.
    t_sol = 8 * 1024 * 4096 / MACHINES["cpu"][0]
    score = 1 / (1 + (2.5 - 1) / (6 - 1))
    assert f"{t_sol * 1e6:.1f}" == "798.9" and f"{score:.3f}" == "0.769"
    assert "S = 1 / (1 + (1.997 ms − 798.9 µs) / (4.793 ms − 798.9 µs)) = 0.769" in text
    for time in (2.5 * t_sol, 2.5 * t_sol * 1.01, 6 * t_sol, 6 * t_sol * 1.01):
        assert f"{time * 1e3:.2f} ms" in text
    assert "sandbox: rlimits only" in text
    assert "5 rounds, every timed sample among them" in text
    assert "the process’s own clock" in text and "64 MiB written before each sample" in text


def test_states_without_a_time_say_so(site):
    text = page(site, f"workloads/{SOFTMAX}/aka-l1n23_softmax-w3.html").text
    assert "not attempted: over the cpu budget of 0.25 s a call" in text
    failed = page(site, f"workloads/{MATMUL}/aka-l1n2_standard_matmul-w1.html").text
    assert "INCORRECT_NUMERICAL: output: 12 of 131072 values differ" in failed


@pytest.mark.parametrize(("key", "count"), [(SOFTMAX, 4), (MATMUL, 3), (ROUTING, 2)])
def test_every_object_of_a_workload_is_linked(builder, site, key, count):
    for position in range(count):
        uuid = f"aka-{key.rpartition('/')[2]}-w{position}"
        name = f"{key}/{uuid}"
        wanted = {
            entry.path
            for stage, index in builder.indexes.items()
            for own, entry in index.items()
            if own == name or own.startswith((f"{name}/", f"{name}@")) or (stage == "timings" and f"/{name}/" in own)
        }
        for record in (n for n in builder.indexes["code"] if n.startswith(f"{name}/")):
            for launch in artifact(builder, "code", record)["launches"]:
                if launch["evidence"]:
                    kernel = launch["evidence"]["digest"]
                    wanted.add(f"{kernel[7:9]}/{kernel[9:]}")
        links = page(site, f"workloads/{name}.html").links
        linked = {link.partition("objects/")[2] for link in links if "objects/" in link}
        assert wanted and wanted <= linked


def test_code_is_shown_with_lines_of_its_assembly(site):
    found = page(site, f"workloads/{MATMUL}/aka-l1n2_standard_matmul-w0.html")
    assembly = (OBJECTS / "product.s").read_text().split("\n")
    numbered = re.findall(r"^ *([0-9]+)  (.*)$", "".join(found.words), re.MULTILINE)
    assert len(numbered) >= 10
    for number, line in numbered:
        assert line == assembly[int(number) - 1].expandtabs(8).rstrip()
    assert f"of {len(assembly)}" in found.text and "What this can and cannot show" in found.text


def test_the_graph_and_the_ir_are_there(site):
    path = f"workloads/{SOFTMAX}/aka-l1n23_softmax-w0.html"
    found = page(site, path)
    assert "svg" in found.tags and "aten.exp" in found.text
    assert "%exp_0 = map.exp %in.x : f32[16,128]" in found.text


def test_a_graph_that_is_none_refuses_the_site(tmp_path):
    spoilt = build_store(tmp_path / "store")
    name = f"{SOFTMAX}/aka-l1n23_softmax-w0/graph"
    value = without_kind(artifact(spoilt, "einsums", name))
    value["outputs"] = [["output", "nowhere"]]
    spoilt.put("einsums", name, "einsum-graph", value)
    spoilt.finish()
    with pytest.raises(IntegrityError, match=r"aka-l1n23_softmax-w0: .*nowhere"):
        render(spoilt.root, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_graph_that_is_too_large_leads_to_one_that_is_drawn(tmp_path, monkeypatch):
    builder = build_store(tmp_path / "store")
    sizes = {n: e.size for n, e in builder.indexes["graphs"].items() if n.startswith(SOFTMAX)}
    largest = max(sizes, key=sizes.__getitem__)
    assert sizes[largest] > min(sizes.values())
    monkeypatch.setattr("solbench.site.workload.MOST_BYTES", sizes[largest] - 1)
    render(builder.root, tmp_path / "site")
    found = page(tmp_path / "site", f"workloads/{largest}.html")
    assert "too large to draw here; the object holds it" in found.text
    small = next(link for link in found.links if link.endswith(".html#graph"))
    assert (
        "svg" in page(tmp_path / "site", f"workloads/{SOFTMAX}/{small.removesuffix('#graph').rpartition('/')[2]}").tags
    )
    graph = builder.indexes["graphs"][largest]
    assert any(link.endswith(graph.path) for link in found.links)


def test_workloads_lead_to_each_other(site):
    middle = page(site, f"workloads/{SOFTMAX}/aka-l1n23_softmax-w1.html")
    assert {"aka-l1n23_softmax-w0.html", "aka-l1n23_softmax-w2.html"} <= {
        link.rpartition("/")[2] for link in middle.links
    }
    assert f"../../../../problems/{SOFTMAX}.html#w-aka-l1n23_softmax-w1" in middle.links


def test_a_solution_shows_its_source_build_and_results(site):
    path = f"solutions/{SOFTMAX}/openmp.html"
    found = page(site, path)
    assert OPENMP.rstrip("\n") in "".join(found.words)
    assert "cpp" in found.text and "0.769" in found.text and "in audit: T_k is below T_SOL" in found.text
