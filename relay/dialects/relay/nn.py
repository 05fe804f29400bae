"""Neural-network ops: convolution, dense, softmax. Images are NHWC unless the op says another layout."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from relay.dialects.attributes import int_values, ints
from relay.dialects.element_types import ranked_type, signed_floats
from relay.dialects.layout import Layout
from relay.dialects.op import (
    DYNAMIC,
    TENSOR,
    AxisOp,
    OneResultOp,
    TensorOp,
    Type,
    four,
    is_code,
    rank,
    require,
    shape,
    tensor,
    two,
    window,
)
from relay.errors import InvalidArgument

ONE_ONE = ints([1, 1])
ZEROS = ints([0, 0, 0, 0])
NHWC = StringAttr("NHWC")
IMAGE_AXES = frozenset("NHWC")
"""The axes of an image."""
KERNEL_LAYOUTS = ("OHWI", "HWOI", "OIHW", "HWIO")
"""`OHWI`: [out, h, w, in / groups], and so on. `HWOI`: depthwise, [h, w, groups, multiplier]."""


def parsed_layout(what: str, text: str) -> Layout:
    """Parse the name of a layout, such as `NHWC4c`. Raises VerifyException, with a text that begins with `what`."""
    try:
        return Layout.parse(text)
    except InvalidArgument as error:
        raise VerifyException(f"{what}: {error}") from None


def image_layout(what: str, attr: StringAttr, value: SSAValue) -> Layout:
    """Parse the layout of the image `value` as `result_layout` does. Raises VerifyException if the value's rank, or the
    size of its axis that is split off from C, differs from the layout's."""
    layout = result_layout(what, attr)
    dims = shape(value)
    require(len(dims) == len(layout.axes), f"{what}: data must have rank {len(layout.axes)}")
    if layout.split:
        inner = dims[layout.index(layout.split.lower())]
        require(inner == layout.factor, f"{what}: axis {layout.split.lower()} of {layout} has {inner}")
    return layout


def result_layout(what: str, attr: StringAttr) -> Layout:
    """Parse the layout of an image. Raises VerifyException unless it has the axes N, H, W and C, in any order, and
    splits no other axis than C; only `image_layout` also checks it against a value."""
    layout = parsed_layout(what, attr.data)
    require(layout.letters == IMAGE_AXES, f"{what}: layout {layout} must name N, H, W and C")
    require(layout.split in ("", "C"), f"{what}: layout {layout} may split C only")
    return layout


class Conv2dBase(OneResultOp, ABC):
    """The base of `relay.nn.conv2d` and `qnn.conv2d`, described for data in NHWC and kernels in OHWI; other layouts
    likewise.

    `result[n, y, x, o] = sum over i, j, c of data[n, y*sy + i*dy - top, x*sx + j*dx - left, c] * kernel[o, i, j, c]`;
    positions outside contribute nothing. `padding` is top, left, bottom, right. `groups` splits both channel axes;
    with the kernel layout `HWOI`, groups = input channels and output channel = channel * multiplier + m.
    The result's layout is `out_layout`, or that of the data if it is empty.
    """

    PARAMETERS: ClassVar[tuple[str, ...]] = ("kernel",)
    data = operand_def(TENSOR)
    kernel = operand_def(TENSOR)
    strides = prop_def(DenseArrayBase[IntegerType], default_value=ONE_ONE)
    padding = prop_def(DenseArrayBase[IntegerType], default_value=ZEROS)
    dilation = prop_def(DenseArrayBase[IntegerType], default_value=ONE_ONE)
    groups = prop_def(IntegerAttr, default_value=IntegerAttr(1, i64))
    data_layout = prop_def(StringAttr, default_value=NHWC)
    kernel_layout = prop_def(StringAttr, default_value=StringAttr("OHWI"))
    out_layout = prop_def(StringAttr, default_value=StringAttr(""))
    out_dtype = prop_def(Attribute, default_value=i32)

    @property
    def depthwise(self) -> bool:
        return self.kernel_layout.data == "HWOI"

    @property
    def result_layout(self) -> StringAttr:
        """The layout of the result: `out_layout`, or the data's layout if that is empty."""
        return self.out_layout if self.out_layout.data else self.data_layout

    def infer(self) -> Sequence[Type]:
        name, kernel = self.name, shape(self.kernel)
        require(self.kernel_layout.data in KERNEL_LAYOUTS, f"{name}: kernel_layout must be one of {KERNEL_LAYOUTS}")
        layout, out_layout = image_layout(name, self.data_layout, self.data), result_layout(name, self.result_layout)
        require(len(kernel) == 4, f"{name}: the kernel must have rank 4")
        sizes = layout.sizes(shape(self.data))
        check_operand_types(name, self.data, self.kernel, self.out_dtype)
        groups = self.groups.value.data
        channels = sizes["C"]
        require(groups > 0, f"{name}: groups must be positive")
        if self.depthwise:
            height, width, per_group, multiplier = kernel
            require(per_group == groups, f"{name}: a HWOI kernel of {per_group} groups where groups = {groups}")
            require(channels in (groups, DYNAMIC), f"{name}: {channels} channels where groups = {groups}")
            out = groups * multiplier
        else:
            letters = dict(zip(self.kernel_layout.data, kernel, strict=True))
            out, height, width, per_group = (letters[letter] for letter in "OHWI")
            require(
                channels in (per_group * groups, DYNAMIC),
                f"{name}: {channels} channels, kernel takes {per_group} x {groups} groups",
            )
            require(out % groups == 0, f"{name}: {out} output channels are not divisible by {groups} groups")
        sy, sx = two(int_values(self.strides), f"{name}: strides")
        dy, dx = two(int_values(self.dilation), f"{name}: dilation")
        top, left, bottom, right = four(int_values(self.padding), f"{name}: padding")
        rows = window(sizes["H"], height, sy, dy, top, bottom, name)
        columns = window(sizes["W"], width, sx, dx, left, right, name)
        sizes |= {"H": rows, "W": columns, "C": out}
        require(out_layout.fits(sizes), f"{name}: {out} output channels are no whole blocks of {out_layout}")
        return [ranked_type(self.out_dtype, out_layout.dims(sizes))]

    def independent_along(self, axis: int) -> bool:
        return Layout.parse(self.result_layout.data).axes[axis] == "N" == Layout.parse(self.data_layout.data).axes[axis]


