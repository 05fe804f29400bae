"""`WeightOnly`: weights of float products in few bits, and the list of them."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.interpreters import run
from relay.quantize import NarrowWeights, WeightOnly, narrow_weights
from relay.quantize.weight_only import in_steps


def test_weights_become_codes_near_them():
    rng = np.random.default_rng(0)
    blocks = rng.standard_normal((7, 3, 32)).astype(np.float32)
    blocks[0, 0] = 0
    for bits, off, decibels in ((2, 0.7, 9), (4, 0.13, 21), (8, 0.008, 45)):
        codes, scales = in_steps(blocks, bits)
        assert codes.dtype == np.uint8 and codes.max() < 1 << bits and scales.shape == (7, 3)
        found = (codes.astype(np.float64) - (1 << (bits - 1))) * scales[..., None]
        largest = np.abs(blocks).max(axis=-1, keepdims=True)
        assert (np.abs(found - blocks) <= off * largest).all()
        noise = np.square(found - blocks).sum() / np.square(blocks.astype(np.float64)).sum()
        assert not found[0, 0].any() and -10 * np.log10(noise) > decibels


def test_eight_bits_give_whole_codes_back():
    codes = np.random.default_rng(1).integers(-127, 128, (4, 2, 32))
    codes[..., 0] = -128
    found, scales = in_steps((codes * 0.5).astype(np.float32), 8)
    assert np.array_equal(found.astype(int) - 128, codes) and (scales == 0.5).all()


TEXT = """
func.func @main(%x: tensor<5x96xf32>) -> tensor<5x30xf32> {
  %a = relay.constant {label = "a"} dense_resource<a> : tensor<64x96xf32>
  %b = relay.constant {label = "b"} dense_resource<b> : tensor<64x128xf32>
  %c = relay.constant {label = "c"} dense_resource<c> : tensor<160x128xf32>
  %d = relay.constant {label = "d"} dense_resource<d> : tensor<30x160xf32>
  %0 = relay.nn.dense %x, %a {out_dtype = f32} : (tensor<5x96xf32>, tensor<64x96xf32>) -> tensor<5x64xf32>
  %1 = relay.nn.matmul %0, %b {out_dtype = f32} : (tensor<5x64xf32>, tensor<64x128xf32>) -> tensor<5x128xf32>
  %2 = relay.nn.matmul %1, %c {out_dtype = f32, transpose_b = true} : (tensor<5x128xf32>, tensor<160x128xf32>) -> tensor<5x160xf32>
  %3 = relay.nn.dense %2, %d {out_dtype = f32} : (tensor<5x160xf32>, tensor<30x160xf32>) -> tensor<5x30xf32>
  func.return %3 : tensor<5x30xf32>
}
"""  # noqa: E501


def floats() -> tuple[relay.IRModule, Array]:
    rng = np.random.default_rng(2)
    sizes = {"a": (64, 96), "b": (64, 128), "c": (160, 128), "d": (30, 160)}
    weights = {name: rng.standard_normal(size).astype(np.float32) / 10 for name, size in sizes.items()}
    return relay.IRModule.parse(TEXT, weights), rng.standard_normal((5, 96)).astype(np.float32)


@pytest.mark.parametrize(("bits", "off", "least"), [(4, 0.2, 15.0), pytest.param(8, 0.02, 40.0, marks=pytest.mark.ci)])
def test_products_of_a_module(bits: int, off: float, least: float):
    module, x = floats()
    narrow = WeightOnly(bits=bits)(module)
    rows = narrow_weights(narrow)
    assert [(row.units, row.inputs, row.bits) for row in rows] == [
        (64, 96, bits), (128, 64, bits), (160, 128, bits), (30, 160, bits)
    ]  # fmt: skip
    assert all(least < row.snr < 60 for row in rows)
    assert rows[0].bytes == 64 * 96 * bits // 8 + 64 * 3 * 4
    (wanted,), (found,) = run(module, [x]), run(narrow, [x])
    assert np.abs(np.asarray(found) - wanted).max() <= off * np.abs(wanted).max()
    compiled = np.asarray(relay.build(narrow).run(x))
    assert np.abs(compiled - found).max() <= 1e-5 * np.abs(found).max()


@pytest.mark.parametrize(
    ("dtype", "bits", "off", "least"),
    [
        ("f8E4M3FN", 8, 0.1, 28.0),
        pytest.param("f8E5M2", 8, 0.2, 22.0, marks=pytest.mark.ci),
        pytest.param("f4E2M1FN", 4, 0.3, 15.0, marks=pytest.mark.ci),
    ],
)
def test_codes_are_floats_of_few_bits(dtype: str, bits: int, off: float, least: float):
    module, x = floats()
    narrow = WeightOnly(dtype=dtype)(module)
    rows = narrow_weights(narrow)
    assert all((row.bits, row.dtype) == (bits, dtype) and least < row.snr < 40 for row in rows)
    assert f"{dtype} in blocks of 32" in str(rows[0]) and rows[0].bytes == 64 * 96 * bits // 8 + 64 * 3 * 4
    (wanted,), (found,) = run(module, [x]), run(narrow, [x])
    assert np.abs(np.asarray(found) - wanted).max() <= off * np.abs(wanted).max()
    compiled = np.asarray(relay.build(narrow).run(x))
    assert np.abs(compiled - found).max() <= 1e-5 * np.abs(found).max()


def test_what_stays_floats():
    module, _ = floats()
    rows = narrow_weights(WeightOnly(block=96, least=6000)(module))
    assert [row.block for row in rows] == [96, 0, 0, 0]
    assert rows[1] == NarrowWeights(rows[1].name, 128, 64, 32, 0, 128 * 64 * 4, inf)
    assert "floats" in str(rows[1]) and "4 bits in blocks of 96" in str(rows[0])
    rows = narrow_weights(WeightOnly(least=1 << 20)(module))
    assert not any(row.block for row in rows)


def test_options_that_make_no_sense():
    module, _ = floats()
    with pytest.raises(InvalidArgument, match="bits may be 2, 4, 8, not 3"):
        WeightOnly(bits=3)(module)
    with pytest.raises(InvalidArgument, match="a block has 1 input or more, not 0"):
        WeightOnly(block=0)(module)
