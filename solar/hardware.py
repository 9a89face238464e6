"""Machine models: what a card can do at most, every number with its source.

A model is a YAML file (:data:`MODELS`, or a user's own) or a plain mapping::

    schema: solar.hardware.v1
    name: gfx1200                  # target
    device: AMD Radeon RX 9060 XT
    origin: specified              # or: calibrated
    clock: {highest_hz: 3.13e+9, source: ..., confidence: high}          # null in a calibrated model
    engines:
      matrix: {<format>: <rate>}   # multiply-accumulate arrays; may be absent
      valu: {<format>: <rate>}     # elementwise arithmetic; must be there
    memory: <rate, with bytes_ instead of ops_>
    caches: {l2_bytes: <figure>, last_level_bytes: <figure>}
    absorbed_store_bytes: <figure>

A *rate* of a specified model: ``ops_per_clock`` (a multiply-add is two), ``published_ops_per_s`` and
``published_clock_hz`` (the clock that the figure is printed for), ``dense`` (never a figure with structured sparsity),
``source``, ``confidence`` (high, medium, low). A rate of a calibrated model: ``measured_ops_per_s`` and ``margin``, the
factor by which the true peak may exceed the measurement; the bound uses their product. ``confidence`` is then
``measured``. A *figure* is ``value``, ``source``, ``confidence``.

Formats: float64 float32 tfloat32 float16 bfloat16 float8 (e4m3fn and e5m2) float4 int8 int4. A format that an engine
has no sourced rate for is left out: work in it is priced at the engine's fastest format, which is looser, but true.

``absorbed_store_bytes``: stores that may stay in the last-level cache inside the timed window, and so cost no memory
traffic. 0 states the assumption that every stored output reaches memory; the last-level cache's size states that none
need to, while they fit.

Rule 7 (:func:`lint`): ``ops_per_clock`` times ``published_clock_hz`` lies within 2 % of the published figure, no figure
counts structured sparsity, and no cache holds more than the last level. The bound uses ``ops_per_clock`` at the highest
settable clock, and never less than the published figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solar.errors import HardwareError

SCHEMA = "solar.hardware.v1"
MODELS = Path(__file__).parent / "hardware"
ENGINES = ("matrix", "valu")
FORMATS = ("float64", "float32", "tfloat32", "float16", "bfloat16", "float8", "float4", "int8", "int4")
ORIGINS = ("specified", "calibrated")
CONFIDENCE = ("high", "medium", "low", "measured")
TOLERANCE = 0.02
_LARGEST = 1e300


@dataclass(frozen=True)
class Rate:
    """Operations or bytes a second of one engine in one format. Either the specified or the calibrated part is set."""

    dense: bool
    source: str
    confidence: str
    per_clock: float | None = None
    published_per_s: float | None = None
    published_clock_hz: float | None = None
    measured_per_s: float | None = None
    margin: float | None = None
    highest_clock_hz: float | None = None

    @property
    def per_s(self) -> float:
        """What the bound divides by: nothing on this machine is faster."""
        if self.measured_per_s is not None and self.margin is not None:
            return self.measured_per_s * self.margin
        assert self.per_clock and self.published_per_s and self.published_clock_hz
        return max(self.per_clock * (self.highest_clock_hz or self.published_clock_hz), self.published_per_s)


@dataclass(frozen=True)
class Figure:
    """One number with its source."""

    value: float
    source: str
    confidence: str


@dataclass(frozen=True)
class Machine:
    """One target. ``engines``: format -> rate in operations, by engine; ``memory``: the same in bytes."""

    name: str
    device: str
    origin: str
    clock: Figure | None
    engines: Mapping[str, Mapping[str, Rate]]
    memory: Rate
    caches: Mapping[str, Figure]
    absorbed_store_bytes: Figure

    def fastest(self, engine: str) -> tuple[str, Rate]:
        """Format and rate that an engine is quickest in: what work of no sourced rate is priced at."""
        return max(self.engines[engine].items(), key=lambda item: (item[1].per_s, item[0]))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Machine:
        """Check and take a mapping; raises :class:`HardwareError` that names the field."""
        return _machine(value)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON value, the artifact ``hardware``; :meth:`from_dict` takes it back."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "device": self.device,
            "origin": self.origin,
            "clock": None
            if self.clock is None
            else {
                "highest_hz": self.clock.value,
                "source": self.clock.source,
                "confidence": self.clock.confidence,
            },
            "engines": {
                engine: {name: _rate_dict(rate, "ops") for name, rate in rates.items()}
                for engine, rates in self.engines.items()
            },
            "memory": _rate_dict(self.memory, "bytes"),
            "caches": {name: _figure_dict(figure) for name, figure in self.caches.items()},
            "absorbed_store_bytes": _figure_dict(self.absorbed_store_bytes),
        }


def load(name_or_path: str | Path) -> Machine:
    """A packaged model by name, or a user's file by path; linted.

    Raises :class:`HardwareError` for an unknown name, a bad field, or a figure that contradicts its own rate.
    """
    machine = read(name_or_path)
    problems = lint(machine)
    if problems:
        raise HardwareError(f"{name_or_path}: {problems[0]}")
    return machine


def read(name_or_path: str | Path) -> Machine:
    """Like :func:`load`, without the lint."""
    import yaml

    path = _path(name_or_path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise HardwareError(f"{name_or_path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise HardwareError(f"{name_or_path}: not UTF-8") from None
    try:
        twice = _repeated(yaml.compose(text, yaml.SafeLoader))
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # an impossible date, a number of thousands of digits
        raise HardwareError(f"{name_or_path}: not YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise HardwareError(f"{name_or_path}: nested too deeply") from None
    if twice is not None:
        raise HardwareError(f"{name_or_path}: {twice}: given twice")
    if not isinstance(value, Mapping):
        raise HardwareError(f"{name_or_path}: expected a mapping")
    try:
        return Machine.from_dict(value)
    except HardwareError as error:
        raise HardwareError(f"{name_or_path}: {error}") from None


def _repeated(node: Any) -> str | None:
    """The first field that a YAML mapping has twice; PyYAML would take the last and say nothing."""
    waiting, done = [("", node)], set()
    for where, mapping in waiting:
        if mapping is None or mapping.id != "mapping" or id(mapping) in done:
            continue
        done.add(id(mapping))  # an alias may come back to it
        seen: set[str] = set()
        for key, value in mapping.value:
            name = f"{where}{key.value}"
            if name in seen:
                return name
            seen.add(name)
            waiting.append((f"{name}.", value))
    return None


def names() -> list[str]:
    """Packaged models."""
    return sorted(path.stem for path in MODELS.glob("*.yaml"))


def lint(machine: Machine) -> list[str]:
    """Contradictions of rule 7, one line each; empty if there are none."""
    found = []
    for engine, rates in machine.engines.items():
        for name, rate in rates.items():
            found += _lint_rate(f"engines.{engine}.{name}", "published_ops_per_s", rate, machine)
    found += _lint_rate("memory", "published_bytes_per_s", machine.memory, machine)
    last = machine.caches.get("last_level_bytes")
    second = machine.caches.get("l2_bytes")
    if last is not None and second is not None and second.value > last.value:
        found.append("caches.l2_bytes: more than the last level holds")
    if last is not None and machine.absorbed_store_bytes.value > last.value:
        found.append("absorbed_store_bytes: more than the last-level cache holds")
    return found


def _lint_rate(where: str, field: str, rate: Rate, machine: Machine) -> list[str]:
    found = []
    if not rate.dense:
        found.append(f"{where}.dense: a figure with structured sparsity cannot bound dense work")
    if rate.per_clock is not None and rate.published_per_s is not None and rate.published_clock_hz is not None:
        derived = rate.per_clock * rate.published_clock_hz
        off = derived / rate.published_per_s - 1
        if abs(off) > TOLERANCE:
            found.append(
                f"{where}.{field}: {rate.published_per_s:.6g} is published, rate per clock times clock gives "
                f"{derived:.6g} ({off:+.1%})"
            )
    return found


# --- reading a mapping -------------------------------------------------------------------------------------------


def _path(name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    if "/" not in text and "\\" not in text and not text.endswith((".yaml", ".yml", ".json")):
        path = MODELS / f"{text}.yaml"
        if not path.is_file():
            raise HardwareError(f"{text}: no such machine model; there are {', '.join(names())}, or give a file")
        return path
    return Path(name_or_path)


def _machine(value: Mapping[str, Any]) -> Machine:
    known = {"schema", "name", "device", "origin", "clock", "engines", "memory", "caches", "absorbed_store_bytes"}
    _only(value, known, "")
    if value.get("schema") != SCHEMA:
        raise HardwareError(f"schema: expected {SCHEMA!r}")
    origin = _text(value, "origin", "")
    if origin not in ORIGINS:
        raise HardwareError(f"origin: {origin!r} is none of {', '.join(ORIGINS)}")
    clock = None
    if origin == "specified":
        clock = _clock(_mapping(value, "clock", ""))
    elif value.get("clock") is not None:
        raise HardwareError("clock: a calibrated model has none (null)")
    highest = None if clock is None else clock.value
    engines = _mapping(value, "engines", "")
    _only(engines, set(ENGINES), "engines")
    rates: dict[str, dict[str, Rate]] = {}
    for engine in ENGINES:
        if engine not in engines:
            continue
        formats = _mapping(engines, engine, "engines")
        _only(formats, set(FORMATS), f"engines.{engine}")
        if not formats:
            raise HardwareError(f"engines.{engine}: no rate")
        rates[engine] = {
            name: _rate(
                _mapping(formats, name, f"engines.{engine}"), "ops", origin, highest, f"engines.{engine}.{name}"
            )
            for name in FORMATS
            if name in formats
        }
    if "valu" not in rates:
        raise HardwareError("engines.valu: missing; every machine has an elementwise engine")
    memory = dict(_mapping(value, "memory", ""))
    settable = memory.pop("highest_clock_hz", None)
    if origin == "specified":
        settable = _positive({"highest_clock_hz": settable}, "highest_clock_hz", "memory")
    elif settable is not None:
        raise HardwareError("memory.highest_clock_hz: unknown field")
    caches = _mapping(value, "caches", "")
    _only(caches, {"l2_bytes", "last_level_bytes"}, "caches")
    return Machine(
        name=_text(value, "name", ""),
        device=_text(value, "device", ""),
        origin=origin,
        clock=clock,
        engines=rates,
        memory=_rate(memory, "bytes", origin, settable, "memory"),
        caches={name: _figure(_mapping(caches, name, "caches"), f"caches.{name}") for name in sorted(caches)},
        absorbed_store_bytes=_figure(
            _mapping(value, "absorbed_store_bytes", ""), "absorbed_store_bytes", zero_allowed=True
        ),
    )


def _clock(value: Mapping[str, Any]) -> Figure:
    _only(value, {"highest_hz", "source", "confidence"}, "clock")
    return Figure(_positive(value, "highest_hz", "clock"), _text(value, "source", "clock"), _confidence(value, "clock"))


def _rate(value: Mapping[str, Any], unit: str, origin: str, highest: float | None, where: str) -> Rate:
    common = {"dense", "source", "confidence"}
    dense = value.get("dense")
    if not isinstance(dense, bool):
        raise HardwareError(f"{where}.dense: missing, or not true or false")
    source, confidence = _text(value, "source", where), _confidence(value, where)
    if origin == "calibrated":
        _only(value, common | {f"measured_{unit}_per_s", "margin"}, where)
        margin = _positive(value, "margin", where)
        if margin < 1:
            raise HardwareError(f"{where}.margin: below 1; a true peak is not under what was measured")
        measured = _positive(value, f"measured_{unit}_per_s", where)
        return Rate(dense, source, confidence, measured_per_s=measured, margin=margin)
    _only(value, common | {f"{unit}_per_clock", f"published_{unit}_per_s", "published_clock_hz"}, where)
    return Rate(
        dense,
        source,
        confidence,
        per_clock=_positive(value, f"{unit}_per_clock", where),
        published_per_s=_positive(value, f"published_{unit}_per_s", where),
        published_clock_hz=_positive(value, "published_clock_hz", where),
        highest_clock_hz=highest,
    )


def _rate_dict(rate: Rate, unit: str) -> dict[str, Any]:
    if rate.measured_per_s is not None:
        fields: dict[str, Any] = {f"measured_{unit}_per_s": rate.measured_per_s, "margin": rate.margin}
    else:
        fields = {
            f"{unit}_per_clock": rate.per_clock,
            f"published_{unit}_per_s": rate.published_per_s,
            "published_clock_hz": rate.published_clock_hz,
        }
        if unit == "bytes":
            fields["highest_clock_hz"] = rate.highest_clock_hz
    return {**fields, "dense": rate.dense, "source": rate.source, "confidence": rate.confidence}


def _figure(value: Mapping[str, Any], where: str, *, zero_allowed: bool = False) -> Figure:
    _only(value, {"value", "source", "confidence"}, where)
    if zero_allowed and value.get("value") == 0 and not isinstance(value.get("value"), bool):
        number = 0.0
    else:
        number = _positive(value, "value", where)
    return Figure(number, _text(value, "source", where), _confidence(value, where))


def _figure_dict(figure: Figure) -> dict[str, Any]:
    return {"value": figure.value, "source": figure.source, "confidence": figure.confidence}


def _only(value: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in value:
        if name not in known:
            prefix = f"{where}.{name}" if where else str(name)
            raise HardwareError(f"{prefix}: unknown field; expected {', '.join(sorted(known))}")


def _mapping(value: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    found = value.get(name)
    if not isinstance(found, Mapping):
        raise HardwareError(f"{where + '.' if where else ''}{name}: missing, or not a mapping")
    return found


def _text(value: Mapping[str, Any], name: str, where: str) -> str:
    found = value.get(name)
    if not isinstance(found, str) or not found.strip():
        raise HardwareError(f"{where + '.' if where else ''}{name}: missing, or not a text")
    return found


def _confidence(value: Mapping[str, Any], where: str) -> str:
    found = value.get("confidence")
    if found not in CONFIDENCE:
        raise HardwareError(f"{where}.confidence: {found!r} is none of {', '.join(CONFIDENCE)}")
    return str(found)


def _positive(value: Mapping[str, Any], name: str, where: str) -> float:
    found = value.get(name)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        hint = " (write an exponent with its sign: 3.13e+9)" if isinstance(found, str) else ""
        raise HardwareError(f"{where}.{name}: missing, or not a number{hint}")
    if not 0 < found < _LARGEST:  # not a NaN, an infinity, or a whole number beyond any float
        shown = repr(found) if isinstance(found, float) or found <= 0 else "a number of this size"
        raise HardwareError(f"{where}.{name}: {shown} is not positive and finite")
    return float(found)
