"""Random ops of the dialects `relay` and `qnn`, with operands and properties that their verifiers accept.

`PROPERTIES` knows for each name of a property how to draw its value, whatever op has it; an op that its verifier
rejects is drawn again. Convolutions and dense ops, whose operands depend on each other, have functions of their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import BoolAttr, FloatAttr, IntegerAttr, StringAttr, TensorType, f32, i32, i64
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import OptOperandDef, VarOperandDef
from xdsl.utils.exceptions import VerifyException

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of, element_type, elements, ints, scalar_attr
from relay.dialects.op import TensorOp, shape, tensor
from relay.errors import RelayError
from relay.interpreters.arithmetic import code_range, quantize_multiplier, quantize_multipliers

TYPES = ("int8", "int8", "uint8", "float32", "float32", "int16", "int32", "int64", "float64", "bool")
TRIES = 40
MISFITS = (
    VerifyException,
    RelayError,
    ValueError,
    LookupError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    TypeError,
)
"""The exceptions raised for operands and properties that do not fit together. They include exceptions of type
inference, which runs before the verifier."""
Properties = dict[str, Attribute]


@cache
def kinds() -> Mapping[str, type[TensorOp]]:
    """By name, every op that has tensor operands, except the ops with dynamic shapes (`relay.dyn`)."""
    found = [getattr(dialect, name) for dialect in (relay, qnn) for name in dir(dialect)]
    ops = [cls for cls in found if inspect.isclass(cls) and issubclass(cls, TensorOp) and "name" in vars(cls)]
    return {
        cls.name: cls for cls in ops if cls.get_irdl_definition().operands and not cls.name.startswith("relay.dyn.")
    }


def numbers(rng: np.random.Generator, dtype: str, dims: Sequence[int]) -> Array:
    """Random elements: floats of both signs, or integers of the type's whole range, limited to -4000 .. 4000."""
    if dtype.startswith("float"):
        return np.asarray(3 * rng.standard_normal(dims), dtype)
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, dims), dtype)
    low, high = code_range(np.dtype(dtype))
    return np.asarray(rng.integers(max(low, -4000), min(high, 4000) + 1, dims), dtype)


