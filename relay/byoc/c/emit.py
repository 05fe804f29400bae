"""From a function of `relay`, `qnn` and `byoc` ops to a `Program`: a row per op, and one per composite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from relay.byoc.c.emitter import Emitter
from relay.byoc.c.program import Program, Tensor
from relay.byoc.c.rows import contraction, elementwise, image, movement, quantized, recurrent, reduce
from relay.byoc.c.rows.requantize import requantize
from relay.byoc.quantized import form_refusal
from relay.dialects import byoc, qnn, relay
from relay.dialects.op import rank
from relay.errors import Malformed, Unsupported
from relay.lowering.exported_regions import Regions
from relay.transforms.location import place

Row = Callable[[Emitter, Any], None]
"""Writes an op whose operands have tensors."""

ROWS: Mapping[type[Operation], Row] = {
    **dict.fromkeys(elementwise.BINARY, elementwise.binary),
    **dict.fromkeys(elementwise.UNARY, elementwise.unary),
    relay.WhereOp: elementwise.where,
    relay.ClipOp: elementwise.clip,
    relay.CastOp: elementwise.cast,
    relay.BiasAddOp: elementwise.bias_add,
    relay.LookupOp: elementwise.lookup,
    relay.FixedPointMultiplyOp: elementwise.fixed_point_multiply,
    relay.FixedPointReciprocalOp: elementwise.fixed_point_reciprocal,
    relay.HighMultiplyOp: elementwise.high_multiply,
    relay.RoundingRightShiftOp: elementwise.rounding_right_shift,
    relay.ConstantOp: movement.constant,
    relay.ReshapeOp: movement.reshape,
    relay.TransposeOp: movement.transpose,
    relay.BroadcastToOp: movement.broadcast_to,
    relay.ConcatenateOp: movement.concatenate,
    relay.StridedSliceOp: movement.strided_slice,
    relay.TakeOp: movement.take,
    relay.GatherNdOp: movement.gather_nd,
    relay.PadOp: movement.pad,
    relay.SumOp: reduce.sum_,
    relay.MaxOp: reduce.max_,
    relay.MinOp: reduce.min_,
    relay.ArgmaxOp: reduce.argmax,
    relay.ArgminOp: reduce.argmin,
    relay.MaxPool2dOp: reduce.max_pool2d,
    relay.AvgPool2dOp: reduce.avg_pool2d,
    relay.SoftmaxOp: quantized.softmax_real,
    relay.Resize2dOp: image.resize2d,
    relay.Conv2dOp: contraction.conv2d,
    relay.DenseOp: contraction.dense,
    qnn.Conv2dOp: contraction.conv2d,
    qnn.DenseOp: contraction.dense,
    qnn.QuantizeOp: quantized.quantize,
    qnn.DequantizeOp: quantized.dequantize,
    qnn.RequantizeOp: requantize,
    qnn.AddOp: quantized.add,
    qnn.SubtractOp: quantized.subtract,
    qnn.MulOp: quantized.mul,
    qnn.MeanOp: reduce.mean,
    qnn.SoftmaxOp: quantized.softmax,
    qnn.SigmoidOp: quantized.unary,
    qnn.TanhOp: quantized.unary,
    qnn.ConcatenateOp: movement.qnn_concatenate,
    qnn.DynamicQuantizeOp: quantized.dynamic_quantize,
    qnn.LstmOp: recurrent.lstm,
    qnn.SvdfOp: recurrent.svdf,
}


def emit(function: FuncOp, regions: Regions | None = None) -> Program:
    """The program of a function of one block, which may call the external functions of `regions`.

    Raises Unsupported, naming the op and its source, for what C does not get from us.
    """
    if len(function.body.blocks) != 1:
        raise Unsupported(f"function {function.sym_name.data}", "has no body of one block", "c takes straight code")
    block = function.body.block
    end = block.last_op
    if not isinstance(end, func.ReturnOp):
        raise Malformed(f"function {function.sym_name.data}", "does not end with func.return")
    e = Emitter(Program([], []))
    bind_inputs(e, block.args)
    bind_outputs(e, block, end.operands)
    for op in block.ops:
        if isinstance(op, func.CallOp) and regions is not None:
            call(e, op, regions)
        elif op is not end:
            write(e, op)
    for value, output in zip(end.operands, e.program.outputs, strict=True):
        if (held := e.tensors[value]) is not output:
            e.step(end, e.copy_call(e.touch(held), e.touch(output), output))
    e.program.constants = {name: c for name, c in e.program.constants.items() if name in e.used}
    return e.program


def call(e: Emitter, op: func.CallOp, regions: Regions) -> None:
    """A call of an external function; the model ends with its number where it fails. Raises Unsupported for another."""
    callee = op.callee.string_value()
    if callee not in regions.by_name:
        raise Unsupported(place(op), f"{op.name} of {callee} is not supported by c")
    tensors = [*map(e.read, op.operands), *map(e.write, op.results)]
    e.step(op, regions.call(callee, tensors, str(len(e.program.steps))))


def bind_inputs(e: Emitter, values: Sequence[SSAValue]) -> None:
    """Let the caller's memory hold values that nothing writes."""
    for value in values:
        made = Tensor(f"input_{len(e.program.inputs)}", e.type(value), e.shape(value), "input")
        e.tensors[value] = made
        e.program.inputs.append(made)


