"""Functions that GPUs lack, as arithmetic, against numpy in double precision: errors in units of the last place."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.dialects.gpu import ModuleOp
from relay.lowering.gpu.convert_gpu_to_nvvm import ConvertGpuToNvvm
from relay.lowering.gpu.emulator import Emulator
from relay.lowering.gpu.emulator.machine import aligned
from relay.lowering.gpu.kernel_text import NVPTX, kernels_text
from relay.lowering.math_expand_ops import MathExpandOps
from relay.module import IRModule
from relay.passes import Sequential
from relay.transforms.attach_target import AttachTarget

SIZE = 4096
ONE = """
"gpu.module"() <{{sym_name = "kernels"}}> ({{
  "gpu.func"() <{{function_type = (memref<4096x{t}>, memref<4096x{t}>) -> (), known_block_size = array<i32: 256, 1, 1>}}> ({{
  ^bb0(%x: memref<4096x{t}>, %y: memref<4096x{t}>):
    %thread = "gpu.thread_id"() <{{dimension = #gpu<dim x>}}> : () -> index
    %block = "gpu.block_id"() <{{dimension = #gpu<dim x>}}> : () -> index
    %size = arith.constant 256 : index
    %first = arith.muli %block, %size : index
    %i = arith.addi %first, %thread : index
    %v = memref.load %x[%i] : memref<4096x{t}>
    %w = memref.load %y[%i] : memref<4096x{t}>
    %r = math.{name} %v{more} : {t}
    memref.store %r, %y[%i] : memref<4096x{t}>
    gpu.return
  }}) {{sym_name = "k", gpu.kernel, workgroup_attributions = 0 : i64}} : () -> ()
}}) : () -> ()
"""  # noqa: E501
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3.4e38, 0.5, 2.0, 0.625, 88.7, -103.9]
)


def compute(name: str, x: Array, y: Array | None = None, target: str = "opencl") -> Array:
    """The function of all numbers, by the emulator."""
    type = {"float32": "f32", "float64": "f64", "float16": "f16"}[x.dtype.name]
    text = ONE.format(name=name, t=type, more="" if y is None else ", %w")
    mod = ConvertGpuToNvvm()(Sequential([AttachTarget(target), MathExpandOps()])(IRModule.parse(text)))
    (module,) = (op for op in mod.op.body.block.ops if isinstance(op, ModuleOp))
    given, taken = aligned(x.nbytes), aligned(x.nbytes)
    given.view(x.dtype)[:] = x
    taken.view(x.dtype)[:] = 0 if y is None else y
    Emulator(kernels_text(module, NVPTX)).launch("k", SIZE // 256, 256, [given, taken])
    return taken.view(x.dtype).copy()


def numbers(lowest: float, highest: float, seed: int = 0) -> Array:
    """Numbers of a range, and special ones."""
    found = np.random.default_rng(seed).uniform(lowest, highest, SIZE)
    found[: SPECIAL.size] = SPECIAL
    return found.astype(np.float32)


def units(found: Array, wanted: Array) -> float:
    """The largest difference, in units of the last place of float32; infinities and what is no number must be equal."""
    with np.errstate(over="ignore"):
        exact = wanted.astype(found.dtype)
    finite = np.isfinite(exact)
    assert np.array_equal(np.isnan(found), np.isnan(exact))
    assert np.array_equal(found[np.isinf(exact)], exact[np.isinf(exact)])
    return float(np.abs((found[finite] - wanted[finite]) / np.spacing(np.abs(exact[finite]))).max())


@pytest.mark.parametrize("target", ["x86_64", "cuda"])
@pytest.mark.parametrize(
    "name, of, lowest, highest, most",
    [
        ("exp", np.exp, -104, 89, 2.0),
        ("exp", np.exp, -1, 1, 2.0),
        ("expm1", np.expm1, -20, 89, 2.0),
        ("log", np.log, -0.1, 4, 2.0),
        ("log", np.log, 0, 3e38, 1.0),
        ("tanh", np.tanh, -10, 10, 2.0),
        ("tanh", np.tanh, -0.7, 0.7, 2.0),
        ("sin", np.sin, -100, 100, 0.51),
        ("cos", np.cos, -1e6, 1e6, 0.51),
        ("sin", np.sin, -3e38, 3e38, 0.51),
        ("erf", np.vectorize(math.erf, [float]), -5, 5, 2.0),
        ("asin", np.arcsin, -1, 1, 0.51),
        ("acos", np.arccos, -1, 1, 0.51),
        ("atan", np.arctan, -9, 9, 0.51),
        ("sinh", np.sinh, -9, 9, 0.51),
        ("atanh", np.arctanh, -1, 1, 0.51),
        ("log2", np.log2, 0, 9, 0.51),
    ],
)
def test_function(name: str, of: Callable[[Array], Array], lowest: float, highest: float, most: float, target: str):
    x = numbers(lowest, highest)
    with np.errstate(all="ignore"):
        wanted = of(x.astype(np.float64))
    assert units(compute(name, x, target=target), wanted) <= most


def test_power():
    x, y = numbers(-4, 4), numbers(-30, 30, 1)
    y[1000:2000] = np.round(y[1000:2000])
    y[: SPECIAL.size] = SPECIAL[::-1]
    x[2000 : 2000 + SPECIAL.size**2] = np.repeat(SPECIAL, SPECIAL.size)
    y[2000 : 2000 + SPECIAL.size**2] = np.tile(SPECIAL, SPECIAL.size)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), y.astype(np.float64))
        assert units(compute("powf", x, y), wanted) <= 0.51


def test_half_precision():
    with np.errstate(all="ignore"):
        x = numbers(-8, 8).astype(np.float16)
        wanted = np.tanh(x.astype(np.float64)).astype(np.float16)
    assert np.array_equal(compute("tanh", x), wanted, equal_nan=True)


def test_double_precision():
    x = numbers(-600, 600).astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = np.exp(x)
    found = compute("exp", x)
    assert np.array_equal(np.isnan(found), np.isnan(x))
    near = np.isfinite(wanted) & (wanted > 0)
    assert np.abs(found[near] / wanted[near] - 1).max() < 1e-14


@pytest.mark.parametrize("name, of", [("sin", np.sin), ("cos", np.cos)])
def test_angles_of_double_precision(name: str, of: Callable[[Array], Array]):
    x = numbers(-1e6, 1e6).astype(np.float64)
    x[2000:] /= 1e6
    with np.errstate(all="ignore"):
        wanted = of(x)
    found = compute(name, x)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    near = np.isfinite(x) & (np.abs(x) < 2.0**30)
    assert np.abs(found[near] - wanted[near]).max() < 1e-14
