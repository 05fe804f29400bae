"""`Profile`: the arithmetic of a runtime whose integers the importer reproduces. `profiles.py` lists the known ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import FloatAttr, StringAttr, f64
from xdsl.ir import Attribute

from relay.dialects.attributes import Array, elements


@dataclass(frozen=True)
class Profile:
    """The details of arithmetic in which runtimes differ."""

    name: str
    products: str = "tflite"
    """The value of the property `rounding` of ops that rescale the sums of convolutions."""
    dense: str = "f64_away"
    """The value of the property `rounding` of ops that rescale the sums of FULLY_CONNECTED."""
    curves: str = "litert"
    """The value of the property `numerics` of `qnn.sigmoid`, `qnn.tanh` and the gates of `qnn.lstm`: `litert` or
    `tflm`."""
    pairs: str = ""
    """The value of the property `rounding` of `qnn.add` and `qnn.mul`, to which ADD and MUL on 8-bit types are
    imported; empty if the ops do not have it and round as in TFLite."""
    bounds_to_even: bool = False
    """Whether the bounds of activations are rounded with halves to even."""
    factors: type[np.float32] | type[np.float64] = np.float32
    """The type in which MUL multiplies scales."""

    def of_sums(self, type: str) -> Profile:
        """The profile that has the rounding of products on this type. It is LiteRT's for INT16 if this runtime's
        library has kernels for 8 bits only (`products` is `f32_even`)."""
        return LITERT if type == "INT16" and self.products == "f32_even" else self

    def of_pairs(self, type: str) -> dict[str, Attribute]:
        """The property `rounding` of ADD and MUL on this type, as a dictionary, which is empty if they round as in
        TFLite."""
        return {"rounding": StringAttr(self.pairs)} if self.pairs and type != "INT16" else {}


LITERT = Profile("litert")


def rescaling(rounding: str, reals: Array) -> dict[str, Attribute]:
    """The properties of a `qnn.requantize` with this rounding. Only `f64_away` needs the factors `reals` (one, or one
    per channel) as a property: for `f32_even`, the op divides its input scale by its output scale in float32, and other
    roundings use its fixed-point multiplier and shift."""
    if rounding == "f64_away":
        exact = FloatAttr(float(reals[0]), f64) if len(reals) == 1 else elements(reals, label="real_multiplier")
        return {"rounding": StringAttr(rounding), "real_multiplier": exact}
    return {} if rounding == "tflite" else {"rounding": StringAttr(rounding)}
