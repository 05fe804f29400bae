"""A layered layout of a graph: ranks from top to bottom, few crossings, straight long edges.

The method of Sugiyama, Tagawa and Toda: ranks by longest paths, a dummy node on each rank that an edge passes, order
within a rank by barycentres, positions by least squares under this order (pool adjacent violators). The result is
deterministic.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass

from relay.viewer.dataflow import Graph, Node

LETTER = 7.25
"""The width of a letter in a node's name, in pixels (12 px monospace)."""
SMALL_LETTER = 6.1
HEIGHT = 40.0
GAP, RANK_GAP = 18.0, 34.0
LONGEST_NAME = 44
LARGEST = 4000
"""The largest number of nodes for which a graph is drawn; a picture of a larger one could not be read."""


@dataclass(frozen=True)
class Layout:
    """Positions in pixels: `boxes` holds left, top and width of each node; `paths` the points of each edge from top to
    bottom."""

    width: float
    height: float
    boxes: tuple[tuple[float, float, float], ...]
    paths: tuple[tuple[tuple[float, float], ...], ...]


def name_shown(node: Node) -> str:
    """The node's name as shown: long names are shortened in the middle."""
    return short(node.name, LONGEST_NAME)


def note_shown(node: Node) -> str:
    """The node's note as shown: long notes are shortened in the middle."""
    return short(node.note, LONGEST_NAME)


def short(text: str, limit: int) -> str:
    """The text, shortened in the middle to at most `limit` characters."""
    half = (limit - 1) // 2
    return text if len(text) <= limit else f"{text[:half]}…{text[-half:]}"


def width_of(node: Node) -> float:
    """The width of a node's box, which holds name and note."""
    return max(len(name_shown(node)) * LETTER, len(note_shown(node)) * SMALL_LETTER, 40.0) + 24.0


def lay_out(graph: Graph) -> Layout | None:
    """Lay out all nodes and edges; None if the graph has more than `LARGEST` nodes."""
    if len(graph.nodes) > LARGEST:
        return None
    if not graph.nodes:
        return Layout(0.0, 0.0, (), ())
    ranks = rank(len(graph.nodes), [(edge.source, edge.target) for edge in graph.edges])
    layers = Layers(ranks, [(edge.source, edge.target) for edge in graph.edges])
    layers.order()
    widths = [width_of(node) for node in graph.nodes] + [2.0] * (len(layers.rank) - len(graph.nodes))
    centres = layers.place(widths)
    left = min(x - w / 2 for x, w in zip(centres, widths, strict=True))
    right = max(x + w / 2 for x, w in zip(centres, widths, strict=True))
    top = [number * (HEIGHT + RANK_GAP) for number in range(len(layers.rows))]
    real = range(len(graph.nodes))
    boxes = tuple((round(centres[n] - widths[n] / 2 - left, 1), top[ranks[n]], round(widths[n], 1)) for n in real)
    paths: list[tuple[tuple[float, float], ...]] = []
    for chain in layers.chains:
        points = [(centres[chain[0]], top[layers.rank[chain[0]]] + HEIGHT)]
        for dummy in chain[1:-1]:
            points += [(centres[dummy], top[layers.rank[dummy]]), (centres[dummy], top[layers.rank[dummy]] + HEIGHT)]
        points.append((centres[chain[-1]], top[layers.rank[chain[-1]]]))
        paths.append(tuple((round(x - left, 1), y) for x, y in points))
    return Layout(round(right - left, 1), top[-1] + HEIGHT, boxes, tuple(paths))


