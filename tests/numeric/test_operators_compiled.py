"""Operators, compiled: random ones against LiteRT and the interpreter, and the shapes that schedules distinguish."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import llvmlite.binding as llvm
import numpy as np
import pytest
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.target import CpuTarget
from relay.target.llvm_features import features_of
from tests.conftest import Cases
from tests.marks import ci
from tests.numeric.compiled_modules import Net
from tests.numeric.litert_comparison import compare_many
from tests.numeric.litert_shape_cases import CASES

pytestmark = pytest.mark.guarded
ONE_LOOP = ("tests.numeric.litert_elementwise_cases", "tests.numeric.litert_movement_cases")
"""Where the operators are that take a loop nest or two, for which one model does by default."""
ALIKE = frozenset(
    """CEIL COS SIN ROUND SQUARE SIGN POW LOGICAL_AND LOGICAL_OR LOGICAL_NOT BITWISE_XOR EQUAL NOT_EQUAL LESS GREATER
    GREATER_EQUAL SELECT_V2 ADD_N REDUCE_ANY REDUCE_PROD FILL BROADCAST_TO ZEROS_LIKE RANGE SHAPE RANK REVERSE_V2
    BATCH_TO_SPACE_ND SPACE_TO_DEPTH MATRIX_DIAG""".split()
)
"""Those that differ from another one in no more than a row of a table, which slow runs build too."""
DEFAULT = frozenset(
    """ADD ARG_MAX AVERAGE_POOL_2D BATCH_MATMUL CONCATENATION CONV_2D CUMSUM DEPTHWISE_CONV_2D DIV FULLY_CONNECTED
    GATHER HARD_SWISH LEAKY_RELU LOGISTIC MAX_POOL_2D MEAN MUL NON_MAX_SUPPRESSION_V4 PAD QUANTIZE RESHAPE
    RESIZE_BILINEAR SCATTER_ND SELECT SOFTMAX SPLIT STRIDED_SLICE SUM SVDF TOPK_V2 TRANSPOSE TRANSPOSE_CONV""".split()
)
"""One of each kind of kernel, and those with arithmetic of their own. Of the others, too, the interpreter is compared
with LiteRT by default; the files of `tests/ops`, some of them with `-m ci`, compile what they become."""


def marks_of(kind: str) -> tuple[pytest.MarkDecorator, ...]:
    return () if kind in DEFAULT else (pytest.mark.slow if kind in ALIKE else pytest.mark.ci,)


KINDS = [pytest.param(kind, marks=marks_of(kind)) for kind in sorted(CASES)]


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_operator_equals_litert(kind: str):
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    count = 1 if CASES[kind].__module__ in ONE_LOOP else 2
    compare_many(kind, lambda rng: CASES[kind](rng, kind), range(count), 2, built=True)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", sorted(CASES))
def test_many_compiled_operators_equal_litert(kind: str, cases: Cases):
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    compare_many(kind, lambda rng: CASES[kind](rng, kind), cases(200), 3, built=True)


# Targets

TARGETS = ["llvm", "generic", *(["x86-64-v3"] if llvm.get_process_triple().startswith("x86_64") else [])]
EACH = [TARGETS[0], *ci(TARGETS[1:])]


def target_of(name: str) -> str | CpuTarget:
    """The host as it is, the plainest CPU of its kind, or x86 with AVX2 and FMA; the schedule is told of no feature."""
    if name == "llvm":
        return name
    triple = llvm.get_process_triple()
    cpu = name if name != "generic" else "x86-64" if triple.startswith("x86_64") else "generic"
    features = llvm.get_host_cpu_features()
    if name == "x86-64-v3" and not (features.get("avx2") and features.get("fma")):
        pytest.skip("this CPU has no AVX2 and FMA")
    return CpuTarget(triple, cpu, frozenset())


def on_targets(*default: str) -> list[object]:
    """`flavour-target` pairs of the plain targets: these by default, the others when slow ones are wanted."""
    pairs = [(f, t) for f in ("i8", "u8", "i16", "f32") for t in TARGETS[1:]]
    return [
        pytest.param(f, t, id=f"{f}-{t}", marks=() if f"{f}-{t}" in default else pytest.mark.slow) for f, t in pairs
    ]


FLAVOURS: dict[str, tuple[str, str, tuple[int, int] | None]] = {
    "i8": ("int8", "int8", (-5, 0)),
    "i8_i8zp": ("int8", "int8", (3, -7)),
    "u8": ("uint8", "uint8", (121, 140)),
    "u8_128": ("uint8", "uint8", (7, 128)),
    "u8_i8": ("uint8", "int8", (9, 0)),
    "i8_u8": ("int8", "uint8", (0, 100)),
    "i16": ("int16", "int8", (0, 0)),
    "f32": ("float32", "float32", None),
}
"""Dtypes of data and kernel, and their zero points."""


def flavours(default: str, ci: str) -> list[object]:
    """All of them: these by default, these with `-m ci`, the others when slow ones are wanted."""
    marks = {**dict.fromkeys(default.split(), ()), **dict.fromkeys(ci.split(), pytest.mark.ci)}
    return [pytest.param(flavour, marks=marks.get(flavour, pytest.mark.slow)) for flavour in FLAVOURS]


def follow(net: Net, flavour: str, name: str, sums: SSAValue, channels: int, epilogue: bool) -> None:
    """Make the sums a result, bare or finished by what usually follows."""
    data, _, zero_points = FLAVOURS[flavour]
    if epilogue:
        name += "+epilogue"
        sums = net.relu(sums, channels) if zero_points is None else net.requantize(sums, channels, data)
    net.result(name, sums)


CHANNELS = (1, 3, 4, 5, 8, 10, 16, 17, 24, 32, 33, 40, 64, 80)
GEOMETRIES = (
    ((1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    ((3, 3), (2, 2), (1, 1), (0, 0, 1, 1)),
    ((1, 1), (2, 2), (1, 1), (0, 0, 0, 0)),
    ((5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
    ((3, 3), (1, 1), (2, 2), (2, 2, 2, 2)),
    ((1, 3), (1, 2), (1, 1), (0, 1, 0, 0)),
    ((3, 1), (2, 1), (1, 1), (1, 0, 1, 0)),
    ((3, 2), (1, 1), (1, 3), (0, 0, 0, 0)),
)
"""Kernel size, strides, dilation, padding."""


SOME = (1, 3, 5, 6, 7, 8, 9, 11, 13)
"""Numbers of convolutions among which every geometry and width is; their outputs fill vectors, or leave remainders."""


def convolutions(flavour: str, *, some: bool = False) -> Net:
    """Many numbers of channels, every geometry, widths that leave remainders; with and without epilogue. Or `SOME`."""
    net = Net(11)
    data, kernel, zero_points = FLAVOURS[flavour]
    outputs, widths, batches = (
        cycle((16, 5, 64, 17, 1, 33, 80, 8, 40, 3, 24, 10, 32, 4)),
        cycle((7, 13, 9, 14)),
        cycle((1, 2, 1)),
    )
    geometries, epilogues = cycle(GEOMETRIES), cycle((True, True, False))
    for number, channels in enumerate(CHANNELS):
        (kh, kw), strides, dilation, padding = next(geometries)
        o, w, n, epilogue = next(outputs), next(widths), next(batches), next(epilogues)
        if some and number not in SOME:
            continue
        x = net.argument(net.numbers(data, n, 7, w, channels))
        weights = net.constant(net.numbers(kernel, o, kh, kw, channels))
        sums = net.conv2d(x, weights, strides=strides, dilation=dilation, padding=padding, zero_points=zero_points)
        name = f"{number}: {n}x7x{w}x{channels} by {o}x{kh}x{kw}, strides {strides}, dilation {dilation}"
        follow(net, flavour, name, sums, o, epilogue)
    for groups, depth, o in ((2, 3, 4), (4, 8, 16), (3, 1, 6)):
        x = net.argument(net.numbers(data, 1, 5, 6, groups * depth))
        weights = net.constant(net.numbers(kernel, o * groups, 3, 3, depth))
        sums = net.conv2d(x, weights, padding=(1, 1, 1, 1), groups=groups, zero_points=zero_points)
        follow(net, flavour, f"{groups} groups of {depth} to {o}", sums, o * groups, True)
    return net


def test_one_channel_more_than_vectors_have():
    """Numbers beside the last one, where the target reads and writes no parts of vectors."""
    net = Net(12)
    for o in (1, 17):
        x = net.argument(net.numbers("float32", 3, 8))
        sums = net.relu(net.dense(x, net.constant(net.numbers("float32", o, 8))), o)
        net.result(f"{o}", net.add(relay.AddOp, [sums, net.argument(net.numbers("float32", 3, o))], {}))
    plain = target_of(TARGETS[-1])
    assert isinstance(plain, CpuTarget)
    net.check(replace(plain, features=features_of(plain.triple, plain.cpu)))


@pytest.mark.parametrize("flavour", ["u8", "f32"])
def test_some_of_the_convolutions(flavour: str):
    convolutions(flavour, some=True).check()


@pytest.mark.parametrize("flavour", flavours("", "i8 u8 f32"))
def test_convolutions(flavour: str):
    convolutions(flavour).check()


@pytest.mark.ci
@pytest.mark.parametrize(("flavour", "target"), on_targets("i8-generic", "u8-x86-64-v3", "f32-x86-64-v3"))
def test_convolutions_of_plain_targets(flavour: str, target: str):
    convolutions(flavour).check(target_of(target))


def depthwise(flavour: str) -> Net:
    """Channels that fill vectors and that leave remainders, multipliers, kernels that are unrolled and 7x7 ones."""
    net = Net(12)
    data, kernel, zero_points = FLAVOURS[flavour]
    for channels, multiplier, size, stride, dilation, epilogue in (
        (8, 1, 3, 1, 1, True),
        (16, 1, 3, 2, 1, True),
        (24, 1, 5, 1, 1, True),
        (40, 1, 3, 1, 2, False),
        (1, 1, 3, 1, 1, True),
        (3, 1, 2, 1, 1, False),
        (32, 1, 7, 1, 1, True),
        (17, 1, 7, 2, 1, False),
        (8, 2, 3, 1, 1, True),
        (1, 8, 3, 2, 1, True),
        (5, 3, 3, 1, 2, False),
    ):
        x = net.argument(net.numbers(data, 2 if channels == 24 else 1, 8, 9, channels))
        weights = net.constant(net.numbers(kernel, size, size, channels, multiplier))
        around = (size // 2 * dilation,) * 4
        sums = net.conv2d(
            x, weights, strides=(stride, stride), padding=around, dilation=(dilation, dilation), groups=channels,
            zero_points=zero_points, depthwise=True,
        )  # fmt: skip
        name = f"{channels} channels x {multiplier}, {size}x{size}, stride {stride}, dilation {dilation}"
        follow(net, flavour, name, sums, channels * multiplier, epilogue)
    return net


@pytest.mark.parametrize("flavour", flavours("u8", "f32"))
def test_depthwise_convolutions(flavour: str):
    depthwise(flavour).check()


@pytest.mark.ci
@pytest.mark.parametrize(("flavour", "target"), on_targets("u8-generic", "i8-x86-64-v3"))
def test_depthwise_convolutions_of_plain_targets(flavour: str, target: str):
    depthwise(flavour).check(target_of(target))


def products(flavour: str) -> Net:
    """Few and many rows, units that leave remainders, depths that are no multiple of four."""
    net = Net(13)
    data, kernel, zero_points = FLAVOURS[flavour]
    units = cycle((1, 10, 16, 17, 33, 64, 80, 5))
    for rows in (1, 2, 5, 28):
        for depth, epilogue in ((1, True), (7, False), (64, True), (130, True)):
            o = next(units)
            x = net.argument(net.numbers(data, rows, depth))
            sums = net.dense(x, net.constant(net.numbers(kernel, o, depth)), zero_points)
            follow(net, flavour, f"{rows}x{depth} by {o}", sums, o, epilogue)
    x = net.argument(net.numbers(data, 2, 3, 20))
    follow(net, flavour, "rank 3", net.dense(x, net.constant(net.numbers(kernel, 12, 20)), zero_points), 12, True)
    x = net.argument(net.numbers(data, 20))
    follow(net, flavour, "rank 1", net.dense(x, net.constant(net.numbers(kernel, 12, 20)), zero_points), 12, True)
    return net


@pytest.mark.parametrize("flavour", flavours("i8 f32", "i16 u8_128 i8_u8"))
def test_products(flavour: str):
    products(flavour).check()


@pytest.mark.ci
@pytest.mark.parametrize(("flavour", "target"), on_targets("i8-generic", "u8-x86-64-v3", "f32-x86-64-v3"))
def test_products_of_plain_targets(flavour: str, target: str):
    products(flavour).check(target_of(target))


@pytest.mark.parametrize("target", EACH)
def test_weights_that_are_no_constants(target: str):
    net = Net(14)
    for flavour in ("i8", "u8", "f32"):
        data, kernel, zero_points = FLAVOURS[flavour]
        x, weights = net.argument(net.numbers(data, 1, 6, 7, 5)), net.argument(net.numbers(kernel, 9, 3, 3, 5))
        follow(net, flavour, f"{flavour} conv2d", net.conv2d(x, weights, zero_points=zero_points), 9, True)
        weights = net.argument(net.numbers(kernel, 3, 3, 5, 1))
        sums = net.conv2d(x, weights, zero_points=zero_points, depthwise=True, groups=5)
        follow(net, flavour, f"{flavour} depthwise", sums, 5, True)
        x, weights = net.argument(net.numbers(data, 3, 21)), net.argument(net.numbers(kernel, 18, 21))
        follow(net, flavour, f"{flavour} dense", net.dense(x, weights, zero_points), 18, False)
    net.check(target_of(target))


@pytest.mark.parametrize("flavour", ["i8", pytest.param("u8", marks=pytest.mark.ci), "f32"])
def test_one_kernel_for_several_layers(flavour: str):
    """Equal shapes, other weights: one function, each call with its own packed constants, chained and side by side."""
    net = Net(15)
    data, kernel, zero_points = FLAVOURS[flavour]
    x = net.argument(net.numbers(data, 1, 6, 6, 24))
    for layer in range(3):
        sums = net.conv2d(
            x, net.constant(net.numbers(kernel, 24, 3, 3, 24)), padding=(1, 1, 1, 1), zero_points=zero_points
        )
        x = net.relu(sums, 24) if zero_points is None else net.requantize(sums, 24, data)
        net.result(f"layer {layer}", x)
    executable = net.check()
    graph = executable.graph
    called = [name for name in graph["kernels"] if name.startswith("conv2d")]
    assert len(called) == 3 and len(set(called)) == 1


def residual_blocks(*flavours: str) -> Net:
    """conv, conv, add of the block's input: by fixed point for codes, in floats."""
    net = Net(16)
    for flavour in flavours:
        data, kernel, zero_points = FLAVOURS[flavour]
        for channels in (8, 33):
            x = y = net.argument(net.numbers(data, 1, 5, 7, channels))
            for _ in range(2):
                weights = net.constant(net.numbers(kernel, channels, 3, 3, channels))
                sums = net.conv2d(y, weights, padding=(1, 1, 1, 1), zero_points=zero_points)
                y = net.relu(sums, channels) if zero_points is None else net.requantize(sums, channels, data)
            net.result(f"{flavour} {channels} before", y)
            if zero_points is None:
                total = net.add(relay.AddOp, [x, y], {})
                net.result(f"{flavour} {channels}", net.relu(total, channels))
                continue
            sides = [net.add(relay.CastOp, [v], {"dtype": i32}) for v in (x, y)]
            scaled: list[SSAValue] = []
            for number, side in enumerate(sides):
                offset = net.add(relay.SubtractOp, [side, net.constant(np.array(17, np.int32))], {})
                wide = net.add(relay.LeftShiftOp, [offset, net.constant(np.array(20, np.int32))], {})
                factors = [net.constant(np.array(n, np.int32)) for n in (1473741824 + number, -number)]
                scaled.append(net.add(relay.FixedPointMultiplyOp, [wide, *factors], {}))
            total = net.add(relay.AddOp, scaled, {})
            net.result(f"{flavour} {channels}", net.requantize(total, channels, data, per_channel=False))
    return net


