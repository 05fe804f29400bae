"""Algebraic rules of `simplify` as data: a term, and its replacement, whose results are equal to the last bit."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from relay.dialects import relay
from relay.dialects.attributes import dtype_of
from relay.dialects.op import TensorOp, tensor
from relay.transforms.expansion import Expansion

KINDS = {relay.UnaryOp, relay.BinaryOp, relay.WhereOp}
OPS = {
    op.name.removeprefix("relay."): cast(type[TensorOp], op)
    for op in relay.Relay.operations
    if not KINDS.isdisjoint(op.mro())
}


@dataclass(frozen=True)
class Rule:
    """A rewrite rule: two terms that consist of elementwise op names and variables. `kinds`: the letters (numpy's
    `dtype.kind`) of the element types for which the rule holds."""

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
    Rule("add(negative(x), y)", "subtract(y, x)"),
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


def match(term: ast.expr, value: SSAValue, found: dict[str, SSAValue]) -> bool:
    """Whether a value matches the term; the values of the term's variables are stored in `found`."""
    if isinstance(term, ast.Name):
        return found.setdefault(term.id, value) is value
    assert isinstance(term, ast.Call) and isinstance(term.func, ast.Name)
    owner = value.owner
    return (
        isinstance(owner, Operation)
        and isinstance(owner, OPS[term.func.id])
        and all(match(part, operand, found) for part, operand in zip(term.args, owner.operands, strict=True))
    )


def build(term: ast.expr, new: Expansion, found: dict[str, SSAValue]) -> SSAValue:
    """Build the ops of a term, a Python expression such as `add(x, multiply(y, z))`, and return its value. `found`: the
    value of each variable."""
    if isinstance(term, ast.Name):
        return found[term.id]
    assert isinstance(term, ast.Call) and isinstance(term.func, ast.Name)
    return new.value(OPS[term.func.id], *(build(part, new, found) for part in term.args))


class Algebra(RewritePattern):
    """Applies the first rule of `RULES` that matches and keeps the result type."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        for rule in BY_ROOT.get(op.name, ()):
            found = dict[str, SSAValue]()
            if not match(rule.terms[0], op.results[0], found):
                continue
            if dtype_of(tensor(op.results[0]).element_type).kind not in rule.kinds:
                continue
            new = Expansion(op)
            result = build(rule.terms[1], new, found)
            if result.type == op.results[0].type:
                new.replace(rewriter, result)
                return


BY_ROOT: dict[str, list[Rule]] = {}
for each in RULES:
    BY_ROOT.setdefault(f"relay.{each.root}", []).append(each)
