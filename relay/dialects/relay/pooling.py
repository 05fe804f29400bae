"""Pooling in one, two and three dimensions, over whole images, and to a given size."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, IntegerType, StringAttr, TensorType
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from relay.dialects.attributes import int_values
from relay.dialects.layout import Layout
from relay.dialects.op import DYNAMIC, TENSOR, OneResultOp, Origin, Type, rank, require, shape, tensor
from relay.dialects.relay.convolution import EMPTY, NONE, SpatialAxes, numbers, plain_layout
from relay.dialects.relay.nn import NHWC, ONE_ONE, ZEROS, image_layout

FALSE = IntegerAttr.from_bool(False)


class SpatialOp(OneResultOp, ABC):
    """An op on data with the axes `SPATIAL` between batch and channels; the layout is channels last if it is empty."""

    SPATIAL: ClassVar[SpatialAxes] = SpatialAxes()
    data = operand_def(TENSOR)
    layout = prop_def(StringAttr, default_value=EMPTY)

    @property
    def axes(self) -> Layout:
        """The layout of the data."""
        return plain_layout(self.name, self.layout.data or f"N{self.SPATIAL}C", f"N{self.SPATIAL}C")

    def sizes(self) -> dict[str, int]:
        """The sizes of the data's axes by letter."""
        count = len(self.SPATIAL) + 2
        require(rank(self.data) == count, f"{self.name}: data must have rank {count}")
        return self.axes.sizes(shape(self.data))

    def of_sizes(self, spatial: Sequence[int]) -> Sequence[Type]:
        """The type of the data with its spatial sizes replaced."""
        sizes = self.sizes() | dict(zip(self.SPATIAL, spatial, strict=True))
        return [TensorType(tensor(self.data).element_type, self.axes.dims(sizes))]

    def independent_along(self, axis: int) -> bool:
        return self.axes.axes[axis].upper() in "NC"


class ImageOp(SpatialOp, ABC):
    """An op on an image, whose layout may split the channels (`NHWC4c`)."""

    layout = prop_def(StringAttr, default_value=NHWC)

    @property
    def axes(self) -> Layout:
        return image_layout(self.name, self.layout, self.data)

    def sizes(self) -> dict[str, int]:
        return self.axes.sizes(shape(self.data))


class PoolOp(SpatialOp, ABC):
    """A reduction over windows along the spatial axes; attributes have one integer per axis, `padding` lists the
    amounts before each axis, then those after. Cells outside the data are excluded. Strides and dilation that are not
    written are 1; padding that is not written is 0.

    With `ceil_mode` the last window may extend beyond the padding if it starts inside the data or the padding before
    it.
    """

    pool_size = prop_def(DenseArrayBase[IntegerType])
    strides = prop_def(DenseArrayBase[IntegerType], default_value=NONE)
    dilation = prop_def(DenseArrayBase[IntegerType], default_value=NONE)
    padding = prop_def(DenseArrayBase[IntegerType], default_value=NONE)
    ceil_mode = prop_def(BoolAttr, default_value=FALSE)

    def each(self, what: str, attr: DenseArrayBase[IntegerType]) -> tuple[int, ...]:
        """The integers of the attribute, one for each spatial axis, or ones if it is empty; raises VerifyException if
        an integer is below 1."""
        values = numbers(f"{self.name}: {what}", attr, len(self.SPATIAL), 1)
        require(min(values) > 0, f"{self.name}: {what} must be positive")
        return values

    def windows(self) -> list[tuple[int, int, int]]:
        """Return (size in elements, stride, dilation) of the pooling window for each spatial axis."""
        require(len(int_values(self.pool_size)) > 0, f"{self.name}: pool_size needs a number for each axis")
        sizes = self.each("pool_size", self.pool_size), self.each("strides", self.strides)
        return list(zip(*sizes, self.each("dilation", self.dilation), strict=True))

    def each_padding(self) -> list[tuple[int, int]]:
        """The padding (before, after) of each spatial axis."""
        count = len(self.SPATIAL)
        flat = numbers(f"{self.name}: padding", self.padding, 2 * count, 0)
        require(min(flat) >= 0, f"{self.name}: padding must not be negative")
        return list(zip(flat[:count], flat[count:], strict=True))

    def counts(self, spatial: Sequence[int]) -> list[int]:
        """The number of windows along each spatial axis for data of these sizes."""
        result: list[int] = []
        for size, (cells, stride, dilation), (before, after) in zip(
            spatial, self.windows(), self.each_padding(), strict=True
        ):
            span = (cells - 1) * dilation + 1
            require(max(before, after) < span, f"{self.name}: a window may not lie wholly in the padding")
            left = size + before + after - span
            require(size == DYNAMIC or left >= 0, f"{self.name}: a window of {span} does not fit in {left + span}")
            count = left // stride + 1
            if self.ceil_mode.value.data and left % stride and count * stride < size + before:
                count += 1
            result.append(DYNAMIC if size == DYNAMIC else count)
        return result

    @property
    def plain(self) -> bool:
        """Whether the pooling has no dilation, no `ceil_mode`, and does not count padding."""
        counted = isinstance(self, AvgPoolBase) and bool(self.count_include_pad.value.data)
        gaps = any(dilation > 1 for _, _, dilation in self.windows())
        return not (gaps or counted or self.ceil_mode.value.data)

    def infer(self) -> Sequence[Type]:
        sizes = self.sizes()
        return self.of_sizes(self.counts([sizes[letter] for letter in self.SPATIAL]))


class MaxPoolBase(PoolOp, ABC):
    """Largest element of each window; the lowest value of the type if no cell lies inside the data."""

    ORIGIN: ClassVar[Origin] = Origin.SELECTED


