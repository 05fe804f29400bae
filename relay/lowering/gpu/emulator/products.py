"""Products of a warp, as LLVM IR: the results of `ldmatrix` and `mma` in each lane, computed from the operands of all
lanes.

Source of the layouts: PTX ISA, "Matrix Fragments for mma.m16n8k32" (8 bits), "m16n8k16" (16 bits), "m16n8k8" (tf32) and
"ldmatrix". Lane 4 g + t holds rows g and g + 8 of A, column g of B, and columns 2 t and 2 t + 1 of C. A register of A
or B is a 32-bit word of neighbours along k: four of 8 bits, two of 16, or one of 32.
"""

from __future__ import annotations

import re
from collections.abc import Callable


class Lines:
    """The instructions of a function under construction, with generated names for their results."""

    def __init__(self, head: str):
        self.lines = [f"define internal {head} {{"]
        self.count = 0

    def op(self, text: str) -> str:
        """Append an instruction; return its result's name."""
        self.count += 1
        self.lines.append(f"  %h{self.count} = {text}")
        return f"%h{self.count}"

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def end(self, result: str = "void") -> str:
        """Return the text of the function, which returns `result`."""
        return "\n".join([*self.lines, f"  ret {result}", "}"])


def give() -> str:
    """Return the LLVM IR of `emulator.give`, in which a lane stores its six operand words of a matrix multiply, so that
    the other lanes of the warp can read them."""
    f = Lines(f"void @emulator.give(ptr %ctx, {', '.join(f'i32 %x{n}' for n in range(6))}) noinline")
    slot = f.op("call ptr @emulator.own(ptr %ctx)")
    for number in range(6):
        f.do(f"store i32 %x{number}, ptr {f.op(f'getelementptr i32, ptr {slot}, i32 {number}')}")
    return f.end()


def give_one(name: str, type: str) -> str:
    """Return the text of `emulator.give.NAME`, which stores a value of a lane for the other lanes."""
    f = Lines(f"void @emulator.give.{name}(ptr %ctx, {type} %x)")
    f.do(f"store {type} %x, ptr {f.op('call ptr @emulator.own(ptr %ctx)')}")
    return f.end()


def load_word() -> str:
    """Return the text of `emulator.word`, which loads the word that the lane with the number `(lane & mask) ^ bits` has
    stored, where `lane` is this lane's number."""
    f = Lines("i32 @emulator.word(ptr %ctx, i32 %mask, i32 %bits)")
    lane = f.op(f"and i32 {f.op('load i32, ptr %ctx')}, %mask")
    slot = f.op(f"call ptr @emulator.slot(ptr %ctx, i32 {f.op(f'xor i32 {lane}, %bits')})")
    word = f.op(f"load i32, ptr {slot}")
    f.do("call void @emulator.turn(ptr %ctx)")
    return f.end(f"i32 {word}")


def load_matrices() -> str:
    """Return the text of `emulator.ldmatrix`: lane n of a warp loads word n % 4 of row n / 4 from each of 4 matrices.
    The lanes 8 q to 8 q + 7 have the addresses of the rows of matrix q."""
    f = Lines(f"{four('i32')} @emulator.ldmatrix(ptr %ctx) noinline")
    lane = f.op("load i32, ptr %ctx")
    row, word = f.op(f"lshr i32 {lane}, 2"), f.op(f"and i32 {lane}, 3")
    result = "poison"
    for matrix in range(4):
        slot = f.op(f"call ptr @emulator.slot(ptr %ctx, i32 {f.op(f'add i32 {row}, {8 * matrix}')})")
        place = f.op(f"getelementptr i32, ptr {f.op(f'load ptr, ptr {slot}')}, i32 {word}")
        result = f.op(f"insertvalue {four('i32')} {result}, i32 {f.op(f'load i32, ptr {place}')}, {matrix}")
    f.do("call void @emulator.turn(ptr %ctx)")
    return f.end(f"{four('i32')} {result}")


