"""Steps of scalar and vector arithmetic: operands read, one call of the instruction table, results written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from solbench.code.agreement import base_name
from solbench.code.assembly import Operation
from solbench.gfx12.access import (
    EXEC_OPERAND,
    VCC_OPERAND,
    Reader,
    mask_reader,
    scalar_reader,
    scc_reader,
    vector_reader,
    width,
)
from solbench.gfx12.cross_lane import dpp_source, has_dpp, written_lanes
from solbench.gfx12.op import Op
from solbench.gfx12.operands import Modifiers, Operand, Unreadable, parse, split
from solbench.gfx12.ops import OPS
from solbench.gfx12.results import Writer, scalar_writer, scc_writer, vector_writer
from solbench.gfx12.state import State, Step, Unsupported

_NONE = Modifiers()
_IMPLICIT: Final = frozenset({"scc", "vcc", "exec"})
_OUTPUT_SCALE: Final = {("mul", "2"): 2.0, ("mul", "4"): 4.0, ("div", "2"): 0.5}
# Modifiers that change nothing that is emulated, or that the readers take.
_TAKEN: Final = frozenset({
    "op_sel", "op_sel_hi", "neg_lo", "neg_hi", "mul", "div", "byte_sel", "row_mask", "bank_mask", "bound_ctrl", "fi",
    "dpp8", "quad_perm", "row_shl", "row_shr", "row_ror", "row_share", "row_xmask", "row_newbcast",
})  # fmt: skip
_TAKEN_FLAGS: Final = frozenset({"clamp", "row_mirror", "row_half_mirror"})
Compute = Callable[[State], Any]


def name_of(operation: Operation) -> str:
    """The instruction table's name: without encoding suffix, VOPD halves as what they do."""
    name = base_name(operation.mnemonic)
    return "v_" + name.removeprefix("v_dual_") if name.startswith("v_dual_") else name


def build(operations: Sequence[Operation]) -> Step | None:
    """The step of an arithmetic instruction, or of both halves of a VOPD; None for a name the table does not have."""
    halves = []
    for operation in operations:
        entry = OPS.get(name_of(operation))
        if entry is None:
            return None
        halves.append(_half(entry, operation))
    if len(halves) == 1:
        compute, write = halves[0]
        return lambda m: write(m, compute(m))
    (first, write_first), (second, write_second) = halves

    def both(m: State) -> None:
        # Both read before either writes; a result may be a view of what the other half writes.
        one, other = first(m), second(m)
        if other.base is not None:
            other = other.copy()
        write_first(m, one)
        write_second(m, other)

    return both


def _half(entry: Op, operation: Operation) -> tuple[Compute, Writer]:
    texts, modifiers = split(operation)
    unknown = (set(modifiers.values) - _TAKEN) | (modifiers.flags - _TAKEN_FLAGS)
    if unknown:
        raise Unsupported(f"{operation.mnemonic} with {', '.join(sorted(unknown))}")
    vector = entry.name.startswith("v_")
    written, sources = operands_of(entry, texts)
    if vector and entry.name == "v_fma_mixhi_f16":
        written = [_half_of(written[0], 1)]
    elif vector and width(entry.dst[0]) == 16 and not entry.dst[0].startswith("2x"):
        chosen = modifiers.bits("op_sel", (0, 0, 0, 0))
        if written[0].half is None and "fma_mix" not in entry.name:
            written[0] = _half_of(written[0], chosen[3] if len(entry.src) == 3 else 0)
    readers = _vector_sources(entry, sources, modifiers) if vector else _scalar_sources(entry, sources)
    if entry.reads_dst:
        readers.append(
            vector_reader(written[0], entry.dst[0], 0, _NONE) if vector else scalar_reader(written[0], entry.dst[0])
        )
    apply = _with_options(entry, modifiers)
    compute = _call(apply, readers)
    if "saturate" in entry.options:
        compute = lambda m: apply(*[read(m) for read in readers], saturate=m.saturate)  # noqa: E731
    floating = len(entry.dst) == 1 and entry.dst[0].removeprefix("2x").startswith("f")
    scale = next((by for (name, text), by in _OUTPUT_SCALE.items() if modifiers.values.get(name) == text), None)
    if scale is not None:
        if not floating:
            raise Unsupported(f"{operation.mnemonic} with an output scale")
        compute = _scaled(compute, scale)
    if entry.dst[0] in ("f16", "2xf16"):
        compute = _not_infinite(compute, readers)
    if "clamp" in modifiers.flags:
        if entry.clamped is not None:
            compute = _call(_with_options(entry, modifiers, entry.clamped), readers)
        elif floating:
            compute = _limited(compute)
        else:
            raise Unsupported(f"{operation.mnemonic} with clamp")
    writers = [_writer(entry, operand, kind, vector) for operand, kind in zip(written, entry.dst, strict=True)]
    if vector and has_dpp(modifiers):
        writers = [written_lanes(modifiers, write) for write in writers]
    if len(writers) == 1:
        return compute, writers[0]
    return compute, _several(writers)


def _half_of(operand: Operand, half: int) -> Operand:
    return Operand(operand.kind, operand.register, operand.count, half, text=operand.text)


