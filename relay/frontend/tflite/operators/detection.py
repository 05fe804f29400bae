"""Imports non-maximum suppression, and the custom operator at the end of detection models.

Source: tensorflow/lite/kernels/internal/reference/non_max_suppression.h, kernels/detection_postprocess.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import error as StructError

import numpy as np
from xdsl.dialects.builtin import f32, f64, i32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.importing.builder import real
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.paddings import padded
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.flexbuffer import numbers
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import FLOATS, Node
from relay.frontend.tflite.table import operator

MOST = 1 << 20
"""The maximum number of boxes that may be selected."""


def filled(importer: Importer, value: SSAValue, dims: list[int]) -> SSAValue:
    """The value padded with zeros at the end to these sizes."""
    sizes = zip(dims, importer.shape(value), strict=True)
    return padded(importer, value, {axis: (0, size - own) for axis, (size, own) in enumerate(sizes)})


def rows_at(importer: Importer, value: SSAValue, places: SSAValue) -> SSAValue:
    """The elements, or the rows of a matrix, at these indices."""
    return importer.call(relay.TakeOp, value, places, axis=0)


def below(importer: Importer, value: SSAValue, count: SSAValue) -> SSAValue:
    """The first `count` rows of a matrix, with zeros in place of the others."""
    places = importer.unnamed(np.arange(importer.shape(value)[0], dtype=np.int32)[:, None])
    inside = importer.call(relay.LessOp, places, importer.reshape(count, [1, 1]))
    return importer.call(relay.WhereOp, inside, value, importer.scalar(0, value))


def suppressed(
    importer: Importer, boxes: SSAValue, scores: SSAValue, most: int, overlap: np.float32, least: np.float32
) -> tuple[SSAValue, SSAValue]:
    """For each class of the scores [classes, n], the indices [classes, most] of the selected boxes [n, 4], and the
    number of them [classes]; `overlap` and `least` are the thresholds of overlaps and scores."""
    (n, _), (classes, _) = importer.shape(boxes), importer.shape(scores)
    given = importer.reshape(boxes, [1, n, 4]), importer.reshape(scores, [1, classes, n])
    limits = {"iou_threshold": real(overlap), "score_threshold": real(least)}
    indices, count = importer.several(relay.NonMaxSuppressionOp, *given, max_output_size=most, **limits)
    return importer.reshape(indices, [classes, most]), importer.reshape(count, [classes])


def before(number: float) -> np.float32:
    """The next smaller float32, so that `x > before(number)` is `x >= number`."""
    return np.nextafter(np.float32(number), np.float32(-np.inf))


def _scalar(node: Node, number: int) -> float:
    """The only element of a constant, as a float."""
    array = node.array(node.input(number))
    if array.size != 1:
        raise node.malformed(f"{node.input(number)} has {array.size} numbers, not 1")
    return float(array.reshape(-1)[0])


@operator("NON_MAX_SUPPRESSION_V4", versions=(1, 1), inputs=(5, 5), outputs=(2, 2))
@operator("NON_MAX_SUPPRESSION_V5", versions=(1, 1), inputs=(6, 6), outputs=(3, 3))
def non_max_suppression(importer: Importer, node: Node) -> list[SSAValue]:
    """Import NON_MAX_SUPPRESSION: boxes that overlap a better one by at least the threshold are left out; V5 also
    returns the scores of the selected boxes."""
    boxes, scores = node.input(0), node.input(1)
    node.one_type(FLOATS, boxes, scores)
    node.shape(boxes, 2)
    (count,), most = node.shape(scores, 1), int(_scalar(node, 2))
    if not 0 <= most <= MOST:
        raise node.malformed(f"takes up to {most} boxes")
    if len(node.operator.inputs) == 6 and _scalar(node, 5) != 0:
        raise node.unsupported(f"its sigma is {_scalar(node, 5)}: scores decay by overlaps", "0 is supported")
    row = importer.reshape(importer.value(scores), [1, count])
    overlap, least = before(_scalar(node, 3)), np.float32(_scalar(node, 4))
    taken, total = suppressed(importer, importer.value(boxes), row, most, overlap, least)
    places, total = importer.reshape(taken, [most]), importer.reshape(total, [])
    if len(node.operator.outputs) == 2:
        return [places, total]
    best = importer.reshape(rows_at(importer, importer.reshape(row, [count]), places), [most, 1])
    return [places, importer.reshape(below(importer, best, total), [most]), total]


@dataclass(frozen=True)
class Options:
    """The options of TFLite_Detection_PostProcess, with defaults for absent ones."""

    max_detections: int
    max_classes_per_detection: int
    num_classes: int
    detections_per_class: int
    use_regular_nms: bool
    nms_score_threshold: float
    nms_iou_threshold: float
    y_scale: float
    x_scale: float
    h_scale: float
    w_scale: float

    def thresholds(self) -> tuple[np.float32, np.float32]:
        """The threshold of overlaps; and the float32 just below the threshold of scores, so that comparing by `>`
        accepts a score that equals the threshold."""
        return np.float32(self.nms_iou_threshold), before(self.nms_score_threshold)

    @staticmethod
    def of(node: Node) -> Options:
        try:
            given = {"detections_per_class": 100} | numbers(node.operator.custom_options)
            whole = {name: int(given.get(name, 0)) for name in Options.__annotations__}
            found = {name: float(given.get(name, 0)) for name in Options.__annotations__}
            options = Options(
                whole["max_detections"], whole["max_classes_per_detection"], whole["num_classes"],
                whole["detections_per_class"], bool(whole["use_regular_nms"]), found["nms_score_threshold"],
                found["nms_iou_threshold"], found["y_scale"], found["x_scale"], found["h_scale"], found["w_scale"],
            )  # fmt: skip
        except (ValueError, IndexError, OverflowError, StructError) as error:
            raise node.malformed(f"its options cannot be read: {error}") from None
        most, each = options.max_detections, options.max_classes_per_detection
        classes, per = options.num_classes, options.detections_per_class
        if min(most, each, classes, per) < 1 or max(most, each, classes, per, most * each, classes * per) > MOST:
            raise node.malformed(f"takes {most} detections of {each} of {classes} classes, {per} of each")
        if 0.0 in (options.y_scale, options.x_scale, options.h_scale, options.w_scale):
            raise node.malformed("divides by a scale of 0")
        return options


@operator("CUSTOM:TFLite_Detection_PostProcess", versions=(1, 1), inputs=(3, 3), outputs=(4, 4))
def detections(importer: Importer, node: Node) -> list[SSAValue]:
    """Import TFLite_Detection_PostProcess: boxes, classes, scores and the number of detections, padded with zeros.
    Equal scores are ordered by box, and equal scores of one box by class; LiteRT's order of the latter depends on its
    sorting algorithm."""
    options = Options.of(node)
    encoded, scored, anchors = node.inputs()
    (batch, n, width), (batches, rows, columns) = node.shape(encoded, 3), node.shape(scored, 3)
    if (batch, batches) != (1, 1):
        raise node.unsupported(f"has {batch} batches of boxes and {batches} of scores", "1 is supported")
    if rows != n or width < 4 or node.shape(anchors, 2) != (n, 4) or n < 1:
        raise node.malformed(f"takes {n} boxes of {width} numbers, scores of {rows} and anchors of {anchors.shape}")
    if not 0 <= columns - options.num_classes <= 1:
        raise node.malformed(f"has scores of {columns} classes for {options.num_classes}")
    boxes = _decoded(importer, node, options)
    scores = importer.reshape(_floats(importer, node, scored), [n, columns])
    scores = importer.slice(scores, {1: (columns - options.num_classes, columns)})
    select = _by_class if options.use_regular_nms else _by_box
    chosen, classes, found, total = select(importer, boxes, scores, options)
    most, each = options.max_detections, 1 if options.use_regular_nms else options.max_classes_per_detection
    total = importer.reshape(total, [])
    classes, found = (
        filled(importer, below(importer, importer.cast(part, f32), total), [most, each]) for part in (classes, found)
    )
    corners = filled(importer, below(importer, rows_at(importer, boxes, chosen), total), [most, 4])
    if each > 1:
        corners = importer.call(relay.RepeatOp, corners, repeats=each, axis=0)
    count = most * each
    return [
        importer.reshape(corners, [1, count, 4]),
        importer.reshape(classes, [1, count]),
        importer.reshape(found, [1, count]),
        importer.reshape(importer.cast(total, f32), [1]),
    ]


Selected = tuple[SSAValue, SSAValue, SSAValue, SSAValue]
"""Boxes by their indices [rows], classes and scores [rows, classes per box], and the number of valid rows."""


def _by_box(importer: Importer, boxes: SSAValue, scores: SSAValue, options: Options) -> Selected:
    """Select boxes by the score of their best class, each with its best classes."""
    best, order = _best(importer, scores, min(options.max_classes_per_detection, options.num_classes))
    largest = importer.reshape(importer.slice(best, {1: (0, 1)}), [1, importer.shape(boxes)[0]])
    taken, total = suppressed(importer, boxes, largest, options.max_detections, *options.thresholds())
    chosen = importer.reshape(taken, [options.max_detections])
    return chosen, rows_at(importer, order, chosen), rows_at(importer, best, chosen), total


def _by_class(importer: Importer, boxes: SSAValue, scores: SSAValue, options: Options) -> Selected:
    """Select the best boxes of each class, then the best of all selected ones. In each class at most `max_detections`
    are selected, since the result cannot have more."""
    n, classes, most = importer.shape(boxes)[0], options.num_classes, options.max_detections
    per = min(options.detections_per_class, most)
    rows = importer.transpose(scores, [1, 0])
    taken, counts = suppressed(importer, boxes, rows, per, *options.thresholds())
    flat = importer.reshape(taken, [classes * per])
    starts = importer.unnamed(np.repeat(np.arange(classes, dtype=np.int32) * n, per))
    found = rows_at(importer, importer.reshape(rows, [classes * n]), importer.call(relay.AddOp, flat, starts))
    places = importer.unnamed(np.arange(per, dtype=np.int32))
    counted = importer.call(relay.LessOp, places, importer.reshape(counts, [classes, 1]))
    none = importer.scalar(-np.inf, found)
    found = importer.call(relay.WhereOp, importer.reshape(counted, [classes * per]), found, none)
    best, order = _best(importer, found, min(most, classes * per))
    total = importer.call(relay.MinimumOp, importer.call(relay.SumOp, counts, axis=[0]), importer.scalar(most, counts))
    kinds = importer.call(relay.FloorDivideOp, order, importer.scalar(per, order))
    return rows_at(importer, flat, order), importer.reshape(kinds, [-1, 1]), importer.reshape(best, [-1, 1]), total


def _best(importer: Importer, scores: SSAValue, count: int) -> tuple[SSAValue, SSAValue]:
    """The `count` largest elements along the last axis, and their indices, the first of equal ones first."""
    axis = len(importer.shape(scores)) - 1
    if count == 1:
        kinds = (relay.MaxOp, relay.ArgmaxOp)
        best, order = (importer.call(kind, scores, axis=[axis], keepdims=True) for kind in kinds)
        return best, order
    values, places = importer.several(relay.TopkOp, scores, k=count, axis=axis, dtype=i32)
    return values, places


def _floats(importer: Importer, node: Node, tensor: Tensor) -> SSAValue:
    """A tensor as floats, dequantized if necessary."""
    value = importer.value(tensor)
    if tensor.type == "FLOAT32":
        return value
    if tensor.type != "UINT8":
        raise node.refuse_types(tensor, hint="FLOAT32 and UINT8 are supported")
    codes, wide = node.codes(tensor), Scalar(importer, importer.cast(value, f32))
    return ((wide - codes.zero_point) * float(codes.scale)).value


def _decoded(importer: Importer, node: Node, options: Options) -> SSAValue:
    """The corners [n, 4] of boxes given as centres and sizes relative to anchors: computed in float64 as in LiteRT,
    with the centre and half the size rounded to float32."""
    encoded, _, anchors = node.inputs()
    _, n, width = encoded.shape
    given, base = importer.reshape(_floats(importer, node, encoded), [n, width]), _floats(importer, node, anchors)

    def column(matrix: SSAValue, place: int) -> Scalar:
        return Scalar(importer, importer.cast(importer.slice(matrix, {1: (place, place + 1)}), f64))

    def scaled(place: int, scale: float) -> Scalar:
        return column(given, place) / float(np.float32(scale))

    low, high = list[SSAValue](), list[SSAValue]()
    for axis, (scale, growth) in enumerate(((options.y_scale, options.h_scale), (options.x_scale, options.w_scale))):
        size = column(base, axis + 2)
        centre = (scaled(axis, scale) * size + column(base, axis)).of(relay.CastOp, dtype=f32)
        half = (scaled(axis + 2, growth).exp() * 0.5 * size).of(relay.CastOp, dtype=f32)
        low.append((centre - half).value)
        high.append((centre + half).value)
    return importer.call(relay.ConcatenateOp, *low, *high, axis=1)
