"""What `partition-graph` makes functions of: the cases of Relay's own tests, and those it got wrong."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp

import relay
from relay.byoc.compiler import Artifact
from relay.byoc.partitioning.annotate_target import AnnotateTarget
from relay.byoc.partitioning.compile_external import CompileExternal
from relay.byoc.partitioning.inline_partitions import InlinePartitions
from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.partitioning.partition_graph import PartitionGraph
from relay.byoc.partitioning.prune_regions import PruneRegions
from relay.byoc.patterns import Entry, Pattern, is_constant, is_op, wildcard
from relay.dialects.attributes import to_numpy
from relay.interpreters import run
from relay.module import IRModule
from relay.module import is_constant as constant_at_hand
from relay.transform import FoldConstant, FuseOps, Legalize, Sequential, Simplify
from tests.unit.partitioning_modules import (
    Known,
    T,
    annotated,
    external,
    function,
    merged,
    module,
    ops,
    partition,
    returned,
    same,
)
from tests.unit.test_annotate_target import DIGITS

MODELS = Path(__file__).parents[3] / "shared" / "models"


def test_multi_node_compiler():
    """Two chains annotated by hand, each between one begin for each input and one end, and a chain of the host."""
    lines = [f"func.func @main(%x: {T}, %y: {T}, %z: {T}) -> tensor<12xf32> {{"]
    for k, last in ((0, "subtract"), (1, "add")):
        lines += [f'%b{k}{v} = byoc.compiler_begin %{v} {{compiler = "ccompiler"}} : ({T}) -> {T}' for v in "xyz"]
        lines += [f"%p{k} = relay.add %b{k}x, %b{k}y : ({T}, {T}) -> {T}"]
        lines += [f"%q{k} = relay.subtract %p{k}, %b{k}z : ({T}, {T}) -> {T}"]
        lines += [f"%r{k} = relay.{last} %q{k}, %p{k} : ({T}, {T}) -> {T}"]
        lines += [f'%e{k} = byoc.compiler_end %r{k} {{compiler = "ccompiler"}} : ({T}) -> {T}']
    lines += [f"%h = relay.multiply %x, %z : ({T}, {T}) -> {T}"]
    lines += [f"%c = relay.concatenate %e0, %e1, %h {{axis = 0 : i64}} : ({T}, {T}, {T}) -> tensor<12xf32>"]
    mod = IRModule.parse("\n".join([*lines, "func.return %c : tensor<12xf32>", "}"]))
    done = PartitionGraph()(mod)
    same(mod, done)
    assert external(done) == {
        "relay_ccompiler_main_0": ["add", "subtract", "subtract"],
        "relay_ccompiler_main_1": ["add", "subtract", "add"],
    }
    calls = ["call relay_ccompiler_main_0", "call relay_ccompiler_main_1"]
    assert sorted(ops(done)) == [*calls, "concatenate", "multiply"]


def test_extern_ccompiler_single_op(known: Known):
    known("ccompiler", "add")
    done = partition(module("a = add x y\nreturn a", "x y"), "ccompiler")
    assert external(done) == {"relay_ccompiler_main_0": ["add"]} and ops(done) == ["call relay_ccompiler_main_0"]


def test_extern_ccompiler_default_ops(known: Known):
    """What stays with the host is legalized and fused as if nothing else were there; the call is between."""
    known("ccompiler", "add")
    mod = module("a = add x y\nb = log a\nc = exp b\nd = concatenate b c\nreturn d", "x y")
    done = partition(mod, "ccompiler")
    fused = Sequential([Legalize(), FuseOps()])(done)
    same(mod, fused)
    assert ops(fused)[0] == "call relay_ccompiler_main_0" and all(op.startswith("call") for op in ops(fused))
    assert external(fused) == {"relay_ccompiler_main_0": ["add"]}


def test_extern_ccompiler_multiple_functions(known: Known):
    """Names carry the function's; each function counts its own."""
    known("ccompiler", "add")
    mod = module("a = add x y\nb = exp a\nc = add b y\nreturn c", "x y")
    mod["subfunction"] = function("a = add x y\nreturn a", "x y", name="subfunction")
    assert list(external(partition(mod, "ccompiler"))) == [
        "relay_ccompiler_main_0",
        "relay_ccompiler_main_1",
        "relay_ccompiler_subfunction_0",
    ]


