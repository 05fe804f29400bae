"""`relay.target`: a machine from its text, as text again, and as attributes of a module."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import relay
from relay.dialects.context import make_context
from relay.errors import InvalidArgument, Unsupported
from relay.frontend import from_tflite
from relay.lowering.gpu import strategies
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.lowering.scheduling import registry
from relay.passes import PassContext, Pipeline
from relay.passes.target_pass import TargetPass
from relay.runtime.processor import flags
from relay.target import (
    CpuTarget,
    GpuTarget,
    attach,
    cpu_of,
    gpu_of,
    host,
    llvm_features,
    resolve,
    spelled,
    target_of,
)
from relay.target.chips import CHIPS
from relay.target.gpu import CUDA_TRIPLE, OPENCL_TRIPLE
from relay.target.resolve import SPELLED
from relay.tile_registers import granted
from relay.transforms.legalize import Legalize

DIGITS = Path(__file__).parents[2] / "examples/digits/digits_int8.tflite"

TEXTS = [
    "llvm",
    "llvm -mattr=-avx2",
    "x86_64",
    "x86_64-unknown-linux-gnu -mcpu=cascadelake",
    "x86_64-unknown-linux-gnu -mcpu=haswell -mattr=-fma,+avx512f",
    "aarch64-unknown-linux-gnu -mattr=+dotprod",
    "aarch64-unknown-linux-gnu -mcpu=neoverse-v1 -costs=fork=4000,issue_width=5.5",
    "thumbv7em-none-eabi -mcpu=cortex-m7",
    "thumbv7em-none-eabihf",
    "thumbv8m.main-none-eabihf -mcpu=cortex-m33 -mattr=+dsp",
    "arm-linux-gnueabihf",
    "riscv64",
    "cuda",
    "cuda -arch=sm_90a -matmul=tf32",
    "cuda -costs=processors=30",
    "cuda -arch=sm_75 -mattr=-shuffle",
    "opencl",
    "opencl -mattr=+dot",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_target_is_made_again_of_its_text(text: str):
    target = resolve(text)
    written = spelled(target)
    SPELLED.clear()
    assert resolve(written) == target


@pytest.mark.parametrize(
    "features", [frozenset[str](), frozenset({"sse2", "avx2"}), host().features - {"avx2", "neon"}]
)
def test_a_target_of_any_features_is_made_again_of_its_text(features: frozenset[str]):
    target = CpuTarget(host().triple, host().cpu, features)
    written = spelled(target)
    SPELLED.clear()
    assert resolve(written).features == features


FEATURES = {
    "x86_64": ("avx2", "avx512f", "avx512vnni", "fma", "sse4.1"),
    "aarch64-unknown-linux-gnu": ("dotprod", "i8mm", "sve"),
    "riscv64": ("m", "c", "d"),
    "thumbv7em-none-eabihf": ("dsp",),
}
CPUS = {"x86_64": ("", "cascadelake"), "aarch64-unknown-linux-gnu": ("", "neoverse-n1")}
COSTS = [
    "",
    " -costs=fork=17",
    " -costs=issue_width=0.1,fork=2000",
    " -costs=fork=5 -costs=idle_load=6,tile_start=1e-7",
]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A text of a CPU or GPU, with options in any order."""
    if draw(st.booleans()):
        gone = draw(st.lists(st.sampled_from(("dot", "shuffle", "fma-rz")), unique=True))
        options = [f"-arch={draw(st.sampled_from(sorted(CHIPS)))}", *(f"-mattr={','.join(f'-{x}' for x in gone)}",)]
        costs = draw(st.sampled_from(["", " -costs=step=3", " -costs=finished_sum=0.3,processors=7"]))
        return (
            draw(st.sampled_from(["opencl", "opencl -mattr=+dot", " ".join(["cuda", *draw(st.permutations(options))])]))
            + costs
        )
    machine = draw(st.sampled_from(sorted(FEATURES)))
    names = draw(st.lists(st.sampled_from(FEATURES[machine]), max_size=3, unique=True))
    cpu = draw(st.sampled_from(CPUS.get(machine, ("",))))
    options = [f"-mcpu={cpu}"] if cpu else []
    if changes := [f"{draw(st.sampled_from('+-'))}{name}" for name in names]:
        options.append(f"-mattr={','.join(changes)}")
    return " ".join([machine, *draw(st.permutations(options))]) + draw(st.sampled_from(COSTS))


@pytest.mark.ci
@settings(max_examples=25, deadline=None, derandomize=True)
@given(text=texts())
def test_any_text_is_made_again_of_its_target(text: str):
    target = resolve(text)
    written = spelled(target)
    SPELLED.clear()
    assert resolve(written) == target
    assert spelled(resolve(written)) == written


