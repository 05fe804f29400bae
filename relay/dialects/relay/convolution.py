"""Convolutions of one and three dimensions, and transposed convolutions of one, two and three."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, StringAttr, TensorType, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from relay.dialects.attributes import int_values, ints
from relay.dialects.layout import Layout
from relay.dialects.op import DYNAMIC, TENSOR, OneResultOp, Type, require, shape, window
from relay.dialects.relay.nn import CentredOp, check_operand_types, parsed_layout

NONE = ints([])
EMPTY = StringAttr("")


def plain_layout(what: str, text: str, letters: str) -> Layout:
    """Parse a layout that must have exactly these letters and no split axis; raise VerifyException otherwise."""
    layout = parsed_layout(what, text)
    require(not layout.split and layout.letters == frozenset(letters), f"{what}: layout {text} must name {letters}")
    return layout


def numbers(what: str, attr: DenseArrayBase[IntegerType], count: int, default: int) -> tuple[int, ...]:
    """The `count` integers of an attribute; `count` times `default` if it is empty."""
    values = int_values(attr) or (default,) * count
    require(len(values) == count, f"{what} must have {count} numbers, has {len(values)}")
    return values


class SpatialAxes:
    """The letters of an op's spatial axes, by the number in the op's name: `W` for 1d, `HW` for 2d or without a number,
    `DHW` for 3d."""

    def __get__(self, op: object, kind: type[Operation]) -> str:
        found = re.search("[123](?=d)", kind.name)
        return "DHW"[-int(found[0]) :] if found else "HW"


class SpatialConvolution(OneResultOp, ABC):
    """Base of convolutions over the spatial axes `SPATIAL`; attributes have one integer per axis, in that order.

    Defaults: `strides` and `dilation` 1, `padding` 0, `data_layout` channels last (`NDHWC`), `kernel_layout` output
    channels first and input channels last (`ODHWI`), `out_layout` the data's layout. `padding` lists the amounts before
    each axis, then those after. Layouts may order their axes in any way.
    """

    PARAMETERS: ClassVar[tuple[str, ...]] = ("kernel",)
    SPATIAL: ClassVar[SpatialAxes] = SpatialAxes()
    data = operand_def(TENSOR)
    kernel = operand_def(TENSOR)
    strides = prop_def(DenseArrayBase[IntegerType], default_value=NONE)
    padding = prop_def(DenseArrayBase[IntegerType], default_value=NONE)
    dilation = prop_def(DenseArrayBase[IntegerType], default_value=NONE)
    groups = prop_def(IntegerAttr, default_value=IntegerAttr(1, i64))
    data_layout = prop_def(StringAttr, default_value=EMPTY)
    kernel_layout = prop_def(StringAttr, default_value=EMPTY)
    out_layout = prop_def(StringAttr, default_value=EMPTY)
    out_dtype = prop_def(Attribute, default_value=i32)

    def independent_along(self, axis: int) -> bool:
        return self.data_axes.axes[axis] == "N" == self.result_axes.axes[axis]

    @property
    def data_axes(self) -> Layout:
        """The layout of the data."""
        return plain_layout(self.name, self.data_layout.data or f"N{self.SPATIAL}C", f"N{self.SPATIAL}C")

    @property
    def kernel_axes(self) -> Layout:
        """The layout of the kernel."""
        return plain_layout(self.name, self.kernel_layout.data or f"O{self.SPATIAL}I", f"O{self.SPATIAL}I")

    @property
    def result_axes(self) -> Layout:
        """The layout of the result."""
        text = self.out_layout.data or str(self.data_axes)
        return plain_layout(self.name, text, f"N{self.SPATIAL}C")

    def each_stride(self) -> tuple[int, ...]:
        """The stride along each spatial axis."""
        return numbers(f"{self.name}: strides", self.strides, len(self.SPATIAL), 1)

    def each_dilation(self) -> tuple[int, ...]:
        """The dilation along each spatial axis."""
        return numbers(f"{self.name}: dilation", self.dilation, len(self.SPATIAL), 1)

    def each_padding(self) -> list[tuple[int, int]]:
        """The padding (before, after) of each spatial axis."""
        flat = numbers(f"{self.name}: padding", self.padding, 2 * len(self.SPATIAL), 0)
        require(min(flat) >= 0, f"{self.name}: padding must not be negative")
        return list(zip(flat[: len(self.SPATIAL)], flat[len(self.SPATIAL) :], strict=True))

    def sizes(self) -> tuple[dict[str, int], dict[str, int]]:
        """The sizes of the axes of data and kernel, by their letters."""
        rank = len(self.SPATIAL) + 2
        require(
            len(shape(self.data)) == len(shape(self.kernel)) == rank, f"{self.name}: operands must have rank {rank}"
        )
        return self.data_axes.sizes(shape(self.data)), self.kernel_axes.sizes(shape(self.kernel))

    @abstractmethod
    def extent(self, size: int, kernel: int, axis: int) -> int:
        """The size of the result along a spatial axis."""

    @abstractmethod
    def channels(self, inputs: int, kernel: dict[str, int]) -> int:
        """The number of output channels, after checking the number of input channels."""

    def infer(self) -> Sequence[Type]:
        data, kernel = self.sizes()
        require(self.groups.value.data > 0, f"{self.name}: groups must be positive")
        check_operand_types(self.name, self.data, self.kernel, self.out_dtype)
        sizes = {"N": data["N"], "C": self.channels(data["C"], kernel)}
        for axis, letter in enumerate(self.SPATIAL):
            require(kernel[letter] > 0, f"{self.name}: the kernel is empty")
            sizes[letter] = self.extent(data[letter], kernel[letter], axis)
        return [TensorType(self.out_dtype, self.result_axes.dims(sizes))]


class ConvBase(SpatialConvolution, ABC):
    """`result[n, p, o] = sum over i, c of data[n, p * stride + i * dilation - padding, c] * kernel[o, i, c]`, where p
    and i are positions along the spatial axes; the kernel's input channels are those of one group."""

    def extent(self, size: int, kernel: int, axis: int) -> int:
        before, after = self.each_padding()[axis]
        return window(size, kernel, self.each_stride()[axis], self.each_dilation()[axis], before, after, self.name)

    def channels(self, inputs: int, kernel: dict[str, int]) -> int:
        groups = self.groups.value.data
        fits = inputs in (kernel["I"] * groups, DYNAMIC)
        require(fits, f"{self.name}: {inputs} channels, kernel takes {kernel['I']} x {groups} groups")
        require(kernel["O"] % groups == 0, f"{self.name}: {kernel['O']} output channels in {groups} groups")
        return kernel["O"]


