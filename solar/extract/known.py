"""Values that shape the work: carried beside meta tensors, never in place of them.

A meta tensor has no contents, but offsets, lengths and block tables decide shapes and branches. :class:`KnownValues`
keeps a real CPU twin for every tensor that is computed from nothing but known ones, so that ``.item()``, ``nonzero``,
boolean indexing and loops over sequences resolve; whatever needs the contents of any other tensor is refused.

Twins of floats are kept only through operations that IEEE 754 rounds in one way everywhere, so that a graph never
depends on the processor that traced it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from solar.errors import ExtractionError
from solar.extract.draws import Draws
from solar.extract.expansions import FUNCTIONS

# Elements; twins of larger tensors are dropped, for they are data and not bookkeeping.
LARGEST_TWIN = 1 << 20

_META = torch.device("meta")
_CPU = torch.device("cpu")

# Float results that every conforming processor rounds alike (one IEEE operation an element, or none).
_EXACT = """add sub rsub mul div neg abs sign ceil floor round trunc fmod remainder sqrt reciprocal maximum minimum
    clamp clamp_min clamp_max amax amin max min sort where masked_fill full full_like zeros zeros_like ones ones_like
    new_zeros new_ones new_full scalar_tensor empty empty_like new_empty arange fill zero copy lift_fresh lift clone
    detach alias _to_copy view _unsafe_view _reshape_alias reshape permute transpose t unsqueeze squeeze expand slice
    select split split_with_sizes unbind diagonal as_strided cat stack constant_pad_nd flip roll repeat gather
    index_select index index_put slice_scatter select_scatter tril triu constant empty_strided unfold"""
_EXACT_ON_FLOATS = frozenset(_EXACT.split())

_LIBRARY = torch.library.Library("solar", "DEF")
_LIBRARY.define("constant(int key, int[] shape, ScalarType dtype) -> Tensor")


def _constant(key: int, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=_META)


_LIBRARY.impl("constant", _constant, "CompositeExplicitAutograd")


class KnownValues(TorchDispatchMode):
    """Dispatch mode for a trace on the meta device.

    Every factory call is moved to the meta device, every real tensor that slips in becomes a constant
    (``solar::constant``, contents in :attr:`constants` by key), and known contents are carried along.
    """

    def __init__(self, constants: list[torch.Tensor] | None = None, draws: Draws | None = None) -> None:
        super().__init__()
        self._random = draws
        self.constants: list[torch.Tensor] = [] if constants is None else constants
        self.written: set[int] = set()
        """Storages that calls wrote since whoever watches last cleared this."""
        # By place. The meta tensors are held, so that no storage's identity is used twice while this lives.
        self._twins: dict[_Place, tuple[torch.Tensor, torch.Tensor, bool]] = {}
        self._by_storage: dict[int, list[_Place]] = {}

    def learn(self, tensor: torch.Tensor, contents: torch.Tensor, *, declared: bool = True) -> None:
        """From now on ``tensor`` (meta) is known to hold ``contents`` (real, same shape and dtype).

        ``declared``: the contents come from an input or a literal, not from factory calls alone.
        """
        if tensor.shape != contents.shape or tensor.dtype != contents.dtype:
            raise ExtractionError(
                f"known contents are {contents.dtype} {list(contents.shape)}, "
                f"the tensor is {tensor.dtype} {list(tensor.shape)}"
            )
        place = _place(tensor)
        self._twins[place] = (tensor, contents, declared)
        self._by_storage.setdefault(place[0], []).append(place)

    def contents(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """What a tensor is known to hold, or None."""
        if tensor.device != _META:
            return tensor
        entry = self._twins.get(_place(tensor))
        return None if entry is None else entry[1]

    def declared(self, tensor: torch.Tensor) -> bool:
        """Whether the known contents of a tensor come from an input or a literal."""
        entry = self._twins.get(_place(tensor))
        return entry is not None and entry[2]

    def constant(self, real: torch.Tensor) -> torch.Tensor:
        """A meta tensor that stands for ``real``."""
        with _disable_current_modes():
            contents = real.detach().clone()
        self.constants.append(contents)
        result = torch.ops.solar.constant(len(self.constants) - 1, list(real.shape), real.dtype)
        self.learn(result, contents)
        return result

    def _forget(self, tensor: torch.Tensor) -> None:
        for key in self._by_storage.pop(storage_key(tensor), ()):
            self._twins.pop(key, None)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        arguments = dict(kwargs or {})
        if arguments.get("device") is not None:
            arguments["device"] = _META
        flat, spec = tree_flatten((args, arguments))
        with self:
            flat = [
                self.constant(leaf) if isinstance(leaf, torch.Tensor) and leaf.device != _META else leaf
                for leaf in flat
            ]
        args, arguments = tree_unflatten(flat, spec)
        name = func._schema.name.partition("::")[2]
        if torch.Tag.nondeterministic_seeded in func.tags and not _certain(name, args, arguments):
            if self._random is None:
                raise ExtractionError(f"aten.{name}: draws random numbers, which this path cannot record")
            with self:
                return self._random.drawn(func, name, args, arguments)
        if name in _INDEXING:
            args = self._plain_indices(name, args)
            flat = tree_flatten((args, arguments))[0]
        elif name == "masked_select" and (selected := self._selected(*args)) is not None:
            return selected
        elif torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags:
            return self._resolve(func, name, args, arguments)
        result = func(*args, **arguments)
        self.written.update(storage_key(leaf) for leaf in written(func, args, arguments))
        self._carry(func, name, args, arguments, flat, result)
        return result

    def _selected(self, value: torch.Tensor, mask: torch.Tensor) -> torch.Tensor | None:
        """``masked_select`` through a known mask: a gather from places that are known."""
        known = self.contents(mask)
        if known is None:
            return None
        shape = torch.broadcast_shapes(value.shape, mask.shape)
        with _disable_current_modes():
            places = torch.nonzero(known.expand(shape).reshape(-1)).reshape(-1)
        with self:
            return value.expand(shape).reshape(-1).index_select(0, self.constant(places))

    def _resolve(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        real = self._evaluate(func, args, kwargs)
        if real is None:
            tensor = next((leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)), None)
            what = (
                "a tensor" if tensor is None else f"a {_dtype_name(tensor.dtype)} tensor of shape {list(tensor.shape)}"
            )
            need = "its shape" if torch.Tag.dynamic_output_shape in func.tags else "a Python value"
            raise ExtractionError(
                f"aten.{name}: needs the contents of {what} for {need}, and they are not known "
                "(only contents computed from inputs with declared values are)"
            )
        with self:
            return tree_map(lambda leaf: self.constant(leaf) if isinstance(leaf, torch.Tensor) else leaf, real)

    def _plain_indices(self, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Replace known boolean masks among the indices by the positions where they hold."""
        plain: list[Any] = []
        for index in args[1]:
            if index is None or index.dtype not in (torch.bool, torch.uint8):
                plain.append(index)
                continue
            mask = self.contents(index)
            if mask is not None:
                with _disable_current_modes():
                    positions = torch.nonzero(mask).unbind(1)
                with self:
                    plain.extend(self.constant(position) for position in positions)
            elif name.endswith("index"):
                raise ExtractionError(
                    f"aten.{name}: a boolean mask of shape {list(index.shape)} decides the result's shape, and its "
                    "contents are not known"
                )
            else:
                plain.append(index)
        return (args[0], plain, *args[2:])

    def _carry(
        self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[Any], result: Any
    ) -> None:
        results = [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor)]
        real = None
        if all(leaf.numel() <= LARGEST_TWIN for leaf in results) and (
            name.rstrip("_") in _EXACT_ON_FLOATS or not any(leaf.is_floating_point() for leaf in results)
        ):
            real = self._evaluate(func, args, kwargs)
        if real is None:
            for leaf in written(func, args, kwargs):
                self._forget(leaf)
            return
        declared = func is torch.ops.solar.constant.default or any(
            self.declared(leaf) for leaf in flat if isinstance(leaf, torch.Tensor)
        )
        twins = [leaf for leaf in tree_flatten(real)[0] if isinstance(leaf, torch.Tensor)]
        for leaf, contents in zip(results, twins, strict=True):
            if _place(leaf) not in self._twins:
                self.learn(leaf, contents, declared=declared)

    def _evaluate(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        flat, spec = tree_flatten((args, kwargs))
        for position, leaf in enumerate(flat):
            if isinstance(leaf, torch.Tensor):
                contents = self.contents(leaf)
                if contents is None:
                    return None
                flat[position] = contents
            elif leaf == _META:
                flat[position] = _CPU
        if func is torch.ops.solar.constant.default:
            return self.constants[args[0]]
        if func is torch.ops.solar.random.default:
            return None
        real_args, real_kwargs = tree_unflatten(flat, spec)
        with _disable_current_modes():
            return _uninitialised_as_zero(func)(*real_args, **real_kwargs)


class Literals(TorchFunctionMode):
    """Python numbers into tensors and back: ``torch.tensor([...])`` keeps its values, ``tolist`` finds known ones."""

    def __init__(self, known: KnownValues) -> None:
        super().__init__()
        self._known = known

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        arguments = dict(kwargs or {})
        if func in _TO_PYTHON:
            contents = self._known.contents(args[0])
            if contents is None:
                raise ExtractionError(
                    f"Tensor.{func.__name__}: needs the contents of a {_dtype_name(args[0].dtype)} tensor of shape "
                    f"{list(args[0].shape)}, and they are not known"
                )
            with _disable_current_modes():
                return contents.tolist() if func is torch.Tensor.tolist else contents.clone().numpy()
        if func in FROM_PYTHON and not isinstance(args[0] if args else arguments.get("data"), torch.Tensor):
            gradient = arguments.pop("requires_grad", False)
            if func is not torch.from_numpy:
                arguments["device"] = _CPU
            result = self._literal(func, args, arguments)
            return result.requires_grad_() if gradient else result
        if func is torch.Tensor.new_tensor and not isinstance(args[1], torch.Tensor):
            arguments.setdefault("dtype", args[0].dtype)
            return self._literal(torch.tensor, args[1:], {**arguments, "device": _CPU})
        if func in _INDEXED:
            args = (args[0], self._positions(args[1]), *args[2:])
        if func in FUNCTIONS:
            with self:
                return FUNCTIONS[func](*args, **arguments)
        return func(*args, **arguments)

    def _positions(self, index: Any) -> Any:
        """An index, its lists of numbers as tensors: PyTorch would make them on the meta device, without contents."""
        if isinstance(index, tuple):
            return tuple(self._positions(item) for item in index)
        if isinstance(index, list) and all(isinstance(item, (int, bool)) for item in tree_flatten(index)[0]):
            return self._literal(torch.tensor, (index,), {"device": _CPU, "dtype": None if index else torch.int64})
        return index

    def _literal(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
        args, kwargs = tree_map(self._python, (args, kwargs))
        with _disable_current_modes():
            real = func(*args, **kwargs)
        return self._known.constant(real)

    def _python(self, leaf: Any) -> Any:
        """A tensor inside a literal is there for its number."""
        if not isinstance(leaf, torch.Tensor):
            return leaf
        contents = self._known.contents(leaf)
        if contents is None:
            raise ExtractionError(f"a literal holds a {_dtype_name(leaf.dtype)} tensor whose contents are not known")
        with _disable_current_modes():
            return contents.item()


# Operators that move running statistics on although their schemas do not say so.
_SILENT_WRITES = {
    f"aten::{name}": ("running_mean", "running_var") for name in ("native_batch_norm", "cudnn_batch_norm")
}
_INDEXING = frozenset(("index", "index_put", "index_put_", "_unsafe_index", "_unsafe_index_put"))
FROM_PYTHON = (torch.tensor, torch.as_tensor, torch.asarray, torch.from_numpy)
_INDEXED = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)
_TO_PYTHON = (torch.Tensor.tolist, torch.Tensor.numpy)


_Place = tuple[int, int, torch.Size, tuple[int, ...], torch.dtype]


def storage_key(tensor: torch.Tensor) -> int:
    """Identity of a storage while it lives; views of one tensor share it."""
    with torch._C.DisableTorchFunction():
        return int(tensor.untyped_storage()._cdata)


def _place(tensor: torch.Tensor) -> _Place:
    """What a tensor's contents depend on: two tensors of one place hold the same, whatever wraps them."""
    with torch._C.DisableTorchFunction():
        return storage_key(tensor), tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


def written(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """Tensors whose contents a call writes in place, by its schema. (``squeeze_`` and its like change no contents.)"""
    if torch.Tag.inplace_view in func.tags:
        return []
    found: list[torch.Tensor] = []
    values = {
        argument.name: args[position] if position < len(args) else kwargs.get(argument.name)
        for position, argument in enumerate(func._schema.arguments)
    }
    silent = _SILENT_WRITES.get(func._schema.name, ()) if values.get("training") else ()
    for argument in func._schema.arguments:
        if argument.name in silent or (argument.alias_info is not None and argument.alias_info.is_write):
            leaves = tree_flatten(values[argument.name])[0]
            found.extend(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))
    return found


def _certain(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Ops that can draw random numbers, called so that they do not."""
    if name in ("native_dropout", "dropout", "alpha_dropout", "feature_dropout"):
        probability = args[1] if len(args) > 1 else kwargs.get("p")
        training = args[2] if len(args) > 2 else kwargs.get("train")
        return probability == 0 or training is False
    if name in ("rrelu", "rrelu_with_noise"):
        return (args[-1] if isinstance(args[-1], bool) else False) is False
    return False


def _uninitialised_as_zero(func: Any) -> Callable[..., Any]:
    aten = torch.ops.aten
    replaced: dict[Any, Callable[..., Any]] = {
        aten.empty.memory_format: aten.zeros.default,
        aten.empty_like.default: aten.zeros_like.default,
        aten.new_empty.default: aten.new_zeros.default,
    }
    return replaced.get(func, func)


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
