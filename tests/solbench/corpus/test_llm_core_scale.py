"""The rules of LLM_CORE against tables that an independent implementation made, and the published port's rules too."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path

import pytest

from solbench.corpus.llm_core.formula import compile_formula, formula_names
from solbench.corpus.llm_core.generate import ineligible
from solbench.corpus.llm_core.rules import Generation, Rule, Rules, Target, load_rules
from solbench.corpus.llm_core.scale import envelope, largest_scale, minimum_distinct_scale, slot_axes
from solbench.errors import InputError
from solbench.yaml12 import load_yaml

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(__file__).resolve().parent / "llm_core"
BYTES = ("input_bytes", "output_bytes", "temporary_bytes", "peak_bytes")


@cache
def ours() -> Rules:
    return load_rules(ROOT / "problems" / "LLM_CORE")


@cache
def published() -> Rules:
    document = load_yaml(DATA / "published_rules.yaml")
    rules = [Rule.load(fields, fields["name"]) for fields in document["rules"]]
    targets = [Target.load(fields, fields["target"]) for fields in document["targets"]]
    return Rules(ours().generation, {r.name: r for r in rules}, {t.target: t for t in targets})


def table(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


def scale_or_none(rule: Rule, target: Target, class_gib: int) -> int | None:
    scale = largest_scale(rule, ours().generation, target, class_gib)
    return scale if scale >= minimum_distinct_scale(rule, ours().generation) else None


def test_every_scale_of_ours():
    rows = table("llm_core_golden_scales.csv")
    assert len(rows) == 36 * 2 * 2
    reachable = dict.fromkeys(ours().generation.classes_gib, 0)
    for row in rows:
        rule, target = ours().rules[row["id"]], ours().targets[row["target"]]
        limit = int(row["max_tensor_bytes"])
        assert minimum_distinct_scale(rule, ours().generation) == int(row["minimum_distinct_scale"]), row["id"]
        for size in reachable:
            scale = scale_or_none(rule, target.model_copy(update={"max_tensor_bytes": limit}), size)
            assert str(scale or "") == row[f"scale_{size}gib"], (row["id"], limit, size)
            if row["target"] == "gfx1200" and limit == target.max_tensor_bytes:
                reachable[size] += scale is not None
    assert reachable.pop(1) < 36
    assert set(reachable.values()) == {36}


def check_workloads(rules: Rules, rows: list[dict[str, str]], columns: dict[str, str]) -> None:
    slots = {slot.slot: slot for slot in rules.generation.slots}
    scales: dict[tuple[str, str, str], int | None] = {}
    for row in rows:
        rule, target = rules.rules[row["id"]], rules.targets[row["target"]]
        key = (row["id"], row["target"], row[columns["class"]])
        if key not in scales:
            scales[key] = scale_or_none(rule, target, int(key[2]))
        scale = scales[key]
        assert scale == int(row[columns["scale"]]), key
        axes = slot_axes(rule, slots[row["slot"]], scale)
        assert axes == json.loads(row["axes"]), (key, row["slot"])
        need = envelope(rule, axes)
        got = [getattr(need, name) for name in (*BYTES, "largest_tensor_bytes")]
        assert got == [int(row[columns.get(name, name)]) for name in (*BYTES, "largest_tensor_bytes")], (
            key,
            row["slot"],
        )
        if "role" in row:
            assert (slots[row["slot"]].role, slots[row["slot"]].regime) == (row["role"], row["regime"])


def test_every_workload_of_ours():
    rows = table("llm_core_golden.csv")
    assert len(rows) == 36 * 9 * 3
    check_workloads(ours(), rows, {"class": "class_gib", "scale": "scale"})


def test_every_workload_of_the_published_port():
    rows = table("published_llm_core_workloads_golden.csv")
    assert len(rows) == 1296
    columns = {
        "class": "capacity_gib",
        "scale": "common_scale",
        "peak_bytes": "reference_peak_bytes",
        "largest_tensor_bytes": "max_tensor_bytes",
    }
    check_workloads(published(), rows, columns)


def test_every_scale_of_the_published_port():
    rows = table("published_llm_core_scales_golden.csv")
    assert len(rows) == 36 * 2
    for row in rows:
        rule, target = published().rules[row["id"]], published().targets[row["target"]]
        reason = ineligible(rule, target)
        assert (reason[0] if reason else "generated") == row["static_status"], (row["id"], row["target"])
        for size in published().generation.classes_gib:
            scale = None if reason else scale_or_none(rule, target, size)
            assert str(scale or "") == row[f"scale_{size}gib"], (row["id"], row["target"], size)


def test_least_scale_of_the_published_port():
    # It states 267 for its caches; at 293 both latency slots still have 3 pages of 16: ceil(36/16) = ceil(48/16).
    generation = published().generation
    found = {name: minimum_distinct_scale(rule, generation) for name, rule in published().rules.items()}
    assert {scale for name, scale in found.items() if not name.startswith("kv_cache")} == {48}
    assert {scale for name, scale in found.items() if name.startswith("kv_cache")} == {294}
    low, high = generation.slots[1:3]
    rule = published().rules["kv_cache_paged_write"]
    assert slot_axes(rule, low, 293) == slot_axes(rule, high, 293)
    assert slot_axes(rule, low, 294) != slot_axes(rule, high, 294)


def test_least_scale_by_comparing_everything():
    # Without the shortcuts of minimum_distinct_scale: all nine axes, at every scale.
    for name in ("linear_matmul_bias", "kv_cache_cache_compress", "kv_cache_paged_write", "attention_mqa_decode"):
        rule, slots = ours().rules[name], ours().generation.slots
        least = minimum_distinct_scale(rule, ours().generation)
        distinct = [len({tuple(slot_axes(rule, s, scale).values()) for s in slots}) for scale in range(1, 1000)]
        assert distinct[least - 2] < 9
        assert set(distinct[least - 1 :]) == {9}


def test_axes_never_fall_as_the_scale_grows():
    # Bisection is exact because of this.
    for rule in (*ours().rules.values(), *published().rules.values()):
        for slot in ours().generation.slots:
            before = slot_axes(rule, slot, 1)
            for scale in range(2, 600):
                now = slot_axes(rule, slot, scale)
                assert all(now[axis] >= before[axis] for axis in now), (rule.name, slot.slot, scale)
                before = now


def test_counts():
    profiles = {
        profile: sum(profile in rule.profiles for rule in ours().rules.values())
        for profile in ours().generation.profiles
    }
    assert len(ours().rules) == len(list((ROOT / "problems/LLM_CORE/rules").glob("*.yaml"))) == 36
    assert len(ours().generation.slots) == 9
    assert profiles == {
        "core": 20, "long_context": 14, "kv_cache": 4, "moe": 6, "quantized": 4, "architecture_specific": 8,
    }  # fmt: skip
    assert all(ineligible(rule, target) is None for rule in ours().rules.values() for target in ours().targets.values())


@pytest.mark.parametrize(
    ("text", "value"), [("2*extent + 1", 15), ("max(1, value//16)", 1), (64, 64), ("(extent - 1)//2", 3)]
)
def test_formula(text, value):
    assert compile_formula(text)({"extent": 7, "value": 7}) == value


@pytest.mark.parametrize(
    "text", ["extent**2", "extent/2", "extent.real", "open('x')", "max(extent)", "1.5", "True", "a b", "max", "1" * 201]
)
def test_no_formula(text):
    with pytest.raises(InputError):
        compile_formula(text)
    with pytest.raises(InputError):
        formula_names(text)


def test_division_by_zero_is_an_error():
    with pytest.raises(InputError, match="divides by zero"):
        compile_formula("4//extent")({"extent": 0})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("axes", {"smoke": {"M": 1}}, "has the rows"),
        ("axes", {row: {"M": "size", "K": 1, "N": 1} for row in ("smoke", "decode", "prefill", "irregular")}, "size"),
        ("derived", {"P": "Q + 1"}, "'Q'"),
        ("limits", {"T": 5}, "'T'"),
        ("temporary_bytes", ["4*M*T"], "'T'"),
        ("temporary_bytes", ["4*M**2"], "only integers"),
        ("inputs", {"x": {"shape": ["Z"], "dtype": "bfloat16"}}, "'Z'"),
        ("surprise", 1, "surprise"),
    ],
)
def test_broken_rule(field, value, message):
    fields = ours().rules["linear_matmul_bias"].as_dict()
    Rule.load(fields, "rule")
    with pytest.raises(InputError, match=message):
        Rule.load({**fields, field: value}, "rule")


def test_rows_bind_the_same_axes():
    fields = ours().rules["linear_matmul_bias"].as_dict()
    del fields["axes"]["decode"]["N"]
    with pytest.raises(InputError, match="differs in N"):
        Rule.load(fields, "rule")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda slots: slots.pop(), "nine slots"),
        (lambda slots: slots[1].update(ratio="1/64"), "ratio of its own"),
        (lambda slots: slots[1].update(role="holdout"), "four development"),
    ],
)
def test_broken_generation(change, message):
    fields = ours().generation.as_dict()
    Generation.load(fields, "generation")
    change(fields["slots"])
    with pytest.raises(InputError, match=message):
        Generation.load(fields, "generation")


def test_scales_of_sm_90():
    # Its template admits what gfx942's does: the same tensors, the same limit on one of them.
    rows = [row for row in table("llm_core_golden_scales.csv") if row["target"] == "gfx942"]
    target = ours().targets["sm_90"]
    rows = [row for row in rows if int(row["max_tensor_bytes"]) == target.max_tensor_bytes]
    assert len(rows) == 36
    for row in rows:
        rule = ours().rules[row["id"]]
        assert ineligible(rule, target) is None, row["id"]
        for size in (96, 128):
            assert str(scale_or_none(rule, target, size)) == row[f"scale_{size}gib"], (row["id"], size)
