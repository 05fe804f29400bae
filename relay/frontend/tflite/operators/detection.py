"""Imports non-maximum suppression, and the custom operator at the end of detection models.

Source: tensorflow/lite/kernels/internal/reference/non_max_suppression.h, kernels/detection_postprocess.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import error as StructError

import numpy as np
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import ints
from relay.dialects.op import TensorOp
from relay.dialects.op import tensor as type_of
from relay.frontend.importing.builder import real
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.flexbuffer import numbers
from relay.frontend.tflite.model import Tensor
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.table import operator

MOST = 1 << 20
"""The maximum number of boxes that may be selected."""


@dataclass(frozen=True)
class Emitter:
    """Appends ops and returns their results."""

    importer: Importer

    def __call__(self, op: type[TensorOp], *operands: SSAValue, **properties: Attribute) -> SSAValue:
        return self.importer.emit(op, operands, properties).results[0]

    def shape(self, value: SSAValue) -> tuple[int, ...]:
        return self.importer.shape(value)

    def reshaped(self, value: SSAValue, *dims: int) -> SSAValue:
        return self.importer.reshape(value, dims)

    def number(self, value: float, like: SSAValue) -> SSAValue:
        return self.importer.scalar(value, like)

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        return value if type_of(value).element_type == element else self(relay.CastOp, value, dtype=element)

    def columns(self, value: SSAValue, begin: int, end: int) -> SSAValue:
        """The columns `begin` to `end` of a matrix."""
        rows = self.shape(value)[0]
        bounds = {"begin": ints([0, begin]), "end": ints([rows, end]), "strides": ints([1, 1])}
        return self(relay.StridedSliceOp, value, **bounds)

    def take(self, value: SSAValue, places: SSAValue) -> SSAValue:
        """The elements, or the rows of a matrix, at these indices."""
        return self(relay.TakeOp, value, places, axis=IntegerAttr(0, i64))

    def filled(self, value: SSAValue, dims: list[int]) -> SSAValue:
        """The value padded with zeros at the end to these sizes."""
        widths = [n for size, own in zip(dims, self.shape(value), strict=True) for n in (0, size - own)]
        zero = {"pad_width": ints(widths), "pad_value": real(0.0)}
        return self(relay.PadOp, value, **zero) if any(widths) else value

    def below(self, value: SSAValue, count: SSAValue) -> SSAValue:
        """The first `count` rows of a matrix, with zeros in place of the others."""
        places = self.importer.unnamed(np.arange(self.shape(value)[0], dtype=np.int32)[:, None])
        zero = self.number(0, value)
        return self(relay.WhereOp, self(relay.LessOp, places, self.reshaped(count, 1, 1)), value, zero)

    def suppressed(
        self, boxes: SSAValue, scores: SSAValue, most: int, overlap: np.float32, least: np.float32
    ) -> tuple[SSAValue, SSAValue]:
        """For each class of the scores [classes, n], the indices [classes, most] of the selected boxes [n, 4], and the
        number of them [classes]; `overlap` and `least` are the thresholds of overlaps and scores."""
        (n, _), (classes, _) = self.shape(boxes), self.shape(scores)
        properties = {
            "max_output_size": IntegerAttr(most, i64), "iou_threshold": real(overlap), "score_threshold": real(least),
        }  # fmt: skip
        given = [self.reshaped(boxes, 1, n, 4), self.reshaped(scores, 1, classes, n)]
        found = self.importer.emit(relay.NonMaxSuppressionOp, given, properties)
        return self.reshaped(found.indices, classes, most), self.reshaped(found.count, classes)


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
    if boxes.type != "FLOAT32" or scores.type != "FLOAT32":
        raise node.refuse_types(boxes, scores)
    node.shape(boxes, 2)
    (count,), most = node.shape(scores, 1), int(_scalar(node, 2))
    if not 0 <= most <= MOST:
        raise node.malformed(f"takes up to {most} boxes")
    if len(node.operator.inputs) == 6 and _scalar(node, 5) != 0:
        raise node.unsupported(f"its sigma is {_scalar(node, 5)}: scores decay by overlaps", "0 is supported")
    emit = Emitter(importer)
    row = emit.reshaped(importer.value(scores), 1, count)
    overlap, least = before(_scalar(node, 3)), np.float32(_scalar(node, 4))
    taken, total = emit.suppressed(importer.value(boxes), row, most, overlap, least)
    places, total = emit.reshaped(taken, most), emit.reshaped(total)
    if len(node.operator.outputs) == 2:
        return [places, total]
    best = emit.below(emit.reshaped(emit.take(emit.reshaped(row, count), places), most, 1), total)
    return [places, emit.reshaped(best, most), total]


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
    options, emit = Options.of(node), Emitter(importer)
    encoded, scored, anchors = node.inputs()
    (batch, n, width), (batches, rows, columns) = node.shape(encoded, 3), node.shape(scored, 3)
    if (batch, batches) != (1, 1):
        raise node.unsupported(f"has {batch} batches of boxes and {batches} of scores", "1 is supported")
    if rows != n or width < 4 or node.shape(anchors, 2) != (n, 4) or n < 1:
        raise node.malformed(f"takes {n} boxes of {width} numbers, scores of {rows} and anchors of {anchors.shape}")
    if not 0 <= columns - options.num_classes <= 1:
        raise node.malformed(f"has scores of {columns} classes for {options.num_classes}")
    boxes = _decoded(emit, node, options)
    scores = emit.reshaped(_floats(emit, node, scored), n, columns)
    scores = emit.columns(scores, columns - options.num_classes, columns)
    select = _by_class if options.use_regular_nms else _by_box
    chosen, classes, found, total = select(emit, boxes, scores, options)
    most, each = options.max_detections, 1 if options.use_regular_nms else options.max_classes_per_detection
    total = emit.reshaped(total)
    classes, found = (emit.filled(emit.below(emit.cast(part, f32), total), [most, each]) for part in (classes, found))
    corners = emit.filled(emit.below(emit.take(boxes, chosen), total), [most, 4])
    if each > 1:
        corners = emit(relay.RepeatOp, corners, repeats=IntegerAttr(each, i64), axis=IntegerAttr(0, i64))
    count = most * each
    return [
        emit.reshaped(corners, 1, count, 4), emit.reshaped(classes, 1, count), emit.reshaped(found, 1, count),
        emit.reshaped(emit.cast(total, f32), 1),
    ]  # fmt: skip


Selected = tuple[SSAValue, SSAValue, SSAValue, SSAValue]
"""Boxes by their indices [rows], classes and scores [rows, classes per box], and the number of valid rows."""


def _by_box(emit: Emitter, boxes: SSAValue, scores: SSAValue, options: Options) -> Selected:
    """Select boxes by the score of their best class, each with its best classes."""
    best, order = _best(emit, scores, min(options.max_classes_per_detection, options.num_classes))
    largest = emit.reshaped(emit.columns(best, 0, 1), 1, emit.shape(boxes)[0])
    taken, total = emit.suppressed(boxes, largest, options.max_detections, *options.thresholds())
    chosen = emit.reshaped(taken, options.max_detections)
    return chosen, emit.take(order, chosen), emit.take(best, chosen), total


def _by_class(emit: Emitter, boxes: SSAValue, scores: SSAValue, options: Options) -> Selected:
    """Select the best boxes of each class, then the best of all selected ones. In each class at most `max_detections`
    are selected, since the result cannot have more."""
    n, classes, most = emit.shape(boxes)[0], options.num_classes, options.max_detections
    per = min(options.detections_per_class, most)
    rows = emit(relay.TransposeOp, scores, axes=ints([1, 0]))
    taken, counts = emit.suppressed(boxes, rows, per, *options.thresholds())
    flat = emit.reshaped(taken, classes * per)
    starts = emit.importer.unnamed(np.repeat(np.arange(classes, dtype=np.int32) * n, per))
    found = emit.take(emit.reshaped(rows, classes * n), emit(relay.AddOp, flat, starts))
    places = emit.importer.unnamed(np.arange(per, dtype=np.int32))
    counted = emit(relay.LessOp, places, emit.reshaped(counts, classes, 1))
    none = emit.number(-np.inf, found)
    found = emit(relay.WhereOp, emit.reshaped(counted, classes * per), found, none)
    best, order = _best(emit, found, min(most, classes * per))
    total = emit(relay.MinimumOp, emit(relay.SumOp, counts, axis=ints([0])), emit.number(most, counts))
    kinds = emit(relay.FloorDivideOp, order, emit.number(per, order))
    return emit.take(flat, order), emit.reshaped(kinds, -1, 1), emit.reshaped(best, -1, 1), total


def _best(emit: Emitter, scores: SSAValue, count: int) -> tuple[SSAValue, SSAValue]:
    """The `count` largest elements along the last axis, and their indices, the first of equal ones first."""
    axis = len(emit.shape(scores)) - 1
    if count == 1:
        kept = {"axis": ints([axis]), "keepdims": BoolAttr.from_bool(True)}
        return emit(relay.MaxOp, scores, **kept), emit(relay.ArgmaxOp, scores, **kept)
    properties = {"k": IntegerAttr(count, i64), "axis": IntegerAttr(axis, i64), "dtype": i32}
    found = emit.importer.emit(relay.TopkOp, [scores], properties).found
    return found[0], found[1]


def _floats(emit: Emitter, node: Node, tensor: Tensor) -> SSAValue:
    """A tensor as floats, dequantized if necessary."""
    value = emit.importer.value(tensor)
    if tensor.type == "FLOAT32":
        return value
    if tensor.type != "UINT8":
        raise node.refuse_types(tensor, hint="FLOAT32 and UINT8 are supported")
    codes, wide = node.codes(tensor), emit.cast(value, f32)
    centred = emit(relay.SubtractOp, wide, emit.number(codes.zero_point, wide))
    return emit(relay.MultiplyOp, centred, emit.number(float(codes.scale), centred))


def _decoded(emit: Emitter, node: Node, options: Options) -> SSAValue:
    """The corners [n, 4] of boxes given as centres and sizes relative to anchors: computed in float64 as in LiteRT,
    with the centre and half the size rounded to float32."""
    encoded, _, anchors = node.inputs()
    _, n, width = encoded.shape
    given, base = emit.reshaped(_floats(emit, node, encoded), n, width), _floats(emit, node, anchors)

    def column(matrix: SSAValue, place: int) -> SSAValue:
        return emit.cast(emit.columns(matrix, place, place + 1), f64)

    def scaled(place: int, scale: float) -> SSAValue:
        value = column(given, place)
        return emit(relay.DivideOp, value, emit.number(float(np.float32(scale)), value))

    low, high = list[SSAValue](), list[SSAValue]()
    for axis, (scale, growth) in enumerate(((options.y_scale, options.h_scale), (options.x_scale, options.w_scale))):
        size = column(base, axis + 2)
        centre = emit(relay.MultiplyOp, scaled(axis, scale), size)
        centre = emit.cast(emit(relay.AddOp, centre, column(base, axis)), f32)
        power = emit(relay.ExpOp, scaled(axis + 2, growth))
        half = emit(relay.MultiplyOp, emit(relay.MultiplyOp, power, emit.number(0.5, power)), size)
        half = emit.cast(half, f32)
        low.append(emit(relay.SubtractOp, centre, half))
        high.append(emit(relay.AddOp, centre, half))
    return emit(relay.ConcatenateOp, *low, *high, axis=IntegerAttr(1, i64))
