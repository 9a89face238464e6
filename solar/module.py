"""A plain Python file as what stage 1 takes: a function, and its inputs without their memory.

Two forms: ``class Model(nn.Module)`` (KernelBench), built as ``Model(*get_init_inputs())`` and called with
``get_inputs()``; or a function ``run``, called with ``get_inputs()`` (a list, or a dict of keyword arguments). Every
tensor that the file makes is an input: the arguments by the callee's names, then parameters, buffers, and tensors held
in attributes or globals by theirs. The file may set ``IN_PLACE``, names of inputs that the call may write, and
``AS_DRAWN``, names of those that make no sense as zeros (scales, probabilities).

The file runs on the meta device, factory calls with ``device="cpu"`` included, so nothing of the workload's size is
allocated. Integers and booleans up to :data:`~solar.extract.record.LARGEST_VALUES` elements keep real contents, for
they may decide the work; larger ones do not, and are priced at the least over whatever they may hold
(:mod:`solar.seeding`).
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from solar.errors import ExtractionError, ModuleError, SolarError
from solar.extract.inputs import dtype_name
from solar.extract.known import Literals, storage_key
from solar.extract.record import LARGEST_VALUES
from solar.graph import Input, Scalar
from solar.seeding import Devices, DrawnOnMeta, SeededDraws, seed_everything

SEED = 0
_MODULE_NAME = "solar_analysed_module"
_DIFFERENTIATING = frozenset(("backward", "autograd", "grad"))


@dataclass(frozen=True)
class Module:
    """A loaded file.

    ``run``: called positionally in the order of ``inputs``. ``held``: what the file made, by input name: meta tensors,
    or real ones, and scalars. ``in_place``: inputs that ``run`` may write. ``structures``: inputs that are a mask by
    construction (:data:`solar.einsum.STRUCTURES`). ``notes``: what the analysis takes for granted about them.
    """

    name: str
    run: Callable[..., Any]
    inputs: Mapping[str, Input]
    held: Mapping[str, torch.Tensor | Scalar]
    in_place: tuple[str, ...]
    as_drawn: tuple[str, ...]
    structures: Mapping[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Place:
    """Where a tensor is held: ``store[key]``."""

    name: str
    store: Any
    key: Any
    state: bool = False


def load(path: Path, *, seed: int = SEED, real: bool = False, sizes: Mapping[str, int] | None = None) -> Module:
    """Load a file; on the meta device, or with ``real`` tensors on the CPU.

    ``sizes`` replaces whole numbers that the file assigns to names at its top level (:func:`constants`). Raises
    :class:`ModuleError` for a file that cannot be read or run, or that has neither form.
    """
    source = _source(path)
    drawn: SeededDraws | DrawnOnMeta = SeededDraws(seed) if real else DrawnOnMeta(seed)
    device = "cpu" if real else "meta"
    with ExitStack() as modes:
        modes.enter_context(torch.random.fork_rng(devices=[]))
        seed_everything(seed)
        if isinstance(drawn, DrawnOnMeta):
            modes.enter_context(torch.device(device))
            modes.enter_context(Literals(drawn))
        modes.enter_context(Devices(device))
        modes.enter_context(drawn)
        namespace = _executed(path, source, sizes or {})
        called, model, arguments = _form(path, namespace)
    return _Loaded(path, namespace.__dict__, called, model, arguments, drawn.contents, device, source).module()


def constants(path: Path) -> dict[str, int]:
    """Whole numbers above 1 that a file assigns to names at its top level: usually its sizes."""
    return {name: size for _, names, size in _assigned(_source(path)) for name in names if size > 1}


def _assigned(source: ast.Module) -> Iterator[tuple[ast.Assign, list[str], int]]:
    """Statements at the top level that set names to one whole number."""
    for statement in source.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
            if type(statement.value.value) is int and len(names) == len(statement.targets):
                yield statement, names, statement.value.value


def _source(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise ModuleError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{path}: line {line}" if line else f"{path}"
        raise ModuleError(f"{where}: not Python: {getattr(error, 'msg', None) or error}") from None


def _differentiates(source: ast.Module) -> bool:
    """Whether a file takes gradients itself; only then do parameters ask for them, as they change what is called."""
    return any(isinstance(node, ast.Attribute) and node.attr in _DIFFERENTIATING for node in ast.walk(source))


def _executed(path: Path, source: ast.Module, sizes: Mapping[str, int]) -> ModuleType:
    for statement, names, size in _assigned(source):
        statement.value = ast.copy_location(ast.Constant(sizes.get(names[0], size)), statement.value)
    namespace = ModuleType(_MODULE_NAME)
    namespace.__file__ = str(path)
    sys.modules[_MODULE_NAME] = namespace  # where dataclasses and annotations look names up
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        with _foreign(f"{path}: at its top level"):
            exec(compile(source, str(path), "exec"), namespace.__dict__)  # noqa: S102
    finally:
        sys.path.remove(folder)
    return namespace


@contextmanager
def _foreign(where: str) -> Iterator[None]:
    """Someone else's code runs here: whatever it raises is an answer, on one line."""
    try:
        yield
    except SolarError as error:
        raise ModuleError(f"{where}: {error}") from None
    except SystemExit as error:
        raise ModuleError(f"{where}: calls sys.exit({error.code!r})") from None
    except Exception as error:  # noqa: BLE001 (see above)
        lines = str(error).strip().splitlines()
        raise ModuleError(f"{where}: {type(error).__name__}{': ' + lines[0][:300] if lines else ''}") from None


