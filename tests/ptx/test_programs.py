"""PTX as LLVM prints it, run by an interpreter that knows only the PTX ISA, against the integers of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numeric.test_models_compiled import close
from tests.ptx.interpreter import run
from tests.ptx.programs import Program, convolution_of_warps, digits, group_product, model, product_of_slices


def check(program: Program) -> None:
    for found, wanted in zip(run(program.executable, program.inputs)[0], program.wanted, strict=True):
        assert found.dtype == wanted.dtype
        assert np.array_equal(found, wanted) if wanted.dtype.kind in "iu" else close(found, wanted)


def test_digits():
    check(digits())


def test_a_convolution_of_warps():
    program = convolution_of_warps()
    assert "mma.sync" in program.executable.get_source("ptx")
    check(program)


@pytest.mark.ci
def test_kws():
    check(model("kws_int8"))


def test_a_product_of_groups_whose_tiles_the_device_copies():
    program = group_product("tma")
    text = program.executable.get_source("ptx")
    assert "wgmma.mma_async" in text and "cp.async.bulk.tensor" in text
    check(program)


def test_a_product_of_groups_in_turns():
    program = group_product("turns")
    assert "setmaxnreg" in program.executable.get_source("ptx")
    check(program)


@pytest.mark.ci
def test_a_product_whose_depth_warps_share():
    program = product_of_slices()
    (row,) = program.executable.graph["device"]["launches"]
    assert row["block"][0] == 512
    check(program)


@pytest.mark.parametrize("name", ["windows", pytest.param("windows-of-few-channels", marks=pytest.mark.slow)])
def test_a_convolution_whose_windows_the_device_copies(name: str):
    program = group_product(name)
    assert ".im2col." in program.executable.get_source("ptx")
    check(program)


def test_a_convolution_of_groups_that_copy():
    program = group_product("cp.async")
    assert "wgmma.mma_async" in program.executable.get_source("ptx")
    check(program)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tma-unsigned", "three-groups"])
def test_a_product_of_other_tiles(name: str):
    check(group_product(name))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "ad01_fp32",
        "ad01_int8",
        "keras_lstm_mnist_ptq",
        "kws_fp32",
        "mobilenet_v1_0.25_128_quant",
        "resnet8_fp32",
        "resnet8_int8",
        "vww_96_float",
        "vww_96_int8",
    ],
)
def test_a_model(name: str):
    check(model(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kws_int8", "resnet8_int8", "vww_96_int8"])
def test_a_model_for_one_chip(name: str):
    check(model(name, "cuda -arch=sm_90a"))