@pytest.mark.parametrize("flavour", ["i8", pytest.param("u8", marks=pytest.mark.ci), "f32"])
def test_residual_blocks(flavour: str):
    residual_blocks(flavour).check()


@pytest.mark.ci
@pytest.mark.parametrize("target", TARGETS[1:])
def test_residual_blocks_of_plain_targets(target: str):
    residual_blocks("i8", "u8", "f32").check(target_of(target))


@pytest.mark.parametrize("units", [1, 17, 33])
def test_a_single_last_channel_stays_within_the_output(units: int):
    """What lies behind an output's last channel, where one lane of a vector is stored, is left alone."""
    net = Net(20)
    x = net.argument(net.numbers("int8", 3, 21))
    sums = net.dense(x, net.constant(net.numbers("int8", units, 21)), (-4, 0))
    net.result("codes", net.requantize(sums, units, "int8"))
    image = net.argument(net.numbers("int8", 1, 3, 4, units))
    kernel = net.constant(net.numbers("int8", 2, 2, units, 1))
    sums = net.conv2d(image, kernel, zero_points=(-4, 0), groups=units, depthwise=True)
    net.result("depthwise codes", net.requantize(sums, units, "int8"))
    net.check()


def test_sums_and_codes_of_one_convolution():
    """The accumulators are a result too: the epilogue must not swallow them."""
    net = Net(17)
    x = net.argument(net.numbers("int8", 1, 4, 5, 6))
    sums = net.conv2d(x, net.constant(net.numbers("int8", 20, 3, 3, 6)), zero_points=(-4, 0))
    net.result("sums", sums)
    net.result("codes", net.requantize(sums, 20, "int8"))
    net.check()