@pytest.mark.parametrize(
    "target",
    [
        GpuTarget(OPENCL_TRIPLE, "", frozenset({"mma"}), "opencl"),
        GpuTarget(OPENCL_TRIPLE, "pvc", frozenset(), "opencl"),
        GpuTarget(CUDA_TRIPLE, "sm_80", frozenset({"wgmma"})),
        GpuTarget(CUDA_TRIPLE, "sm_75", frozenset(), matmul="tf32"),
        GpuTarget("spirv", "sm_80", frozenset()),
    ],
)
def test_a_target_that_no_text_names_has_none(target: GpuTarget):
    with pytest.raises(InvalidArgument, match="target: has "):
        spelled(target)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("riscv64 -costs=fork=5 -costs=fork=6", "cost fork"),
        ("riscv64 -mattr=+f,-f", "feature f"),
        ("riscv64 -mattr=+f -mattr=+f", "feature f"),
        ("rpi4 -mcpu=cortex-a53 -mcpu=cortex-a72", "option -mcpu"),
        ("cuda -mattr=-mma,-mma", "feature mma"),
        ("cuda -arch=sm_80 -arch=sm_90", "option -arch"),
    ],
)
def test_a_name_is_there_once(text: str, what: str):
    with pytest.raises(InvalidArgument, match=f"target '{text.replace('+', r'.')}': has the {what} twice; name each"):
        resolve(text)


@pytest.mark.parametrize(
    ("triple", "read", "in_registers"),
    [
        ("thumbv7em-none-eabi", "thumbv7em-unknown-none-gnueabi", False),
        ("thumbv7em-none-eabihf", "thumbv7em-unknown-none-gnueabihf", True),
        ("thumbv7em-unknown-none-eabihf", "thumbv7em-unknown-none-gnueabihf", True),
        ("arm-linux-gnueabihf", "arm-unknown-linux-gnueabihf", True),
        ("arm-none-linux-gnueabihf", "arm-none-linux-gnueabihf", True),
        ("aarch64-linux-gnu", "aarch64-unknown-linux-gnu", False),
        ("riscv32-unknown-elf", "riscv32-unknown-elf", False),
    ],
)
def test_the_environment_of_a_triple_says_how_floats_are_passed(triple: str, read: str, in_registers: bool):
    target = resolve(triple)
    assert (target.triple, target.llvm_triple) == (triple, read)
    assert isinstance(target, CpuTarget) and target.floats_in_registers == in_registers


@pytest.mark.parametrize(
    ("text", "cpu"),
    [
        ("thumbv6m-none-eabihf", "generic"),
        ("thumbv7m-none-eabihf", "cortex-m3"),
        pytest.param("thumbv7em-none-eabihf -mattr=-vfp4d16sp", "cortex-m3", marks=pytest.mark.ci),
        ("thumbv7em-none-eabihf -mcpu=cortex-m4 -mattr=+soft-float", "cortex-m4"),
        ("arm-linux-gnueabihf -mcpu=arm926ej-s", "arm926ej-s"),
    ],
)
def test_floats_are_not_passed_in_registers_that_are_not_there(text: str, cpu: str):
    soft = text.split()[0].removesuffix("hf")
    what = f"passes floats in registers .eabihf., and {cpu} has no unit for floats, or may not use it; write {soft}, or"
    with pytest.raises(InvalidArgument, match=what):
        resolve(text)
    first, *_ = text.split()
    fields = f'triple = "{first}", cpu = "{cpu}", features = "{"+soft-float" if "attr" in text else ""}"'
    with pytest.raises(InvalidArgument, match=f"relay.target: {what}"):
        target_of(
            Parser(make_context(), f"builtin.module attributes {{relay.target = {{{fields}}}}} {{}}").parse_module()
        )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "cortex-m4 -mcpu=cortex-m0",
            'has the CPU cortex-m0, which is of thumbv6m, not of thumbv7em; write "cortex-m0"',
        ),
        ("thumbv7em-none-eabihf -mcpu=cortex-m3", "has the CPU cortex-m3, which is of thumbv7m, not of thumbv7em"),
        ("thumbv8.1m.main-none-eabi -mcpu=cortex-m33", "which is of thumbv8m.main, not of thumbv8.1m.main"),
        ("thumbv8m.main-none-eabi -mcpu=cortex-m55", "which is of thumbv8.1m.main, not of thumbv8m.main"),
        (
            "thumbv6m-none-eabi -mcpu=cortex-a53",
            "'cortex-a53', which is not known of thumbv6m; known are generic, cortex-m0",
        ),
        ("thumbv8m.main-none-eabihf -mcpu=cortex-m23", "'cortex-m23', which is not known of thumbv8m.main"),
        ("cortex-m0 -mattr=+dsp", "has dsp, which no thumbv6m has; it is of thumbv7em, thumbv8m.main, thumbv8.1m.main"),
        ("cortex-m4 -mattr=+mve", "has mve, which no thumbv7em has; it is of thumbv8.1m.main"),
        ("aarch64 -mcpu=rpi2", 'has the CPU rpi2, which is of arm, not of aarch64; write "rpi2"'),
        ("jetson", "is not known; did you mean jetson-"),
        ("Cortex-M4", "is not known; did you mean cortex-m4 or"),
    ],
)
def test_processors_of_other_architectures_are_refused(text: str, error: str):
    """LLVM would end the process, or make instructions that the processor does not have."""
    with pytest.raises((InvalidArgument, Unsupported), match=re.escape(error)):
        resolve(text)


