"""The pass `raise-ops`: replaces the elementwise formulas that exporters write for softmax, sigmoid and hard-swish by
the ops for them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, f32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from relay.dialects import relay
from relay.dialects.attributes import to_numpy
from relay.dialects.op import tensor
from relay.passes import Pass
from relay.transforms.algebra import OPS, Rule
from relay.transforms.dead_ops import erase_dead
from relay.transforms.expansion import Expansion, known_numbers
from relay.transforms.legalization import settle

GATE = "clip(add(x, 3), 0, 6)"
HARD_SWISH = f"multiply(x, multiply({GATE}, {np.float32(1 / 6)}))"
RULES = [
    Rule("divide(exp(subtract(x, max(x))), sum(exp(subtract(x, max(x)))))", "softmax(x)", "f"),
    Rule("divide(exp(x), sum(exp(x)))", "softmax(x)", "f"),
    Rule("divide(1, add(1, exp(negative(x))))", "sigmoid(x)", "f"),
    Rule(f"multiply(x, divide({GATE}, 6))", HARD_SWISH, "f"),
    Rule(f"divide(multiply(x, {GATE}), 6)", HARD_SWISH, "f"),
]
"""Rules from the terms that exporters write to the op that they stand for. A term has elementwise ops, `clip`, and
`sum` and `max` along one axis that is kept with size 1."""
REDUCTIONS: dict[str, type[relay.ReduceOp]] = {"max": relay.MaxOp, "sum": relay.SumOp}
COMMUTE = (relay.AddOp, relay.MultiplyOp)
BY_ROOT = {f"relay.{root}": [rule for rule in RULES if rule.root == root] for root in {rule.root for rule in RULES}}


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


class Raise(RewritePattern):
    """Replaces a softmax, sigmoid or hard swish that is written as several float32 ops, by the first of `RULES` that
    matches and keeps the result type."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        for rule in BY_ROOT.get(op.name, ()):
            written = Written()
            if tensor(op.results[0]).element_type != f32 or not written.match(rule.terms[0], op.results[0]):
                continue
            new = Expansion(op)
            result = written.build(rule.terms[1], new)
            if result.type == op.results[0].type:
                new.replace(rewriter, result)
                return


@dataclass(frozen=True)
class RaiseOps(Pass):
    """Replace softmax, sigmoid and hard swish that an exporter decomposed by single ops.

    Results differ by a few units in the last place. A softmax that was written without its maximum no longer overflows.
    `from_onnx` runs it.
    """

    name: ClassVar[str] = "raise-ops"
    invalidates = ()
    why = "raises subgraphs that exporters write out to single ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        settle(op, [Raise()])
        erase_dead(op.walk())