def rank(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The rank of each node: the length of the longest path to it. A node without predecessors is placed just above the
    first node that uses it."""
    ranks = [0] * count
    successors: list[list[int]] = [[] for _ in range(count)]
    has_source = [False] * count
    for source, target in edges:
        successors[source].append(target)
        has_source[target] = True
    for node in range(count):
        for target in successors[node]:
            ranks[target] = max(ranks[target], ranks[node] + 1)
    for node in reversed(range(count)):
        if not has_source[node] and successors[node]:
            ranks[node] = min(ranks[target] for target in successors[node]) - 1
    return ranks


class Layers:
    """The rows of a layered graph, with real and dummy nodes, and the neighbours of each node in the rows above and
    below."""

    def __init__(self, ranks: Sequence[int], edges: Sequence[tuple[int, int]]):
        self.rank = list(ranks)
        self.real = len(ranks)
        self.chains: list[list[int]] = []
        """The nodes that each edge passes: its source, dummy nodes, its target."""
        for source, target in edges:
            chain = [source]
            for between in range(ranks[source] + 1, ranks[target]):
                chain.append(len(self.rank))
                self.rank.append(between)
            self.chains.append([*chain, target])
        self.above: list[list[int]] = [[] for _ in self.rank]
        self.below: list[list[int]] = [[] for _ in self.rank]
        for chain in self.chains:
            for upper, lower in zip(chain, chain[1:], strict=False):
                self.below[upper].append(lower)
                self.above[lower].append(upper)
        self.rows: list[list[int]] = [[] for _ in range(max(self.rank) + 1)]
        for node, row in enumerate(self.rank):
            self.rows[row].append(node)

    def order(self, sweeps: int = 8) -> None:
        """Order the nodes of each row so that few edges cross: sort them by the mean position of each node's neighbours
        in the row above, from the top row down, then in the row below, from the bottom row up, and so on, `sweeps`
        times at most. Keep the order with the fewest crossings."""
        best, fewest = [list(row) for row in self.rows], self.crossings()
        for sweep in range(sweeps):
            if fewest == 0:
                break
            down = sweep % 2 == 0
            position = self.positions()
            for row in self.rows[1:] if down else reversed(self.rows[:-1]):
                near = self.above if down else self.below
                mean = {n: sum(position[m] for m in near[n]) / len(near[n]) for n in row if near[n]}
                row.sort(key=lambda n: mean.get(n, position[n]))
                position.update((n, float(place)) for place, n in enumerate(row))
            count = self.crossings()
            if count < fewest:
                best, fewest = [list(row) for row in self.rows], count
        self.rows = best

    def positions(self) -> dict[int, float]:
        """The index of each node in its row."""
        return {node: float(place) for row in self.rows for place, node in enumerate(row)}

    def crossings(self) -> int:
        """The number of crossings of edges between neighbouring rows."""
        position, found = self.positions(), 0
        for row in self.rows[:-1]:
            ends: list[float] = []
            for node in row:
                targets = sorted(position[lower] for lower in self.below[node])
                found += sum(len(ends) - bisect_right(ends, target) for target in targets)
                for target in targets:
                    insort(ends, target)
        return found

    def place(self, widths: Sequence[float], sweeps: int = 6) -> list[float]:
        """The horizontal centre of each node. Nodes keep the order of their row, lie near their neighbours in the rows
        above and below, and are at least `GAP` apart."""
        centres = [0.0] * len(self.rank)
        for row in self.rows:
            settle(row, widths, centres, [0.0] * len(row), [1.0] * len(row))
        for sweep in range(sweeps):
            down = sweep % 2 == 0
            for row in self.rows if down else reversed(self.rows):
                wanted: list[float] = []
                weights: list[float] = []
                for node in row:
                    near = (self.above if down else self.below)[node] or (self.below if down else self.above)[node]
                    wanted.append(sum(centres[n] for n in near) / len(near) if near else centres[node])
                    straight = node >= self.real and any(n >= self.real for n in near)
                    weights.append(8.0 if straight else 1.0 if near else 0.1)
                settle(row, widths, centres, wanted, weights)
        return centres


def settle(
    row: Sequence[int],
    widths: Sequence[float],
    centres: list[float],
    wanted: Sequence[float],
    weights: Sequence[float],
) -> None:
    """Set the centres of a row to minimize the weighted squared distances from `wanted`, with at least `GAP` between
    boxes."""
    offset = 0.0
    offsets: list[float] = []
    blocks: list[tuple[float, float, int]] = []
    for number, node in enumerate(row):
        if number:
            offset += (widths[row[number - 1]] + widths[node]) / 2 + GAP
        offsets.append(offset)
        mean, weight, size = wanted[number] - offset, weights[number], 1
        while blocks and blocks[-1][0] > mean:
            other, heavy, more = blocks.pop()
            mean, weight, size = (mean * weight + other * heavy) / (weight + heavy), weight + heavy, size + more
        blocks.append((mean, weight, size))
    places = [mean for mean, _, size in blocks for _ in range(size)]
    for node, place, offset in zip(row, places, offsets, strict=True):
        centres[node] = place + offset
