"""Random graphs that compute with a size that is open, its sums, quotients and comparisons among it, against ONNX
Runtime at many sizes: one executable each, by rows, for any length, or with a build for each size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs the package onnx")
pytest.importorskip("onnxruntime", reason="needs onnxruntime")

import onnx
import onnxruntime

from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.runtime import DynamicExecutable
from tests.conftest import Cases
from tests.fuzz.run_cases import run_cases

WIDTH, MAXIMUM = 4, 24
SIZES = (1, 2, 9, 17, MAXIMUM)
FLOAT = onnx.TensorProto.FLOAT


class OpenGraph:
    """Some steps on tensors [n, 4], or [1, n, 4]: `axis` is that of n."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.axis = int(self.random.integers(2))
        self.nodes: list[Any] = []
        self.held: dict[str, Array] = {}
        self.data, self.numbers = ["x"], list[str]()
        steps = (self.function, self.product, self.pair, self.by_number, self.branch, self.slice, self.slice_of_size)
        others = (self.filled, self.range_sum, self.reshaped, self.softmax, self.reduced, self.running, self.chosen)
        for _ in range(self.random.integers(2, 7)):
            self.data.append(self.pick((*steps, *others))(self.pick(self.data)))
        self.op("Identity", self.data[-1], out="y")

    def pick(self, options: Any) -> Any:
        return options[self.random.integers(len(options))]

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        self.held[f"c{len(self.held)}"] = np.asarray(value, dtype)
        return f"c{len(self.held) - 1}"

    def op(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        out = out or f"v{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, inputs, [out], **attributes))
        return out

    def size(self) -> str:
        """The size, or a number that is computed of it."""
        way = self.random.integers(4) if self.numbers else 0
        if way < 2:
            one, rest = ("Size", WIDTH) if way else ("Shape", self.axis)
            found = self.op("Div" if way else "Gather", self.op(one, self.pick(self.data)), self.constant(rest))
        else:
            kinds = ("Add", "Sub", "Mul", "Div", "Mod", "Min", "Max") if way == 2 else ("Add", "Sub", "Min", "Max")
            other = self.constant(self.pick((1, 2, 3, 5, 8, 16))) if way == 2 else self.pick(self.numbers)
            found = self.op(self.pick(kinds), self.pick(self.numbers), other)
        self.numbers.append(found)
        return found

    def compared(self) -> str:
        return self.op(self.pick(("Greater", "Less", "Equal")), self.size(), self.constant(self.pick((2, 3, 7, 8, 9))))

    def function(self, x: str) -> str:
        return self.op(self.pick(("Relu", "Neg", "Abs", "Tanh")), x)

    def product(self, x: str) -> str:
        return self.op("MatMul", x, self.constant(self.random.standard_normal((WIDTH, WIDTH)), np.float32))

    def pair(self, x: str) -> str:
        return self.op(self.pick(("Add", "Mul", "Sub")), x, self.pick(self.data))

    def by_number(self, x: str) -> str:
        return self.op(self.pick(("Add", "Mul")), x, self.op("Cast", self.size(), to=FLOAT))

    def branch(self, x: str) -> str:
        graphs: dict[str, Any] = {}
        for key, kind in (("then_branch", "Neg"), ("else_branch", "Abs")):
            out = f"{key}{len(self.nodes)}"
            info = onnx.helper.make_tensor_value_info(out, FLOAT, None)
            graphs[key] = onnx.helper.make_graph([onnx.helper.make_node(kind, [x], [out])], key, [], [info])
        return self.op("If", self.compared(), **graphs)

    def part(self, x: str, begin: str, end: str) -> str:
        """A sum of a part of the axis, added to all."""
        part = self.op("Slice", x, begin, end, self.constant([self.axis]))
        return self.op("Add", x, self.op("ReduceSum", part, self.constant([self.axis]), keepdims=1))

    def slice(self, x: str) -> str:
        ends = self.pick((-9, -3, -1, 0, 0, 1, 2, 8)), self.pick((1, 2, 3, 8, 16, 1 << 40, -1, -2))
        return self.part(x, *(self.constant([each]) for each in ends))

    def slice_of_size(self, x: str) -> str:
        return self.part(x, self.constant([0]), self.op("Unsqueeze", self.size(), self.constant([0])))

    def filled(self, x: str) -> str:
        value = onnx.numpy_helper.from_array(np.array([1.5], np.float32))
        return self.op("Mul", x, self.op("ConstantOfShape", self.op("Shape", x), value=value))

    def range_sum(self, x: str) -> str:
        numbers = self.op("Range", self.constant(0), self.size(), self.constant(self.pick((1, 2, 16))))
        return self.op("Add", x, self.op("Cast", self.op("ReduceSum", numbers, keepdims=0), to=FLOAT))

    def reshaped(self, x: str) -> str:
        return self.op("Reshape", self.op("Reshape", x, self.constant([-1])), self.op("Shape", x))

    def softmax(self, x: str) -> str:
        return self.op("Softmax", x, axis=-1)

    def reduced(self, x: str) -> str:
        axes = [int(self.pick((self.axis, self.axis + 1)))]
        return self.op("Sub", x, self.op(self.pick(("ReduceMean", "ReduceMax")), x, axes=axes, keepdims=1))

    def running(self, x: str) -> str:
        count = self.op("Gather", self.op("Shape", x), self.constant([self.axis]))
        ones = self.op("ConstantOfShape", count, value=onnx.numpy_helper.from_array(np.array([1])))
        sums = self.op("Cast", self.op("CumSum", ones, self.constant(0)), to=FLOAT)
        return self.op("Mul", x, self.op("Unsqueeze", sums, self.constant([1])))

    def chosen(self, x: str) -> str:
        return self.op("Where", self.compared(), x, self.op("Neg", x))

    def model(self) -> bytes:
        helper = onnx.helper
        shape = ["n", WIDTH] if not self.axis else [1, "n", WIDTH]
        infos = [helper.make_tensor_value_info("x", FLOAT, shape)], [helper.make_tensor_value_info("y", FLOAT, None)]
        held = [onnx.numpy_helper.from_array(array, name) for name, array in self.held.items()]
        graph = helper.make_graph(self.nodes, "g", *infos, held)
        opsets = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def end_of(graph: OpenGraph) -> str:
    """How the sizes are served. Raises AssertionError for a result that is not ONNX Runtime's."""
    model, options = graph.model(), onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options)
    exe = build(model, opt_level=1, maximum={"n": MAXIMUM} if graph.axis else None)
    assert isinstance(exe, DynamicExecutable)
    how = "rows" if exe.interface.blocks else "length" if exe.interface.length else "each"
    for size in SIZES if how != "each" else (1, 9, 17):
        dims = (size, WIDTH) if not graph.axis else (1, size, WIDTH)
        x = np.random.default_rng(size).standard_normal(dims).astype(np.float32)
        try:
            (wanted,) = session.run(None, {"x": x})
        except Exception as error:  # its own kinds of errors: it takes no such size
            assert "ONNXRuntimeError" in str(error)
            continue
        found = np.asarray(exe.run(x))
        largest = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
        assert found.shape == wanted.shape, f"size {size}, {how}: {found.shape} for {wanted.shape}"
        close = np.allclose(found, wanted, rtol=1e-4, atol=1e-5 * largest, equal_nan=True)
        assert close, f"size {size}, {how}: {np.abs(found - wanted).max()}"
    return how


@pytest.mark.parametrize(("numbers", "least"), [(range(3, 10), 2), pytest.param(range(20), 4, marks=pytest.mark.ci)])
def test_open_sizes_equal_onnxruntime(numbers: range, least: int) -> None:
    """At least so many graphs are served for any length, and so many with a build for each size."""
    ends = run_cases(numbers, OpenGraph, end_of)
    assert min(ends["length"], ends["each"]) >= least and ends["rows"]


@pytest.mark.fuzz
def test_many_open_sizes_equal_onnxruntime(cases: Cases) -> None:
    run_cases(cases(600), OpenGraph, end_of)