def test_extern_ccompiler(known: Known):
    """Without `merge-compiler-regions`, a function for each op: y * y - (x + x)."""
    known("ccompiler", "add", "subtract", "multiply")
    mod = module("a = add x x\nm = multiply y y\ns = subtract m a\nreturn s", "x y")
    done = PartitionGraph()(annotated(mod, "ccompiler"))
    same(mod, done)
    names = [f"relay_ccompiler_main_{k}" for k in range(3)]
    assert external(done) == dict(zip(names, (["add"], ["multiply"], ["subtract"]), strict=True))
    assert ops(done) == [f"call {name}" for name in names]
    (argument,) = done[names[0]].body.block.args
    assert argument.name_hint == "x"


CONV = "(tensor<1x4x4x2xf32>, tensor<3x3x2x1xf32>) -> tensor<1x4x4x2xf32>"
DEPTHWISE = '{padding = array<i64: 1, 1, 1, 1>, groups = 2 : i64, kernel_layout = "HWOI", out_dtype = f32}'


def test_extern_dnnl(known: Known):
    """The whole graph, two convolutions sharing their weights, which are one argument. (Relay made two of them.)"""
    known("dnnl", "nn.conv2d", "add")
    mod = IRModule.parse(f"""
func.func @main(%x: tensor<1x4x4x2xf32>, %w: tensor<3x3x2x1xf32>) -> tensor<1x4x4x2xf32> {{
  %a = relay.nn.conv2d %x, %w {DEPTHWISE} : {CONV}
  %b = relay.nn.conv2d %a, %w {DEPTHWISE} : {CONV}
  %c = relay.add %a, %b : (tensor<1x4x4x2xf32>, tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
  func.return %c : tensor<1x4x4x2xf32>
}}""")
    done = partition(mod, "dnnl")
    assert external(done) == {"relay_dnnl_main_0": ["nn.conv2d", "nn.conv2d", "add"]}
    assert len(done["relay_dnnl_main_0"].body.block.args) == 2


def products() -> list[Entry]:
    """Convolutions and products of codes with constants, up to their requantisation."""
    conv = is_op("qnn.conv2d", "qnn.dense")(wildcard(), is_constant())
    return [Entry("product", is_op("qnn.requantize")(is_op("nn.bias_add")(conv, is_constant())))]


def test_extern_dnnl_mobilenet(known: Known):
    """A model, at every step and however constants go in: the same integers."""
    known("dnnl", "qnn.add", "nn.avg_pool2d", entries=products())
    mod = relay.frontend.from_tflite(DIGITS)
    image = np.random.default_rng(1).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    composites = MergeComposite("dnnl")(mod)
    marked = annotated(composites, "dnnl")
    regions = MergeCompilerRegions()(marked)
    bound, hoisted, single = (
        PartitionGraph()(regions),
        PartitionGraph(constants="hoist")(regions),
        PartitionGraph()(marked),
    )
    back = InlinePartitions()(bound)
    for step in (composites, marked, regions, bound, hoisted, single, back, Legalize()(bound)):
        step.verify()
        for a, b in zip(run(step, [image]), run(mod, [image]), strict=True):
            assert np.array_equal(a, b)
    assert external(bound) and len(external(single)) > len(external(bound))


def test_function_lifting(known: Known):
    """No pass of ours looks into the functions of compilers."""
    known("x", "add", "negative")
    mod = module("k = constant 2.0\nl = constant 1.0\na = add x k\nb = negative a\nc = negative b\nd = exp c\nreturn d")
    done = partition(mod, "x")
    optimized = Sequential([Legalize(), FoldConstant(), Simplify(), FuseOps()])(done)
    same(mod, optimized)
    (before,), (after,) = external(done).values(), external(optimized).values()
    assert before == after == ["constant", "add", "negative", "negative"]


def test_function_lifting_inline(known: Known):
    """Inlined, they are the host's again: what the passes do to them, they do."""
    known("x", "negative")
    mod = module("b = negative x\nc = negative b\nd = exp c\nreturn d")
    back = InlinePartitions()(partition(mod, "x"))
    assert external(back) == {} and ops(back) == ["negative", "negative", "exp"] and "byoc" not in str(back)
    assert ops(Simplify()(back)) == ops(Simplify()(mod))


def test_constant_propagation(known: Known):
    """A bound constant is in the function, which takes `y` alone; hoisted it is an argument, once."""
    known("ccompiler", "add", "multiply")
    mod = module("k = constant 3.0\na = add k y\nb = multiply a k\nreturn b", "y")
    done = partition(mod, "ccompiler")
    assert ops(done) == ["call relay_ccompiler_main_0"]
    assert external(done) == {"relay_ccompiler_main_0": ["constant", "add", "multiply"]}
    hoisted = PartitionGraph(constants="hoist")(merged(mod, "ccompiler"))
    same(mod, hoisted)
    assert ops(hoisted) == ["constant", "call relay_ccompiler_main_0"]
    assert external(hoisted) == {"relay_ccompiler_main_0": ["add", "multiply"]}
    assert [a.name_hint for a in hoisted["relay_ccompiler_main_0"].body.block.args] == ["y", "k"]


