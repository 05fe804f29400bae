"""A vision transformer with random weights in `.tflite`, int8: `python -m benchmarks.vision [--kernels]`.

Blocks of attention and two products, with what converters make of layer normalization: means, squared differences and
a reciprocal square root of codes. Activations have one scale each, by the range of a run in float32; weights are
symmetric, with a scale per channel. First our codes are compared with those of LiteRT's reference kernels, every
one; then LiteRT and OpenVINO run beside ours as in `benchmarks.compare`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np

import relay
from benchmarks import compare, tables
from benchmarks.transformers import ratio_rows
from relay.dialects.attributes import Array

PEERS = ("ours", "litert", "openvino")
VERSIONS = {"FULLY_CONNECTED": 12, "RESHAPE": 1}
"""Of operators: 2 of all others, from which on they take int8."""
erf_of = np.vectorize(erf, otypes=[np.float32])


@dataclass
class Tensor:
    """A tensor of the model, and its numbers in a run in float32."""

    index: int
    value: Array
    scale: float = 0.0
    zero_point: int = 0


@dataclass
class Graph:
    """A `.tflite` file while it is written, with the schema's own classes."""

    schema: Any = field(default_factory=lambda: import_module("ai_edge_litert.schema_py_generated"))
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __post_init__(self) -> None:
        s = self.schema
        self.model, self.graph = s.ModelT(), s.SubGraphT()
        graph, model = self.graph, self.model
        graph.name, graph.tensors, graph.operators, graph.inputs, graph.outputs = b"main", [], [], [], []
        model.version, model.buffers, model.operatorCodes, model.subgraphs = 3, [s.BufferT()], [], [graph]

    def tensor(
        self,
        value: Array,
        stored: Array | None = None,
        kind: str = "INT8",
        scales: Sequence[float] = (),
        zero_point: int = 0,
    ) -> Tensor:
        """A tensor of the value's shape: a constant of these elements, if there are any. Several scales are along axis
        0."""
        s, made = self.schema, self.schema.TensorT()
        made.name, made.shape, made.type = (
            f"t{len(self.graph.tensors)}".encode(),
            value.shape,
            getattr(s.TensorType, kind),
        )
        made.buffer = 0
        if stored is not None:
            made.buffer = len(self.model.buffers)
            buffer = s.BufferT()
            buffer.data = np.frombuffer(stored.tobytes(), np.uint8)
            self.model.buffers.append(buffer)
        if len(scales):
            made.quantization = s.QuantizationParametersT()
            made.quantization.scale, made.quantization.zeroPoint = scales, [zero_point] * len(scales)
        self.graph.tensors.append(made)
        return Tensor(len(self.graph.tensors) - 1, value, scales[0] if len(scales) else 0.0, zero_point)

    def codes(self, value: Array) -> Tensor:
        """A tensor of codes whose range is that of the value."""
        low, high = min(float(value.min()), 0.0), max(float(value.max()), 1e-6)
        scale = float(np.float32((high - low) / 255))
        return self.tensor(value, scales=[scale], zero_point=round(-low / scale) - 128)

    def constant(self, value: Array) -> Tensor:
        """Codes of a constant."""
        scale = float(np.float32(np.abs(value).max() / 127))
        return self.tensor(value, np.rint(value / scale).astype(np.int8), scales=[scale])

    def integers(self, *values: int) -> Tensor:
        """A constant such as axes or a shape."""
        array = np.array(values, np.int32)
        return self.tensor(array, array, "INT32")

    def op(self, kind: str, inputs: Sequence[Tensor], out: Tensor, options: str = "", **values: Any) -> Tensor:
        """An operator that makes `out`."""
        s = self.schema
        made, code = s.OperatorT(), s.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = getattr(s.BuiltinOperator, kind)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), VERSIONS.get(kind, 2)
        made.opcodeIndex, made.inputs, made.outputs = (
            len(self.model.operatorCodes),
            [x.index for x in inputs],
            [out.index],
        )
        self.model.operatorCodes.append(code)
        if options:
            made.builtinOptionsType = getattr(s.BuiltinOptions, options)
            made.builtinOptions = getattr(s, f"{options}T")()
            for name, value in values.items():
                setattr(made.builtinOptions, name, value)
        self.graph.operators.append(made)
        return out

    def moved(self, kind: str, x: Tensor, value: Array, by: Sequence[int], options: str) -> Tensor:
        """RESHAPE or TRANSPOSE: the codes stay."""
        out = self.tensor(value, scales=[x.scale], zero_point=x.zero_point)
        return self.op(kind, [x, self.integers(*by)], out, options)

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        return self.moved("RESHAPE", x, x.value.reshape(shape), shape, "ReshapeOptions")

    def transpose(self, x: Tensor, *order: int) -> Tensor:
        return self.moved("TRANSPOSE", x, x.value.transpose(order), order, "TransposeOptions")

    def binary(self, kind: str, a: Tensor, b: Tensor) -> Tensor:
        """ADD, SUB, MUL or SQUARED_DIFFERENCE."""
        x, y = a.value, b.value
        found = {"ADD": x + y, "SUB": x - y, "MUL": x * y, "SQUARED_DIFFERENCE": (x - y) ** 2}[kind]
        options = "SquaredDifferenceOptions" if kind == "SQUARED_DIFFERENCE" else f"{kind.title()}Options"
        return self.op(kind, [a, b], self.codes(found), options)

    def mean(self, x: Tensor) -> Tensor:
        out = self.codes(x.value.mean(axis=-1, keepdims=True))
        return self.op("MEAN", [x, self.integers(x.value.ndim - 1)], out, "ReducerOptions", keepDims=True)

    def dense(self, x: Tensor, outputs: int) -> Tensor:
        """A product by random weights with a scale per channel, and a bias."""
        inputs = x.value.shape[-1]
        weights = self.random.standard_normal((outputs, inputs), np.float32) / np.float32(sqrt(inputs))
        bias = self.random.normal(0, 0.1, outputs).astype(np.float32)
        scales = (np.abs(weights).max(axis=1) / np.float32(127)).astype(np.float32)
        kernel = self.tensor(weights, np.rint(weights / scales[:, None]).astype(np.int8), scales=scales.tolist())
        steps = np.float32(x.scale) * scales
        added = self.tensor(bias, np.rint(bias / steps).astype(np.int32), "INT32", steps.tolist())
        out = self.codes(x.value @ weights.T + bias)
        return self.op("FULLY_CONNECTED", [x, kernel, added], out, "FullyConnectedOptions", keepNumDims=True)

    def product(self, a: Tensor, b: Tensor, turned: bool) -> Tensor:
        """BATCH_MATMUL; `turned`: by the rows of b."""
        value = a.value @ (b.value.swapaxes(-1, -2) if turned else b.value)
        return self.op("BATCH_MATMUL", [a, b], self.codes(value), "BatchMatMulOptions", adjY=turned)

    def softmax(self, x: Tensor) -> Tensor:
        powers = np.exp(x.value - x.value.max(axis=-1, keepdims=True))
        out = self.tensor(powers / powers.sum(axis=-1, keepdims=True), scales=[1 / 256], zero_point=-128)
        return self.op("SOFTMAX", [x], out, "SoftmaxOptions", beta=1.0)

    def gelu(self, x: Tensor) -> Tensor:
        out = self.codes(x.value / 2 * (1 + erf_of(x.value / sqrt(2))))
        return self.op("GELU", [x], out, "GeluOptions", approximate=False)

    def norm(self, x: Tensor) -> Tensor:
        """`x * factor + (offset - mean * factor)`, where `factor = scale / sqrt(variance + epsilon)`."""
        width: int = x.value.shape[-1]
        mean = self.mean(x)
        variance = self.mean(self.binary("SQUARED_DIFFERENCE", x, mean))
        moved = self.binary("ADD", variance, self.constant(np.full((1,), 1e-3, np.float32)))
        inverse = self.op("RSQRT", [moved], self.codes(1 / np.sqrt(moved.value)))
        factor = self.binary("MUL", inverse, self.constant(self.random.uniform(0.5, 1.5, width).astype(np.float32)))
        offset = self.constant(self.random.normal(0, 0.1, width).astype(np.float32))
        rest = self.binary("SUB", offset, self.binary("MUL", mean, factor))
        return self.binary("ADD", self.binary("MUL", x, factor), rest)

    def block(self, x: Tensor, heads: int, inner: int) -> Tensor:
        """Attention and two products, each of a normalization and added to what that read."""
        _, tokens, width = x.value.shape
        read, size = self.norm(x), width // heads
        q, k, v = (
            self.transpose(self.reshape(self.dense(read, width), 1, tokens, heads, size), 0, 2, 1, 3) for _ in range(3)
        )
        q = self.binary("MUL", q, self.constant(np.full((1,), 1 / sqrt(size), np.float32)))
        found = self.transpose(self.product(self.softmax(self.product(q, k, True)), v, False), 0, 2, 1, 3)
        x = self.binary("ADD", x, self.dense(self.reshape(found, 1, tokens, width), width))
        return self.binary("ADD", x, self.dense(self.gelu(self.dense(self.norm(x), inner)), width))

    def file(self, inputs: Sequence[Tensor], result: Tensor) -> bytes:
        """The file."""
        self.graph.inputs, self.graph.outputs = [x.index for x in inputs], [result.index]
        builder: Any = import_module("flatbuffers").Builder(1 << 20)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def vision_transformer(blocks: int = 2, tokens: int = 197, width: int = 192, heads: int = 3, inner: int = 768) -> bytes:
    """The file of so many blocks, of ViT-Tiny's size; its argument is the tokens, int8."""
    graph = Graph()
    first = x = graph.codes(graph.random.standard_normal((1, tokens, width), np.float32))
    for _ in range(blocks):
        x = graph.block(x, heads, inner)
    return graph.file([first], graph.norm(x))