def multiply(name: str) -> str:
    """Return the LLVM IR of `emulator.mma.NAME`, which adds a product of matrices to 16 x 8 sums; each row of the first
    and each column of the second matrix has 32 bytes, of codes or floats. Products of floats are exact, and are added
    one after the other in single precision: PTX requires no more precision, and no order."""
    size, type = FACTORS.get(name, 1), type_of(name)
    add, times = ("fadd", "fmul") if name in FACTORS else ("add", "mul")
    f = Lines(f"{four(type)} @emulator.mma.{name}(ptr %ctx, {', '.join(f'{type} %c{n}' for n in range(4))}) noinline")
    lane = f.op("load i32, ptr %ctx")
    row = f.op(f"and i32 {lane}, 28")
    column = f.op(f"shl i32 {f.op(f'and i32 {lane}, 3')}, 3")
    result = "poison"
    for c in range(4):
        total = f"%c{c}"
        for half in range(2):
            for t in range(4):
                a = f.op(f"call ptr @emulator.slot(ptr %ctx, i32 {f.op(f'add i32 {row}, {t}')})")
                b = f.op(f"call ptr @emulator.slot(ptr %ctx, i32 {f.op(f'add i32 {column}, {t + 4 * (c & 1)}')})")
                for byte in range(0, 4, size):
                    x = factor(f, a, 8 * half + 4 * (c >> 1) + byte, name.split(".")[0])
                    y = factor(f, b, 16 + 4 * half + byte, name.split(".")[-1])
                    total = f.op(f"{add} {type} {total}, {f.op(f'{times} {type} {x}, {y}')}")
        result = f.op(f"insertvalue {four(type)} {result}, {type} {total}, {c}")
    f.do("call void @emulator.turn(ptr %ctx)")
    return f.end(f"{four(type)} {result}")


def factor(f: Lines, slot: str, offset: int, name: str) -> str:
    """Load a code as an i32, or a float; for tf32, the 13 bits that the format lacks are cleared."""
    at = f.op(f"getelementptr i8, ptr {slot}, i64 {offset}")
    if name not in FACTORS:
        return f.op(f"{extend(name)} i8 {f.op(f'load i8, ptr {at}')} to i32")
    if name == "f16":
        return f.op(f"fpext half {f.op(f'load half, ptr {at}')} to float")
    if name == "tf32":
        bits = f.op(f"and i32 {f.op(f'load i32, ptr {at}')}, {~0x1FFF}")
    else:
        word = f.op(f"load i16, ptr {at}")
        bits = f.op(f"shl i32 {f.op(f'zext i16 {word} to i32')}, 16")
    return f.op(f"bitcast i32 {bits} to float")


def round_tf32() -> str:
    """Return the text of `emulator.f2tf32.rna`: `cvt.rna.tf32.f32`, to nearest, ties away from zero, to 19 bits; NaN is
    0x7fffffff."""
    f = Lines("i32 @emulator.f2tf32.rna(float %x) alwaysinline")
    more = f.op(f"add i32 {f.op('bitcast float %x to i32')}, 4096")
    near, nan = f.op(f"and i32 {more}, {~0x1FFF}"), f.op("fcmp uno float %x, %x")
    return f.end(f"i32 {f.op(f'select i1 {nan}, i32 {0x7FFFFFFF}, i32 {near}')}")


def round_bf16() -> str:
    """Return the text of `emulator.bf16`: `cvt.rn.bf16x2.f32`, to nearest, ties to even; NaN is 0x7fff. Not every host
    has an instruction for it."""
    f = Lines("<2 x bfloat> @emulator.bf16(<2 x float> %x) alwaysinline")
    bits = f.op("bitcast <2 x float> %x to <2 x i32>")
    odd = f.op(f"and <2 x i32> {f.op(f'lshr <2 x i32> {bits}, splat (i32 16)')}, splat (i32 1)")
    more = f.op(f"add <2 x i32> {f.op(f'add <2 x i32> {bits}, splat (i32 32767)')}, {odd}")
    near, nan = f.op(f"lshr <2 x i32> {more}, splat (i32 16)"), f.op("fcmp uno <2 x float> %x, %x")
    chosen = f.op(f"select <2 x i1> {nan}, <2 x i32> splat (i32 32767), <2 x i32> {near}")
    short = f.op(f"trunc <2 x i32> {chosen} to <2 x i16>")
    return f.end(f"<2 x bfloat> {f.op(f'bitcast <2 x i16> {short} to <2 x bfloat>')}")