def test_multiple_outputs(known: Known):
    """Three results of one region."""
    known("x", "add", "abs", "clip")
    done = partition(module("a = add x y\nb = abs a\nc = clip b\nreturn c, a, b", "x y"), "x")
    (call,) = calls(done)
    assert [value.name_hint for value in call.results] == ["a", "b", "c"]
    assert [value.name_hint for value in returned(done)] == ["c", "a", "b"]


def calls(mod: IRModule) -> list[CallOp]:
    return [op for op in mod["main"].body.block.ops if isinstance(op, CallOp)]


def test_mixed_single_multiple_outputs(known: Known):
    """Two regions and a tanh of the host between; results are in the order of their ops."""
    known("ccompiler", "clip", "abs", "add")
    done = partition(module("r = clip x\na = abs r\nt = tanh r\ns = add t a\nreturn s"), "ccompiler")
    assert external(done) == {"relay_ccompiler_main_0": ["clip", "abs"], "relay_ccompiler_main_1": ["add"]}
    assert [value.name_hint for value in returned(done, "relay_ccompiler_main_0")] == ["r", "a"]


BIAS_RELU = is_op("clip")(is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard()))
RELU = is_op("clip")(is_op("nn.conv2d")(wildcard(), wildcard()))


def blocks_of_convolutions(bias: bool = True, sigmoid: bool = False) -> IRModule:
    """Twice: a convolution and a clip, then one with a bias between them."""
    image, kernel = "tensor<1x2x2x1xf32>", "tensor<1x1x1x1xf32>"
    lines, value, k = [f"func.func @main(%x: {image}, %w: {kernel}, %b: tensor<1xf32>) -> {image} {{"], "%x", 0
    for biased in (False, True, False, True):
        lines.append(f"%c{k} = relay.nn.conv2d {value}, %w {{out_dtype = f32}} : ({image}, {kernel}) -> {image}")
        value = f"%c{k}"
        if biased and bias:
            lines.append(f"%d{k} = relay.nn.bias_add {value}, %b : ({image}, tensor<1xf32>) -> {image}")
            value = f"%d{k}"
        if biased and sigmoid:
            lines.append(f"%s{k} = relay.sigmoid {value} : ({image}) -> {image}")
            value = f"%s{k}"
        lines.append(f"%e{k} = relay.clip {value} {{a_min = 0.0 : f32, a_max = 6.0 : f32}} : ({image}) -> {image}")
        value, k = f"%e{k}", k + 1
    return IRModule.parse("\n".join([*lines, f"func.return {value} : {image}", "}"]))


@pytest.mark.parametrize(
    ("bias", "sigmoid", "entries", "functions"),
    [
        (True, False, {"bias_relu": BIAS_RELU}, 2),
        (True, False, {"relu": RELU}, 2),
        (True, False, {"bias_relu": BIAS_RELU, "relu": RELU}, 4),
        (False, False, {"relu": RELU}, 4),
        (False, False, {"bias_relu": BIAS_RELU}, 0),
        (True, True, {"bias_relu": BIAS_RELU, "relu": RELU}, 2),
    ],
)
def test_dnnl_fuse(known: Known, bias: bool, sigmoid: bool, entries: dict[str, Pattern], functions: int):
    """Without merging, a function for each composite, which says what it is."""
    known("dnnl", entries=[Entry(name, pattern) for name, pattern in entries.items()])
    mod = blocks_of_convolutions(bias, sigmoid)
    done = PartitionGraph()(annotated(MergeComposite("dnnl")(mod), "dnnl"))
    same(mod, done)
    assert len(external(done)) == functions
    for name in external(done):
        composite = done[name].attributes["composite"]
        assert composite in [StringAttr(f"dnnl.{entry}") for entry in entries]
        matched = "nn.conv2d_nn.bias_add_clip_" if composite == StringAttr("dnnl.bias_relu") else "nn.conv2d_clip_"
        assert done[name].attributes["partitioned_from_pattern"] == StringAttr(matched)
    regions = partition(mod, "dnnl")
    assert len(external(regions)) == (1 if functions == 4 else functions)


