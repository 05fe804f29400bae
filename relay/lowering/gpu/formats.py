"""The number formats that matrix units multiply: 8-bit codes, which are exact, and floats rounded to fewer bits, with a
bound on the error that this causes in a sum of products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relay.dialects.attributes import Array
from relay.lowering.gpu.tiles import CHUNK

ACCUMULATED = 2.0**-23
"""The greatest relative error of an addition: PTX says "at least single precision", and does not specify the
rounding."""


@dataclass(frozen=True)
class Format:
    """A number format of matrix units. `data`: bytes of an element in shared memory; `weight`: bytes of a packed
    weight; the greatest rounding error of a number is `roundoff` times its magnitude, or `tiny` if that is more;
    `limit`: the smallest magnitude that is rounded to infinity."""

    name: str
    data: int = 4
    weight: int = 4
    roundoff: float = 0.0
    tiny: float = 0.0
    limit: float = np.inf

    @property
    def exact(self) -> bool:
        """Whether matrix units multiply the numbers as they are, without rounding them to fewer bits first."""
        return not self.roundoff

    @property
    def chunk(self) -> int:
        """The number of elements of the data in a chunk of `CHUNK` bytes, which one copy to shared memory moves."""
        return CHUNK // self.data

    @property
    def fold(self) -> int:
        """The size of an element of the data divided by the size of a packed weight: how many rows of weights take as
        many bytes of shared memory as a row of the data."""
        return self.data // self.weight

    def bound(self, terms: int) -> float:
        """Return the greatest error of a sum of `terms` products, relative to the sum of their magnitudes: `(1 + u)^2
        (1 + g) - 1` with `g = n e / (1 - n e)`, where u is the format's `roundoff`, n is `terms`, and e
        (`ACCUMULATED`) is the greatest relative error of an addition.

        Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.1.
        """
        grown = terms * ACCUMULATED
        return (1 + self.roundoff) ** 2 * (1 + grown / (1 - grown)) - 1

    def says(self, terms: int) -> str:
        """Return a text that states the error bound of a sum of `terms` products x * w in this format."""
        if self.exact:
            return "exact"
        words = f"off by at most {self.bound(terms):.3g} sum |x w|"
        if self.tiny:
            words += f" + {self.tiny:.3g} sum (|x| + |w|), data below {self.limit:g}"
        return words

    def holds(self, weights: Array) -> bool:
        """Whether the format can hold these float32 weights: it rounds none of them to infinity."""
        return bool(np.all(~np.isfinite(weights) | (np.abs(weights) < self.limit)))

    def rounded(self, weights: Array) -> Array | None:
        """Return weights, float32, rounded, as words or half words; None if one is too large.

        tf32: to nearest, ties away from zero, as `cvt.rna.tf32.f32`; the others to nearest, ties to even.
        """
        if not self.holds(weights):
            return None
        finite = np.isfinite(weights)
        bits = np.ascontiguousarray(weights, np.float32).view(np.uint32)
        if self.name == "tf32":
            return np.where(finite, (bits + 0x1000) & 0xFFFFE000, bits).astype(np.uint32)
        if self.name == "bf16":
            near = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
            return np.where(finite, near, (bits >> 16) | np.isnan(weights)).astype(np.uint16)
        return weights.astype(np.float16).view(np.uint16)


CODES = Format("codes", 1, 1)
FLOATS: dict[str, Format] = {
    "tf32": Format("tf32", 4, 4, 2.0**-11, limit=float.fromhex("0x1.ffep127")),
    "f16": Format("f16", 4, 2, 2.0**-11, 2.0**-24, 65520.0),
    "bf16": Format("bf16", 4, 2, 2.0**-8, limit=float.fromhex("0x1.ffp127")),
}
"""The float formats by their name in the option `-matmul`."""
