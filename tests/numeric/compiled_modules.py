"""Modules of several operators, built and held against the interpreter: one build for many cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from relay.compile.entry import build
from relay.dialects import relay
from relay.dialects.attributes import Array, element_type, elements, ints, scalar_attr, tensor_type
from relay.dialects.op import TensorOp
from relay.interpreters import run
from relay.module import IRModule
from relay.runtime import Executable
from relay.target import CpuTarget
from tests import guarded


class Net:
    """Builds `@main` op by op; each `result` is compared under its name."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.block = Block()
        self.inputs: list[Array] = []
        self.results: dict[str, SSAValue] = {}

    def numbers(self, dtype: str, *shape: int) -> Array:
        """Codes over their whole range; floats around zero."""
        if dtype == "float32":
            return (self.rng.standard_normal(shape) / 4).astype(np.float32)
        info = np.iinfo(dtype)
        return self.rng.integers(int(info.min), int(info.max) + 1, shape).astype(dtype)

    def argument(self, array: Array) -> SSAValue:
        self.inputs.append(array)
        return self.block.insert_arg(tensor_type(array), len(self.block.args))

    def constant(self, array: Array) -> SSAValue:
        return self.add(relay.ConstantOp, [], {"value": elements(array)})

    def add(self, op: type[TensorOp], operands: Sequence[SSAValue], properties: Mapping[str, Attribute]) -> SSAValue:
        new = op.make(operands, properties)
        self.block.add_op(new)
        return new.results[0]

    def result(self, name: str, value: SSAValue) -> None:
        assert name not in self.results, name
        self.results[name] = value

    def requantize(self, sums: SSAValue, channels: int, dtype: str, *, per_channel: bool = True) -> SSAValue:
        """Bias, rescaling, zero point, clamp, narrowing: what follows a convolution of codes."""
        shape = (channels,) if per_channel else ()
        bias = self.constant(self.rng.integers(-20000, 20000, channels).astype(np.int32))
        sums = self.add(relay.BiasAddOp, [sums, bias], {})
        multiplier = self.constant(self.rng.integers(1 << 30, 1 << 31, shape).astype(np.int32))
        shift = self.constant(self.rng.integers(-11, -5, shape).astype(np.int32))
        sums = self.add(relay.FixedPointMultiplyOp, [sums, multiplier, shift], {})
        sums = self.add(relay.AddOp, [sums, self.constant(np.array(-3, np.int32))], {})
        low, high = (-128, 120) if dtype == "int8" else (4, 255)
        clipped = self.add(relay.ClipOp, [sums], {"a_min": scalar_attr(low, i32), "a_max": scalar_attr(high, i32)})
        return self.add(relay.CastOp, [clipped], {"dtype": element_type(dtype)})

    def relu(self, sums: SSAValue, channels: int) -> SSAValue:
        """Bias and clamp of floats."""
        biased = self.add(relay.BiasAddOp, [sums, self.constant(self.numbers("float32", channels))], {})
        f32 = element_type("float32")
        return self.add(relay.ClipOp, [biased], {"a_min": scalar_attr(0.0, f32), "a_max": scalar_attr(6.0, f32)})

    def conv2d(
        self,
        data: SSAValue,
        kernel: SSAValue,
        *,
        strides: Sequence[int] = (1, 1),
        padding: Sequence[int] = (0, 0, 0, 0),
        dilation: Sequence[int] = (1, 1),
        groups: int = 1,
        zero_points: tuple[int, int] | None = None,
        depthwise: bool = False,
    ) -> SSAValue:
        properties: dict[str, Attribute] = {
            "strides": ints(strides),
            "padding": ints(padding),
            "dilation": ints(dilation),
            "groups": IntegerAttr(groups, i64),
            "kernel_layout": StringAttr("HWOI" if depthwise else "OHWI"),
            **(offsets(zero_points)),
        }
        return self.add(relay.Conv2dOp, [data, kernel], properties)

    def dense(self, data: SSAValue, kernel: SSAValue, zero_points: tuple[int, int] | None = None) -> SSAValue:
        return self.add(relay.DenseOp, [data, kernel], offsets(zero_points))

    def module(self) -> IRModule:
        block = self.block
        values = list(self.results.values())
        block.add_op(ReturnOp(*values))
        types = ([a.type for a in block.args], [v.type for v in values])
        mod = IRModule()
        mod["main"] = FuncOp("main", types, Region(block))
        mod.verify()
        return mod

    def check(self, target: str | CpuTarget = "llvm") -> Executable:
        """Build it and compare all results; the failure names every result that differs."""
        mod = self.module()
        wanted = run(mod, self.inputs)
        executable = build(mod, target)
        got = guarded.run(executable, *self.inputs)
        results = got if isinstance(got, tuple) else (np.asarray(got),)
        assert len(results) == len(wanted)
        wrong = [name for name, got, want in zip(self.results, results, wanted, strict=True) if not equal(got, want)]
        assert not wrong, f"{len(wrong)} of {len(wanted)} results differ from the interpreter's: {wrong}"
        return executable


def offsets(zero_points: tuple[int, int] | None) -> dict[str, Attribute]:
    """Zero points of data and kernel; None is for floats."""
    if zero_points is None:
        return {"out_dtype": element_type("float32")}
    found: dict[str, Attribute] = {"input_zero_point": IntegerAttr(zero_points[0], i32)}
    if zero_points[1]:
        found["kernel_zero_point"] = IntegerAttr(zero_points[1], i32)
    return found


def equal(got: Array, want: Array) -> bool:
    """Equal integers; floats within 1e-5 of the largest that is finite, and NaN where NaN is wanted."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return False
    if want.dtype.kind != "f":
        return np.array_equal(got, want)
    largest = np.abs(want[np.isfinite(want)]).max(initial=0)
    return np.allclose(got, want, rtol=0, atol=1e-5 * largest, equal_nan=True)
