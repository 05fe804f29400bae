"""Conditions of branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, i1
from xdsl.ir import Block, SSAValue

from relay.dialects.op import is_tensor
from relay.frontend.importing.tensors import TensorBuilder

_DECISIONS: ContextVar[list[str] | None] = ContextVar("_DECISIONS", default=None)


@contextmanager
def decisions() -> Generator[list[str]]:
    """A context that yields a list, to which importers append the place in the file of each branch and loop whose
    condition they evaluate at import."""
    token = _DECISIONS.set(found := [])
    try:
        yield found
    finally:
        _DECISIONS.reset(token)


def truth(importer: TensorBuilder, value: SSAValue, block: Block) -> SSAValue:
    """The only element of a boolean tensor, as an i1 extracted at the end of a block."""
    dims = value.type.get_shape() if is_tensor(value.type) else (2,)
    if value.type != TensorType(i1, dims) or any(size != 1 for size in dims):
        raise importer.at.malformed(f"its condition is {value.type}, not one boolean")
    outer, importer.block = importer.block, block
    zero = [arith.ConstantOp(IntegerAttr(0, IndexType()))] if dims else []
    places = [importer.append(each)[0] for each in zero] * len(dims)
    (result,) = importer.append(tensor.ExtractOp(value, places, i1))
    importer.block = outer
    return result


def known_truth(importer: TensorBuilder, value: SSAValue) -> bool | None:
    """The value of a condition with one element that follows from constants and shapes; None for any other condition.
    If a value is found inside the context `decisions`, the current place in the file is appended to its list."""
    found = importer.known(value)
    if found is None or found.size != 1:
        return None
    if (noted := _DECISIONS.get()) is not None:
        noted.append(importer.at.where)
    return bool(found.reshape(-1)[0])


def branched(
    importer: TensorBuilder, condition: SSAValue, branch: Callable[[int, Block], list[SSAValue]], hint: str = ""
) -> list[SSAValue]:
    """An `scf.if` with both branches of a condition; `branch(0, block)` builds the one for true, `branch(1, block)` the
    other, at the end of its block. Raises Unsupported, with the hint, if they do not yield the same types."""
    go = truth(importer, condition, importer.block)
    blocks, results = [Block(), Block()], list[list[SSAValue]]()
    for number, block in enumerate(blocks):
        results.append(branch(number, block))
        block.add_op(scf.YieldOp(*results[-1]))
    types = [[value.type for value in values] for values in results]
    if types[0] != types[1]:
        both = " and ".join(", ".join(map(str, each)) for each in types)
        why = "both must give the same types, because the condition is known at run time only"
        raise importer.at.unsupported(f"its branches give {both}", f"{why}; {hint}" if hint else why)
    return list(importer.append(scf.IfOp(go, types[0], [blocks[0]], [blocks[1]])))
