"""Operations without side effects as C expressions: a table with a function for each op. An integer is a signed C
integer whose range is known, so that sums that cannot overflow are written plainly, and only the others by functions
that wrap around. Sums of indices never overflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation

from relay.dialects.arith import FLOAT_PREDICATES, INTEGER_PREDICATES
from relay.dialects.attributes import to_numpy
from relay.lowering.c.types import bits, float_literal, integer_literal, range_of, type_name

ATOM, PRODUCT, SUM, OTHER = range(4)
"""The levels of precedence; OTHER always needs parentheses."""


@dataclass(frozen=True, slots=True)
class Expression:
    """The C text of an expression; for integers, also the range of its values."""

    text: str
    level: int = ATOM
    low: int = 0
    high: int = 0
    loads: bool = False
    """Whether the expression reads memory, so that it must be evaluated before later writes."""

    def within(self, level: int) -> str:
        """Return the text for use as an operand of an operator that takes operands up to this level of precedence
        (`ATOM`, `PRODUCT`, `SUM` or `OTHER`): in parentheses if the expression's own level is higher."""
        return self.text if self.level <= level else f"({self.text})"


Given = Sequence[Expression]
Helpers = dict[str, str]
"""C functions that expressions call, by name."""


def full(text: str, type: Attribute, level: int = ATOM) -> Expression:
    """Return an expression whose value may be any number of the type."""
    return Expression(text, level, *(range_of(type) if bits(type) else (0, 0)))


def ranged(text: str, level: int, low: int, high: int, type: Attribute) -> Expression:
    """Return the C expression `text`, whose operator has precedence `level`. Its values lie between `low` and `high`,
    or in the range of the type if this cannot represent both bounds."""
    lowest, highest = range_of(type)
    return Expression(text, level, low, high) if lowest <= low and high <= highest else full(text, type, level)