def differing(model: bytes, runs: int = 3) -> tuple[int, int]:
    """How many codes differ from those of LiteRT's reference kernels, and how many there are."""
    litert: Any = import_module("ai_edge_litert.interpreter")
    reference = litert.Interpreter(
        model_content=model, experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF, num_threads=1
    )
    reference.allocate_tensors()
    given, made = reference.get_input_details()[0], reference.get_output_details()[0]
    ours, random, different, count = relay.build(model), np.random.default_rng(1), 0, 0
    for _ in range(runs):
        codes = random.integers(-128, 128, given["shape"], np.int8)
        reference.set_tensor(given["index"], codes)
        reference.invoke()
        wanted = reference.get_tensor(made["index"])
        different, count = different + int((np.asarray(ours.run(codes)) != wanted).sum()), count + wanted.size
    return different, count


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the model, compare codes, measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vision", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each round (default: %(default)s)")
    parser.add_argument("--kernels", action="store_true", help="our kernels one by one, instead of other runtimes")
    options = parser.parse_args(arguments)
    model = vision_transformer()
    print("{} of {} codes differ from LiteRT's reference kernels".format(*differing(model)))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "vision_transformer.tflite"
        path.write_bytes(model)
        timing = [str(path), "--rounds", str(options.rounds), "--seconds", str(options.seconds)]
        if options.kernels:
            compare.main([*timing, "--kernels"])
            return
        found = compare.main([*timing, "--peers", ",".join(PEERS), "--threads", "1"])
    head = ("processor time in ms, one thread", *PEERS, "better peer / ours")
    print(f"\n{tables.table(head, ratio_rows(found, PEERS))}")


if __name__ == "__main__":
    main()