def multiply_add_toward_zero() -> str:
    """Return the text of `emulator.fma.rz.f`: a float32 fused multiply-add that rounds towards zero, by an exact
    product, a sum in double, and the sum's rounding error, which show whether the float32 is too large."""
    f = Lines("float @emulator.fma.rz.f(float %x, float %y, float %z) alwaysinline")
    x, y, z = (f.op(f"fpext float %{name} to double") for name in "xyz")
    product = f.op(f"fmul double {x}, {y}")
    sum = f.op(f"fadd double {product}, {z}")
    part = f.op(f"fsub double {sum}, {product}")
    lost = f.op(f"fsub double {product}, {f.op(f'fsub double {sum}, {part}')}")
    lost = f.op(f"fadd double {lost}, {f.op(f'fsub double {z}, {part}')}")
    near = f.op(f"fptrunc double {sum} to float")
    wide = f.op(f"fpext float {near} to double")
    negative, equal = f.op(f"fcmp olt double {sum}, 0.0"), f.op(f"fcmp oeq double {wide}, {sum}")
    sides = [f.op(f"fcmp {how} double {wide}, {sum}") for how in ("olt", "ogt")]
    larger = f.op(f"select i1 {negative}, i1 {sides[0]}, i1 {sides[1]}")
    signs = [f.op(f"fcmp olt double {lost}, 0.0"), negative]
    apart = f.op(f"and i1 {f.op(f'fcmp one double {lost}, 0.0')}, {f.op(f'xor i1 {signs[0]}, {signs[1]}')}")
    over = f.op(f"or i1 {larger}, {f.op(f'and i1 {equal}, {apart}')}")
    bits = f.op(f"bitcast float {near} to i32")
    nearer = f.op(f"sub i32 {bits}, {f.op(f'zext i1 {over} to i32')}")
    return f.end(f"float {f.op(f'bitcast i32 {nearer} to float')}")


def to_integer() -> str:
    """Return the text of `emulator.f2i.rn`: `cvt.rni.s32.f32`, to nearest, ties to even, saturated; NaN is 0."""
    f = Lines("i32 @emulator.f2i.rn(float %x) alwaysinline")
    near = f.op("call float @llvm.roundeven.f32(float %x)")
    return f.end(f"i32 {f.op(f'call i32 @llvm.fptosi.sat.i32.f32(float {near})')}")


def saturate() -> str:
    """Return the text of `emulator.saturate.f`: `cvt.sat.f32.f32`, clamped to 0 to 1; NaN is 0."""
    f = Lines("float @emulator.saturate.f(float %x) alwaysinline")
    above, below = f.op("fcmp ogt float %x, 0.0"), f.op("fcmp olt float %x, 1.0")
    positive = f.op(f"select i1 {below}, float %x, float 1.0")
    return f.end(f"float {f.op(f'select i1 {above}, float {positive}, float 0.0')}")


ROUNDED: dict[str, Callable[[], str]] = {
    "f2tf32.rna": round_tf32,
    "bf16": round_bf16,
    "fma.rz.f": multiply_add_toward_zero,
    "f2i.rn": to_integer,
    "saturate.f": saturate,
}