def test_a_processor_may_have_the_name_of_a_board():
    assert resolve("aarch64 -mcpu=rpi4") == resolve("rpi4")
    target = resolve("aarch64-linux-android -mcpu=pixel8")
    assert isinstance(target, CpuTarget) and (target.triple, target.cpu) == ("aarch64-linux-android", "cortex-x3")
    assert resolve("thumbv8m.main-none-eabi -mcpu=cortex-m33") == resolve("cortex-m33")


def test_vectors_need_the_registers_of_floats():
    what = "has mve, which needs what soft-float takes away; write -mattr=.soft-float,-mve"
    with pytest.raises(InvalidArgument, match=what):
        resolve("cortex-m55 -mattr=+soft-float")
    assert resolve("cortex-m55 -mattr=+soft-float,-mve").feature_string == "-mve,+dsp,+soft-float"


def dense() -> relay.IRModule:
    """A product of codes, which is built in a tenth of the time of the digits."""
    return relay.IRModule.parse("""func.func @main(%x: tensor<2x64xi8>) -> tensor<2x16xi32> {
  %k = relay.constant {label = "k"} dense<3> : tensor<16x64xi8>
  %s = relay.nn.dense %x, %k {out_dtype = i32} : (tensor<2x64xi8>, tensor<16x64xi8>) -> tensor<2x16xi32>
  func.return %s : tensor<2x16xi32>
}""")


def test_what_a_cortex_m_lacks_is_taken_from_its_cpu():
    """An M33 has instructions for signals or not; LLVM thinks that it has."""
    texts = [relay.build(dense(), target).get_source("asm") for target in ("cortex-m33", "cortex-m33 -mattr=-dsp")]
    assert ["smlad" in text for text in texts] == [True, False]
    assert resolve("cortex-m55 -mattr=-dsp").features == frozenset()
    for text in ("cortex-m33 -mattr=-fp-armv8d16sp", "cortex-m3 -mattr=-dsp", "armv7a-linux-androideabi -mattr=-neon"):
        with pytest.raises(
            InvalidArgument, match="is not known to have it; .soft-float leaves the unit for floats alone"
        ):
            resolve(text)


def test_an_option_of_gcc_for_floats_is_told_where_it_belongs():
    hint = "the triple says it, as in thumbv7em-none-eabihf .hard. and thumbv7em-none-eabi; there are -mcpu=NAME"
    with pytest.raises(InvalidArgument, match=f"has the option -mfloat-abi=hard; {hint}"):
        resolve("cortex-m4 -mfloat-abi=hard")


@pytest.mark.parametrize("text", TEXTS)
def test_a_module_keeps_its_target_in_its_text(text: str):
    module = ModuleOp([])
    attach(module, resolve(text))
    again = Parser(make_context(), str(module)).parse_module()
    assert target_of(again) == resolve(text)


def test_a_module_without_a_target_is_for_an_unknown_machine():
    assert target_of(ModuleOp([])).features == frozenset()
    assert gpu_of(ModuleOp([]), "a pass") == GpuTarget("nvptx64-nvidia-cuda", "sm_80", frozenset())


