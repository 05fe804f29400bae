"""`linalg-specialize-generic-ops`: replaces generic loop nests on tensors (stage 2) by equivalent named ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseArrayBase, DenseIntElementsAttr, IntegerAttr, ModuleOp, TensorType, i32, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects import linalg as named
from relay.lowering.scheduling.affine import dims_of, is_identity, kinds_of
from relay.lowering.scheduling.contraction import window_of
from relay.passes import Pass

SUMS = ("arith.addi", "arith.addf")
ELEMENTWISE: dict[str, type[Operation]] = {
    f"arith.{kind.name.removeprefix('linalg.')}{letter}": kind
    for kind in (linalg.AddOp, linalg.SubOp, linalg.MulOp)
    for letter in "fi"
}
"""The named ops for a single op on two tensors of one type."""
POOLS = {
    "arith.maxsi": named.PoolingNhwcMaxOp,
    "arith.maximumf": named.PoolingNhwcMaxOp,
    "arith.maxui": named.PoolingNhwcMaxUnsignedOp,
    "arith.addi": named.PoolingNhwcSumOp,
    "arith.addf": named.PoolingNhwcSumOp,
}


@dataclass(frozen=True)
class LinalgSpecializeGenericOps(Pass):
    """Turn each `linalg.generic` that equals a named op of MLIR's `linalg` into that op.

    These are `matmul`, `batch_matmul` (also of transposed matrices), `conv_2d_nhwc_fhwc` and
    `depthwise_conv_2d_nhwc_hwc`, with `_q` if there are zero points, `pooling_nhwc_max`, `_max_unsigned` and `_sum`,
    `quantized_matmul` and `quantized_batch_matmul`, and `add`, `sub` and `mul`. Named products and convolutions
    sign-extend integers: nests of unsigned codes, or of u8 by s8, stay generic, as do products with zero points by a
    transposed matrix, such as those of `relay.nn.dense`. Other tools can find ops by these names; nothing in a build
    reads them, so no build runs this pass. Its inverse is MLIR's `linalg-generalize-named-ops`.
    """

    name: ClassVar[str] = "linalg-specialize-generic-ops"
    requires = ("linalg",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for generic in [inner for inner in op.walk() if isinstance(inner, linalg.GenericOp)]:
            specialize(generic)


@dataclass(frozen=True)
class Factor:
    """A factor of a product: `widened(argument) - zero_point`, in integers or floats."""

    argument: BlockArgument
    zero_point: SSAValue | None


def specialize(generic: linalg.GenericOp) -> None:
    """Replace a loop nest on tensors by an equivalent named op, if there is one."""
    if len(generic.inputs) != 2 or len(generic.res) != 1 or len(generic.outputs) != 1:
        return
    last = generic.body.block.last_op
    made = last.operands[0].owner if last is not None else None
    if not isinstance(made, Operation):
        return
    new = elementwise(generic, made) or product(generic, made) or pool(generic, made)
    if new is not None:
        new.location = generic.location
        Rewriter.replace_op(generic, new)


def elementwise(generic: linalg.GenericOp, made: Operation) -> Operation | None:
    """Return the named op for one elementwise op on two tensors, else None."""
    kind, block = ELEMENTWISE.get(made.name), generic.body.block
    same = all(is_identity(map.data, len(generic.iterator_types)) for map in generic.indexing_maps)
    if (
        kind is None
        or not same
        or len({value.type for value in generic.operands}) > 1
        or tuple(made.operands) != tuple(block.args[:2])
    ):
        return None
    return rebuilt(generic, kind, (), {})


def factor(value: SSAValue) -> Factor | None:
    """Match an operand of a multiplication of the form `widened(argument) - zero_point`, where widening (sign
    extension) and zero point are optional; None if it has another form, such as a zero-extended integer."""
    zero_point: SSAValue | None = None
    if isinstance(owner := value.owner, arith.SubiOp) and not isinstance(owner.rhs.owner, Block):
        value, zero_point = owner.lhs, owner.rhs
    if isinstance(owner := value.owner, Operation) and owner.name == "arith.extsi":
        value = owner.operands[0]
    return Factor(value, zero_point) if isinstance(value, BlockArgument) else None


def product(generic: linalg.GenericOp, made: Operation) -> Operation | None:
    """Return the named op for a sum of products, of matrices or of windows of images with a kernel; else None."""
    left, right, accumulator = generic.body.block.args
    if made.name not in SUMS or made.operands[0] is not accumulator:
        return None
    multiplied = made.operands[1].owner
    if not isinstance(multiplied, arith.MuliOp | arith.MulfOp):
        return None
    factors = [factor(value) for value in multiplied.operands]
    if any(each is None for each in factors) or [each.argument for each in factors if each] != [left, right]:
        return None
    zero_points = [each.zero_point for each in factors if each]
    loops, (data, kernel, result) = kinds_of(generic), [dims_of(map.data) for map in generic.indexing_maps]
    match loops:
        case "ppr" | "pppr":
            batch, (i, j, k) = [*range(len(loops) - 3)], range(len(loops) - 3, len(loops))
            straight, transposed = kernel == [*batch, k, j], kernel == [*batch, j, k]
            if data != [*batch, i, k] or result != [*batch, i, j]:
                return None
            if zero_points == [None, None] and (straight or transposed):
                kind = named.BatchMatmulOp if batch else named.MatmulOp
                return rebuilt(generic, kind, (), {"indexing_maps": generic.indexing_maps})
            if not straight or not all(point is None or point.type == i32 for point in zero_points):
                return None
            return rebuilt(generic, named.QuantizedBatchMatmulOp if batch else named.QuantizedMatmulOp, zero_points, {})
        case "pppprrr" if kernel == [3, 4, 5, 6] and result == [0, 1, 2, 3]:
            kinds, channel = (linalg.Conv2DNhwc_FhwcOp, named.Conv2DNhwcFhwcQOp), 6
        case "pppprr" if kernel == [4, 5, 3] and result == [0, 1, 2, 3]:
            kinds, channel = (named.DepthwiseConv2DNhwcHwcOp, named.DepthwiseConv2DNhwcHwcQOp), 3
        case _:
            return None
    windows = windows_of(generic, channel)
    if windows is None:
        return None
    if zero_points == [None, None]:
        return rebuilt(generic, kinds[0], (), windows)
    if not all(point is None or point.type == i32 for point in zero_points):
        return None
    return rebuilt(generic, kinds[1], zero_points, windows)


def pool(generic: linalg.GenericOp, made: Operation) -> Operation | None:
    """Return the named op for the maximum of each window, or the sum; else None."""
    argument, _, accumulator = generic.body.block.args
    kind = POOLS.get(made.name)
    if kind is None or made.operands[0] is not accumulator or kinds_of(generic) != "pppprr":
        return None
    found = factor(made.operands[1])
    if found is None or found.argument is not argument or found.zero_point is not None:
        return None
    windows = windows_of(generic, 3)
    _, cells, result = (dims_of(map.data) for map in generic.indexing_maps)
    fits = cells == [4, 5] and result == [0, 1, 2, 3]
    return rebuilt(generic, kind, (), windows) if fits and windows is not None else None


def windows_of(generic: linalg.GenericOp, channel: int) -> dict[str, Attribute] | None:
    """Return the strides and dilations by which the image is read, if its map is `(n, s*y + t*i, s*x + t*j, c)` with
    the dimensions n, y, x, ..., i, j; else None."""
    found = window_of(generic.indexing_maps.data[0].data, (4, 5), [channel])
    if found is None:
        return None
    names, pair = ("strides", "dilations"), TensorType(i64, [2])
    return {name: DenseIntElementsAttr.from_list(pair, each) for name, each in zip(names, found, strict=True)}


def rebuilt(
    generic: linalg.GenericOp,
    kind: type[Operation],
    zero_points: Sequence[SSAValue | None],
    properties: Mapping[str, Attribute],
) -> Operation:
    """Return a named op of class `kind` with the operands of `generic`, and with `zero_points` as further inputs; a
    constant 0 replaces a zero point that is None."""
    body = generic.body.clone()
    values: list[SSAValue] = []
    for number, point in enumerate(zero_points, 2):
        if point is None:
            zero = arith.ConstantOp.create(result_types=[i32], properties={"value": IntegerAttr(0, i32)})
            Rewriter.insert_op(zero, InsertPoint.before(generic))
            point = zero.result
        argument = body.block.insert_arg(i32, number)
        point.replace_uses_with_if(argument, lambda use: use.operation.parent is body.block)
        values.append(point)
    inputs = [*generic.inputs, *values]
    sizes = DenseArrayBase.from_list(i32, [len(inputs), len(generic.outputs)])
    return kind.create(
        operands=[*inputs, *generic.outputs],
        result_types=generic.result_types,
        properties={**properties, "operandSegmentSizes": sizes},
        regions=[body],
    )
