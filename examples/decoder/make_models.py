"""Write the weights that train.py found as two ONNX files with caches: int8 and four-bit.

`python examples/decoder/make_models.py` writes decoder_int8.onnx (weights and data as 8-bit codes, calibrated on the
training text) and decoder_4bit.onnx (weights in blocks of 32 with a scale each, data as floats). Needs onnx.

Both take the bytes of a piece of text, [1, n], their positions, [n], and for each layer the keys and values of all
positions so far; they give the scores of the next byte after each, and the caches with the new rows written into them.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import onnx
import train
from onnx import TensorProto, helper, numpy_helper
from train import BYTES, EPSILON, HEADS, HERE, LAYERS, LENGTH, WIDTH, Array

SIZE = WIDTH // HEADS
BLOCK = 32


class Graph:
    """Nodes and constants of a graph; `ranges` are the largest magnitudes of data, for codes."""

    def __init__(self, weights: dict[str, Array], ranges: dict[str, float]):
        self.weights, self.ranges = weights, ranges
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: object) -> str:
        output = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=f"node_{output}", **attributes))
        return output

    def constant(self, name: str, value: object, dtype: type[np.generic] = np.float32) -> str:
        self.constants[name] = np.asarray(value, dtype)
        return name

    def scale(self, name: str) -> list[str]:
        """Scale and zero point of the codes of data."""
        scale = self.constant(f"{name}.scale", self.ranges[name] / 127)
        return [scale, self.constant("zero", 0, np.int8)]

    def codes(self, x: str, name: str) -> str:
        return self.node("QuantizeLinear", x, *self.scale(name))

    def numbers(self, codes: str, name: str) -> str:
        return self.node("DequantizeLinear", codes, *self.scale(name))

    def norm(self, x: str, name: str) -> str:
        gain = self.constant(name, self.weights[name])
        return self.node("RMSNormalization", x, gain, axis=-1, epsilon=EPSILON)

    def heads(self, x: str) -> str:
        """[1, n, 64] as [1, 4, n, 16]."""
        shape = self.constant("heads", [1, -1, HEADS, SIZE], np.int64)
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 1, 3])

    # What differs between the two files

    def product(self, x: str, name: str) -> str:
        """`x` times weights, [inputs, outputs]."""
        raise NotImplementedError

    def pair(self, x: str, y: str, names: tuple[str, str]) -> str:
        """The product of two data, of which the second is a cache."""
        raise NotImplementedError

    def cached(self, x: str, name: str) -> str:
        """The cache of `name` with new rows."""
        raise NotImplementedError

    # The model

    def build(self) -> onnx.ModelProto:
        table = self.constant("table", self.weights["embedding"])
        places = self.constant("places", self.weights["position"])
        x = self.node("Add", self.node("Gather", table, "tokens"), self.node("Gather", places, "positions"))
        columns = self.constant("columns", np.arange(LENGTH)[None], np.int64)
        rows = self.node("Unsqueeze", "positions", self.constant("one", [1], np.int64))
        seen = self.node("LessOrEqual", columns, rows)
        never, root = self.constant("never", -1e9), self.constant("root", 1 / np.sqrt(SIZE))
        self.node("Slice", "positions", *(self.constant(n, [i], np.int64) for n, i in (("from", 0), ("to", 1))),
                  output="first")  # fmt: skip
        for layer in range(LAYERS):
            qkv = self.product(self.norm(x, f"norm1.{layer}"), f"qkv.{layer}")
            parts = [f"{name}.{layer}" for name in "qkv"]
            self.nodes.append(
                helper.make_node("Split", [qkv], [f"part.{name}" for name in parts], axis=-1, num_outputs=3)
            )
            q, *new = (self.heads(f"part.{name}") for name in parts)
            k, v = (self.cached(row, name) for row, name in zip(new, parts[1:], strict=True))
            scores = self.pair(q, self.node("Transpose", k, perm=[0, 1, 3, 2]), (parts[0], parts[1]))
            scores = self.node("Where", seen, self.node("Mul", scores, root), never)
            found = self.pair(self.node("Softmax", scores, axis=-1), v, ("probability", parts[2]))
            flat = self.constant("flat", [1, -1, WIDTH], np.int64)
            found = self.node("Reshape", self.node("Transpose", found, perm=[0, 2, 1, 3]), flat)
            x = self.node("Add", x, self.product(found, f"out.{layer}"))
            hidden = self.node("Relu", self.product(self.norm(x, f"norm2.{layer}"), f"up.{layer}"))
            x = self.node("Add", x, self.product(hidden, f"down.{layer}"))
        scores = self.product(self.norm(x, "norm"), "embedding")
        self.node("Identity", scores, output="scores")
        cache = [1, HEADS, LENGTH, SIZE]
        names = [f"{name}.{layer}" for layer in range(LAYERS) for name in "kv"]
        of = helper.make_tensor_value_info
        inputs = [of("tokens", TensorProto.INT64, [1, "n"]), of("positions", TensorProto.INT64, ["n"])]
        inputs += [of(f"past.{name}", self.CACHE, cache) for name in names]
        outputs = [of("scores", TensorProto.FLOAT, [1, "n", BYTES])]
        outputs += [of(f"present.{name}", self.CACHE, cache) for name in names]
        constants = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, constants)
        versions = [helper.make_opsetid("", 24), helper.make_opsetid("com.microsoft", 1)]
        made = helper.make_model(graph, opset_imports=versions, producer_name="relay example")
        onnx.checker.check_model(made)
        return made

    CACHE = TensorProto.FLOAT

    def matrix(self, name: str) -> Array:
        """Weights as [inputs, outputs]."""
        return self.weights[name].T if name == "embedding" else self.weights[name]


class Codes(Graph):
    """All products of 8-bit codes; caches hold codes."""

    CACHE = TensorProto.INT8

    def product(self, x: str, name: str) -> str:
        weights = self.matrix(name)
        scale = np.abs(weights).max(axis=0) / 127
        codes = self.constant(f"{name}.codes", np.rint(weights / scale), np.int8)
        zeros = self.constant(f"{name}.zeros", np.zeros(len(scale)), np.int8)
        whole = self.node("DequantizeLinear", codes, self.constant(f"{name}.scales", scale), zeros, axis=1)
        return self.node("MatMul", self.numbers(self.codes(x, name), name), whole)

    def pair(self, x: str, y: str, names: tuple[str, str]) -> str:
        return self.node("MatMul", self.numbers(self.codes(x, names[0]), names[0]), y)

    def cached(self, x: str, name: str) -> str:
        given = self.codes(x, name)
        found = self.node("TensorScatter", f"past.{name}", given, "first", output=f"present.{name}", axis=-2)
        return self.numbers(found, name)


class FourBits(Graph):
    """Weights in blocks of four bits."""

    def product(self, x: str, name: str) -> str:
        weights = self.matrix(name).T
        outputs, inputs = weights.shape
        blocks = weights.reshape(outputs, inputs // BLOCK, BLOCK)
        largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=-1)[..., None], axis=-1)
        scale = np.where(largest == 0, 1, largest / -8)
        codes = np.clip(np.rint(blocks / scale) + 8, 0, 15).astype(np.uint8)
        packed = codes[..., ::2] | codes[..., 1::2] << 4
        given = [self.constant(f"{name}.codes", packed, np.uint8), self.constant(f"{name}.scales", scale.reshape(-1))]
        sizes = {"K": inputs, "N": outputs, "bits": 4, "block_size": BLOCK}
        return self.node("MatMulNBits", x, *given, domain="com.microsoft", **sizes)

    def pair(self, x: str, y: str, names: tuple[str, str]) -> str:
        return self.node("MatMul", x, y)

    def cached(self, x: str, name: str) -> str:
        return self.node("TensorScatter", f"past.{name}", x, "first", output=f"present.{name}", axis=-2)


def calibrated(weights: dict[str, Array]) -> dict[str, float]:
    """The largest magnitudes of data on some of the training text."""
    found: dict[str, float] = defaultdict(float, probability=1.0)

    def seen(name: str, value: Array) -> None:
        found[name] = max(found[name], float(np.abs(value).max()))

    text = train.batches(train.corpus(), np.random.default_rng(1))
    train.model(train.Tape(weights, seen), text[:, :-1])
    return dict(found)


if __name__ == "__main__":
    stored = np.load(HERE / "weights.npz")
    weights = {name: stored[name].astype(np.float32) for name in stored.files}
    ranges = calibrated(weights)
    for name, kind in (("int8", Codes), ("4bit", FourBits)):
        path = HERE / f"decoder_{name}.onnx"
        path.write_bytes(kind(weights, ranges).build().SerializeToString())
        print(f"{path.name}: {path.stat().st_size} bytes")
