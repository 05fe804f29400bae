"""What callers of `from_tflite` ask for: the numerics, functions of custom operators, other outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TypeGuard

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.utils.hints import isa

from relay.arguments import every, mapping, shown, whole
from relay.errors import InvalidArgument
from relay.frontend.tflite.graph import Importer, tensor_type
from relay.frontend.tflite.model import Subgraph, Tensor
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.profile import Profile
from relay.frontend.tflite.profiles import PROFILES
from relay.frontend.tflite.schema import BUILTIN_OPERATORS
from relay.frontend.tflite.table import ANY, Convert, Row


def profile_of(numerics: object) -> Profile:
    """The numerics of that name."""
    if not isinstance(numerics, str) or numerics not in PROFILES:
        what = f"numerics {shown(numerics)} is unknown"
        raise InvalidArgument("from_tflite", what, f"use one of {', '.join(PROFILES)}")
    return PROFILES[numerics]


def custom_rows(custom_ops: object) -> dict[str, Row]:
    """The rows of the table for the custom operators of these codes."""
    found: dict[str, Row] = {}
    for code, function in mapping(custom_ops, "custom_ops", "{'Code': function}").items():
        where = f"custom_ops[{shown(code)}]"
        if code in BUILTIN_OPERATORS or code.startswith("CUSTOM:"):
            what = "is no code of a custom operator"
            raise InvalidArgument(where, what, "operators of TFLite's own stay as they are; 'X' is that of CUSTOM:X")
        if not _is_function(function):
            hint = "give a function of an Importer and a Node that returns a list of values"
            raise InvalidArgument(where, f"{shown(function)} is no function", hint)
        if not _takes_two(function):
            raise InvalidArgument(where, f"{shown(function)} takes other arguments", "give it two: importer, node")
        found[f"CUSTOM:{code}"] = Row((1, ANY), (0, ANY), (0, ANY), _checked(where, function))
    return found


def _is_function(value: object) -> TypeGuard[Convert]:
    return callable(value)


def _takes_two(function: Convert) -> bool:
    """Whether the function can be called with an importer and a node, as far as it says."""
    try:
        signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # one written in C that does not say
        return True
    return True


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence)


def _is_value(value: object) -> TypeGuard[SSAValue]:
    return isinstance(value, SSAValue)


def _is_list(value: object) -> bool:
    return not isinstance(value, str | Mapping)


def _fits(value: SSAValue, tensor: Tensor) -> bool:
    """Whether the value has the tensor's type; sizes that the file leaves open may be any."""
    wanted, found, dims = tensor_type(tensor), value.type, tensor.shape_signature
    if wanted is None or not isa(found, TensorType[Attribute]) or len(found.get_shape()) != len(dims):
        return False
    sizes = [size if free < 0 else free for size, free in zip(found.get_shape(), dims, strict=True)]
    return found == TensorType(wanted.element_type, sizes)


def _checked(where: str, function: Convert) -> Convert:
    """The function; what it returns, or does wrong, is its own fault and not the file's."""

    def convert(importer: Importer, node: Node) -> Sequence[SSAValue]:
        try:
            values: object = function(importer, node)
        except InvalidArgument as error:
            raise InvalidArgument(f"{node.where}, {where}", f"{error.where}: {error.what}", error.hint) from error
        hint = "return a list of one value per output, such as [op.result]"
        if not _is_sequence(values):
            raise InvalidArgument(f"{node.where}, {where}", f"returns {shown(values)}, which is no list", hint)
        found: list[SSAValue] = []
        for value in values:
            if not _is_value(value):
                raise InvalidArgument(f"{node.where}, {where}", f"returns {shown(value)}, which is no value", hint)
            found.append(value)
        if len(found) != len(node.operator.outputs):
            what = f"returns {len(found)} values, and the operator has {len(node.operator.outputs)} outputs"
            raise InvalidArgument(f"{node.where}, {where}", what, hint)
        for number, value in enumerate(found):
            if not _fits(value, node.output(number)):
                wanted = tensor_type(node.output(number))
                what = f"gives {value.type} for {node.output(number)}, which is {wanted} in the file"
                raise InvalidArgument(f"{node.where}, {where}", what, "cast or reshape the result")
            if isinstance(value, OpResult) and value.op.parent is None:
                what = f"returns a result of {value.op.name}, which is not in the module"
                raise InvalidArgument(f"{node.where}, {where}", what, "make ops by importer.emit")
        return found

    return convert


def wanted_tensors(graph: Subgraph, outputs: object, name: str) -> list[Tensor]:
    """The tensors to compute: the graph's outputs, or those of these names or numbers."""
    if outputs is None:
        return [graph.tensors[index] for index in graph.outputs]
    hint = "give a list of tensors' names or numbers"
    asked = every(outputs, "from_tflite, outputs", hint) if _is_list(outputs) else []
    if not asked:
        raise InvalidArgument("from_tflite", f"outputs is {shown(outputs)}", hint)
    indices = sorted({index for operator in graph.operators for index in operator.outputs} | {*graph.inputs})
    computed = [graph.tensors[index] for index in indices]
    found: list[Tensor] = []
    for wanted in map(whole, asked):
        if not isinstance(wanted, str | int) or isinstance(wanted, bool):
            raise InvalidArgument(f"outputs {shown(wanted)}", "is no name and no number", hint)
        matches = [tensor for tensor in computed if wanted in (tensor.name, tensor.index)]
        if len(matches) != 1:
            what = "names several tensors of" if matches else "names no computed tensor of"
            own = f"the graph's own outputs are {', '.join(repr(graph.tensors[i].name) for i in graph.outputs)}"
            raise InvalidArgument(f"outputs {wanted!r}", f"{what} {name}", own)
        found += matches
    return found
