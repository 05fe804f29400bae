"""Decoders of the shapes of GPT-2 and Llama with random weights, a token at a time, against other runtimes:
`python -m benchmarks.decoding [NAME...]`.

Each has seen `PAST` tokens. Keys and values of the past are inputs, and joined to the new ones (`Concat`), as exporters
write it; ours is a stream whose caches have room for `ROOM` tokens, which are written in place. (OpenVINO's pass
MakeStateful makes it slower.) All run in one process on one thread, in turns; the time of a token is compared with that
of reading the weights, and keys and values so far, in the same turns.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from time import process_time

import numpy as np
import onnx
from onnx import TensorProto, helper

import relay
from benchmarks import tables
from benchmarks.transformers import Graph
from relay.lowering.codegen import compile_text
from relay.runtime import DynamicExecutable, Library
from relay.runtime.memory import address, aligned_bytes
from relay.target import host
from relay.tools.peers import Array, adapter, installed

PAST, ROOM = 511, 1024
BLOCK = 32


@dataclass(frozen=True)
class Decoder:
    """`layers` blocks of `heads` heads that share keys and values of `groups`, and words of which there are `words`.
    `llama`: RMS norms, turned queries and keys, a gate; else layer norms and GELU. `bits`: 8 for codes of data and
    weights, 4 for weights in blocks of 32 and data as floats."""

    layers: int
    width: int
    heads: int
    groups: int
    inner: int
    words: int
    bits: int
    llama: bool = False

    @property
    def size(self) -> int:
        """Numbers of a head."""
        return self.width // self.heads

    @property
    def bytes_read(self) -> float:
        """What a token must read: weights with their scales, keys and values that were seen, in float32."""
        rows = self.width + 2 * self.groups * self.size
        matrices = self.width * (rows + self.width + (3 if self.llama else 2) * self.inner)
        each = 1 + 4 / self.width if self.bits == 8 else 0.5 + 4 / BLOCK
        caches = self.layers * 2 * self.groups * self.size * (PAST + 1) * 4
        return (self.layers * matrices + self.words * self.width) * each + caches

    def model(self, open: bool) -> onnx.ModelProto:
        """Inputs: the token's row, its position where the model reads it, then keys and values of each layer. `open`:
        of any length."""
        writer = Writer(self)
        x = writer.graph.input("row", writer.graph.random.normal(size=(1, 1, self.width)))
        for layer in range(self.layers):
            x = writer.layer(x, layer)
        return writer.model(writer.product(writer.norm(x), self.words), open)

    def inputs(self) -> list[Array]:
        """The row, the position where the model reads it, and caches."""
        random = np.random.default_rng(1)
        row = random.normal(size=(1, 1, self.width)).astype(np.float32)
        caches = [random.normal(size=(1, self.groups, PAST, self.size)) for _ in range(2 * self.layers)]
        return [row, *([np.array([PAST])] if self.llama else []), *(cache.astype(np.float32) for cache in caches)]


class Writer:
    """One file."""

    def __init__(self, decoder: Decoder):
        self.decoder, self.graph = decoder, Graph(codes=decoder.bits == 8)
        self.caches: list[tuple[str, str]] = []

    def product(self, x: str, outputs: int) -> str:
        """A row times random weights."""
        graph, inputs = self.graph, self.graph.values[x].shape[-1]
        if self.decoder.bits == 8:
            return graph.op("MatMul", graph.quantized(x), graph.weights(
                graph.random.standard_normal((inputs, outputs), np.float32) / np.float32(sqrt(inputs))))  # fmt: skip
        blocks = inputs // BLOCK
        codes = graph.constant(graph.random.integers(0, 256, (outputs, blocks, BLOCK // 2), np.uint8, endpoint=False))
        spread = np.array(graph.random.uniform(0.5, 1.5, outputs * blocks) / (4.6 * sqrt(inputs)), np.float32)
        found = graph.node(
            "MatMulNBits", [x, codes, graph.constant(spread)], domain="com.microsoft",
            K=inputs, N=outputs, bits=4, block_size=BLOCK, accuracy_level=4,
        )  # fmt: skip
        graph.values[found] = graph.random.normal(size=(*graph.values[x].shape[:-1], outputs)).astype(np.float32)
        return found

    def norm(self, x: str) -> str:
        """Of Llama, as exporters write it: `x / sqrt(mean(x * x) + e) * scale`."""
        graph, data = self.graph, self.graph.values[x]
        if not self.decoder.llama:
            return graph.norm(x)
        square = graph.node("Mul", [x, x])
        mean = graph.node("ReduceMean", [square], axes=[-1], keepdims=1)
        root = graph.node("Sqrt", [graph.node("Add", [mean, graph.number(1e-5)])])
        scaled = graph.node("Div", [x, root])
        graph.values[scaled] = data / np.sqrt((data * data).mean(axis=-1, keepdims=True) + 1e-5)
        return graph.op("Mul", scaled, graph.constant(np.full(self.decoder.width, 1.1, np.float32)))

    def turned(self, x: str, angles: tuple[str, str]) -> str:
        """Pairs of halves turned by the position's angles."""
        graph, half = self.graph, self.decoder.size // 2
        parts: list[str] = []
        for first, last in ((0, half), (half, 2 * half)):
            ends = [graph.constant(np.array([end])) for end in (first, last, -1)]
            parts.append(graph.node("Slice", [x, *ends]))
        crossed = graph.node("Concat", [graph.node("Neg", [parts[1]]), parts[0]], axis=-1)
        pair = [graph.node("Mul", [value, angle]) for value, angle in zip((x, crossed), angles, strict=True)]
        found = graph.node("Add", pair)
        graph.values[found] = graph.values[x]
        return found

    def angles(self) -> tuple[str, str]:
        """Cosines and sines of the position."""
        graph, size = self.graph, self.decoder.size
        each = np.outer(np.arange(ROOM), 10000.0 ** (-np.arange(size // 2) / (size // 2)))
        tables = [np.concatenate([f(each)] * 2, axis=-1).astype(np.float32) for f in (np.cos, np.sin)]
        one, other = (graph.node("Gather", [graph.constant(table), "position"]) for table in tables)
        return one, other

    def grown(self, x: str, layer: int, name: str) -> str:
        """Keys or values with the new row."""
        graph, decoder = self.graph, self.decoder
        past, present = f"past.{layer}.{name}", f"present.{layer}.{name}"
        self.caches.append((past, present))
        graph.nodes.append(helper.make_node("Concat", [past, x], [present], axis=-2))
        rows = np.random.default_rng(2).normal(size=(1, decoder.groups, PAST, decoder.size)).astype(np.float32)
        graph.values[present] = np.concatenate([rows, graph.values[x]], axis=2)
        return present

    def layer(self, x: str, number: int) -> str:
        """Attention and products, each added to what it was computed from."""
        graph, decoder = self.graph, self.decoder
        heads, groups, size = decoder.heads, decoder.groups, decoder.size
        normed = self.norm(x)
        q = graph.op("Reshape", self.product(normed, heads * size), graph.constant(
            np.array([1, groups, heads // groups, size])))  # fmt: skip
        shape = graph.constant(np.array([1, groups, 1, size]))
        k, v = (graph.op("Reshape", self.product(normed, groups * size), shape) for _ in range(2))
        if decoder.llama:
            angles = self.angles()
            q, k = self.turned(q, angles), self.turned(k, angles)
        k, v = self.grown(k, number, "k"), self.grown(v, number, "v")
        scores = graph.op("Mul", graph.op("MatMul", q, graph.op("Transpose", k, perm=[0, 1, 3, 2])), graph.number(
            1 / sqrt(size)))  # fmt: skip
        found = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), v)
        x = graph.op("Add", x, self.product(graph.op("Reshape", found, graph.constant(
            np.array([1, 1, decoder.width]))), decoder.width))  # fmt: skip
        normed = self.norm(x)
        inner = self.product(normed, decoder.inner)
        if decoder.llama:
            other = self.product(normed, decoder.inner)
            curve = graph.node("Sigmoid", [inner])
            graph.values[curve] = 1 / (1 + np.exp(-graph.values[inner]))
            inner = graph.op("Mul", graph.op("Mul", inner, curve), other)
        else:
            inner = graph.gelu(inner)
        return graph.op("Add", x, self.product(inner, decoder.width))

    def model(self, result: str, open: bool) -> onnx.ModelProto:
        """The model: its first output is `result`, the others are caches."""
        decoder, of = self.decoder, helper.make_tensor_value_info
        lengths = ("past", "past + 1") if open else (PAST, PAST + 1)
        held, grown = ([1, decoder.groups, length, decoder.size] for length in lengths)
        inputs = [of("row", TensorProto.FLOAT, [1, 1, decoder.width])]
        inputs += [of("position", TensorProto.INT64, [1])] if decoder.llama else []
        inputs += [of(past, TensorProto.FLOAT, held) for past, _ in self.caches]
        outputs = [of(result, TensorProto.FLOAT, [1, 1, decoder.words])]
        outputs += [of(present, TensorProto.FLOAT, grown) for _, present in self.caches]
        graph = helper.make_graph(self.graph.nodes, "decoder", inputs, outputs, self.graph.constants)
        versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=10)


DECODERS: dict[str, Decoder] = {
    "gpt2_int8": Decoder(12, 768, 12, 12, 3072, 50257, 8),
    "gpt2_medium_4bit": Decoder(24, 1024, 16, 16, 4096, 50257, 4),
    "llama_4bit": Decoder(8, 2048, 32, 4, 5632, 32000, 4, llama=True),
    "small_int8": Decoder(1, 64, 2, 2, 128, 96, 8),
    "small_4bit": Decoder(1, 64, 4, 2, 128, 96, 4, llama=True),
}

PEERS = ("ours", "openvino", "onnxruntime")
READING = """
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define void @relay_reading(ptr %data) nounwind {
entry:
  br label %turn
turn:
  %i = phi i64 [ 0, %entry ], [ %next, %turn ]
  %s = phi <64 x i8> [ zeroinitializer, %entry ], [ %t, %turn ]
  PARTS
  %next = add i64 %i, 64
  %more = icmp ult i64 %next, EACH
  br i1 %more, label %turn, label %end
end:
  store <64 x i8> %t, ptr %data, align 64
  ret void
}
"""
STREAMS = 8
"""Places of memory that are read by turns: one after the other gives two thirds of what memory can give."""


def ours(decoder: Decoder, path: Path) -> Callable[[], object]:
    """A step of a stream, whose caches hold the past."""
    executable = relay.build(path, maximum={"past": ROOM})
    assert isinstance(executable, DynamicExecutable)
    stream, seen = executable.stream(), {"past": np.array([PAST])}
    count = 1 + decoder.llama
    given, caches = decoder.inputs()[:count], decoder.inputs()[count:]
    names = [f"past.{layer}.{name}" for layer in range(decoder.layers) for name in "kv"]
    room = [(0, 0), (0, 0), (0, ROOM - PAST), (0, 0)]
    stream.set_states({name: np.pad(cache, room) for name, cache in zip(names, caches, strict=True)})

    def step() -> object:
        stream.set_states(seen)
        return stream.run(*given)

    return step


def reading(size: int) -> Callable[[], object]:
    """A step that reads so many bytes, 64 of each of `STREAMS` places in turn, and prefetches those that follow."""
    each = size // STREAMS // 64 * 64
    lines = ["%t0 = or <64 x i8> %s, zeroinitializer"]
    for n in range(STREAMS):
        name = "%t" if n == STREAMS - 1 else f"%t{n + 1}"
        lines += [
            f"%a{n} = add i64 %i, {n * each}", f"%p{n} = getelementptr i8, ptr %data, i64 %a{n}",
            f"%q{n} = getelementptr i8, ptr %p{n}, i64 1024",
            f"call void @llvm.prefetch.p0(ptr %q{n}, i32 0, i32 3, i32 1)",
            f"%x{n} = load <64 x i8>, ptr %p{n}, align 64", f"{name} = or <64 x i8> %t{n}, %x{n}",
        ]  # fmt: skip
    text = READING.replace("PARTS", "\n  ".join(lines)).replace("EACH", str(each))
    library = Library(compile_text(text, host()).shared_object())
    run = library.function("relay_reading")
    data = aligned_bytes(size + 2048)
    data[:] = 1
    return lambda: (library, run(address(data)))  # the code is there as long as the library is


def measure(name: str, folder: Path, rounds: int) -> list[str]:
    """A row of the table: processor times in ms, medians of rounds by turns."""
    decoder, steps = DECODERS[name], dict[str, Callable[[], object]]()
    for peer in PEERS:
        path = folder / f"{name}.{'open' if peer == 'ours' else 'fixed'}.onnx"
        if not path.exists():
            path.write_bytes(decoder.model(peer == "ours").SerializeToString())
        if peer == "ours":
            steps[peer] = ours(decoder, path)
        elif installed(peer):
            steps[peer] = adapter(peer).load(path, 1, decoder.inputs()).call
    size = round(decoder.bytes_read)
    steps["reading"] = reading(size)
    times: dict[str, list[float]] = {each: [] for each in steps}
    for _ in range(rounds):
        for each, step in steps.items():
            step()  # what others left in the caches
            start = process_time()
            step()
            times[each].append((process_time() - start) * 1e3)
    found = {each: float(np.median(every)) for each, every in times.items()}
    others = [found[peer] for peer in PEERS[1:] if peer in found]
    cells = [f"{found[each]:.4g}" if each in found else "" for each in (*PEERS, "reading")]
    ratio = f"{min(others) / found['ours']:.2f}" if others else ""
    return [name, f"{size / 1e6:.0f}", *cells, ratio, f"{found['reading'] / found['ours']:.0%}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the models, measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoding", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(DECODERS)} (default: all)")
    parser.add_argument("--folder", type=Path, help="where the models are written, and kept (default: a temporary one)")
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(DECODERS):
        parser.error(f"unknown decoders: {', '.join(sorted(unknown))}; the known ones are {', '.join(DECODERS)}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [measure(name, folder, options.rounds) for name in options.names or [*DECODERS]]
    head = ("ms a token, one thread", "MB", *PEERS, "reading", "better peer / ours", "of reading")
    print(tables.table(head, rows))


if __name__ == "__main__":
    main()