def corners(a: Expression, b: Expression, of: Callable[[int, int], int]) -> tuple[int, int]:
    """Return the range of a function that is monotonic in each operand, from the operands' bounds."""
    every = [of(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(every), max(every)


def cast(type: str, value: Expression) -> str:
    """Return `(type)value`."""
    return f"({type}){value.within(ATOM)}"


def call(helpers: Helpers, name: str, result: str, parameters: str, body: str, given: Given) -> str:
    """Return a call of a C function, which is defined unless it is already."""
    helpers.setdefault(name, f"static inline {result} {name}({parameters})\n{{\n    {body}\n}}\n")
    return f"{name}({', '.join(each.text for each in given)})"


def narrowed(text: str, level: int, type: Attribute) -> tuple[str, int]:
    """Return a C expression and its level of precedence. The given `text` is of type `int` or wider; it is cast to
    `type` if that has fewer than 32 bits."""
    return (f"({type_name(type)})({text})", ATOM) if bits(type) < 32 else (text, level)


ARITHMETIC: Mapping[str, tuple[str, str, Callable[[int, int], int]]] = {
    "arith.addi": ("+", "add", lambda a, b: a + b),
    "arith.subi": ("-", "subtract", lambda a, b: a - b),
    "arith.muli": ("*", "multiply", lambda a, b: a * b),
}


def arithmetic(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return a sum, a difference or a product, modulo 2^bits."""
    a, b = given
    sign, word, of = ARITHMETIC[op.name]
    type = op.results[0].type
    width, (low, high) = bits(type), corners(a, b, of)
    lowest, highest = range_of(type)
    fits = lowest <= low and high <= highest
    if width in (32, 64) and not fits and not isinstance(type, IndexType):
        c, u = f"int{width}_t", f"uint{width}_t"
        body = f"return ({c})(({u})a {sign} ({u})b);"
        return full(call(helpers, f"{word}_i{width}", c, f"{c} a, {c} b", body, given), type)
    level = PRODUCT if sign == "*" else SUM
    if sign == "+" and b.text == str(b.low) and b.low < 0:
        sign, right = "-", b.text[1:]
    elif b.text.startswith("-"):
        right = f"({b.text})"
    else:
        right = b.within(ATOM if sign == "-" else level)
    text = f"{a.within(level)} {sign} {right}"
    if width == 1:
        text, level = f"({text}) & 1", OTHER
    else:
        text, level = narrowed(text, level, type)
    return ranged(text, level, low, high, type)


def bitwise(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return `a & b`, `a | b` or `a ^ b`."""
    a, b = given
    type = op.results[0].type
    sign = {"arith.andi": "&", "arith.ori": "|", "arith.xori": "^"}[op.name]
    text, level = f"{a.within(ATOM)} {sign} {b.within(ATOM)}", OTHER
    if bits(type) > 1:
        text, level = narrowed(text, level, type)
    if op.name == "arith.andi" and b.low >= 0:
        return Expression(text, level, 0, b.high)
    return full(text, type, level)


def shift(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return a shift by less than the type's number of bits."""
    a, b = given
    type = op.results[0].type
    name, u = type_name(type), f"uint{bits(type)}_t"
    if op.name == "arith.shrsi" or op.name == "arith.shrui" and a.low >= 0:
        low, high = (a.low >> b.low, a.high >> b.low) if 0 <= b.low == b.high else (min(a.low, 0), max(a.high, 0))
        return Expression(*narrowed(f"{a.within(ATOM)} >> {b.within(ATOM)}", OTHER, type), low, high)
    if op.name == "arith.shrui":
        return full(f"({name})({cast(u, a)} >> {b.within(ATOM)})", type)
    if a.low >= 0 and 0 <= b.low and b.high < 64 and a.high << b.high <= range_of(type)[1] and bits(type) == 32:
        return Expression(f"{a.within(ATOM)} << {b.within(ATOM)}", OTHER, 0, a.high << b.high)
    return full(f"({name})({cast(u, a)} << {b.within(ATOM)})", type)


def quotient(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return a quotient or remainder, rounded towards zero; cases that are undefined in LLVM are undefined here."""
    a, b = given
    type = op.results[0].type
    sign, name, u = "/" if "div" in op.name else "%", type_name(type), f"uint{bits(type)}_t"
    if op.name.endswith("ui") and (a.low < 0 or b.low < 0):
        return full(f"({name})({cast(u, a)} {sign} {cast(u, b)})", type)
    text = f"{a.within(ATOM)} {sign} {b.within(ATOM)}"
    if bits(type) < 32:
        return full(f"({name})({text})", type)
    if b.low > 0:
        bound = max(abs(a.low), abs(a.high)) if sign == "/" else b.high
        return ranged(text, OTHER, -bound if a.low < 0 else 0, bound, type)
    return full(text, type, OTHER)


def extreme(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return the larger or the smaller of two integers."""
    a, b = given
    type = op.results[0].type
    word, unsigned = op.name[6:9], op.name.endswith("ui") and (a.low < 0 or b.low < 0)
    sign, of = (">", max) if word == "max" else ("<", min)
    c, name = type_name(type), f"{word}_{'u' if unsigned else 'i'}{bits(type)}"
    u = f"(uint{bits(type)}_t)" if unsigned else ""
    text = call(helpers, name, c, f"{c} a, {c} b", f"return {u}a {sign} {u}b ? a : b;", given)
    return full(text, type) if unsigned else Expression(text, ATOM, of(a.low, b.low), of(a.high, b.high))


def extend(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return an integer extended to more bits, with copies of its sign bit or with zeros, as the op says."""
    (a,) = given
    before, after = op.operands[0].type, op.results[0].type
    if op.name == "arith.extsi" and bits(before) == 1:
        return Expression(cast(type_name(after), Expression(f"-{a.within(ATOM)}", PRODUCT)), ATOM, -1, 0)
    if op.name == "arith.extui" and a.low < 0:
        a = Expression(cast(f"uint{bits(before)}_t", a), ATOM, 0, (1 << bits(before)) - 1)
    if (bits(after) == 32 or bits(before) > 1) and bits(after) < 64 and (bits(before), op.name) != (32, "arith.extui"):
        return a
    return Expression(cast(type_name(after), a), ATOM, a.low, a.high)


def narrow(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return a conversion to fewer bits."""
    (a,) = given
    type = op.results[0].type
    if bits(type) == 1:
        return Expression(f"{a.within(ATOM)} & 1", OTHER, 0, 1)
    return ranged(cast(type_name(type), a), ATOM, a.low, a.high, type)


def index_cast(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return an integer as an index, or an index as an integer."""
    (a,) = given
    before, after = bits(op.operands[0].type), bits(op.results[0].type)
    return a if before <= after <= 32 else ranged(cast(f"int{after}_t", a), ATOM, a.low, a.high, op.results[0].type)


COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def compare(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return a comparison of integers."""
    a, b = given
    predicate = op.properties["predicate"]
    assert isinstance(predicate, IntegerAttr)
    name = INTEGER_PREDICATES[predicate.value.data]
    sign = COMPARISONS[name[-2:]]
    if name.startswith("u") and (a.low < 0 or b.low < 0):
        u = f"uint{bits(op.operands[0].type)}_t"
        return Expression(f"{cast(u, a)} {sign} {cast(u, b)}", OTHER, 0, 1)
    return Expression(f"{a.within(SUM)} {sign} {b.within(SUM)}", OTHER, 0, 1)


OPPOSITE = {"eq": "!=", "gt": "<=", "ge": "<", "lt": ">=", "le": ">"}


def compare_floats(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return a comparison of floats. C's operators are false if an operand is NaN, except `!=`."""
    a, b = (each.within(ATOM) for each in given)
    predicate = op.properties["predicate"]
    assert isinstance(predicate, IntegerAttr)
    name = FLOAT_PREDICATES[predicate.value.data]
    unordered = f"{a} != {a} || {b} != {b}"
    if name in ("true", "false"):
        text = str(int(name == "true"))
    elif name in ("uno", "ord"):
        text = unordered if name == "uno" else f"{a} == {a} && {b} == {b}"
    elif name == "one":
        text = f"{a} < {b} || {a} > {b}"
    elif name == "ueq":
        text = f"!({a} < {b} || {a} > {b})"
    elif name[0] == "o" or name == "une":
        text = f"{a} {COMPARISONS[name[1:]]} {b}"
    else:
        text = f"!({a} {OPPOSITE[name[1:]]} {b})"
    return Expression(text, OTHER, 0, 1)


def select(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return `c ? a : b`."""
    c, a, b = given
    text = f"{c.within(SUM if c.level < OTHER else OTHER)} ? {a.within(SUM)} : {b.within(SUM)}"
    return Expression(text, OTHER, min(a.low, b.low), max(a.high, b.high))


def constant(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return a literal."""
    type = op.results[0].type
    value = to_numpy(op.properties["value"]).reshape(-1)[0]
    if bits(type):
        number = int(value)
        return Expression(integer_literal(number), ATOM, number, number)
    text = float_literal(float(value), type_name(type) == "double")
    return Expression(text, ATOM if text[0] != "-" else PRODUCT)


FLOAT_SIGNS = {
    "arith.addf": ("+", SUM),
    "arith.subf": ("-", SUM),
    "arith.mulf": ("*", PRODUCT),
    "arith.divf": ("/", PRODUCT),
}


def float_arithmetic(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return a sum, difference, product or quotient of floats. Parentheses keep the order of the program's operations,
    since rounding depends on it."""
    a, b = given
    sign, level = FLOAT_SIGNS[op.name]
    return Expression(f"{a.within(level)} {sign} {b.within(ATOM)}", level)


def negate(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return the negated float; zeros are negated, too."""
    (a,) = given
    return Expression(f"-({a.text})" if a.text.startswith("-") else f"-{a.within(ATOM)}", PRODUCT)


ROUNDINGS = {
    "math.round": "(rest >= 0.5) - (rest <= -0.5)",
    "math.roundeven": "(rest > 0.5 || (rest == 0.5 && whole & 1)) - (rest < -0.5 || (rest == -0.5 && whole & 1))",
}
"""The correction that is added to a truncated number, depending on the remainder, by kind of rounding."""


def only_converted(op: Operation) -> bool:
    """Whether a float is rounded only to be converted to an integer, so that math.h is not needed."""
    return op.name in ROUNDINGS and all(use.operation.name == "arith.fptosi" for use in op.results[0].uses)


def convert(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return the C expression of a conversion between integers and floats, or between types of floats. If a float
    is rounded only to be converted to an integer, rounding and conversion become one call of a helper function."""
    (a,) = given
    before, after = op.operands[0].type, op.results[0].type
    rounding = op.operands[0].owner
    if op.name == "arith.fptosi" and isinstance(rounding, Operation) and only_converted(rounding):
        c, real = type_name(after), type_name(before)
        whole = "int64_t" if bits(after) == 64 else "int32_t"
        body = f"const {whole} whole = ({whole})x;\n    const {real} rest = x - ({real})whole;\n    "
        added = ROUNDINGS[rounding.name].replace("0.5", "0.5f" if real == "float" else "0.5")
        body += f"return ({c})(whole + {added});"
        name = f"{rounding.name.removeprefix('math.')}_{real}_to_{c.removesuffix('_t')}"
        return full(call(helpers, name, c, f"{real} x", body, given), after)
    if op.name == "arith.uitofp" and a.low < 0:
        a = Expression(cast(f"uint{bits(before)}_t", a))
    if op.name == "arith.fptoui":
        a = Expression(cast(f"uint{bits(after)}_t", a))
    return full(cast(type_name(after), a), after)


def bit_cast(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return the bits of a float as an integer, or of an integer as a float."""
    before, after = type_name(op.operands[0].type), type_name(op.results[0].type)
    if before == after:
        return given[0]
    name = f"bits_of_{before.removesuffix('_t')}_as_{after.removesuffix('_t')}"
    body = f"{after} result;\n    memcpy(&result, &value, sizeof result);\n    return result;"
    return full(call(helpers, name, after, f"{before} value", body, given), op.results[0].type)


LIBRARY = {
    f"math.{name}": name
    for name in (
        "acos acosh asin asinh atan atanh ceil copysign cos cosh erf exp expm1 floor fma log log10 log2 round sin sinh "
        "sqrt tan tanh trunc"
    ).split()
} | {
    "math.absf": "fabs",
    "math.powf": "pow",
    "math.roundeven": "nearbyint",
    "arith.remf": "fmod",
    "arith.maxnumf": "fmax",
    "arith.minnumf": "fmin",
}
"""The functions of math.h, by their names for doubles."""


def library(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return a call of a function of math.h."""
    if only_converted(op):
        return given[0]
    name = LIBRARY[op.name] + ("" if type_name(op.results[0].type) == "double" else "f")
    return Expression(f"{name}({', '.join(each.text for each in given)})")


def root(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return `1 / sqrt(x)`, with both operations correctly rounded."""
    double = type_name(op.results[0].type) == "double"
    return Expression(f"1.0 / sqrt({given[0].text})" if double else f"1.0f / sqrtf({given[0].text})", PRODUCT)


def float_extreme(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return the larger or the smaller of two floats; NaN if one is NaN; of zeros, -0 is less than +0."""
    c, word = type_name(op.results[0].type), op.name[6:9]
    sign, zero = (">", "signbit(a)") if word == "max" else ("<", "signbit(b)")
    body = f"return a != a ? a : b != b ? b : a == b ? ({zero} ? b : a) : a {sign} b ? a : b;"
    return Expression(call(helpers, f"{word}_{c}", c, f"{c} a, {c} b", body, given))


def leading_zeros(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return the number of leading zeros; for 0 the width."""
    width, c = bits(op.results[0].type), type_name(op.results[0].type)
    test = f"count < {width} && ((value >> ({width - 1} - count)) & 1) == 0"
    body = f"{c} count = 0;\n    while ({test})\n        ++count;\n    return count;"
    return Expression(call(helpers, f"leading_zeros_{width}", c, f"{c} value", body, given), ATOM, 0, width)


def absolute(helpers: Helpers, op: Operation, given: Given) -> Expression:
    """Return the absolute value; the lowest number is unchanged."""
    type, c = op.results[0].type, type_name(op.results[0].type)
    body = f"return value < 0 ? ({c})(0 - (uint{bits(type)}_t)value) : value;"
    return full(call(helpers, f"absolute_{bits(type)}", c, f"{c} value", body, given), type)


Row = Callable[[Helpers, Operation, Given], Expression]

ROWS: Mapping[str, Row] = {
    **dict.fromkeys(ARITHMETIC, arithmetic),
    **dict.fromkeys(("arith.andi", "arith.ori", "arith.xori"), bitwise),
    **dict.fromkeys(("arith.shli", "arith.shrsi", "arith.shrui"), shift),
    **dict.fromkeys(("arith.divsi", "arith.divui", "arith.remsi", "arith.remui"), quotient),
    **dict.fromkeys(("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"), extreme),
    **dict.fromkeys(("arith.extsi", "arith.extui"), extend),
    **dict.fromkeys(FLOAT_SIGNS, float_arithmetic),
    **dict.fromkeys(
        ("arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "arith.extf", "arith.truncf"), convert
    ),
    **dict.fromkeys(LIBRARY, library),
    **dict.fromkeys(("arith.maximumf", "arith.minimumf"), float_extreme),
    "arith.trunci": narrow,
    "arith.index_cast": index_cast,
    "arith.cmpi": compare,
    "arith.cmpf": compare_floats,
    "arith.select": select,
    "arith.constant": constant,
    "arith.negf": negate,
    "arith.bitcast": bit_cast,
    "math.rsqrt": root,
    "math.ctlz": leading_zeros,
    "math.absi": absolute,
}
"""The functions that return the expressions of ops without side effects."""