def operands_of(entry: Op, texts: Sequence[str]) -> tuple[list[Operand], list[Operand]]:
    """Results and sources as the signature has them; masks that are not printed are VCC."""
    listed = [parse(text) for text in texts]
    written: list[Operand] = []
    sources: list[Operand] = []
    for kinds, found in ((entry.dst, written), (entry.src, sources)):
        for kind in kinds:
            if kind in _IMPLICIT:
                found.append(VCC_OPERAND if kind == "vcc" else EXEC_OPERAND)
            elif listed:
                found.append(listed.pop(0))
            elif kind == "mask":
                found.append(VCC_OPERAND)
            else:
                raise Unreadable(f"{entry.name} {', '.join(texts)}")
        if kinds is entry.dst and entry.name.startswith("v_swap"):
            listed = [written[0], written[1]]
    if listed and not (listed[0].kind == "s" and entry.src[-1:] == ("vcc",)):
        raise Unreadable(f"{entry.name} {', '.join(texts)}")
    return written, sources


def _vector_sources(entry: Op, sources: Sequence[Operand], modifiers: Modifiers) -> list[Reader]:
    readers: list[Reader] = []
    for place, (operand, kind) in enumerate(zip(sources, entry.src, strict=True)):
        if kind == "exec":
            readers.append(lambda m: m.mask)
        elif kind == "vcc":
            readers.append(mask_reader(VCC_OPERAND))
        else:
            if width(kind) == 16 and not kind.startswith("2x") and kind != "mask" and operand.half is None:
                half = modifiers.bits("op_sel", (0, 0, 0, 0))[place]
                if half:
                    operand = Operand(operand.kind, operand.register, operand.count, half, operand.value,
                                      operand.hexadecimal, operand.negated, operand.absolute, operand.text)  # fmt: skip
            read = vector_reader(operand, kind, place, modifiers)
            if place == 0 and has_dpp(modifiers):
                read = dpp_source(modifiers, read)
            readers.append(read)
    return readers


def _scalar_sources(entry: Op, sources: Sequence[Operand]) -> list[Reader]:
    readers: list[Reader] = []
    for operand, kind in zip(sources, entry.src, strict=True):
        if kind == "scc":
            readers.append(scc_reader)
        elif kind == "exec":
            readers.append(scalar_reader(EXEC_OPERAND, "u64" if entry.name.endswith("b64") else "u32"))
        else:
            readers.append(scalar_reader(operand, kind))
    return readers


def _writer(entry: Op, operand: Operand, kind: str, vector: bool) -> Writer:
    if kind == "scc":
        return scc_writer
    if kind == "exec":
        if vector:
            return vector_writer(EXEC_OPERAND, "mask")
        return scalar_writer(EXEC_OPERAND, "u64" if entry.name.endswith("b64") else "u32")
    return vector_writer(operand, kind, entry.whole) if vector else scalar_writer(operand, kind)


def _with_options(entry: Op, modifiers: Modifiers, apply: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """``apply`` with the keywords that the instruction's modifiers give; FP16_OVFL is known only when it runs."""
    function = apply or entry.apply
    if not entry.options:
        return function
    named: dict[str, Any] = {}
    chosen = modifiers.bits("op_sel", (0, 0, 0, 0))
    if "byte_sel" in entry.options:
        named["byte_sel"] = modifiers.number("byte_sel")
    if "signed" in entry.options:
        named["signed"] = tuple(bool(bit) for bit in modifiers.bits("neg_lo", (0, 0))[:2])
    if "fi" in entry.options:
        named["fi"], named["bc"] = bool(chosen[0]), bool(chosen[1])
    return lambda *values, **more: function(*values, **named, **more)


def _call(apply: Callable[..., Any], readers: Sequence[Reader]) -> Compute:
    """One call of the function; the common numbers of operands without a loop."""
    if len(readers) == 1:
        (only,) = readers
        return lambda m: apply(only(m))
    if len(readers) == 2:
        first, second = readers
        return lambda m: apply(first(m), second(m))
    if len(readers) == 3:
        one, two, three = readers
        return lambda m: apply(one(m), two(m), three(m))
    return lambda m: apply(*[read(m) for read in readers])


def _scaled(compute: Compute, scale: float) -> Compute:
    def scaled(m: State) -> Any:
        value = compute(m)
        return value * value.dtype.type(scale)

    return scaled


def _not_infinite(compute: Compute, readers: Sequence[Reader]) -> Compute:
    """With FP16_OVFL a finite result that overflows becomes the largest number; infinities of operands stay."""

    def computed(m: State) -> Any:
        value = compute(m)
        if not m.saturates or not m.saturate or not np.isinf(value).any():
            return value
        given: Any = np.zeros((1, 1), bool)
        for read in readers:
            operand = np.asarray(read(m))
            if operand.dtype.kind == "f":
                infinite = np.isinf(operand)
                given = given | (infinite if infinite.ndim == value.ndim else infinite[..., None])
        return np.where(given, value, np.clip(value, np.finfo(np.float16).min, np.finfo(np.float16).max))

    return computed


def _limited(compute: Compute) -> Compute:
    """Results to [0, 1]; NaN becomes 0."""

    def limited(m: State) -> Any:
        value = compute(m)
        return np.fmin(np.fmax(value, value.dtype.type(0)), value.dtype.type(1))

    return limited


def _several(writers: Sequence[Writer]) -> Writer:
    def write(m: State, values: Any) -> None:
        # A later result may be a view of a register that an earlier one is written to.
        held = [value.copy() if place and value.base is not None else value for place, value in enumerate(values)]
        for one, value in zip(writers, held, strict=True):
            one(m, value)

    return write
