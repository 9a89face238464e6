"""KernelBench modules: ``Model``, ``get_init_inputs`` and ``get_inputs`` become a Definition with one workload.

The module stays word for word in the reference; what is added calls it as a pure function, its weights being inputs.
"""

from __future__ import annotations

import ast
import keyword
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from solbench.child import ask
from solbench.corpus.document import read_text
from solbench.corpus.exchange.folders import Item, write_corpus
from solbench.corpus.exchange.form import NOT_HERE
from solbench.corpus.exchange.notes import Carried, Notes
from solbench.errors import InputError
from solbench.model.definition import DTYPE_BITS, Definition
from solbench.model.record import NAME
from solbench.model.workload import Workload

PROBE_TIMEOUT_S = 120.0
PROBE_MEMORY_BYTES = 4 << 30
# Their comparison: allclose with one bound for both parts.
_TOLERANCE = {"float64": 1e-4, "float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2}
# Some modules name a GPU where they make a tensor. The import tries a module with this too, on the meta device.
PLACED = '''
from torch.overrides import TorchFunctionMode as _TorchFunctionMode


class _Placed(_TorchFunctionMode):
    """Tensors are made on ``device``, whatever device a call names."""

    def __init__(self, device):
        super().__init__()
        self.device = device

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is _torch.Tensor.cuda:
            return args[0].to(self.device)
        named = {"device": self.device} if (kwargs or {}).get("device") is not None else {}
        return function(*args, **{**(kwargs or {}), **named})
'''
_HEAD = """

# What follows was added by the import: the module above as a function of its inputs and weights.
import torch as _torch
"""
_ADAPTER = '''

_ARGUMENTS = {arguments}
_STATE = {state}
with _torch.device("meta"), _Placed("meta"):
    _MODEL = Model(*get_init_inputs())  # its own weights are never allocated


def custom_inputs(axes_and_scalars, device):
    """Arguments of forward, and weights and buffers as the constructor leaves them."""
    with _torch.device(device), _Placed(device):
        values = dict(zip(_ARGUMENTS, get_inputs()))
        model = Model(*get_init_inputs())
    tensors = dict([*model.named_parameters(), *model.named_buffers()])
    values.update({{name: tensors[key].detach().clone() for name, key in _STATE.items()}})
    return values


def run({parameters}):
    """Model.forward with the weights that are given."""
    given = locals()
    # A buffer may be written to, such as a running mean, but is no input that a call may change.
    state = {{key: given[name].clone() for name, key in _STATE.items()}}
    device = next(value.device for value in given.values() if isinstance(value, _torch.Tensor))
    for key, buffer in _MODEL.named_buffers():
        if key not in state:  # no output depends on it
            state[key] = _torch.zeros(buffer.shape, dtype=buffer.dtype, device=device)
    result = _torch.func.functional_call(_MODEL, state, tuple(given[name] for name in _ARGUMENTS))
    return result.contiguous() if isinstance(result, _torch.Tensor) else [value.contiguous() for value in result]
'''


def read_kernelbench(files: Sequence[Path], output: Path) -> Carried:
    """Every module as a problem of a corpus in the new folder ``output``; the folder above a file names its suite.

    Runs the modules, on the meta device in child processes. :class:`InputError` for what breaks a rule: nothing is
    written then.
    """
    notes = Notes()
    modules = [(path, source) for path in files if (source := _source(path, notes)) is not None]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        answers = pool.map(lambda module: _probe(module[1], module[0].stem, str(module[0])), modules)
        items = [_item(path, source, seen, notes) for (path, source), seen in zip(modules, answers)]
    return write_corpus([item for item in items if item is not None], output, notes)


def _source(path: Path, notes: Notes) -> str | None:
    """The module's text; None, and a note, where it is seen without running it that it is no problem."""
    where = str(path)
    if path.suffix != ".py" or not re.fullmatch(NAME, path.stem):
        raise InputError(where, "is not a Python module with a plain name")
    source = read_text(path)
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(where, f"is not Python: {error}") from None
    defined = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    if "Model" not in defined:
        notes.unsupported(where, "has no Model" + (": a solution without its problem" * ("ModelNew" in defined)))
        return None
    if taken := defined & {"run", "custom_inputs"}:
        notes.unsupported(where, f"defines {min(taken)} itself")
        return None
    if "ModelNew" in defined:
        notes.loss(where, "ModelNew: its weights are its own, so it is no function of the inputs; only Model is called")
    return source


def _item(path: Path, source: str, seen: Mapping[str, Any], notes: Notes) -> Item | None:
    where, suite = str(path), path.absolute().parent.name
    if "unsupported" in seen:
        notes.unsupported(where, str(seen["unsupported"]))
        return None
    forms = [form for form in (*seen["arguments"], *seen["state"].values(), *seen["outputs"]) if "dtype" in form]
    for dtype in [form["dtype"] for form in forms]:
        if dtype not in DTYPE_BITS or dtype in NOT_HERE:
            notes.unsupported(where, f"dtype {dtype}: is not among those that a problem may have")
            return None
    if seen["written"]:
        what = (
            f"{', '.join(seen['written'])}: what a normalization in training writes and no output depends on; dropped"
        )
        notes.loss(where, what)
    if len(seen["outputs"]) > 1:
        notes.loss(where, "their check compares the first output only; here all of them are")
    item = _problem(path.stem, suite if re.fullmatch(NAME, suite) else None, source, seen, where)
    if item.definition.in_place:
        notes.warning(where, f"{', '.join(item.definition.in_place)}: forward writes to it; declared in_place")
    if biases := [key for key in seen["zeros"] if _is_bias(key)]:
        notes.warning(where, f"{', '.join(biases)}: all zeros, as the constructor leaves them")
    return item


def _is_bias(key: str) -> bool:
    return "bias" in key.rpartition(".")[2]


def _problem(name: str, suite: str | None, source: str, seen: Mapping[str, Any], where: str) -> Item:
    outputs = ["output"] if len(seen["outputs"]) == 1 else [f"output_{n}" for n in range(len(seen["outputs"]))]
    given: Sequence[Mapping[str, Any]] = seen["arguments"]
    taken = set(outputs)
    names = seen["names"]
    arguments = [_fresh(names[n] if n < len(names) else f"argument_{n}", taken) for n in range(len(given))]
    state = {_fresh(key, taken): key for key in seen["state"]}
    inputs: dict[str, Any] = {}
    draws: dict[str, Any] = {}
    for label, form in zip(arguments, given):
        inputs[label], draws[label] = (_scalar(form["value"])) if "value" in form else (_spec(form), {"type": "custom"})
    for label, key in state.items():
        # A bias that is zeros by its constructor is no fault of the import: controls let biases, and no others, be so.
        role = "bias" if key in seen["zeros"] and _is_bias(key) else "weight"
        inputs[label], draws[label] = {**_spec(seen["state"][key]), "role": role}, {"type": "custom"}
    adapter = _ADAPTER.format(arguments=repr(arguments), state=repr(state), parameters=", ".join([*arguments, *state]))
    fields = {
        "name": name,
        "suite": suite,
        "op_type": "module",
        "axes": {},
        "inputs": inputs,
        "outputs": {label: _spec(form) for label, form in zip(outputs, seen["outputs"])},
        "in_place": [arguments[position] for position in seen["in_place"]],
        "reference": source.rstrip("\n") + "\n" + _HEAD + PLACED + adapter,
    }
    if any(draw["type"] == "custom" for draw in draws.values()):
        fields["custom_inputs_entrypoint"] = "custom_inputs"
    definition = Definition.load(fields, where)
    checks = [_check(label, form["dtype"]) for label, form in zip(outputs, seen["outputs"])]
    workload = Workload.load({"uuid": "w0", "axes": {}, "inputs": draws, "checks": checks}, where)
    workload.validate_against(definition, where)
    return Item(definition, (workload,))


def _scalar(value: bool | int | float) -> tuple[dict[str, Any], dict[str, Any]]:
    dtype = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float64"
    return {"shape": None, "dtype": dtype}, {"type": "scalar", "value": value}


def _spec(form: Mapping[str, Any]) -> dict[str, Any]:
    return {"shape": form["shape"], "dtype": form["dtype"]}


def _check(output: str, dtype: str) -> dict[str, Any]:
    if dtype not in _TOLERANCE:
        return {"type": "exact", "output": output}
    return {"type": "numeric", "output": output, "atol": _TOLERANCE[dtype], "rtol": _TOLERANCE[dtype]}


def _fresh(text: str, taken: set[str]) -> str:
    """An identifier that looks like ``text`` and is not taken yet; it is then."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)[:56]
    name = name if name.isidentifier() and not keyword.iskeyword(name) else f"_{name}"
    count = 1
    candidate = name
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate)
    return candidate


def _probe(source: str, name: str, where: str) -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory(prefix="solbench-import-") as folder:
        answers, fault = ask(
            "solbench.corpus.exchange.module_probe:answers", {"source": source, "name": name}, Path(folder),
            timeout_s=PROBE_TIMEOUT_S, memory_bytes=PROBE_MEMORY_BYTES,
        )  # fmt: skip
    if not answers:
        return {"unsupported": f"its process gave no answer ({fault})"}
    if not isinstance(answers[0], Mapping):
        raise InputError(where, "its process gave no answer")
    return answers[0]
