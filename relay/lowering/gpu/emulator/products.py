"""Products of a warp, as LLVM IR: what `ldmatrix` and `mma` give each lane from what all lanes gave.

Source of the layouts: PTX ISA, "Matrix Fragments for mma.m16n8k32" and "ldmatrix". Lane 4 g + t holds of A the rows g
and g + 8, of B the column g, of C the columns 2 t and 2 t + 1, and four neighbours of k for each register.
"""

from __future__ import annotations

from collections.abc import Callable

WORDS = "{ i32, i32, i32, i32 }"


class Lines:
    """Instructions of a function, and names of their results."""

    def __init__(self, head: str):
        self.lines = [f"define internal {head} {{"]
        self.count = 0

    def op(self, text: str) -> str:
        """An instruction; returns its result's name."""
        self.count += 1
        self.lines.append(f"  %h{self.count} = {text}")
        return f"%h{self.count}"

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def text(self) -> str:
        """The function."""
        return "\n".join([*self.lines, "}"])


def give() -> str:
    """`emulator.give`: six words of a lane for the others."""
    f = Lines(f"void @emulator.give(ptr %ctx, {', '.join(f'i32 %x{n}' for n in range(6))})")
    slot = f.op("call ptr @emulator.own(ptr %ctx)")
    for number in range(6):
        f.do(f"store i32 %x{number}, ptr {f.op(f'getelementptr i32, ptr {slot}, i32 {number}')}")
    f.do("ret void")
    return f.text()


def give_pointer() -> str:
    """`emulator.give.row`: the address of a lane's row of a matrix."""
    f = Lines("void @emulator.give.row(ptr %ctx, ptr %row)")
    f.do(f"store ptr %row, ptr {f.op('call ptr @emulator.own(ptr %ctx)')}")
    f.do("ret void")
    return f.text()


def give_word() -> str:
    """`emulator.give.word`: a word of a lane for another."""
    f = Lines("void @emulator.give.word(ptr %ctx, i32 %x)")
    f.do(f"store i32 %x, ptr {f.op('call ptr @emulator.own(ptr %ctx)')}")
    f.do("ret void")
    return f.text()


def load_word() -> str:
    """`emulator.word`: the word of the lane whose number differs in these bits."""
    f = Lines("i32 @emulator.word(ptr %ctx, i32 %bits)")
    lane = f.op("load i32, ptr %ctx")
    slot = f.op(f"call ptr @emulator.slot(ptr %ctx, i32 {f.op(f'xor i32 {lane}, %bits')})")
    word = f.op(f"load i32, ptr {slot}")
    f.do("call void @emulator.turn(ptr %ctx)")
    f.do(f"ret i32 {word}")
    return f.text()


def load_matrices() -> str:
    """`emulator.ldmatrix`: of matrix q, whose rows the lanes 8 q to 8 q + 7 gave, word t of row g."""
    f = Lines(f"{WORDS} @emulator.ldmatrix(ptr %ctx)")
    lane = f.op("load i32, ptr %ctx")
    row, word = f.op(f"lshr i32 {lane}, 2"), f.op(f"and i32 {lane}, 3")
    result = "poison"
    for matrix in range(4):
        slot = f.op(f"call ptr @emulator.slot(ptr %ctx, i32 {f.op(f'add i32 {row}, {8 * matrix}')})")
        place = f.op(f"getelementptr i32, ptr {f.op(f'load ptr, ptr {slot}')}, i32 {word}")
        result = f.op(f"insertvalue {WORDS} {result}, i32 {f.op(f'load i32, ptr {place}')}, {matrix}")
    f.do("call void @emulator.turn(ptr %ctx)")
    f.do(f"ret {WORDS} {result}")
    return f.text()


def multiply(name: str, left: str, right: str) -> str:
    """`emulator.mma.NAME`: 16 x 8 sums of 32 products each; `left` and `right` extend bytes: sext or zext."""
    f = Lines(f"{WORDS} @emulator.mma.{name}(ptr %ctx, {', '.join(f'i32 %c{n}' for n in range(4))})")
    lane = f.op("load i32, ptr %ctx")
    row = f.op(f"and i32 {lane}, 28")
    column = f.op(f"shl i32 {f.op(f'and i32 {lane}, 3')}, 3")
    result = "poison"
    for c in range(4):
        total = f"%c{c}"
        for t in range(4):
            a = f.op(f"call ptr @emulator.slot(ptr %ctx, i32 {f.op(f'add i32 {row}, {t}')})")
            b = f.op(f"call ptr @emulator.slot(ptr %ctx, i32 {f.op(f'add i32 {column}, {t + 4 * (c & 1)}')})")
            for half in range(2):
                for byte in range(4):
                    x = extended(f, a, 8 * half + 4 * (c >> 1) + byte, left)
                    y = extended(f, b, 16 + 4 * half + byte, right)
                    total = f.op(f"add i32 {total}, {f.op(f'mul i32 {x}, {y}')}")
        result = f.op(f"insertvalue {WORDS} {result}, i32 {total}, {c}")
    f.do("call void @emulator.turn(ptr %ctx)")
    f.do(f"ret {WORDS} {result}")
    return f.text()


def dot(signs: str) -> str:
    """`emulator.dot.SIGNS`: four products of bytes added to a number; signs are `s.s`, `u.s` and so on."""
    f = Lines(f"i32 @emulator.dot.{signs}(i32 %a, i32 %b, i32 %c) alwaysinline")
    factors: list[str] = []
    for value, sign in zip(("%a", "%b"), signs.split("."), strict=True):
        codes = f.op(f"bitcast i32 {value} to <4 x i8>")
        factors.append(f.op(f"{'sext' if sign == 's' else 'zext'} <4 x i8> {codes} to <4 x i32>"))
    product = f.op(f"mul <4 x i32> {factors[0]}, {factors[1]}")
    sum = f.op(f"call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> {product})")
    f.do(f"ret i32 {f.op(f'add i32 {sum}, %c')}")
    return f.text()


DOTS = ("s.s", "s.u", "u.s", "u.u")
"""Signs of the factors, as `idp4a` names them."""


def extended(f: Lines, slot: str, offset: int, how: str) -> str:
    """A byte as an i32."""
    byte = f.op(f"load i8, ptr {f.op(f'getelementptr i8, ptr {slot}, i64 {offset}')}")
    return f.op(f"{how} i8 {byte} to i32")


PRODUCTS: dict[str, tuple[str, str]] = {
    "s8": ("sext", "sext"),
    "u8": ("zext", "zext"),
    "u8.s8": ("zext", "sext"),
    "s8.u8": ("sext", "zext"),
}
"""Types of the factors, as `mma` names them."""

PARTS: tuple[Callable[[], str], ...] = (give, give_pointer, give_word, load_matrices, load_word)


def products(text: str) -> str:
    """The functions that a text calls."""
    parts = [part() for part in PARTS] if "@emulator.give" in text else []
    used = [name for name in PRODUCTS if f"@emulator.mma.{name}(" in text]
    dots = [dot(signs) for signs in DOTS if f"@emulator.dot.{signs}(" in text]
    parts += [*dots, "declare i32 @llvm.vector.reduce.add.v4i32(<4 x i32>)"] if dots else []
    return "\n".join([*parts, *(multiply(name, *PRODUCTS[name]) for name in used)])
