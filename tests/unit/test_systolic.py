"""The simulated accelerator's instructions, one by one, and what it refuses."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from relay.byoc.systolic import isa
from relay.byoc.systolic.codegen import Program
from relay.byoc.systolic.fixed_point import reciprocal, rescale, rescale_once
from relay.byoc.systolic.loader import Device
from relay.byoc.systolic.simulator import Simulator
from relay.errors import Malformed
from relay.interpreters import arithmetic

RNG = np.random.default_rng(7)


def machine(*sizes: int) -> Simulator:
    """A simulator whose segments hold random bytes."""
    return Simulator([RNG.integers(-128, 128, size).astype(np.int8) for size in sizes])


@pytest.mark.parametrize("kind", isa.OPCODES.values(), ids=lambda kind: kind.__name__)
def test_every_instruction_survives_its_encoding(kind: type[isa.Instruction]) -> None:
    step = kind(**{field.name: number + 1 for number, field in enumerate(fields(kind))})
    code = step.encode()
    assert len(code) == isa.SIZE
    assert list(isa.decode(code)) == [step]
    assert str(step).startswith(kind.__name__.lower())
    assert isa.cycles(step) > 0


def test_transfers_move_pieces_and_clear_the_other_lanes() -> None:
    simulator = machine(0, 200)
    before = simulator.segments[1].copy()
    simulator.scratchpad[...] = 99
    fields = {"row": 5, "bytes": 3, "inner": 4, "inner_bytes": 3, "inner_rows": 2, "outer": 2, "outer_bytes": 50}
    where = isa.address(1, 10)
    simulator.step(isa.Load(address=where, outer_rows=20, **fields))
    for i in range(2):
        for j in range(4):
            row = simulator.scratchpad[5 + 20 * i + 2 * j]
            assert (row[:3] == before[10 + 50 * i + 3 * j :][:3]).all()
            assert (row[3:] == 0).all()
    assert (simulator.scratchpad[6] == 99).all()
    simulator.segments[1][...] = 0
    simulator.step(isa.Store(address=where, outer_rows=20, **fields))
    expected = np.zeros_like(before)
    for start in (10, 60):
        expected[start : start + 12] = before[start : start + 12]
    assert (simulator.segments[1] == expected).all()


def test_multiply_adds_products_to_the_bias() -> None:
    simulator = machine()
    simulator.scratchpad[...] = RNG.integers(-128, 128, simulator.scratchpad.shape)
    bias = simulator.scratchpad[40:44].reshape(-1).view(np.int32).copy()
    simulator.step(isa.Weights(row=100))
    simulator.step(isa.Bias(row=40, target=7, rows=6))
    simulator.step(isa.Multiply(row=200, target=7, inner=3, inner_rows=2, outer=2, outer_rows=10))
    rows = simulator.scratchpad[[200, 202, 204, 210, 212, 214]].astype(np.int64)
    product = rows @ simulator.scratchpad[100:116].astype(np.int64)
    assert (simulator.accumulator[7:13] == (product + bias).astype(np.int32)).all()


def test_arithmetic_is_that_of_the_reference() -> None:
    x = RNG.integers(-(1 << 31), 1 << 31, 5000)
    multiplier, shift = RNG.integers(1 << 30, 1 << 31, 5000), RNG.integers(-30, 3, 5000)
    wanted = arithmetic.multiply_by_quantized_multiplier(x, multiplier, shift)
    assert (rescale(x, multiplier, shift) == wanted).all()
    exact = [
        (abs(int(a)) * int(m) + (1 << (30 - int(s)))) // (1 << (31 - int(s))) * (1 if a >= 0 else -1)
        for a, m, s in zip(x, multiplier, shift, strict=True)
    ]
    assert rescale_once(x, multiplier, shift).tolist() == exact
    for value in (1, 2, 3, 255, 4096, 123456, (1 << 28) - 1, (1 << 31) - 1):
        mantissa, headroom = arithmetic.reciprocal(value)
        assert reciprocal(value) == (int(mantissa), int(headroom))


@pytest.mark.parametrize(
    "step",
    [
        isa.Load(address=isa.address(0, 60), row=0),
        isa.Load(address=isa.address(3, 0), row=0),
        isa.Load(address=isa.address(0, 0), row=0, bytes=17),
        isa.Load(address=isa.address(0, 0), row=0, inner=0),
        isa.Load(address=isa.address(0, 0), row=isa.SCRATCHPAD),
        isa.Store(address=isa.address(0, 0), row=0, inner=2, inner_bytes=-16),
        isa.Fill(row=isa.SCRATCHPAD - 1, rows=2, value=0),
        isa.Bias(row=0, target=isa.ACCUMULATOR, rows=1),
        isa.Multiply(row=0, target=0, inner=isa.ACCUMULATOR + 1, inner_rows=0, outer=1, outer_rows=0),
    ],
    ids=str,
)
def test_an_access_outside_a_memory_is_an_error(step: isa.Instruction) -> None:
    with pytest.raises(ValueError, match=r"outside|malformed"):
        machine(64).step(step)


def packed(*code: isa.Instruction) -> bytes:
    return Program(list(code), b"abc", 0).pack()


def test_damaged_programs_are_refused() -> None:
    data = packed(isa.Fill(row=0, rows=1, value=3))
    assert Device(data, "f", {}, [], []).code == [isa.Fill(row=0, rows=1, value=3)]
    for damaged in (b"", data[:-1], data + b"x", b"X" + data[1:], data[:40] + b"\xff\xff" + data[42:]):
        with pytest.raises(Malformed, match="function f: is .* program of systolic 2"):
            Device(damaged, "f", {}, [], [])


def test_a_program_that_leaves_its_memory_ends_in_an_error() -> None:
    device = Device(packed(isa.Load(address=isa.address(2, 8), row=0)), "f", {}, [], [])
    with pytest.raises(ValueError, match="outside a memory of 16"):
        device([np.zeros(16, np.int8)], [])
