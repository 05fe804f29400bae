"""`unsigned-codes` changes no number, and leaves no signed code where a product could read an unsigned one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import i8

import relay
from relay.dialects import relay as relay_dialect
from relay.dialects.attributes import Array
from relay.dialects.op import tensor
from relay.interpreters import run
from relay.module import IRModule
from relay.transforms.attach_target import AttachTarget
from relay.transforms.unsigned_codes import UnsignedCodes, multiplies

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
LEVEL_1 = "legalize,fold-constant,simplify"


def level_1() -> IRModule:
    return relay.optimize(relay.frontend.from_tflite(str(DIGITS / "digits_int8.tflite")), pipeline=LEVEL_1)


def images(count: int) -> list[Array]:
    return [image[None] for image in np.load(DIGITS / "digits_test.npz")["int8_images"][:count]]


def on(target: str, mod: IRModule) -> IRModule:
    """The module after the pass, for a target."""
    return UnsignedCodes()(AttachTarget(target)(mod))


def test_a_model_computes_the_same_integers():
    before = level_1()
    after = on("x86_64 -mattr=+avx512f,+avx512vnni", before)
    assert str(after) != str(before)
    for image in images(6):
        assert np.array_equal(run(before, [image])[0], run(after, [image])[0])


def test_only_the_input_and_a_mean_stay_signed():
    after = on("x86_64 -mattr=+avx512vnni", level_1())
    products = [op for op in after["main"].walk() if multiplies(op)]
    signed = [op for op in products if tensor(op.operands[0]).element_type == i8]
    assert len(products) == 6 and signed == [products[0], products[-1]]
    assert isinstance(signed[1].operands[0].owner, relay_dialect.ReshapeOp)


@pytest.mark.parametrize("target", ["x86_64", "x86_64 -mattr=+avx2", "x86_64 -mattr=+avx512f,+avx512bw", "cuda"])
def test_other_targets_keep_signed_codes(target: str):
    before = AttachTarget(target)(level_1())
    assert str(UnsignedCodes()(before)) == str(before)
