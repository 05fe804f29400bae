"""Attention with heads, and rotary position embeddings, on floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, BoolAttr, FloatAttr, IntegerAttr, TensorType, i1
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def

from relay.dialects.op import DYNAMIC, TENSOR, OneResultOp, Type, broadcast, rank, require, shape, tensor


def check_broadcast(what: str, value: SSAValue, dims: tuple[int, ...]) -> None:
    """Require that the value broadcasts to `dims` without changing `dims`."""
    fits = broadcast(what, shape(value), dims)
    same = len(fits) == len(dims) and all(a == b or DYNAMIC in (a, b) for a, b in zip(fits, dims, strict=True))
    require(same, f"{what}: {list(shape(value))} does not broadcast to {list(dims)}")


@irdl_op_definition
class AttentionOp(OneResultOp):
    """`softmax(cap((query * scale) @ transpose(key)) + mask) @ value`, for each head separately; the softmax is along
    the last axis.

    query is [batch, heads, rows, size], key [batch, groups, keys, size], value [batch, groups, keys, width], the result
    [batch, heads, rows, width]; batches broadcast. `heads` is a multiple of `groups`: neighbouring heads share the keys
    and values of a group. The mask broadcasts to [batch, heads, rows, keys]: float masks are added; false in a boolean
    mask excludes a key. `causal`: row i also excludes the keys after `i + causal`; `causal` is the number of keys
    before the first row. A row in which all keys are excluded, by booleans, `causal` or `-inf`, is 0. `cap(s)` is
    `softcap * tanh(s / softcap)`. The op has no operand for cached keys and values of the past: concatenate them before
    the new keys and values. Source: ONNX Attention 23, torch.nn.functional.scaled_dot_product_attention.
    """

    name = "relay.nn.attention"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("mask",)
    INDEPENDENT: ClassVar[slice] = slice(1)
    query = operand_def(TENSOR)
    key = operand_def(TENSOR)
    value = operand_def(TENSOR)
    mask = opt_operand_def(TENSOR)
    scale = prop_def(FloatAttr)
    causal = opt_prop_def(IntegerAttr)
    softcap = opt_prop_def(FloatAttr)
    assembly_format = "$query `,` $key `,` $value (`,` $mask^)? attr-dict `:` functional-type(operands, results)"

    def scores(self) -> tuple[int, ...]:
        """The shape of the scores: [batch, heads, rows, keys]."""
        leading = broadcast(self.name, *(shape(each)[:1] for each in (self.query, self.key, self.value)))
        return (*leading, *shape(self.query)[1:3], shape(self.key)[2])

    def infer(self) -> Sequence[Type]:
        given = (self.query, self.key, self.value)
        require(all(rank(each) == 4 for each in given), f"{self.name}: takes query, key and value of rank 4")
        element = tensor(self.query).element_type
        require(isinstance(element, AnyFloat), f"{self.name}: takes floats, not {element}")
        require(all(tensor(each).element_type == element for each in given), f"{self.name}: element types differ")
        query, key, value = map(shape, given)
        for what, one, other in (
            ("heads of key and value", key[1], value[1]),
            ("keys of key and value", key[2], value[2]),
            ("sizes of query and key", query[3], key[3]),
        ):
            require(one == other or DYNAMIC in (one, other), f"{self.name}: {what} are {one} and {other}")
        heads, groups = query[1], key[1]
        require(DYNAMIC in (heads, groups) or (groups > 0 and heads % groups == 0),
                f"{self.name}: {heads} heads share {groups} groups of keys")  # fmt: skip
        if self.mask is not None:
            kind, scores = tensor(self.mask).element_type, self.scores()
            require(kind in (i1, element), f"{self.name}: the mask is {kind}; it takes i1 or {element}")
            check_broadcast(self.name, self.mask, scores)
        return [TensorType(element, [*self.scores()[:3], value[3]])]


@irdl_op_definition
class RotaryEmbeddingOp(OneResultOp):
    """Rotate pairs of elements of each row by an angle: `(a * cos - b * sin, a * sin + b * cos)`.

    Along the last axis, the first `2 * pairs` elements are rotated and the others stay; a and b are the first and the
    second half of them, or, with `interleaved`, neighbours. cos and sin, [..., pairs], broadcast to the pairs of the
    data. Source: ONNX RotaryEmbedding 23.
    """

    name = "relay.nn.rotary_embedding"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("cos", "sin")
    SAME_AXES: ClassVar[bool] = True
    INDEPENDENT: ClassVar[slice] = slice(-1)
    data = operand_def(TENSOR)
    cos = operand_def(TENSOR)
    sin = operand_def(TENSOR)
    interleaved = prop_def(BoolAttr, default_value=IntegerAttr.from_bool(False))

    def infer(self) -> Sequence[Type]:
        type, pairs = tensor(self.data), shape(self.cos)[-1:]
        require(isinstance(type.element_type, AnyFloat), f"{self.name}: takes floats, not {type.element_type}")
        dims = type.get_shape()
        require(bool(dims) and bool(pairs) and pairs[0] != DYNAMIC, f"{self.name}: takes a known number of pairs")
        require(dims[-1] != DYNAMIC and 0 < 2 * pairs[0] <= dims[-1],
                f"{self.name}: {pairs[0]} pairs of a row of {dims[-1]}")  # fmt: skip
        for each in (self.cos, self.sin):
            require(tensor(each).element_type == type.element_type, f"{self.name}: element types differ")
            turned = (*dims[:-1], pairs[0])
            check_broadcast(self.name, each, turned)
        return [type]
