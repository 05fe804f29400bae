"""Checks of importer options that all formats share: the file, shapes, outputs, custom operators.

In all functions, `importer` is the name of the called importer, such as `from_tflite`, and `file` the file's name in
errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from inspect import signature
from os import PathLike, fspath
from pathlib import Path
from typing import ParamSpec, TypeVar

from xdsl.ir import OpResult, SSAValue

from relay.arguments import every, is_sequence, mapping, positive, shown, whole
from relay.dialects.op import Type, compatible
from relay.errors import InvalidArgument, Malformed
from relay.files import name_of, open_file
from relay.frontend.importing.builder import Builder, Place, is_value
from relay.mapping import contents

MAX_ELEMENTS = 1 << 40
"""The maximum number of elements of a tensor."""
P = TypeVar("P", bound=Place)
T = TypeVar("T")
Given = ParamSpec("Given")
Source = bytes | bytearray | memoryview | str | PathLike[str]


def source(model: Source, importer: str) -> tuple[bytes | memoryview, str]:
    """The bytes of a model that is given as bytes or by path, and its name in errors."""
    if isinstance(model, bytes | bytearray | memoryview):
        return memoryview(model) if isinstance(model, bytearray) else model, name_of(model)
    try:
        path = Path(fspath(model))
        with open_file(path) as file:
            data = contents(file)
        return data if isinstance(data, bytes) else memoryview(data), path.name
    except (OSError, TypeError, ValueError) as error:
        raise InvalidArgument(importer, f"cannot read {model!r}: {error}", "pass bytes or a path") from error


def one_of(shapes: T | None, shape_dict: T | None) -> T | None:
    """The shapes of inputs, given under relay's or TVM's name of the option. Raises InvalidArgument if both are
    given."""
    if shapes is not None and shape_dict is not None:
        raise InvalidArgument("shape_dict", "is given, and so is shapes, which is the same", "leave one of them out")
    return shape_dict if shapes is None else shapes


def numerics_of(numerics: object, known: Collection[str], importer: str) -> str:
    """The name of the runtime whose integers are wanted. Raises InvalidArgument unless it is one of `known`."""
    if not isinstance(numerics, str) or numerics not in known:
        raise InvalidArgument(importer, f"numerics {shown(numerics)} is unknown", f"use one of {', '.join(known)}")
    return numerics


TVM_OPTIONS = {
    "shape": "write shapes={name: shape}",
    **dict.fromkeys(("dtype", "dtype_dict", "opset"), "it is the file's: leave it out"),
    **dict.fromkeys(("freeze_params", "convert_config"), "weights are constants of the module: leave it out"),
    "op_converter": "write custom_ops={name: function}",
}
"""Options of TVM's importers, and what to write instead."""


def by_name(importer: Callable[Given, T]) -> Callable[Given, T]:
    """Wrap an importer so that it takes options by name only. Options that are passed by position or by a name that
    only TVM's importers know raise InvalidArgument, whose hint says what to write instead."""

    @wraps(importer)
    def checked(*args: Given.args, **kwargs: Given.kwargs) -> T:
        if len(args) > 1:
            hint = "write shapes={name: shape}"
            raise InvalidArgument(importer.__name__, "takes one model, and its options by name", hint)
        for name in TVM_OPTIONS:
            if name in kwargs:
                raise InvalidArgument(f"{importer.__name__}: {name}", "is no option here", TVM_OPTIONS[name])
        return importer(*args, **kwargs)

    return checked


def check_known(options: object, importer: Callable[..., object]) -> dict[str, object]:
    """The importer's options by name. Raises InvalidArgument for an option that it does not have."""
    known = [*signature(importer).parameters][1:]
    given = mapping(options, "frontend", "{'batch': 1}")
    for name in given:
        if name not in known:
            what = "is no option of the importer"
            raise InvalidArgument(f"frontend['{name}']", what, f"it has {', '.join(known)}")
    return given


def batch_of(batch: object, importer: str) -> int:
    """The batch size as an int. Raises InvalidArgument, in the name of the function `importer`, unless `batch` is an
    integer of at least 1."""
    number = positive(batch)
    if not number:
        raise InvalidArgument(importer, f"batch is {shown(batch)}", "it must be a number of at least 1")
    return number


