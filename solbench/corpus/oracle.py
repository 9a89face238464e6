"""Child process of :mod:`solbench.corpus.equivalence`: runs a task's oracle on inputs of ours, matching one to another.

An oracle is a function ``module_fn`` of the inputs, or a class ``Model`` that ``Model(*get_init_inputs())`` builds: a
``torch.nn.Module`` whose constructor, parameters, buffers and ``forward`` share the inputs among them. Functions
compute in float32 where a problem of ours has 16-bit tensors, and get those widened; modules choose their own dtypes.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from solbench.inputs import Input

FUNCTION, MODULE = "module_fn", "Model"


class Unmatched(Exception):
    """Inputs of ours and what the oracle takes are not the same things."""


def answers(request: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """In the child: run the oracle on each case; the forms of its tensors, or the reason why there are none."""
    module = types.ModuleType("oracle")
    try:
        exec(compile((folder / "oracle.py").read_bytes(), "oracle.py", "exec"), module.__dict__)  # noqa: S102
    except BaseException as error:  # noqa: BLE001 (whatever foreign code raises is its answer)
        yield from [{"reason": f"the oracle: {type(error).__name__}: {error}"}] * request["cases"]
        return
    for number in range(request["cases"]):
        inputs = torch.load(folder / f"inputs-{number}", weights_only=True)
        try:
            yield {"tensors": _written(_result(module, inputs), folder, number)}
        except Unmatched as error:
            yield {"reason": str(error)}
        except BaseException as error:  # noqa: BLE001
            yield {"reason": f"the oracle: {type(error).__name__}: {error}"}


def _result(oracle: types.ModuleType, inputs: Mapping[str, Input]) -> Any:
    if hasattr(oracle, FUNCTION):
        takes = inspect.signature(oracle.module_fn).parameters
        other = sorted(set(_required(takes)) - set(inputs)) + sorted(set(inputs) - set(takes))
        if other:
            raise Unmatched(f"the oracle's parameters are not the inputs: {', '.join(other)}")
        return oracle.module_fn(**{name: _widened(value) for name, value in inputs.items()})
    if not hasattr(oracle, MODULE):
        raise Unmatched(f"the oracle has neither {FUNCTION} nor {MODULE}")
    model, arguments = matched(oracle, inputs)
    return model(**arguments)


def _widened(value: Input) -> Input:
    if isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16):
        return value.float()
    return value


def matched(oracle: Any, inputs: Mapping[str, Input]) -> tuple[torch.nn.Module, dict[str, Input]]:
    """The oracle's module, in evaluation mode and with its weights set, and the arguments of its ``forward``.

    Every input goes to one place: a scalar to the constructor's parameter of its name, instead of what
    ``get_init_inputs`` says; the others to an argument of ``forward``, a parameter or a buffer of their name; then,
    while more are left than ``forward`` lacks, to the one parameter or buffer of their shape and dtype; then to what
    ``forward`` lacks, in order, where dtype and rank are those of ``get_inputs``. :class:`Unmatched` where this leaves
    an input, an argument or a parameter over.
    """
    left = dict(inputs)
    signature = inspect.signature(oracle.Model)
    given = signature.bind(*oracle.get_init_inputs())
    for name in signature.parameters:
        if name in left and not isinstance(left[name], torch.Tensor):
            given.arguments[name] = left.pop(name)
    model = oracle.Model(*given.args, **given.kwargs).eval()
    takes = inspect.signature(model.forward).parameters
    arguments = {name: left.pop(name) for name in takes if name in left}
    missing = [name for name in _required(takes) if name not in arguments]

    state = dict([*model.named_parameters(), *model.named_buffers()])
    weights = {key: left.pop(name) for key in state if (name := key.replace(".", "_")) in left}
    if len(left) > len(missing):
        for key, name in _alone({key: state[key] for key in state if key not in weights}, left).items():
            weights[key] = left.pop(name)
    if missing and len(left) == len(missing):
        examples = dict(zip(takes, _example(oracle)))
        for name, (ours, value) in zip(missing, left.items()):
            if _rank(value) != _rank(examples.get(name)):
                raise Unmatched(f"{ours} is {_rank(value)}, the oracle's {name} is {_rank(examples.get(name))}")
            arguments[name] = value
        missing, left = [], {}
    unset = [f"{key} {_form(value)}" for key, value in model.named_parameters() if key not in weights]
    if left or missing or unset:
        ours = ", ".join(f"{name} {_form(value)}" for name, value in left.items())
        raise Unmatched(
            f"of the inputs {ours or 'none'} is left, of the oracle {', '.join(missing + unset) or 'nothing'}"
        )
    for key, value in weights.items():
        if _form(value) != _form(state[key]):
            raise Unmatched(f"the input is {_form(value)}, the oracle's {key} is {_form(state[key])}")
        with torch.no_grad():
            state[key].copy_(value)
    return model, arguments


def _example(oracle: Any) -> Sequence[Any]:
    """The oracle's own arguments; the first where it yields several."""
    given = oracle.get_inputs()
    return given if isinstance(given, (list, tuple)) else next(given)


def _required(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    return [name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty]


def _alone(state: Mapping[str, torch.Tensor], left: Mapping[str, Input]) -> dict[str, str]:
    """Key of ``state`` -> name in ``left``, for each form that one of either has."""
    keys: dict[object, list[str]] = {}
    names: dict[object, list[str]] = {}
    for key, tensor in state.items():
        keys.setdefault(_form(tensor), []).append(key)
    for name, value in left.items():
        names.setdefault(_form(value), []).append(name)
    return {keys[form][0]: found[0] for form, found in names.items() if len(found) == len(keys.get(form, [])) == 1}


def _form(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"


def _rank(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')} of {value.dim()} dimensions"


def _written(result: Any, folder: Path, number: int) -> list[Any]:
    """Leave each tensor's bytes in ``folder``; its dtype and shape."""
    forms = []
    for position, tensor in enumerate([result] if isinstance(result, torch.Tensor) else result):
        flat = tensor.detach().cpu().contiguous().flatten()
        (folder / f"output-{number}-{position}").write_bytes(flat.view(torch.uint8).numpy().tobytes())
        forms.append([str(tensor.dtype).removeprefix("torch."), list(tensor.shape)])
    return forms