def check_operand_types(name: str, data: SSAValue, kernel: SSAValue, out: Attribute) -> None:
    """Check that both operands are 8- or 16-bit codes with an i32/i64 result, or all are one float type; the result of
    bf16 operands may be f32."""
    a, b = tensor(data).element_type, tensor(kernel).element_type
    if isinstance(a, AnyFloat):
        one = a == b and (out == a or (a, out) == (BFloat16Type(), f32))
        require(one, f"{name}: float operands and result must have one type, got {a}, {b}, {out}")
        return
    for type in (a, b):
        require(
            is_code(type),
            f"{name}: takes floats or 8/16-bit codes, not {type}",
        )
    require(out in (i32, i64), f"{name}: integers accumulate in i32 or i64, not {out}")


class CentredOp(TensorOp, ABC):
    """A product of `data - input_zero_point` and `kernel - kernel_zero_point` if they are integers, or of floats."""

    input_zero_point = opt_prop_def(IntegerAttr)
    kernel_zero_point = opt_prop_def(IntegerAttr)


@irdl_op_definition
class Conv2dOp(CentredOp, Conv2dBase):
    """Convolution of `data - input_zero_point` with `kernel - kernel_zero_point` (integers), or of floats."""

    name = "relay.nn.conv2d"


class DenseBase(OneResultOp, ABC):
    """`result[..., u] = sum over k of data[..., k] * kernel[u, k]`."""

    PARAMETERS: ClassVar[tuple[str, ...]] = ("kernel",)
    INDEPENDENT: ClassVar[slice] = slice(-1)
    data = operand_def(TENSOR)
    kernel = operand_def(TENSOR)
    out_dtype = prop_def(Attribute, default_value=i32)

    def infer(self) -> Sequence[Type]:
        data, kernel = shape(self.data), shape(self.kernel)
        require(bool(data) and len(kernel) == 2, f"{self.name}: data must have rank 1 or more, the kernel rank 2")
        inputs, taken = data[len(data) - 1], kernel[1]
        require(inputs == taken or DYNAMIC in (inputs, taken), f"{self.name}: {inputs} inputs, kernel takes {taken}")
        check_operand_types(self.name, self.data, self.kernel, self.out_dtype)
        return [ranked_type(self.out_dtype, (*data[:-1], kernel[0]))]


@irdl_op_definition
class DenseOp(CentredOp, DenseBase):
    """Matrix product of `data - input_zero_point` with `kernel - kernel_zero_point` (integers), or of floats."""

    name = "relay.nn.dense"


