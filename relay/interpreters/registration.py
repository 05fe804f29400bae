"""Conversion of op meanings to xDSL's `InterpreterFunctions`. A separate module, since builds do not need it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.interpreters.func import FuncFunctions
from xdsl.ir import Operation

from relay.dialects import byoc
from relay.interpreters.meaning import Meaning, Meanings, apply


def register_meanings(interpreter: Interpreter, kinds: Mapping[str, Meanings]) -> None:
    """Register implementations in xDSL's interpreter: a class for each entry of `kinds` (name: meanings), one for
    `byoc` regions, and one for functions."""
    classes = [interpreter_functions(f"{kind}Functions", rows) for kind, rows in kinds.items()]
    for each in (*classes, RegionFunctions):
        interpreter.register_implementations(each())
    interpreter.register_implementations(FuncFunctions(), override=True)  # xDSL's register_implementations has it, too


def interpreter_functions(name: str, meanings: Meanings) -> type[InterpreterFunctions]:
    """Create a class with the name `name` that implements every op in `meanings`, a mapping from op classes to numpy
    functions, for xDSL's `Interpreter`."""

    def method(op_type: type[Operation], meaning: Meaning) -> object:
        def run(
            functions: InterpreterFunctions, interpreter: Interpreter, op: Operation, args: PythonValues
        ) -> PythonValues:
            with np.errstate(all="ignore"):
                return apply(meaning, op, args)

        return impl(op_type)(run)

    members: dict[str, Any] = {t.name.replace(".", "_"): method(t, meaning) for t, meaning in meanings.items()}
    return register_impls(type(name, (InterpreterFunctions,), members))


@register_impls
class RegionFunctions(InterpreterFunctions):
    """xDSL's implementation of `byoc.region`, `byoc.composite` and `byoc.yield`: a region computes its body, whichever
    compiler takes it."""

    @impl(byoc.RegionOp)
    def region(self, interpreter: Interpreter, op: byoc.RegionOp, args: PythonValues) -> PythonValues:
        return interpreter.run_ssacfg_region(op.body, args, op.name)

    @impl(byoc.CompositeOp)
    def composite(self, interpreter: Interpreter, op: byoc.CompositeOp, args: PythonValues) -> PythonValues:
        return interpreter.run_ssacfg_region(op.body, args, op.name)

    @impl_terminator(byoc.YieldOp)
    def yield_(
        self, interpreter: Interpreter, op: byoc.YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        return ReturnedValues(args), ()
