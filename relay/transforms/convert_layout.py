"""The pass `convert-layout`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from relay.arguments import shown
from relay.dialects import qnn, relay
from relay.dialects.layout import Layout
from relay.errors import InvalidArgument
from relay.passes import Pass
from relay.transforms.dead_ops import erase_dead
from relay.transforms.layouts.axes import Imaging, layout_of_operand
from relay.transforms.layouts.conversion import convert_block
from relay.transforms.layouts.kernels import set_kernel_layout
from relay.transforms.legalization import blocks_of, own

OPERATORS = (relay.Conv2dOp, qnn.Conv2dOp, relay.MaxPool2dOp, relay.AvgPool2dOp, relay.Resize2dOp)
KERNELS = {"NCHW": "OIHW"}
"""The kernel layout for each data layout; for other data layouts, kernels keep theirs."""


@dataclass(frozen=True)
class ConvertLayout(Pass):
    """Convert convolutions to another layout.

    Write `ConvertLayout("NHWC", "NCHW")` or `ConvertLayout("NHWC", "NHWC4c")`. `operators` (`conv2d`, `nn.max_pool2d`,
    `qnn.conv2d`, `image.resize2d`, ...) with the layout `source` get `target`. `keep` has the names of operators that
    are not converted, `skip` the numbers of convolutions that are not, counted from 0 in program order. All other ops,
    integer arithmetic of `qnn` included, get the layouts with which the fewest bits are transposed, found by a minimum
    cut. Parameters per channel follow the channels; existing transposes are cancelled; arguments and results of
    functions keep their layouts. A layout with blocks of channels, such as NHWC4c, is not given to a value whose number
    of channels is not a multiple of the block. Kernels are converted to `kernel_layout`; if it is empty, to OIHW for
    NCHW, and not at all for other layouts.

    As in TVM's Relay, the argument may also be a mapping from an operator to the wanted layouts of its data and kernel,
    whatever layouts they have before: `ConvertLayout({"nn.conv2d": ["NCHW", "default"], "qnn.conv2d": ["NCHW",
    "OIHW"]})`; in a pipeline's text, write `layouts=("nn.conv2d:NCHW:default", ...)`.

    No result changes: floats are added in the same order. For different layouts of different operators, run it once for
    each.
    """

    name: ClassVar[str] = "convert-layout"
    invalidates = ("folded", "layouts")
    why = "gives images the layouts of its options"
    source: str = "NHWC"
    target: str = "NCHW"
    operators: tuple[str, ...] | str = ("conv2d",)
    keep: tuple[str, ...] | str = ()
    skip: tuple[int, ...] | int = ()
    kernel_layout: str = ""
    layouts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given: object = self.source
        if isinstance(given, Mapping):
            object.__setattr__(self, "source", type(self).source)
            object.__setattr__(self, "layouts", texts(cast(Mapping[object, object], given)))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.layouts:
            for step in each(self):
                step.convert(op, None)
            return
        self.convert(op, image(self.source))

    def convert(self, op: ModuleOp, source: Layout | None) -> None:
        """Convert the ops that the pass's options `operators`, `keep` and `skip` select to the layout `target`: those
        that have the layout `source`, or any layout if it is None."""
        wanted = image(self.target)
        operators, keep = chosen(self.operators), chosen(self.keep)
        kernel = self.kernel_layout or KERNELS.get(self.target, "")
        if kernel and kernel not in relay.KERNEL_LAYOUTS:
            raise InvalidArgument("convert-layout", f"kernel_layout is '{kernel}'", f"one of {relay.KERNEL_LAYOUTS}")
        convolutions = [inner for inner in own(op) if isinstance(inner, relay.Conv2dBase)]
        left = set[Operation](convolutions[n] for n in numbers(self.skip, len(convolutions)))
        left |= {inner for inner in own(op) if isinstance(inner, keep)}

        def pinned(op: Imaging) -> bool:
            return isinstance(op, operators) and source in (None, layout_of_operand(op))

        for block in blocks_of(op):
            if kernel:
                for conv in [inner for inner in block.ops if isinstance(inner, relay.Conv2dBase)]:
                    if conv not in left and pinned(conv):
                        set_kernel_layout(conv, kernel)
            convert_block(block, wanted, pinned, left)
        erase_dead(op.walk())


def texts(given: Mapping[object, object]) -> tuple[str, ...]:
    """Relay's mapping as texts: `nn.conv2d:NCHW:default`. Raises InvalidArgument for a mapping of another form."""
    found = list[str]()
    for name, value in given.items():
        both = cast(Sequence[object], value) if isinstance(value, list | tuple) else ()
        if not (1 <= len(both) <= 2 and all(isinstance(part, str) for part in (name, *both))):
            hint = 'write {"nn.conv2d": ["NCHW", "default"]}: the layouts of data and kernel'
            raise InvalidArgument("convert-layout", f"{shown(name)}: {shown(given[name])} is no pair of layouts", hint)
        found.append(":".join(map(str, (name, *both))))
    return tuple(found)


def each(step: ConvertLayout) -> list[ConvertLayout]:
    """One pass for each pair of data and kernel layouts that `layouts` contains."""
    pairs = dict[tuple[str, str], list[str]]()
    for text in step.layouts:
        name, _, rest = text.partition(":")
        data, _, kernel = rest.partition(":")
        chosen(name)
        if data != "default":
            pairs.setdefault((data, kernel), []).append(name)
    return [
        replace(step, target=data, kernel_layout="" if kernel == "default" else kernel, operators=(*names,), layouts=())
        for (data, kernel), names in pairs.items()
    ]


def image(text: str) -> Layout:
    """Parse an image layout. Raises InvalidArgument unless it names the four axes, and splits only C if any."""
    layout = Layout.parse(text)
    if layout.letters != relay.IMAGE_AXES or layout.split not in ("", "C"):
        raise InvalidArgument("convert-layout", f"{text} is no layout of images", "write NHWC, NCHW, NHWC4c or NCHW4c")
    return layout


def chosen(names: tuple[str, ...] | str) -> tuple[type[Imaging], ...]:
    """The operators with these names, in full or by their last part. Raises InvalidArgument for an operator that has no
    layout."""
    found = list[type[Imaging]]()
    for name in (names,) if isinstance(names, str) else names:
        matching = [op for op in OPERATORS if op.name == name or op.name.endswith(f".{name}")]
        if not matching:
            known = ", ".join(op.name for op in OPERATORS)
            raise InvalidArgument("convert-layout", f"'{name}' is no operator with a layout", f"there are {known}")
        found += matching
    return tuple(found)


def numbers(given: tuple[int, ...] | int, count: int) -> Sequence[int]:
    """The indices of convolutions to skip. Raises InvalidArgument for an index that is not below `count`."""
    found = (given,) if isinstance(given, int) else given
    for number in found:
        if not 0 <= number < count:
            raise InvalidArgument("convert-layout", f"skip has {number}", f"there are {count} convolutions, from 0")
    return found
