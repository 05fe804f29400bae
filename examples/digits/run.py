"""Compile the int8 digits model, read the held-out digits with it, and show what came out and what the compiler did.

Run it as `python examples/digits/run.py`. It needs relay and nothing else: no TensorFlow, no scikit-learn.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import relay

HERE = Path(__file__).resolve().parent
SHADES = " .:-=+*#%@"


def draw(image: npt.NDArray[np.float32]) -> list[str]:
    """An 8 x 8 image of numbers in [0, 1] as text, two characters a pixel."""
    levels = np.minimum(image[..., 0] * len(SHADES), len(SHADES) - 1).astype(int)
    return ["".join(SHADES[level] * 2 for level in row) for row in levels]


def show(images: npt.NDArray[np.float32], codes: npt.NDArray[np.int8], labels: npt.NDArray[np.int32]) -> None:
    """Print digits side by side, each above what the model read; a probability is `(code + 128) / 256`."""
    for rows in zip(*map(draw, images), strict=True):
        print("  ".join(rows))
    read = codes.argmax(axis=1)
    sure = (codes.max(axis=1).astype(int) + 128) / 256
    words = [f"{r}, {s:.0%} sure" for r, s in zip(read, sure, strict=True)]
    print("  ".join(f"{word:16}" for word in words))
    print("  ".join(f"{f'is {label}':16}" for label in labels), "\n")


def kibibytes(size: int) -> str:
    return f"{size / 1024:.1f} KiB"


def describe(graph: dict[str, Any]) -> None:
    """Print what the compiler did, from the executable's graph."""
    buffers = graph["buffers"]
    apart = sum(buffer["size"] for buffer in buffers)
    print(f"code        {len(graph['kernels'])} kernel calls of {len(graph['functions'])} functions")
    print(f"constants   {kibibytes(graph['constants_bytes'])} in one block: weights, biases, multipliers")
    arena = kibibytes(graph["arena_bytes"])
    print(f"arena       {arena}, shared by {len(buffers)} buffers of {kibibytes(apart)} in all")
    print(f"made for    {graph['target']['cpu']} ({graph['target']['triple']})")


def main() -> int:
    data = np.load(HERE / "digits_test.npz")
    images, codes, labels = data["images"], data["int8_images"], data["labels"]

    started = time.perf_counter()
    executable = relay.build(HERE / "digits_int8.tflite")
    built = time.perf_counter() - started

    outputs = np.concatenate([np.asarray(executable.run(image[None])) for image in codes])
    executable.set_input(0, codes[:1])
    best = float("inf")
    for _ in range(50):
        started = time.perf_counter()
        for _ in range(20):
            executable.run()
        best = min(best, (time.perf_counter() - started) / 20)

    show(images[:5], outputs[:5], labels[:5])
    read = outputs.argmax(axis=1)
    wrong = np.flatnonzero(read != labels)
    if wrong.size:
        print("read wrongly:\n")
        show(images[wrong[:5]], outputs[wrong[:5]], labels[wrong[:5]])
    print("digit       " + "  ".join(f"{digit:>5}" for digit in range(10)))
    print(
        "right       "
        + "  ".join(f"{np.sum((read == d) & (labels == d)):>2}/{np.sum(labels == d):>2}" for d in range(10))
    )
    right = int(np.sum(read == labels))
    print(f"accuracy    {right} of {len(labels)}, {right / len(labels):.2%}")
    same = np.array_equal(outputs, data["int8_out"])
    verdict = "equal to" if same else "NOT EQUAL TO"
    print(f"integers    {outputs.size}, {verdict} those of TFLite's reference kernels")
    print(f"time        {best * 1e6:.1f} us per image; built in {built:.2f} s")
    graph, _, _ = executable
    describe(json.loads(graph))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
