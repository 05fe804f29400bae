"""What TFLite files compute from shapes is known when they are imported: results equal LiteRT's, with any batch."""

from __future__ import annotations

import numpy as np
import pytest

from relay.compile.entry import build
from relay.frontend import from_tflite
from tests.numeric.litert_models import Reference, T
from tests.numeric.test_control_flow_against_litert import Graph, Op, model

X = np.arange(24, dtype=np.float32).reshape(1, 4, 6)


def i32(*numbers: int) -> T:
    return T(np.array(numbers, np.int32), "int32")


def head(rank: int) -> list[T]:
    """The data, its shape, and the constants of a slice."""
    return [T([1, 4, 6], "float32"), T([rank], "int32"), i32(0), i32(1), i32(1)]


def flattened() -> bytes:
    """What Keras writes for `Reshape`: SHAPE, the batch of it, PACK, RESHAPE."""
    tensors = [*head(3), T([], "int32"), i32(), T([2], "int32"), T([1, 24], "float32")]
    tensors[6] = T(np.array(24, np.int32), "int32")
    return model(
        [
            Graph(
                tensors,
                [0],
                [8],
                [
                    Op("SHAPE", [0], [1], "ShapeOptions", {"outType": 2}),
                    Op("STRIDED_SLICE", [1, 2, 3, 4], [5], "StridedSliceOptions", {"shrinkAxisMask": 1}),
                    Op("PACK", [5, 6], [7], "PackOptions", {"valuesCount": 2}),
                    Op("RESHAPE", [0, 7], [8]),
                ],
            )
        ]
    )


def doubled() -> bytes:
    """An image's height and width, times 2, for a resize."""
    tensors = [T([1, 4, 6, 2], "float32"), T([4], "int32"), i32(1), i32(3), i32(1), T([2], "int32"), i32(2, 2)]
    tensors += [T([2], "int32"), T([1, 8, 12, 2], "float32")]
    return model(
        [
            Graph(
                tensors,
                [0],
                [8],
                [
                    Op("SHAPE", [0], [1], "ShapeOptions", {"outType": 2}),
                    Op("STRIDED_SLICE", [1, 2, 3, 4], [5], "StridedSliceOptions"),
                    Op("MUL", [5, 6], [7], "MulOptions"),
                    Op("RESIZE_NEAREST_NEIGHBOR", [0, 7], [8], "ResizeNearestNeighborOptions"),
                ],
            )
        ]
    )


def test_reshape_by_the_batch_of_a_shape():
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    file = flattened()
    (wanted,) = Reference(file).run([X])
    found = build(file).run(X)
    assert isinstance(found, np.ndarray) and np.array_equal(found, wanted)
    names = [op.name for op in from_tflite(file)["main"].body.block.ops]
    assert names == ["relay.reshape", "func.return"]


def test_the_batch_may_be_another():
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    many = np.concatenate([X, X + 1, -X])
    found = build(flattened(), batch=3).run(many)
    assert isinstance(found, np.ndarray) and np.array_equal(found, many.reshape(3, 24))


def test_resize_by_a_shape():
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    file = doubled()
    image = np.random.default_rng(0).standard_normal((1, 4, 6, 2)).astype(np.float32)
    found = build(file).run(image)
    assert isinstance(found, np.ndarray) and np.array_equal(found, Reference(file).run([image])[0])


@pytest.mark.parametrize("shape", [(1, 4, 6), (1 << 20, 1 << 19, 2)])
@pytest.mark.parametrize(("wanted", "factor"), [(1, 1), (2, 2)])
def test_numbers_from_shapes_can_be_asked_for(shape: tuple[int, ...], wanted: int, factor: int):
    """Also where the data would fill all memory."""
    pytest.importorskip("ai_edge_litert", reason="LiteRT, which writes the model, is not installed")
    tensors = [T(shape, "float32"), T([3], "int32"), T([3], "int32"), i32(2)]
    ops = [Op("SHAPE", [0], [1], "ShapeOptions", {"outType": 2}), Op("MUL", [1, 3], [2], "MulOptions")]
    mod = from_tflite(model([Graph(tensors, [0], [2], ops)]), outputs=[wanted])
    (constant,) = mod.weights.values()
    assert constant.tolist() == [factor * size for size in shape]
