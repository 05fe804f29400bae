"""Small float modules, and calibrations of them without compiling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from xdsl.dialects.builtin import FloatAttr, FunctionType, IntegerAttr, ModuleOp, StringAttr, TensorType, f32, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, elements, ints
from relay.dialects.op import TensorOp, shape
from relay.interpreters import run
from relay.module import IRModule
from relay.quantize import Calibration, QuantizeAnnotate
from relay.quantize.observing import fingerprint, observed, returning
from relay.quantize.statistics import observe
from relay.quantize.worker import Seen

Properties = dict[str, Attribute | None]
LARGEST = 3.40282347e38


class Net:
    """A float function under construction; weights come from a seed."""

    def __init__(self, dims: Sequence[int], seed: int = 0):
        self.random = np.random.default_rng(seed)
        self.block = Block(arg_types=[TensorType(f32, dims)])
        self.input: SSAValue = self.block.args[0]

    def op(self, kind: type[TensorOp], *operands: SSAValue, **properties: Attribute | None) -> SSAValue:
        made = kind.make(operands, properties)
        self.block.add_op(made)
        return made.results[0]

    def constant(self, numbers: Array, label: str | None = None) -> SSAValue:
        name = None if label is None else StringAttr(label)
        return self.op(relay.ConstantOp, value=elements(numbers.astype(np.float32)), label=name)

    def weights(self, *dims: int, label: str | None = None) -> SSAValue:
        return self.constant(self.random.normal(0, 1 / np.sqrt(np.prod(dims[1:])), dims), label)

    def conv(self, x: SSAValue, out: int, size: int = 3, stride: int = 1, label: str | None = None) -> SSAValue:
        pad = size // 2
        kernel = self.weights(out, size, size, shape(x)[3], label=label)
        strides, padding = ints([stride, stride]), ints([pad] * 4)
        y = self.op(relay.Conv2dOp, x, kernel, strides=strides, padding=padding, out_dtype=f32)
        return self.bias(y)

    def depthwise(self, x: SSAValue, multiplier: int = 1) -> SSAValue:
        channels = shape(x)[3]
        kernel = self.constant(self.random.normal(0, 0.4, (3, 3, channels, multiplier)))
        groups, layout = IntegerAttr(channels, i64), StringAttr("HWOI")
        padding = ints([1] * 4)
        y = self.op(relay.Conv2dOp, x, kernel, padding=padding, groups=groups, kernel_layout=layout, out_dtype=f32)
        return self.bias(y)

    def bias(self, x: SSAValue) -> SSAValue:
        return self.op(relay.BiasAddOp, x, self.constant(self.random.normal(0, 0.3, shape(x)[-1])))

    def dense(self, x: SSAValue, units: int) -> SSAValue:
        return self.bias(self.op(relay.DenseOp, x, self.weights(units, shape(x)[-1]), out_dtype=f32))

    def clip(self, x: SSAValue, high: float = LARGEST) -> SSAValue:
        return self.op(relay.ClipOp, x, a_min=FloatAttr(0.0, f32), a_max=FloatAttr(high, f32))

    def flat(self, x: SSAValue) -> SSAValue:
        return self.op(relay.ReshapeOp, x, newshape=ints([1, -1]))

    def mean(self, x: SSAValue) -> SSAValue:
        total = self.op(relay.SumOp, x, axis=ints([1, 2]))
        count = self.constant(np.asarray(float(shape(x)[1] * shape(x)[2])))
        return self.op(relay.DivideOp, total, count)

    def softmax(self, x: SSAValue) -> SSAValue:
        return self.op(relay.SoftmaxOp, x, beta=FloatAttr(1.0, f32))

    def done(self, *results: SSAValue) -> IRModule:
        self.block.add_op(ReturnOp(*results))
        types = FunctionType.from_lists([a.type for a in self.block.args], [value.type for value in results])
        module = IRModule(ModuleOp([FuncOp("main", types, Region(self.block))]))
        module.verify()
        return module


def small() -> IRModule:
    """Two branches that meet, a depthwise layer, a mean, a product and softmax: four layers."""
    net = Net((1, 6, 6, 2))
    a = net.clip(net.conv(net.input, 4, label="stem"))
    b = net.depthwise(a)
    c = net.clip(net.op(relay.AddOp, a, b), 6.0)
    d = net.conv(net.op(relay.MaxPool2dOp, c, pool_size=ints([2, 2]), strides=ints([2, 2])), 6, 1, label="middle")
    return net.done(net.softmax(net.dense(net.mean(net.clip(d)), 5)))


def samples(count: int, seed: int = 1, dims: Sequence[int] = (1, 6, 6, 2)) -> list[Array]:
    random = np.random.default_rng(seed)
    return [random.normal(0.2, 1, dims).astype(np.float32) for _ in range(count)]


def values_of(mod: IRModule, inputs: Array) -> dict[str, Array]:
    """What each value that `quantize-annotate` has named is, by the interpreter."""
    function = mod["main"]
    values = observed(function)
    inner = [value for value in values.values() if not isinstance(value, BlockArgument)]
    found = dict(zip(inner, run(returning(function, inner), [inputs]), strict=True))
    return {name: found[v] if v in found else inputs for name, v in values.items()}


def calibrated(mod: IRModule, data: Iterable[Array], dtype: str = "int8") -> Calibration:
    """A calibration of a module, found by the interpreter."""
    marked = mod if observed(mod["main"]) else QuantizeAnnotate(dtype=dtype)(mod)
    found = Calibration(fingerprint(mod["main"]), frozenset({"range", "histogram", "means"}))
    for sample in data:
        values = values_of(marked, sample)
        found.merge(Seen({name: observe(array, name, found.features) for name, array in values.items()}, {}))
    return found
