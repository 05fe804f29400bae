"""Decides the schedule of a contraction from its shape, codes, epilogue and target."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.builtin import StringAttr, i8, i16
from xdsl.dialects.func import FuncOp

from relay.dialects.amx import MOST_ROWS, ROW, WORD
from relay.dialects.arith import ExtSIOp, ExtUIOp
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.lowering.scheduling import outliers, prefetch
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.scheduling.packing import run_length
from relay.lowering.scheduling.padding import Conversion, Extend
from relay.lowering.scheduling.picks import Picks, Tuples
from relay.lowering.scheduling.record import OpSchedule
from relay.lowering.scheduling.tiles import WIDEST_MATRICES, Problem, choose, cycles_of
from relay.lowering.shaped import Extent, at_most
from relay.target import LANES, CpuTarget
from relay.target.dots import BY_LANE, Dot, half_dot

MATRIX = 8
"""The number of codes of each pixel that one instruction multiplies if it computes a small matrix product, of two
pixels by two channels (SMMLA): the `codes_per_step` of schedules that use it."""
LARGEST = 28
"""The most pixels of a tile, and the most vectors of 16 channels."""
TILES = Tuples(range(1, LARGEST + 1), range(LANES, LARGEST * LANES + 1, LANES))
STRIDES = (32, 64, 128, 256)
"""The possible distances between prefetches, in bytes."""


def parse_tile(text: str, where: str) -> tuple[int, int]:
    """Parse a tile such as `8x48`, pixels x channels. Raises InvalidArgument."""
    pixels, _, channels = text.partition("x")
    if not (pixels.isdecimal() and channels.isdecimal()):
        raise InvalidArgument(where, f"{text!r} is no tile", "write PIXELSxCHANNELS, such as 8x48")
    tile = int(pixels), int(channels)
    if tile not in TILES:
        hint = f"take 1 to {LARGEST} pixels, and {LANES} to {LARGEST * LANES} channels, a multiple of {LANES}"
        raise InvalidArgument(where, f"a tile of {text} is not possible", hint)
    return tile


def asked_tile(function: FuncOp, default: str) -> tuple[int, int] | None:
    """Return the requested tile, as pixels and channels: from the kernel's attribute `relay.tile`, else from `default`;
    None if neither has one. Raises InvalidArgument."""
    attr, text = function.attributes.get("relay.tile"), default
    if isinstance(attr, StringAttr):
        new = 'relay.schedule = {strategy = "contraction", tile = [8, 48]}'
        name = function.sym_name.data
        warnings.warn(f"@{name}: relay.tile is deprecated: write {new}", DeprecationWarning, stacklevel=2)
        text = attr.data
    return parse_tile(text, f"@{function.sym_name.data}") if text else None


@dataclass(frozen=True, kw_only=True)
class TileSchedule(OpSchedule):
    """The loops of the micro-kernel, for data that is already prepared. `tile`: pixels and channels of whole blocks;
    `narrow[v - 1]`: pixels of a tile with only v vectors of 16 channels; `codes_per_step`: the
    number of codes of a pixel that a step multiplies: 4 or 2 for a dot product, 8 for an instruction that multiplies
    two pixels at once, 1 for multiply-adds, 12 to 64 for tile registers (AMX); `steps_at_once`: the number of steps
    for which a pixel's codes are loaded together;
    `sign_flip`: where codes are converted to the signedness of the dot product's operand: when they are copied
    (`copy`), in the reduction loop (`loop`), or nowhere (`none`); `widen`: a copy extends codes to 16 bits;
    `narrow_weights`: weights of a 16-bit dot product are stored in 8 bits; `flat`: the pixels of all rows and images
    form one row; `channels_inside`: the loop over blocks of channels is inside the loop over tiles of pixels;
    `prefetch_next_block`: a block prefetches the weights of the next, every `prefetch_stride` bytes; `sums_of_data`:
    the data is summed beside the products, for the kernel's zero point; `outlier_steps`: the most extra steps for
    weights that exceed 8 bits; `skip_border_rows`: kernel rows outside the image are skipped, in separate loops;
    `unrolled_epilogue`: the epilogue is unrolled for the vectors of a tile; `packed_store`: four vectors of codes are
    narrowed and stored at once."""

    strategy = "tile"
    keeps_order = frozenset({"tile", "narrow", "channels_inside", "prefetch_next_block", "prefetch_stride"})
    tile: tuple[int, int]
    narrow: tuple[int, ...]
    codes_per_step: int
    steps_at_once: int
    sign_flip: str
    widen: bool
    narrow_weights: bool
    flat: bool
    channels_inside: bool
    prefetch_next_block: bool
    prefetch_stride: int
    sums_of_data: bool
    outlier_steps: int
    skip_border_rows: bool
    unrolled_epilogue: bool
    packed_store: bool

    @property
    def vectors(self) -> int:
        """The number of vectors of 16 channels in a tile of full width."""
        return self.tile[1] // LANES

    @property
    def pixels(self) -> tuple[int, ...]:
        """The number of pixels of a tile, indexed by its number of vectors."""
        return (0, *self.narrow, self.tile[0])


@dataclass(frozen=True)
class Around:
    """Properties of the ops around a contraction. `flat`: the options for whether all pixels form one row, the best
    first; `padded`: the data is a padded copy of an image, and no strategy chosen so far writes that copy;
    `border_rows`: the options for whether kernel rows outside the image are skipped, the best first; `epilogue`: the
    number of ops in the epilogue; `packs`: the results can be narrowed 64 at a time; `matrices`: tile registers can be
    used; `narrows`: weights may be stored in 8 bits and widened by the kernel; False for contractions that share one
    copy of their data."""

    flat: Sequence[bool] = (False,)
    padded: bool = False
    border_rows: Sequence[bool] = (False,)
    epilogue: int = 0
    packs: bool = False
    matrices: bool = False
    narrows: bool = True


def decide_tiles(
    pick: Picks, conv: Convolution, kernels: Sequence[Array], target: CpuTarget, around: Around = Around()
) -> TileSchedule:
    """Decide the schedule of a contraction. `kernels`: the constant weights that each call of the function passes;
    empty if the weights are not constants."""
    dot = dot_of(conv, target)
    flat = pick("flat", around.flat, around.flat[0])
    groups = (1,) if dot is None else (dot.group, 1) if kernels and not conv.halves else (dot.group,)
    many = conv.images * conv.out_rows * conv.out_columns > target.costs.few_pixels
    group = groups[0]
    if kernels and group == 4 and target.matrix_dot(conv.data.unsigned) is not None:
        groups = (4, MATRIX, 1)
        group = min(groups[:2], key=lambda each: with_copy(conv, target, each, flat))
    if around.matrices and takes_matrices(conv, kernels, target):
        codes = codes_of_row(conv)
        groups = (*groups, codes)
        if pick.at_most is None and tile_rows(conv, flat=flat) >= target.costs.matrix_rows:
            group = min(group, codes, key=lambda each: with_copy(conv, target, each, flat))
    group = pick("codes_per_step", groups, group)
    used = instruction_of(conv, target, group)
    at_once = 1 if used is None or isinstance(run_length(conv), Extent) else used.steps
    pick("steps_at_once", tuple(sorted({at_once, 1}, reverse=True)), at_once)
    flips = dot is not None and group == 4 and dot.unsigned != conv.data.unsigned
    copied = "copy" if not kernels or around.padded or many else "loop"
    ways = ("none",) if not flips else ("copy", "loop") if kernels else ("copy",)
    sign_flip = pick("sign_flip", ways, copied if flips else "none")
    pick.may("widen", group == 2 and conv.data.element == i8)
    in_loop = int(sign_flip == "loop")
    corrected = group >= 4 and needs_sums(conv)
    problem = problem_of(conv, target, group, flat=flat, per_pixel=in_loop)
    tiles = choose(problem, target.costs)
    vectors, possible = tiles.vectors, sizes_of(problem)
    if pick.at_most is not None:
        pick.given["tile"] = min(pick.at_most[0], possible[-1][0]), min(pick.at_most[1], possible[-1][1])
    asked = pick.given.get("tile")
    if isinstance(asked, tuple) and asked in possible and isinstance(channels := asked[1], int):
        vectors = channels // LANES
    fit = corrected and bool(kernels) and all(outliers.few(conv, kernel, vectors, target.costs) for kernel in kernels)
    clips = corrected and bool(kernels) and all(outliers.fits(conv, kernel) for kernel in kernels)
    ways = (False, True) if clips else (True,)
    matrices = group > MATRIX
    sums = pick("sums_of_data", ways if corrected and not matrices else (False,), corrected and not (fit or matrices))
    problem = problem_of(conv, target, group, flat=flat, per_pixel=in_loop + int(sums))
    least = choose(problem, target.costs) if sums else tiles
    best = least.pixels[-1], least.vectors * LANES
    pixels, channels = pick("tile", possible, best)
    vectors = channels // LANES
    narrow = least.pixels[1:-1] if (pixels, vectors * LANES) == best else (pixels,) * (vectors - 1)
    narrow = pick("narrow", Tuples(*(pixels_of(problem, v) for v in range(1, vectors))), narrow)
    count = problem.width * problem.rows
    can_narrow = around.narrows and group == 2 and bool(kernels) and all(fits_bytes(conv, kernel) for kernel in kernels)
    few = count <= max(pixels, target.costs.few_pixels) and dot is not None and dot.lanes >= LANES // 2
    narrow_weights = pick("narrow_weights", (False, True) if can_narrow else (False,), can_narrow and few)
    problem = replace(problem, bytes=problem.bytes // 2) if narrow_weights else problem
    steps, size = problem.steps, problem.bytes
    more = conv.outputs > vectors * LANES
    weights = -(-at_most(conv.outputs) // LANES) * steps * size
    inside = pick("channels_inside", (False, True), more and weights <= target.costs.inner_weight_bytes and count > 1)
    points, block = prefetch.points_of(conv), vectors * steps * size
    pays = more and prefetch.pays(target, points, pixels, vectors, block, weights)
    ahead = pick("prefetch_next_block", (False, True) if more and not inside else (False,), pays and not inside)
    lines = (target.costs.cache_line, *STRIDES) if ahead else (0,)
    pick("prefetch_stride", tuple(dict.fromkeys(lines)), lines[0])
    extra = 0
    if corrected and not sums:
        extra = max(outliers.most_steps(conv, kernel, vectors) for kernel in kernels)
    pick.only("outlier_steps", extra)
    borders = (False,) if extra else around.border_rows
    pick("skip_border_rows", borders, borders[0])
    written = (False,) if matrices else (True, False)
    unrolled = pick("unrolled_epilogue", written, not matrices and around.epilogue <= target.costs.unrolled_operations)
    pick.may("packed_store", around.packs and group > 1 and not conv.halves and (unrolled or matrices))
    cycles = round(cycles_of(problem, target.costs, (0, *narrow, pixels)))
    why = f"{cycles:,} cycles, the least of all"
    if (pixels, vectors * LANES) != best:
        why = f"{cycles:,} cycles, {round(least.cycles):,} at least"
    return pick.schedule(TileSchedule, cycles, why)


def with_copy(conv: Convolution, target: CpuTarget, group: int, flat: bool) -> float:
    """Return the cycles of a contraction with steps of `group` codes, including a copy of the data if the last step
    reads behind the end of the data."""
    size = at_most(conv.images) * at_most(conv.rows) * at_most(conv.columns) * at_most(conv.pitch)
    read = size if behind(conv, group) else 0
    problem = problem_of(conv, target, group, flat=flat)
    return choose(problem, target.costs).cycles + 2 * read / target.costs.stream_bandwidth


def fits_bytes(conv: Convolution, kernel: Array) -> bool:
    """Whether weights minus their zero point fit signed 8 bits."""
    if conv.is_float:
        return False
    least, most = int(kernel.min()) - conv.kernel.zero_point, int(kernel.max()) - conv.kernel.zero_point
    return -128 <= least and most < 128


def needs_sums(conv: Convolution) -> bool:
    """Whether the kernel's zero point requires sums of the data."""
    given = conv.kernel.given is not None
    return not conv.is_float and (given or conv.kernel.zero_point != kernel_offset(conv))