def bind_outputs(e: Emitter, block: Block, values: Sequence[SSAValue]) -> None:
    """Let results be computed where the caller wants them; each value once, the others are copied."""
    for value in values:
        made = Tensor(f"output_{len(e.program.outputs)}", e.type(value), e.shape(value), "output")
        e.program.outputs.append(made)
        while value not in e.tensors and isinstance(value.owner, Operation) and value.owner.parent is block:
            if isinstance(value.owner, relay.ConstantOp):
                break
            e.tensors[value] = made
            if not isinstance(value.owner, relay.ReshapeOp):
                break
            value = value.owner.input


def write(e: Emitter, op: Operation) -> None:
    """One op. Raises Unsupported."""
    if isinstance(op, byoc.CompositeOp):
        composite(e, op)
    elif (reason := form_refusal(op)) is not None:
        raise Unsupported(place(op), reason)
    elif (row := ROWS.get(type(op))) is not None:
        row(e, op)
    else:
        raise Unsupported(place(op), f"{op.name} is not supported by c")


def composite(e: Emitter, op: byoc.CompositeOp) -> None:
    """A contraction with what follows it, as one call; other composites op by op."""
    for argument, operand in zip(op.body.block.args, op.inputs, strict=True):
        e.tensors[argument] = e.tensors[operand]
    *ops, end = op.body.block.ops
    for result, value in zip(op.outputs, end.operands, strict=True):
        if result in e.tensors and value not in e.tensors:
            e.tensors[value] = e.tensors[result]
    if op.composite.data in ("c.conv2d", "c.dense"):
        for constant in ops:
            if isinstance(constant, relay.ConstantOp):
                write(e, constant)
        contract(e, [each for each in ops if not isinstance(each, relay.ConstantOp)])
    else:
        for each in ops:
            write(e, each)
    for result, value in zip(op.outputs, end.operands, strict=True):
        e.alias(result, value)


def contract(e: Emitter, ops: Sequence[Operation]) -> None:
    """A contraction, a bias that is added to it, and an epilogue; the last two may be missing."""
    head, *tail = ops
    if not isinstance(head, relay.Conv2dOp | qnn.Conv2dOp | relay.DenseOp | qnn.DenseOp):
        raise Unsupported(place(head), f"{head.name} is no contraction")
    bias, epilogue = None, None
    if tail and isinstance(first := tail[0], relay.BiasAddOp):
        if first.axis.value.data % rank(first.data) != rank(first.data) - 1:
            raise Unsupported(place(first), "a bias that does not lie along the channels is no part of a contraction")
        bias, tail = first, tail[1:]
    if tail and isinstance(first := tail[0], qnn.RequantizeOp | relay.ClipOp | relay.MaximumOp):
        epilogue, tail = first, tail[1:]
    if tail:
        raise Unsupported(place(tail[0]), f"{tail[0].name} is no epilogue of a contraction")
    contraction.contract(e, head, bias, epilogue)


def refusal(ops: Sequence[Operation]) -> str | None:
    """Why these ops, one or a contraction with what follows it, cannot become C; None if they can."""
    e = Emitter(Program([], []))
    inside = {result for op in ops for result in op.results}
    outside = dict.fromkeys(value for op in ops for value in op.operands if value not in inside)
    try:
        bind_inputs(e, list(outside))
        write(e, ops[0]) if len(ops) == 1 else contract(e, ops)
    except Unsupported as error:
        return error.what
    return None
