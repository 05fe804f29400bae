"""Runs functions of a level-2 module with MLIR's own passes and `mlir-runner`: an independent oracle.

The functions' inputs are constants of a generated `@entry`, which prints the results as integers (floats as their
bits, so that nothing is rounded). One process runs any number of calls.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from relay.dialects.attributes import Array, dtype_of, element_type
from relay.lowering.linalg.emitter import signless
from relay.module import IRModule

MLIR_OPT, MLIR_RUNNER = (shutil.which(f"{tool}-22") for tool in ("mlir-opt", "mlir-runner"))
LIBRARIES = [
    library
    for name in ("libmlir_runner_utils.so", "libmlir_c_runner_utils.so")
    for library in sorted(Path("/usr/lib/llvm-22/lib").glob(name + "*"))[:1]
]

needs_mlir = pytest.mark.skipif(
    MLIR_OPT is None or MLIR_RUNNER is None or len(LIBRARIES) < 2,
    reason="mlir-opt-22, mlir-runner-22 or their libraries are not installed (package mlir-22-tools)",
)

PIPELINE = """builtin.module(
  tosa-to-arith{include-apply-rescale=true},
  one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map},
  convert-linalg-to-loops, expand-strided-metadata, lower-affine, convert-scf-to-cf, convert-math-to-llvm,
  convert-math-to-libm, arith-expand, convert-arith-to-llvm, convert-index-to-llvm, finalize-memref-to-llvm,
  convert-cf-to-llvm, convert-func-to-llvm, reconcile-unrealized-casts)"""

DECLARATIONS = """
  func.func private @printMemrefI32(tensor<*xi32>) attributes {llvm.emit_c_interface}
  func.func private @printMemrefI64(tensor<*xi64>) attributes {llvm.emit_c_interface}
"""


@dataclass(frozen=True)
class Call:
    """A function of the module, its inputs, and the level-1 dtypes of its results."""

    function: str
    inputs: Sequence[Array]
    results: Sequence[np.dtype]


def tool(command: Sequence[str | Path], text: str) -> str:
    """The output of a tool for this input; its error output fails the test."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def verify(mod: IRModule, *, weights: bool = True) -> None:
    """Have `mlir-opt` parse and verify the module: only registered dialects. Large weights may be left as names."""
    tool([str(MLIR_OPT), "-o", "/dev/null"], mod.to_text(weights=weights))


def run(mod: IRModule, calls: Sequence[Call]) -> list[list[Array]]:
    """The results of each call."""
    body = mod.to_text(weights=True).rstrip()
    assert body.endswith("}")
    wrappers = "\n".join(call_text(mod, call, number) for number, call in enumerate(calls))
    entry = "\n".join(f"    func.call @call_{number}() : () -> ()" for number in range(len(calls)))
    text = f"{body[:-1]}{DECLARATIONS}{wrappers}\n  func.func @entry() {{\n{entry}\n    return\n  }}\n}}\n"
    lowered = tool([str(MLIR_OPT), f"--pass-pipeline={PIPELINE}"], text)
    options = ["-O0", "-e", "entry", "-entry-point-result=void", *(f"--shared-libs={library}" for library in LIBRARIES)]
    printed = tool([str(MLIR_RUNNER), *options], lowered).split("Unranked Memref")[1:]
    assert len(printed) == sum(len(call.results) for call in calls)
    tensors = iter(printed)
    return [[read(next(tensors), dtype) for dtype in call.results] for call in calls]


def call_text(mod: IRModule, call: Call, number: int) -> str:
    """A function that makes the call and prints its results."""
    type = mod[call.function].function_type
    lines: list[str] = []
    for i, array in enumerate(call.inputs):
        lines.append(f"%c{number}_{i} = arith.constant {literal(array)} : {type.inputs.data[i]}")
    names = [f"%r{number}_{i}" for i in range(len(call.results))]
    operands = ", ".join(f"%c{number}_{i}" for i in range(len(call.inputs)))
    lines.append(f"{', '.join(names)} = func.call @{call.function}({operands}) : {type}")
    for i, dtype in enumerate(call.results):
        lines += printing(names[i], f"{number}_{i}", str(type.outputs.data[i]), dtype)
    inside = "\n".join("    " + line for line in lines)
    return f"  func.func private @call_{number}() {{\n{inside}\n    return\n  }}"


def literal(array: Array) -> str:
    """A `dense` literal."""
    if array.size == 0:
        return "dense<>"
    if array.dtype == np.bool_:
        return f"dense<{str(array.tolist()).lower()}>"
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}">'


def printing(value: str, suffix: str, type: str, dtype: np.dtype) -> list[str]:
    """Print a tensor as `i32`, or as `i64` where its elements are that wide."""
    element = str(signless(element_type(dtype)))
    shape = type.removeprefix("tensor<").removesuffix(">").removesuffix(element)
    wide = "i64" if dtype.itemsize == 8 else "i32"
    rank = shape.count("x")
    dims = ", ".join(f"d{i}" for i in range(rank))
    identity = f"affine_map<({dims}) -> ({dims})>"
    kinds = ", ".join(['"parallel"'] * rank)
    steps = [f"%x{suffix} = arith.bitcast %a{suffix} : {element} to i{8 * dtype.itemsize}"] if dtype.kind == "f" else []
    source, bits = (f"%x{suffix}", f"i{8 * dtype.itemsize}") if steps else (f"%a{suffix}", element)
    if bits != wide:
        extend = "extui" if dtype == np.bool_ else "extsi"
        steps.append(f"%y{suffix} = arith.{extend} {source} : {bits} to {wide}")
        source = f"%y{suffix}"
    return [
        f"%e{suffix} = tensor.empty() : tensor<{shape}{wide}>",
        f"%w{suffix} = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{kinds}]}}"
        f" ins({value} : {type}) outs(%e{suffix} : tensor<{shape}{wide}>) {{",
        f"^bb0(%a{suffix}: {element}, %b{suffix}: {wide}):",
        *(f"  {step}" for step in steps),
        f"  linalg.yield {source} : {wide}",
        f"}} -> tensor<{shape}{wide}>",
        f"%u{suffix} = tensor.cast %w{suffix} : tensor<{shape}{wide}> to tensor<*x{wide}>",
        f"call @printMemref{wide.upper()}(%u{suffix}) : (tensor<*x{wide}>) -> ()",
    ]


def read(text: str, dtype: np.dtype) -> Array:
    """A printed tensor, back in its dtype."""
    head, data = text.split("data =", 1)
    sizes = re.search(r"sizes = \[([^]]*)\]", head)
    assert sizes is not None
    shape = [int(n) for n in re.findall(r"\d+", sizes[1])]
    numbers = np.array([int(n) for n in re.findall(r"-?\d+", data)], np.int64)
    if dtype.kind == "f":
        return numbers.astype(f"i{dtype.itemsize}").view(dtype).reshape(shape)
    return numbers.astype(dtype).reshape(shape)


def results_of(mod: IRModule, function: str) -> list[np.dtype]:
    """The dtypes of a level-1 function's results."""
    from xdsl.dialects.builtin import TensorType
    from xdsl.utils.hints import isa

    types = mod[function].function_type.outputs.data
    return [dtype_of(type.element_type) for type in types if isa(type, TensorType)]