def test_dnnl_fuse_mobilenet(known: Known):
    """MobileNet: 27 convolutions and the one that is its dense layer, each with bias and requantisation."""
    path = MODELS / "mobilenet_v1_0.25_128_quant.tflite"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    known("dnnl", entries=products())
    mod = relay.frontend.from_tflite(path)
    done = PartitionGraph()(annotated(MergeComposite("dnnl")(mod), "dnnl"))
    assert len(external(done)) == 28
    assert len(external(PartitionGraph()(merged(mod, "dnnl")))) == 2


def test_mobilenet_is_partitioned_in_half_a_second(known: Known):
    path = MODELS / "tf2_mobilenet_v2_1.0_224_ptq.tflite"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    known("x", "qnn.add", entries=products())
    mod = relay.frontend.from_tflite(path).op.clone()
    steps = [MergeComposite("x"), AnnotateTarget("x"), MergeCompilerRegions(), PruneRegions(), PartitionGraph()]
    started = time.process_time()
    Sequential(steps)(mod)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("supported", [True, False])
def test_multiple_use_of_an_output(known: Known, supported: bool):
    """A diamond: one region if all of it is taken, two if a side is the host's."""
    known("ccompiler", "subtract", "abs", "add", *(["multiply"] if supported else []))
    done = partition(module("s = subtract x y\na = abs s\nm = multiply s s\nr = add a m\nreturn r", "x y"), "ccompiler")
    if supported:
        assert external(done) == {"relay_ccompiler_main_0": ["subtract", "abs", "multiply", "add"]}
    else:
        found = {"relay_ccompiler_main_0": ["subtract", "abs"], "relay_ccompiler_main_1": ["add"]}
        assert external(done) == found


def test_duplicate_outputs(known: Known):
    """A value used three times by the host comes out once."""
    known("x", "abs")
    done = partition(module("a = abs x\nb = exp a\nc = tanh a\nd = clip a\nreturn b, c, d"), "x")
    assert len(returned(done, "relay_x_main_0")) == 1


def test_duplicate_merge_and_tuplegetitem(known: Known):
    """A region whose results are used inside, by the host, and twice."""
    known("x", "qnn.dynamic_quantize", "abs")
    text = "q, s = qnn.dynamic_quantize x\na = abs s\nb = exp s\nc = tanh s\nreturn a, b, c, s"
    done = partition(module(text), "x")
    assert external(done) == {"relay_x_main_0": ["qnn.dynamic_quantize", "abs"]}
    assert [value.name_hint for value in returned(done, "relay_x_main_0")] == ["s", "a"]


def test_constant_tuples(known: Known):
    """Several constants among the operands of one op stay its own. (Scales and zero points are properties here.)"""
    known("x", "concatenate")
    done = partition(module("k = constant 1.0\nl = constant 2.0\nc = concatenate k x l k\nreturn c"), "x")
    assert external(done) == {"relay_x_main_0": ["constant", "constant", "concatenate"]}
    assert [value.name_hint for value in done["relay_x_main_0"].body.block.args] == ["x"]


def test_flatten_tuple_output(known: Known):
    """Two results of one op and one of another are three results of the function."""
    known("x", "qnn.dynamic_quantize", "abs")
    done = partition(module("q, s = qnn.dynamic_quantize x\na = abs s\nreturn q, s, a"), "x")
    assert [value.name_hint for value in returned(done, "relay_x_main_0")] == ["q", "s", "a"]


def test_tuple_output_exec(known: Known):
    """A region of several results that are all the function's results; `partition` runs it."""
    known("x", "add", "subtract", "multiply")
    done = partition(module("a = add x y\nb = subtract a y\nc = multiply a y\nreturn b, c, a", "x y"), "x")
    assert ops(done) == ["call relay_x_main_0"]


def test_extern_opt(known: Known):
    """The compiler's own passes run on its functions: folded, they are a constant 2."""
    seen: list[float] = []

    def compiled(function: FuncOp) -> Artifact:
        value = returned_constant(function)
        assert constant_at_hand(value)
        seen.append(float(to_numpy(value.value)[0]))
        return Artifact(b"")

    known("test_target", on_functions=[FoldConstant()], compiled=compiled)
    mod = IRModule.parse(f"""
func.func @main(%x: {T}) -> {T} {{
  %r = byoc.region "test_target"(%x) : ({T}) -> {T} {{
  ^bb0(%y: {T}):
    %k = relay.constant dense<1.0> : {T}
    %a = relay.add %k, %k : ({T}, {T}) -> {T}
    byoc.yield %a : {T}
  }}
  func.return %r : {T}
}}""")
    CompileExternal()(PartitionGraph()(mod))
    assert seen == [2.0]


def returned_constant(function: FuncOp) -> object:
    end = function.body.block.last_op
    assert isinstance(end, ReturnOp)
    return end.arguments[0].owner
