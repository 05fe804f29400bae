"""Image ops, on NHWC data unless the op says another layout."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import ClassVar

from xdsl.dialects.builtin import (
    AnyFloat,
    BoolAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    f64,
)
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def
from xdsl.utils.hints import isa

from relay.dialects.attributes import int_values
from relay.dialects.op import Origin, Type, require, tensor, two
from relay.dialects.relay.pooling import ImageOp

FALSE = IntegerAttr.from_bool(False)
CROP = "tf_crop_and_resize"
NOWHERE = DenseArrayBase.from_list(f64, list[float]())
NOTHING = FloatAttr(0.0, f64)
METHODS = ("nearest_neighbor", "linear", "cubic")
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn", CROP)
ROUNDINGS = ("", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


def check_rule(what: str, type: Attribute, method: str, coordinates: str, rounding: str) -> None:
    """Raise VerifyException for names that are not among Relay's resizing rules, and for interpolation of integers."""
    require(method in METHODS, f"{what}: method must be one of {METHODS}")
    require(coordinates in COORDINATES, f"{what}: coordinate_transformation_mode must be one of {COORDINATES}")
    require(rounding in ROUNDINGS, f"{what}: rounding_method must be one of {ROUNDINGS}")
    require(method == "nearest_neighbor" or isinstance(type, AnyFloat), f"{what}: {method} takes floats, not {type}")


def check_region(
    what: str, type: Attribute, coordinates: str, roi: DenseArrayBase[Float64Type], fill: float, count: int
) -> None:
    """Raise VerifyException for a region without two numbers for each axis, or an extrapolation value that the element
    type cannot hold."""
    bounds = roi.get_values()
    if bounds or coordinates == CROP:
        require(len(bounds) == 2 * count, f"{what}: roi must have {2 * count} numbers, has {len(bounds)}")
    require(all(isfinite(bound) for bound in bounds), f"{what}: roi must be finite")
    if isa(type, IntegerType):
        unsigned = type.signedness.data == Signedness.UNSIGNED or type.width.data == 1
        low, high = (0, 1 << type.width.data) if unsigned else (-(1 << type.width.data - 1), 1 << type.width.data - 1)
        require(fill.is_integer() and low <= fill < high, f"{what}: {type} has no extrapolation_value {fill}")


def resized_from(mode: str, method: str) -> Origin:
    """The origin of a resized image's elements: COMPUTED if positions outside a region get the extrapolation value,
    else MOVED or AVERAGED."""
    if mode == CROP:
        return Origin.COMPUTED
    return Origin.MOVED if method == "nearest_neighbor" else Origin.AVERAGED


@irdl_op_definition
class Resize2dOp(ImageOp):
    """Resize height and width to `size`; `method` is `linear` or `nearest_neighbor`.

    Output position i is at `i * (in / out)` of the input, at `i * (in - 1) / (out - 1)` with `align_corners`, at `(i +
    1/2) * (in / out) - 1/2` with `half_pixel_centers`; the two flags exclude each other. `linear` weighs the four
    neighbours by their distance, `nearest_neighbor` takes the one below (with `align_corners`: the nearest, halves up).

    On signed integers, `linear` computes in TFLite's 10-bit fixed point, `(sum +- 2^19) / 2^20`. On `ui8` and floats,
    it computes in float32 and adds in the order of TFLite's source; `ui8` results are rounded by adding 0.5 and
    truncating. Source: TFLite's reference RESIZE_BILINEAR.

    With a `coordinate_transformation_mode` the rules are Relay's, as for `resize3d`: `method` may be `cubic`, the two
    flags are ignored, and integers are accepted only for `nearest_neighbor`; `roi` is top, left, bottom, right."""

    name = "relay.image.resize2d"
    ORIGIN: ClassVar[Origin] = Origin.AVERAGED
    size = prop_def(DenseArrayBase[IntegerType])
    method = prop_def(StringAttr, default_value=StringAttr("linear"))
    align_corners = prop_def(BoolAttr, default_value=FALSE)
    half_pixel_centers = prop_def(BoolAttr, default_value=FALSE)
    coordinate_transformation_mode = opt_prop_def(StringAttr)
    rounding_method = prop_def(StringAttr, default_value=StringAttr(""))
    cubic_alpha = prop_def(FloatAttr, default_value=FloatAttr(-0.5, f64))
    cubic_exclude = prop_def(BoolAttr, default_value=FALSE)
    roi = prop_def(DenseArrayBase[Float64Type], default_value=NOWHERE)
    extrapolation_value = prop_def(FloatAttr, default_value=NOTHING)

    def infer(self) -> Sequence[Type]:
        self.sizes()  # of a wrong layout nothing else is reported
        type = tensor(self.data).element_type
        if self.coordinate_transformation_mode is None:
            require(self.method.data in ("linear", "nearest_neighbor"), f"{self.name}: unknown method {self.method}")
            both = self.align_corners.value.data and self.half_pixel_centers.value.data
            require(not both, f"{self.name}: align_corners and half_pixel_centers exclude each other")
        else:
            modes = self.coordinate_transformation_mode.data, self.rounding_method.data
            check_rule(self.name, type, self.method.data, *modes)
            check_region(self.name, type, modes[0], self.roi, self.extrapolation_value.value.data, 2)
        require(isinstance(type, AnyFloat | IntegerType), f"{self.name}: takes floats or integers")
        rows, columns = two(int_values(self.size), f"{self.name}: size")
        require(rows > 0 and columns > 0, f"{self.name}: size must be positive")
        return self.of_sizes([rows, columns])

    @property
    def origin(self) -> Origin:
        mode = self.coordinate_transformation_mode
        return resized_from("" if mode is None else mode.data, self.method.data)
