"""Verdicts from the emulated card on the pages: the numbers from their objects, and what is not known is not shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from html_check import read
from site_fixture import Builder, build_store

from solbench import canonical
from solbench.errors import IntegrityError
from solbench.site import render, verdict
from solbench.site.reading import load
from solbench.store import Store, put_json

MATMUL = "AMD_AKA/torch2hip/l1n2_standard_matmul"


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return build_store(tmp_path_factory.mktemp("verdicts") / "store")


@pytest.fixture(scope="module")
def site(builder: Builder) -> Path:
    render(builder.root, builder.root.parent / "site")
    return builder.root.parent / "site"


def text(site: Path, path: str) -> str:
    return read((site / path).read_text()).text.replace("\u00a0", " ").replace("\u202f", " ")


def test_a_pass_stands_beside_what_the_bound_counts(site: Path) -> None:
    """Elements: 128 x 256 x 64. The bound reads and writes 4 bytes each, and takes 8 operations."""
    elements = 128 * 256 * 64
    assert (round(12 * elements / 1e6, 1), round(4 * elements / 1e6, 2), round(10 * elements / 1e6)) == (25.2, 8.39, 21)
    for path in (f"problems/{MATMUL}.html", f"workloads/{MATMUL}/aka-l1n2_standard_matmul-w0.html"):
        found = text(site, path)
        assert "PASSED whole and small 4 3 600 25.2 MB each live byte 3.00×" in found, path
        assert "8.39 MB each live byte 1.00×" in found and "21.0 Mop 1.25× the bound’s" in found, path
        assert "emulator eeeeeeeeeeee…, numpy 2.0.0" in found and "not run on the card" in found, path


def test_how_it_ran_and_what_it_executed(site: Path) -> None:
    found = text(site, f"workloads/{MATMUL}/aka-l1n2_standard_matmul-w0.html")
    assert "the workload itself 1 call in lock-step" in found
    assert "smaller, M 128 → 64 1 call in lock-step with every access looked at, 2 calls with waves in turn" in found
    assert "product, 4×2×1 work-groups of 32×1×1 threads, and 2 more" in found
    assert "valu 3 000, wmma 600" in found and "LDS 77.0 B" in found
    assert "4 rounds, of all sizes and orders" in found and "0.0625" in found


def test_a_failure_shows_what_was_found(site: Path) -> None:
    found = text(site, f"workloads/{MATMUL}/aka-l1n2_standard_matmul-w1.html")
    assert "RUNTIME_ERROR out-of-bounds load of A" in found and "load of A nothing 0 not run whole" in found
    assert "out-of-bounds load: A, byte 65536, lane 3, kernel.hip:12" in found


def test_what_was_not_run_whole_has_no_counts(site: Path) -> None:
    """The counts of the smaller sizes are none of the workload's."""
    found = text(site, f"workloads/{MATMUL}/aka-l1n2_standard_matmul-w2.html")
    assert "PASSED small 3 not run whole — — —" in found
    assert "not to its end: product: not at its end within the limit of instructions" in found
    assert "3 600" not in found and "What one call of the whole workload executed" not in found


def test_pages_of_solution_target_and_status_count_them(site: Path) -> None:
    solution = text(site, f"solutions/{MATMUL}/openmp.html")
    assert solution.count("each live byte 3.00×") == 1 and "On the emulated gfx1200" in solution
    assert "On the emulated" not in text(site, f"solutions/{MATMUL}/eager.html")
    counted = "passed for 2 of 3 pairs of workload and solution (1 at small sizes only), 1 failed"
    assert counted in text(site, "targets/gfx1200.html") and counted in text(site, "index.html")
    assert "emulated passed" not in text(site, "targets/cpu.html")
    assert "gfx1200 1 1 1 0 0 3" in text(site, "status.html")


def test_candidates_without_a_verdict_count_as_not_run(builder: Builder) -> None:
    book = load(Store(builder.root))
    assert verdict.counts(book, "cpu") == {}
    (problem,) = (found for found in book.problems if found.key == MATMUL)
    (openmp,) = (found for found in problem.solutions if found.value.name == "openmp")
    spec = openmp.value.spec.model_copy(update={"languages": ("triton",), "target_hardware": ("gfx1200",)})
    made = replace(openmp, value=openmp.value.model_copy(update={"spec": spec}))
    first = replace(problem.workloads[0], verdicts={})
    changed = replace(problem, solutions=(made,), workloads=(first, *problem.workloads[1:]))
    found = verdict.counts(replace(book, problems=(changed,)), "gfx1200")
    assert found == {"small": 1, "failed": 1, "none": 1}


def test_numbers_link_to_the_verdict(builder: Builder, site: Path) -> None:
    entry = builder.indexes["verdicts"][f"{MATMUL}/aka-l1n2_standard_matmul-w0/openmp@gfx1200"]
    page = (site / f"workloads/{MATMUL}/aka-l1n2_standard_matmul-w0.html").read_text()
    assert page.count(f"verdict {entry.digest}") >= 5


def test_what_was_never_timed_says_so_and_that_it_was_emulated(tmp_path: Path) -> None:
    builder = build_store(tmp_path / "store")
    for name in [name for name in builder.indexes["scores"] if "matmul-w" in name and "@gfx1200" in name]:
        del builder.indexes["scores"][name]
    builder.finish()
    render(builder.root, tmp_path / "site")
    for position, passed in ((0, 1), (1, 0)):
        found = text(tmp_path / "site", f"workloads/{MATMUL}/aka-l1n2_standard_matmul-w{position}.html")
        assert f"not timed emulated: {passed} of 1 passed" in found


def test_a_verdict_under_another_name_is_no_page(tmp_path: Path) -> None:
    builder = build_store(tmp_path / "store")
    name = f"{MATMUL}/aka-l1n2_standard_matmul-w0/openmp@gfx1200"
    entry = builder.indexes["verdicts"].pop(name)
    builder.indexes["verdicts"][name.replace("w0", "w1")] = entry
    builder.finish()
    with pytest.raises(IntegrityError, match="says that it is another verdict"):
        render(builder.root, tmp_path / "site")


def test_a_verdict_for_an_unknown_target_is_no_page(tmp_path: Path) -> None:
    builder = build_store(tmp_path / "store")
    name = f"{MATMUL}/aka-l1n2_standard_matmul-w0/openmp@gfx1200"
    entry = builder.indexes["verdicts"].pop(name)
    value = canonical.loads((builder.root / "verdicts" / "objects" / entry.path).read_bytes())
    objects = builder.root / "verdicts" / "objects"
    other = {field: content for field, content in value.items() if field != "kind"} | {"target": "gfx1201"}
    builder.indexes["verdicts"][name.replace("1200", "1201")] = put_json(objects, "verdict", other)
    builder.finish()
    with pytest.raises(IntegrityError, match="gfx1201"):
        render(builder.root, tmp_path / "site")