class RandomOps:
    """Draws random ops and adds them to a block."""

    def __init__(self, seed: Sequence[int], block: Block):
        self.rng, self.block, self.kind = np.random.default_rng(seed), block, ""
        self.first = len(block.args)

    def below(self, count: int) -> int:
        return int(self.rng.integers(count))

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def value(self, dtype: str, dims: Sequence[int], constant: bool = False) -> SSAValue:
        """A new argument of the block with this type and shape, or a random constant."""
        if not constant:
            return self.block.insert_arg(TensorType(element_type(dtype), list(dims)), len(self.block.args))
        return self.constant(numbers(self.rng, dtype, dims))

    def constant(self, array: Array) -> SSAValue:
        return relay.ConstantOp.make([], {"value": elements(array)}).result

    def add(
        self, cls: type[TensorOp], operands: Sequence[SSAValue], properties: Mapping[str, Attribute | None]
    ) -> SSAValue:
        """Create an op in the block and verify it; return its first result. Raises VerifyException, RelayError, or
        another of `MISFITS` if the operands and properties do not fit together."""
        op = cls.make(operands, properties)
        for operand in operands:
            if isinstance(operand.owner, relay.ConstantOp) and operand.owner.parent is None:
                self.block.add_op(operand.owner)
        self.block.add_op(op)
        op.verify()
        return op.results[0]

    def case(self, cls: type[TensorOp], x: SSAValue | None = None) -> SSAValue | None:
        """Draw an op of this class, with `x` as its first operand if given; return its first result, None if no valid
        op was drawn in `TRIES` attempts."""
        product = PRODUCTS.get(cls)
        for _ in range(TRIES):
            arguments, last = len(self.block.args), self.block.last_op
            try:
                return product(self, x) if product else self.drawn(cls, x)
            except MISFITS:
                for use in list(x.uses) if x is not None else ():
                    if use.operation.parent is None:
                        use.operation.drop_all_references()
                while (op := self.block.last_op) is not last and op is not None:
                    op.detach()
                    op.erase(safe_erase=False)
                for argument in list(self.block.args)[arguments:]:
                    self.block.erase_arg(argument, safe_erase=False)
        return None

    def drawn(self, cls: type[TensorOp], x: SSAValue | None) -> SSAValue:
        definition, self.kind = cls.get_irdl_definition(), cls.name
        rank = int(self.rng.choice([1, 2, 3, 4, 4, 4]))
        dims = [int(n) for n in self.rng.integers(1, 9, rank)]
        if rank == 4 and self.chance(0.3):
            dims[3] = int(self.rng.choice([16, 17, 24]))
        dtype = TYPES[self.below(len(TYPES) if cls.dialect_name() == "relay" else 4)]
        if x is not None:
            dims, dtype = list(shape(x)), str(dtype_of(tensor(x).element_type))
            if dtype == "bool" and cls.dialect_name() == "qnn":
                raise ValueError("no codes")
        operands: list[SSAValue] = []
        for name, kind in definition.operands:
            if isinstance(kind, OptOperandDef):
                continue
            for _ in range(2 if isinstance(kind, VarOperandDef) else 1):
                operands.append(self.operand(name, dims, dtype) if operands or x is None else x)
        properties: Properties = {}
        for name in definition.properties:
            if name in PROPERTIES and self.chance(0.6 if cls.dialect_name() == "relay" else 1.0):
                properties[name] = PROPERTIES[name](self, dims, dtype)
        if "a_max" in definition.properties:
            properties |= bounds(self, dims, dtype)
        return self.add(cls, operands, properties | self.factors(properties, definition.properties))

    def operand(self, name: str, dims: Sequence[int], dtype: str) -> SSAValue:
        if name == "indices":
            return self.value("int32", [self.below(4) + 1], constant=True)
        if "shift" in self.kind:
            return self.constant(np.full(dims[-1:], self.below(8), dtype))
        if name == "condition":
            return self.value("bool", dims)
        if name in ("bias", "gamma", "beta", "mean", "variance", "moving_mean", "moving_var", "alpha"):
            return self.value(dtype, dims[-1:], constant=True)
        if name == "table":
            return self.value(dtype, [256], constant=True)
        if self.chance(0.2) and len(dims) > 1:
            return self.value(dtype, [d if self.chance(0.5) else 1 for d in dims], constant=self.chance(0.5))
        return self.value(dtype, dims, constant=len(self.block.args) > self.first and self.chance(0.2))

    def factors(self, given: Mapping[str, Attribute], wanted: Mapping[str, object]) -> Properties:
        """The multipliers and shifts that an importer would compute from the scales in the properties `given`, as far
        as the op has such properties; `wanted` has the names of the op's properties."""

        def pair(prefix: str, ratio: float) -> Properties:
            multiplier, shift = quantize_multiplier(min(ratio, 2.0**31 - 1))
            return {f"{prefix}multiplier": IntegerAttr(multiplier, i32), f"{prefix}shift": IntegerAttr(shift, i32)}

        scales = {key: attr.value.data for key, attr in given.items() if isinstance(attr, FloatAttr)}
        if "lhs_multiplier" in wanted:
            twice = 2 * max(scales["lhs_scale"], scales["rhs_scale"])
            found = pair("lhs_", scales["lhs_scale"] / twice) | pair("rhs_", scales["rhs_scale"] / twice)
            found["left_shift"] = IntegerAttr(20, i32)
            return found | (pair("", twice / scales["output_scale"] / 2**20) if "output_scale" in scales else {})
        if "multiplier" not in wanted:
            return {}
        if "lhs_scale" in scales:
            return pair("", scales["lhs_scale"] * scales["rhs_scale"] / scales["output_scale"])
        if "beta" in wanted:
            return pair("", scales["input_scale"] * scales.get("beta", 1.0) * 2.0**26)
        return pair("", scales["input_scale"] / scales["output_scale"]) if "input_scale" in scales else {}

    # Convolutions and dense ops

    def window(self, dims: Sequence[int]) -> tuple[list[int], Properties]:
        size = [int(n) for n in self.rng.integers(1, 4, 2)]
        padding = [self.below(size[n % 2]) for n in range(4)]
        strides, dilation = (self.rng.integers(1, 3, 2).tolist() for _ in range(2))
        return size, {"strides": ints(strides), "padding": ints(padding), "dilation": ints(dilation)}

    def convolution(self, x: SSAValue | None) -> SSAValue:
        channels = int(self.rng.choice([1, 3, 8, 16, 17, 40]))
        dims = [self.below(3) + 1, *(int(n) for n in self.rng.integers(1, 20, 2)), channels]
        dtype = str(self.rng.choice(["int8", "int8", "uint8", "float32"]))
        x = self.value(dtype, dims) if x is None else x
        (*_, channels), dtype = shape(x), str(dtype_of(tensor(x).element_type))
        size, properties = self.window(shape(x))
        outputs = int(self.rng.choice([1, 4, 16, 33]))
        if self.chance(0.3):
            kernel, outputs = self.value(dtype, [*size, channels, 1], constant=True), channels
            properties |= {"groups": IntegerAttr(channels, i64), "kernel_layout": StringAttr("HWOI")}
        else:
            kernel = self.value(dtype, [outputs, *size, channels], constant=True)
        return self.finished((relay.Conv2dOp, qnn.Conv2dOp), x, kernel, outputs, properties)

    def dense(self, x: SSAValue | None) -> SSAValue:
        dtype = str(self.rng.choice(["int8", "int8", "uint8", "float32"]))
        x = self.value(dtype, [self.below(4) + 1, self.below(70) + 1]) if x is None else x
        outputs = int(self.rng.choice([1, 10, 16, 33]))
        kernel = self.value(str(dtype_of(tensor(x).element_type)), [outputs, shape(x)[-1]], constant=True)
        return self.finished((relay.DenseOp, qnn.DenseOp), x, kernel, outputs, {})

    def finished(
        self, ops: tuple[Any, Any], x: SSAValue, kernel: SSAValue, outputs: int, properties: Properties
    ) -> SSAValue:
        """Add a convolution or dense op (`ops`: the float one and the quantized one), and randomly a bias; then a clip
        of floats, or a requantize op. Returns the last result."""
        dtype = str(dtype_of(tensor(x).element_type))
        if dtype.startswith("float"):
            sums = self.add(ops[0], [x, kernel], properties)
            if self.chance(0.5):
                sums = self.add(relay.BiasAddOp, [sums, self.value(dtype, [outputs], constant=True)], {})
            return self.add(relay.ClipOp, [sums], bounds(self, shape(sums), dtype)) if self.chance(0.5) else sums
        scales = np.float32(self.rng.uniform(0.001, 0.02, outputs if dtype == "int8" and self.chance(0.6) else ()))
        source, target = np.float32(self.rng.uniform(0.01, 0.3)), np.float32(self.rng.uniform(0.1, 2))
        properties |= {"input_scale": FloatAttr(float(source), f32), "input_zero_point": zero_point(self, (), dtype)}
        properties["kernel_scale"] = elements(scales) if scales.shape else FloatAttr(float(scales), f32)
        if dtype == "uint8":
            properties["kernel_zero_point"] = zero_point(self, (), dtype)
        sums = self.add(ops[1], [x, kernel], properties)
        if self.chance(0.7):
            sums = self.add(relay.BiasAddOp, [sums, self.value("int32", [outputs], constant=True)], {})
        products, double = source * scales, np.float64(source) * scales / np.float64(target)
        multipliers, shifts = quantize_multipliers(np.atleast_1d(double))
        last: Properties = {"output_scale": FloatAttr(float(target), f32), "out_dtype": element_type(dtype)}
        last |= {"output_zero_point": zero_point(self, (), dtype), "rounding": StringAttr("tflite")}
        many = bool(scales.shape)
        last["input_scale"] = elements(products) if many else FloatAttr(float(products), f32)
        last["multiplier"] = elements(multipliers) if many else IntegerAttr(int(multipliers[0]), i32)
        last["shift"] = elements(shifts) if many else IntegerAttr(int(shifts[0]), i32)
        if self.chance(0.4):
            low, high = sorted(self.rng.integers(*code_range(np.dtype(dtype)), 2).tolist())
            last |= {"min": IntegerAttr(low, i32), "max": IntegerAttr(high, i32)}
        return self.add(qnn.RequantizeOp, [sums], last)


