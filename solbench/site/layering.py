"""Where the boxes of a directed acyclic graph stand: layers from top to bottom, few crossings, no overlap.

The method of K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures"
(IEEE Trans. SMC 11, 1981). Order in the layers and first positions are grandalf's (Brandes and Köpf's placement); ranks
and the last placement are ours: grandalf leaves sources at the top, however late they are used, and lets boxes overlap.
The same numbers in, the same numbers out, in every process: grandalf is given its parts in order, one component at a
time, for its ``Graph`` would collect edges in a set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from grandalf.graphs import Edge, Vertex, graph_core
from grandalf.layouts import Layer, SugiyamaLayout, VertexViewer

BESIDE: Final = 22
BELOW: Final = 34
LANE: Final = 10
BETWEEN_COMPONENTS: Final = 40
ROUNDS: Final = 4
FAR: Final = 150
PER_FAR: Final = 6


@dataclass(frozen=True)
class Size:
    width: int
    height: int


@dataclass(frozen=True)
class Placed:
    """``boxes``: (left, top) by vertex, ``layers``: (top, bottom) by layer, ``rank``: the layer of each vertex.

    ``lanes``: for each edge, the abscissas where it passes the layers between its ends, in order.
    """

    boxes: tuple[tuple[float, float], ...]
    rank: tuple[int, ...]
    layers: tuple[tuple[float, float], ...]
    lanes: tuple[tuple[float, ...], ...]
    width: float
    height: float


@lru_cache(maxsize=512)
def place(sizes: tuple[Size, ...], edges: tuple[tuple[int, int], ...]) -> Placed:
    """Positions for boxes of these ``sizes``; ``edges``: (source, target), each pair once, source < target."""
    rank = _ranks(len(sizes), edges)
    heights = [0] * (max(rank) + 1)
    for vertex, size in enumerate(sizes):
        heights[rank[vertex]] = max(heights[rank[vertex]], size.height)
    left = [0.0] * len(sizes)
    lanes: list[tuple[float, ...]] = [()] * len(edges)
    offset = 0.0
    for members, numbers in _components(len(sizes), edges):
        lefts, passed, width = _component(members, [edges[number] for number in numbers], sizes, rank)
        for member, x in lefts.items():
            left[member] = offset + x
        for number, places in zip(numbers, passed, strict=True):
            lanes[number] = tuple(offset + x for x in places)
        offset += width + BETWEEN_COMPONENTS
    gaps = _gaps(sizes, edges, rank, left, lanes)
    layers, top = [], 0.0
    for height, gap in zip(heights, gaps, strict=True):
        layers.append((top, top + height))
        top += height + gap
    boxes = tuple((left[vertex], layers[rank[vertex]][0]) for vertex in range(len(sizes)))
    return Placed(boxes, tuple(rank), tuple(layers), tuple(lanes), offset - BETWEEN_COMPONENTS, layers[-1][1])


def passings(count: int, edges: Sequence[tuple[int, int]]) -> int:
    """How often an edge passes a layer between its ends: what makes a graph hard to follow, and slow to place."""
    rank = _ranks(count, edges)
    return sum(rank[target] - rank[source] - 1 for source, target in edges)


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Longest path from a source; then whatever has no more edges in than out goes down to where it is used."""
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        above[target].append(source)
        below[source].append(target)
    rank = [0] * count
    for vertex in range(count):
        rank[vertex] = max((rank[source] + 1 for source in above[vertex]), default=0)
    for vertex in reversed(range(count)):
        if below[vertex] and len(above[vertex]) <= len(below[vertex]):
            rank[vertex] = min(rank[target] for target in below[vertex]) - 1
    return rank


