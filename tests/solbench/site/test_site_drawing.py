"""The drawing of an operator graph, its table and the printed IR: properties that follow from what they are for."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import html_check
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from solar import einsum
from solar.errors import GraphError
from solar.graph import Node, OperatorGraph, Ref, Tensor, to_dict, validate
from solbench.site import calls, drawing, folding, ir, layering
from solbench.site.build import environment

ROOT = Path(__file__).resolve().parents[3]
PAGE = '{% import "drawing.html" as d %}{{ d.svg(drawn) }}{{ d.operations(table, "operations") }}'
NUMBER = re.compile(r"-?\d+\.\d")


def tensor(storage: int, shape: tuple[int, ...] = (4, 8), dtype: str = "float32") -> Tensor:
    strides = tuple(range(len(shape), 0, -1))
    return Tensor(shape, dtype, strides, storage)


def node(name: str, op: str, *reads: str, mutates: tuple[str, ...] = (), outputs: int = 1, **constants: Any) -> Node:
    """Results are named like the node, or ``name.0`` and on; each tensor read is an argument of its own."""
    arguments = {f"a{place}": Ref(read) for place, read in enumerate(reads)} | constants
    results = (name,) if outputs == 1 else tuple(f"{name}.{slot}" for slot in range(outputs))
    return Node(name, op, arguments, results, mutates)


def graph_of(
    nodes: list[Node], inputs: tuple[str, ...], outputs: tuple[str, ...], shared: dict[str, str] | None = None
) -> OperatorGraph:
    """Every tensor has storage of its own, but for ``shared``: name -> whose storage it lies in."""
    names = [f"in.{name}" for name in inputs] + [name for one in nodes for name in one.outputs if name is not None]
    storages = {name: place for place, name in enumerate(names)}
    for name, owner in (shared or {}).items():
        storages[name] = storages[owner]
    return validate(
        OperatorGraph(
            "aten",
            {name: tensor(storages[name]) for name in names},
            tuple((name, f"in.{name}") for name in inputs),
            tuple((f"out{place}", name) for place, name in enumerate(outputs)),
            tuple(nodes),
            in_place=inputs,
        )
    )


def loop(repeats: int) -> OperatorGraph:
    """A recurrent cell of six operations, unrolled, after an unbind and before a stack of every state."""
    nodes = [node("unbind", "aten.unbind.int", "in.x", outputs=repeats)]
    state = "in.h"
    for step in range(repeats):
        nodes += [
            node(f"mm_{step}", "aten.mm.default", f"unbind.{step}", "in.w"),
            node(f"rm_{step}", "aten.mm.default", state, "in.r"),
            node(f"add_{step}", "aten.add.Tensor", f"mm_{step}", f"rm_{step}", alpha=1),
            node(f"gate_{step}", "aten.sigmoid.default", f"add_{step}"),
            node(f"tanh_{step}", "aten.tanh.default", f"add_{step}"),
            node(f"mul_{step}", "aten.mul.Tensor", f"gate_{step}", f"tanh_{step}"),
        ]
        state = f"mul_{step}"
    nodes.append(node("stack", "aten.stack.default", *(f"mul_{step}" for step in range(repeats))))
    return graph_of(nodes, ("x", "h", "w", "r"), ("stack", state))


@st.composite
def graphs(draw: st.DrawFn) -> OperatorGraph:
    inputs = tuple(f"i{place}" for place in range(draw(st.integers(1, 4))))
    known, shared, nodes = [f"in.{name}" for name in inputs], {}, []
    for place in range(draw(st.integers(0, 60))):
        reads = draw(st.lists(st.sampled_from(known), max_size=4))
        op = draw(st.sampled_from(("mm", "add", "a_rather_long_name_of_an_operator")))
        made = node(f"n{place}", f"aten.{op}.default", *reads, outputs=draw(st.sampled_from((1, 1, 1, 2, 5))))
        kind = draw(st.sampled_from(("new", "new", "view", "write"))) if reads else "new"
        if kind == "write":
            made = Node(made.name, made.op, made.arguments, made.outputs, (reads[0],))
        if kind != "new":
            shared |= {name: shared.get(reads[0], reads[0]) for name in made.outputs if name is not None}
        nodes.append(made)
        known += [name for name in made.outputs if name is not None]
    return graph_of(nodes, inputs, tuple(draw(st.lists(st.sampled_from(known), max_size=3))), shared)


def numbers(box: drawing.Box) -> tuple[float, float, float, float]:
    """Left, top, right, bottom; with the second outline of a repeated operation."""
    left, top = float(box.x), float(box.y)
    right, bottom = left + float(box.width), top + float(box.height)
    if box.behind is not None:
        right, bottom = right + float(box.behind[0]) - left, bottom + float(box.behind[1]) - top
    return left, top, right, bottom


def points(path: str) -> list[tuple[float, float]]:
    """The points of a path of M, V and C: every one that it goes through or is drawn to."""
    found: list[tuple[float, float]] = []
    for letter, rest in re.findall(r"([MVC])([^MVC]*)", path):
        values = [float(value) for value in NUMBER.findall(rest)]
        found += [(found[-1][0], values[0])] if letter == "V" else list(zip(values[::2], values[1::2], strict=True))
    return found


def page(graph: OperatorGraph) -> str:
    template = environment(ROOT / "site_templates").from_string(PAGE)
    return template.render(drawn=drawing.draw(graph, "graph", "P/w0"), table=calls.rows(graph))


def check_layout(graph: OperatorGraph) -> drawing.Drawing:
    drawn = drawing.draw(graph, "graph", "w")
    assert drawn.reason == ""
    places = [numbers(box) for box in drawn.boxes]
    pairs = list(folding.fold(graph).links)
    assert len(drawn.wires) == len(pairs)
    for left, top, right, bottom in places:
        assert 0 < left < right < float(drawn.width) and 0 < top < bottom < float(drawn.height)
    for one, other in combinations(places, 2):
        apart = one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
        assert apart, f"{one} and {other} overlap"
    for wire, (source, target) in zip(drawn.wires, pairs, strict=True):
        through = points(wire.path)
        heights = [y for _, y in through]
        assert heights == sorted(heights) and heights[0] < heights[-1], "an edge goes up"
        assert abs(heights[0] - places[source][3]) < 0.11 and abs(heights[-1] - places[target][1]) < 0.11
        assert places[source][0] < through[0][0] < places[source][2]
        assert places[target][0] < through[-1][0] < places[target][2]
        for (x, y), (again, lower) in pairwise(through):
            for number, (left, top, right, bottom) in enumerate(places):
                if x == again and number not in (source, target) and y < bottom and top < lower:
                    assert not left < x < right, "an edge passes through a box"
    return drawn


@settings(max_examples=80, deadline=None)
@given(graphs())
def test_layout_of_any_graph(graph):
    assume("too many" not in drawing.draw(graph, "graph", "w").reason)
    check_layout(graph)


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_every_operation_once(graph):
    folded = folding.fold(graph)
    assert sorted(place for step in folded.steps for place in step.nodes) == list(range(len(graph.nodes)))
    drawn = drawing.draw(graph, "graph", "w")
    assume(drawn.reason == "")
    operations = drawn.boxes[len(graph.inputs) : len(drawn.boxes) - len(graph.outputs)]
    counted = sum(int((re.search(r" × (\d+)$", box.lines[0].words) or [0, 1])[1]) for box in operations)
    assert counted == len(graph.nodes)
    table = calls.rows(graph)
    assert [row.number for row in table.rows] == [str(place) for place in range(1, len(folded.steps) + 1)]
    assert sum(int(row.times.removeprefix("×\u00a0") or 1) for row in table.rows) == len(graph.nodes)


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_edges_are_those_of_the_arguments(graph):
    """By following each argument by hand: whoever made it, if nothing was written in place."""
    if any(node.mutates for node in graph.nodes):
        return
    maker = {name: place for place, (_, name) in enumerate(graph.inputs)}
    expected = []
    for place, one in enumerate(graph.nodes, len(graph.inputs)):
        expected += [(maker[name], place) for name in set(one.reads())]
        maker |= dict.fromkeys(one.outputs, place)
    for place, (_, name) in enumerate(graph.outputs, len(graph.inputs) + len(graph.nodes)):
        expected.append((maker[name], place))
    assert sorted((link.source, link.target) for link in folding.links(graph)) == sorted(expected)


def test_a_write_in_place_lies_between_what_it_wrote_and_who_reads_it():
    nodes = [
        node("buffer", "aten.zeros.default"),
        node("part", "aten.select.int", "buffer"),
        Node("put", "aten.index_put_.default", {"self": Ref("buffer"), "values": Ref("in.x")}, (), ("buffer",)),
        node("sum", "aten.sum.default", "buffer"),
        node("mean", "aten.mean.default", "part"),
    ]
    graph = graph_of(nodes, ("x",), ("sum", "buffer"), {"part": "buffer"})
    x, buffer, part, put, total, mean, first, second = range(8)
    assert {(link.source, link.target) for link in folding.links(graph)} == {
        (buffer, part), (buffer, put), (x, put), (put, total), (put, mean), (part, mean), (total, first), (put, second),
    }  # fmt: skip
    drawn = check_layout(graph)
    assert [box.kind for box in drawn.boxes] == [
        "input",
        *(["operation", "view", "write", "operation", "operation"]),
        *2 * ["output"],
    ]
    assert "writes buffer in place" in [line.words for line in drawn.boxes[put].lines]
    assert ("write", "writes a tensor in place") in drawn.legend
    table = calls.rows(graph)
    assert [row.storage for row in table.rows] == [
        "new", "shared with buffer", "writes buffer in place", "new", "new",
    ]  # fmt: skip


@pytest.mark.parametrize("repeats", [10, 200])
def test_an_unrolled_loop_is_one_body(repeats):
    graph = loop(repeats)
    drawn = check_layout(graph)
    assert len(graph.nodes) == 6 * repeats + 2
    names = [box.lines[0].words for box in drawn.boxes[4:-2]]
    body = [f"aten.{op} × {repeats}" for op in ("mm", "mm", "add", "sigmoid", "tanh", "mul")]
    assert names == ["aten.unbind", *body, "aten.stack"]
    assert "reads 7 of an earlier repeat" in [line.words for line in drawn.boxes[4 + 2].lines]
    assert f"{repeats} repeats of 6 operations drawn once" in drawn.description
    # The one edge from the unbind carries a result for each repeat.
    assert f"0 … {repeats - 1}" in [wire.label for wire in drawn.wires]
    table = calls.rows(graph)
    assert table.rows[1].reads == "a0 = unbind.0 …, a1 = in.w"
    assert table.rows[2].reads == "a0 = in.h …, a1 = in.r, 7 of an earlier repeat"
    assert table.count.endswith("in 8 rows: what repeats shares a row")


def test_a_small_loop_is_drawn_whole():
    graph = loop(6)
    assert len(graph.nodes) <= folding.WHOLE and folding.fold(graph).folds == ()
    assert len(check_layout(graph).boxes) == 4 + 38 + 2


@pytest.mark.parametrize("change", ["wiring", "operator", "dtype", "view", "word"])
def test_unequal_bodies_are_not_folded(change):
    """One operation of the fifth of ten bodies differs from that of the fourth."""
    nodes = list(loop(10).nodes)
    place = 1 + 6 * 4 + 4
    before = nodes[place]
    shared = {}
    if change == "wiring":
        nodes[place] = Node(before.name, before.op, {"a0": Ref("mm_4")}, before.outputs)
    elif change == "operator":
        nodes[place] = Node(before.name, "aten.relu.default", before.arguments, before.outputs)
    elif change == "word":
        nodes[place] = Node(before.name, before.op, {**before.arguments, "mode": "fast"}, before.outputs)
    elif change == "view":
        shared = {before.name: "add_4"}
    graph = graph_of(nodes, ("x", "h", "w", "r"), ("stack",), shared)
    if change == "dtype":
        tensors = {**graph.tensors, before.name: tensor(10**6, dtype="float64")}
        graph = OperatorGraph("aten", tensors, graph.inputs, graph.outputs, graph.nodes)
    steps = folding.fold(graph).steps
    assert not [step for step in steps if {place - 6, place} <= set(step.nodes)]
    # One that reads elsewhere may begin a loop of its own; any other difference leaves it alone.
    assert change == "wiring" or (place,) in [step.nodes for step in steps]
    check_layout(graph)


def test_an_extent_that_differs_is_not_said():
    graph = loop(10)
    tensors = {name: tensor(one.storage, (4, int(name[4:]) + 1)) if name.startswith("add_") else one
               for name, one in graph.tensors.items()}  # fmt: skip
    graph = OperatorGraph("aten", tensors, graph.inputs, graph.outputs, graph.nodes)
    assert calls.rows(graph).rows[3].types == "float32[4, *]"


def test_too_large_says_so():
    nodes = [node(f"n{place}", f"aten.f{place}.default", f"n{place - 1}" if place else "in.x") for place in range(2310)]
    graph = graph_of(nodes, ("x",), ("n2309",))
    drawn = drawing.draw(graph, "graph", "w")
    assert drawn.boxes == () and drawn.reason == (
        "2\u202f310 operations, 2 inputs and outputs and 2\u202f311 edges: too many to draw so that they can be read; "
        "the object lists them all."
    )
    table = calls.rows(graph)
    assert len(table.rows) == calls.MOST_ROWS and table.cut
    assert table.count == "the first 200 of 2\u202f310 operations; the object lists them all"
    shown = page(graph)
    assert "<svg" not in shown and "too many to draw" in shown and table.count in shown


def test_too_entangled_says_so():
    """A path, and from each of its operations an edge to the last: few boxes, and hardly an edge that is short."""
    nodes = [node(f"n{place}", f"aten.f{place}.default", f"n{place - 1}" if place else "in.x") for place in range(60)]
    nodes.append(node("last", "aten.cat.default", *(f"n{place}" for place in range(60))))
    graph = graph_of(nodes, ("x",), ("last",))
    assert layering.passings(63, tuple(folding.fold(graph).links)) == sum(range(60))
    assert "too many to draw" in drawing.draw(graph, "graph", "w").reason


def test_nothing_to_draw():
    empty = OperatorGraph("aten", {}, (), (), ())
    assert "nothing to draw" in drawing.draw(empty, "graph", "w").reason
    lonely = check_layout(graph_of([], ("a", "b"), ()))
    assert [line.words for box in lonely.boxes for line in box.lines].count("not read") == 2


def test_hostile_names_stay_text():
    evil = "</title><script>alert(1)</script>\u202e\x1b[0m'\"&"
    long = "n" * 5000
    arguments = {evil: (Ref(f"in.{evil}"), evil, long), "b": float("inf")}
    nodes = [
        Node(evil, f"{evil}.{evil}", arguments, (f"{evil}.r",), (f"in.{evil}",)),
        node(long, long, f"{evil}.r", outputs=9),
    ]
    graph = graph_of(nodes, (evil,), (f"{evil}.r",))
    shown = page(graph)
    found = html_check.read("<!doctype html>\n" + shown)
    assert "script" not in found.tags and "\u202e" not in shown and "\x1b" not in shown
    assert "</title><script>alert(1)</script>" in found.text
    drawn = check_layout(graph)
    assert max(len(line.words) for box in drawn.boxes for line in box.lines) <= 50
    assert all(len(box.title) <= drawing.LONGEST_TITLE for box in drawn.boxes)


def test_words_fit_their_boxes():
    """0.6 of the size a character is what monospaced fonts take; East Asian characters take two."""
    nodes = [node("n0", "aten.some_operator.default", "in.x"), node("n1", "字" * 20, "n0")]
    drawn = drawing.draw(graph_of(nodes, ("x",), ("n1",)), "graph", "w")
    for box in drawn.boxes:
        size = {"name": 12, "note": 11, "number": 11}
        for line in box.lines:
            columns = sum(2 if character == "字" else 1 for character in line.words)
            assert columns * 0.6 * size[line.style] < float(box.width)


def test_the_same_in_every_process_and_without_numpy():
    """Grandalf imports NumPy where there is one."""
    code = (
        "import sys, hashlib; sys.modules['numpy'] = None; sys.path[:0] = ['tests/solbench/site']\n"
        "import test_site_drawing as t\n"
        "print(hashlib.sha256(t.page(t.loop(5)).encode() + t.page(t.loop(30)).encode()).hexdigest())"
    )
    here = hashlib.sha256(page(loop(5)).encode() + page(loop(30)).encode()).hexdigest()
    for seed in ("0", "1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.stdout.strip() == here


def test_the_order_of_mappings_changes_nothing():
    graph = loop(9)
    turned = OperatorGraph(
        graph.path,
        dict(reversed(graph.tensors.items())),
        graph.inputs,
        graph.outputs,
        tuple(Node(n.name, n.op, dict(reversed(n.arguments.items())), n.outputs, n.mutates) for n in graph.nodes),
        in_place=graph.in_place,
    )
    assert list(to_dict(turned)["tensors"]) != list(to_dict(graph)["tensors"])
    assert page(turned) == page(graph)


def program(operations: int) -> dict[str, Any]:
    ops = [einsum.Op(f"op{place}", "map", "relu", (f"t{place}",), (f"t{place + 1}",)) for place in range(operations)]
    tensors = {f"t{place}": einsum.Tensor((2, 3), "float32") for place in range(operations + 1)}
    made = einsum.Program("aten", tensors, (("x", "t0"),), (("y", f"t{operations}"),), tuple(ops))
    return einsum.to_dict(made) | {"kind": "einsum-graph"}


def test_a_short_program_is_printed_whole():
    found = ir.listing(program(2))
    assert str(found.lines) == (
        "program aten\n%t0 = input x : f32[2,3]\n%t1 = map.relu %t0 : f32[2,3]\n%t2 = map.relu %t1 : f32[2,3]\n"
        "output y = %t2 : f32[2,3]\n"
    )
    assert found.count == "5 lines" and not found.cut


def test_a_long_program_says_what_is_left_out():
    found = ir.listing(program(1000))
    assert found.lines.count("\n") == ir.MOST_LINES and found.cut
    assert found.count == "first 300 of 1\u202f003 lines; the object holds all"


def test_a_program_that_is_none_is_refused():
    with pytest.raises(GraphError):
        ir.listing(program(2) | {"ops": 3})


def test_a_name_writes_no_line_of_its_own():
    forged = json.loads(json.dumps(program(2)).replace('"x"', '"x\\noutput z = %t0"'))
    with pytest.raises(GraphError, match="breaks the line"):
        ir.listing(forged)


def test_control_characters_in_a_program_are_shown():
    forged = json.loads(json.dumps(program(1)).replace('"x"', '"x\\u202e"'))
    assert "\\u202e" in ir.listing(forged).lines and "\u202e" not in ir.listing(forged).lines
