"""Machine models: every field is checked, every figure has a source and agrees with its own rate."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from solar.errors import HardwareError
from solar.hardware import MODELS, Machine, lint, load, names

CALIBRATED = {
    "schema": "solar.hardware.v1",
    "name": "cpu",
    "device": "two cores",
    "origin": "calibrated",
    "clock": None,
    "engines": {
        "valu": {
            "float32": {
                "measured_ops_per_s": 1.0e11,
                "margin": 1.25,
                "dense": True,
                "source": "multiply-adds from registers on all cores, best of 200 runs",
                "confidence": "measured",
            }
        }
    },
    "memory": {
        "measured_bytes_per_s": 2.0e10,
        "margin": 1.25,
        "dense": True,
        "source": "reading eight times the last-level cache on all cores",
        "confidence": "measured",
    },
    "caches": {"last_level_bytes": {"value": 35_651_584, "source": "sysfs", "confidence": "high"}},
    "absorbed_store_bytes": {"value": 35_651_584, "source": "the cache writes back", "confidence": "high"},
}


def model(name: str = "gfx1200") -> dict[str, Any]:
    value = yaml.safe_load((MODELS / f"{name}.yaml").read_text())
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("name", ["gfx1200", "gfx942", "sm_90"])
def test_packaged_models_agree_with_themselves(name: str) -> None:
    assert name in names()
    machine = load(name)
    assert machine.name == name
    assert lint(machine) == []
    assert Machine.from_dict(json.loads(json.dumps(machine.to_dict()))) == machine


def test_gfx1200_has_the_published_rates() -> None:
    machine = load("gfx1200")
    matrix = {name: rate.per_s for name, rate in machine.engines["matrix"].items()}
    assert matrix["float16"] == matrix["bfloat16"] == 103e12
    assert matrix["int8"] == matrix["float8"] == 32 * 2048 * 3.13e9
    assert matrix["int4"] == 32 * 4096 * 3.13e9
    assert machine.engines["valu"]["float32"].per_s == 32 * 64 * 2 * 2 * 3.13e9
    assert machine.memory.per_s == 320e9
    assert machine.caches["last_level_bytes"].value == 32 << 20
    assert machine.absorbed_store_bytes.value == 0


def test_sm_90_is_priced_at_its_highest_clocks() -> None:
    machine = load("sm_90")
    assert machine.engines["matrix"]["bfloat16"].per_s == 132 * 4096 * 1.98e9
    assert machine.engines["matrix"]["bfloat16"].per_s > 989e12
    assert machine.engines["valu"]["float32"].per_s == pytest.approx(66.9e12, rel=1e-3)
    # 6,016 bit, two transfers a clock.
    assert machine.memory.per_s == 6016 / 8 * 2 * 3.201e9
    assert 4.8e12 < machine.memory.per_s < 4.8e12 * 1.01


def test_gfx942_has_the_published_rates() -> None:
    machine = load("gfx942")
    for name, published in {
        "float64": 163.4,
        "float32": 163.4,
        "float16": 1307.4,
        "bfloat16": 1307.4,
        "int8": 2614.9,
    }.items():
        assert machine.engines["matrix"][name].per_s == pytest.approx(published * 1e12, rel=1e-3)
    assert machine.engines["valu"]["float32"].per_s == pytest.approx(163.4e12, rel=1e-3)
    assert machine.engines["valu"]["float64"].per_s == pytest.approx(81.7e12, rel=1e-3)
    assert machine.memory.per_s == pytest.approx(5.3e12, rel=0.01)
    assert machine.caches["l2_bytes"].value == 32 << 20
    assert machine.caches["last_level_bytes"].value == 256 << 20


def test_a_rate_is_never_below_the_published_figure() -> None:
    value = model()
    value["clock"]["highest_hz"] = 1e9
    assert Machine.from_dict(value).engines["matrix"]["float16"].per_s == 103e12


def test_a_calibrated_model_uses_measurement_times_margin() -> None:
    machine = Machine.from_dict(CALIBRATED)
    assert machine.engines["valu"]["float32"].per_s == 1.25e11
    assert machine.memory.per_s == 2.5e10
    assert lint(machine) == []
    assert machine.to_dict() == CALIBRATED


def test_the_fastest_format_stands_in_for_one_without_a_rate() -> None:
    assert load("gfx1200").fastest("valu")[0] == "float16"


Change = Callable[[dict[str, Any]], Any]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda m: m["engines"]["matrix"]["float16"].pop("ops_per_clock"), "engines.matrix.float16.ops_per_clock"),
        (lambda m: m["engines"]["matrix"]["float16"].update(ops_per_clock=0), "engines.matrix.float16.ops_per_clock"),
        (lambda m: m["engines"]["valu"]["float32"].update(published_ops_per_s=-1), "published_ops_per_s"),
        (lambda m: m["engines"]["valu"]["float32"].update(published_ops_per_s=math.nan), "published_ops_per_s"),
        (lambda m: m["engines"]["valu"]["float32"].update(published_ops_per_s=True), "published_ops_per_s"),
        (lambda m: m["engines"]["valu"]["float32"].update(published_ops_per_s=math.inf), "published_ops_per_s"),
        (lambda m: m["engines"]["valu"]["float32"].update(published_ops_per_s=10**400), "published_ops_per_s"),
        (lambda m: m["memory"].update(bytes_per_clock=-128), "memory.bytes_per_clock"),
        (lambda m: m["engines"]["valu"]["float32"].update(published_ops_per_s="25.6e12"), "with its sign"),
        (lambda m: m["engines"]["valu"]["float32"].pop("source"), "engines.valu.float32.source"),
        (lambda m: m["engines"]["valu"]["float32"].update(source=" "), "engines.valu.float32.source"),
        (lambda m: m["engines"]["valu"]["float32"].pop("dense"), "engines.valu.float32.dense"),
        (lambda m: m["engines"]["valu"]["float32"].update(confidence="sure"), "engines.valu.float32.confidence"),
        (lambda m: m["engines"]["valu"]["float32"].update(speed=1), "engines.valu.float32.speed"),
        (lambda m: m["engines"].update(matrix={}), "engines.matrix"),
        (lambda m: m["engines"].pop("valu"), "engines.valu"),
        (lambda m: m["engines"].update(tensor={}), "engines.tensor"),
        (lambda m: m["engines"]["valu"].update(fp32={}), "engines.valu.fp32"),
        (lambda m: m.pop("memory"), "memory"),
        (lambda m: m["memory"].pop("highest_clock_hz"), "memory.highest_clock_hz"),
        (lambda m: m["memory"].pop("bytes_per_clock"), "memory.bytes_per_clock"),
        (lambda m: m["clock"].pop("source"), "clock.source"),
        (lambda m: m.update(clock=None), "clock"),
        (lambda m: m["caches"]["l2_bytes"].pop("source"), "caches.l2_bytes.source"),
        (lambda m: m.pop("absorbed_store_bytes"), "absorbed_store_bytes"),
        (lambda m: m["absorbed_store_bytes"].update(value=-1), "absorbed_store_bytes.value"),
        (lambda m: m.update(schema="solar.hardware.v2"), "schema"),
        (lambda m: m.update(origin="guessed"), "origin"),
        (lambda m: m.pop("name"), "name"),
    ],
)  # fmt: skip
def test_a_bad_field_is_named(change: Change, field: str) -> None:
    value = model()
    change(value)
    with pytest.raises(HardwareError) as caught:
        Machine.from_dict(value)
    assert field in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda m: m["engines"]["valu"]["float32"].update(margin=0.9), "engines.valu.float32.margin"),
        (lambda m: m["engines"]["valu"]["float32"].pop("measured_ops_per_s"), "measured_ops_per_s"),
        (lambda m: m["memory"].update(highest_clock_hz=1e9), "memory.highest_clock_hz"),
        (lambda m: m.update(clock={"highest_hz": 1e9, "source": "x", "confidence": "low"}), "clock"),
    ],
)
def test_a_bad_field_of_a_calibrated_model_is_named(change: Change, field: str) -> None:
    value = copy.deepcopy(CALIBRATED)
    change(value)
    with pytest.raises(HardwareError) as caught:
        Machine.from_dict(value)
    assert field in str(caught.value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        # Multiply-adds where operations are meant, a sparse figure, a boost clock for another figure.
        (lambda m: m["engines"]["matrix"]["float16"].update(ops_per_clock=16384), "engines.matrix.float16"),
        (lambda m: m["engines"]["matrix"]["int4"].update(published_ops_per_s=821e12), "engines.matrix.int4"),
        (lambda m: m["engines"]["valu"]["float32"].update(published_clock_hz=2.53e9), "engines.valu.float32"),
        (lambda m: m["engines"]["valu"]["float32"].update(dense=False), "engines.valu.float32.dense"),
        (lambda m: m["memory"].update(bytes_per_clock=102.2), "memory"),
        (lambda m: m["absorbed_store_bytes"].update(value=1 << 30), "absorbed_store_bytes"),
        (lambda m: m["caches"]["l2_bytes"].update(value=1 << 26), "caches.l2_bytes"),
        # Bytes a second where bytes a clock are meant.
        (lambda m: m["memory"].update(bytes_per_clock=320e9), "memory"),
    ],
)
def test_the_linter_finds_a_contradiction(change: Change, field: str, tmp_path: Path) -> None:
    value = model()
    change(value)
    problems = lint(Machine.from_dict(value))
    assert len(problems) == 1
    assert problems[0].startswith(field)
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(value))
    with pytest.raises(HardwareError, match=field):
        load(tmp_path / "own.yaml")


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["engines"]["matrix"]["float16"].update(ops_per_clock=32768 * 1.015),
        lambda m: m["memory"].update(published_bytes_per_s=320e9 * 1.019),
        lambda m: m["absorbed_store_bytes"].update(value=32 << 20),
        lambda m: m["caches"]["l2_bytes"].update(value=32 << 20),
        lambda m: m["caches"].pop("l2_bytes"),
        lambda m: m["caches"].clear(),
    ],
)
def test_the_linter_lets_pass_what_agrees(change: Change) -> None:
    value = model()
    change(value)
    assert lint(Machine.from_dict(value)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b\n", "mapping"),
        ("", "mapping"),
        ("a: [", "not YAML"),
        ("name: x\n", "schema"),
        ("name: 2020-13-45\n", "not YAML"),
        ("a: " + "1" * 5000, "not YAML"),
        ("a: " + "[" * 5000 + "]" * 5000, "too deeply"),
        ("name: x\nname: y\n", "name: given twice"),
        ("memory:\n  margin: 1\n  margin: 2\n", "memory.margin: given twice"),
        ("a: &a {b: *a}\n", "unknown field"),
    ],
)
def test_a_file_that_is_no_model_is_one_clear_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(HardwareError, match=message) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(HardwareError, match="gfx1200, gfx942, sm_90"):
        load("gfx9999")
    with pytest.raises(HardwareError, match=r"nowhere.yaml: cannot be read: No such file"):
        load("nowhere.yaml")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(HardwareError, match="not UTF-8"):
        load(tmp_path / "own.yaml")


# --- the command ---------------------------------------------------------------------------------------------------


def command(*arguments: str) -> Any:
    from solbench.cli.hardware import hardware

    return CliRunner().invoke(hardware, list(arguments))


def test_show_prints_rates_and_sources() -> None:
    done = command("show", "gfx1200")
    assert done.exit_code == 0
    for text in ("103 Top/s", "320 GB/s", "25.641 Top/s", "33,554,432", "[low]"):
        assert text in done.output


def test_show_prints_one_json_object() -> None:
    value = json.loads(command("show", "sm_90", "--json").output)
    assert Machine.from_dict(value["model"]) == load("sm_90")
    assert value["bound_uses"]["ops_per_s"]["matrix"]["bfloat16"] == 132 * 4096 * 1.98e9


def test_show_accepts_a_file_of_ones_own(tmp_path: Path) -> None:
    value = model()
    value["name"] = "mine"
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(value))
    assert command("show", str(tmp_path / "mine.yaml")).output.startswith("mine: ")


@pytest.mark.parametrize("rate", [("memory", "bytes_per_clock"), ("engines", "matrix", "int8", "published_ops_per_s")])
@pytest.mark.parametrize("wrong", [None, 0, -1.0, "fast"])
@pytest.mark.parametrize("verb", ["show", "lint"])
def test_a_missing_or_non_positive_rate_is_one_line(
    verb: str, wrong: Any, rate: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from solbench.cli import run

    value = model()
    place = value
    for name in rate[:-1]:
        place = place[name]
    if wrong is None:
        del place[rate[-1]]
    else:
        place[rate[-1]] = wrong
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(value))
    assert run(["hardware", verb, str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1 and printed.err.count("own.yaml") == 1
    assert f"own.yaml: {'.'.join(rate)}: " in printed.err


def test_what_a_file_says_does_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    value = model()
    value["device"] = "red \x1b[31m"
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(value))
    shown = command("show", str(tmp_path / "own.yaml")).output
    assert "\x1b" not in shown and "red \\x1b[31m" in shown


def test_cpu_is_this_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    from solbench.device import calibrate

    monkeypatch.setattr(calibrate, "remembered_cpu", lambda cache: copy.deepcopy(CALIBRATED))
    shown = command("show", "cpu").output
    assert shown.startswith("cpu: two cores (calibrated)")
    assert "measured 0.1 x 1.25  [dense, measured]" in shown
    assert command("lint", "cpu").output == "cpu: ok\n"


def test_show_refuses_an_unknown_model_in_one_line() -> None:
    from solbench.errors import InputError

    done = command("show", "gfx9999")
    assert isinstance(done.exception, InputError)
    assert str(done.exception).count("gfx9999") == 1


def test_lint_exits_by_what_it_found(tmp_path: Path) -> None:
    assert command("lint").exit_code == 0
    value = model()
    value["memory"]["bytes_per_clock"] = 100
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(value))
    value.pop("memory")
    (tmp_path / "missing.yaml").write_text(yaml.safe_dump(value))
    wrong = command("lint", str(tmp_path / "wrong.yaml"), "gfx1200", "--json")
    assert (wrong.exit_code, json.loads(wrong.output)["verdict"]) == (1, "contradiction")
    missing = command("lint", str(tmp_path / "missing.yaml"), str(tmp_path / "wrong.yaml"))
    assert missing.exit_code == 2
    assert "memory: missing" in missing.output
