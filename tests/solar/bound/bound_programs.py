"""Programs of the IR by hand, for the tests of the bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from solar.einsum import Op, Program, Tensor, from_dict, to_dict, validate


class Build:
    """Collects operations; every method returns the name of its result."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.inputs: list[tuple[str, str]] = []
        self.ops: list[Op] = []
        self.values: dict[str, tuple[Any, ...]] = {}
        self.structures: dict[str, str] = {}

    def input(self, name: str, *shape: int, dtype: str = "float32", values: Sequence[int] | None = None) -> str:
        self.tensors[name] = Tensor(shape, dtype)
        self.inputs.append((name, name))
        if values is not None:
            self.values[name] = tuple(values)
        return name

    def op(
        self, kind: str, function: str, reads: Sequence[str], shape: Sequence[int], dtype: str | None = None, /,
        **attributes: Any,
    ) -> str:  # fmt: skip
        name = f"t{len(self.ops)}"
        self.tensors[name] = Tensor(tuple(shape), dtype or self.tensors[reads[0]].dtype)
        self.ops.append(Op(name, kind, function, tuple(reads), (name,), attributes))
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def map(self, function: str, *operands: str, dtype: str | None = None, **attributes: Any) -> str:
        shapes = [self.shape(name) for name in operands]
        rank = max(len(shape) for shape in shapes)
        padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
        dtype = dtype or (self.tensors[operands[-1]].dtype if function == "where" else None)
        return self.op(
            "map", function, operands, [max(dims) for dims in zip(*padded, strict=True)], dtype, **attributes
        )

    def relu(self, name: str) -> str:
        return self.map("relu", name)

    def cast(self, name: str, dtype: str) -> str:
        return self.op("cast", "cast", [name], self.shape(name), dtype)

    def view(self, function: str, name: str, shape: Sequence[int], **attributes: Any) -> str:
        return self.op("view", function, [name], shape, **attributes)

    def transpose(self, name: str) -> str:
        rank = len(self.shape(name))
        dims = [*range(rank - 2), rank - 1, rank - 2]
        return self.view("permute", name, [self.shape(name)[dim] for dim in dims], dims=dims)

    def slice(self, name: str, dim: int, start: int, stop: int, step: int = 1) -> str:
        shape = list(self.shape(name))
        shape[dim] = len(range(start, stop, step))
        return self.view("slice", name, shape, dim=dim, start=start, stop=stop, step=step)

    def sum(self, name: str, dims: Sequence[int], keepdim: bool = False) -> str:
        shape = [1 if i in dims else n for i, n in enumerate(self.shape(name)) if keepdim or i not in dims]
        return self.op("reduce", "sum", [name], shape, dims=list(dims), keepdim=keepdim)

    def einsum(self, equation: str, *operands: str, dtype: str | None = None) -> str:
        """Single letters an index, as ``ij,jk->ik``."""
        left, right = equation.split("->")
        extents: dict[str, int] = {}
        for letters, name in zip(left.split(","), operands, strict=True):
            extents.update(zip(letters, self.shape(name), strict=True))
        return self.op(
            "einsum", "matmul", operands, [extents[letter] for letter in right], dtype,
            indices=extents,
            operands=[[{"terms": [[letter, 1]], "offset": 0} for letter in letters] for letters in left.split(",")],
            output=list(right),
        )  # fmt: skip

    def conv(self, x: str, w: str, *, stride: int = 1, padding: int = 0, groups: int = 1) -> str:
        """Convolution of any number of spatial dimensions, as the conversion writes it."""
        n, channels, *space = self.shape(x)
        filters, per_group, *taps = self.shape(w)
        sizes = [(s + 2 * padding - t) // stride + 1 for s, t in zip(space, taps, strict=True)]
        indices: dict[str, int] = {"n": n, "g": groups, "k": filters // groups, "c": per_group}
        indices |= {f"y{i}": size for i, size in enumerate(sizes)} | {f"r{i}": t for i, t in enumerate(taps)}
        window = [{"terms": [[f"y{i}", stride], [f"r{i}", 1]], "offset": -padding} for i in range(len(space))]
        shape = [n, groups, filters // groups, *sizes]
        made = self.op(
            "einsum", "convolution", [x, w], shape,
            indices=indices,
            operands=[
                [_form("n"), {"terms": [["g", per_group], ["c", 1]], "offset": 0}, *window],
                [{"terms": [["g", filters // groups], ["k", 1]], "offset": 0}, _form("c"),
                 *(_form(f"r{i}") for i in range(len(taps)))],
            ],
            output=["n", "g", "k", *(f"y{i}" for i in range(len(space)))],
        )  # fmt: skip
        assert channels == groups * per_group
        return self.view("reshape", made, [n, filters, *sizes])

    def softmax(self, name: str) -> str:
        last = len(self.shape(name)) - 1
        shape = [*self.shape(name)[:-1], 1]
        top = self.op("reduce", "amax", [name], shape, dims=[last], keepdim=True)
        powers = self.map("exp", self.map("sub", name, top))
        return self.map("div", powers, self.sum(powers, [last], keepdim=True))

    def causal(self, rows: int, columns: int) -> str:
        """Boolean, true where column > row."""
        i = self.op("create", "arange", [], [rows], "int64", start=0, step=1)
        j = self.op("create", "arange", [], [columns], "int64", start=0, step=1)
        return self.map("gt", j, self.view("unsqueeze", i, [rows, 1], dims=[1]), dtype="bool")

    def program(self, *outputs: str, aliases: Mapping[str, str] | None = None) -> Program:
        program = Program(
            path="aten",
            tensors=self.tensors,
            inputs=tuple(self.inputs),
            outputs=tuple((f"out{i}", name) for i, name in enumerate(outputs)),
            ops=tuple(self.ops),
            values=self.values,
            aliases=dict(aliases or {}),
            structures=self.structures,
        )
        # Through the artifact's form, as a verifier reads it.
        return validate(from_dict(to_dict(program)))


def _form(index: str) -> dict[str, Any]:
    return {"terms": [[index, 1]], "offset": 0}


def machine(
    matrix: Mapping[str, float] | None = None, valu: Mapping[str, float] | None = None, bandwidth: float = 1e12,
    absorbed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """A machine model with the given rates at 1 GHz."""

    def rate(value: float, unit: str = "ops") -> dict[str, Any]:
        return {
            f"{unit}_per_clock": value / 1e9,
            f"published_{unit}_per_s": value,
            "published_clock_hz": 1e9,
            "dense": True,
            "source": "a test",
            "confidence": "high",
        }

    figure = {"source": "a test", "confidence": "high"}
    engines = {"valu": {name: rate(v) for name, v in (valu or {"float32": 1e13}).items()}}
    if matrix:
        engines["matrix"] = {name: rate(v) for name, v in matrix.items()}
    return {
        "schema": "solar.hardware.v1",
        "name": "test",
        "device": "a test",
        "origin": "specified",
        "clock": {"highest_hz": 1e9, **figure},
        "engines": engines,
        "memory": {**rate(bandwidth, "bytes"), "highest_clock_hz": 1e9},
        "caches": {"last_level_bytes": {"value": 1 << 30, **figure}},
        "absorbed_store_bytes": {"value": absorbed, **figure},
    }


STEPS = (
    "sin", "turn", "scale", "bias", "weight", "gram", "centre", "softmax", "reshape", "tril", "flip", "cat", "pool",
    "combine",
)  # fmt: skip


@st.composite
def programs(draw: st.DrawFn, steps: tuple[str, ...] = STEPS) -> tuple[Build, str]:
    """Random operations on matrices, with intermediates that several of them read."""
    b = Build()
    value = b.input("x", 8, 12)
    earlier = [value]
    for i in range(draw(st.integers(1, 8))):
        value = _step(draw, b, value, earlier, draw(st.sampled_from(steps)), i)
        earlier.append(value)
    return b, value


def _step(draw: st.DrawFn, b: Build, value: str, earlier: list[str], step: str, i: int) -> str:
    rows, columns = b.shape(value)
    if step == "sin":
        return b.map("sin", value)
    if step == "turn":
        return b.transpose(value)
    if step == "scale":
        return b.map("mul", value, b.input(f"s{i}", *draw(st.sampled_from([(columns,), (rows, 1), (rows, columns)]))))
    if step == "bias":
        return b.map("add", value, b.input(f"b{i}", columns))
    if step == "weight":
        return b.einsum("ij,jk->ik", value, b.input(f"w{i}", columns, draw(st.sampled_from([1, 3, 8, 12]))))
    if step == "gram":
        return b.einsum("ij,kj->ik", value, value)
    if step == "centre" and columns > 1:
        mean = b.map("div", b.sum(value, [1], keepdim=True), scalars={"1": columns})
        return b.map("sub", value, mean)
    if step == "softmax" and columns > 1:
        return b.softmax(value)
    # Zeros of a triangle are not followed through whatever cuts its rows or puts it beside others.
    if step in ("reshape", "cat", "pool") and any(op.function == "tril" for op in b.ops):
        return value
    if step == "reshape" and rows % 2 == 0:
        return b.view("reshape", value, [rows // 2, columns * 2])
    if step == "tril":
        return b.map("tril", value, diagonal=0)
    if step == "flip":
        return b.op("copy", "flip", [value], [rows, columns], dims=[0])
    if step == "cat" and rows * columns < 500:
        return b.op("copy", "cat", [value, b.map("cos", value)], [rows, 2 * columns], dim=1)
    if step == "pool" and columns % 2 == 0:
        return b.sum(b.view("reshape", value, [rows, columns // 2, 2]), [2])
    if step == "combine":
        alike = [name for name in earlier if b.shape(name) == (rows, columns)]
        if alike:
            return b.map(draw(st.sampled_from(("add", "mul"))), value, draw(st.sampled_from(alike)))
    return value
