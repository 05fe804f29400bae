"""Products by weights of few bits in blocks on NVIDIA's GPUs, against sums in float64: codes become floats in
registers, and matrix units multiply them where `-matmul` lets factors be rounded."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

import relay
from relay.compile.pipeline import lowering_passes
from relay.dialects import relay as ops
from relay.dialects.attributes import Array
from relay.errors import Unsupported
from relay.lowering.gpu.emulator import Emulator, run_model
from relay.lowering.gpu.formats import ACCUMULATED, FLOATS
from relay.lowering.scheduling.record import ATTRIBUTE
from relay.passes import Pipeline
from relay.runtime import Executable
from relay.runtime.opencl_driver import driver
from relay.target import resolve
from tests.numeric.compiled_modules import Net
from tests.numeric.test_weight_only import drawn, exact
from tests.ptx.interpreter import run as run_ptx

E4M3 = "float8_e4m3fn"
Size = tuple[int, int, int, int]
FEW: Sequence[Size] = ((1, 64, 4, 32), (3, 70, 3, 48), (1, 5, 1, 16), (2, 48, 70, 32))
MANY: Sequence[Size] = ((9, 33, 3, 16), (77, 40, 9, 32), (64, 128, 5, 48))
"""Rows, channels, blocks, and weights of a block."""


def network(sizes: Sequence[Size], bits: int, zero_points: bool) -> tuple[Net, list[tuple[Array, list[Array]]]]:
    """A product of each size, with what it is computed from."""
    net, given = Net(82), list[tuple[Array, list[Array]]]()
    for size in sizes:
        data, weights = drawn(net, size, bits, zero_points)
        sums = net.add(ops.WeightOnlyDenseOp, [net.argument(data), *map(net.constant, weights)], {})
        net.result(f"{size}", sums)
        given.append((data, weights))
    return net, given


def built(net: Net, target: str, schedule: str) -> Executable:
    """The network for a GPU, all of whose kernels have a schedule."""
    module = relay.optimize(net.module(), target)
    for op in module.op.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data != "main":
            op.attributes[ATTRIBUTE] = Parser(Context(), schedule).parse_attribute()
    return relay.build(module, target, pipeline=Pipeline(lowering_passes(resolve(target))))


@pytest.mark.parametrize(
    ("bits", "zero_points"),
    [(4, True), *(pytest.param(*case, marks=pytest.mark.ci) for case in ((4, False), (8, True), (2, False)))],
)
def test_few_rows(bits: int, zero_points: bool):
    """On the PTX interpreter: one launch each, and codes are loaded in vectors."""
    net, given = network(FEW, bits, zero_points)
    executable = relay.build(net.module(), "cuda")
    assert len(executable.graph["device"]["launches"]) == len(FEW)
    for found, (data, weights) in zip(run_ptx(executable, net.inputs)[0], given, strict=True):
        best = exact(data, *weights)
        assert np.abs(found - best).max() <= 1e-6 * np.abs(best).max()
    assert "ld.global.nc.v4.b32" in executable.get_source("ptx")


@pytest.mark.parametrize(
    ("channels", "rows"), [(1, 1), (4, 2), *(pytest.param(*case, marks=pytest.mark.ci) for case in ((1, 2), (4, 1)))]
)
def test_other_rows_and_channels(rows: int, channels: int):
    net, given = network(FEW[1:2], 4, True)
    text = f'{{strategy = "weight-blocks", rows = {rows} : i64, channels = {channels} : i64, team = 2 : i64}}'
    ((found,), _) = run_ptx(built(net, "cuda", text), net.inputs)
    best = exact(given[0][0], *given[0][1])
    assert np.abs(found - best).max() <= 1e-6 * np.abs(best).max()


def check_rounded(results: Sequence[Array], given: Sequence[tuple[Array, list[Array]]], name: str) -> None:
    """Whether results are within the format's bound, and were rounded."""
    format = FLOATS[name]
    for found, (data, (codes, scales, zeros)) in zip(results, given, strict=True):
        weights = ((codes.astype(np.float64) - zeros[..., None]) * scales[..., None]).reshape(len(codes), -1)
        magnitudes, depth = np.abs(data).astype(np.float64) @ np.abs(weights.T), data.shape[1]
        allowed = (format.bound(depth + 16) + 4 * ACCUMULATED) * magnitudes + format.tiny * 4 * depth
        off = np.abs(found - data.astype(np.float64) @ weights.T)
        assert np.max(off / allowed) <= 1
        assert np.max(off / magnitudes) > format.roundoff / 64, "nothing was rounded"


@pytest.mark.parametrize(
    ("name", "bits", "zero_points"),
    [
        ("f16", 4, True),
        *(pytest.param(*case, marks=pytest.mark.ci) for case in (("bf16", 8, False), ("tf32", 2, True))),
    ],
)
def test_many_rows_on_ptx(name: str, bits: int, zero_points: bool):
    net, given = network(MANY, bits, zero_points)
    executable = built(net, f"cuda -matmul={name}", '{strategy = "mma-blocks", splits = 1 : i64}')
    assert executable.get_source("ptx").count("mma.sync") > len(MANY)
    check_rounded(run_ptx(executable, net.inputs)[0], given, name)


@pytest.mark.parametrize("size", [MANY[1], pytest.param(MANY[2], marks=pytest.mark.ci)])
def test_parts_of_the_depth(size: Size):
    net, given = network([size], 4, True)
    executable = built(net, "cuda -matmul=f16", '{strategy = "mma-blocks", splits = 2 : i64}')
    assert len(executable.graph["device"]["launches"]) == 2 * len(given)
    emulator = Emulator(executable.get_source("ll"))
    check_rounded(run_model(executable.graph, emulator, executable.params, net.inputs), given, "f16")


def test_what_is_chosen():
    """Matrix units for many rows of a large product; not where a format cannot hold the weights."""

    def chosen(rows: int, scale: float) -> bool:
        net = Net(83)
        data, (codes, scales, zeros) = drawn(net, (rows, 1024, 32, 32), 4, False)
        weights = [net.constant(each) for each in (codes, scales * np.float32(scale), zeros)]
        net.result("", net.add(ops.WeightOnlyDenseOp, [net.argument(data), *weights], {}))
        return "mma.sync" in relay.build(net.module(), "cuda -matmul=f16").get_source("ptx")

    assert [chosen(256, 1), chosen(1, 1), chosen(256, 1e4)] == [True, False, False]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=pytest.mark.ci if (name == E4M3) == (target == "opencl") else ())
        for name in (E4M3, "float4_e2m1fn")
        for target in ("cuda", "opencl")
    ],
)
def test_codes_that_are_floats(name: str, target: str):
    net, dtype, size = Net(84), np.dtype(getattr(ml_dtypes, name)), (3, 70, 3, 48)
    data, (_, scales, _) = drawn(net, size, 4, False)
    every = np.arange(1 << (4 if "float4" in name else 8), dtype=np.uint8).view(dtype)
    codes = net.rng.choice(every[np.isfinite(every.astype(np.float32))], size[1:])
    weights = [codes, scales, np.zeros(scales.shape, np.uint8)]
    net.result("", net.add(ops.WeightOnlyDenseOp, [net.argument(data), *map(net.constant, weights)], {}))
    executable = relay.build(net.module(), target)
    if target == "opencl":
        try:
            driver(0)
        except Unsupported as error:
            pytest.skip(str(error))
    found = run_ptx(executable, net.inputs)[0][0] if target == "cuda" else np.asarray(executable.run(*net.inputs))
    best = exact(data, *weights)
    assert np.abs(found - best).max() <= 1e-6 * np.abs(best).max()
