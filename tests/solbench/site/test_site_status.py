"""The page Status: every workload on every target is counted once, and says what became of each solution."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from html_check import read
from site_fixture import HOSTILE, Builder, build_store

from solbench import canonical
from solbench.model.configuration import Configuration
from solbench.site import pages, render
from solbench.site.build import CSP, environment
from solbench.site.links import Links, Objects, paths
from solbench.site.reading import load
from solbench.site.status import MOST_OF_A_REASON, status_page
from solbench.store import Store

TEMPLATES = Path(__file__).resolve().parents[3] / "site_templates"
SOFTMAX, MATMUL = "AMD_AKA/torch2hip/l1n23_softmax", "AMD_AKA/torch2hip/l1n2_standard_matmul"
ROUTING = "AMD_AKA/torch2flydsl/moe_topk_softmax"
LONG = "x" * (2 * MOST_OF_A_REASON)
# (workload, solution) -> state, verdict of the trace, reason of the trace
FURTHER = {
    (f"{SOFTMAX}/aka-l1n23_softmax-w1", "openmp"): ("failed", "TIMEOUT", "no answer within 10 s"),
    (f"{MATMUL}/aka-l1n2_standard_matmul-w0", "openmp"): ("failed", "COMPILE_ERROR", f"kernel.cpp:3: {HOSTILE}"),
    (f"{MATMUL}/aka-l1n2_standard_matmul-w0", "eager"): ("not_attempted", "UNSUPPORTED", "no bfloat16 here"),
    (f"{ROUTING}/aka-moe_topk_softmax-w0", "eager"): ("failed", "RUNTIME_ERROR", LONG),
}
ALONE = f"{ROUTING}/aka-moe_topk_softmax-w1"


def artifact(root: Path, stage: str, entry: dict[str, Any]) -> dict[str, Any]:
    digits = entry["digest"].removeprefix("blake3:")
    return dict(json.loads((root / stage / "objects" / digits[:2] / digits[2:]).read_bytes()))


def index(root: Path, stage: str) -> dict[str, dict[str, Any]]:
    return dict(canonical.parse((root / f"{stage}.json").read_bytes())["entries"])


def settle(builder: Builder, workload: str, solution: str, state: str, status: str, reason: str) -> None:
    """Another verdict for a result on cpu, in its trace and in its score."""
    name = f"{workload}@cpu/{solution}"
    found = {key: value for key, value in artifact(builder.root, "scores", index(builder.root, "scores")[name]).items()}
    trace = artifact(builder.root, "timings", found["trace"])
    trace |= {"status": status, "reason": reason, "timing": None, "correctness": None}
    del trace["kind"], found["kind"]
    reference = builder.put("timings", f"cpu/plain/{workload}/{solution}", "trace", trace)
    s = 0.0 if state == "failed" else None
    found |= {
        "state": state,
        "reason": f"{status}: {reason}",
        "t_k": None,
        "t_b": None,
        "s": s,
        "s_low": s,
        "s_high": s,
    }
    builder.put("scores", name, "score", {**found, "trace": reference})


def for_gfx1200_only(builder: Builder) -> None:
    """A configuration that made one workload for gfx1200; nothing of it is left on cpu."""
    problem, _, uuid = ALONE.rpartition("/")
    slot = {"uuid": uuid, "slot": "smoke", "role": "smoke", "regime": "all", "peak_bytes": 1}
    fields = {
        "corpus": "AMD_AKA", "algorithm": "test", "target": "gfx1200", "capacity_class_gib": 16, "profiles": [],
        "decisions": [{"problem": problem, "status": "generated", "scale": 1, "workloads": [slot]}],
    }  # fmt: skip
    configuration = Configuration.load(fields, "configuration")
    builder.put("workloads", configuration.name, "configuration", configuration.as_dict())
    for stage in ("bounds", "scores", "timings"):
        for name in [name for name in builder.indexes[stage] if uuid in name and "cpu" in name]:
            del builder.indexes[stage][name]
    builder.targets[0] |= {"bounds": 8, "workloads": 8}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builder = build_store(tmp_path_factory.mktemp("status") / "store")
    for (workload, solution), (state, status, reason) in FURTHER.items():
        settle(builder, workload, solution, state, status, reason)
    for_gfx1200_only(builder)
    builder.finish(workloads=9)
    return builder.root


@pytest.fixture(scope="module")
def site(store: Path) -> Path:
    render(store, store.parent / "site")
    return store.parent / "site"


def table(site: Path, name: str) -> list[dict[str, str]]:
    with (site / f"status.{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def recounted(store: Path) -> dict[str, Counter[str]]:
    """States by "target, solution", from the JSON of the store alone."""
    scores = {name: entry for name, entry in index(store, "scores").items() if entry["kind"] == "score"}
    corpus = index(store, "corpus")
    workloads = [name for name, entry in index(store, "workloads").items() if entry["kind"] == "workload"]
    words = {
        "audit": "in audit", "too_narrow": "too narrow to score", "not_timed": "not timed",
        "no_bound": "no bound", "not_attempted": "not measured", "scored": "scored", "failed": "failed",
    }  # fmt: skip
    found: dict[str, Counter[str]] = {}
    for target in ("cpu", "gfx1200"):
        for solution in ("eager", "openmp"):
            counts = found.setdefault(f"{target}, {solution}", Counter())
            for workload in workloads:
                entry = scores.get(f"{workload}@{target}/{solution}")
                if target == "cpu" and workload == ALONE:
                    counts["not for this target"] += 1
                elif entry is None:
                    assert f"{workload.rpartition('/')[0]}/solutions/{solution}" not in corpus
                    counts["no solution"] += 1
                else:
                    score = artifact(store, "scores", entry)
                    trace = artifact(store, "timings", score["trace"]) if score["trace"] else {}
                    status = trace.get("status") if score["state"] in ("failed", "not_attempted") else None
                    special = {"TIMEOUT": "timed out", "UNSUPPORTED": "unsupported"}
                    counts[special.get(str(status), words[score["state"]])] += 1
    return found


def test_the_summary_adds_up_to_an_independent_count(store, site):
    rows = table(site, "by-result")
    expected = recounted(store)
    assert [head for head in rows[0] if head not in ("State", "Means") and "shown" not in head] == list(expected)
    for column, counts in expected.items():
        found = {row["State"]: int(row[column]) for row in rows}
        assert {state: count for state, count in found.items() if count} == dict(counts), column
        assert sum(found.values()) == 9, column
    # Of the kinds that the page tells apart, the store has all but one: nothing is without a bound that was timed.
    cpu = {state for column, counts in expected.items() if column.startswith("cpu") for state in counts}
    assert {row["State"] for row in rows} - cpu == {"no bound"}
    foot = read((site / "status.html").read_text()).text
    assert foot.count("9 of 9") == 4 + 2


def test_bounds_are_counted_by_target(site):
    columns = ("Target", "Bounded", "No bound", "Not for this target", "All workloads")
    assert [tuple(row[column] for column in columns) for row in table(site, "by-bound")] == [
        ("cpu", "8", "0", "1", "9 of 9"),
        ("gfx1200", "8", "1", "0", "9 of 9"),
    ]


def test_every_workload_has_its_row(store, site):
    rows = {row["Workload"]: row for row in table(site, "workloads")}
    assert len(rows) == 9 and next(iter(rows)) == "moe_topk_softmax w0"
    untimed = "no card with this target was measured"
    assert rows["l1n23_softmax w1"] == {
        "Workload": "l1n23_softmax w1",
        "Shape": "M\u00a01\u202f024\u00a0· N\u00a04\u202f096",
        "Bound cpu": "bounded",
        "Results cpu": "eager: scored openmp: timed out: no answer within 10 s",
        "Bound gfx1200": "bounded",
        "Results gfx1200": f"eager, openmp: not timed: {untimed}",
    }
    results = {name: row["Results cpu"] for name, row in rows.items()}
    assert results["l1n23_softmax w0"].startswith("eager: scored openmp: too narrow to score: relative headroom")
    assert results["l1n23_softmax w2"] == "eager: scored openmp: in audit: T_k is below T_SOL"
    assert results["l1n23_softmax w3"] == "eager, openmp: not measured: over the cpu budget of 0.25 s a call"
    assert results["l1n2_standard_matmul w0"].startswith(
        "eager: unsupported: no bfloat16 here openmp: failed: COMPILE_"
    )
    assert results["moe_topk_softmax w0"].endswith("openmp: no solution")
    alone = rows["moe_topk_softmax smoke, gfx1200"]
    assert (alone["Bound cpu"], alone["Results cpu"]) == ("not for this target", "—")
    assert alone["Bound gfx1200"] == "no bound: topk: no rule prices it"
    assert alone["Results gfx1200"] == f"eager: not timed: {untimed} openmp: no solution"


def test_hostile_and_long_reasons(site):
    page = (site / "status.html").read_text()
    found = read(page)
    assert found.tags.count("script") == 1 and "\u202e" not in page and '<script>alert(1)</script> "q"' in found.text
    assert "x" * 100 + "…" in page and "x" * MOST_OF_A_REASON not in page
    assert found.records == []


def drawn(book: Any, root: Path) -> str:
    """The page of a book that no store holds."""
    links = Links(Objects(book, root, "../objects"), paths(book), "status.html")
    context = pages.base(book, links, "status", "", "Status", book.release.descriptor)
    context |= status_page(book, links)
    return environment(TEMPLATES).get_template("status.html").render(context, csp=CSP)


def test_a_thousand_workloads_on_three_targets_stay_small(store):
    book = load(Store(store))
    third = replace(book.targets[0], state=book.targets[0].state.model_copy(update={"target": "third"}))
    found = []
    for problem in book.problems:
        more = [
            replace(w, bounds={**w.bounds, "third": w.bounds["cpu"]}, scores={**w.scores, "third": w.scores["cpu"]})
            for w in problem.workloads
            if "cpu" in w.bounds
        ]
        found.append(replace(problem, workloads=tuple(more) * 125))
    page = drawn(replace(book, problems=tuple(found), targets=(*book.targets, third)), store)
    assert "All 1\u202f000 workloads" in page and page.count('<td class="shape">') == 1000
    assert len(page.encode()) < 1_000_000


def test_a_release_of_nothing_says_what_to_do(store):
    book = load(Store(store))
    page = read(drawn(replace(book, targets=()), store)).text
    assert "This release lists no target" in page and "params.yaml" in page and "solbench repro" in page
    page = read(drawn(replace(book, problems=()), store)).text
    assert "This release holds no workload." in page and "make release" in page


def test_a_target_without_results_says_how_to_get_some(store):
    book = load(Store(store))
    bare = tuple(
        replace(p, workloads=tuple(replace(w, scores={"cpu": w.scores.get("cpu", ())}) for w in p.workloads))
        for p in book.problems
    )
    page = drawn(replace(book, problems=bare), store)
    assert "No solution was run on gfx1200." in page and "solbench measure" in page
    # cpu eager, cpu openmp, gfx1200
    cells = "".join(f'<td class="num">{count}</td>' for count in (0, 1, 9))
    assert f'<span class="state not_timed">not timed</span></th>{cells}' in page


@pytest.fixture
def page(site: Path, offline: Any) -> Iterator[Any]:
    page = offline.new_page()
    page.goto((site / "status.html").as_uri())
    yield page
    page.close()


def test_only_one_state_and_what_went_wrong_first(page):
    only = page.get_by_label("Only")
    words = ["all workloads", "failed", "in audit", "too narrow to score", "not measured", "not timed", "no bound"]
    assert only.locator("option").all_inner_texts() == words
    rows = page.locator('table[data-table="workloads"] tbody tr')
    for state, count in (("failed", 4), ("in audit", 1), ("not measured", 2), ("no bound", 1), ("not timed", 9)):
        only.select_option(state)
        assert rows.locator("visible=true").locator("th").count() == count, state
    only.select_option("all workloads")
    page.get_by_role("button", name="Results cpu").click()
    first, *_, last = rows.all_inner_texts()
    assert "failed" in first and "not for this target" in last
