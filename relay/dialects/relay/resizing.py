"""Resizing along one and three axes, and by factors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import floor
from typing import ClassVar

from xdsl.dialects.builtin import (
    AnyFloat,
    BoolAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f64,
)
from xdsl.irdl import irdl_op_definition, prop_def

from relay.dialects.attributes import int_values
from relay.dialects.op import DYNAMIC, Origin, Type, require, tensor
from relay.dialects.relay.image import CROP, NOTHING, NOWHERE, check_region, check_rule, resized_from
from relay.dialects.relay.pooling import SpatialOp

FALSE = IntegerAttr.from_bool(False)


class ResizeOp(SpatialOp, ABC):
    """Resize each spatial axis in turn from `size` to `result` elements, as ONNX's Resize and Relay do.

    `coordinate_transformation_mode` says where position o of the result lies in the data: `half_pixel`
    `(o + 1/2) * size / result - 1/2`, `pytorch_half_pixel` the same, but 0 if result = 1, `align_corners`
    `o * (size - 1) / (result - 1)`, `asymmetric` `o * size / result`, `tf_half_pixel_for_nn`
    `(o + 1/2) * size / result`, `tf_crop_and_resize` `(begin + o * (end - begin) / (result - 1)) * (size - 1)`, or
    `(begin + end) / 2 * (size - 1)` if result = 1. For `tf_crop_and_resize`, `roi` lists the begin of every spatial
    axis and then the end of every one, and elements of the result that lie outside the data along any axis are
    `extrapolation_value`.

    `method` says how an element of the result is computed along an axis: `nearest_neighbor` takes one element of the
    data, `linear` weighs two and `cubic` four, by Keys' kernel with the parameter `cubic_alpha`. Where one of these is
    outside the data, the element at the border is used instead; with `cubic_exclude`, `cubic` gives it no weight, and
    divides the other weights by their sum. `rounding_method` says which element is the nearest one: `floor`, `ceil`,
    `round_prefer_floor`, `round_prefer_ceil`, or `round`, which is the same as `round_prefer_ceil`; if it is empty,
    `round` for `align_corners`, else `floor`. `linear` and `cubic` are for floats. Source: TVM's topi.image.resize,
    ONNX's Resize.
    """

    ORIGIN: ClassVar[Origin] = Origin.AVERAGED
    size = prop_def(DenseArrayBase[IntegerType])
    method = prop_def(StringAttr, default_value=StringAttr("linear"))
    coordinate_transformation_mode = prop_def(StringAttr, default_value=StringAttr("half_pixel"))
    rounding_method = prop_def(StringAttr, default_value=StringAttr(""))
    cubic_alpha = prop_def(FloatAttr, default_value=FloatAttr(-0.5, f64))
    cubic_exclude = prop_def(BoolAttr, default_value=FALSE)
    roi = prop_def(DenseArrayBase[Float64Type], default_value=NOWHERE)
    extrapolation_value = prop_def(FloatAttr, default_value=NOTHING)

    def infer(self) -> Sequence[Type]:
        wanted, type = int_values(self.size), tensor(self.data).element_type
        require(len(wanted) == len(self.SPATIAL), f"{self.name}: size needs a number for each spatial axis")
        require(min(wanted) > 0, f"{self.name}: size must be positive")
        modes = self.coordinate_transformation_mode.data, self.rounding_method.data
        check_rule(self.name, type, self.method.data, *modes)
        check_region(self.name, type, modes[0], self.roi, self.extrapolation_value.value.data, len(wanted))
        require(0 not in self.sizes().values(), f"{self.name}: takes no empty data")
        return self.of_sizes(wanted)

    @property
    def origin(self) -> Origin:
        return resized_from(self.coordinate_transformation_mode.data, self.method.data)


@irdl_op_definition
class Resize1dOp(ResizeOp):
    """Resize W to `size`; see `ResizeOp`."""

    name = "relay.image.resize1d"


@irdl_op_definition
class Resize3dOp(ResizeOp):
    """Resize D, H and W to `size`; see `ResizeOp`."""

    name = "relay.image.resize3d"


class UpsampleOp(SpatialOp, ABC):
    """Resize each spatial axis by a factor, to `size * factor`, rounded, halves up; by the rules of `ResizeOp`."""

    ORIGIN: ClassVar[Origin] = Origin.AVERAGED
    METHODS: ClassVar[dict[str, str]]
    """A mapping from the names of the op's methods to those of `ResizeOp`."""
    method = prop_def(StringAttr, default_value=StringAttr("nearest_neighbor"))

    @abstractmethod
    def factors(self) -> Sequence[float]:
        """The scale factor of each spatial axis."""

    def infer(self) -> Sequence[Type]:
        require(self.method.data in self.METHODS, f"{self.name}: method must be one of {tuple(self.METHODS)}")
        floats = isinstance(tensor(self.data).element_type, AnyFloat)
        require(floats or self.method.data == "nearest_neighbor", f"{self.name}: {self.method.data} takes floats")
        sizes, wanted = self.sizes(), list[int]()
        for letter, factor in zip(self.SPATIAL, self.factors(), strict=True):
            require(0 < factor < 1 << 31, f"{self.name}: factors must be positive")
            known = sizes[letter] != DYNAMIC
            wanted.append(floor(sizes[letter] * factor + 0.5) if known else DYNAMIC)
            require(not known or min(sizes[letter], wanted[-1]) > 0, f"{self.name}: takes and leaves no empty data")
        return self.of_sizes(wanted)


@irdl_op_definition
class UpsamplingOp(UpsampleOp):
    """Resize H by `scale_h` and W by `scale_w`, with coordinates as in `ResizeOp`: `align_corners` if that is set, else
    `asymmetric`."""

    name = "relay.nn.upsampling"
    METHODS: ClassVar[dict[str, str]] = {
        "nearest_neighbor": "nearest_neighbor",
        "bilinear": "linear",
        "bicubic": "cubic",
    }
    scale_h = prop_def(FloatAttr)
    scale_w = prop_def(FloatAttr)
    align_corners = prop_def(BoolAttr, default_value=FALSE)

    def factors(self) -> Sequence[float]:
        return self.scale_h.value.data, self.scale_w.value.data


@irdl_op_definition
class Upsampling3dOp(UpsampleOp):
    """Resize D by `scale_d`, H by `scale_h` and W by `scale_w`; see `ResizeOp`."""

    name = "relay.nn.upsampling3d"
    METHODS: ClassVar[dict[str, str]] = {"nearest_neighbor": "nearest_neighbor", "trilinear": "linear"}
    scale_d = prop_def(FloatAttr)
    scale_h = prop_def(FloatAttr)
    scale_w = prop_def(FloatAttr)
    coordinate_transformation_mode = prop_def(StringAttr, default_value=StringAttr("half_pixel"))

    def factors(self) -> Sequence[float]:
        return self.scale_d.value.data, self.scale_h.value.data, self.scale_w.value.data

    def infer(self) -> Sequence[Type]:
        mode = self.coordinate_transformation_mode.data
        check_rule(self.name, tensor(self.data).element_type, self.METHODS.get(self.method.data, ""), mode, "")
        require(mode != CROP, f"{self.name}: has no region for {CROP}")
        return super().infer()
