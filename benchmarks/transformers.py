"""Transformers with random weights, against other runtimes: `python -m benchmarks.transformers [NAME...]`.

The models are ONNX files that this writes. Encoders are of floats (`_f32`), or quantized where products read: unsigned
codes per tensor for data, signed ones per output channel for weights, floats for biases, residual sums, normalizations,
and scores. Their scales are those of a run of the float model. Peers run as in `benchmarks.compare`, whose options
follow the names; the ratios are the better peer's time over ours, and `--kernels` says where our own time goes.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks import compare, tables
from relay.tools.peers import Array

PEERS = ("ours", "openvino", "onnxruntime")


@dataclass(frozen=True)
class Encoder:
    """`layers` blocks of attention and two products, as of BERT, over `tokens` rows of `width`; `codes`: quantized."""

    layers: int
    width: int
    heads: int
    inner: int
    tokens: int
    codes: bool = True

    def model(self) -> onnx.ModelProto:
        """Inputs: the rows, and numbers that are added to the scores of each key."""
        graph = Graph(codes=self.codes)
        x = graph.input("rows", graph.random.normal(size=(1, self.tokens, self.width)))
        mask = graph.input("mask", np.zeros((1, 1, 1, self.tokens)))
        x = graph.norm(x)
        for _ in range(self.layers):
            x = self.layer(graph, x, mask)
        return graph.model(x)

    def layer(self, graph: Graph, x: str, mask: str) -> str:
        """Attention and two products, each added to what it was computed from and normalized."""
        size, codes = self.width // self.heads, graph.quantized(x)
        shape = graph.constant(np.array([1, self.tokens, self.heads, size]))
        joined = graph.constant(np.array([1, self.tokens, self.width]))
        parts = [graph.op("Reshape", graph.quantized(graph.dense(codes, self.width)), shape) for _ in range(3)]
        q, k, v = (
            graph.op("Transpose", part, perm=order)
            for part, order in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        scores = graph.op("Mul", graph.op("MatMul", q, k), graph.number(1 / sqrt(size)))
        weights = graph.quantized(graph.op("Softmax", graph.op("Add", scores, mask), axis=-1))
        found = graph.op("Transpose", graph.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        found = graph.dense(graph.quantized(graph.op("Reshape", found, joined)), self.width)
        x = graph.norm(graph.op("Add", found, x))
        found = graph.gelu(graph.dense(graph.quantized(x), self.inner))
        return graph.norm(graph.op("Add", graph.dense(graph.quantized(found), self.width), x))


@dataclass(frozen=True)
class FourBits:
    """`rows` of data times `count` matrices `size` x `size` in four bits, a scale for each 32 numbers of a column.
    `exact`: float data; else each row's blocks are quantized to eight bits when they are read."""

    count: int
    size: int
    rows: int
    exact: bool

    def model(self) -> onnx.ModelProto:
        """Input: the rows."""
        graph, blocks = Graph(), self.size // 32
        x = graph.input("rows", np.zeros((self.rows, self.size)))
        for _ in range(self.count):
            codes = graph.constant(graph.random.integers(0, 256, (self.size, blocks, 16), np.uint8, endpoint=False))
            scales = graph.constant(graph.random.uniform(0.5, 1.5, self.size * blocks).astype(np.float32) / self.size)
            x = graph.node(
                "MatMulNBits", [x, codes, scales], domain="com.microsoft", K=self.size, N=self.size, bits=4,
                block_size=32, accuracy_level=1 if self.exact else 4,
            )  # fmt: skip
        graph.values[x] = np.zeros((self.rows, self.size), np.float32)
        return graph.model(x)


MODELS: dict[str, Encoder | FourBits] = {
    "bert_base_128": Encoder(12, 768, 12, 3072, 128),
    "bert_base_384": Encoder(12, 768, 12, 3072, 384),
    "minilm_128": Encoder(6, 384, 12, 1536, 128),
    "minilm_384": Encoder(6, 384, 12, 1536, 384),
    "bert_base_128_f32": Encoder(12, 768, 12, 3072, 128, codes=False),
    "bert_base_384_f32": Encoder(12, 768, 12, 3072, 384, codes=False),
    "minilm_128_f32": Encoder(6, 384, 12, 1536, 128, codes=False),
    "minilm_384_f32": Encoder(6, 384, 12, 1536, 384, codes=False),
    "encoder_small": Encoder(1, 64, 2, 128, 24),
    "encoder_small_f32": Encoder(1, 64, 2, 128, 24, codes=False),
    "four_bits_1": FourBits(16, 4096, 1, True),
    "four_bits_32": FourBits(16, 4096, 32, True),
    "four_bits_32_int8": FourBits(16, 4096, 32, False),
    "four_bits_small": FourBits(2, 64, 3, True),
}


