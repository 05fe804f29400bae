"""`convert-layout` and `alter-op-layout`: no number changes, and what is converted there and back is as it was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

import relay
from relay import IRModule
from relay.byoc import Artifact, BuildInfo, Compiler, Refusal, registry
from relay.dialects import qnn
from relay.dialects.layout import Layout, steps
from relay.errors import InvalidArgument
from relay.interpreters import run
from relay.transform import AnnotateTarget, MergeCompilerRegions, MergeComposite, PartitionGraph, Sequential
from relay.transforms.alter_op_layout import AlterOpLayout
from relay.transforms.convert_layout import ConvertLayout
from relay.transforms.equality import difference
from relay.transforms.layouts.min_cut import Cut
from relay.transforms.layouts.moving import moved
from tests.numeric.random_graphs import RandomGraph
from tests.numeric.test_models_interpreted import MODELS, module

LAYOUTS = ("NCHW", "NHWC4c", "NCHW4c", "HWNC", "NHWC2c")
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
ULPS = 8 * float(np.finfo(np.float32).eps)
"""Of the largest float: numpy's products depend on where in memory their operands lie. Compiled code is compared
exactly."""
SEEDS = st.integers(0, 2**32 - 1)


def kinds(mod: IRModule) -> list[str]:
    return [op.name for op in mod.op.walk()]


def check(seed: int, layout: str, floats: bool) -> None:
    """One random graph: converted, and converted back."""
    net = RandomGraph(seed, floats=floats)
    mod = net.module()
    wanted = run(mod, net.inputs)
    there = ConvertLayout("NHWC", layout)(mod)
    there.verify()
    back = AlterOpLayout()(there)
    back.verify()
    assert AlterOpLayout.holds(back.op)
    assert kinds(back).count("relay.transpose") <= kinds(mod).count("relay.transpose")
    for each in (there, back):
        assert difference(run(each, net.inputs), wanted, ULPS if floats else 0.0) is None


@settings(max_examples=12, deadline=None, derandomize=True)
@given(SEEDS, st.sampled_from(LAYOUTS), st.booleans())
def test_no_number_changes(seed: int, layout: str, floats: bool):
    check(seed, layout, floats)


@pytest.mark.fuzz
@given(SEEDS, st.sampled_from(LAYOUTS), st.booleans())
def test_no_number_changes_in_many(seed: int, layout: str, floats: bool):
    check(seed, layout, floats)


@pytest.mark.parametrize(
    ("seed", "layout", "floats"),
    [
        (1, "NCHW", False),
        pytest.param(2, "NHWC4c", False, marks=pytest.mark.slow),
        pytest.param(1, "NCHW", True, marks=pytest.mark.slow),
        pytest.param(2, "NHWC4c", True, marks=pytest.mark.slow),
    ],
)
def test_built_equals_unconverted(seed: int, layout: str, floats: bool):
    net = RandomGraph(seed, floats=floats, size=6)
    mod = net.module()
    results = [relay.build(each).run(*net.inputs) for each in (mod, ConvertLayout("NHWC", layout)(mod))]
    plain, converted = (r if isinstance(r, tuple) else (r,) for r in results)
    for got, want in zip(converted, plain, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC4c"])
@pytest.mark.parametrize("name", [pytest.param("resnet8_int8", marks=pytest.mark.ci), "kws_int8"])
def test_models(name: str, layout: str):
    """One transpose of the input at most, the kernels' aside; the numbers are those of the model."""
    mod = module(name)
    golden = np.load(MODELS / "golden" / f"{name}.npz")
    inputs = [golden["rand0_in0"]]
    new = ConvertLayout("NHWC", layout)(mod)
    assert kinds(new).count("relay.transpose") <= 1
    assert kinds(AlterOpLayout()(new)).count("relay.transpose") == 0
    np.testing.assert_array_equal(run(new, inputs)[0], golden["rand0_out0"])


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["NCHW", "NHWC4c"])
@pytest.mark.parametrize("name", ["resnet8_int8", "kws_int8", "vww_96_int8", "mobilenet_v1_0.25_128_quant",
                                  "tf2_mobilenet_v2_1.0_224_ptq", "mobilenetv2_224_f32"])  # fmt: skip
def test_built_models(name: str, layout: str):
    mod = module(name)
    golden = np.load(MODELS / "golden" / f"{name}.npz")
    image = golden["rand0_in0"]
    got = relay.build(ConvertLayout("NHWC", layout)(mod)).run(image)
    want = relay.build(mod).run(image)
    np.testing.assert_array_equal(got, want)


def test_options_are_checked():
    mod = IRModule()
    for wrong, words in [
        (ConvertLayout("NHWC", "NCH"), "no layout of images"),
        (ConvertLayout("NHWC", "NCHW4h"), "no layout of images"),
        (ConvertLayout("NHWC", "NC HW"), "is no layout"),
        (ConvertLayout(operators="nn.dense"), "no operator with a layout"),
        (ConvertLayout(skip=0), "there are 0 convolutions"),
        (ConvertLayout(kernel_layout="HOIW"), "kernel_layout is"),
    ]:
        with pytest.raises(InvalidArgument, match=words):
            wrong(mod)


def test_external_compilers_are_not_offered_other_layouts():
    mod = relay.frontend.from_tflite(DIGITS)
    steps_of = [MergeComposite(compiler="systolic"), AnnotateTarget(targets="systolic"), MergeCompilerRegions(),
                PartitionGraph()]  # fmt: skip
    assert "its layout is NCHW" not in str(Sequential(steps_of)(mod).partition_report())
    other = Sequential([ConvertLayout("NHWC", "NCHW"), *steps_of])(mod)
    assert "its layout is NCHW, not NHWC" in str(other.partition_report())
    for function in other.functions.values():
        if "compiler" in function.attributes:
            assert not any("conv2d" in op.name for op in function.walk())


