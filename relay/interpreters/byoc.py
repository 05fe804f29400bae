"""Meaning of the `byoc` ops: edges pass the value, a region means its body, whoever will compile it."""

from __future__ import annotations

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

from relay.dialects import byoc
from relay.dialects.attributes import Array
from relay.interpreters.meaning import Meanings


def boundary(op: byoc.Boundary, value: Array) -> Array:
    return value


MEANINGS: Meanings = {byoc.CompilerBeginOp: boundary, byoc.CompilerEndOp: boundary}


@register_impls
class RegionFunctions(InterpreterFunctions):
    """`byoc.region`, `byoc.composite` and their terminator, for xDSL's interpreter."""

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
