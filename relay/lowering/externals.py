"""Functions of external compilers in lowered modules: calls of declarations, which become calls through a table of
addresses.

A call takes the buffers of the inputs, then those of the outputs. The table has two words for each function that is
called, its address and its context; native code gets it after the arena.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument

from relay import artifact
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.op import is_tensor
from relay.errors import Malformed, Unsupported
from relay.lowering.call_graph import CallGraph
from relay.lowering.shaped import root
from relay.transforms.location import function_of, words


def called(module: ModuleOp) -> dict[str, FuncOp]:
    """Return the external functions that are called, by name, in the order of their declarations in the module: the
    order of the table of addresses that native code gets. Raises Unsupported for a call of a declaration that no
    compiler has compiled, and for a call of an external function inside a kernel."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    if all(function.body.blocks for function in functions):
        return {}
    graph = CallGraph(module.walk())
    found: dict[str, FuncOp] = {}
    for function in functions:
        name = function.sym_name.data
        calls = graph.of(function)
        if function.body.blocks or not calls:
            continue
        source = words(function.location)
        where = f"{source}: function {name}" if source else f"function {name}"
        if not artifact.is_compiled(function):
            raise Unsupported(where, "is only declared", "give it a body, or an external compiler")
        holders = [holder for call in calls if (holder := function_of(call)) is not None]
        if inside := next((holder for holder in holders if holder.sym_visibility is not None), None):
            raise Unsupported(where, f"is called by the kernel {inside.sym_name.data}", "call it from @main")
        found[name] = function
    return found


def describe(module: ModuleOp, params: dict[str, Array]) -> list[dict[str, Any]]:
    """Return a description of each external function, for the entry `externals` of an executable's graph: its symbol,
    compiler, version, tensors and constants. The constants themselves are added to `params`."""
    rows: list[dict[str, Any]] = []
    every = compiled(module)
    graph = CallGraph(module.walk() if every else ())
    for name, made in every.items():
        row: dict[str, Any] = {
            "symbol": made.symbol,
            "compiler": made.compiler,
            "version": made.version,
            "inputs": [_form(type) for type in made.types.inputs],
            "outputs": [_form(type) for type in made.types.outputs],
            "params": {},
            "arguments": _arguments(graph, name),
        }
        for key, value in made.params.items():
            array = to_numpy(value)
            row["params"][key] = [_keep(params, key, array), list(array.shape), str(array.dtype)]
        if made.requirement:
            row["requirement"] = made.requirement
        rows.append(row)
    return rows


def artifacts(module: ModuleOp) -> dict[str, bytes]:
    """Return the compilers' artifacts, by symbol."""
    return {made.symbol: made.data.tobytes() for made in compiled(module).values()}


def sources(module: ModuleOp) -> dict[str, Callable[[], str]]:
    """Return the source texts that external compilers kept of their functions, by `SYMBOL.KIND` (the function's symbol
    and the kind of text), each as a function that returns the text."""
    found: dict[str, Callable[[], str]] = {}
    for made in compiled(module).values():
        for kind, text in made.sources.items():
            found[f"{made.symbol}.{kind}"] = partial(str, text)
    return found


def compiled(module: ModuleOp) -> dict[str, artifact.CompiledFunction]:
    """Return the compiled external functions that the module calls, by name, in the order in which the table passed to
    the native code contains their addresses. Raises Malformed if two of them have the same symbol."""
    found = {name: artifact.read(function) for name, function in called(module).items()}
    names: dict[str, str] = {}
    for name, made in found.items():
        if (other := names.setdefault(made.symbol, name)) != name:
            raise Malformed(f"function {name}", f"has the global_symbol {made.symbol}, as {other} has")
    return found


def _form(type: Attribute) -> list[Any]:
    """Return the shape and dtype of a tensor as `[[2, 3], "float32"]`, for the JSON description of an executable."""
    if not is_tensor(type):
        raise Unsupported(f"external function: {type}", "is no tensor")
    return [list(type.get_shape()), str(dtype_of(type.element_type))]


def _keep(params: dict[str, Array], name: str, array: Array) -> str:
    """Add a constant to `params` and return its key; equal constants with one name are added once."""
    count = 0
    while (key := f"{name}#{count}" if count else name) in params:
        known = params[key]
        if known.shape == array.shape and known.dtype == array.dtype and known.tobytes() == array.tobytes():
            return key
        count += 1
    params[key] = array
    return key


def _arguments(graph: CallGraph, name: str) -> list[int]:
    """Return the positions of the public function's arguments that are passed to an external function."""
    found: set[int] = set()
    for call in graph.by_callee.get(name, ()):
        for value in map(root, call.arguments):
            if isinstance(value, BlockArgument):
                found.add(value.index)
    return sorted(found)
