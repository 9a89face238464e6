"""Triton's interpreter, made to compute bfloat16 and float8 as numbers: for verdicts of Triton candidates on a CPU.

The interpreter keeps a bfloat16 in a uint16 and a float8 in a uint8, and most of its operations then compute with those
integers: a product of two bfloat16 matrices is wrong by ten orders of magnitude. :func:`install` puts a layer around
its builder. Operations that move bits stay as they are. Casts, arithmetic, comparisons, products, reductions, scans and
atomic additions run in float32 and are rounded to nearest even, as cards do. Whatever is not known to be right for
these types raises :class:`Refusal`, which is no fault of the candidate, and so does what the interpreter lacks.

For Triton 3.5 and later; nothing here imports Triton before :func:`install`.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from solbench.evaluate import device_library
from solbench.evaluate.narrow_floats import BF16, FORMATS, Bfloat16, Float8, RangeError

# Operations of the builder that leave values as they are, whatever their bits mean.
_MOVES = frozenset({
    "load", "store", "masked_load", "masked_store", "reshape", "trans", "expand_dims", "broadcast", "cat", "join",
    "split", "splat", "unsplat", "gather", "addptr", "bitcast", "select", "int_to_ptr", "ptr_to_int", "make_range",
    "atomic_cas", "atomic_load", "atomic_store", "make_block_ptr", "advance", "make_tensor_descriptor",
    "tensor_pointer_store", "descriptor_store", "descriptor_gather", "descriptor_scatter", "barrier",
    "get_program_id", "get_num_programs", "assert", "assume",
})  # fmt: skip
_CASTS = frozenset({
    "si_to_fp", "ui_to_fp", "fp_to_si", "fp_to_ui", "fp_ext", "fp_trunc", "fp_to_fp",
})  # fmt: skip
_COMPARISONS = frozenset(f"fcmp{order}{name}" for order in "OU" for name in ("LT", "LE", "GT", "GE", "EQ", "NE"))
_ARITHMETIC = frozenset({
    "fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "fabs", "precise_divf", "approx_divf", "minimumf", "minnumf",
    "maximumf", "maxnumf", "clampf", "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "precise_sqrt", "rsqrt",
    "erf", "floor", "ceil",
})  # fmt: skip
# Combining functions of Triton's own library whose reduction the interpreter takes from NumPy.
_COMBINERS = (
    "_sum_combine", "_prod_combine", "_elementwise_max", "_elementwise_min",
    "_argmax_combine_tie_break_left", "_argmax_combine_tie_break_fast",
    "_argmin_combine_tie_break_left", "_argmin_combine_tie_break_fast",
)  # fmt: skip
Format = Bfloat16 | Float8


class Refusal(Exception):
    """The interpreter cannot say what a card would compute here."""


def install() -> None:
    """Import Triton in interpreter mode with this layer around it. Nothing may have imported Triton before.

    ImportError where there is no Triton; :class:`Refusal` for one whose interpreter is not as known.
    """
    if "triton" in sys.modules:
        raise Refusal("Triton was imported before its interpreter could be chosen")
    os.environ["TRITON_INTERPRET"] = "1"
    import triton
    from triton.runtime import autotuner, interpreter

    try:
        layer = _Layer(triton, interpreter)
        layer.wrap_builder()
        layer.wrap_reductions()
        device_library.replace(triton.language, interpreter, Refusal)
        # There is no card to ask, and nothing to time: of several configurations the first one runs.
        triton.runtime.driver.set_active(_NoCard())
        autotuner.Autotuner.do_bench = property(lambda tuner: lambda call, quantiles=None, **options: [1.0, 1.0, 1.0])
    except AttributeError as error:
        raise Refusal(f"the interpreter of Triton {triton.__version__} is not one that is known: {error}") from None


def fault(error: BaseException) -> list[str] | None:
    """As :func:`refused`, for the worker: a kind and the reason."""
    reason = refused(error)
    return None if reason is None else ["unsupported", reason]


def refused(error: BaseException) -> str | None:
    """Why ``error`` is the interpreter's and not the candidate's, or None.

    A :class:`Refusal`, an operation that the interpreter does not have or says it does not support.
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if isinstance(link, Refusal):
            return str(link)
        frames = traceback.extract_tb(link.__traceback__)
        inside = bool(frames) and frames[-1].filename.endswith(os.path.join("triton", "runtime", "interpreter.py"))
        if isinstance(link, NotImplementedError) and inside:
            return str(link)
        if isinstance(link, AttributeError) and type(link.obj).__name__ == "InterpreterBuilder":
            return f"the interpreter has no {str(link.name).removeprefix('create_')}"
        link = link.__cause__ or link.__context__
    return None