Draw = Callable[[RandomOps, Sequence[int], str], Attribute]
PRODUCTS: Mapping[type[TensorOp], Callable[[RandomOps, SSAValue | None], SSAValue]] = {
    relay.Conv2dOp: RandomOps.convolution,
    qnn.Conv2dOp: RandomOps.convolution,
    relay.DenseOp: RandomOps.dense,
    qnn.DenseOp: RandomOps.dense,
}


def zero_point(ops: RandomOps, dims: Sequence[int], dtype: str) -> Attribute:
    low, high = code_range(np.dtype(dtype)) if np.dtype(dtype).itemsize == 1 and dtype != "bool" else (0, 0)
    return IntegerAttr(int(ops.rng.integers(low, high + 1)), i32)


def bounds(ops: RandomOps, dims: Sequence[int], dtype: str) -> Properties:
    low, high = sorted(numbers(ops.rng, dtype, [2]).tolist())
    return {"a_min": scalar_attr(low, element_type(dtype)), "a_max": scalar_attr(high, element_type(dtype))}


def real(low: float, high: float) -> Draw:
    return lambda ops, dims, dtype: FloatAttr(float(np.float32(ops.rng.uniform(low, high))), f32)


def whole(low: int, high: int) -> Draw:
    return lambda ops, dims, dtype: IntegerAttr(int(ops.rng.integers(low, high)), i64)