class ConvTransposeBase(SpatialConvolution, ABC):
    """`result[n, p * stride + i * dilation - padding, o] += data[n, p, c] * kernel[o, i, c]` into zeros.

    A result has `(size - 1) * stride + (kernel - 1) * dilation + 1 - padding + output_padding` positions along an axis.
    With groups, the kernel has the output channels of one group and all input channels.
    """

    output_padding = prop_def(DenseArrayBase[IntegerType], default_value=NONE)

    def extent(self, size: int, kernel: int, axis: int) -> int:
        stride, dilation = self.each_stride()[axis], self.each_dilation()[axis]
        (before, after), span = self.each_padding()[axis], (kernel - 1) * dilation + 1
        extra = numbers(f"{self.name}: output_padding", self.output_padding, len(self.SPATIAL), 0)[axis]
        require(stride > 0 and dilation > 0, f"{self.name}: strides and dilation must be positive")
        require(extra >= 0, f"{self.name}: output_padding must not be negative")
        require(before < span, f"{self.name}: padding of {before} is wider than the kernel of {span}")
        if size == DYNAMIC:
            return DYNAMIC
        result = (size - 1) * stride + span - before - after + extra
        require(size > 0 and result > 0, f"{self.name}: padding leaves nothing of axis {self.SPATIAL[axis]}")
        return result

    def channels(self, inputs: int, kernel: dict[str, int]) -> int:
        groups = self.groups.value.data
        require(inputs in (kernel["I"], DYNAMIC), f"{self.name}: {inputs} channels, kernel takes {kernel['I']}")
        require(kernel["I"] % groups == 0, f"{self.name}: {kernel['I']} input channels in {groups} groups")
        return kernel["O"] * groups


@irdl_op_definition
class Conv1dOp(CentredOp, ConvBase):
    """Convolution of `data - input_zero_point` with `kernel - kernel_zero_point` along W; see `ConvBase`."""

    name = "relay.nn.conv1d"


@irdl_op_definition
class Conv3dOp(CentredOp, ConvBase):
    """Convolution of `data - input_zero_point` with `kernel - kernel_zero_point` over D, H, W; see `ConvBase`."""

    name = "relay.nn.conv3d"


@irdl_op_definition
class Conv1dTransposeOp(CentredOp, ConvTransposeBase):
    """Transposed convolution of `data - input_zero_point` with `kernel - kernel_zero_point` along W; see
    `ConvTransposeBase`."""

    name = "relay.nn.conv1d_transpose"


@irdl_op_definition
class Conv2dTransposeOp(CentredOp, ConvTransposeBase):
    """Transposed convolution of `data - input_zero_point` with `kernel - kernel_zero_point` over H and W; see
    `ConvTransposeBase`."""

    name = "relay.nn.conv2d_transpose"


@irdl_op_definition
class Conv3dTransposeOp(CentredOp, ConvTransposeBase):
    """Transposed convolution of `data - input_zero_point` with `kernel - kernel_zero_point` over D, H, W; see
    `ConvTransposeBase`."""

    name = "relay.nn.conv3d_transpose"


ConvNd = Conv1dOp | Conv3dOp
ConvTransposeNd = Conv1dTransposeOp | Conv2dTransposeOp | Conv3dTransposeOp
