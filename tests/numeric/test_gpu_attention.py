"""Attention of codes in one launch: the integers of the interpreter, between two products and a softmax."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import BoolAttr, FloatAttr, f32, i8
from xdsl.ir import Attribute, SSAValue

import relay
from relay.dialects import qnn
from relay.dialects import relay as ops
from relay.dialects.attributes import element_type, scalar_attr
from relay.interpreters import run
from tests.numeric.compiled_modules import Net, equal, offsets
from tests.numeric.gpu_models import check
from tests.ptx.interpreter import run as run_ptx

CASES = (
    ((2, 24, 32), 24, 32, ("uint8", "int8"), (113, 0), 0, False),
    ((3, 37, 68), 40, 20, ("int8", "uint8"), (0, 131), 9, False),
    ((2, 70, 64), 128, 64, ("uint8", "uint8"), (7, 250), 120, False),
    ((2, 16, 64), 72, 36, ("int8", "int8"), (-5, 9), -7, True),
)
"""Heads, queries and size; keys; size of values; types and zero points of queries and keys; zero point of values;
whether keys lie as rows."""


def attention(net: Net, number: int) -> None:
    """One attention, with a mask that is added to the scores of each key."""
    (heads, queries, size), keys, width, types, zero_points, of_values, by_rows = CASES[number]
    q = net.argument(net.numbers(types[0], heads, queries, size))
    k = net.argument(net.numbers(types[1], heads, *((keys, size) if by_rows else (size, keys))))
    v = net.argument(net.numbers("int8", heads, keys, width))
    properties = offsets(zero_points) | {"transpose_b": BoolAttr.from_bool(by_rows)}
    scores = net.add(ops.CastOp, [net.add(ops.BatchMatmulOp, [q, k], properties)], {"dtype": f32})
    scores = net.add(ops.MultiplyOp, [scores, net.constant(np.array(2.0**-14, np.float32))], {})
    scores = net.add(ops.AddOp, [scores, net.argument(net.numbers("float32", keys))], {})
    weights = net.add(ops.SoftmaxOp, [scores], {"beta": FloatAttr(1.0, f32)})
    codes = net.add(qnn.QuantizeOp, [weights], quantized(weights))
    properties = offsets((-128, of_values)) | {"transpose_b": BoolAttr.from_bool(False)}
    sums = net.add(ops.BatchMatmulOp, [codes, v], properties)
    net.result(f"attention {number}", net.requantize(sums, width, "int8") if number % 2 else sums)


def quantized(weights: SSAValue) -> dict[str, Attribute]:
    """Weights from 0 to 1 as codes."""
    return {"scale": scalar_attr(1 / 64, f32), "zero_point": scalar_attr(-128, element_type("int32")), "out_dtype": i8}


def test_one_launch():
    net = Net(51)
    for number in range(len(CASES)):
        attention(net, number)
    model = check(net)
    kernels = [row["kernel"] for row in model.graph["device"]["launches"]]
    assert len(kernels) == len(CASES) and all(name.startswith("attention") for name in kernels)


def test_ptx():
    net = Net(52)
    attention(net, 1)
    module = net.module()
    (found,) = run_ptx(relay.build(module, target="cuda"), net.inputs)[0]
    assert equal(found, run(module, net.inputs)[0])
