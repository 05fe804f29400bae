"""The result of an external compiler for a function, stored in attributes of the function, which is then only declared.

The declaration `func.func private @f(tensors) -> tensors` has the attributes `compiler` and `global_symbol` (strings),
and

- `byoc.artifact`: the compiled bytes, as a tensor of `ui8`;
- `byoc.types`: the function's type, kept because lowered functions are signless and take memrefs;
- `byoc.version`: the compiler's version; `byoc.requirement`: the pip requirement that installs its loader, if known;
- `byoc.params`: constants of the function that the executable stores, by name;
- `byoc.sources`: source texts (as bytes) by kind;
- `byoc.device`: the prefix of the names of the C functions that run the function, for exported code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, FunctionType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from relay.dialects.attributes import Array, elements, to_numpy
from relay.errors import Malformed

COMPILER = "compiler"
SYMBOL = "global_symbol"
ARTIFACT = "byoc.artifact"


@dataclass(frozen=True, eq=False)
class CompiledFunction:
    """The result of an external compiler for one function."""

    symbol: str
    compiler: str
    version: str
    types: FunctionType
    """The type of the compiled symbol: that of the function, with the workspace (scratch memory) added as the last
    result, since results are buffers that the caller passes."""
    data: Array
    params: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    """Constants that the executable stores for the function, as elements attributes by name."""
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    requirement: str = ""
    device: str = ""


def symbol_of(function: FuncOp) -> str:
    """The name of the function in the compiled code."""
    symbol = function.attributes.get(SYMBOL)
    return symbol.data if isinstance(symbol, StringAttr) else function.sym_name.data


def declare(function: FuncOp, made: CompiledFunction) -> FuncOp:
    """A declaration that replaces the function and holds the compiled result in its attributes."""
    name = function.sym_name.data
    declaration = FuncOp.external(name, made.types.inputs.data, made.types.outputs.data)
    declaration.location = function.location
    declaration.attributes.update(function.attributes)
    declaration.attributes.update(
        {
            COMPILER: StringAttr(made.compiler),
            SYMBOL: StringAttr(made.symbol),
            ARTIFACT: elements(made.data, label=made.symbol),
            "byoc.types": made.types,
            "byoc.version": StringAttr(made.version),
        }
    )
    if made.params:
        declaration.attributes["byoc.params"] = DictionaryAttr(dict(made.params))
    if made.sources:
        texts = {kind: text.encode() for kind, text in made.sources.items()}
        declaration.attributes["byoc.sources"] = DictionaryAttr(
            {
                kind: elements(np.frombuffer(text, np.uint8), label=f"{made.symbol}.{kind}")
                for kind, text in texts.items()
            }
        )
    if made.requirement:
        declaration.attributes["byoc.requirement"] = StringAttr(made.requirement)
    if made.device:
        declaration.attributes["byoc.device"] = StringAttr(made.device)
    return declaration


def compiler_of(function: FuncOp) -> str | None:
    """The name of the external compiler that the function is assigned to; None if relay compiles it. Raises
    Malformed."""
    if COMPILER not in function.attributes:
        return None
    return _text(function, COMPILER)


def is_compiled(function: FuncOp) -> bool:
    """Whether the function is a declaration that holds an external compiler's result."""
    return ARTIFACT in function.attributes and not function.body.blocks


def read(function: FuncOp) -> CompiledFunction:
    """The compiled result that the function's attributes hold. Raises Malformed if an attribute is missing or has
    another type."""
    where = f"function {function.sym_name.data}"
    types, data = function.attributes.get("byoc.types"), function.attributes.get(ARTIFACT)
    if not isinstance(types, FunctionType) or data is None:
        raise Malformed(where, f"has no byoc.types or {ARTIFACT}", "run compile-external on the partitioned module")
    array = to_numpy(data)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise Malformed(where, f"{ARTIFACT} is no tensor of ui8")
    symbol = _text(function, SYMBOL) if SYMBOL in function.attributes else function.sym_name.data
    requirement, device = (
        _text(function, key) if key in function.attributes else "" for key in ("byoc.requirement", "byoc.device")
    )
    version = _text(function, "byoc.version")
    sources = {kind: _decoded(to_numpy(text), where) for kind, text in _rows(function, "byoc.sources").items()}
    params = _rows(function, "byoc.params")
    compiler = _text(function, COMPILER)
    return CompiledFunction(symbol, compiler, version, types, array, params, sources, requirement, device)


def _decoded(text: Array, where: str) -> str:
    try:
        return text.tobytes().decode()
    except UnicodeDecodeError:
        raise Malformed(where, "byoc.sources are no texts") from None


def _text(function: FuncOp, key: str) -> str:
    attr = function.attributes.get(key)
    if not isinstance(attr, StringAttr):
        raise Malformed(f"function {function.sym_name.data}", f"{key} is no string")
    return attr.data


def _rows(function: FuncOp, key: str) -> dict[str, Attribute]:
    attr = function.attributes.get(key, DictionaryAttr({}))
    if not isinstance(attr, DictionaryAttr):
        raise Malformed(f"function {function.sym_name.data}", f"{key} is no dictionary")
    return dict(attr.data)