def _form(path: Path, namespace: ModuleType) -> tuple[Callable[..., Any], torch.nn.Module | None, Any]:
    """What to call, the model behind it if there is one, and the arguments."""
    defined = namespace.__dict__
    model_class, run, get_inputs = (defined.get(name) for name in ("Model", "run", "get_inputs"))
    if model_class is not None and run is not None:
        raise ModuleError(f"{path}: defines both Model and run; keep the one to analyse")
    if model_class is None and run is None:
        raise ModuleError(f"{path}: defines neither class Model nor a function run")
    if not callable(get_inputs):
        raise ModuleError(f"{path}: defines no function get_inputs, which returns the arguments")
    model = None
    if model_class is not None:
        get_init_inputs = defined.get("get_init_inputs", lambda: ())
        with _foreign(f"{path}: get_init_inputs"):
            given = list(get_init_inputs())
        with _foreign(f"{path}: Model({', '.join(type(item).__name__ for item in given)})"):
            model = model_class(*given)
        if not isinstance(model, torch.nn.Module):
            raise ModuleError(f"{path}: Model is not a torch.nn.Module")
    called = model if model is not None else run
    if not callable(called):
        raise ModuleError(f"{path}: run is not a function")
    with _foreign(f"{path}: get_inputs"):
        arguments = get_inputs()
    if not isinstance(arguments, (list, tuple, Mapping)):
        raise ModuleError(f"{path}: get_inputs returns a {type(arguments).__name__}, not a list of arguments")
    return called, model, arguments


