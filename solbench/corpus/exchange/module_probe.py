"""Child process of the KernelBench import: runs a module on the meta device and says what goes in and out.

Of ``{"source", "name"}`` makes what :mod:`solbench.corpus.exchange.kernelbench` reads, or ``{"unsupported": reason}``.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

_TEXT_LIMIT = 300


def probe(source: str, name: str) -> dict[str, Any]:
    """Arguments, state and outputs of ``Model(*get_init_inputs())(*get_inputs())``, nothing of which is allocated."""
    module = types.ModuleType(f"reference_{name}")
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)  # noqa: S102
    for wanted in ("Model", "get_inputs", "get_init_inputs"):
        if wanted not in module.__dict__:
            return {"unsupported": f"defines no {wanted}"}
    with torch.device("meta"):
        model = module.Model(*module.get_init_inputs())
        arguments = module.get_inputs()
    if not isinstance(model, torch.nn.Module) or not isinstance(arguments, (list, tuple)):
        return {"unsupported": "Model is no nn.Module, or get_inputs returns no list"}
    for path, part in model.named_modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.p > 0 and part.training:
            return {"unsupported": f"{path} drops values at random"}
        for field, value in vars(part).items():
            if isinstance(value, torch.Tensor):
                return {"unsupported": f"{path}.{field} is a tensor that is neither a parameter nor a buffer"}
    state = {key: _form(value) for key, value in (*model.named_parameters(), *model.named_buffers())}
    given: list[dict[str, Any]] = []
    for position, value in enumerate(arguments):
        if isinstance(value, torch.Tensor):
            given.append(_form(value))
        elif isinstance(value, (bool, int, float)):
            given.append({"value": value})
        else:
            return {"unsupported": f"argument {position} of forward is a {type(value).__name__}"}
    with torch.no_grad():
        outputs = model(*arguments)
    tensors = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    if not tensors or not all(isinstance(value, torch.Tensor) for value in tensors):
        return {"unsupported": "forward returns something else than tensors"}
    code = model.forward.__code__
    names = list(code.co_varnames[1 : code.co_argcount])
    return {"arguments": given, "names": names, "state": state, "outputs": [_form(value) for value in tensors]}


def _form(value: torch.Tensor) -> dict[str, Any]:
    return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}


def answers(request: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """In the child: one answer; whatever the module raises is the reason why it is not supported."""
    try:
        yield probe(request["source"], request["name"])
    except Exception as error:  # noqa: BLE001 - the boundary to foreign code
        text = " ".join(f"{type(error).__name__}: {error}".split())[:_TEXT_LIMIT]
        yield {"unsupported": f"does not run on the meta device: {text}"}