def kernel_offset(conv: Convolution) -> int:
    """Return the number that is subtracted from the kernel's codes for a dot product with signed weights: 128 if they
    are unsigned, else 0."""
    return 128 if conv.kernel.unsigned else 0


def data_offset(conv: Convolution, schedule: TileSchedule) -> int:
    """Return the number that is added to the data's codes before the dot product: 128, -128 or 0."""
    if schedule.sign_flip == "none":
        return 0
    return -128 if conv.data.unsigned else 128


def takes_unsigned(conv: Convolution, schedule: TileSchedule) -> bool:
    """Whether the data operand of the dot product of bytes is unsigned."""
    return schedule.codes_per_step >= 4 and conv.data.unsigned != (schedule.sign_flip != "none")


def slack(conv: Convolution, schedule: TileSchedule) -> int:
    """Return the number of codes after the end of the data that the reduction loop's last step may read, because a step
    reads several codes at once."""
    last = behind(conv, 4) if schedule.outlier_steps else 0
    return max(behind(conv, schedule.codes_per_step), last)


def behind(conv: Convolution, group: int) -> int:
    """Return how many codes after the end of a contiguous run of data are read by the last step over the run, if each
    step reads `group` codes. The last step of tile registers ends at the end of the run instead, and reads codes again,
    unless the run is shorter than a step."""
    run = run_length(conv)
    if isinstance(run, Extent):
        return group - 1
    return max(group - run, 0) if group > MATRIX else -run % group


