"""Compiler `c`: what it refuses and why, the edges of its functions, its artifacts, threads."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import relay
from relay import IRModule
from relay.byoc import Artifact, BuildInfo, Refusal, find
from relay.byoc.c import export_c
from relay.byoc.c.artifact import Header, read, write
from relay.byoc.c.compiler import CCompiler
from relay.byoc.c.emit import emit
from relay.byoc.c.loader import load
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.interpreters import run
from relay.lowering.c.types import float_literal, integer_literal
from relay.runtime.external import Native
from relay.runtime.memory import address
from relay.signature import TensorInfo
from relay.signature import write as describe

ADD = """
func.func @main(%x: tensor<4xTYPE>, %y: tensor<4xTYPE>) -> tensor<4xTYPE> {
  %r = relay.add %x, %y : (tensor<4xTYPE>, tensor<4xTYPE>) -> tensor<4xTYPE>
  func.return %r : tensor<4xTYPE>
}
"""

EDGES = """
func.func @main(%x: tensor<2x3xi8>, %unused: tensor<5xi32>)
    -> (tensor<2x3xi8>, tensor<3xi32>, tensor<6xi8>, tensor<6xi8>, tensor<3x2xi8>, tensor<2x3xi8>) {
  %c = relay.constant dense<[7, 8, 9]> : tensor<3xi32>
  %n = relay.negative %x : (tensor<2x3xi8>) -> tensor<2x3xi8>
  %dead = relay.abs %x : (tensor<2x3xi8>) -> tensor<2x3xi8>
  %f = relay.reshape %n {newshape = array<i64: 6>} : (tensor<2x3xi8>) -> tensor<6xi8>
  %g = relay.reshape %x {newshape = array<i64: 3, 2>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  func.return %x, %c, %f, %f, %g, %n
    : tensor<2x3xi8>, tensor<3xi32>, tensor<6xi8>, tensor<6xi8>, tensor<3x2xi8>, tensor<2x3xi8>
}
"""


def made(compiler: CCompiler, mod: IRModule) -> Artifact:
    """What it makes of `@main`."""
    found = compiler.compile(mod["main"], BuildInfo())
    assert isinstance(found, Artifact)
    return found


def compiled(mod: IRModule, compiler: CCompiler | None = None) -> tuple[Native, list[tuple[tuple[int, ...], str]]]:
    """`@main`, compiled and loaded, and the forms of its results. Skipped where there is no C compiler."""
    compiler = compiler or CCompiler(flags="-O1")
    if compiler.missing() is not None:
        pytest.skip("no C compiler is installed")
    artifact = made(compiler, mod)
    outputs = [(tensor.shape, str(tensor.type.dtype)) for tensor in emit(mod["main"]).outputs]
    return load(artifact.data, "main", artifact.params, [], []), outputs


def call(native: Native, inputs: list[Array], outputs: list[tuple[tuple[int, ...], str]]) -> list[Array]:
    """The function's results."""
    results = [np.empty(*form) for form in outputs]
    tensors = [np.ascontiguousarray(array) for array in inputs]
    table = (ctypes.c_void_p * (len(tensors) + len(results)))(*map(address, [*tensors, *results]))
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(native.address)
    assert function(native.context, ctypes.addressof(table)) == 0
    return results


def refused(text: str) -> str:
    """Why `c` does not take the first op of a module."""
    answer = CCompiler().supports(next(iter(IRModule.parse(text)["main"].body.block.ops)))
    assert not answer
    return getattr(answer, "reason", "")


@pytest.mark.parametrize(
    "text, reason",
    [
        (ADD.replace("TYPE", "f16"), "elements of f16 are not supported by c"),
        (ADD.replace("4x", "?x").replace("TYPE", "i8"), "an unknown dimension is not supported by c"),
        (ADD.replace("4x", "0x").replace("TYPE", "i8"), "a tensor of 0 elements is not supported by c"),
    ],
)
def test_refusals_say_why(text: str, reason: str):
    assert refused(text) == reason


def test_refusals_reach_the_report():
    mod = relay.build_external_compiler(IRModule.parse(ADD.replace("TYPE", "f16")), "c")
    assert not any("compiler" in function.attributes for function in mod.functions.values())
    assert "elements of f16 are not supported by c" in str(mod.partition_report())


def test_compile_names_what_it_cannot_write():
    found = CCompiler().compile(IRModule.parse(ADD.replace("TYPE", "f16"))["main"], BuildInfo())
    assert found == Refusal("argument 0 of main: elements of f16 are not supported by c")


def test_results_that_are_arguments_constants_and_each_other():
    mod = IRModule.parse(EDGES)
    native, outputs = compiled(mod)
    x = np.arange(-128, -122, dtype=np.int8).reshape(2, 3)
    unused = np.zeros(5, np.int32)
    for got, want in zip(call(native, [x, unused], outputs), run(mod, [x, unused]), strict=True):
        assert np.array_equal(got, want)


def test_exported_edges(tmp_path: Path):
    from tests.numeric.c_sources import SANITIZED, Exported

    mod = IRModule.parse(EDGES)
    program = Exported(mod, tmp_path)
    program.compile("cc", SANITIZED)
    x = np.arange(-128, -122, dtype=np.int8).reshape(2, 3)
    for got, want in zip(program.run([x, np.zeros(5, np.int32)]), run(mod, [x, np.zeros(5, np.int32)]), strict=True):
        assert np.array_equal(got, want)


def test_constants_that_are_no_numbers(tmp_path: Path):
    """math.h is included for them, too."""
    from tests.numeric.c_sources import SANITIZED, Exported

    text = (
        ADD.replace("TYPE", "f32")
        .replace("%y: tensor<4xf32>", "%z: tensor<4xf32>")
        .replace("  %r", "  %y = relay.constant dense<[0x7FC00000, 0x7F800000, 0xFF800000, 1.0]> : tensor<4xf32>\n  %r")
    )
    mod, x = IRModule.parse(text), np.arange(4, dtype=np.float32)
    program = Exported(mod, tmp_path)
    program.compile("cc", SANITIZED)
    assert np.array_equal(program.run([x, x])[0], run(mod, [x, x])[0], equal_nan=True)


def test_states_are_in_the_header(tmp_path: Path):
    mod = IRModule.parse(ADD.replace("TYPE", "i8"))
    infos = [
        TensorInfo("x", (4,), np.dtype("int8")),
        TensorInfo("s", (4,), np.dtype("int8"), "state", initial=np.full(4, -3)),
    ]
    describe(mod["main"], infos, [TensorInfo("s", (4,), np.dtype("int8"), "state")])
    header, code, *_ = export_c(mod, tmp_path)
    assert "extern const int8_t model_initial_1[MODEL_INPUT_1_COUNT];" in header.read_text()
    assert "const int8_t model_initial_1[] = {\n    -3, -3, -3, -3,\n};" in code.read_text()


def test_many_threads_share_a_function():
    rng = np.random.default_rng(3)
    text = (
        ADD.replace("4x", "20000x")
        .replace("TYPE", "i32")
        .replace(
            "func.return %r",
            "%n = relay.negative %r : (tensor<20000xi32>) -> tensor<20000xi32>\n"
            "%s = relay.multiply %n, %x : (tensor<20000xi32>, tensor<20000xi32>) -> tensor<20000xi32>\nfunc.return %s",
        )
    )
    mod = IRModule.parse(text)
    native, outputs = compiled(mod)
    inputs = [[rng.integers(-9999, 9999, 20000).astype(np.int32) for _ in range(2)] for _ in range(8)]

    def repeat(given: list[Array]) -> list[Array]:
        return [call(native, given, outputs)[0] for _ in range(30)]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(repeat, inputs))
    for given, every in zip(inputs, results, strict=True):
        want = -(given[0] + given[1]) * given[0]
        assert all(np.array_equal(result, want) for result in every)