class AvgPoolBase(PoolOp, ABC):
    """Mean of each window's cells inside the data, or inside data and padding if `count_include_pad`; 0 if there is
    none.

    Integers: `(sum +- count/2) / count` towards zero, halves away from zero: TFLite's reference AVERAGE_POOL_2D."""

    ORIGIN: ClassVar[Origin] = Origin.AVERAGED
    count_include_pad = prop_def(BoolAttr, default_value=FALSE)

    @property
    def origin(self) -> Origin:
        """COMPUTED if zeros of the padding count in the mean, since these are no elements of the data; else the class's
        origin."""
        counts = self.count_include_pad.value.data and any(map(any, self.each_padding()))
        return Origin.COMPUTED if counts else self.ORIGIN


@irdl_op_definition
class MaxPool1dOp(MaxPoolBase):
    """Largest element of each window along W; see `PoolOp`."""

    name = "relay.nn.max_pool1d"


class Pool2dOp(ImageOp, PoolOp, ABC):
    """A window over height and width."""

    strides = prop_def(DenseArrayBase[IntegerType], default_value=ONE_ONE)
    padding = prop_def(DenseArrayBase[IntegerType], default_value=ZEROS)


@irdl_op_definition
class MaxPool2dOp(Pool2dOp, MaxPoolBase):
    """`result[n, y, x, c] = max of the cells of the window that lie inside the image`.

    A window starts at `y * sy - top`, `x * sx - left`; see `PoolOp`. Source: Relay's and TFLite's MAX_POOL_2D.
    """

    name = "relay.nn.max_pool2d"


@irdl_op_definition
class MaxPool3dOp(MaxPoolBase):
    """Largest element of each window over D, H and W; see `PoolOp`."""

    name = "relay.nn.max_pool3d"


@irdl_op_definition
class AvgPool1dOp(AvgPoolBase):
    """Mean of each window along W; see `AvgPoolBase`."""

    name = "relay.nn.avg_pool1d"


@irdl_op_definition
class AvgPool2dOp(Pool2dOp, AvgPoolBase):
    """Mean of each window over height and width; see `AvgPoolBase`."""

    name = "relay.nn.avg_pool2d"


@irdl_op_definition
class AvgPool3dOp(AvgPoolBase):
    """Mean of each window over D, H and W; see `AvgPoolBase`."""

    name = "relay.nn.avg_pool3d"


class GlobalPool2dOp(SpatialOp, ABC):
    """One window: the whole image."""

    def infer(self) -> Sequence[Type]:
        return self.of_sizes([1, 1])


@irdl_op_definition
class GlobalMaxPool2dOp(GlobalPool2dOp):
    """Largest element of each channel of an image: [n, h, w, c] to [n, 1, 1, c]."""

    name = "relay.nn.global_max_pool2d"
    ORIGIN: ClassVar[Origin] = Origin.SELECTED


@irdl_op_definition
class GlobalAvgPool2dOp(GlobalPool2dOp):
    """Mean of each channel of an image: [n, h, w, c] to [n, 1, 1, c]; integers rounded as `avg_pool2d` does."""

    name = "relay.nn.global_avg_pool2d"
    ORIGIN: ClassVar[Origin] = Origin.AVERAGED


class AdaptivePoolOp(SpatialOp, ABC):
    """`output_size` windows along each spatial axis: window i begins at `floor(i * size / output_size)` and ends before
    `ceil((i + 1) * size / output_size)`."""

    output_size = prop_def(DenseArrayBase[IntegerType])

    def infer(self) -> Sequence[Type]:
        wanted = int_values(self.output_size)
        require(len(wanted) == len(self.SPATIAL), f"{self.name}: output_size needs a number for each spatial axis")
        require(min(wanted) > 0, f"{self.name}: output_size must be positive")
        require(0 not in self.sizes().values(), f"{self.name}: takes no empty data")
        return self.of_sizes(wanted)


class AdaptiveMaxBase(AdaptivePoolOp, ABC):
    """Largest element of each window."""

    ORIGIN: ClassVar[Origin] = Origin.SELECTED


class AdaptiveAvgBase(AdaptivePoolOp, ABC):
    """Mean of each window; integers rounded as `avg_pool2d` does."""

    ORIGIN: ClassVar[Origin] = Origin.AVERAGED


@irdl_op_definition
class AdaptiveMaxPool1dOp(AdaptiveMaxBase):
    """Largest element of each of `output_size` windows; see `AdaptivePoolOp`."""

    name = "relay.nn.adaptive_max_pool1d"


@irdl_op_definition
class AdaptiveMaxPool2dOp(AdaptiveMaxBase):
    """Largest element of each of `output_size` windows; see `AdaptivePoolOp`."""

    name = "relay.nn.adaptive_max_pool2d"


@irdl_op_definition
class AdaptiveMaxPool3dOp(AdaptiveMaxBase):
    """Largest element of each of `output_size` windows; see `AdaptivePoolOp`."""

    name = "relay.nn.adaptive_max_pool3d"


@irdl_op_definition
class AdaptiveAvgPool1dOp(AdaptiveAvgBase):
    """Mean of each of `output_size` windows; see `AdaptivePoolOp`."""

    name = "relay.nn.adaptive_avg_pool1d"


@irdl_op_definition
class AdaptiveAvgPool2dOp(AdaptiveAvgBase):
    """Mean of each of `output_size` windows; see `AdaptivePoolOp`."""

    name = "relay.nn.adaptive_avg_pool2d"


@irdl_op_definition
class AdaptiveAvgPool3dOp(AdaptiveAvgBase):
    """Mean of each of `output_size` windows; see `AdaptivePoolOp`."""

    name = "relay.nn.adaptive_avg_pool3d"
