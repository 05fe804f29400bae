"""The graph of a function: what flows where, which compiler runs what, and a layout that can be read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.module import IRModule
from relay.viewer.dataflow import Edge, Graph, Node
from relay.viewer.layout import GAP, HEIGHT, LARGEST, lay_out, rank, short
from relay.viewer.picture import picture
from relay.viewer.snapshot import take


def graph(text: str, number: int = 0) -> Graph:
    """The graph of a function of a module."""
    return take(IRModule.parse(text)).parts[number].graph


def edges(found: Graph) -> set[tuple[str, str]]:
    """From which name to which."""
    return {(found.nodes[e.source].name, found.nodes[e.target].name) for e in found.edges}


UNARY = "(tensor<2x3xf32>) -> tensor<2x3xf32>"


def test_values():
    found = graph(f"""
func.func @main(%x: tensor<2x3xf32>, %unused: tensor<9xf32>) -> tensor<2x3xf32> {{
  %w = relay.constant dense<1.0> : tensor<2x3xf32>
  %a = relay.negative %x : {UNARY}
  %b = relay.add %a, %w : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %b : tensor<2x3xf32>
}}""")
    assert [(n.kind, n.name, n.note) for n in found.nodes] == [
        ("argument", "x", "2×3 f32"),
        ("op", "relay.negative", "2×3 f32"),
        ("op", "relay.add", "2×3 f32"),
        ("output", "return", "2×3 f32"),
    ]
    assert edges(found) == {("x", "relay.negative"), ("relay.negative", "relay.add"), ("relay.add", "return")}
    assert [node.lines for node in found.nodes] == [(1, 2), (3, 4), (4, 5), (5, 6)]
    assert found.nodes[2].details == (2,)


def test_regions_use_values_from_around():
    found = graph("""