def test_weights_lie_outside_unless_embedded():
    weights = np.arange(2000, dtype=np.int32)
    text = """
func.func @main(%x: tensor<2000xi32>) -> tensor<2000xi32> {
  %c = relay.constant {label = "a/b */ c"} dense<NUMBERS> : tensor<2000xi32>
  %r = relay.add %x, %c : (tensor<2000xi32>, tensor<2000xi32>) -> tensor<2000xi32>
  func.return %r : tensor<2000xi32>
}""".replace("NUMBERS", str(weights.tolist()))
    mod = IRModule.parse(text)
    for embed in (False, True):
        compiler = CCompiler(flags="-O1", embed=embed)
        native, outputs = compiled(mod, compiler)
        artifact = made(compiler, mod)
        assert [array.tolist() for array in artifact.params.values()] == ([] if embed else [weights.tolist()])
        assert np.array_equal(call(native, [weights], outputs)[0], 2 * weights)
        assert ("static const int16_t" in artifact.sources["c"]) == embed


def test_the_same_text_gives_the_same_artifact():
    if CCompiler().missing() is not None:
        pytest.skip("no C compiler is installed")
    mod = IRModule.parse(ADD.replace("TYPE", "i8"))
    assert made(CCompiler(), mod).data == made(CCompiler(), mod).data


