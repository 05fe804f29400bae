"""Box detection: non-maximum suppression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, f32, i32
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from relay.dialects.op import DYNAMIC, TENSOR, TensorOp, Type, rank, require, shape, tensor


@irdl_op_definition
class NonMaxSuppressionOp(TensorOp):
    """Select the highest-scoring boxes and drop those that overlap a better one, separately for each batch and class.

    boxes is [batch, n, 4] of float32: two opposite corners, (y, x, y, x). scores is [batch, classes, n]. Candidates are
    boxes whose score is greater than `score_threshold`. The best candidate (of equal ones, the first) is taken; it and
    all whose overlap with it is greater than `iou_threshold` are candidates no longer; and so on, up to
    `max_output_size` times. The overlap is the area of the intersection, divided by that of the union; 0 for a box
    without area.

    indices is [batch, classes, max_output_size] of i32: the boxes in the order in which they were taken, 0 behind
    them. count, [batch, classes] of i32, is how many were taken. Source: tensorflow/lite/kernels/internal/reference/
    non_max_suppression.h, ONNX NonMaxSuppression 11."""

    name = "relay.vision.non_max_suppression"
    INDEPENDENT: ClassVar[slice] = slice(1)
    boxes = operand_def(TENSOR)
    scores = operand_def(TENSOR)
    max_output_size = prop_def(IntegerAttr)
    iou_threshold = prop_def(FloatAttr)
    score_threshold = prop_def(FloatAttr)
    indices = result_def(TENSOR)
    count = result_def(TENSOR)

    def infer(self) -> Sequence[Type]:
        for each, name, last in ((self.boxes, "boxes", "n, 4"), (self.scores, "scores", "classes, n")):
            element = tensor(each).element_type
            require(rank(each) == 3, f"{self.name}: {name} must be [batch, {last}]")
            require(element == f32, f"{self.name}: takes {name} of f32, not {element}")
        (batch, boxes, four), (batches, classes, scores) = shape(self.boxes), shape(self.scores)
        require(four == 4, f"{self.name}: boxes have {four} numbers, not 4")
        for what, one, other in (("batches", batch, batches), ("boxes and scores", boxes, scores)):
            require(one == other or DYNAMIC in (one, other), f"{self.name}: {what}: {one} and {other}")
        most = self.max_output_size.value.data
        require(0 <= most < 1 << 31, f"{self.name}: max_output_size is {most}")
        batch = max(batch, batches)
        return [TensorType(i32, [batch, classes, most]), TensorType(i32, [batch, classes])]
