"""Decoders as exporters write them: keys and values of the past are inputs of open length, and come back longer.

The graphs have the forms of torch's exports of GPT-2 and Llama with `transformers`: shapes computed of shapes, a causal
mask of ranges joined with the caller's, new keys and values behind the old (`Concat`), heads that share keys repeated
(`Expand`). Weights are random.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]
LAYERS, WIDTH, HEADS, INNER, WORDS, BLOCK, ROOM = 2, 64, 4, 64, 48, 32, 256
SIZE = WIDTH // HEADS
PAST, NEW = "past_sequence_length", "sequence_length"
TOTAL = f"{PAST} + {NEW}"


@dataclass
class Decoder:
    """`llama`: RMS norms, turned queries and keys, heads that share keys, a gate; else layer norms and learned
    positions. `bits`: 32, 8 (weights and data in QDQ form), 4 (`MatMulNBits`). `sdpa`: attention is torch's
    scaled_dot_product_attention, which scales queries and keys and makes rows without any key 0."""

    llama: bool
    bits: int = 32
    sdpa: bool = False
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])

    @property
    def groups(self) -> int:
        """Heads of keys and values."""
        return HEADS // 2 if self.llama else HEADS

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike = np.int64) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def weights(self, *shape: int) -> Array:
        return (self.random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    def size(self, x: str, axis: int) -> str:
        """A size as a scalar."""
        return self.node("Gather", self.node("Shape", x), self.constant(axis), axis=0)

    def vector(self, *sizes: str | int) -> str:
        """Sizes, of which some are computed, as a vector."""
        parts = [
            self.constant([size]) if isinstance(size, int) else self.node("Unsqueeze", size, self.constant([0]))
            for size in sizes
        ]
        return self.node("Concat", *parts, axis=0)

    def product(self, x: str, inputs: int, outputs: int) -> str:
        if self.bits == 4:
            blocks = inputs // BLOCK
            codes = self.constant(self.random.integers(0, 256, (outputs, blocks, BLOCK // 2)), np.uint8)
            scales = self.constant(self.random.uniform(0.5, 1.5, outputs * blocks) / (5 * np.sqrt(inputs)), np.float32)
            domain = "com.microsoft"
            return self.node(
                "MatMulNBits", x, codes, scales, domain=domain, K=inputs, N=outputs, bits=4, block_size=BLOCK
            )
        if self.bits == 32:
            return self.node("MatMul", x, self.constant(self.weights(inputs, outputs), np.float32))
        weights = self.weights(inputs, outputs)
        scale = np.abs(weights).max(axis=0) / 127
        whole = [self.constant(np.rint(weights / scale), np.int8), self.constant(scale, np.float32)]
        kernel = self.node("DequantizeLinear", *whole, self.constant(np.zeros(outputs), np.int8), axis=1)
        pair = [self.constant(0.05, np.float32), self.constant(3, np.int8)]
        data = self.node("DequantizeLinear", self.node("QuantizeLinear", x, *pair), *pair)
        return self.node("MatMul", data, kernel)

    def norm(self, x: str) -> str:
        gain = self.constant(1 + 0.1 * self.random.standard_normal(WIDTH), np.float32)
        if not self.llama:
            return self.node("LayerNormalization", x, gain, self.constant(np.zeros(WIDTH), np.float32), axis=-1)
        mean = self.node("ReduceMean", self.node("Pow", x, self.constant(2, np.float32)), axes=[-1], keepdims=1)
        root = self.node("Sqrt", self.node("Add", mean, self.constant(1e-5, np.float32)))
        return self.node("Mul", gain, self.node("Mul", x, self.node("Div", self.constant(1, np.float32), root)))

    def heads(self, x: str, count: int) -> str:
        """[1, n, count * SIZE] as [1, count, n, SIZE]."""
        shape = self.vector(self.size(x, 0), self.size(x, 1), count, SIZE)
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 1, 3])

    def turned(self, x: str, angles: tuple[str, str]) -> str:
        ends = [self.constant([end]) for end in (0, SIZE // 2, 1 << 62)]
        first, last = (self.node("Slice", x, *ends[i : i + 2], self.constant([3])) for i in range(2))
        crossed = self.node("Concat", self.node("Neg", last), first, axis=-1)
        return self.node("Add", self.node("Mul", x, angles[0]), self.node("Mul", crossed, angles[1]))

    def angles(self) -> tuple[str, str]:
        """Cosines and sines of positions, [1, 1, n, SIZE]."""
        steps = self.constant(10000.0 ** (-np.arange(0, SIZE, 2) / SIZE), np.float32)
        places = self.node("Cast", self.node("Unsqueeze", "position_ids", self.constant([2])), to=TensorProto.FLOAT)
        half = self.node("Mul", places, steps)
        both = self.node("Unsqueeze", self.node("Concat", half, half, axis=-1), self.constant([1]))
        return self.node("Cos", both), self.node("Sin", both)

    def mask(self, past: str) -> str:
        """0 for keys that a query sees, and the lowest number for others, [1, 1, n, all]."""
        new = self.size("input_ids", 1)
        total = self.node("Add", past, new)
        zero, one = self.constant(0), self.constant(1)
        rows = self.node("Add", self.node("Range", zero, new, one), past)
        columns = self.node("Range", zero, total, one)
        seen = self.node("LessOrEqual", self.node("Unsqueeze", columns, self.constant([0, 1, 2])), self.node(
            "Unsqueeze", rows, self.constant([0, 1, 3])))  # fmt: skip
        own = self.node("Cast", "attention_mask", to=TensorProto.BOOL)
        seen = self.node("And", seen, self.node("Unsqueeze", own, self.constant([1, 2])))
        shape = self.vector(self.size("input_ids", 0), 1, new, total)
        low = -np.inf if self.sdpa else float(np.finfo(np.float32).min)
        return self.node("Where", self.node("Expand", seen, shape), self.constant(0, np.float32), self.constant(
            low, np.float32))  # fmt: skip

    def repeated(self, x: str) -> str:
        """Keys or values for each head."""
        if self.groups == HEADS:
            return x
        dims = [self.size(x, axis) for axis in range(4)]
        wide = self.node("Unsqueeze", x, self.constant([2]))
        wide = self.node("Expand", wide, self.vector(*dims[:2], HEADS // self.groups, *dims[2:]))
        return self.node("Reshape", wide, self.vector(dims[0], HEADS, *dims[2:]))

    def layer(self, x: str, number: int, mask: str, angles: tuple[str, str]) -> str:
        normed = self.norm(x)
        q, k, v = (
            self.heads(self.product(normed, WIDTH, count * SIZE), count) for count in (HEADS, self.groups, self.groups)
        )
        if self.llama:
            q, k = self.turned(q, angles), self.turned(k, angles)
        k, v = (
            self.node("Concat", f"past_key_values.{number}.{n}", x, output=f"present.{number}.{n}", axis=-2)
            for n, x in (("key", k), ("value", v))
        )
        k, v = self.repeated(k), self.repeated(v)
        columns, root = self.node("Transpose", k, perm=[0, 1, 3, 2]), np.sqrt(SIZE)
        if self.sdpa:
            q, columns = (self.node("Mul", x, self.constant(1 / np.sqrt(root), np.float32)) for x in (q, columns))
        scores = self.node("MatMul", q, columns)
        scores = scores if self.sdpa else self.node("Div", scores, self.constant(root, np.float32))
        weights = self.node("Softmax", self.node("Add", scores, mask), axis=-1)
        if self.sdpa:
            weights = self.node("Where", self.node("IsNaN", weights), self.constant(0, np.float32), weights)
        found = self.node("Transpose", self.node("MatMul", weights, v), perm=[0, 2, 1, 3])
        shape = self.vector(self.size(x, 0), self.size(x, 1), WIDTH)
        x = self.node("Add", x, self.product(self.node("Reshape", found, shape), WIDTH, WIDTH))
        normed = self.norm(x)
        inner = self.product(normed, WIDTH, INNER)
        if self.llama:
            gate = self.product(normed, WIDTH, INNER)
            inner = self.node("Mul", inner, self.node("Mul", gate, self.node("Sigmoid", gate)))
        else:
            inner = self.node("Tanh", inner)
        return self.node("Add", x, self.product(inner, INNER, WIDTH))

    def model(self) -> bytes:
        """The file."""
        table = self.constant(self.weights(WORDS, WIDTH) * 5, np.float32)
        x = self.node("Gather", table, "input_ids")
        if not self.llama:
            places = self.constant(self.weights(ROOM, WIDTH), np.float32)
            x = self.node("Add", x, self.node("Gather", places, "position_ids"))
        past = self.size("past_key_values.0.key", 2)
        mask, angles = self.mask(past), self.angles()
        for number in range(LAYERS):
            x = self.layer(x, number, mask, angles)
        self.node("Identity", self.product(self.norm(x), WIDTH, WORDS), output="logits")
        of, long = helper.make_tensor_value_info, TensorProto.INT64
        names = [f"{layer}.{name}" for layer in range(LAYERS) for name in ("key", "value")]
        inputs = [of("input_ids", long, ["batch", NEW]), of("attention_mask", long, ["batch", TOTAL])]
        inputs += [of("position_ids", long, ["batch", NEW])]
        inputs += [of(f"past_key_values.{n}", TensorProto.FLOAT, ["batch", self.groups, PAST, SIZE]) for n in names]
        outputs = [of("logits", TensorProto.FLOAT, ["batch", NEW, WORDS])]
        outputs += [of(f"present.{n}", TensorProto.FLOAT, ["batch", self.groups, TOTAL, SIZE]) for n in names]
        constants = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, constants)
        versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=8).SerializeToString()
