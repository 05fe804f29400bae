"""The `byoc` dialect: regions for external compilers ("bring your own codegen"), before they are outlined as
functions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SingleBlockImplicitTerminator
from xdsl.utils.exceptions import VerifyException

from relay.dialects.op import TENSOR, TensorOp, Type, tensor


class Boundary(TensorOp):
    """Marks an edge between the host and an external compiler's region; the value passes unchanged."""

    input = operand_def(TENSOR)
    compiler = prop_def(StringAttr)
    result = result_def(TENSOR)
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Type]:
        return [tensor(self.input)]


@irdl_op_definition
class CompilerBeginOp(Boundary):
    """Marks a value that enters a region of `compiler`."""

    name = "byoc.compiler_begin"


@irdl_op_definition
class CompilerEndOp(Boundary):
    """Marks a value that leaves a region of `compiler`."""

    name = "byoc.compiler_end"


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a `byoc.region` or a `byoc.composite` with its results."""

    name = "byoc.yield"
    values = var_operand_def(Attribute)
    traits = traits_def(IsTerminator())
    assembly_format = "($values^ `:` type($values))? attr-dict"


class Body(IRDLOperation):
    """An op with a region isolated from above: its block's arguments are the op's operands, `byoc.yield` gives the op's
    results."""

    inputs = var_operand_def(Attribute)
    body = region_def("single_block")
    outputs = var_result_def(Attribute)
    traits = traits_def(Pure(), IsolatedFromAbove(), SingleBlockImplicitTerminator(YieldOp))

    def verify_(self) -> None:
        if tuple(a.type for a in self.body.block.args) != tuple(self.operand_types):
            raise VerifyException(f"{self.name}: the block's arguments must have the operands' types")
        end = self.body.block.last_op
        if not isinstance(end, YieldOp) or tuple(end.operand_types) != tuple(self.result_types):
            raise VerifyException(f"{self.name}: byoc.yield must give values of the result types")


@irdl_op_definition
class RegionOp(Body):
    """A region that `compiler` compiles, before it is outlined as a function."""

    name = "byoc.region"
    compiler = prop_def(StringAttr)
    assembly_format = "$compiler `(` $inputs `)` attr-dict-with-keyword `:` functional-type(operands, results) $body"


@irdl_op_definition
class CompositeOp(Body):
    """The ops that one entry of a compiler's pattern table matched.

    `composite` is "COMPILER.ENTRY"; `partitioned_from_pattern` lists the matched ops' names in their order, each
    followed by "_": "qnn.conv2d_nn.bias_add_qnn.requantize_" (`relay.` is left out, as Relay spells them).
    """

    name = "byoc.composite"
    composite = prop_def(StringAttr)
    partitioned_from_pattern = prop_def(StringAttr)
    assembly_format = (
        "$composite `from` $partitioned_from_pattern `(` $inputs `)` attr-dict-with-keyword `:`"
        " functional-type(operands, results) $body"
    )


Byoc = Dialect("byoc", [CompilerBeginOp, CompilerEndOp, RegionOp, CompositeOp, YieldOp])