class _Loaded:
    """A file that has run: what it made becomes inputs, and its call a function of them."""

    def __init__(
        self, path: Path, namespace: dict[str, Any], called: Callable[..., Any], model: torch.nn.Module | None,
        arguments: Any, contents: Callable[[torch.Tensor], torch.Tensor | None], device: str, source: ast.Module,
    ) -> None:  # fmt: skip
        self._path, self._called, self._contents, self._device = path, called, contents, device
        self._differentiates = _differentiates(source)
        self._leaves, self._spec = tree_flatten(
            ((), dict(arguments)) if isinstance(arguments, Mapping) else (tuple(arguments), {})
        )
        self._held: dict[str, torch.Tensor | Scalar] = {}
        self._names: dict[int, str] = {}
        # Where every input goes: argument leaves by position, and places that hold a tensor.
        self._positions: list[tuple[str, int]] = []
        self._places: list[tuple[str, _Place]] = []
        for position, (name, leaf) in enumerate(zip(self._argument_names(model), self._leaves, strict=True)):
            if isinstance(leaf, torch.Tensor) or type(leaf) in (bool, int, float):
                self._positions.append((self._hold(name, leaf), position))
        for place in _places(model, namespace):
            self._places.append((self._hold(place.name, place.store[place.key]), place))
        self._in_place, self._as_drawn = (
            self._listed(option, namespace.get(option, ())) for option in ("IN_PLACE", "AS_DRAWN")
        )
        # Statistics that training moves on are no result, unless the file says so: a copy of them changes instead.
        self._moving = {name for name, place in self._places if place.state}.difference(self._in_place)

    def module(self) -> Module:
        self._check_storages()
        inputs = {name: self._input(name, value) for name, value in self._held.items()}
        return Module(
            self._path.name,
            self._run,
            inputs,
            self._held,
            self._in_place,
            self._as_drawn,
            {name: "lower_triangular" for name in inputs if self._is_lower_triangular(name)},
            self._notes(inputs),
        )

    def _argument_names(self, model: torch.nn.Module | None) -> list[str]:
        """One a leaf: the callee's parameter, with the place inside it where an argument is nested."""
        positional, keywords = tree_unflatten(list(range(len(self._leaves))), self._spec)
        try:
            parameters = list(
                inspect.signature(model.forward if model is not None else self._called).parameters.values()
            )
        except (TypeError, ValueError):
            parameters = []
        plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        names: dict[int, str] = {}

        def walk(value: Any, name: str) -> None:
            if isinstance(value, Mapping):
                for key, item in value.items():
                    walk(item, f"{name}.{key}")
            elif isinstance(value, (list, tuple)):
                for number, item in enumerate(value):
                    walk(item, f"{name}.{number}")
            else:
                names[value] = name

        for number, value in enumerate(positional):
            walk(value, plain[number] if number < len(plain) else f"input.{number}")
        for key, value in keywords.items():
            walk(value, str(key))
        return [names.get(position, f"input.{position}") for position in range(len(self._leaves))]

    def _hold(self, name: str, value: torch.Tensor | Scalar) -> str:
        """The input that ``value`` is: one that is held in two places is one input."""
        if isinstance(value, torch.Tensor) and id(value) in self._names:
            return self._names[id(value)]
        while name in self._held:
            name = f"self.{name}"
        self._held[name] = value
        if isinstance(value, torch.Tensor):
            self._names[id(value)] = name
        return name

    def _run(self, *values: Any) -> Any:
        given = dict(zip(self._held, values, strict=True))
        leaves = list(self._leaves)
        for name, position in self._positions:
            leaves[position] = given[name]
        arguments, keywords = tree_unflatten(leaves, self._spec)
        before = [(place, place.store[place.key]) for _, place in self._places]
        try:
            for name, place in self._places:
                value = given[name]
                place.store[place.key] = self._moved(value) if name in self._moving else value
                if self._differentiates and isinstance(self._held[name], torch.nn.Parameter):
                    value.requires_grad_(self._held[name].requires_grad)  # type: ignore[union-attr]
            with Devices(self._device):
                return self._called(*arguments, **keywords)
        except SystemExit as error:
            raise ExtractionError(f"the call ends in sys.exit({error.code!r})") from None
        finally:
            for place, value in before:
                place.store[place.key] = value

    @staticmethod
    def _moved(value: Any) -> Any:
        """A copy that may change. No gradient flows through statistics, and PyTorch refuses those that ask for one."""
        if value.requires_grad:
            with torch._C.DisableTorchFunction():  # not a cut of the module's own (solar.gradients)
                value = value.detach()
        return value.clone()

    def _input(self, name: str, value: torch.Tensor | Scalar) -> Input:
        if not isinstance(value, torch.Tensor):
            kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float64"
            return Input(None, kind, value=value)
        contents = self._contents(value)
        discrete = not (value.dtype.is_floating_point or value.is_complex() or name in self._moving)
        keeps = discrete and contents is not None and value.numel() <= LARGEST_VALUES
        known = tuple(contents.flatten().tolist()) if keeps and contents is not None else None
        return Input(tuple(value.shape), dtype_name(value.dtype), values=known)

    def _is_lower_triangular(self, name: str) -> bool:
        """A mask that the file made from nothing but ones: it is the same in every draw."""
        value = self._held[name]
        if not isinstance(value, torch.Tensor) or isinstance(value, torch.nn.Parameter) or value.dim() < 2:
            return False
        if not any(held == name for held, _ in self._places):
            return False
        contents = self._contents(value)
        if contents is None or value.is_complex() or contents.shape[-1] < 2:
            return False
        return bool((contents == torch.ones_like(contents).tril()).all())

    def _listed(self, option: str, names: Any) -> tuple[str, ...]:
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise ModuleError(f"{self._path}: {option}: not a tuple of names of inputs")
        for name in names:
            if not isinstance(self._held.get(name), torch.Tensor):
                raise ModuleError(f"{self._path}: {option}: {name!r} is no tensor; there are {', '.join(self._held)}")
        return tuple(names)

    def _check_storages(self) -> None:
        """Bytes are counted by input: two that share memory, or one that repeats its own, would count twice."""
        owners: dict[int, str] = {}
        for name, value in self._held.items():
            if not isinstance(value, torch.Tensor) or not value.numel():
                continue
            if value.layout != torch.strided or value.is_quantized:
                raise ModuleError(
                    f"{self._path}: {name}: a {value.layout} tensor; only plain strided ones are analysed"
                )
            if value.untyped_storage().nbytes() < value.numel() * value.element_size():
                raise ModuleError(
                    f"{self._path}: {name}: repeats its elements; pass the small tensor, and expand it in the call"
                )
            other = owners.setdefault(storage_key(value), name)
            if other != name:
                raise ModuleError(
                    f"{self._path}: {other} and {name} share memory; pass one of them, and make the view in the call"
                )

    def _notes(self, inputs: Mapping[str, Input]) -> tuple[str, ...]:
        notes = []
        for name, given in inputs.items():
            if given.values is not None:
                notes.append(f"{name}: the bound holds for the contents that the file gives it (seed {SEED})")
            elif (
                given.shape is not None
                and name not in self._moving
                and not given.dtype.startswith(("float", "bfloat", "complex"))
            ):
                notes.append(f"{name}: contents unknown; priced at the least over all that it may hold")
        if self._moving:
            notes.append("running statistics that the call moves on are not counted as results")
        return tuple(notes)


