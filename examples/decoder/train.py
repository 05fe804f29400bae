"""Train a small language model of bytes on the text of this repository's documentation, with numpy alone.

`python examples/decoder/train.py` writes weights.npz beside this file: two layers of four heads, 64 wide, for texts
of at most 128 bytes. A few minutes on one core.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
HERE = Path(__file__).resolve().parent
LAYERS, HEADS, WIDTH, HIDDEN, LENGTH, BYTES = 2, 4, 64, 256, 128, 256
EPSILON = 1e-5
SEED, BATCH, STEPS, RATE = 0, 8, 2500, 3e-3


def initial() -> dict[str, Array]:
    """The weights that training starts with."""
    rng = np.random.default_rng(SEED)

    def drawn(*shape: int) -> Array:
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    found = {"embedding": 0.3 * drawn(WIDTH, BYTES).T.copy(), "position": 0.1 * drawn(WIDTH, LENGTH).T.copy()}
    for layer in range(LAYERS):
        found |= {
            f"norm1.{layer}": np.ones(WIDTH, np.float32), f"norm2.{layer}": np.ones(WIDTH, np.float32),
            f"qkv.{layer}": drawn(WIDTH, 3 * WIDTH), f"out.{layer}": 0.3 * drawn(WIDTH, WIDTH),
            f"up.{layer}": drawn(WIDTH, HIDDEN), f"down.{layer}": 0.3 * drawn(HIDDEN, WIDTH),
        }  # fmt: skip
    return found | {"norm": np.ones(WIDTH, np.float32)}


class Tape:
    """What was computed, so that gradients can be followed back. `seen` gets what is named, for calibration."""

    def __init__(self, weights: dict[str, Array], seen: Callable[[str, Array], None] | None = None):
        self.weights, self.seen = weights, seen
        self.gradients = {name: np.zeros_like(array) for name, array in weights.items()}
        self.steps: list[Callable[[], None]] = []

    def watch(self, name: str, value: Array) -> None:
        if self.seen is not None:
            self.seen(name, value)

    def product(self, x: Node, name: str) -> Node:
        """`x` times a matrix of weights."""
        self.watch(name, x.value)
        result = Node(x.value @ self.weights[name])

        def back() -> None:
            x.gradient += result.gradient @ self.weights[name].T
            self.gradients[name] += x.value.reshape(-1, x.value.shape[-1]).T @ result.gradient.reshape(
                -1, result.value.shape[-1]
            )

        self.steps.append(back)
        return result

    def norm(self, x: Node, name: str) -> Node:
        """Divided by the root of the mean square, times a weight per channel."""
        scale = 1 / np.sqrt(np.mean(x.value**2, axis=-1, keepdims=True) + EPSILON)
        unit = x.value * scale
        result = Node(unit * self.weights[name])

        def back() -> None:
            self.gradients[name] += (result.gradient * unit).sum(axis=(0, 1))
            slope = result.gradient * self.weights[name]
            x.gradient += scale * (slope - unit * np.mean(slope * unit, axis=-1, keepdims=True))

        self.steps.append(back)
        return result

    def relu(self, x: Node) -> Node:
        result = Node(np.maximum(x.value, 0))
        self.steps.append(lambda: x.add(result.gradient * (x.value > 0)))
        return result

    def plus(self, x: Node, y: Node) -> Node:
        result = Node(x.value + y.value)
        self.steps.append(lambda: (x.add(result.gradient), y.add(result.gradient)) and None)
        return result

    def attention(self, x: Node, layer: int) -> Node:
        """Each byte looks at those before it and itself."""
        batch, length, _ = x.value.shape
        parts = x.value.reshape(batch, length, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)
        q, k, v = parts
        for name, part in zip(("q", "k", "v"), parts, strict=True):
            self.watch(f"{name}.{layer}", part)
        scores = q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(q.shape[-1]))
        scores[..., np.triu(np.ones((length, length), bool), 1)] = -1e9
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        result = Node((p @ v).transpose(0, 2, 1, 3).reshape(batch, length, -1))

        def back() -> None:
            slope = result.gradient.reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3)
            of_p = slope @ v.swapaxes(-1, -2)
            of_scores = p * (of_p - (of_p * p).sum(axis=-1, keepdims=True)) / np.float32(np.sqrt(q.shape[-1]))
            found = np.stack([of_scores @ k, of_scores.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ slope])
            x.gradient += found.transpose(1, 3, 0, 2, 4).reshape(x.value.shape)

        self.steps.append(back)
        return result

    def embedded(self, tokens: Array) -> Node:
        result = Node(self.weights["embedding"][tokens] + self.weights["position"][: tokens.shape[1]])

        def back() -> None:
            np.add.at(self.gradients["embedding"], tokens, result.gradient)
            self.gradients["position"][: tokens.shape[1]] += result.gradient.sum(axis=0)

        self.steps.append(back)
        return result

    def scores(self, x: Node) -> Node:
        """How likely each byte is the next, by the table of embeddings."""
        table = self.weights["embedding"]
        self.watch("embedding", x.value)
        result = Node(x.value @ table.T)

        def back() -> None:
            x.gradient += result.gradient @ table
            self.gradients["embedding"] += result.gradient.reshape(-1, BYTES).T @ x.value.reshape(-1, WIDTH)

        self.steps.append(back)
        return result


class Node:
    """A value and its gradient."""

    def __init__(self, value: Array):
        self.value, self.gradient = value, np.zeros_like(value)

    def add(self, gradient: Array) -> None:
        self.gradient += gradient


def model(tape: Tape, tokens: Array) -> Node:
    """The scores of the next byte, [batch, length, 256]."""
    x = tape.embedded(tokens)
    for layer in range(LAYERS):
        seen = tape.attention(tape.product(tape.norm(x, f"norm1.{layer}"), f"qkv.{layer}"), layer)
        x = tape.plus(x, tape.product(seen, f"out.{layer}"))
        hidden = tape.relu(tape.product(tape.norm(x, f"norm2.{layer}"), f"up.{layer}"))
        x = tape.plus(x, tape.product(hidden, f"down.{layer}"))
    return tape.scores(tape.norm(x, "norm"))


def loss(tape: Tape, text: Array) -> float:
    """Nats per byte of texts, [batch, length + 1]; gradients are in the tape."""
    scores = model(tape, text[:, :-1])
    wanted = text[:, 1:]
    p = np.exp(scores.value - scores.value.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    rows = np.take_along_axis(p, wanted[..., None], axis=-1)
    scores.gradient = p / wanted.size
    np.put_along_axis(scores.gradient, wanted[..., None], (rows - 1) / wanted.size, axis=-1)
    for back in reversed(tape.steps):
        back()
    return float(-np.log(rows + 1e-30).mean())


def corpus() -> Array:
    """The documentation as bytes."""
    pages = sorted((HERE.parents[1] / "docs").glob("*.md"))
    return np.frombuffer(b"\n".join(page.read_bytes() for page in pages), np.uint8).astype(np.int64)


def batches(text: Array, rng: np.random.Generator) -> Array:
    starts = rng.integers(0, len(text) - LENGTH - 1, BATCH)
    return np.stack([text[start : start + LENGTH + 1] for start in starts])


def train(text: Array, steps: int) -> dict[str, Array]:
    """The weights after so many steps of Adam; every hundredth loss is printed."""
    weights, rng = initial(), np.random.default_rng(SEED)
    first = {name: np.zeros_like(array) for name, array in weights.items()}
    second = {name: np.zeros_like(array) for name, array in weights.items()}
    started, mean = time.monotonic(), 5.5
    for step in range(1, steps + 1):
        tape = Tape(weights)
        mean += 0.02 * (loss(tape, batches(text, rng)) - mean)
        rate = RATE * min(step / 100, 1) * (0.02 + 0.98 * (1 + np.cos(np.pi * step / steps)) / 2)
        for name, gradient in tape.gradients.items():
            first[name] += 0.1 * (gradient - first[name])
            second[name] += 0.01 * (gradient**2 - second[name])
            change = first[name] / (1 - 0.9**step) / (np.sqrt(second[name] / (1 - 0.99**step)) + 1e-8)
            weights[name] -= (rate * change).astype(np.float32)
        if step % 100 == 0:
            print(f"{step:5}: {mean:.3f} nats per byte, {time.monotonic() - started:.0f} s", flush=True)
    return weights


if __name__ == "__main__":
    found = train(corpus(), int(sys.argv[1]) if len(sys.argv) > 1 else STEPS)
    np.savez_compressed(HERE / "weights.npz", **{name: array.astype(np.float16) for name, array in found.items()})