def test_what_is_for_cpus_refuses_a_gpu_and_the_other_way_round():
    module = ModuleOp([])
    attach(module, resolve("cuda"))
    with pytest.raises(InvalidArgument, match="schedule: is for CPUs, and the module's target is cuda"):
        cpu_of(module, "schedule")
    attach(module, host())
    with pytest.raises(InvalidArgument, match="schedule-gpu: is for GPUs, and the module's target is"):
        gpu_of(module, "schedule-gpu")


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("3 : i32", "relay.target: is 3 : i32"),
        ('{kind = "fpga"}', 'relay.target: has kind = "fpga"'),
        ('{kind = "cuda", cpu = "sm_1"}', 'has kind = "cuda", cpu = "sm_1"'),
        ('{kind = "cuda", cpu = "sm_80", triple = "x"}', "has triple = 'x'; of cuda it is nvptx64-nvidia-cuda"),
        ('{kind = "cuda", cpu = "sm_80", features = "+wgmma"}', "has the feature 'wgmma'; there are async-copy, dot"),
        ('{kind = "cuda", cpu = "sm_80", features = "+mma", matmul = "f8"}', "has matmul = 'f8'; there are tf32"),
        ('{kind = "cuda", cpu = "sm_75", matmul = "tf32"}', "has matmul = 'tf32'; there are tf32, f16, bf16, where"),
        ('{kind = "opencl", features = "+mma"}', "has the feature 'mma'; there are dot"),
        ('{kind = "opencl", cpu = "x"}', "has cpu = 'x'; opencl has none"),
        ('{triple = "garbage"}', "has triple = 'garbage', which is not known; known are"),
        ('{triple = "x86_64-pc-windows-msvc"}', "has triple = 'x86_64-pc-windows-msvc', which is of Windows or macOS"),
        ('{triple = "x86_64-unknown-linux-gnu", cpu = "i287"}', "relay.target: there is no processor 'i287' of x86_64"),
        ('{triple = "aarch64-unknown-linux-gnu", cpu = "generic", features = "+avx9"}', "there is no feature 'avx9'"),
        ('{features = "-avx2"}', "has the feature '-avx2'; write what is there: features = \"+a,+b\""),
        ('{features = "+avx2,,"}', "has the feature ''; write"),
        ('{matmul = "tf32"}', 'has matmul = "tf32"; CPUs do not round products'),
        ("{cpu = 7 : i32}", "relay.target: has cpu = 7 : i32; texts are kind, triple, cpu, features, matmul; costs is"),
        ("{}", 'relay.target: is empty; write {triple = "...", ...}, or leave it out'),
        ('{features = "avx2"}', "has the feature 'avx2'; write what is there: features = \"+a,+b\""),
        ('{features = "+avx2,+avx2"}', "has the feature '+avx2' twice; name each once"),
        ("{costs = 7 : i32}", "relay.target: has costs = 7 : i32"),
        ('{costs = {fork = "much"}}', 'relay.target: has the cost fork = "much"'),
        ("{costs = {forks = 7 : i64}}", "costs: there is no cost 'forks'"),
    ],
)
def test_an_attribute_that_names_no_target_is_refused(attribute: str, message: str):
    module = Parser(make_context(), f"builtin.module attributes {{relay.target = {attribute}}} {{}}").parse_module()
    with pytest.raises(InvalidArgument) as refused:
        target_of(module)
    assert message in str(refused.value)


