"""Convolutions and pools of images with 1 to 3 spatial axes; channels are axis 1 unless a parameter says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import DYNAMIC, TensorOp
from relay.frontend.importing.builder import Place
from relay.frontend.importing.tensors import Property, TensorBuilder

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
CONVOLUTIONS: dict[int, type[TensorOp]] = {1: relay.Conv1dOp, 2: relay.Conv2dOp, 3: relay.Conv3dOp}
TRANSPOSED: dict[int, type[TensorOp]] = {
    1: relay.Conv1dTransposeOp, 2: relay.Conv2dTransposeOp, 3: relay.Conv3dTransposeOp,
}  # fmt: skip
POOLS: dict[str, dict[int, type[TensorOp]]] = {
    "AveragePool": {1: relay.AvgPool1dOp, 2: relay.AvgPool2dOp, 3: relay.AvgPool3dOp},
    "MaxPool": {1: relay.MaxPool1dOp, 2: relay.MaxPool2dOp, 3: relay.MaxPool3dOp},
}


ADAPTIVE: dict[str, dict[int, type[TensorOp]]] = {
    "avg": {1: relay.AdaptiveAvgPool1dOp, 2: relay.AdaptiveAvgPool2dOp, 3: relay.AdaptiveAvgPool3dOp},
    "max": {1: relay.AdaptiveMaxPool1dOp, 2: relay.AdaptiveMaxPool2dOp, 3: relay.AdaptiveMaxPool3dOp},
}


def spatial(node: Place, count: int) -> int:
    """The number of spatial axes. Raises Unsupported unless it is 1 to 3."""
    if count not in SPATIAL:
        raise node.unsupported(f"has {count} spatial axes", "1 to 3 are supported")
    return count


def same_padding(
    importer: TensorBuilder, sizes: Sequence[int], spans: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """The padding before and after each axis for `ceil(size / stride)` windows of these spans (numbers of elements
    covered)."""
    rows = list(zip(sizes, spans, strides, strict=True))
    if any(size == DYNAMIC and stride != 1 for size, _, stride in rows):
        raise importer.at.unsupported("pads an axis of unknown size to the same size", "give its shapes")
    return [window_padding("SAME", *row) for row in rows]


def window_padding(padding: str, size: int, kernel: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """The padding before and after one dimension; for SAME the result has ceil(size / stride) positions."""
    if padding == "VALID":
        return 0, 0
    span = (kernel - 1) * dilation + 1
    total = max((-(-size // stride) - 1) * stride + span - size, 0)
    return total // 2, total - total // 2


def spans_of(cells: Sequence[int], dilations: Sequence[int]) -> list[int]:
    """The number of elements that windows with this many cells and these dilations cover."""
    return [(count - 1) * dilation + 1 for count, dilation in zip(cells, dilations, strict=True)]


def flat_padding(widths: Sequence[tuple[int, int]]) -> list[int]:
    """The paddings before all axes, followed by those after all axes."""
    return [before for before, _ in widths] + [after for _, after in widths]


def convolved(
    importer: TensorBuilder,
    data: SSAValue,
    kernel: SSAValue,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[tuple[int, int]],
    groups: int,
    last: bool = False,
    more: Mapping[str, Property] = {},
) -> SSAValue:
    """A convolution with a kernel [out, in / groups, spatial axes], or [out, spatial axes, in / groups] if channels are
    `last`. `more` are further properties of the op, such as an `out_dtype` that is not the data's."""
    count = len(strides)
    spatial = SPATIAL[count]
    return importer.call(
        CONVOLUTIONS[count],
        data,
        kernel,
        strides=strides,
        dilation=dilations,
        padding=flat_padding(padding),
        groups=groups,
        data_layout=f"N{spatial}C" if last else f"NC{spatial}",
        kernel_layout=f"O{spatial}I" if last else f"OI{spatial}",
        **{"out_dtype": importer.element(data), **more},
    )


def transposed_convolved(
    importer: TensorBuilder,
    data: SSAValue,
    kernel: SSAValue,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[tuple[int, int]],
    extra: Sequence[int],
    groups: int,
    last: bool = False,
) -> SSAValue:
    """A transposed convolution with a kernel [in, out / groups, spatial axes], or [in, spatial axes, out / groups] if
    channels are `last`. `extra` elements are added at the end of the result."""
    count = len(strides)
    spatial, first = SPATIAL[count], 1 if last else 2
    cells = importer.shape(kernel)[first : first + count]
    spans = spans_of(cells, dilations)
    # padding may exceed what the op accepts (the kernel's span): the op computes the whole result, which is cropped
    found = importer.call(
        TRANSPOSED[count],
        data,
        kernel,
        strides=strides,
        dilation=dilations,
        output_padding=extra,
        groups=groups,
        padding=flat_padding([(0, 0)] * count if _wide(padding, spans) else padding),
        data_layout=f"N{spatial}C" if last else f"NC{spatial}",
        kernel_layout=f"I{spatial}O" if last else f"IO{spatial}",
        out_dtype=importer.element(data),
    )
    if _wide(padding, spans):
        dims = importer.shape(found)
        found = importer.slice(found, {axis: (b, dims[axis] - a) for axis, (b, a) in enumerate(padding, first)})
    return found


def pooled(
    importer: TensorBuilder,
    kind: str,
    data: SSAValue,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[tuple[int, int]],
    ceil: bool = False,
    counted: bool = False,
    last: bool = False,
) -> SSAValue:
    """The mean or the maximum of each window. If `counted`, elements of the padding count in the number by which a mean
    is divided."""
    count = len(kernel)
    given = {"count_include_pad": counted} if kind == "AveragePool" else {}
    return importer.call(
        POOLS[kind][count],
        data,
        pool_size=kernel,
        strides=strides,
        dilation=dilations,
        padding=flat_padding(padding),
        ceil_mode=ceil,
        layout=f"N{SPATIAL[count]}C" if last else f"NC{SPATIAL[count]}",
        **given,
    )


def _wide(padding: Sequence[tuple[int, int]], spans: Sequence[int]) -> bool:
    return any(before >= span for (before, _), span in zip(padding, spans, strict=True))
