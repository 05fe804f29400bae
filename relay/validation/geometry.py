"""The index pattern of convolutions and dense products: the elements of the data that each pixel of the result
reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from relay.runtime.memory import Array
from relay.validation.claims import Row


@dataclass(frozen=True)
class Geometry:
    """The index pattern of a convolution or dense product. `sources` [pixels of the result, cells of the kernel] is the
    data pixel that each cell reads, or `padding` (the number of data pixels) for none; `inputs` is the number of data
    channels; `extent` the kernel's rows and columns."""

    inputs: int
    padding: int
    extent: tuple[int, int]
    sources: Array
    depthwise: bool
    groups: int

    @property
    def pixels(self) -> int:
        """The number of pixels of the result."""
        return self.sources.shape[0]

    @property
    def cells(self) -> int:
        """The number of cells (row and column positions) of the kernel."""
        return self.sources.shape[1]

    def coefficients(self, matrix: Array) -> Array:
        """Return the coefficients of the inputs in each channel's group, [channel, cell * input of the group], as
        16-bit integers, taken from `matrix` [channel, cell, input], which has all inputs. If a coefficient outside of
        the group is not 0, the channel's coefficients are altered, so that their digest does not match."""
        if self.groups > 1:
            size, inputs = len(matrix) // self.groups, self.inputs // self.groups
            group = np.arange(len(matrix))[:, None] // size
            own = np.take_along_axis(matrix, (group * inputs + np.arange(inputs))[:, None], axis=2)
            others = np.abs(matrix).sum(axis=(1, 2)) - np.abs(own).sum(axis=(1, 2))
            matrix = own + (others > 0)[:, None, None]
        return np.ascontiguousarray(matrix.reshape(len(matrix), -1), "<i2")

    def batches(self, inputs: int, rng: np.random.Generator) -> Iterator[tuple[Array, Array, Array]]:
        """Yield the measurements of the weights as triples of arrays: pixels of the result, and for each the kernel
        position (cell) and the input channel whose weight is measured there. The pixels of a triple read different
        data. Together the triples cover every cell that lies inside the data for some pixel, with all `inputs`
        channels."""
        for cell in range(self.cells):
            inside = np.flatnonzero(self.sources[:, cell] < self.padding)
            if not inside.size:
                continue
            home = int(inside[inside.size // 2])
            free = rng.permutation(self.pixels) if self.cells == 1 else self.apart(home, cell, rng)
            for first in range(0, inputs, len(free)):
                channels = np.arange(first, min(first + len(free), inputs))
                yield free[: len(channels)], np.full(len(channels), cell), channels

    def apart(self, home: int, cell: int, rng: np.random.Generator) -> Array:
        """Choose pixels of the result, `home` among them, so that no two of them read the same data, and at each of
        them the kernel position number `cell` lies inside the data. At most 200 others are tried."""
        chosen, taken = [home], set(self.sources[home].tolist()) - {self.padding}
        for pixel in rng.permutation(self.pixels)[:200]:
            mine = set(self.sources[pixel].tolist()) - {self.padding}
            if self.sources[pixel, cell] < self.padding and not mine & taken:
                chosen.append(int(pixel))
                taken |= mine
        return np.array(chosen)


def geometry(head: Row, shape: tuple[int, ...], data: Array, kernel: tuple[int, ...]) -> Geometry:
    """The geometry of the convolution or dense product that the formula `head` computes; `shape` is the shape of its
    sums, `kernel` that of its weights."""
    if head.formula == "nn.dense":
        rows = int(np.prod(shape[:-1], dtype=np.int64))
        return Geometry(data.shape[-1], rows, (1, 1), np.arange(rows)[:, None], False, 1)
    p = head.parameters
    images, height, width, inputs = data.shape
    layout = str(p["kernel_layout"])
    kh, kw = (kernel[0], kernel[1]) if layout == "HWOI" else (kernel[layout.index("H")], kernel[layout.index("W")])
    (top, left, _, _), (sy, sx), (dy, dx) = p["padding"], p["strides"], p["dilation"]
    y: Array = np.arange(shape[1])[:, None] * sy - top + np.arange(kh)[None, :] * dy
    x: Array = np.arange(shape[2])[:, None] * sx - left + np.arange(kw)[None, :] * dx
    inside = ((y >= 0) & (y < height))[:, None, :, None] & ((x >= 0) & (x < width))[None, :, None, :]
    at: Array = y[:, None, :, None] * width + x[None, :, None, :]
    padding = images * height * width
    sources = np.full((images, *inside.shape), padding)
    for image in range(images):
        sources[image, inside] = at[inside] + image * height * width
    flat = sources.reshape(images * shape[1] * shape[2], kh * kw)
    return Geometry(
        inputs, padding, (kh, kw), flat, layout == "HWOI", 1 if layout == "HWOI" else int(p.get("groups") or 1)
    )
