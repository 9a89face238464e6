"""Words in the place of numbers: reasons told together, units by name, shares, what a set's controls read."""

from types import SimpleNamespace

import pytest

from solbench.model.trace import SetHeader
from solbench.site import attestation, sets, text
from solbench.site.leaderboard import alike, spanned
from solbench.site.records import MeasurementSet, Record
from solbench.store import Descriptor

S = text.SPACE


def test_reasons_that_differ_in_numbers_only_are_one_with_their_ends():
    reasons = [
        "estimated 0.3 s, limit 0.25 s",
        "no card",
        "estimated 12 s, limit 0.25 s",
        "estimated 2e-1 s, limit 0.25 s",
    ]
    groups = alike(reasons)
    assert [len(group) for group in groups] == [3, 1]
    assert spanned(groups[0]) == f"estimated 2e-1{S}–{S}12 s, limit 0.25 s"
    assert spanned(groups[1]) == "no card"
    assert spanned([""]) == ""


def test_reasons_with_other_words_stay_apart():
    assert len(alike(["1 GiB needed", "1 GiB free"])) == 2


def test_leaves_have_the_unit_of_their_name():
    value = {
        "floors": {"c": {"event_s": 1.782e-6}},
        "flush_bytes": 1 << 26,
        "cpu_hz": 3.1e9,
        "bytes_per_s": 2,
        "threads": 2,
        "gap_s": None,
        "has_bytes": True,
        "caches": [{"level": 1, "bytes": 49152}, {"level": 2, "bytes": 1000}],
        "nested": [{"of": {"x": 1}}],
    }
    assert text.flat(value) == [
        ("bytes_per_s", "2"),
        ("caches[0]", f"bytes 48{S}KiB, level 1"),
        ("caches[1]", f"bytes 1.00{S}kB, level 2"),
        ("cpu_hz", f"3.10{S}GHz"),
        ("floors.c.event_s", f"1.78{S}µs"),
        ("flush_bytes", f"64{S}MiB"),
        ("gap_s", "not stated"),
        ("has_bytes", "yes"),
        ("nested[0].of.x", "1"),
        ("threads", "2"),
    ]


@pytest.mark.parametrize(
    ("fraction", "shown"), [(0.39, f"39.0{S}%"), (0.41861, f"41.9{S}%"), (0.0, f"0{S}%"), (1.0, f"100{S}%")]
)
def test_shares_below_each_other_have_the_same_digits(fraction, shown):
    assert text.share(fraction) == shown


def _set(**fields):
    header = SetHeader.load(
        {
            "schema": "solbench.measurement-set.v1",
            "target": "gfx1200",
            "protocol": {"name": "quick", "processes": 1, "samples": 3, "max_call_s": 1.0, "isolation": []},
            "harness": "blake3:" + "0" * 64,
            "environment": {},
            "device": {},
            "floor_s": 1e-6,
            "clocks": "locked",
        }
        | fields,
        "header",
    )
    source = Descriptor("measurement-set", "blake3:" + "1" * 64, 2)
    links = SimpleNamespace(object=lambda descriptor: descriptor.digest)
    return sets.measurement_set(links, MeasurementSet(Record("gfx1200/a/header", source, header), 1, 0))


def _control(name, *, ok, high_s=2e-3, event_s=1e-3):
    clock_s = None if event_s is None else 2 * event_s
    times = {"low_s": 5e-4, "high_s": high_s, "slack_s": 0.0, "event_s": event_s, "clock_s": clock_s}
    return {"name": name, **times, "ok": ok}


def test_controls_of_a_set_are_told_with_their_limits_and_what_they_read():
    shown = _set(controls=[_control("copy", ok=True), _control("fill", ok=False, high_s=None, event_s=None)])
    assert [row["name"] for row in shown["controls"]] == ["copy", "fill"] and not shown["places"]
    assert [[cell.text for cell in row["times"]] for row in shown["controls"]] == [
        [f"500{S}µs", f"2.00{S}ms", f"1.00{S}ms", f"2.00{S}ms"],
        [f"500{S}µs", "no limit", "void samples", "void samples"],
    ]
    assert [(row["verdict"], row["state"]) for row in shown["controls"]] == [
        ("as it must", ""),
        ("reads wrong", "failed"),
    ]


def test_controls_of_each_card_name_the_card_and_are_told_once():
    cards = [{"uuid": uuid, "controls": [_control("copy", ok=True)]} for uuid in ("one", "two")]
    shown = _set(cards=cards)
    assert [row["where"] for row in shown["controls"]] == ["one", "two"] and shown["places"]
    assert shown["device"] == [("cards[0]", "uuid one"), ("cards[1]", "uuid two")]


def test_a_set_without_controls_has_none():
    assert _set()["controls"] == []


def test_an_attestation_is_told_in_words():
    predicate = {
        "path": "aten",
        "kinds": ["random", "zeros"],
        "seeds": [11, 29],
        "sizes": "small",
        "reduced": {"M": [4096, 40], "N": [32, 16]},
        "tolerance": {
            "y": {"rule": "close", "relative": 6.2e-5},
            "ids": {"rule": "one code", "differing_fraction": 1 / 64},
        },
        "float64": {"outputs": [], "error_bounds": 4},
        "gradients": {"reason": "the reference cuts them"},
        "in_place": {},
        "shapes": {"inputs": {"x": [40, 16]}, "outputs": {"y": []}},
    }
    assert attestation.facts(predicate) == [
        ("traced by", "aten"),
        ("inputs drawn", "random, zeros"),
        ("seeds", "11, 29"),
        ("sizes", "smaller ones, at which the program is the same"),
        ("axes made smaller", "M 4\u202f096 → 40, N 32 → 16"),
        (
            "tolerance",
            "y: close, relative error up to 6.20e\u22125; ids: one code, up to 1.6\u00a0% of the elements may differ",
        ),
        ("against float64", "no output has a finite error bound to be held against"),
        ("gradients", "not compared: the reference cuts them"),
        ("written in place", "none"),
        ("shapes of the runs", "x [40, 16], y []"),
    ]


@pytest.mark.parametrize("value", [None, 3, "x", ["x"], {"a": None}, {"inputs": 1}])
@pytest.mark.parametrize("name", ["tolerance", "float64", "gradients", "shapes", "reduced", "unknown"])
def test_an_odd_attestation_is_shown_as_it_stands(name, value):
    assert attestation.facts({name: value}) == text.flat(value, name)