def test_two_convolutions_of_one_input_with_different_zero_points():
    net = Net(18)
    x = net.argument(net.numbers("uint8", 1, 4, 5, 6))
    weights = net.constant(net.numbers("uint8", 20, 3, 3, 6))
    for zero_points in ((0, 0), (0, 255), (255, 0), (255, 255), (128, 128)):
        net.result(str(zero_points), net.conv2d(x, weights, padding=(1, 1, 1, 1), zero_points=zero_points))
    net.check()


def test_extreme_codes():
    """All codes at their bounds: no step of a dot product may saturate."""
    net = Net(19)
    for data, kernel, zero_points in (
        ("int8", "int8", (127, 0)),
        ("uint8", "uint8", (0, 255)),
        ("uint8", "int8", (255, 0)),
    ):
        lowest, highest = ((np.iinfo(d).min, np.iinfo(d).max) for d in (data, kernel))
        for a in lowest:
            for b in highest:
                x = net.argument(np.full((1, 3, 3, 64), a, data))
                weights = net.constant(np.full((16, 3, 3, 64), b, kernel))
                net.result(f"{data} {a} by {kernel} {b}", net.conv2d(x, weights, zero_points=zero_points))
                row = net.argument(np.full((2, 4100), a, data))
                matrix = net.constant(np.full((3, 4100), b, kernel))
                net.result(f"dense {data} {a} by {kernel} {b}", net.dense(row, matrix, zero_points))
    net.check()