def sizes_of(problem: Problem) -> Sequence[tuple[int, int]]:
    """Return the possible tiles, as pixels and channels."""
    most = min(LARGEST, -(-problem.outputs // LANES))
    if not problem.matrix_rows:
        return cast("Sequence[tuple[int, int]]", Tuples(pixels_of(problem, 1), range(LANES, most * LANES + 1, LANES)))
    vectors = range(1, min(WIDEST_MATRICES, most) + 1)
    return [(pixels, v * LANES) for v in vectors for pixels in pixels_of(problem, v)]


def pixels_of(problem: Problem, vectors: int) -> range:
    """Return the possible numbers of pixels of a tile of `vectors` vectors."""
    if rows := problem.matrix_rows:
        return range(rows, problem.most_pixels(vectors) + 1, rows)
    return range(1, min(LARGEST, problem.width) + 1)


def takes_matrices(conv: Convolution, kernels: Sequence[Array], target: CpuTarget) -> bool:
    """Whether the contraction can be computed in tile registers (AMX): 8-bit codes, known sizes, and only few weights
    that exceed 8 bits after subtraction of the zero point. If the weights are packed at run time (`kernels` is empty),
    a contiguous run of them must fit one register or be whole 32-bit words."""
    sizes = (conv.images, conv.out_rows, conv.out_columns, conv.channels, conv.outputs)
    known, codes = not any(isinstance(size, Extent) for size in sizes), conv.data.element == conv.kernel.element == i8
    if not (target.multiplies_tiles and known and codes and codes_of_row(conv) > MATRIX):
        return False
    if not kernels:
        return not needs_sums(conv) and (run_length(conv) <= ROW or run_length(conv) % WORD == 0)
    few = (outliers.few(conv, kernel, WIDEST_MATRICES, target.costs) for kernel in kernels)
    return not needs_sums(conv) or all(few)


def codes_of_row(conv: Convolution) -> int:
    """Return the number of codes that a tile register holds of each pixel: as many as fit, but at most those of a
    contiguous run, rounded up to whole words."""
    return min(ROW, -(-run_length(conv) // WORD) * WORD)


def tile_rows(conv: Convolution, *, flat: bool) -> int:
    """Return the number of pixels in a tile register: as many as fit, but at most those of a row."""
    return min(MOST_ROWS, conv.images * conv.out_rows * conv.out_columns if flat else conv.out_columns)


def steps_of(conv: Convolution, group: int) -> int:
    """Return the number of steps in which a contraction sums all its products, if a step adds up to `group` products
    to each sum."""
    run = at_most(run_length(conv))
    return conv.kernel_rows * (conv.kernel_columns * at_most(conv.channels) // run) * -(-run // group)


def dot_of(conv: Convolution, target: CpuTarget) -> Dot | None:
    """Return the dot product instruction that the contraction uses on the target, else None. For 16-bit integers, which
    it multiplies in pairs, the number of contiguous elements must be even."""
    if conv.data.element == conv.kernel.element == i8:
        return target.dot(unsigned=conv.data.unsigned)
    if conv.halves:
        return half_dot(target.features)
    wide = conv.data.element == i16 and conv.kernel.element in (i8, i16)
    return target.dot(2) if wide and not run_length(conv) % 2 else None


def takes_halves(conv: Convolution, target: CpuTarget) -> bool:
    """Whether the target has an instruction that multiplies pairs of bf16, and the convolution can use it: it is not
    depthwise, and its number of channels is even. With an odd number, the last pair of the data could contain an
    element that does not belong to the sum; its weight is 0, but if it is infinite, the product is NaN."""
    return half_dot(target.features) is not None and not conv.depthwise and conv.channels % 2 == 0


def instruction_of(conv: Convolution, target: CpuTarget, group: int) -> Dot | None:
    """Return the instruction that multiplies the `group` codes per pixel of a step of the reduction, if the instruction
    can select them from a register that holds the pixel's codes for several steps; else None."""
    if group == 1:
        return BY_LANE if target.multiplies_lanes and conv.data.element == conv.kernel.element == i8 else None
    dot = target.matrix_dot(conv.data.unsigned) if group == MATRIX else dot_of(conv, target)
    return dot if dot is not None and dot.group == group and dot.steps > 1 else None


def extension_of(conv: Convolution) -> Extend:
    """Return the op that extends the data's codes."""
    return ExtUIOp if conv.data.unsigned else ExtSIOp


def conversion_of(conv: Convolution, schedule: TileSchedule) -> Conversion:
    """Return how a copy of the data converts codes: the number with which each is XORed (-128 flips the sign bit, 0
    changes nothing), and the op that extends it to 16 bits, or None."""
    return -128 if schedule.sign_flip == "copy" else 0, extension_of(conv) if schedule.widen else None


def problem_of(conv: Convolution, target: CpuTarget, group: int, *, flat: bool = False, per_pixel: int = 0) -> Problem:
    """Return the input of the cost model for a contraction. `group`: the codes of a pixel that a step multiplies;
    `flat`: the pixels of all rows and images form one row; `per_pixel`: operations on each pixel's data in each
    step."""
    points = (at_most(conv.images), at_most(conv.out_rows), at_most(conv.out_columns))
    width, rows = (points[0] * points[1] * points[2], 1) if flat else (points[2], points[0] * points[1])
    size = LANES * group if group >= 4 else 64 if group > 1 or conv.is_float else 32
    registers, dot = target.vector_registers, instruction_of(conv, target, group)
    matrix = tile_rows(conv, flat=flat) if group > MATRIX else 0
    return Problem(at_most(conv.outputs), width, rows, steps_of(conv, group), registers, per_pixel, size, dot, matrix)
