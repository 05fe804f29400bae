"""Rewrite a model for a fixed number of past positions so that it works for any number up to that one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, TensorType, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay import signature
from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, int_values, ints
from relay.dialects.op import rank, shape, tensor
from relay.symbols import SYMBOLS
from relay.transforms.dead_ops import erase_dead
from relay.transforms.expansion import constant_before, inserted
from relay.transforms.pasts import Pasts


class Growing(Pasts):
    """Rewrites the function that was built for the largest number of past positions so that it works for any number up
    to that one: the integers that are linear in the number are computed from a state that holds it, and the softmaxes
    along the positions are masked."""

    def rewrite(self) -> None:
        """Rewrite `self.function`, the model for the largest of the compared numbers of past positions, so that it
        works for any number."""
        block = self.function.body.block
        position = block.insert_arg(TensorType(i64, [1]), len(block.args))
        position.name_hint = "position"
        for value, arrays in self.known.items():
            value.replace_all_uses_with(self.number(value, arrays, position))
        for op, moved in self.begins.items():
            self.take_rows(op, moved, position)
        if self.masked:
            self.mask(position)
        for op, (keys, number) in self.scaled.items():
            scale = inserted(op, relay.ReshapeOp, [number], {"newshape": ints([])})
            op.operands = [inserted(op, relay.MultiplyOp, [op.tensor_a, scale], {}), keys]
        for op, weights in self.guarded.items():
            plain = inserted(op, type(op), [weights, op.tensor_b], op.properties)
            zero = constant_before(op, np.zeros((), dtype_of(tensor(plain).element_type)))
            Rewriter.replace_op(
                op, relay.WhereOp.make([inserted(op, relay.IsnanOp, [plain], {}), zero, plain], like=op)
            )
        for join, (argument, axis) in self.caches.items():
            cache = Rewriter.replace_value_with_new_type(block.args[argument], join.result.type)
            zeros = [constant_before(join, np.zeros(count, np.int64)) for count in (axis, rank(cache) - axis - 1)]
            parts = [part for part in (zeros[0], position, zeros[1]) if shape(part)[0]]
            start = inserted(join, relay.ConcatenateOp, parts, {"axis": IntegerAttr(0, i64)})
            Rewriter.replace_op(join, relay.DynamicUpdateSliceOp.make([cache, join.operands[1], start], {}, like=join))
        end = block.last_op
        assert end is not None
        end.operands = [
            *end.operands,
            inserted(end, relay.AddOp, [position, constant_before(end, np.array([self.rows]))], {}),
        ]
        self.describe(position)
        erase_dead(list(block.ops))

    def number(self, value: SSAValue, arrays: Sequence[Array], position: SSAValue) -> SSAValue:
        """Return the value that replaces %v, whose elements follow from sizes alone and are linear in the number of
        past positions. `arrays`: its elements for each number in `self.pasts`; `position`: the number at run time.

        %v  =>  arrays[-1] if the value does not vary, else position * step + (arrays[-1] - pasts[-1] * step), where
        step is the difference of the last two arrays
        """
        op = value.owner
        assert isinstance(op, Operation)
        last = arrays[-1]
        if value not in self.varied:
            return constant_before(op, last)
        step = last - arrays[-2]
        moving = inserted(op, relay.ReshapeOp, [position], {"newshape": ints([1] * last.ndim)})
        moving = inserted(op, relay.CastOp, [moving], {"dtype": tensor(value).element_type})
        if (step != 1).any():
            moving = inserted(op, relay.MultiplyOp, [moving, constant_before(op, step)], {})
        return inserted(
            op, relay.AddOp, [moving, constant_before(op, last - step * last.dtype.type(self.pasts[-1]))], {}
        )

    def take_rows(self, op: relay.StridedSliceOp, moved: Mapping[int, int], position: SSAValue) -> None:
        """relay.strided_slice %x from past + offset on  =>  relay.take %x, position + offset + [0, 1, ...]

        `past` is the number of past positions for which the slice was built, and `position` this number at run time.
        `moved` maps each axis along which the slice begins at `past + offset` to `offset`.
        """
        dims = shape(op.result)
        numbers = [list(int_values(each)) for each in (op.begin, op.end, op.strides)]
        for axis in moved:
            for row, number in zip(numbers, (0, shape(op.input)[axis], 1), strict=True):
                row[axis] = number
        given = {name: ints(row) for name, row in zip(("begin", "end", "strides"), numbers, strict=True)}
        found = inserted(op, relay.StridedSliceOp, [op.input], given)
        for axis, offset in moved.items():
            places = inserted(op, relay.AddOp, [position, constant_before(op, np.arange(dims[axis]) + offset)], {})
            found = inserted(op, relay.TakeOp, [found, places], {"axis": IntegerAttr(axis, i64)})
        op.result.replace_all_uses_with(found)

    def mask(self, position: SSAValue) -> None:
        """relay.nn.softmax %scores  =>  relay.nn.softmax (where j < position + rows, %scores, -inf), for the index j of
        a score in its row, so that positions after the last one get no weight. `position`: the number of past
        positions; rows: the number of new positions of a run."""
        first = self.function.body.block.first_op
        assert first is not None
        columns = constant_before(first, np.arange(self.maximum) + (1 - self.rows))
        seen = inserted(first, relay.LessEqualOp, [columns, position], {})
        for op in self.masked:
            never = constant_before(op, np.array(-np.inf, dtype_of(tensor(op.data).element_type)))
            op.operands = [inserted(op, relay.WhereOp, [seen, op.data, never], {})]

    def describe(self, position: SSAValue) -> None:
        """Update the function's type, and mark the arguments that are states."""
        function, block = self.function, self.function.body.block
        inputs, outputs = self.inputs, self.outputs
        for argument, result in self.given_back.items():
            inputs[argument] = replace(inputs[argument], kind="state", shape=shape(block.args[argument]))
            outputs[result] = inputs[argument]
        counter = signature.TensorInfo(self.name, (1,), np.dtype(np.int64), "state")
        function.update_function_type()
        function.attributes.pop(SYMBOLS, None)
        signature.write(function, [*inputs, counter], [*outputs, counter])
