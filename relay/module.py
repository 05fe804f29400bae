"""`IRModule`: a thin wrapper of xDSL's `ModuleOp`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from io import StringIO
from types import MethodType
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ArrayAttr, DenseResourceAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.printer import Printer
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import ParseError
from xdsl.utils.hints import isa

from relay import symbols
from relay.arguments import instance, is_mapping, mapping, shown
from relay.arguments import path as checked_path
from relay.arguments import text as checked_text
from relay.dialects.attributes import (
    Array,
    WeightAttr,
    WeightPrinter,
    dtype_of,
    elements,
    label_of,
    tensor_type,
    to_numpy,
)
from relay.dialects.context import make_context
from relay.dialects.element_types import SAFETENSORS, as_stored, dtype_named, from_stored
from relay.dialects.op import is_tensor
from relay.dialects.plain import to_attribute
from relay.dialects.relay import ConstantOp
from relay.dialects.relay.shape import is_constant as is_constant
from relay.dialects.source import LocatingParser, invalid, parser_message, why_invalid, words
from relay.doors import caller_does
from relay.errors import InvalidArgument, Malformed
from relay.files import read_file
from relay.plug_ins import installation

if TYPE_CHECKING:
    from os import PathLike

    from relay.partition_report import PartitionReport

REQUESTS = "relay.requests"
"""The module attribute that lists requested passes: an array of dictionaries with the key `pass`, and `before` or
`after`."""


class Function(FuncOp):
    """A function of an `IRModule`: xDSL's `FuncOp` with the methods that Relay's functions have in addition."""

    def set_func_attr(self, name: str, value: object) -> Function:
        """Set an attribute to a text, number, list, dictionary, or xDSL attribute. Returns the function.

        `set_func_attr("compiler", "x")` makes `annotate-target` offer the function's ops to the compiler `x`.
        """
        self.attributes[name] = to_attribute(value, f"attribute {name} of @{self.sym_name.data}")
        return self


class IRModule:
    """A module of functions. `.op` is the xDSL operation; passes, `build` and `relay-opt` accept either."""

    def __init__(self, op: ModuleOp | Mapping[str, FuncOp] | None = None):
        """Wrap xDSL's op; or, like TVM's constructor, create a module from functions by name."""
        functions: Mapping[str, object] = op if is_mapping(op) else {}
        owned = ModuleOp([]) if op is None or functions is op else op
        self.op = instance(owned, ModuleOp, "IRModule", "text is read by IRModule.parse")
        for name, function in functions.items():
            self[name] = cast(FuncOp, function)

    @staticmethod
    def parse(text: str, weights: Mapping[str, Array] | None = None, name: str = "<text>") -> IRModule:
        """Parse MLIR text; weights that the text only names (`dense_resource<...>`) are looked up in `weights`.

        Raises Malformed, with line and column, if the text does not parse or verify.
        """
        checked_text(text, "IRModule.parse", "give MLIR text; a file is read by relay-opt")
        try:
            op = LocatingParser(make_context(), text, name).parse_module()
        except ParseError as error:
            start = error.span.start
            line = text.count("\n", 0, start) + 1
            column = start - (text.rfind("\n", 0, start) + 1) + 1
            said = parser_message(error)
            raise Malformed(f"{name}:{line}:{column}", said) from None
        except RecursionError:
            raise Malformed(name, "is nested too deeply") from None
        mod = IRModule(op)
        mod.verify(name)
        if weights is not None:
            mod.bind(weights)
        return mod

    def bind(self, weights: Mapping[str, Array]) -> None:
        """Set the values of weights that the module's text only named, by handle.

        Raises InvalidArgument if one is missing or has another shape or dtype.
        """
        mapping(weights, "weights", "{handle: array}")
        for op in self.op.walk():
            for table in (op.properties, op.attributes):
                for key, attr in table.items():
                    if isinstance(attr, DenseResourceAttr | DictionaryAttr):
                        bound = _bound(attr, weights)
                        if op.name == "arith.constant" and isinstance(bound, WeightAttr):
                            bound = bound.resource()
                        table[key] = bound

    @property
    def functions(self) -> dict[str, FuncOp]:
        """The functions by name, in the module's order."""
        return {op.sym_name.data: op for op in self.op.body.block.ops if isinstance(op, FuncOp)}

    def __getitem__(self, name: str) -> Function:
        functions = self.functions
        if name not in functions:
            known = ", ".join(functions) or "none"
            raise InvalidArgument(f"function {name}", "is not in the module", f"it has {known}")
        # the class of the op stays FuncOp, by which xDSL's interpreter looks it up
        function = cast(Function, functions[name])
        object.__setattr__(function, "set_func_attr", MethodType(Function.set_func_attr, function))
        return function

    def __setitem__(self, name: str, function: FuncOp) -> None:
        """Add or replace a function, renaming it to `name`; a function that belongs to a module is copied."""
        instance(function, FuncOp, f"function {name}", "a function is a func.func")
        new = function.clone() if function.parent is not None else function
        new.properties["sym_name"] = StringAttr(name)
        old = self.functions.get(name)
        if old is None:
            self.op.body.block.add_op(new)
        else:
            self.op.body.block.insert_op_before(new, old)
            Rewriter.erase_op(old)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the functions. If the caller unpacks the module, as scripts for TVM do in `mod,
        params = relay.frontend.from_onnx(...)`, InvalidArgument is raised: importers return only a module."""
        if caller_does("UNPACK_SEQUENCE"):
            hint = "write `mod = ...`; `mod.weights` are the weights, `list(mod)` the functions' names"
            raise InvalidArgument("mod, params = ...", "importers return one module, with the weights in it", hint)
        return iter(self.functions)

    def request_pass(self, name: str, *, before: str | None = None, after: str | None = None) -> None:
        """Request that the next pipeline runs a pass: before the pass `before`, after the pass `after`, or else first.

        `name` is written as in a pipeline, with its options. Requests are stored in the module's attribute
        `relay.requests`.
        """
        where = f"request_pass({shown(name)})"
        if before is not None and after is not None:
            raise InvalidArgument(where, "has both before and after", "give one of them")
        given = {"pass": name} | {key: at for key, at in (("before", before), ("after", after)) if at is not None}
        hint = "passes are told by their names"
        row = DictionaryAttr({key: StringAttr(checked_text(value, where, hint)) for key, value in given.items()})
        old = self.op.attributes.get(REQUESTS)
        self.op.attributes[REQUESTS] = ArrayAttr([*(old.data if isa(old, ArrayAttr[Attribute]) else ()), row])

    def partition_report(self, inputs: object = None) -> PartitionReport:
        """A report of which ops external compilers take, and why they do not take the others; `print` it. With
        `inputs`, arrays for `@main` in order or by name, it also gives the error of each partitioned function on the
        data that reach it."""
        from relay.universe import partition_report

        return partition_report(self, inputs)

    def constants(self) -> Iterator[tuple[str, ConstantOp]]:
        """The labelled constants of the module, with their labels, in program order."""
        for op in self.op.walk():
            if isinstance(op, ConstantOp) and op.label is not None:
                yield op.label.data, op

    @property
    def weights(self) -> dict[str, Array]:
        """The arrays of the labelled constants by label; they are read-only and share the constants' memory."""
        return {label: to_numpy(op.value) for label, op in self.constants()}

    def replace_weights(self, params: Mapping[str, npt.ArrayLike]) -> None:
        """Replace weights by name. Raises InvalidArgument for an unknown name, another shape or another dtype."""
        known = dict(self.constants())
        for name, array in arrays(params).items():
            if name not in known:
                raise InvalidArgument(f"params['{name}']", "the module has no weight of that name")
            op = known[name]
            if tensor_type(array) != op.result.type:
                raise InvalidArgument(f"params['{name}']", f"is {tensor_type(array)}; the weight is {op.result.type}")
            op.properties["value"] = elements(array.copy(), label=name)

    def side_car(self) -> dict[str, Array]:
        """The arrays of the weights of which `to_text()` prints only the handle, by handle."""
        found: dict[str, Array] = {}
        for op in self.op.walk():
            for attr in (*op.properties.values(), *op.attributes.values()):
                found.update(_weights(attr))
        return found

    def save_weights(self, path: str | PathLike[str]) -> None:
        """Write `side_car()` as a safetensors file (needs the `safetensors` package). Numbers of types that the format
        lacks are stored as bytes (2- and 4-bit ones packed), with their types in the file's metadata."""
        try:
            from safetensors.numpy import save
        except ImportError:
            missing = "the package safetensors is not installed"
            raise InvalidArgument("save_weights", missing, installation("weights")) from None
        weights = self.side_car()
        stored = {name: as_stored(array) for name, array in weights.items()}
        notes = {name: str(tensor_type(array)) for name, array in weights.items() if stored[name].dtype != array.dtype}
        data = save(stored, notes or None)
        try:
            checked_path(path, "save_weights").write_bytes(data)
        except (OSError, ValueError) as error:
            raise InvalidArgument(f"save_weights {path}", f"cannot be written: {error}") from None

    def to_text(self, *, weights: bool = False, generic: bool = False, locations: bool = False) -> str:
        """The module as MLIR text; weights over 1 KiB are printed by name and hash, or in full with `weights`."""
        out = StringIO()
        cls = WeightPrinter if weights else Printer
        cls(out, print_generic_format=generic, print_debuginfo=locations).print_op(self.op)
        return out.getvalue() + "\n"

    def __str__(self) -> str:
        return self.to_text()

    def astext(self, show_meta_data: bool = True) -> str:
        """The module as MLIR text, with all weights in full if `show_meta_data`: TVM's name of `to_text`."""
        return self.to_text(weights=show_meta_data)

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows for the module."""
        from relay.universe import shown_in_notebook

        return shown_in_notebook(self)

    def clone(self) -> IRModule:
        """A deep copy that shares the weights' memory."""
        return IRModule(self.op.clone())

    def structurally_equal(self, other: IRModule | ModuleOp) -> bool:
        """Whether both modules have the same ops, types, attributes and weights; names of values and locations are
        ignored."""
        return self.op.is_structurally_equivalent(other.op if isinstance(other, IRModule) else other)

    def structural_hash(self) -> str:
        """A hash of 32 hexadecimal digits that is equal for structurally equal modules, in every process."""
        digest, numbers = hashlib.sha256(), dict[SSAValue, int]()

        def add(op: Operation) -> None:
            operands = [numbers.setdefault(value, len(numbers)) for value in op.operands]
            for result in op.results:
                numbers.setdefault(result, len(numbers))
            tables = [_sorted(table) for table in (op.properties, op.attributes)]
            digest.update(f"{op.name} {operands} {[str(r.type) for r in op.results]} {tables}".encode())
            for region in op.regions:
                digest.update(b"{")
                for block in region.blocks:
                    for argument in block.args:
                        numbers.setdefault(argument, len(numbers))
                    digest.update(f"^{[str(argument.type) for argument in block.args]}".encode())
                    for inner in block.ops:
                        add(inner)
                digest.update(b"}")

        add(self.op)
        return digest.hexdigest()[:32]

    def verify(self, where: str = "module") -> None:
        """Raise Malformed if an op, or a function's named sizes (`relay.symbols`), are invalid. The error names the
        location of the first invalid op, or `where` if that is unknown."""
        if (wrong := why_invalid(self.op)) is not None:
            op, message = next(invalid(self.op), (self.op, wrong))
            raise Malformed(words(op.location) or where, message)
        symbols.verify(self.op)


