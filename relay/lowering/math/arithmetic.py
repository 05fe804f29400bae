"""Emits arithmetic on scalars, or lane by lane on vectors, that replaces an operation."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, i16, i32
from xdsl.ir import Attribute, Operation, SSAValue

from relay.dialects.attributes import scalar_attr
from relay.dialects.op import created
from relay.lowering.builder import Before
from relay.lowering.scheduling.body import dense_vector
from relay.lowering.shaped import scalar_of, vector_of
from relay.target import Target

SCALED = 16
"""The number of lanes of AVX-512's instructions that multiply floats by powers of two, or invert them approximately."""
CURRENT_ROUNDING = 4
"""The immediate for the current rounding mode, which all other ops use."""


class Arithmetic:
    """Emits scalar ops, or ops on vectors of `lanes` lanes, before an op, for a target."""

    def __init__(self, before: Operation, lanes: int, target: Target):
        self.b, self.lanes, self.target = Before(before), lanes, target

    def type(self, element: Attribute) -> Attribute:
        """Return the type of the values that are computed: a vector of `lanes` elements of this type, or the type
        itself for scalars."""
        return vector_of(element, self.lanes) if self.lanes else element

    def add(self, op: Operation) -> SSAValue:
        """Emit an op; return its result."""
        return self.b.add(op).results[0]

    def number(self, value: float, element: Attribute) -> SSAValue:
        """Return a constant, in every lane."""
        attr = dense_vector([value] * self.lanes, element) if self.lanes else scalar_attr(value, element)
        return self.add(created(arith.ConstantOp, (), [self.type(element)], {"value": attr}))

    def cast(self, kind: type[Operation], value: SSAValue, element: Attribute) -> SSAValue:
        """Emit a conversion to an element type."""
        return self.add(created(kind, [value], [self.type(element)]))

    def compare(self, a: SSAValue, predicate: str, b: SSAValue) -> SSAValue:
        """Emit a comparison of floats."""
        return self.b.compare(a, predicate, b)

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """Emit a selection between two values."""
        return self.b.select(condition, a, b)

    def plus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Emit `a + b` of floats."""
        return self.add(arith.AddfOp(a, b))

    def minus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Emit `a - b` of floats."""
        return self.add(arith.SubfOp(a, b))

    def times(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Emit `a * b` of floats."""
        return self.add(arith.MulfOp(a, b))

    def over(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Emit `a / b` of floats."""
        return self.add(arith.DivfOp(a, b))

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """Emit `a * b + c`, rounded once."""
        return self.add(math.FmaOp(a, b, c))

    def fused(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """Emit `a * b + c`, rounded once if the target has an instruction for it, else twice."""
        return self.fma(a, b, c) if self.target.fuses else self.plus(self.times(a, b), c)

    def scaled(self, x: SSAValue, power: SSAValue) -> SSAValue | None:
        """Emit `x * 2^power` of floats, rounded once; return None if no instruction does it."""
        if not self.has_instructions(x):
            return None
        b = self.b
        control = [b.constant(-1, i16), b.constant(CURRENT_ROUNDING, i32)]
        pairs = zip(self.parts(x), self.parts(power), strict=True)
        wide, name = vector_of(f32, SCALED), "llvm.x86.avx512.mask.scalef.ps.512"
        return b.joined([b.intrinsic(name, [a, n, a, *control], wide) for a, n in pairs])

    def about_one_over(self, x: SSAValue) -> SSAValue | None:
        """Emit `1 / x` with a relative error below 2^-14; return None if no instruction does it."""
        if not self.has_instructions(x):
            return None
        b = self.b
        mask, wide, name = b.constant(-1, i16), vector_of(f32, SCALED), "llvm.x86.avx512.rcp14.ps.512"
        return b.joined([b.intrinsic(name, [a, a, mask], wide) for a in self.parts(x)])

    def has_instructions(self, x: SSAValue) -> bool:
        """Whether the value is a float32 vector of a multiple of 16 lanes and the target has AVX-512, so that its
        instructions for approximate reciprocals (vrcp14ps) and for scaling by powers of two (vscalefps) apply."""
        return self.target.whole_vectors and self.lanes > 0 and self.lanes % SCALED == 0 and scalar_of(x.type) == f32

    def parts(self, x: SSAValue) -> list[SSAValue]:
        """Divide a vector into vectors of 16 lanes."""
        return [self.b.shuffle(x, x, range(first, first + SCALED)) for first in range(0, self.lanes, SCALED)]

    def polynomial(self, x: SSAValue, coefficients: Sequence[float], element: Attribute) -> SSAValue:
        """Emit the polynomial `c0 + x * (c1 + x * ...)`."""
        total = self.number(coefficients[-1], element)
        for coefficient in reversed(coefficients[:-1]):
            total = self.fused(total, x, self.number(coefficient, element))
        return total

    def polynomial_by_halves(
        self, x: SSAValue, square: SSAValue, coefficients: Sequence[float], element: Attribute
    ) -> SSAValue:
        """Emit the polynomial `(c0 + c1 x) + x^2 ((c2 + c3 x) + x^2 ...)`, whose longest chain of dependent operations
        is half that of Horner's method (`polynomial`). `square`: the value of `x^2`."""
        pairs = [self.polynomial(x, coefficients[n : n + 2], element) for n in range(0, len(coefficients), 2)]
        total = pairs[-1]
        for pair in reversed(pairs[:-1]):
            total = self.fused(total, square, pair)
        return total
