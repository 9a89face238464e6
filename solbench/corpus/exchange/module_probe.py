"""Child process of the KernelBench import: runs a module on the meta device and says what goes in and out.

Of ``{"source", "name"}`` makes what :mod:`solbench.corpus.exchange.kernelbench` reads, or ``{"unsupported": reason}``.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from solbench.corpus.exchange.kernelbench import PLACED

_TEXT_LIMIT = 300


class _Watched(TorchDispatchMode):
    """Names of the random operations that ran; the storages that were written, and whether the last write was zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[str] = []
        # The tensor is kept, or another storage might get the same key.
        self.writes: dict[int, tuple[torch.Tensor, bool]] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded in function.tags:
            self.drawn.append(str(function).removeprefix("aten.").partition(".")[0])
        result = function(*args, **(kwargs or {}))
        zeros = function in _ZEROS or (function.overloadpacket is torch.ops.aten.fill_ and args[1] == 0)
        values = {**dict(zip([argument.name for argument in function._schema.arguments], args)), **(kwargs or {})}
        changed = [
            values.get(argument.name)
            for argument in function._schema.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        for tensor in changed or [result] * zeros:
            if isinstance(tensor, torch.Tensor):
                self.writes[_storage(tensor)] = (tensor, zeros)
        return result


_ZEROS = (torch.ops.aten.zero_.default, torch.ops.aten.zeros.default, torch.ops.aten.zeros_like.default)


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def probe(source: str, name: str) -> dict[str, Any]:
    """Arguments, state and outputs of ``Model(*get_init_inputs())(*get_inputs())``, nothing of which is allocated."""
    module = types.ModuleType(f"reference_{name}")
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)  # noqa: S102
    for wanted in ("Model", "get_inputs", "get_init_inputs"):
        if wanted not in module.__dict__:
            return {"unsupported": f"defines no {wanted}"}
    # Distributions look at the values of their parameters, and a meta tensor has none.
    torch.distributions.Distribution.set_default_validate_args(False)
    added: dict[str, Any] = {"_torch": torch}
    exec(PLACED, added)  # noqa: S102
    with torch.device("meta"), added["_Placed"]("meta"), _Watched() as made:
        model = module.Model(*module.get_init_inputs())
        arguments = module.get_inputs()
    if not isinstance(model, torch.nn.Module) or not isinstance(arguments, (list, tuple)):
        return {"unsupported": "Model is no nn.Module, or get_inputs returns no list"}
    kept = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    for path, part in model.named_modules():
        for field, value in vars(part).items():
            if any(id(tensor) not in kept for tensor in _tensors(value)):
                where = f"{path}.{field}".lstrip(".")
                return {"unsupported": f"{where} is, or holds, a tensor that is neither a parameter nor a buffer"}
    written = [
        f"{path}.{name}".lstrip(".")
        for path, part in model.named_modules()
        if isinstance(part, torch.nn.modules.batchnorm._NormBase) and part.training
        for name, _ in part.named_buffers(recurse=False)
    ]
    state = {
        key: _form(value) for key, value in (*model.named_parameters(), *model.named_buffers()) if key not in written
    }
    given: list[dict[str, Any]] = []
    for position, value in enumerate(arguments):
        if isinstance(value, torch.Tensor):
            given.append(_form(value))
        elif isinstance(value, (bool, int, float)):
            given.append({"value": value})
        else:
            return {"unsupported": f"argument {position} of forward is a {type(value).__name__}"}
    zeros = [
        key
        for key, value in (*model.named_parameters(), *model.named_buffers())
        if key in state and made.writes.get(_storage(value), (value, False))[1]
    ]
    with torch.no_grad(), _Watched() as ran:
        outputs = model(*arguments)
    if ran.drawn:
        return {"unsupported": f"forward is random: it calls {ran.drawn[0]}"}
    in_place = [
        position
        for position, value in enumerate(arguments)
        if isinstance(value, torch.Tensor) and _storage(value) in ran.writes
    ]
    tensors = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    if not tensors or not all(isinstance(value, torch.Tensor) for value in tensors):
        return {"unsupported": "forward returns something else than tensors"}
    code = model.forward.__code__
    names = list(code.co_varnames[1 : code.co_argcount])
    outputs = [_form(value) for value in tensors]
    return {
        "arguments": given, "names": names, "state": state, "written": written, "outputs": outputs, "zeros": zeros,
        "in_place": in_place,
    }  # fmt: skip


def _tensors(value: Any) -> list[torch.Tensor]:
    """Tensors that an attribute is or, being a list, tuple or dictionary, holds."""
    values = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
    return [each for each in values if isinstance(each, torch.Tensor)]


def _form(value: torch.Tensor) -> dict[str, Any]:
    return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}


def answers(request: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """In the child: one answer; whatever the module raises is the reason why it is not supported."""
    try:
        yield probe(request["source"], request["name"])
    except ModuleNotFoundError as error:
        yield {"unsupported": f"needs the package {error.name}, which is not installed here"}
    except Exception as error:  # noqa: BLE001 - the boundary to foreign code
        text = " ".join(f"{type(error).__name__}: {error}".split())[:_TEXT_LIMIT]
        yield {"unsupported": f"does not run on the meta device: {text}"}