class _NoCard:
    """In the place of Triton's driver."""

    def __getattr__(self, name: str) -> Any:
        raise Refusal(f"the host code asks Triton's driver for {name}, and under the interpreter there is no card")


class _Layer:
    """What this module knows of one Triton."""

    def __init__(self, triton: Any, interpreter: Any) -> None:
        self.tl = triton.language
        self.interpreter = interpreter
        self.handle = interpreter.TensorHandle
        # Taken here, so that a Triton without them is refused at once.
        self.load, self.store = interpreter._interpreter.load, interpreter._interpreter.store
        self.add, self.exchange = interpreter._ir.ATOMIC_OP.FADD, interpreter._ir.ATOMIC_OP.XCHG
        self.cut_off, self.nearest = interpreter._ir.ROUNDING_MODE.RTZ, interpreter._ir.ROUNDING_MODE.RTNE
        self.nan_padding = interpreter._ir.PADDING_OPTION.PAD_NAN
        self.numpy_dtype = interpreter._get_np_dtype
        special = (self.dot, self.dot_scaled, self.fma, self.atomic_rmw, self.print, self.descriptor_load,
                   self.tensor_pointer_load)  # fmt: skip
        self.special = {method.__name__: method for method in special}

    # ---- handles: arrays with a type of Triton

    def form(self, handle: Any) -> Format | None:
        """Format of a handle that holds narrow floats, else None. A pointer to such a type holds addresses."""
        return self.form_of(handle.dtype) if isinstance(handle, self.handle) else None

    def form_of(self, dtype: Any) -> Format | None:
        name = str(getattr(dtype, "name", ""))
        if name.startswith("fp8") and name not in FORMATS:
            raise Refusal(f"{name} under Triton's interpreter")
        return FORMATS.get(name)

    def values(self, handle: Any) -> Any:
        """Numbers of a handle: float32 for narrow floats, else as they are."""
        form = self.form(handle)
        return handle.data if form is None else form.decode(handle.data)

    def wide(self, argument: Any) -> Any:
        """A handle of narrow floats as one of float32; anything else as it is."""
        form = self.form(argument)
        return argument if form is None else self.handle(form.decode(argument.data), self.tl.float32)

    def rounded(self, values: Any, form: Format, *, nearest: bool = True) -> Any:
        """A handle of narrow floats from numbers."""
        try:
            bits = form.encode(values, nearest=nearest)
        except RangeError as error:
            raise Refusal(str(error)) from None
        types = {"bf16": "bfloat16", **{name: f"float8{name[3:]}" for name in FORMATS if name != "bf16"}}
        return self.handle(bits, getattr(self.tl, types[form.name]))

    def forms(self, arguments: Iterable[Any]) -> list[Format]:
        """Formats of the narrow handles among arguments, lists included."""
        found: list[Format] = []
        for argument in arguments:
            if isinstance(argument, (list, tuple)):
                found += self.forms(argument)
            elif (form := self.form(argument)) is not None:
                found.append(form)
        return found

    # ---- the builder

    def wrap_builder(self) -> None:
        builder = self.interpreter.InterpreterBuilder
        for attribute in dir(builder):
            operation = attribute.removeprefix("create_")
            if attribute.startswith("create_") and operation not in _MOVES:
                setattr(builder, attribute, self.wrapped(operation, getattr(builder, attribute)))
        if not hasattr(builder, "get_bf16"):
            builder.get_bf16 = lambda builder, value: self.rounded(np.array([value], np.float32), BF16)

    def wrapped(self, operation: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """The operation as it is where no narrow float takes part, else as it should be."""
        special = self.special.get(operation)
        if special is not None:
            return _method(special, original)
        if operation in _CASTS:
            return _method(self.cast, original)
        compares = operation in _COMPARISONS

        def patched(builder: Any, *arguments: Any, **options: Any) -> Any:
            forms = self.forms((*arguments, *options.values()))
            if not forms:
                return original(builder, *arguments, **options)
            if not (compares or operation in _ARITHMETIC) or any(form is not BF16 for form in forms):
                raise Refusal(f"{operation} of {forms[0].name} under Triton's interpreter")
            wide = [self.wide(argument) for argument in arguments]
            with np.errstate(all="ignore"):
                result = original(builder, *wide, **options)
            return self.handle(result.data, self.tl.int1) if compares else self.rounded(result.data, BF16)

        return patched

    def cast(self, original: Callable[..., Any], builder: Any, source: Any, target: Any, *rounding: Any) -> Any:
        """From or to a narrow type. An integer becomes a float32 first, as on a card."""
        form, wanted = self.form(source), self.form_of(target.scalar)
        if form is None and wanted is None:
            return original(builder, source, target, *rounding)
        if rounding and rounding[0] not in (None, self.nearest, self.cut_off):
            raise Refusal(f"rounding {rounding[0]} under Triton's interpreter")
        values = self.values(source)
        if wanted is not None:
            return self.rounded(values, wanted, nearest=not (rounding and rounding[0] == self.cut_off))
        with np.errstate(all="ignore"):
            return self.handle(values.astype(self.numpy_dtype(target)), target.scalar)

    def dot(self, original: Callable[..., Any], builder: Any, a: Any, b: Any, d: Any, *options: Any) -> Any:
        """``a @ b + d`` of narrow operands in float32, the type of the result being that of ``d``."""
        if self.form(a) is None and self.form(b) is None:
            return original(builder, a, b, d, *options)
        if self.form(d) is not None or d.data.dtype.kind != "f":
            raise Refusal(f"dot into {d.dtype} under Triton's interpreter")
        product = np.matmul(self.values(a).astype(np.float32), self.values(b).astype(np.float32))
        return self.handle((product + d.data).astype(d.data.dtype), d.dtype.scalar)

    def dot_scaled(self, original: Callable[..., Any], builder: Any, *arguments: Any) -> Any:
        raise Refusal("dot_scaled under Triton's interpreter")

    def fma(self, original: Callable[..., Any], builder: Any, x: Any, y: Any, z: Any) -> Any:
        """``x * y + z`` rounded once: the product of two bfloat16 is exact in float64."""
        forms = self.forms((x, y, z))
        if not forms:
            return original(builder, x, y, z)
        if any(form is not BF16 for form in forms):
            raise Refusal(f"fma of {forms[0].name} under Triton's interpreter")
        x, y, z = (self.values(handle).astype(np.float64) for handle in (x, y, z))
        with np.errstate(all="ignore"):
            return self.rounded(x * y + z, BF16)

    def atomic_rmw(
        self, original: Callable[..., Any], builder: Any, kind: Any, ptr: Any, val: Any, mask: Any, *order: Any
    ) -> Any:
        """Additions and exchanges of bfloat16, one after the other where addresses repeat."""
        form = self.form(val)
        if form is None:
            return original(builder, kind, ptr, val, mask, *order)
        if form is not BF16 or kind not in (self.add, self.exchange):
            raise Refusal(f"atomic {kind} of {form.name} under Triton's interpreter")
        addresses, new, active = (np.atleast_1d(part.data).ravel() for part in (ptr, val, mask))
        old = np.zeros_like(new)
        alone = len(np.unique(addresses[active])) == np.count_nonzero(active)
        for place in [slice(None)] if alone else [slice(i, i + 1) for i in range(len(new))]:
            here, on = addresses[place], active[place]
            old[place] = self.load(here, on, np.zeros_like(new[place]), new.dtype)
            sums = BF16.decode(old[place]) + BF16.decode(new[place])
            self.store(here, BF16.encode(sums) if kind == self.add else new[place], on)
        return self.handle(old.reshape(val.data.shape), val.dtype.scalar)

    def print(self, original: Callable[..., Any], builder: Any, prefix: Any, hex: Any, values: Any, *signs: Any) -> Any:
        shown = values if hex else [self.wide(value) for value in values]
        return original(builder, prefix, hex, shown, *signs)

    def descriptor_load(self, original: Callable[..., Any], builder: Any, desc: Any, *rest: Any, **named: Any) -> Any:
        if self.form_of(desc.base.dtype.element_ty) is not None and desc.padding == self.nan_padding:
            raise Refusal(f"padding with NaN of {desc.base.dtype.element_ty} under Triton's interpreter")
        return original(builder, desc, *rest, **named)

    def tensor_pointer_load(
        self, original: Callable[..., Any], builder: Any, ptr: Any, check: Any, padding: Any, *rest: Any
    ) -> Any:
        if self.form_of(ptr.base.dtype.element_ty) is not None and padding == self.nan_padding:
            raise Refusal(f"padding with NaN of {ptr.base.dtype.element_ty} under Triton's interpreter")
        return original(builder, ptr, check, padding, *rest)

    # ---- reductions and scans, which the interpreter computes without its builder

    def wrap_reductions(self) -> None:
        for kind in (self.interpreter.ReduceOps, self.interpreter.ScanOps):
            kind.apply_impl = _method(self.combine, kind.apply_impl)

    def combine(self, original: Callable[..., Any], operation: Any, tensors: Any) -> Any:
        """A known function combines float32 values, rounded at the end; any other one narrow values, one by one."""
        forms = [self.form(tensor.handle) for tensor in tensors]
        narrow = [form for form in forms if form is not None]
        if not narrow:
            return original(operation, tensors)
        if any(form is not BF16 for form in narrow):
            raise Refusal(f"reduction of {narrow[0].name} under Triton's interpreter")
        known = [getattr(self.tl.standard, name, None) for name in _COMBINERS]
        if not any(operation.combine_fn is function for function in known if function is not None):
            return self.one_by_one(operation, tensors)
        wide = tuple(self.tensor(self.wide(tensor.handle), tensor) for tensor in tensors)
        result = original(operation, wide)
        several = list(result) if isinstance(result, (tuple, list)) else [result]
        # The position beside a maximum is an integer.
        several = [
            self.tensor(self.rounded(tensor.handle.data, BF16), tensor) if tensor.dtype == self.tl.float32 else tensor
            for tensor in several
        ]
        return several if isinstance(result, (tuple, list)) else several[0]

    def one_by_one(self, operation: Any, tensors: Any) -> Any:
        if isinstance(operation, self.interpreter.ReduceOps):
            return operation.generic_reduce(tensors)
        if not operation.reverse:
            return operation.generic_scan(tensors)
        turned = tuple(self.flipped(tensor, operation.axis) for tensor in tensors)
        return [self.flipped(tensor, operation.axis) for tensor in operation.generic_scan(turned)]

    def flipped(self, tensor: Any, axis: int) -> Any:
        data = np.ascontiguousarray(np.flip(tensor.handle.data, axis=axis))
        return self.tensor(self.handle(data, tensor.handle.dtype), tensor)

    def tensor(self, handle: Any, like: Any) -> Any:
        """A tensor of Triton over a handle, a block or a scalar like another one."""
        kind = self.tl.block_type(handle.dtype, like.type.shape) if like.type.is_block() else handle.dtype
        return self.tl.core.tensor(handle, kind)


def _method(function: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """A method that hands the one it replaces to ``function``."""

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        return function(original, self, *arguments, **options)

    return method