@irdl_op_definition
class WeightOnlyDenseOp(OneResultOp):
    """`result[..., u] = sum over g, i of data[..., g * block + i] * (codes[u, g, i] - zero_points[u, g]) * scales[u,
    g]`: floats times weights of few bits, in blocks [units, blocks, block] with one scale and one zero point per block.

    Data and scales are f32, codes and zero points ui8; or codes are floats of 4 to 8 bits, whose values are used as
    they are. `data_bits` promises that the data was quantized per block to signed codes of that many bits: each block
    holds integer multiples of its largest magnitude divided by 2^(data_bits - 1) - 1, so kernels may multiply the
    codes. Source: ONNX Runtime's MatMulNBits."""

    name = "relay.nn.weight_only_dense"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("codes", "scales", "zero_points")
    INDEPENDENT: ClassVar[slice] = slice(-1)
    CODE_BITS: ClassVar[tuple[int, ...]] = (2, 4, 8)
    """The widths in bits to which codes are packed."""
    data_bits = opt_prop_def(IntegerAttr)
    data = operand_def(TENSOR)
    codes = operand_def(TENSOR)
    scales = operand_def(TENSOR)
    zero_points = operand_def(TENSOR)

    @classmethod
    def bits_of(cls, largest: int) -> int:
        """The smallest supported number of bits (`CODE_BITS`) in which all codes from 0 to `largest` fit."""
        return next(bits for bits in cls.CODE_BITS if largest < 1 << bits)

    def infer(self) -> Sequence[Type]:
        data, codes = shape(self.data), shape(self.codes)
        require(bool(data) and len(codes) == 3, f"{self.name}: data must have rank 1 or more, the codes rank 3")
        units, blocks, block = codes
        require(data[-1] in (blocks * block, DYNAMIC), f"{self.name}: {data[-1]} inputs, codes take {blocks * block}")
        for name, each in (("scales", self.scales), ("zero points", self.zero_points)):
            require(shape(each) == (units, blocks), f"{self.name}: {name} must have shape {[units, blocks]}")
        types = [tensor(value).element_type for value in self.operands]
        codes = IntegerType(8, Signedness.UNSIGNED)
        fit = types[1] in (codes, *signed_floats())
        require(fit and types == [f32, types[1], f32, codes], f"{self.name}: takes f32, ui8, f32 and ui8")
        bits = None if self.data_bits is None else self.data_bits.value.data
        require(bits in (None, 8), f"{self.name}: data_bits may be 8, not {bits}")
        return [ranked_type(f32, (*data[:-1], units))]


@irdl_op_definition
class BiasAddOp(AxisOp, OneResultOp):
    """`data + bias`, where `bias` is a vector along `axis`."""

    name = "relay.nn.bias_add"
    ELEMENTWISE: ClassVar[bool] = True
    PARAMETERS: ClassVar[tuple[str, ...]] = ("bias",)
    ALONG_AXIS: ClassVar[tuple[str, ...]] = PARAMETERS
    data = operand_def(TENSOR)
    bias = operand_def(TENSOR)
    axis = prop_def(IntegerAttr, default_value=IntegerAttr(-1, i64))

    def infer(self) -> Sequence[Type]:
        size, bias = shape(self.data)[self.along], shape(self.bias)
        require(tensor(self.data).element_type == tensor(self.bias).element_type, f"{self.name}: element types differ")
        require(
            len(bias) == 1 and (bias[0] == size or DYNAMIC in (bias[0], size)),
            f"{self.name}: bias {list(bias)} for axis of {size}",
        )
        return [tensor(self.data)]


@irdl_op_definition
class SoftmaxOp(AxisOp, OneResultOp):
    """`exp(beta (x - max)) / sum` along `axis`, floats."""

    name = "relay.nn.softmax"
    SAME_AXES: ClassVar[bool] = True
    data = operand_def(TENSOR)
    beta = prop_def(Attribute)
    axis = prop_def(IntegerAttr, default_value=IntegerAttr(-1, i64))

    def infer(self) -> Sequence[Type]:
        type = tensor(self.data)
        require(isinstance(type.element_type, AnyFloat), f"{self.name}: takes floats, not {type.element_type}")
        require(rank(self.data) >= 1 and self.along >= 0, f"{self.name}: takes rank 1 or more")
        return [type]

    @property
    def along_last(self) -> bool:
        """Whether the rows are along the last axis."""
        return self.along == rank(self.data) - 1
