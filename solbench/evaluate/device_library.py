"""Functions of CUDA's and ROCm's device libraries under Triton's interpreter, which has none: by NumPy's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "tan": np.tan, "sin": np.sin, "cos": np.cos, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "pow": np.power, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "fabs": np.abs, "abs": np.abs, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint, "hypot": np.hypot, "fmod": np.fmod,
}  # fmt: skip


def replace(tl: Any, interpreter: Any, refusal: type[Exception]) -> None:
    """Give ``triton.language.extra.libdevice`` and functions by symbol a body; raise ``refusal`` for unknown ones.

    The interpreter calls the empty bodies of the former, which return None, and has no operation for the latter.
    """
    from triton.language.extra import libdevice

    def called(what: str, function: Callable[..., Any] | None, handles: list[Any]) -> Any:
        """A handle of the result; all arguments are float32, or all are float64."""
        types = {str(handle.dtype) for handle in handles}
        if function is None or len(types) != 1 or not types <= {"fp32", "fp64"}:
            raise refusal(f"{what} of {', '.join(sorted(types)) or 'nothing'} under Triton's interpreter")
        with np.errstate(all="ignore"):
            data = function(*(handle.data for handle in handles))
        return interpreter.TensorHandle(data.astype(handles[0].data.dtype), handles[0].dtype)

    def by_name(name: str) -> Callable[..., Any]:
        def function(*arguments: Any, **options: Any) -> Any:
            # A number beside tensors is a constant of their type.
            like = next((argument for argument in arguments if isinstance(argument, tl.core.tensor)), None)
            if like is None:
                raise refusal(f"libdevice.{name} of numbers under Triton's interpreter")
            number = like.handle.data.dtype.type
            handles = [
                argument.handle
                if isinstance(argument, tl.core.tensor)
                else interpreter.TensorHandle(np.array([number(argument)]), like.handle.dtype)
                for argument in arguments
            ]
            handle = called(f"libdevice.{name}", _FUNCTIONS.get(name), handles)
            largest = max((a for a in arguments if isinstance(a, tl.core.tensor)), key=lambda a: a.handle.data.size)
            return tl.core.tensor(handle, largest.type)

        return function

    def by_symbol(builder: Any, library: Any, path: Any, symbol: str, handles: Any, returns: Any, pure: Any) -> Any:
        """``__nv_tanhf`` and ``__ocml_tanh_f32`` are both tanh."""
        name = symbol.removeprefix("__nv_").removeprefix("__ocml_").removesuffix("_f32").removesuffix("_f64")
        function = _FUNCTIONS.get(name) or _FUNCTIONS.get(name.removesuffix("f"))
        return called(symbol, function, list(handles))

    for name, function in list(vars(libdevice).items()):
        if inspect.isfunction(function):
            setattr(libdevice, name, by_name(name))
    interpreter.InterpreterBuilder.create_extern_elementwise = by_symbol