def chosen(
    outputs: object, computed: Sequence[tuple[str, int]], own: Sequence[str], importer: str, file: str
) -> list[int]:
    """The indices of the tensors that `outputs` selects by name or index; `computed` lists the tensors that can be
    selected, `own` the graph's outputs. Raises InvalidArgument."""
    hint = "give a list of tensors' names or numbers"
    asked = every(outputs, f"{importer}, outputs", hint) if _is_list(outputs) else []
    if not asked:
        raise InvalidArgument(importer, f"outputs is {shown(outputs)}", hint)
    found: list[int] = []
    for wanted in map(whole, asked):
        if not isinstance(wanted, str | int) or isinstance(wanted, bool):
            raise InvalidArgument(f"outputs {shown(wanted)}", "is no name and no number", hint)
        matches = [number for name, number in computed if wanted in (name, number)]
        if len(matches) != 1:
            what = "names several tensors of" if matches else "names no computed tensor of"
            hint = f"the graph's own outputs are {', '.join(map(repr, own))}"
            raise InvalidArgument(f"outputs {wanted!r}", f"{what} {file}", hint)
        found += matches
    return found


def custom_functions(
    custom_ops: object, results: Callable[[P], Sequence[tuple[str, Type | None]]], what: str = "custom_ops"
) -> Mapping[str, Callable[[Builder, P], Sequence[SSAValue]]]:
    """Wrap the caller's functions for custom operators, by operator code, so that their return values are checked and
    errors are attributed to the function and not to the file. `results` gives the names in errors and the types (if the
    file states them) of a node's outputs; `what` is the name of the option `custom_ops` in errors."""
    found: dict[str, Callable[[Builder, P], Sequence[SSAValue]]] = {}
    for code, function in mapping(custom_ops, what, "{'Code': function}").items():
        where = f"{what}[{shown(code)}]"
        if not code:
            raise InvalidArgument(where, "names no operator", "give the code of a custom operator")
        if not callable(function):
            hint = "give a function of an Importer and a Node that returns a list of values"
            raise InvalidArgument(where, f"{shown(function)} is no function", hint)
        if not _takes_two(function):
            raise InvalidArgument(where, f"{shown(function)} takes other arguments", "give it two: importer, node")
        found[code] = _checked(where, function, results)
    return found


def _is_list(value: object) -> bool:
    return not isinstance(value, str | Mapping)


def _takes_two(function: Callable[..., object]) -> bool:
    """Whether the function can be called with an importer and a node, according to its signature."""
    try:
        signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # a function written in C may have no signature
        return True
    return True


def _checked(
    code: str, function: Callable[..., object], results: Callable[[P], Sequence[tuple[str, Type | None]]]
) -> Callable[[Builder, P], Sequence[SSAValue]]:
    def convert(importer: Builder, node: P) -> Sequence[SSAValue]:
        where, hint = f"{node.where}, {code}", "return a list of one value per output, such as [op.result]"
        try:
            values = function(importer, node)
        except InvalidArgument as error:
            raise InvalidArgument(where, f"{error.where}: {error.what}", error.hint) from error
        if not is_sequence(values):
            raise InvalidArgument(where, f"returns {shown(values)}, which is no list", hint)
        found: list[SSAValue] = []
        for value in values:
            if not is_value(value):
                raise InvalidArgument(where, f"returns {shown(value)}, which is no value", hint)
            found.append(value)
        wanted = results(node)
        if len(found) != len(wanted):
            what = f"returns {len(found)} values, and the operator has {len(wanted)} outputs"
            raise InvalidArgument(where, what, hint)
        for value, (name, type) in zip(found, wanted, strict=True):
            if type is not None and not compatible(value.type, type):
                what = f"gives {value.type} for {name}, which is {type} in the file"
                raise InvalidArgument(where, what, "cast or reshape the result")
            if isinstance(value, OpResult) and value.op.parent is None:
                what = f"returns a result of {value.op.name}, which is not in the module"
                raise InvalidArgument(where, what, "make ops by importer.emit")
        return found

    return convert


def wanted_names(outputs: object, names: Iterable[str], own: list[str], function: str, file: str) -> list[str]:
    """The names of the tensors to compute, which must be among `names`; the file's own outputs if `outputs` is None.
    Raises InvalidArgument."""
    if outputs is None:
        if not own:
            raise Malformed(file, "has no outputs")
        return own
    each = [*dict.fromkeys(names)]
    found = chosen(outputs, [(name, number) for number, name in enumerate(each)], own, function, file)
    return [each[number] for number in found]
