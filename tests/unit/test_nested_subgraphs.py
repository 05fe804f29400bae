"""IF in the subgraphs of IF: every call is a copy, of which there may be so many, so deep in each other."""

from __future__ import annotations

import numpy as np
import pytest

from relay.compile.entry import build
from relay.errors import Unsupported
from relay.frontend import from_tflite
from relay.frontend.tflite.subgraphs import COPIES, DEEPEST, SPARE
from tests.numeric.litert_models import T
from tests.numeric.test_control_flow_against_litert import Graph, Op, model

FLAG = T([1], "bool")
IMAGE = T([1], "float32")


def conditional(source: int, target: int, then: int, otherwise: int) -> Op:
    values = {"thenSubgraphIndex": then, "elseSubgraphIndex": otherwise}
    return Op("IF", [0, 0, source], [target], "IfOptions", values)


def leaf() -> Graph:
    """Twice the image."""
    return Graph([FLAG, IMAGE, IMAGE], [0, 1], [2], [Op("ADD", [1, 1], [2], "AddOptions")])


def wide(levels: int) -> bytes:
    """Each subgraph has two IFs, of which both branches are the next one: four times as many at each level."""
    steps = ([conditional(1, 2, n, n), conditional(2, 3, n, n)] for n in range(1, levels + 1))
    return model([*(Graph([FLAG, IMAGE, IMAGE, IMAGE], [0, 1], [3], ops) for ops in steps), leaf()])


def deep(levels: int) -> bytes:
    """The first branch of each IF is the next one, the second is the last one."""
    steps = ([conditional(1, 2, n, levels)] for n in range(1, levels + 1))
    return model([*(Graph([FLAG, IMAGE, IMAGE], [0, 1], [2], ops) for ops in steps), leaf()])


@pytest.fixture(autouse=True)
def schema() -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these files")


def test_calls_are_copies_up_to_a_number() -> None:
    module = from_tflite(wide(3))
    module.verify()
    ifs = [op for op in module.op.walk() if op.name == "scf.if"]
    adds = [op for op in module.op.walk() if op.name == "relay.add"]
    assert (len(ifs), len(adds)) == (2 + 2 * 4 + 2 * 16, 64)
    for levels in (6, 12, DEEPEST - 1):
        most = SPARE + COPIES * (2 * levels + 1)
        with pytest.raises(Unsupported, match=f"operator [01] IF '.*come to .*, and {most} are the"):
            from_tflite(wide(levels))


def test_what_outputs_do_not_need_is_not_counted() -> None:
    big = [conditional(1, 2, 1, 1), Op("ADD", [1, 1], [3], "AddOptions")]
    steps = ([conditional(1, 2, n, n), conditional(2, 3, n, n)] for n in range(2, 9))
    inner = [Graph([FLAG, IMAGE, IMAGE, IMAGE], [0, 1], [3], ops) for ops in steps]
    file = model([Graph([FLAG, IMAGE, IMAGE, IMAGE], [0, 1], [2, 3], big), *inner, leaf()])
    with pytest.raises(Unsupported, match="the copies of subgraphs come to"):
        from_tflite(file)
    from_tflite(file, outputs=[3]).verify()


def test_depth_is_bounded() -> None:
    executable = build(from_tflite(deep(DEEPEST)))
    for flag in (True, False):
        assert executable.run(np.array([flag]), np.ones(1, np.float32)) == np.float32(2)
    for levels in (DEEPEST + 1, 500):
        with pytest.raises(Unsupported, match=f"operator 0 IF 't2': its subgraphs are more than {DEEPEST} deep"):
            from_tflite(deep(levels))


def test_depth_is_that_of_the_longest_way() -> None:
    """The second IF reaches by a detour what the first one has found to be deep enough."""
    chain = [Graph([FLAG, IMAGE, IMAGE], [0, 1], [2], [conditional(1, 2, n, DEEPEST)]) for n in range(2, DEEPEST + 1)]
    detour = Graph([FLAG, IMAGE, IMAGE], [0, 1], [2], [conditional(1, 2, 1, DEEPEST)])
    last = DEEPEST + 1
    main = Graph(
        [FLAG, IMAGE, IMAGE, IMAGE], [0, 1], [3], [conditional(1, 2, 1, DEEPEST), conditional(1, 3, last, last)]
    )
    file = model([main, *chain, leaf(), detour])
    from_tflite(file, outputs=[2]).verify()
    with pytest.raises(Unsupported, match="operator 0 IF 't2': its subgraphs are more than"):
        from_tflite(file)