func.func @main(%n: index, %x: memref<8xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    %v = memref.load %x[%i] : memref<8xf32>
    memref.store %v, %out[%i] : memref<8xf32>
  }
  func.return
}""")
    assert edges(found) == {("n", "scf.for"), ("x", "scf.for"), ("scf.for", "out")}
    loop = found.nodes[2]
    assert loop.note.startswith("3 ops: ") and loop.lines == (4, 8) and loop.details == (2, 3)


BUFFERS = """
func.func @main(%x: memref<8xi8>, %y: memref<8xi8>, %arena: memref<64xi8>) {
  %zero = arith.constant 0 : index
  %t = memref.view %arena[%zero][] : memref<64xi8> to memref<8xi8>
  func.call @first(%x, %t) : (memref<8xi8>, memref<8xi8>) -> ()
  %c = "memref.cast"(%t) : (memref<8xi8>) -> memref<8xi8>
  func.call @second(%c, %y) : (memref<8xi8>, memref<8xi8>) -> ()
  func.return
}
func.func private @first(%a: memref<8xi8>, %b: memref<8xi8>) {
  "memref.copy"(%a, %b) : (memref<8xi8>, memref<8xi8>) -> ()
  func.return
}
func.func private @second(%a: memref<8xi8>, %b: memref<8xi8>) {
  func.call @first(%a, %b) : (memref<8xi8>, memref<8xi8>) -> ()
  func.return
}
"""


def test_buffers_flow_from_who_wrote_them():
    found = graph(BUFFERS)
    assert edges(found) == {("x", "@first"), ("@first", "@second"), ("@second", "y")}
    assert [(node.kind, node.name) for node in found.nodes] == [
        ("argument", "x"), ("call", "@first"), ("call", "@second"), ("output", "y"),
    ]  # fmt: skip
    assert found.nodes[1].details == (2, 3) and found.nodes[2].details == (2, 3, 5)
    assert edges(graph(BUFFERS, 1)) == {("a", "memref.copy"), ("memref.copy", "b")}


def test_a_function_that_calls_itself_is_drawn():
    text = "func.func @f(%a: memref<1xi8>) {\n func.call @f(%a) : (memref<1xi8>) -> ()\n func.return }"
    assert [node.name for node in graph(text).nodes] == ["a", "@f"]


BYOC = """
func.func @main(%x: tensor<1x8xf32>, %y: tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
  %a = byoc.compiler_begin %x {compiler = "dnnl"} : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %b = relay.negative %a : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %d = byoc.compiler_end %b {compiler = "dnnl"} : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %e = relay.add %d, %y : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %f = func.call @npu_0(%e) : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %g = byoc.region "cutlass" (%e) : (tensor<1x8xf32>) -> tensor<1x8xf32> {
  ^bb0(%i: tensor<1x8xf32>):
    %j = relay.sqrt %i : (tensor<1x8xf32>) -> tensor<1x8xf32>
    byoc.yield %j : tensor<1x8xf32>
  }
  func.return %f, %g : tensor<1x8xf32>, tensor<1x8xf32>
}
func.func private @npu_0(%x: tensor<1x8xf32>) -> tensor<1x8xf32> attributes {compiler = "npu"} {
  %r = relay.negative %x : (tensor<1x8xf32>) -> tensor<1x8xf32>
  func.return %r : tensor<1x8xf32>
}
"""


def test_where_ops_run():
    found = take(IRModule.parse(BYOC)).parts
    places = {node.name: node.place for node in found[0].graph.nodes}
    assert places == {
        "x": "", "y": "", "return": "", "relay.add": "",
        "byoc.compiler_begin": "dnnl", "relay.negative": "dnnl", "byoc.compiler_end": "dnnl",
        "@npu_0": "npu", "byoc.region": "cutlass",
    }  # fmt: skip
    assert found[1].compiler == "npu" and {node.place for node in found[1].graph.nodes} == {"npu"}


COMPOSITE = """
func.func @main(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %y = byoc.composite "dnnl.sqrt" from "relay.sqrt" (%x) : (tensor<1x8xf32>) -> tensor<1x8xf32> {
  ^bb0(%i: tensor<1x8xf32>):
    %j = relay.sqrt %i : (tensor<1x8xf32>) -> tensor<1x8xf32>
    byoc.yield %j : tensor<1x8xf32>
  }
  func.return %y : tensor<1x8xf32>
}
"""


def test_a_pattern_runs_where_its_compiler_does():
    found = graph(COMPOSITE)
    assert [(node.name, node.place) for node in found.nodes] == [("x", ""), ("dnnl.sqrt", "dnnl"), ("return", "")]


def made(count: int, links: list[tuple[int, int]]) -> Graph:
    """A graph of nodes without meaning."""
    pairs = {(min(a, b) % count, max(a, b) % count) for a, b in links}
    return Graph(
        tuple(Node("op", "x" * (n % 7), "", "", (n, n + 1)) for n in range(count)),
        tuple(Edge(a, b, "") for a, b in sorted(pairs) if a < b),
    )


LINKS = st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=60)


@settings(max_examples=60)
@given(st.integers(1, 30), LINKS)
def test_a_layout_can_be_read(count: int, links: list[tuple[int, int]]):
    """No two boxes touch, edges lead down from box to box, all is inside, and it is the same each time."""
    found = made(count, links)
    layout = lay_out(found)
    assert layout is not None and layout == lay_out(found)
    rows: dict[float, list[tuple[float, float]]] = {}
    for left, top, width in layout.boxes:
        assert left >= -0.1 and left + width <= layout.width + 0.2 and top + HEIGHT <= layout.height
        rows.setdefault(top, []).append((left, width))
    for row in rows.values():
        row.sort()
        assert all(a + w + GAP <= b + 0.3 for (a, w), (b, _) in zip(row, row[1:], strict=False))
    for edge, path in zip(found.edges, layout.paths, strict=True):
        source, target = layout.boxes[edge.source], layout.boxes[edge.target]
        assert path[0] == pytest.approx((source[0] + source[2] / 2, source[1] + HEIGHT), abs=0.2)
        assert path[-1] == pytest.approx((target[0] + target[2] / 2, target[1]), abs=0.2)
        assert all(a[1] < b[1] for a, b in zip(path, path[1:], strict=False))


def test_a_chain_is_straight_and_a_diamond_is_not_crossed():
    chain = lay_out(made(4, [(0, 1), (1, 2), (2, 3)]))
    assert chain is not None and all(len({x for x, _ in path}) == 1 for path in chain.paths)
    diamond = lay_out(Graph(made(4, []).nodes, tuple(Edge(a, b, "") for a, b in ((0, 1), (0, 2), (2, 3), (1, 3)))))
    assert diamond is not None and diamond.boxes[1][1] == diamond.boxes[2][1]


def test_what_nothing_leads_to_is_next_to_its_use():
    assert rank(5, [(0, 1), (1, 2), (3, 2), (2, 4)]) == [0, 1, 2, 1, 3]


def test_too_large_and_empty():
    nodes = tuple(Node("op", "n", "", "", (n, n + 1)) for n in range(LARGEST + 1))
    assert lay_out(Graph(nodes, ())) is None and picture(Graph(nodes, ())) == ""
    assert picture(Graph((), ())) == "" and lay_out(Graph((), ())) is not None


def test_long_names_lose_their_middle():
    assert short("abcdefghij", 10) == "abcdefghij" and short("abcdefghijk", 9) == "abcd…hijk"
