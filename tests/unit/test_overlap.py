"""How far before an input a result has to lie: loops that are run turn by turn are the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp

from relay.lowering.overlap import distance, overlap, overlapping
from relay.module import IRModule

SIZE = 4096
Loop = tuple[int, int, int]
"""Start, end and step."""
Place = tuple[int, tuple[int, ...]]
"""A constant, and a factor for each loop's variable."""
Access = tuple[str, int, Place, Loop]
"""What is done, whether to a vector, where, and in which loop of its own."""
LOOPS = st.tuples(st.integers(0, 3), st.integers(1, 6), st.integers(1, 3)).map(lambda t: (t[0], t[0] + t[1], t[2]))
PLACES = st.tuples(st.integers(500, 600), st.tuples(*[st.integers(-9, 20)] * 3))
KINDS = {1: "vector<4xi8>", 0: "i8"}


def kernel(loops: list[Loop], inner: list[Loop], order: list[tuple[str, int, Place]]) -> FuncOp:
    """Loops in each other, in whose innermost body, one behind the other, each access is alone in one loop more."""
    lines = ["func.func private @kernel(%a: memref<4096xi8>, %b: memref<4096xi8>) {", "%x = arith.constant 7 : i8"]
    lines.append("%v = arith.constant dense<7> : vector<4xi8>")
    count = 0

    def constant(number: int) -> str:
        nonlocal count
        count += 1
        lines.append(f"%c{count} = arith.constant {number} : index")
        return f"%c{count}"

    def begin(name: str, loop: Loop) -> None:
        low, high, step = map(constant, loop)
        lines.append(f"scf.for %{name} = {low} to {high} step {step} {{")

    for depth, loop in enumerate(loops):
        begin(f"i{depth}", loop)
    for number, ((kind, vector, (start, factors)), loop) in enumerate(zip(order, inner, strict=True)):
        begin(f"j{number}", loop)
        at = constant(start)
        names = [*(f"%i{depth}" for depth in range(len(loops))), f"%j{number}"]
        for name, factor in zip(names, factors[-len(names) :], strict=True):
            count += 1
            lines.append(f"%m{count} = arith.muli {name}, {constant(factor)} : index")
            lines.append(f"%s{count} = arith.addi {at}, %m{count - 1} : index")
            at = f"%s{count}"
        type, value, word = KINDS[vector], "%v" if vector else "%x", "vector" if vector else "memref"
        tail = f", {type}" if vector else ""
        if kind == "read":
            lines.append(f"%r{number} = {word}.load %a[{at}] : memref<4096xi8>{tail}")
        else:
            lines.append(f"{word}.store {value}, %b[{at}] : memref<4096xi8>{tail}")
        lines.append("}")
    lines += ["}"] * len(loops) + ["func.return", "}"]
    (function,) = IRModule.parse("\n".join(lines)).op.body.block.ops
    assert isinstance(function, FuncOp)
    return function


def events(loops: list[Loop], inner: list[Loop], order: list[tuple[str, int, Place]]) -> Iterator[tuple[str, int, int]]:
    """What is read and written, in the order in which it is: from where, up to where."""
    for outer in product(*(range(*loop) for loop in loops)):
        for (kind, vector, (start, factors)), loop in zip(order, inner, strict=True):
            for last in range(*loop):
                variables = (*outer, last)
                at = start + sum(v * f for v, f in zip(variables, factors[-len(variables) :], strict=True))
                yield kind, at, at + (4 if vector else 1)


ACCESS = st.tuples(st.sampled_from(["read", "write"]), st.integers(0, 1), PLACES, LOOPS)
SOME = given(st.lists(LOOPS, max_size=2), st.lists(ACCESS, min_size=1, max_size=4))


@SOME
@settings(max_examples=25)
def test_nothing_is_read_behind_what_was_written(loops: list[Loop], accesses: list[Access]):
    check(loops, accesses)


@pytest.mark.ci
@SOME
def test_more_is_not_read_behind_what_was_written(loops: list[Loop], accesses: list[Access]):
    check(loops, accesses)


def check(loops: list[Loop], accesses: list[Access]) -> None:
    order, inner = [(kind, vector, place) for kind, vector, place, _ in accesses], [loop for *_, loop in accesses]
    written, wanted = -SIZE, -SIZE
    for kind, start, end in events(loops, inner, order):
        if kind == "read":
            wanted = max(wanted, written - start)
        else:
            written = max(written, end)
    least = distance(kernel(loops, inner, order), 0, 1)
    assert least == wanted


HEAD = """func.func private @kernel(%a: memref<64xi8>, %b: memref<64xi8>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
"""
UNKNOWN = {
    "a copy": ('"memref.copy"(%a, %b) : (memref<64xi8>, memref<64xi8>) -> ()', 64),
    "a loop whose end is computed": (
        """scf.for %i = %c0 to %n step %c1 {
          %x = memref.load %a[%i] : memref<64xi8>
          memref.store %x, %b[%i] : memref<64xi8>
        }""",
        64,
    ),
    "an index that is computed": (
        """scf.for %i = %c0 to %c8 step %c1 {
          %k = arith.remui %i, %c8 : index
          %x = memref.load %a[%k] : memref<64xi8>
          memref.store %x, %b[%i] : memref<64xi8>
        }""",
        7,
    ),
    "an address": ('%p = "memref.extract_aligned_pointer_as_index"(%a) : (memref<64xi8>) -> index', 64),
    "a loop of another kind": (
        """%r = scf.while (%i = %c0) : (index) -> index {
          %x = memref.load %a[%i] : memref<64xi8>
          memref.store %x, %b[%i] : memref<64xi8>
          %more = arith.cmpi ult, %i, %n : index
          scf.condition(%more) %i : index
        } do {
        ^bb0(%i: index):
          %next = arith.addi %i, %c1 : index
          scf.yield %next : index
        }""",
        64,
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_touches_everything(name: str):
    body, least = UNKNOWN[name]
    (function,) = IRModule.parse(f"{HEAD}{body}\nfunc.return\n}}").op.body.block.ops
    assert isinstance(function, FuncOp)
    assert distance(function, 0, 1) == least


def test_a_place_that_every_turn_reads_is_read_before_the_loop():
    text = """func.func private @kernel(%a: memref<64xi8>, %b: memref<64xi8>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %k = arith.addi %i, %c8 : index
      %x = memref.load %a[%k] : memref<64xi8>
      %y = memref.load %b[%k] : memref<64xi8>
      memref.store %x, %b[%j] : memref<64xi8>
    }
    scf.for %l = %c0 to %n step %c1 {
      %z = memref.load %a[%c8] : memref<64xi8>
      memref.store %z, %b[%l] : memref<64xi8>
    }
  }
  func.return
}"""
    (function,) = IRModule.parse(text).op.body.block.ops
    assert isinstance(function, FuncOp)
    overlap(function, [0], [1])
    assert overlapping(function) == {0, 1}
    (outer,) = [op for op in function.body.block.ops if op.name == "scf.for"]
    names = [op.name for op in outer.regions[0].block.ops]
    assert names == ["arith.addi", "memref.load", "scf.for", "scf.for", "scf.yield"]
