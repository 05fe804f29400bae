"""Which elements of a matrix each thread holds, how matrices lie in shared memory, and what descriptors say: the tables
of the PTX ISA, release 8.7 (sections by number and title)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Place = Callable[[Integers, Integers, Integers], Integers]
"""A row or column from groupID, threadID_in_group and the number i of an element, low to high."""


@dataclass(frozen=True)
class Fragment:
    """What each thread of a warp has of a matrix."""

    rows: int
    columns: int
    elements: int
    row: Place
    column: Place

    def places(self) -> tuple[Integers, Integers]:
        """Rows and columns of [lane, element]."""
        lane, i = np.arange(32)[:, None], np.arange(self.elements)[None, :]
        group, thread = lane >> 2, lane % 4
        shape = (32, self.elements)
        return (
            np.broadcast_to(self.row(group, thread, i), shape),
            np.broadcast_to(self.column(group, thread, i), shape),
        )


ACCUMULATOR = Fragment(16, 8, 4, lambda g, t, i: np.where(i < 2, g, g + 8), lambda g, t, i: t * 2 + (i & 1))
"""c0 to c3 of all shapes below."""

A_K32 = Fragment(
    16,
    32,
    16,
    lambda g, t, i: np.where((i < 4) | ((8 <= i) & (i < 12)), g, g + 8),
    lambda g, t, i: np.where(i < 8, t * 4 + (i & 3), t * 4 + (i & 3) + 16),
)
B_K32 = Fragment(32, 8, 8, lambda g, t, i: np.where(i < 4, t * 4 + (i & 3), t * 4 + (i & 3) + 16), lambda g, t, i: g)
A_K16 = Fragment(
    16,
    16,
    8,
    lambda g, t, i: np.where((i < 2) | ((4 <= i) & (i < 6)), g, g + 8),
    lambda g, t, i: np.where(i < 4, t * 2 + (i & 1), t * 2 + (i & 1) + 8),
)
B_K16 = Fragment(16, 8, 4, lambda g, t, i: np.where(i < 2, t * 2 + (i & 1), t * 2 + (i & 1) + 8), lambda g, t, i: g)
A_K8 = Fragment(16, 8, 4, lambda g, t, i: np.where(i % 2 == 0, g, g + 8), lambda g, t, i: np.where(i < 2, t, t + 4))
B_K8 = Fragment(8, 8, 2, lambda g, t, i: np.where(i == 0, t, t + 4), lambda g, t, i: g)

MMA: dict[tuple[str, str], tuple[Fragment, Fragment]] = {
    ("m16n8k32", "s8"): (A_K32, B_K32),  # 9.7.14.5.10, Matrix Fragments for mma.m16n8k32
    ("m16n8k32", "u8"): (A_K32, B_K32),
    ("m16n8k16", "f16"): (A_K16, B_K16),  # 9.7.14.5.8, mma.m16n8k16 with floating point type
    ("m16n8k16", "bf16"): (A_K16, B_K16),
    ("m16n8k8", "tf32"): (A_K8, B_K8),  # 9.7.14.5.7, Matrix Fragments for mma.m16n8k8
}
"""The factors' fragments, by shape and the type of A."""


