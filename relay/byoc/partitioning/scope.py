"""What partitioning looks at: the functions of the host, their blocks, the ops that a compiler may take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator, is_side_effect_free

from relay.byoc import settings
from relay.byoc.compiler import Compiler
from relay.dialects import byoc
from relay.dialects.relay import ConstantOp
from relay.errors import InvalidArgument, Malformed

COMPILER = "compiler"
SYMBOL = "global_symbol"

Names = tuple[str, ...] | str


def partitioned(function: FuncOp) -> bool:
    """Whether the function is an external compiler's, and not one whose ops a compiler is to be asked for."""
    return COMPILER in function.attributes and SYMBOL in function.attributes


def functions(module: ModuleOp) -> list[FuncOp]:
    """The functions with a body that are the host's, in the module's order."""
    found = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    return [function for function in found if function.body.blocks and not partitioned(function)]


def symbols(module: ModuleOp) -> dict[str, FuncOp]:
    """Every function by name."""
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}


def blocks(op: Operation) -> Iterator[Block]:
    """Every block inside, those of control flow too, but not what a compiler has taken."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.ops:
                if not isinstance(inner, byoc.Body):
                    yield from blocks(inner)


def eligible(op: Operation) -> bool:
    """Whether a compiler may be asked for the op: it computes something, and its results are all that it does."""
    return (
        not isinstance(op, ConstantOp | byoc.Boundary | byoc.RegionOp)
        and (isinstance(op, byoc.CompositeOp) or not op.regions)
        and not op.has_trait(IsTerminator)
        and bool(op.results)
        and is_side_effect_free(op)
    )


def used(op: Operation) -> bool:
    """Whether anything needs the op."""
    return any(result.uses.get_length() for result in op.results)


def variables(op: Operation) -> list[SSAValue]:
    """The operands that are no constants."""
    return [value for value in op.operands if not isinstance(value.owner, ConstantOp)]


def source(value: SSAValue) -> SSAValue:
    """The value without the boundaries that it passes."""
    while isinstance(value, OpResult) and isinstance(value.owner, byoc.Boundary):
        value = value.owner.input
    return value


def captured(op: Operation) -> Iterator[SSAValue]:
    """The operands of the op and of the ops inside it."""
    for inner in op.walk():
        yield from inner.operands


def holder(op: Operation, block: Block) -> Operation | None:
    """The op of the block that is this op or holds it; None if the block does not hold it."""
    found: Operation | None = op
    while found is not None and found.parent is not block:
        found = found.parent_op()
    return found


def targets(names: Names, function: FuncOp, where: str) -> tuple[str, ...]:
    """The compilers asked for a function: those of its attribute `compiler` if it has one, else those named.

    Raises Malformed if that attribute is no name.
    """
    attr = function.attributes.get(COMPILER)
    if attr is None:
        return (names,) if isinstance(names, str) else tuple(names)
    if not isinstance(attr, StringAttr):
        raise Malformed(f"{where}, function {function.sym_name.data}", f"its attribute compiler is {attr}, no name")
    return (attr.data,)


class Compilers:
    """The compilers that a pass asks, each made once, with the module's options and under its numerics."""

    def __init__(self, module: ModuleOp, where: str, numerics: str = ""):
        if numerics not in ("", settings.STRICT, settings.RELAXED):
            hint = f"it is '{settings.STRICT}' or '{settings.RELAXED}'"
            raise InvalidArgument(where, f"numerics is '{numerics}'", hint)
        self.module, self.where = module, where
        self.strict = numerics == settings.STRICT
        self.made: dict[str, Compiler] = {}

    def __getitem__(self, name: str) -> Compiler:
        if name not in self.made:
            compiler = settings.compiler_of(self.module, name, self.where)
            self.made[name] = settings.strict(compiler) if self.strict else compiler
        return self.made[name]

    def of(self, names: Sequence[str]) -> list[Compiler]:
        """The compilers of these names, each once."""
        return [self[name] for name in dict.fromkeys(names)]
