"""Lookups in tables of 256 codes, by the shuffles of each target, held against the interpreter."""

from __future__ import annotations

import platform
import re
from itertools import product

import numpy as np
import pytest

from relay.compile.pipeline import default_pipeline
from relay.dialects import relay
from relay.target import host
from tests.marks import ci
from tests.numeric.compiled_modules import Net


def lookups() -> Net:
    """Tables of both kinds of codes; sizes with and without whole vectors; between other operations."""
    net = Net(50)
    for codes, entries, size in product(("int8", "uint8"), ("int8", "uint8"), (256, 7, 16, 137)):
        values = np.arange(256, dtype=np.uint8).view(codes) if size == 256 else net.numbers(codes, 1, size)
        table = net.constant(net.numbers(entries, 256))
        net.result(f"{codes} {entries} {size}", net.add(relay.LookupOp, [net.argument(values), table], {}))
    x = net.argument(net.numbers("int8", 1, 5, 5, 8))
    sums = net.requantize(net.conv2d(x, net.constant(net.numbers("int8", 24, 1, 1, 8)), zero_points=(3, 0)), 24, "int8")
    entries = net.add(relay.LookupOp, [sums, net.constant(net.numbers("int8", 256))], {})
    net.result("after a convolution", net.add(relay.MaximumOp, [entries, sums], {}))
    return net


SHUFFLES = {
    "icelake-server": "llvm.x86.avx512.vpermi2var.qi.512",
    "cascadelake": "llvm.x86.avx512.vpermi2var.hi.512",
    "haswell": "llvm.x86.avx2.pshuf.b",
    "nehalem": "llvm.x86.ssse3.pshuf.b.128",
}


@pytest.mark.parametrize("processor", SHUFFLES)
def test_the_shuffles_of_a_processor(processor: str):
    net = Net(52)
    table = net.constant(np.arange(256, dtype=np.uint8))
    net.result("codes", net.add(relay.LookupOp, [net.argument(net.numbers("uint8", 64)), table], {}))
    module = net.module()
    default_pipeline(f"x86_64-linux-gnu -mcpu={processor}").apply(module)
    found = set(re.findall(r"llvm\.x86\.[\w.]*(?:pshuf|vperm)[\w.]*", str(module)))
    assert found == {SHUFFLES[processor]}


@pytest.mark.parametrize("features", ["", *ci(("avx2,+fma", "ssse3")), "sse2"])
def test_lookups(features: str):
    if features and platform.machine() != "x86_64":
        pytest.skip("a processor of another kind")
    if "avx2" in features and "avx2" not in host().features:
        pytest.skip("this CPU has no AVX2")
    lookups().check(f"x86_64-unknown-linux-gnu -mattr=+{features}" if features else "llvm")


def rescaled() -> Net:
    """Entries that are rescaled, by a number of all or of each row: rows of whole vectors or not, longer than what is
    read at once, several tables."""
    net = Net(51)
    for number, shape in enumerate(((2, 2 * 1024 + 21), (3, 5, 16), (4, 7), (1, 1000))):
        codes = net.argument(net.numbers(("uint8", "int8")[number % 2], *shape))
        numbers = [net.argument(net.rng.integers(-1 << 30, 1 << 30, (*shape[:-1], 1)).astype(np.int32)) for _ in "ab"]
        tables = [net.constant(net.rng.integers(0, 1 << 31, 256).astype(np.int32)) for _ in "ab"]
        entries = [net.add(relay.LookupOp, [codes, table], {}) for table in tables]
        sides = [net.add(relay.HighMultiplyOp, pair, {}) for pair in zip(numbers, entries, strict=True)]
        net.result(f"rows of {shape}", net.add(relay.SubtractOp, sides, {}))
    return net


def test_entries_that_are_rescaled():
    rescaled().check()
    module = rescaled().module()
    pipeline = default_pipeline("x86_64-linux-gnu -mcpu=cascadelake")
    pipeline.apply(module)
    assert str(module).count("memref.alloca") == 2 * 5


def entries_alone() -> Net:
    """Entries of 32 bits as they are, in rows of whole vectors of 64 and others, of all codes of both kinds."""
    net = Net(53)
    for codes, shape in product(("int8", "uint8"), ((2, 256), (3, 197), (2, 65), (4, 20))):
        values = net.argument(np.resize(np.arange(256, dtype=np.uint8).view(codes), shape))
        table = net.constant(net.rng.integers(-1 << 31, 1 << 31, 256).astype(np.int32))
        net.result(f"{codes} {shape}", net.add(relay.LookupOp, [values, table], {}))
    return net


def test_entries_of_32_bits():
    entries_alone().check()
    module = entries_alone().module()
    default_pipeline("x86_64-linux-gnu -mcpu=icelake-server").apply(module)
    assert "llvm.x86.avx512.vpermi2var.qi.512" in str(module)


def test_a_convolution_and_a_table_stay_apart():
    module = lookups().module()
    pipeline = default_pipeline("x86_64-linux-gnu -mcpu=cascadelake")
    pipeline.apply(module)
    text = str(module)
    assert all(f"llvm.x86.avx512.{name}.512" in text for name in ("packssdw", "vpermi2var.hi"))
