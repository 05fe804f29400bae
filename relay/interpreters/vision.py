"""Numpy implementation of ops of object detection."""

from __future__ import annotations

import numpy as np

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.interpreters.meaning import Meanings


def overlaps(box: Array, boxes: Array) -> Array:
    """Intersection over union of `box` with each of `boxes` [n, 4], whose corners are sorted; 0 where an area is 0."""
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    own = (box[2:] - box[:2]).prod()
    shared = np.maximum(high - low, np.float32(0)).prod(axis=1)
    found = np.zeros_like(shared)
    there = (areas > 0) & (own > 0)
    return np.divide(shared, own + areas - shared, out=found, where=there)


def non_max_suppression(op: relay.NonMaxSuppressionOp, boxes: Array, scores: Array) -> tuple[Array, Array]:
    most = op.max_output_size.value.data
    overlap, least = (np.float32(each.value.data) for each in (op.iou_threshold, op.score_threshold))
    sorted_boxes = np.concatenate([np.minimum(boxes[..., :2], boxes[..., 2:]),
                                   np.maximum(boxes[..., :2], boxes[..., 2:])], axis=-1)  # fmt: skip
    indices, count = np.zeros((*scores.shape[:2], most), np.int32), np.zeros(scores.shape[:2], np.int32)
    for batch, kind in np.ndindex(*count.shape):
        places, row = sorted_boxes[batch], scores[batch, kind]
        order = np.argsort(-row, kind="stable")
        order = order[row[order] > least]
        while len(order) and count[batch, kind] < most:
            best, order = order[0], order[1:]
            indices[batch, kind, count[batch, kind]] = best
            count[batch, kind] += 1
            order = order[~(overlaps(places[best], places[order]) > overlap)]
    return indices, count


MEANINGS: Meanings = {relay.NonMaxSuppressionOp: non_max_suppression}
