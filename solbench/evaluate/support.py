"""What can run on a target: languages, dtypes, scalars of a native call."""

from __future__ import annotations

from importlib.util import find_spec

from solbench.corpus.load import eager_solution
from solbench.evaluate import arena
from solbench.evaluate.session import is_native
from solbench.model.definition import Definition
from solbench.model.solution import Solution

# What the worker can pass by value and torch can map.
_DTYPES = frozenset({
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int64", "int32", "int16", "int8", "uint8", "bool",
})  # fmt: skip
_NATIVE_SCALARS = frozenset({"float64", "float32", "int64", "int32", "int16", "int8", "uint8", "bool"})


def _languages(target: str) -> frozenset[str]:
    """Languages that run on a target; on the host Triton's kernels run under its interpreter."""
    if target == "cpu":
        return frozenset({"pytorch", "triton", "cpp"})
    return frozenset({"pytorch", "triton", "hip_cpp" if target.startswith("gfx") else "cuda_cpp"})


def unsupported(definition: Definition, solution: Solution, target: str) -> str | None:
    """Why this solution cannot run on ``target``, or None. The reference itself is for every target."""
    spec = solution.spec
    language = next((name for name in spec.languages if name not in _languages(target)), None)
    if language is not None:
        return f"language: {language} does not run on the {target} target"
    interpreted = target == "cpu" and "triton" in spec.languages
    if interpreted and not (find_spec("triton") and find_spec("numpy")):
        return "language: Triton or NumPy is not installed (pip install 'solbench[run]')"
    if is_native(solution) and spec.binding != "c":
        return f"language: {spec.languages[0]} needs binding 'c' (extern \"C\" pointers); 'torch' is not built here"
    if target not in spec.target_hardware and not interpreted and solution != eager_solution(definition):
        return f"target: the solution is written for {', '.join(spec.target_hardware)}"
    dtype = arena.unsupported_dtype(definition, _DTYPES)
    if dtype is not None:
        return f"dtype: {dtype} on the {target} target"
    for name, tensor in definition.inputs.items():
        if tensor.shape is None and is_native(solution) and tensor.dtype not in _NATIVE_SCALARS:
            return f"dtype: scalar {name} of {tensor.dtype} has no C type"
    return None