@dataclass
class Graph:
    """An ONNX graph while it is written, and every value of a run of it in float32, for the scales. Without `codes`,
    nothing is quantized."""

    codes: bool = True
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    constants: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])
    inputs: list[str] = field(default_factory=list[str])
    values: dict[str, Array] = field(default_factory=dict[str, Array])
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def input(self, name: str, value: Array) -> str:
        """An input of the model, float32."""
        self.inputs.append(name)
        self.values[name] = value.astype(np.float32)
        return name

    def constant(self, value: Array) -> str:
        """A constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        self.values[name] = value
        return name

    def number(self, value: float) -> str:
        """A constant of one float."""
        return self.constant(np.array(value, np.float32))

    def node(self, kind: str, inputs: Sequence[str], domain: str = "", **attributes: Any) -> str:
        """An operator; its value is the caller's to say."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **attributes))
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """An operator."""
        name, given = self.node(kind, inputs, **attributes), [self.values[value] for value in inputs]
        self.values[name] = _meaning(kind, given, attributes)
        return name

    def quantized(self, value: str) -> str:
        """As codes from 0 to 255 and back, by the range of the value."""
        if not self.codes:
            return value
        data = self.values[value]
        low, high = min(float(data.min()), 0.0), max(float(data.max()), 1e-6)
        scale = (high - low) / 255
        parameters = [self.number(scale), self.constant(np.array(round(-low / scale), np.uint8))]
        codes = self.node("QuantizeLinear", [value, *parameters])
        found = self.node("DequantizeLinear", [codes, *parameters])
        self.values[found] = data
        return found

    def dense(self, x: str, outputs: int) -> str:
        """A product with random weights, as `weights`, and a bias."""
        inputs = self.values[x].shape[-1]
        matrix = self.weights(self.random.standard_normal((inputs, outputs), np.float32) / np.float32(sqrt(inputs)))
        bias = self.constant(self.random.normal(0, 0.1, outputs).astype(np.float32))
        return self.op("Add", self.op("MatMul", x, matrix), bias)

    def weights(self, weights: Array) -> str:
        """Weights [inputs, outputs] as signed codes with a scale per output."""
        if not self.codes:
            return self.constant(weights)
        scales = np.max(np.abs(weights), axis=0) / np.float32(127)
        zeros = self.constant(np.zeros(len(weights.T), np.int8))
        codes = self.constant(np.rint(weights / scales).astype(np.int8))
        matrix = self.node("DequantizeLinear", [codes, self.constant(scales), zeros], axis=1)
        self.values[matrix] = weights
        return matrix

    def norm(self, x: str) -> str:
        """LayerNormalization of each row, scaled and moved."""
        width: int = self.values[x].shape[-1]
        scale = self.constant(self.random.uniform(0.5, 1.5, width).astype(np.float32))
        return self.op("LayerNormalization", x, scale, self.constant(np.zeros(width, np.float32)), epsilon=1e-12)

    def gelu(self, x: str) -> str:
        """`x / 2 * (1 + erf(x / sqrt(2)))`, as exporters write it."""
        curve = self.op("Erf", self.op("Div", x, self.number(sqrt(2))))
        return self.op("Mul", self.op("Mul", x, self.op("Add", curve, self.number(1))), self.number(0.5))

    def model(self, result: str) -> onnx.ModelProto:
        """The model that returns the value."""
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, self.values[name].shape) for name in self.inputs
        ]
        output = helper.make_tensor_value_info(result, TensorProto.FLOAT, self.values[result].shape)
        graph = helper.make_graph(self.nodes, "transformer", inputs, [output], self.constants)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _meaning(kind: str, given: Sequence[Array], attributes: dict[str, Any]) -> Array:
    """What an operator computes, in float32."""
    x, *others = given
    match kind:
        case "Add":
            return x + others[0]
        case "Mul":
            return x * others[0]
        case "Div":
            return x / others[0]
        case "MatMul":
            return x @ others[0]
        case "Erf":
            return np.tanh(2 / sqrt(pi) * (x + 0.0894 * x**3))  # near enough for a scale
        case "Reshape":
            return x.reshape(others[0])
        case "Transpose":
            return x.transpose(attributes["perm"])
        case "Softmax":
            powers = np.exp(x - x.max(axis=-1, keepdims=True))
            return powers / powers.sum(axis=-1, keepdims=True)
        case "LayerNormalization":
            centred = x - x.mean(axis=-1, keepdims=True)
            deviation = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + attributes["epsilon"])
            return centred / deviation * others[0] + others[1]
        case _:
            raise ValueError(f"no meaning of {kind}")


def write(names: Sequence[str], folder: Path) -> list[Path]:
    """The models' files, written where they are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.onnx" for name in names]
    for name, path in zip(names, paths, strict=True):
        if not path.exists():
            path.write_bytes(MODELS[name].model().SerializeToString())
    return paths


def ratio_rows(results: dict[str, list[dict[str, Any]]], peers: Sequence[str] = PEERS) -> list[list[str]]:
    """By model: processor times in ms of one thread, ours first, and the better peer's over ours."""
    lines: list[list[str]] = []
    for model, rows in results.items():
        times = {row["peer"]: row["processor_s"] for row in rows if row["threads"] == 1 and not row["note"]}
        others = [seconds for peer, seconds in times.items() if peer != "ours"]
        cells = [f"{times[peer] * 1e3:.4g}" if peer in times else "" for peer in peers]
        lines.append([model, *cells, f"{min(others) / times['ours']:.2f}" if others and "ours" in times else ""])
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the models, measure, and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.transformers", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help=f"of {', '.join(MODELS)} (default: all)")
    parser.add_argument("--folder", type=Path, help="where the models are written, and kept (default: a temporary one)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each round (default: %(default)s)")
    parser.add_argument("--kernels", action="store_true", help="our kernels one by one, instead of other runtimes")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(MODELS):
        parser.error(f"unknown models: {', '.join(sorted(unknown))}; the known ones are {', '.join(MODELS)}")
    with tempfile.TemporaryDirectory() as scratch:
        paths = write(options.names or [*MODELS], options.folder or Path(scratch))
        timing = ["--rounds", str(options.rounds), "--seconds", str(options.seconds)]
        names = [str(path) for path in paths]
        if options.kernels:
            compare.main([*names, *timing, "--kernels"])
            return
        found = compare.main([*names, *timing, "--peers", ",".join(PEERS), "--threads", "1"])
    head = ("processor time in ms, one thread", *PEERS, "better peer / ours")
    print(f"\n{tables.table(head, ratio_rows(found))}")


if __name__ == "__main__":
    main()