def _gaps(
    sizes: Sequence[Size],
    edges: Sequence[tuple[int, int]],
    rank: Sequence[int],
    left: Sequence[float],
    lanes: Sequence[tuple[float, ...]],
) -> list[int]:
    """Space below each layer: more where edges go far to a side, lest they run into one another."""
    far = [0] * (max(rank) + 1)
    middle = [x + size.width / 2 for x, size in zip(left, sizes, strict=True)]
    for (source, target), between in zip(edges, lanes, strict=True):
        for layer, (one, other) in enumerate(pairwise((middle[source], *between, middle[target])), rank[source]):
            far[layer] += abs(one - other) > FAR
    return [BELOW + min(PER_FAR * count, BELOW) for count in far]


def _components(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[list[int], list[int]]]:
    """(vertices, edges by number) of every connected part, in order of the first vertex."""
    root = list(range(count))

    def find(vertex: int) -> int:
        while root[vertex] != vertex:
            root[vertex] = root[root[vertex]]
            vertex = root[vertex]
        return vertex

    for source, target in edges:
        one, other = sorted((find(source), find(target)))
        root[other] = one
    parts: dict[int, tuple[list[int], list[int]]] = {}
    for vertex in range(count):
        parts.setdefault(find(vertex), ([], []))[0].append(vertex)
    for number, (source, _) in enumerate(edges):
        parts[find(source)][1].append(number)
    return list(parts.values())


class _Layout(SugiyamaLayout):
    """Grandalf's layout with given ranks (the ``data`` of each vertex)."""

    def rank_all(self, roots: object, optimize: bool = False) -> None:
        self.layers = [Layer() for _ in range(1 + max(vertex.data for vertex in self.g.sV))]
        for vertex in self.g.sV:
            self.grx[vertex].rank = vertex.data
            self.layers[vertex.data].append(vertex)


def _component(
    members: Sequence[int], inner: Sequence[tuple[int, int]], sizes: Sequence[Size], rank: Sequence[int]
) -> tuple[dict[int, float], list[tuple[float, ...]], float]:
    """(left side of each box, lanes of each edge of ``inner``, width) of one connected part, from 0."""
    if len(members) == 1:
        return {members[0]: 0.0}, [], float(sizes[members[0]].width)
    first = min(rank[member] for member in members)
    vertices = {}
    for member in members:
        vertices[member] = Vertex(rank[member] - first)
        vertices[member].view = VertexViewer(sizes[member].width, sizes[member].height)
    parts = [Edge(vertices[source], vertices[target]) for source, target in inner]
    layout = _Layout(graph_core(list(vertices.values()), parts))
    layout.dw, layout.dh, layout.xspace = LANE, LANE, BESIDE
    layout.init_all(roots=[], inverted_edges=[])
    layout.draw(ROUNDS)
    for layer in layout.layers:
        _apart(layer)
    low = min(item.view.xy[0] - item.view.w / 2 for layer in layout.layers for item in layer)
    high = max(item.view.xy[0] + item.view.w / 2 for layer in layout.layers for item in layer)
    lefts = {member: vertex.view.xy[0] - vertex.view.w / 2 - low for member, vertex in vertices.items()}
    lanes = []
    for part in parts:
        between = range(part.v[0].data + 1, part.v[1].data)
        lanes.append(tuple(layout.ctrls[part][row].view.xy[0] - low for row in between))
    return lefts, lanes, high - low


def _apart(layer: Layer) -> None:
    """Move the boxes of a layer apart, as little as can be (least squares; pool adjacent violators)."""
    blocks: list[list[float]] = []
    needed, reach = [0.0], 0.0
    for one, other in pairwise(layer):
        reach += (one.view.w + other.view.w) / 2 + BESIDE
        needed.append(reach)
    for item, least in zip(layer, needed, strict=True):
        blocks.append([item.view.xy[0] - least, 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (one, count), (other, more) = blocks[-2:]
            blocks[-2:] = [[(one * count + other * more) / (count + more), count + more]]
    places = [mean for mean, count in blocks for _ in range(int(count))]
    for item, least, mean in zip(layer, needed, places, strict=True):
        item.view.xy = (mean + least, item.view.xy[1])