WRONG: list[tuple[Callable[[Any], object], str]] = [
    (lambda given: host().with_costs(given), r"costs: \[1\] is no mapping; write costs={'fork': 3000}"),
    (target_of, r"target_of: \[1\] is no ModuleOp; give the module, of an IRModule its op: mod.op"),
    (lambda given: attach(given, host()), r"attach: \[1\] is no ModuleOp"),
    (lambda given: attach(ModuleOp([]), given), r"attach: \[1\] is no Processor; write attach\(module, resolve"),
    (lambda given: cpu_of(given, "a pass"), r"target_of: \[1\] is no ModuleOp"),
    (lambda given: gpu_of(given, "a pass"), r"target_of: \[1\] is no ModuleOp"),
    (registry.schedules_of, r"schedules_of: \[1\] is no FuncOp; give a function: module\['conv2d_0'\]"),
    (strategies.schedules_of, r"schedules_of: \[1\] is no FuncOp; give a function: module\['conv2d_0'\]"),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_what_is_no_module_function_or_mapping(call: Callable[[Any], object], message: str):
    with pytest.raises(InvalidArgument, match=message):
        call([1])


def test_the_old_module_says_where_its_names_are():
    old = importlib.import_module("relay.lowering.targets")
    with pytest.warns(
        DeprecationWarning, match=r"relay\.lowering\.targets\.host is deprecated: write relay\.target\.host"
    ):
        assert old.host is host
    with pytest.raises(AttributeError):
        _ = old.nothing


def test_the_option_features_says_what_to_write_and_is_obeyed():
    with pytest.warns(
        DeprecationWarning, match=r"select-target-ops\{features=\"...\"\} is deprecated: put attach-target"
    ):
        step = Pipeline.parse('select-target-ops{features="avx2"}')[0]
    assert isinstance(step, TargetPass)
    module = ModuleOp([])
    attach(module, resolve("riscv64"))
    assert step.target(module) == CpuTarget("riscv64-unknown-linux-gnu", "generic-rv64", frozenset({"avx2"}))
    with pytest.warns(DeprecationWarning, match="legalize"):
        assert str(Legalize(features="avx2")) == 'legalize{features="avx2"}'


TURNED = """func.func @main(%x: tensor<8x16xf32>) -> tensor<16x8xf32> {
  %0 = relay.transpose %x {axes = array<i64: 1, 0>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %1 = relay.negative %0 : (tensor<16x8xf32>) -> tensor<16x8xf32>
  func.return %1 : tensor<16x8xf32>
}"""


@pytest.mark.parametrize(("target", "nests"), [("aarch64", 2), ("cuda", 1), ("opencl", 1)])
def test_nests_are_those_that_the_target_is_good_at(target: str, nests: int):
    module = Parser(make_context(), TURNED).parse_module()
    attach(module, resolve(target))
    assert str(RelayToLinalg()(module)).count("linalg.generic") == nests
    with pytest.warns(DeprecationWarning, match=r"relay-to-linalg\{transposes_apart=...\} is deprecated: the module's"):
        step = RelayToLinalg(transposes_apart=nests == 1)
    assert str(step(module)).count("linalg.generic") == 3 - nests


def test_passes_of_a_build_read_the_target_of_the_build():
    mod = from_tflite(DIGITS)
    assert "relay.target" not in mod.op.attributes
    for pipeline in (None, "legalize,fuse-ops", "attach-target,legalize"):
        assert target_of(relay.optimize(mod, "riscv64", pipeline=pipeline).op) == resolve("riscv64")
    other = relay.optimize(mod, "riscv64", pipeline='attach-target{target="aarch64"},legalize')
    assert target_of(other.op) == resolve("aarch64")


def test_a_build_refuses_what_is_lowered_for_another_machine():
    mod = dense()
    wanted = "attach-target: the module is for 'aarch64.*', and the build is for 'riscv64.*'; give relay.build"
    with pytest.raises(InvalidArgument, match=wanted):
        relay.build(mod, "riscv64", pipeline='attach-target{target="aarch64"},legalize')
    with PassContext(config={"attach-target.target": "aarch64"}):
        assert target_of(relay.optimize(mod, "riscv64").op) == resolve("aarch64")
        for pipeline in (None, "legalize", "attach-target,legalize"):
            with pytest.raises(InvalidArgument, match=wanted):
                relay.build(mod, "riscv64", pipeline=pipeline)
    with PassContext(config={"attach-target.target": "riscv64 -mattr=-c -costs=fork=9"}):
        relay.build(mod, "riscv64")  # fewer features and other costs are a choice


def test_the_pipeline_as_text_makes_the_same_module_anywhere():
    target = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", frozenset({"sse2", "avx2", "fma"}))
    text = str(relay.default_pipeline(target))
    assert text.startswith('attach-target{target="x86_64-unknown-linux-gnu -mattr=+avx2,+fma"},compile-external,')
    SPELLED.clear()
    mod = from_tflite(DIGITS)
    assert str(Pipeline.parse(text)(mod)) == str(relay.optimize(mod, target, pipeline=relay.default_pipeline(target)))


@pytest.mark.parametrize(
    ("text", "saturates"),
    [
        ("x86_64-unknown-linux-gnu", True),
        ("x86_64-unknown-linux-gnu -mcpu=haswell", True),
        ("x86_64-unknown-linux-gnu -mcpu=cascadelake", False),
        ("aarch64-unknown-linux-gnu", False),
    ],
)
def test_libraries_saturate_without_vnni(text: str, saturates: bool) -> None:
    assert resolve(text).saturates_in_libraries == saturates


@pytest.mark.parametrize("has", [True, False])
def test_tile_registers_are_there_if_the_system_grants_them(has: bool, monkeypatch: pytest.MonkeyPatch):
    there = {"avx2": True, "amx-tile": True, "amx-int8": True, "amx-bf16": True, "sse4a": False}
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: there)
    monkeypatch.setattr(llvm_features, "granted", lambda: has)
    _, _, features = llvm_features.host_cpu.__wrapped__()
    assert features == ({"avx2", "amx-tile", "amx-int8", "amx-bf16"} if has else {"avx2"})


@pytest.mark.skipif("amx_tile" in flags(), reason="this processor has tile registers")
def test_without_tile_registers_none_are_granted():
    assert not granted()