def read_module(path: str | PathLike[str]) -> IRModule:
    """Read a module from a file of MLIR text; weights that `x.mlir` only names are read from `x.safetensors`, if that
    exists. Raises InvalidArgument, Malformed."""
    file = checked_path(path, "module")
    try:
        text = read_file(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Malformed(str(file), f"byte {error.start} is not UTF-8", "MLIR text is UTF-8") from None
    except (OSError, ValueError) as error:
        raise InvalidArgument(str(file), f"cannot be read: {error}") from None
    beside = file.with_suffix(".safetensors")
    return IRModule.parse(text, load_weights(str(beside)) if beside.is_file() else None, str(file))


def load_weights(path: str) -> dict[str, Array]:
    """The arrays of a safetensors file by name. Raises InvalidArgument, Malformed."""
    try:
        from safetensors import SafetensorError, deserialize
    except ImportError:
        raise InvalidArgument(path, "the package safetensors is not installed", installation("weights")) from None
    try:
        rows = deserialize(read_file(path))
        return {
            name: np.frombuffer(row["data"], dtype_named(SAFETENSORS[row["dtype"]])).reshape(row["shape"])
            for name, row in rows
        }
    except SafetensorError as error:
        raise Malformed(path, str(error), "weights are what --save-weights wrote") from None
    except KeyError as error:  # a dtype that numpy does not have
        raise Malformed(path, f"holds numbers of {error.args[0]}", "weights are what --save-weights wrote") from None
    except OSError as error:
        raise InvalidArgument(path, f"cannot be read: {error.strerror}") from None


def arrays(params: object) -> dict[str, Array]:
    """The values of a mapping as arrays by name. Raises InvalidArgument for a value that holds no numbers."""
    found: dict[str, Array] = {}
    for name, value in mapping(params, "params", "{name: array}").items():
        where = f"params['{name}']"
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise InvalidArgument(where, f"is no array: {error}") from None
        if array.dtype.kind in "OSUMmc":
            raise InvalidArgument(where, f"is an array of {array.dtype}", "give numbers")
        found[name] = array
    return found


def _sorted(table: Mapping[str, Attribute]) -> str:
    """Attributes as text, ordered by name: equal dictionaries may differ in order."""
    parts = (f"{name}={_sorted(a.data) if isinstance(a, DictionaryAttr) else a}" for name, a in sorted(table.items()))
    return f"{{{', '.join(parts)}}}"


def _weights(attr: Attribute) -> Iterator[tuple[str, Array]]:
    """The handles and arrays of the weights in an attribute, including weights in xDSL's `DenseResourceAttr`."""
    if isinstance(attr, WeightAttr):
        yield attr.handle, attr.array
    elif isinstance(attr, DenseResourceAttr) and hasattr(attr, "array"):
        yield attr.resource_handle.data, to_numpy(attr)
    elif isinstance(attr, DictionaryAttr):
        for value in attr.data.values():
            yield from _weights(value)


def _bound(attr: Attribute, weights: Mapping[str, Array]) -> Attribute:
    """The attribute, with arrays from `weights` in place of weights that it only names. Raises InvalidArgument."""
    if isinstance(attr, DictionaryAttr):
        return DictionaryAttr({key: _bound(value, weights) for key, value in attr.data.items()})
    if not isinstance(attr, DenseResourceAttr) or hasattr(attr, "array"):
        return attr
    handle = attr.resource_handle.data
    if handle not in weights:
        raise InvalidArgument(f"weight {handle}", "is not in the side-car file")
    array, type = weights[handle], attr.type
    if is_tensor(type):
        array = from_stored(array, dtype_of(type.element_type), type.get_shape())
    found = elements(array, label=label_of(handle))
    if found.type != attr.type:
        raise InvalidArgument(f"weight {handle}", f"is {found.type}; the module wants {attr.type}")
    return found
