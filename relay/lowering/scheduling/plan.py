"""How a contraction runs, chosen from its shape, its codes and the target's features."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr, i8, i16
from xdsl.dialects.func import FuncOp

from relay.dialects.arith import ExtSIOp, ExtUIOp
from relay.errors import InvalidArgument
from relay.lowering.scheduling import prefetch
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.packing import LANES, run_length
from relay.lowering.scheduling.tiles import Problem, Tiles, choose
from relay.target.dots import Dot, best_dot

FEW_PIXELS = 4
"""Codes of more pixels get the form that the dot product takes once, not in every loop."""
LARGEST = 28
"""Pixels, or vectors, of a tile that may be asked for."""
INNER_BYTES = 16 << 10
"""Packed weights up to this size stay in the first-level cache: then all channels of some pixels come first."""


@dataclass(frozen=True)
class Tile:
    """A register tile that was asked for: pixels, and vectors of 16 channels."""

    pixels: int
    vectors: int

    @classmethod
    def of(cls, function: FuncOp, default: str) -> Tile | None:
        """What a kernel's attribute `relay.tile`, else the default, asks for. Raises InvalidArgument."""
        attr = function.attributes.get("relay.tile")
        text = attr.data if isinstance(attr, StringAttr) else default
        return cls.parse(text, f"@{function.sym_name.data}") if text else None

    @classmethod
    def parse(cls, text: str, where: str) -> Tile:
        """`8x48`: pixels x channels. Raises InvalidArgument."""
        pixels, _, channels = text.partition("x")
        if not (pixels.isdecimal() and channels.isdecimal()):
            raise InvalidArgument(where, f"{text!r} is no tile", "write PIXELSxCHANNELS, such as 8x48")
        most = int(pixels), int(channels) // LANES
        if int(channels) % LANES or not all(1 <= n <= LARGEST for n in most):
            hint = f"take 1 to {LARGEST} pixels, and {LANES} to {LARGEST * LANES} channels, a multiple of {LANES}"
            raise InvalidArgument(where, f"a tile of {text} is not possible", hint)
        return cls(*most)

    def tiles(self, outputs: int, width: int) -> Tiles:
        """These pixels for blocks of every size; no more than there are."""
        vectors = min(self.vectors, -(-outputs // LANES))
        return Tiles(vectors, (0, *[min(self.pixels, width)] * vectors), 0.0)


@dataclass(frozen=True)
class Plan:
    """`dot`: what multiplies several codes per lane, if anything does; `pixels[v]` rows of a tile of v vectors; `flat`:
    the pixels of all rows and images are one row; `blocks_inside`: for each tile of pixels, all blocks of channels;
    `ahead`: a block asks for the weights of the next; `sums`: the data is summed beside the products, for the kernel's
    zero point; `extra` steps at most for weights that do not fit (`outliers`); `why` these tiles."""

    dot: Dot | None
    vectors: int
    pixels: tuple[int, ...]
    flat: bool = False
    blocks_inside: bool = False
    ahead: bool = False
    sums: bool = False
    extra: int = 0
    why: str = ""

    @property
    def reason(self) -> str:
        """What was chosen, in a few words, and why."""
        said = [f"tile of {self.pixels[self.vectors]} pixels x {self.vectors * LANES} channels ({self.why})"]
        said.append(f"dot products of {self.dot.group} codes" if self.dot else "multiply-adds")
        if self.flat:
            said.append("all pixels in one row")
        if self.blocks_inside:
            said.append("channels inside pixels")
        if self.ahead:
            said.append("weights of the next block asked for")
        if self.sums:
            said.append("sums of the data")
        if self.extra:
            said.append(f"up to {self.extra} steps for outlying weights")
        return ", ".join(said)

    @property
    def group(self) -> int:
        """Reduction elements per step."""
        return self.dot.group if self.dot else 1


def steps_of(conv: Convolution, group: int) -> int:
    """Steps of the whole reduction."""
    run = run_length(conv)
    return conv.kernel_rows * (conv.kernel_columns * conv.channels // run) * -(-run // group)


def registers_of(features: frozenset[str]) -> int:
    """How many vectors of 16 accumulators the registers hold."""
    if "avx512f" in features:
        return 32
    return 8 if features & {"avx", "neon"} else 4


def dot_of(conv: Convolution, features: frozenset[str]) -> Dot | None:
    """What multiplies several codes at once on the target. With data of 16 bits, a step must not read behind a run."""
    if conv.data.element == conv.kernel.element == i8:
        return best_dot(features)
    wide = conv.data.element == i16 and conv.kernel.element in (i8, i16)
    return best_dot(features, 2) if wide and not run_length(conv) % 2 else None


def turns_codes(conv: Convolution, dot: Dot | None) -> bool:
    """Whether the dot product takes codes of the other signedness than the data's."""
    return dot is not None and dot.group == 4 and dot.unsigned != conv.data.unsigned


def widened_by(conv: Convolution, dot: Dot | None) -> type[ExtSIOp] | type[ExtUIOp] | None:
    """How codes of many pixels become 16 bits, once, where the dot product takes pairs of these."""
    if dot is None or dot.group != 2 or conv.data.element != i8:
        return None
    if conv.images * conv.out_rows * conv.out_columns <= FEW_PIXELS:
        return None
    return ExtUIOp if conv.data.unsigned else ExtSIOp


def tiles_of(
    conv: Convolution,
    features: frozenset[str],
    *,
    flat: bool = False,
    turns: bool = False,
    sums: bool = False,
) -> Tiles:
    """The tiles of a contraction; the arguments are those of `plan`."""
    dot = dot_of(conv, features)
    steps = steps_of(conv, dot.group if dot else 1)
    width, rows = points_of(conv, flat)
    per_pixel = int(turns) + int(sums)
    size = vector_bytes(conv, dot)
    return choose(Problem(conv.outputs, width, rows, steps, registers_of(features), per_pixel, size))


def points_of(conv: Convolution, flat: bool) -> tuple[int, int]:
    """Pixels in a row, and rows."""
    points = (conv.images, conv.out_rows, conv.out_columns)
    return (points[0] * points[1] * points[2], 1) if flat else (points[2], points[0] * points[1])


def vector_bytes(conv: Convolution, dot: Dot | None) -> int:
    """Bytes of weights that a vector takes in a step."""
    return 64 if dot or conv.is_float else 32


def plan(
    conv: Convolution,
    features: frozenset[str],
    *,
    flat: bool = False,
    turns: bool = False,
    sums: bool = False,
    tile: Tile | None = None,
) -> Plan:
    """The plan of a contraction; `turns`: the loop gives codes the signedness that the dot product takes; `tile`: it
    was asked for."""
    dot = dot_of(conv, features)
    width, rows = points_of(conv, flat)
    if tile is None:
        tiles = tiles_of(conv, features, flat=flat, turns=turns, sums=sums)
        why = f"{round(tiles.cycles):,} cycles, the least of all"
    else:
        tiles, why = tile.tiles(conv.outputs, width), "asked for"
    weights = -(-conv.outputs // LANES) * steps_of(conv, dot.group if dot else 1) * vector_bytes(conv, dot)
    inside = conv.outputs > tiles.vectors * LANES and weights <= INNER_BYTES and rows * width > 1
    pixels, more = tiles.pixels[tiles.vectors], conv.outputs > tiles.vectors * LANES
    block = tiles.vectors * steps_of(conv, dot.group if dot else 1) * vector_bytes(conv, dot)
    ahead = not inside and more and prefetch.pays(rows * width, pixels, tiles.vectors, block, features)
    return Plan(dot, tiles.vectors, tiles.pixels, flat, inside, ahead, sums, why=why)