def group_accumulator(columns: int) -> tuple[Integers, Integers]:
    """Rows and columns of [thread of the group, register] of the sums of wgmma m64nNk32: each warp has 16 rows, in each
    run of 8 columns a fragment as of mma's sums. 9.7.15.5.1.1.3, Matrix Fragments for wgmma.mma_async.m64nNk32."""
    thread, i = np.arange(128)[:, None], np.arange(columns // 2)[None, :]
    lane = thread % 32
    row = 16 * (thread // 32) + (lane >> 2) + np.where((i & 2) == 0, 0, 8)
    return row, 8 * (i // 4) + (lane % 4) * 2 + (i & 1)


MATRIX_ROWS = 8
"""Lanes 0 to 7 have the rows' addresses of ldmatrix's first matrix, 8 to 15 of the second, and so on; of each matrix,
lane l gets the two 16-bit elements from 2 (l % 4) on of row l / 4. 9.7.14.5.15, Warp-level matrix load instruction."""


@dataclass(frozen=True)
class Swizzle:
    """Rows of `bytes`, whose 16-byte pieces change places by the row's number; the pattern repeats after `pattern`."""

    bytes: int
    pattern: int

    def of(self, address: Integers) -> Integers:
        """Where the byte lies that would be at this address without swizzling: the bits of the piece, from bit 4 on,
        are xored with as many from bit 7 on."""
        pieces = self.bytes // 16 - 1
        return address ^ (((address >> 7) & pieces) << 4)


SWIZZLES = {1: Swizzle(128, 1024), 2: Swizzle(64, 512), 3: Swizzle(32, 256)}
"""By a descriptor's bits 63-62. 9.7.15.5.1.2.2, Matrix Descriptor Format, and 5.5.7, Tensor Swizzling Modes."""

FIELDS = {"start": (0, 14), "leading": (16, 14), "stride": (32, 14), "base": (49, 3), "swizzle": (62, 2)}
"""First bit and number of bits of a matrix descriptor's fields. 9.7.15.5.1.2.2."""


@dataclass(frozen=True)
class Descriptor:
    """A matrix in shared memory: where it starts, and the bytes from 8 rows to the next 8."""

    start: int
    leading: int
    stride: int
    base: int
    swizzle: int

    @classmethod
    def decoded(cls, bits: int) -> Descriptor:
        """Addresses and offsets are without their lowest 4 bits: matrix-descriptor-encode(x) = (x & 0x3FFFF) >> 4."""
        found = {name: bits >> first & (1 << count) - 1 for name, (first, count) in FIELDS.items()}
        return cls(found["start"] << 4, found["leading"] << 4, found["stride"] << 4, found["base"], found["swizzle"])

    def wrong(self) -> str:
        """What is not allowed about it, or nothing."""
        swizzle = SWIZZLES.get(self.swizzle)
        if swizzle is None:
            return "matrices without swizzling are not in the subset"
        if self.base:
            return "base offsets are not in the subset"
        if self.start % swizzle.pattern // swizzle.bytes:
            return f"the pattern starts at no multiple of {swizzle.pattern} bytes, and the base offset is 0"
        if self.stride % swizzle.pattern:
            return f"8 rows are {self.stride} bytes apart, no multiple of the pattern of {swizzle.pattern}"
        return ""

    def addresses(self, rows: int, bytes: int) -> Integers:
        """The addresses of [row, byte] of a matrix whose rows are runs of the depth. 9.7.15.5.1.2, Shared Memory Matrix
        Layout: 8 rows lie one after the other, each as long as the swizzle's."""
        swizzle = SWIZZLES[self.swizzle]
        row, byte = np.arange(rows)[:, None], np.arange(bytes)[None, :]
        return swizzle.of(self.start + row // 8 * self.stride + row % 8 * swizzle.bytes + byte)


@dataclass(frozen=True)
class TensorMap:
    """What cuTensorMapEncodeTiled was told of a matrix of bytes: the innermost size first. 5.5, Tensors."""

    address: int
    sizes: tuple[int, int]
    stride: int
    box: tuple[int, int]
    swizzle: int

    def wrong(self) -> str:
        """What the driver would refuse, or nothing. CUDA driver API, cuTensorMapEncodeTiled."""
        if self.address % 16 or self.stride % 16:
            return "the matrix and its rows must start at multiples of 16 bytes"
        if self.swizzle != 128:
            return "swizzling by 128 bytes only is in the subset"
        if self.box[0] > 128 or max(self.box) > 256:
            return f"a box of {self.box} is too large"
        return ""

    def tile(self, x: int, y: int, to: int) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
        """Where each byte of the box comes from and goes to, from (x, y), and whether it is inside of the matrix: what
        is outside is zero. The box lies row by row, swizzled. 5.5.3, Tiled Mode; 5.5.7, Swizzling Modes."""
        row, byte = np.arange(self.box[1])[:, None], np.arange(self.box[0])[None, :]
        inside = (0 <= x + byte) & (x + byte < self.sizes[0]) & (0 <= y + row) & (y + row < self.sizes[1])
        source = self.address + (y + row) * self.stride + x + byte
        return source, SWIZZLES[1].of(to + row * self.box[0] + byte), inside


@dataclass(frozen=True)
class Im2colMap:
    """What cuTensorMapEncodeIm2col was told of images of bytes, [images, height, width, channels]: sizes with the
    innermost first, strides in bytes, the lower and upper corners of the bounding box, which are those of height and
    width alike, channels of a pixel and pixels of a column, and the traversal stride. 5.5.4, im2col mode."""

    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    corners: tuple[int, int]
    stride: int
    box: tuple[int, int]
    swizzle: int

    def wrong(self) -> str:
        """What the driver would refuse, or nothing. CUDA driver API, cuTensorMapEncodeIm2col."""
        if self.address % 16 or any(stride % 16 for stride in self.strides):
            return "images, and all their strides, must be multiples of 16 bytes"
        if not all(-128 <= corner <= 127 for corner in self.corners):
            return f"corners of {self.corners} are outside of 8 bits"
        if self.box[0] > 256 or self.box[1] > 1024 or not 1 <= self.stride <= 8:
            return f"{self.box[1]} pixels of {self.box[0]} channels, {self.stride} apart, are too large"
        if self.swizzle != self.box[0] or self.swizzle not in (32, 64, 128):
            return "pixels as long as the swizzle only are in the subset"
        return ""

    def tile(
        self, place: Sequence[int], tap: Sequence[int], to: int
    ) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
        """As `TensorMap.tile`: the filter's base goes through the bounding box from `place` on (channel, column, row,
        image), along W, then H, then N, and each pixel lies the offsets `tap` from it. 5.5.4.1, Bounding Box; 5.5.4.2,
        Traversal Stride; 5.5.4.3, Out of Boundary Access."""
        channel, column, row, image = place
        across, down = ((size - 1 + self.corners[1] - self.corners[0]) // self.stride + 1 for size in self.sizes[1:3])
        first = [(at - self.corners[0]) / self.stride for at in (column, row)]
        if any(at != int(at) or not 0 <= at < count for at, count in zip(first, (across, down), strict=True)):
            raise ValueError("the filter's base is outside of the bounding box")
        number = int(first[0]) + across * (int(first[1]) + down * image) + np.arange(self.box[1])[:, None]
        x = self.corners[0] + number % across * self.stride + tap[0]
        y = self.corners[0] + number // across % down * self.stride + tap[1]
        n, c = number // (across * down), channel + np.arange(self.box[0])[None, :]
        inside = (
            (0 <= x) & (x < self.sizes[1]) & (0 <= y) & (y < self.sizes[2]) & (n < self.sizes[3]) & (c < self.sizes[0])
        )
        source = self.address + c + x * self.strides[0] + y * self.strides[1] + n * self.strides[2]
        swizzle = next(each for each in SWIZZLES.values() if each.bytes == self.swizzle)
        places = to + np.arange(self.box[1])[:, None] * self.box[0] + np.arange(self.box[0])[None, :]
        return source, swizzle.of(places), inside