def many(low: int, high: int, per_axis: int = 1, spatial: bool = True) -> Draw:
    """A function that draws the integers of an array property, each in `low` .. `high - 1`: `per_axis` integers for
    every axis of the data; if `spatial`, not for the batch and channel axes."""

    def draw(ops: RandomOps, dims: Sequence[int], dtype: str) -> Attribute:
        count = per_axis * (len(dims) - 2 if spatial and len(dims) > 2 else len(dims))
        return ints(ops.rng.integers(low, high, count).tolist())

    return draw


def axis(ops: RandomOps, dims: Sequence[int], dtype: str) -> Attribute:
    rank = len(dims)
    if ops.chance(0.5):
        return IntegerAttr(int(ops.rng.integers(-rank, rank)), i64)
    return ints(sorted(ops.rng.choice(rank, 1 + ops.below(rank), replace=False).tolist()))


def new_shape(ops: RandomOps, dims: Sequence[int], dtype: str) -> Attribute:
    return ints([[-1], [dims[0], -1], list(ops.rng.permutation(dims)), [1, *dims]][ops.below(4)])


def end(ops: RandomOps, dims: Sequence[int], dtype: str) -> Attribute:
    return ints([int(ops.rng.integers(1, d + 1)) for d in dims])


def flag(ops: RandomOps, dims: Sequence[int], dtype: str) -> Attribute:
    return BoolAttr.from_bool(ops.chance(0.5))


def type_(ops: RandomOps, dims: Sequence[int], dtype: str) -> Attribute:
    return element_type(TYPES[ops.below(len(TYPES))] if ops.chance(0.5) else dtype)


def permutation(ops: RandomOps, dims: Sequence[int], dtype: str) -> Attribute:
    return ints(ops.rng.permutation(len(dims)).tolist())


FLAGS = ("keepdims", "exclude", "ceil_mode", "count_include_pad", "transpose_a", "transpose_b", "is_ascend",
         "exclusive", "align_corners", "half_pixel_centers")  # fmt: skip
PROPERTIES: Mapping[str, Draw] = {
    **dict.fromkeys(FLAGS, flag),
    **dict.fromkeys(("input_scale", "output_scale", "lhs_scale", "rhs_scale", "scale"), real(0.01, 0.5)),
    **dict.fromkeys(
        ("input_zero_point", "output_zero_point", "lhs_zero_point", "rhs_zero_point", "zero_point"), zero_point
    ),
    **dict.fromkeys(("alpha", "epsilon", "eps", "beta"), real(0.01, 1)),
    **dict.fromkeys(("strides", "dilation", "block_shape", "reps"), many(1, 3)),
    **dict.fromkeys(("dtype", "out_dtype"), type_),
    "axis": axis,
    "axes": permutation,
    "newshape": new_shape,
    "padding": many(0, 2, 2),
    "pad_value": lambda ops, dims, dtype: scalar_attr(numbers(ops.rng, dtype, []).item(), element_type(dtype)),
    "pad_width": many(0, 3, 2, spatial=False),
    "pool_size": lambda ops, dims, dtype: ints(list(dims[1:3]) if ops.chance(0.5) else [2, 2]),
    "output_size": many(1, 4),
    "size": many(1, 9),
    "begin": many(0, 2, spatial=False),
    "end": end,
    "block_size": whole(2, 3),
    "repeats": whole(1, 3),
    "num_newaxis": whole(1, 3),
    "indices_or_sections": whole(1, 4),
    "k": whole(1, 3),
    "depth": whole(1, 5),
}
"""How to draw a property, by its name; properties of other names keep their defaults."""
