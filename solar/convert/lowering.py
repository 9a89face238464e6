"""The conversion itself: each node by the rule of its name, effects by :mod:`solar.convert.memory`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from solar.convert import (
    activations,
    adaptive,
    contraction,
    convolution,
    copies,
    creation,
    distances,
    elementwise,
    indexing,
    linalg,
    normalisation,
    pooling,
    quantised,
    reduction,
    resampling,
    sorting,
    views,
)
from solar.convert.build import Build, Value
from solar.convert.memory import Memory
from solar.convert.public import expanded
from solar.einsum import Op, Program, Tensor, validate
from solar.errors import ConversionError
from solar.graph import Node, OperatorGraph
from solar.graph import validate as validate_graph

Rule = Callable[[Build, Node], Sequence[Value | None]]
FAMILIES = (
    elementwise,
    activations,
    reduction,
    normalisation,
    contraction,
    distances,
    quantised,
    convolution,
    pooling,
    adaptive,
    resampling,
    views,
    copies,
    creation,
    indexing,
    linalg,
    sorting,
)


@cache
def rules() -> dict[str, Rule]:
    """Every rule by the operator's name without its namespace and overload."""
    found: dict[str, Rule] = {}
    for family in FAMILIES:
        for name, rule in family.RULES.items():
            if name in found:
                raise ConversionError(f"{name}: two families have a rule for it")
            found[name] = rule
    return found


def convert(graph: OperatorGraph) -> Program:
    """The extended-einsum program of an operator graph; one of public functions needs PyTorch to be taken apart.

    Raises :class:`ConversionError` naming the operator that has no rule, or whose arguments are outside of it.
    """
    validate_graph(graph)
    if graph.path == "torchview":
        graph = expanded(graph)
    build = Build(graph)
    memory = Memory(build)
    for _, name in graph.inputs:
        tensor = graph.tensors[name]
        build.tensors[name] = Tensor(tensor.shape, tensor.dtype)
        memory.define(name, name)
    values = {name: graph.tensors[name].values for _, name in graph.inputs if graph.tensors[name].values is not None}
    changing = {graph.tensors[name].storage for node in graph.nodes for name in node.mutates}
    for node in graph.nodes:
        build.enter(node)
        for name in (*node.reads(), *node.mutates):
            memory.refresh(name)
            tensor = graph.tensors[name]
            if tensor.values is not None and tensor.storage not in changing:
                values.setdefault(build.values[name], tensor.values)
        # Where a rule leaves out a result that no output needs, what would read it is needed by none either.
        if all(name in build.values for name in node.reads()) or build.wanted(0):
            _convert_node(build, memory, node)
    values.update(build.known)
    build.enter(Node("return", "return", {}, ()))
    outputs, aliases = _results(build, memory)
    ops = _without_idle(build, [name for _, name in outputs])
    used = {name for op in ops for name in (*op.operands, *op.outputs)} | {
        name for _, name in (*graph.inputs, *outputs)
    }
    return validate(
        Program(
            path=graph.path,
            tensors={name: tensor for name, tensor in build.tensors.items() if name in used},
            inputs=graph.inputs,
            outputs=tuple(outputs),
            ops=tuple(ops),
            values={name: value for name, value in values.items() if name in used and value is not None},
            aliases=aliases,
        )
    )


def _convert_node(build: Build, memory: Memory, node: Node) -> None:
    _, _, rest = node.op.partition(".")
    name = rest.partition(".")[0]
    if name not in rules():
        name = name.removesuffix("_")
    rule = rules().get(name)
    if rule is None:
        raise ConversionError(f"{node.op} ({node.name}): no rule for this operator")
    # A rule gives one value a result and one a tensor written in place; results that nobody reads may be left out at
    # the end, or be None.
    results = rule(build, node)
    targets = [*((target, False) for target in node.outputs), *((target, True) for target in node.mutates)]
    for (target, written), value in zip(targets, results):
        if target is None or value is None:
            continue
        declared = build.graph.tensors[target]
        if build.shape(value) != declared.shape or build.dtype(value) != declared.dtype:
            raise build.fail(
                f"its rule gives {build.dtype(value)} {list(build.shape(value))}, "
                f"PyTorch {declared.dtype} {list(declared.shape)}"
            )
        if written:
            memory.write(target, value)
        else:
            memory.define(target, value)


def _results(build: Build, memory: Memory) -> tuple[list[tuple[str, Value]], dict[str, str]]:
    """Outputs in order, then each input that was written and is not among them; and which outputs are inputs."""
    graph = build.graph
    written = {graph.tensors[name].storage: declared for declared, name in graph.inputs if memory.written(name)}
    outputs: list[tuple[str, Value]] = []
    aliases: dict[str, str] = {}
    for declared, name in graph.outputs:
        memory.refresh(name)
        outputs.append((declared, build.values[name]))
        source = written.get(graph.tensors[name].storage)
        if source is not None and memory.whole(name):
            aliases[declared] = source
    for declared, name in graph.inputs:
        if declared in written.values() and declared not in aliases.values():
            memory.refresh(name)
            outputs.append((declared, build.values[name]))
            aliases[declared] = declared
    return outputs, aliases


def _without_idle(build: Build, outputs: list[Value]) -> list[Op]:
    """Drop what only served the conversion: constants and views that nothing reads. Draws stay: they move a stream."""
    needed = set(outputs)
    kept: list[Op] = []
    for op in reversed(build.ops):
        if op.kind in ("create", "view") and op.function != "random" and not needed.intersection(op.outputs):
            continue
        needed.update(op.operands)
        kept.append(op)
    return kept[::-1]
