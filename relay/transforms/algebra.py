"""Algebraic rules of `simplify` as data: a term, and its replacement, whose results are equal to the last bit."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from relay.dialects import relay
from relay.dialects.attributes import dtype_of, to_numpy
from relay.dialects.op import TensorOp, tensor
from relay.transforms.expansion import Expansion, known_numbers

KINDS = {relay.UnaryOp, relay.BinaryOp, relay.WhereOp}
OPS = {
    op.name.removeprefix("relay."): cast(type[TensorOp], op)
    for op in relay.Relay.operations
    if not KINDS.isdisjoint(op.mro())
}


@dataclass(frozen=True)
class Rule:
    """A rewrite rule: two terms that consist of elementwise op names and variables; the operands of sums and products
    match in either order. `kinds`: the letters (numpy's `dtype.kind`) of the element types for which the rule
    holds."""

    before: str
    after: str
    kinds: str = "iuf"

    @cached_property
    def terms(self) -> tuple[ast.expr, ast.expr]:
        """The two terms as syntax trees."""
        return ast.parse(self.before, mode="eval").body, ast.parse(self.after, mode="eval").body

    @property
    def root(self) -> str:
        """The name of the op at the root of the first term."""
        return self.before.split("(")[0]


RULES = [
    Rule("negative(negative(x))", "x"),
    Rule("abs(abs(x))", "abs(x)"),
    Rule("abs(negative(x))", "abs(x)", "if"),
    Rule("add(x, negative(y))", "subtract(x, y)"),
    Rule("subtract(x, negative(y))", "add(x, y)"),
    Rule("multiply(negative(x), negative(y))", "multiply(x, y)"),
    Rule("maximum(x, x)", "x"),
    Rule("minimum(x, x)", "x"),
    Rule("maximum(maximum(x, y), y)", "maximum(x, y)", "iu"),
    Rule("minimum(minimum(x, y), y)", "minimum(x, y)", "iu"),
    Rule("maximum(minimum(x, y), x)", "x", "iu"),
    Rule("minimum(maximum(x, y), x)", "x", "iu"),
    Rule("where(c, x, x)", "x"),
    *(
        Rule(f"{outer}({inner}(x))", f"{inner}(x)", "f")
        for outer in ("floor", "ceil")
        for inner in ("floor", "ceil", "round")
    ),
    Rule("round(round(x))", "round(x)", "f"),
]


REDUCTIONS: dict[str, type[relay.ReduceOp]] = {"max": relay.MaxOp, "sum": relay.SumOp}
COMMUTE = (relay.AddOp, relay.MultiplyOp)


class Written:
    """A match of a value against a term, which is a formula as a Python expression. `found`: the value of each variable
    of the term; `axes`: the axes along which reductions in the term reduce."""

    def __init__(self) -> None:
        self.found: dict[str, SSAValue] = {}
        self.axes: set[int] = set()

    def match(self, term: ast.expr, value: SSAValue) -> bool:
        if isinstance(term, ast.Name):
            return self.found.setdefault(term.id, value) is value
        owner = value.owner
        if isinstance(term, ast.Constant):
            numbers = known_numbers(value)
            return numbers is not None and numbers.size == 1 and numbers.item() == _number(term)
        assert isinstance(term, ast.Call) and isinstance(term.func, ast.Name)
        if term.func.id == "clip":
            data, low, high = term.args
            return (
                isinstance(owner, relay.ClipOp)
                and (to_numpy(owner.a_min).item(), to_numpy(owner.a_max).item()) == (_number(low), _number(high))
                and self.match(data, owner.input)
            )
        if (kind := REDUCTIONS.get(term.func.id)) is not None:
            if not isinstance(owner, kind) or not owner.keepdims.value.data or len(owner.axes()) != 1:
                return False
            self.axes.update(owner.axes())
            return len(self.axes) == 1 and self.match(term.args[0], owner.input)
        return (
            isinstance(owner, Operation)
            and isinstance(owner, OPS[term.func.id])
            and (
                self.all(term.args, owner.operands)
                or (isinstance(owner, COMMUTE) and self.all(term.args, owner.operands[::-1]))
            )
        )

    def all(self, terms: Sequence[ast.expr], values: Sequence[SSAValue]) -> bool:
        """Match each value against the term (a formula, as a Python expression) at the same index, and return whether
        all match. If one does not, variables and axes that the others have bound (`found`, `axes`) are unbound
        again."""
        before = dict(self.found), set(self.axes)
        if all(self.match(term, value) for term, value in zip(terms, values, strict=True)):
            return True
        self.found, self.axes = before
        return False

    def build(self, term: ast.expr, new: Expansion) -> SSAValue:
        if isinstance(term, ast.Name):
            return self.found[term.id]
        if isinstance(term, ast.Constant):
            return new.constant_like(_number(term), self.found["x"])
        assert isinstance(term, ast.Call) and isinstance(term.func, ast.Name)
        if term.func.id == "softmax":
            (axis,) = self.axes
            properties = {"beta": FloatAttr(1.0, f32), "axis": IntegerAttr(axis, i64)}
            return new.value(relay.SoftmaxOp, self.found["x"], properties=properties)
        if term.func.id == "clip":
            data, low, high = term.args
            return new.clip(self.build(data, new), _number(low), _number(high))
        return new.value(OPS[term.func.id], *(self.build(each, new) for each in term.args))


def _number(term: ast.expr) -> float:
    return float(ast.literal_eval(term))


def by_root(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    """The rules by the name of the op at the root of their first terms, each list in the order of the rules."""
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(f"relay.{rule.root}", []).append(rule)
    return found


class Algebra(RewritePattern):
    """Applies the first rule of `RULES` that matches and keeps the result type."""

    BY_ROOT: ClassVar[Mapping[str, Sequence[Rule]]] = by_root(RULES)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        for rule in self.BY_ROOT.get(op.name, ()):
            written = Written()
            if not written.match(rule.terms[0], op.results[0]):
                continue
            if dtype_of(tensor(op.results[0]).element_type).kind not in rule.kinds:
                continue
            new = Expansion(op)
            result = written.build(rule.terms[1], new)
            if result.type == op.results[0].type:
                new.replace(rewriter, result)
                return