class ChannelsFirst(Compiler):
    """Takes convolutions, of this layout only."""

    name = "first"
    layouts = ("NCHW",)
    kernel_layouts = ("OIHW",)

    def supports(self, op: Operation) -> bool | Refusal:
        return isinstance(op, qnn.Conv2dOp)

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
        return Artifact(b"")


class Converting(ChannelsFirst):
    """Has the module converted before it is asked."""

    def before_annotation(self) -> Sequence[ModulePass]:
        return [ConvertLayout("NHWC", "NCHW")]


@pytest.mark.parametrize("exact", [False, True])
def test_a_compiler_is_offered_the_layouts_that_it_reads(monkeypatch: pytest.MonkeyPatch, exact: bool):
    """Also when it must be exact."""
    mod = relay.frontend.from_tflite(DIGITS)
    monkeypatch.setitem(registry.COMPILERS.registered, "first", Converting)
    parted = relay.build_external_compiler(mod, "first", exact=exact)
    taken = [op for f in parted.functions.values() if "compiler" in f.attributes for op in f.walk()]
    assert sum(isinstance(op, qnn.Conv2dOp) for op in taken) == kinds(mod).count("qnn.conv2d")
    image = np.load(DIGITS.with_name("digits_test.npz"))["int8_images"][:1]
    assert np.array_equal(run(parted, [image])[0], run(mod, [image])[0])
    monkeypatch.setitem(registry.COMPILERS.registered, "first", ChannelsFirst)
    parted = relay.build_external_compiler(mod, "first", exact=exact)
    assert list(parted.functions) == ["main"]
    assert "its layout is NHWC, not NCHW" in str(parted.partition_report())


SHUFFLED = """func.func @main(%x: tensor<1x4x8x8xi8>, %k: tensor<4x4x1x1xi8>) -> tensor<1x4x8x8xi32> {
  %0 = relay.nn.conv2d %x, %k {data_layout = "NCHW", kernel_layout = "OIHW"} : (tensor<1x4x8x8xi8>, tensor<4x4x1x1xi8>) -> tensor<1x4x8x8xi32>
  %1 = relay.reshape %0 {newshape = array<i64: 1, 2, 2, 8, 8>} : (tensor<1x4x8x8xi32>) -> tensor<1x2x2x8x8xi32>
  %2 = relay.transpose %1 {axes = array<i64: 0, 2, 1, 3, 4>} : (tensor<1x2x2x8x8xi32>) -> tensor<1x2x2x8x8xi32>
  %3 = relay.reshape %2 {newshape = array<i64: 1, 4, 8, 8>} : (tensor<1x2x2x8x8xi32>) -> tensor<1x4x8x8xi32>
  %4 = relay.cast %3 {dtype = i8} : (tensor<1x4x8x8xi32>) -> tensor<1x4x8x8xi8>
  %5 = relay.nn.conv2d %4, %k {data_layout = "NCHW", kernel_layout = "OIHW"} : (tensor<1x4x8x8xi8>, tensor<4x4x1x1xi8>) -> tensor<1x4x8x8xi32>
  func.return %5 : tensor<1x4x8x8xi32>
}"""  # noqa: E501


def test_a_channels_first_shuffle_is_one_transpose_in_a_build():
    mod, rng = IRModule.parse(SHUFFLED), np.random.default_rng(0)
    arrays = [rng.integers(-128, 128, dims).astype(np.int8) for dims in ((1, 4, 8, 8), (4, 4, 1, 1))]
    optimized = relay.optimize(mod, "llvm -mcpu=haswell")
    transposes = sum(op.name == "relay.transpose" for op in optimized.op.walk())
    assert transposes == 3, "of the argument, the shuffle, of the result"
    np.testing.assert_array_equal(run(optimized, arrays)[0], run(mod, arrays)[0])


@given(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS))
def test_every_layout_round_trip_is_the_identity(first: str, second: str):
    nhwc, a, b = (Layout.parse(text) for text in ("NHWC", first, second))
    array = np.arange(2 * 3 * 5 * 8).reshape(2, 3, 5, 8)
    there = moved(array, steps(array.shape, nhwc, a))
    assert there.shape == a.dims(nhwc.sizes(array.shape))
    other = moved(there, steps(there.shape, a, b))
    np.testing.assert_array_equal(moved(array, steps(array.shape, nhwc, b)), other)
    np.testing.assert_array_equal(moved(other, steps(other.shape, b, nhwc)), array)


@given(st.data())
def test_cut_is_a_least_one(data: st.DataObject):
    count = data.draw(st.integers(1, 5))
    node = st.integers(0, count + 1)
    edges = data.draw(st.lists(st.tuples(node, node, st.integers(0, 9)), max_size=12))
    cut = Cut()
    for _ in range(count):
        cut.node()
    for first, second, amount in edges:
        cut.cost(first, second, amount)

    def price(sides: list[bool]) -> int:
        return sum(amount for a, b, amount in edges if not sides[a] and sides[b])

    every = [[False, True, *(bool(bits >> i & 1) for i in range(count))] for bits in range(1 << count)]
    found = cut.side()
    assert found[:2] == [False, True]
    assert price(found) == min(map(price, every))
