"""Functions of external compilers on the way down: calls of declarations, then calls through a table of addresses.

A call takes the buffers of the inputs, then those of the outputs. The table has two words for each function that is
called, its address and its context; native code gets it behind the arena.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation

from relay import artifact
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.op import is_tensor
from relay.errors import Malformed, Unsupported
from relay.transforms.location import words

VIEWS = memref.CollapseShapeOp | memref.ExpandShapeOp | memref.SubviewOp


def called(module: ModuleOp) -> dict[str, FuncOp]:
    """The external functions that are called, by name, in the module's order: that of the table.

    Raises Unsupported for a call of a function that is only declared, and that no compiler made.
    """
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    names = {op.callee.string_value() for op in module.walk() if isinstance(op, CallOp)}
    found: dict[str, FuncOp] = {}
    for function in functions:
        if function.body.blocks or function.sym_name.data not in names:
            continue
        if not artifact.is_compiled(function):
            source = words(function.location)
            where = f"{source}: function {function.sym_name.data}" if source else f"function {function.sym_name.data}"
            raise Unsupported(where, "is only declared", "give it a body, or an external compiler")
        found[function.sym_name.data] = function
    return found


@dataclass(frozen=True)
class Table:
    """How native code gets at external functions: the number of each, and who needs the table for them."""

    numbers: Mapping[str, int]
    users: frozenset[str]
    """The functions that call an external one, or one that does, and the public ones: each takes the table."""


NOBODY = Table({}, frozenset())


def table(module: ModuleOp) -> Table:
    """The table of a module; nobody takes it if no external function is called."""
    numbers = {name: number for number, name in enumerate(called(module))}
    if not numbers:
        return NOBODY
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]
    users = {function.sym_name.data for function in functions if function.sym_visibility is None}
    calls = {function.sym_name.data: callees(function) for function in functions}
    while more := {name for name, callees in calls.items() if callees & (users | numbers.keys())} - users:
        users |= more
    return Table(numbers, frozenset(users))


def callees(function: FuncOp) -> set[str]:
    """The functions that it calls."""
    return {op.callee.string_value() for op in function.walk() if isinstance(op, CallOp)}


def describe(module: ModuleOp, params: dict[str, Array]) -> list[dict[str, Any]]:
    """The rows of the graph's `externals`; the constants that they need are added to `params`."""
    rows: list[dict[str, Any]] = []
    for name, made in _made(module).items():
        row: dict[str, Any] = {
            "symbol": made.symbol,
            "compiler": made.compiler,
            "version": made.version,
            "inputs": [_form(type) for type in made.types.inputs],
            "outputs": [_form(type) for type in made.types.outputs],
            "params": {},
            "arguments": _arguments(module, name),
        }
        for key, value in made.params.items():
            array = to_numpy(value)
            row["params"][key] = [_keep(params, key, array), list(array.shape), str(array.dtype)]
        if made.requirement:
            row["requirement"] = made.requirement
        rows.append(row)
    return rows


def artifacts(module: ModuleOp) -> dict[str, bytes]:
    """What the compilers made, by symbol."""
    return {made.symbol: made.data.tobytes() for made in _made(module).values()}


def sources(module: ModuleOp) -> dict[str, Callable[[], str]]:
    """The texts that the compilers gave with it, as `SYMBOL.KIND`."""
    found: dict[str, Callable[[], str]] = {}
    for made in _made(module).values():
        for kind, text in made.sources.items():
            found[f"{made.symbol}.{kind}"] = partial(str, text)
    return found


def _made(module: ModuleOp) -> dict[str, artifact.Made]:
    found = {name: artifact.read(function) for name, function in called(module).items()}
    names: dict[str, str] = {}
    for name, made in found.items():
        if (other := names.setdefault(made.symbol, name)) != name:
            raise Malformed(f"function {name}", f"has the global_symbol {made.symbol}, as {other} has")
    return found


def _form(type: Attribute) -> list[Any]:
    """Shape and dtype of a tensor, as the graph tells them."""
    if not is_tensor(type):
        raise Unsupported(f"external function: {type}", "is no tensor")
    return [list(type.get_shape()), str(dtype_of(type.element_type))]


def _keep(params: dict[str, Array], name: str, array: Array) -> str:
    """The name under which the executable keeps a constant: equal ones of a name once."""
    count = 0
    while (key := f"{name}#{count}" if count else name) in params:
        known = params[key]
        if known.shape == array.shape and known.dtype == array.dtype and known.tobytes() == array.tobytes():
            return key
        count += 1
    params[key] = array
    return key


def _arguments(module: ModuleOp, name: str) -> list[int]:
    """The arguments of public functions, by position, that calls of an external function may get."""
    found: set[int] = set()
    for op in module.walk():
        if isinstance(op, CallOp) and op.callee.string_value() == name:
            for value in op.arguments:
                while isinstance(value.owner, VIEWS):
                    value = value.owner.operands[0]
                if isinstance(value, BlockArgument):
                    found |= {value.index} if is_public(op.parent_op()) else set(range(tensors_of(module)))
    return sorted(found)


def is_public(function: Operation | None) -> bool:
    """Whether this is a function that users call."""
    return isinstance(function, FuncOp) and function.sym_visibility is None


def tensors_of(module: ModuleOp) -> int:
    """The most arguments that a public function has."""
    return max(len(f.function_type.inputs) for f in module.body.block.ops if isinstance(f, FuncOp) and is_public(f))