def pack(codes: str) -> str:
    """Return the text of `emulator.pack.CODES`: two integers, saturated, as the lower bytes of a word, and two bytes of
    another word above them."""
    f = Lines(f"i32 @emulator.pack.{codes}(i32 %a, i32 %b, i32 %c) alwaysinline")
    least, most = {"s8": (-128, 127), "u8": (0, 255)}[codes]
    bytes: list[str] = []
    for value in ("%b", "%a"):
        low = f.op(f"select i1 {f.op(f'icmp sgt i32 {value}, {least}')}, i32 {value}, i32 {least}")
        high = f.op(f"select i1 {f.op(f'icmp slt i32 {low}, {most}')}, i32 {low}, i32 {most}")
        bytes.append(f.op(f"and i32 {high}, 255"))
    upper = f.op("shl i32 %c, 16")
    both = f.op(f"or i32 {bytes[0]}, {f.op(f'shl i32 {bytes[1]}, 8')}")
    return f.end(f"i32 {f.op(f'or i32 {both}, {upper}')}")


def dot_of_two(name: str) -> str:
    """Return the LLVM IR of the function `emulator.pair.<name>`, which emulates `dp2a`: it multiplies the two 16-bit
    halves of a word by two bytes of another word, and adds both products to a number. `name` has the signs of
    the 16-bit and of the 8-bit factors and the half that has the bytes, such as `s.u.hi`."""
    left, right, half = name.split(".")
    f = Lines(f"i32 @emulator.pair.{name}(i32 %a, i32 %b, i32 %c) alwaysinline")
    words, bytes = f.op("bitcast i32 %a to <2 x i16>"), f.op("bitcast i32 %b to <4 x i8>")
    total = "%c"
    for lane in range(2):
        x = f.op(f"extractelement <2 x i16> {words}, i32 {lane}")
        y = f.op(f"extractelement <4 x i8> {bytes}, i32 {lane + 2 * (half == 'hi')}")
        x = f.op(f"{extend(left)} i16 {x} to i32")
        y = f.op(f"{extend(right)} i8 {y} to i32")
        total = f.op(f"add i32 {total}, {f.op(f'mul i32 {x}, {y}')}")
    return f.end(f"i32 {total}")


def dot(signs: str) -> str:
    """Return the text of `emulator.dot.SIGNS`: four products of bytes are added to a number; signs are `s.s`, `u.s` and
    so on."""
    f = Lines(f"i32 @emulator.dot.{signs}(i32 %a, i32 %b, i32 %c) alwaysinline")
    factors: list[str] = []
    for value, sign in zip(("%a", "%b"), signs.split("."), strict=True):
        codes = f.op(f"bitcast i32 {value} to <4 x i8>")
        factors.append(f.op(f"{extend(sign)} <4 x i8> {codes} to <4 x i32>"))
    product = f.op(f"mul <4 x i32> {factors[0]}, {factors[1]}")
    sum = f.op(f"call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> {product})")
    return f.end(f"i32 {f.op(f'add i32 {sum}, %c')}")


def extend(sign: str) -> str:
    """Return the instruction that extends a code."""
    return "sext" if sign.startswith("s") else "zext"


PRODUCTS = ("s8", "u8", "u8.s8", "s8.u8")
"""The types of codes, as `mma` names them."""
FACTORS: dict[str, int] = {"tf32": 4, "f16": 2, "bf16": 2}
"""The float types, and their sizes in bytes."""


def type_of(name: str) -> str:
    """Return the LLVM type of the sums of products, by the name of the factors' type."""
    return "float" if name in FACTORS else "i32"


def four(type: str) -> str:
    """Return the LLVM type of a structure of four elements."""
    return f"{{ {', '.join([type] * 4)} }}"


def products(text: str) -> str:
    """Return the LLVM IR of those `@emulator.*` functions of this module, such as matrix products, that the LLVM IR
    `text` calls."""
    parts: list[str] = []
    if "@emulator.give" in text:
        parts = [give(), give_one("row", "ptr"), give_one("word", "i32"), load_matrices(), load_word()]
    families = {"dot": dot, "pack": pack, "pair": dot_of_two, "mma": multiply}
    parts += [part() for name, part in ROUNDED.items() if f"@emulator.{name}(" in text]
    called = re.findall(rf"@emulator\.({'|'.join(families)})\.([\w.]+)\(", text)
    return "\n".join([*parts, *(families[family](name) for family, name in dict.fromkeys(called))])
