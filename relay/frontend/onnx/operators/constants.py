"""Imports constants, shapes, casts, and operators that return their input."""

from __future__ import annotations

import numpy as np
import onnx
from onnx.helper import np_dtype_to_tensor_dtype
from xdsl.dialects.builtin import UnitAttr, i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.dialects.element_types import bits_of, is_float
from relay.dialects.op import DYNAMIC
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Kind, Node
from relay.frontend.onnx.table import op


@op("Constant")
def constant(importer: Importer, node: Node) -> SSAValue:
    """Import Constant, whose value is in one of six attributes."""
    name = node.outputs[0]
    for key, kind in (("value", Kind.TENSOR), ("sparse_value", Kind.SPARSE_TENSOR)):
        if (found := node.attributes.get(key)) is not None and found.type == kind:
            array = importer.model.array(found.t) if key == "value" else _dense(importer, node, found.sparse_tensor)
            return importer.constant(array, name)
    for key, dtype in (("value_float", np.float32), ("value_int", np.int64)):
        if key in node.attributes:
            number = node.real(key) if dtype is np.float32 else node.integer(key)
            return importer.constant(np.asarray(number, dtype), name)
    if (reals := node.reals("value_floats")) is not None:
        return importer.constant(np.asarray(reals, np.float32), name)
    if (numbers := node.integers("value_ints")) is not None:
        return importer.constant(np.asarray(numbers, np.int64), name)
    raise node.unsupported(f"holds {', '.join(node.attributes) or 'nothing'}")


def _dense(importer: Importer, node: Node, sparse: onnx.SparseTensorProto) -> Array:
    """The dense array of a sparse tensor."""
    values, indices = importer.model.array(sparse.values), importer.model.array(sparse.indices)
    dense = np.zeros(tuple(sparse.dims), values.dtype)
    try:
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
    except (IndexError, ValueError) as error:
        raise node.malformed(f"its sparse value cannot be read: {error}") from None
    return dense


@op("Identity", "Dropout")
def identity(importer: Importer, node: Node) -> list[SSAValue]:
    """Import Identity, and Dropout at inference, whose mask is all true."""
    if node.kind == "Dropout" and node.optional(2) is not None and node.scalar(2):
        raise node.unsupported("is in training mode", "export the model for inference")
    found = [node.input(0)]
    if node.wants(1):
        found.append(importer.unnamed(np.ones(node.static(0), np.bool_)))
    return found


@op("Shape")
def shape(importer: Importer, node: Node) -> SSAValue:
    dims = node.shape(0)
    start, end, _ = slice(node.integer("start", 0), node.integer("end", len(dims))).indices(len(dims))
    if DYNAMIC not in dims[start:end]:
        return importer.unnamed(np.asarray(dims[start:end], np.int64))
    return importer.slice(importer.sizes(node.input(0)), {0: (start, max(start, end))})


@op("Size")
def size(importer: Importer, node: Node) -> SSAValue:
    return importer.call(relay.NdarraySizeOp, node.input(0), dtype=i64)


@op("Cast")
def cast(importer: Importer, node: Node) -> SSAValue:
    number = node.integer("to")
    if number == onnx.TensorProto.STRING:
        raise node.unsupported("casts to strings")
    return _cast(importer, node, number)


@op("CastLike")
def cast_like(importer: Importer, node: Node) -> SSAValue:
    return _cast(importer, node, int(np_dtype_to_tensor_dtype(importer.dtype(node.input(1)))))


def _cast(importer: Importer, node: Node, number: int) -> SSAValue:
    """Cast the input to the type with this number; 8-bit floats saturate unless the node's attribute says otherwise."""
    data, element = node.input(0), importer.element_of(number, node)
    saturates = is_float(element) and bits_of(element) <= 8 and node.integer("saturate", 1)
    if importer.element(data) == element:
        return data
    return importer.call(relay.CastOp, data, dtype=element, saturate=UnitAttr() if saturates else None)