def test_a_compiler_that_is_not_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_CC", "no-such-cc -m64")
    with pytest.raises(Unsupported, match="the C compiler no-such-cc -m64 is not installed; set RELAY_CC"):
        find("c")
    monkeypatch.delenv("RELAY_CC")
    assert "no-such" in (CCompiler(cc="no-such").missing() or "")


def test_a_compiler_that_refuses():
    if CCompiler().missing() is not None:
        pytest.skip("no C compiler is installed")
    with pytest.raises(Unsupported, match=r"compiler c: .* -fno-such-flag .*no-such-flag.*; see RELAY_CC"):
        CCompiler(flags="-fno-such-flag").compile(IRModule.parse(ADD.replace("TYPE", "i8"))["main"], BuildInfo())


def test_code_for_this_cpu_names_its_features():
    if shutil.which("cc") is None:
        pytest.skip("no C compiler is installed")
    mod = IRModule.parse(ADD.replace("TYPE", "i8"))
    artifact = made(CCompiler(native=True), mod)
    header, code = read(artifact.data, "f")
    assert header.features
    other = Header("main", 1, [], [*header.features, "no-such-feature"])
    with pytest.raises(InvalidArgument, match="needs CPU features that are not here: no-such-feature"):
        load(write(other, code), "main", {}, [], [])


PDP11 = b"\x7fELF" + bytes(14) + b"\x41\0"


@pytest.mark.parametrize(
    "artifact, error",
    [
        (b"something", "is no artifact of compiler c"),
        (b"relay-c 2\n{}\n", "is damaged"),
        (write(Header("f", 1, [], []), PDP11), "is code for ELF machine 65; this process runs on "),
    ],
)
def test_artifacts_that_cannot_be_loaded(artifact: bytes, error: str):
    with pytest.raises(relay.RelayError, match=error):
        load(artifact, "f", {}, [], [])


def test_code_that_cannot_be_loaded():
    with open("/proc/self/exe", "rb") as process:
        start = process.read(20)
    with pytest.raises(Malformed, match="the code cannot be loaded"):
        load(write(Header("f", 1, [], []), start), "f", {}, [], [])


CROSS = """#!/bin/sh
# `cc`, as a C compiler for AArch64: the shared object says that it is for that machine.
cc "$@" && printf '\\267' | dd of=function.so bs=1 seek=18 conv=notrunc 2>/dev/null
"""


def test_code_is_for_the_machine_of_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Both halves of a saved executable are for one machine, or there is none."""
    if shutil.which("cc") is None or platform.machine() == "aarch64":
        pytest.skip("needs a C compiler, for another machine than AArch64")
    monkeypatch.delenv("RELAY_CC", raising=False)
    mod = IRModule.parse(ADD.replace("TYPE", "i8"))
    which = shutil.which

    def without_cross(name: str) -> str | None:
        return None if name.startswith("aarch64-") else which(name)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "which", without_cross)
        with pytest.raises(Unsupported, match="no C compiler for aarch64-unknown-linux-gnu is installed"):
            relay.build(mod, target="aarch64", external="c")
    wrong = "cc makes code for x86_64, and the build is for aarch64-unknown-linux-gnu; give the option cc"
    with pytest.raises(Unsupported, match=wrong):
        relay.build(mod, target="aarch64", external={"c": {"cc": "cc"}})
    cross = tmp_path / "aarch64-linux-gnu-gcc"
    cross.write_text(CROSS)
    cross.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    relay.build(mod, target="aarch64", external="c").save(tmp_path / "saved")
    saved = (tmp_path / "saved").read_bytes()
    machines = [saved[m.start() + 18 : m.start() + 20] for m in re.finditer(b"\x7fELF", saved)]
    assert machines == [b"\xb7\0"] * 2


@pytest.mark.parametrize("value", [0, -1, (1 << 31) - 1, -(1 << 31), 1 << 31, -(1 << 63), (1 << 64) - 1, -(1 << 40)])
def test_integer_literals(value: int):
    names = {"INT32_MIN": -(1 << 31), "INT64_MIN": -(1 << 63)}
    text = integer_literal(value)
    assert (
        names.get(text) == value
        or int(text.removesuffix("u").partition("(")[2].rstrip(")") or text.rstrip("u")) == value
    )


def test_float_literals_read_back():
    rng = np.random.default_rng(2)
    for bits in rng.integers(0, 0x7F800000, 1000):
        value = np.uint32(bits).view(np.float32)
        assert np.float32(float_literal(float(value), False).rstrip("f")) == value
    assert [float_literal(v, True) for v in (np.inf, -np.inf, 0.1)] == ["INFINITY", "-INFINITY", "0.1"]
    assert float_literal(3.0, False) == "3.0f"