def _places(model: torch.nn.Module | None, namespace: dict[str, Any]) -> Iterator[_Place]:
    """Every place that holds a tensor: in a module, then in a global; lists and dicts inside are entered."""
    seen: set[int] = set()
    for dot, part in _parts(model, namespace):
        moved = part.training and getattr(part, "track_running_stats", False)
        for store in (part._parameters, part._buffers):
            for key, value in store.items():
                if value is not None:
                    yield _Place(f"{dot}{key}", store, key, bool(moved) and store is part._buffers)
        for key, value in part.__dict__.items():
            if key not in ("_parameters", "_buffers", "_modules"):
                yield from _inside(f"{dot}{key}", part.__dict__, key, value, seen)
    for key, value in namespace.items():
        if not key.startswith("__"):
            yield from _inside(key, namespace, key, value, seen)


def _parts(model: torch.nn.Module | None, namespace: dict[str, Any]) -> Iterator[tuple[str, torch.nn.Module]]:
    """The model and modules among the globals, with all inside, and what their names begin with."""
    tops = {"": model, **{f"{key}.": value for key, value in namespace.items()}}
    for top, module in tops.items():
        if isinstance(module, torch.nn.Module):
            for name, part in module.named_modules():
                yield f"{top}{name}." if name else top, part


def _inside(name: str, store: Any, key: Any, value: Any, seen: set[int]) -> Iterator[_Place]:
    if isinstance(value, torch.Tensor):
        yield _Place(name, store, key)
    elif isinstance(value, (list, MutableMapping)) and id(value) not in seen:
        seen.add(id(value))
        for part, item in list(enumerate(value) if isinstance(value, list) else value.items()):
            yield from _inside(f"{name}.{part}", value, part, item, seen)
