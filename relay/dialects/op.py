"""The base class of relay's ops: one function infers the result types and serves as the verifier."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from math import inf
from typing import ClassVar, Self, TypeGuard

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    UNKNOWN_LOC,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    NoneAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, OperationInvT, OpResult, Region, SSAValue, SSAValues
from xdsl.irdl import (
    IRDLOperation,
    OptionalDef,
    OptOperandDef,
    OptPropertyDef,
    ParsePropInAttrDict,
    VarOperandDef,
    base,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from relay.arguments import shown
from relay.dialects.element_types import StoredType
from relay.dialects.ranges import check_ranges
from relay.errors import InvalidArgument

Type = TensorType[Attribute]
TENSOR = base(TensorType[Attribute])
"""The constraint of operands and results that may be any ranked tensor; one shared object, because xDSL derives a
constraint anew for each definition that names a type."""
DYNAMIC = DYNAMIC_INDEX
"""An unknown dimension, printed `?`."""


class Origin(Enum):
    """Where the elements of an op's results come from. All but `COMPUTED` keep the scale and zero point of codes."""

    COMPUTED = 0
    MOVED = 1
    """Each element is a copy of an element of a data operand, or a fill value; the choice does not depend on the
    data."""
    SELECTED = 2
    """Each element is a copy of an element of a data operand, or a fill value; the choice is made by comparing the
    data."""
    AVERAGED = 3
    """Each element is a mean of elements of a data operand, with weights that sum to 1; integers are rounded."""


class TensorOp(IRDLOperation, ABC):
    """A pure op from tensors to tensors whose result types follow from its operands and properties.

    A subclass says in `infer` what its result types are, and raises `VerifyException` where operands or properties do
    not fit. The verifier compares these types with the op's; `make` builds an op with them.

    The class attributes below, such as `ELEMENTWISE`, declare properties of the op from which passes derive which
    rewrites are valid. Subclasses inherit them; a test compares each with what the interpreter computes.
    """

    ELEMENTWISE: ClassVar[bool] = False
    """Whether each result element depends only on the operands' elements at its (broadcast) position."""
    ORIGIN: ClassVar[Origin] = Origin.COMPUTED
    """Where the elements of the results come from."""
    FILLS: ClassVar[tuple[str, ...]] = ()
    """Properties that hold a value that may become an element of the result: padding values and bounds."""
    PARAMETERS: ClassVar[tuple[str, ...]] = ()
    """Operands that are not data: indices, conditions, tables, vectors along an axis. All others are data."""
    ALONG_AXIS: ClassVar[tuple[str, ...]] = ()
    """Properties and operands with one element for each index along the op's `axis`, or one for all."""
    SAME_AXES: ClassVar[bool] = False
    """Whether axis i of the results corresponds to axis i of the data operands of that rank, perhaps with another size.
    Declared for ops that are not elementwise; elementwise ones have this property anyway."""

    INDEPENDENT: ClassVar[slice] = slice(0)
    """The axes of the results along which the batch rule (`independent_along`) holds whatever the properties are: for
    example `slice(1)` for the first axis, `slice(-1)` for all but the last. Declared for ops that are not
    elementwise."""

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())

    def __init_subclass__(cls) -> None:
        """`assembly_format` is parsed when the first op of the class is parsed or printed: xDSL parses it as the class
        is defined, which took a tenth of the time of importing the compiler, and most processes print none. A class
        without one has that of `format_of`."""
        super().__init_subclass__()
        if isinstance(text := cls.__dict__.get("assembly_format"), str):
            FORMATS[cls] = text
            del cls.assembly_format

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return syntax_of(cls).parse(parser, cls)

    def print(self, printer: Printer) -> None:
        syntax_of(type(self)).print(printer, self)

    @abstractmethod
    def infer(self) -> Sequence[Type]:
        """The result types that follow from operands and properties."""

    @classmethod
    def make(
        cls,
        operands: Sequence[SSAValue | Operation],
        properties: Mapping[str, Attribute | None] | None = None,
        like: Operation | None = None,
    ) -> Self:
        """Build the op with inferred result types; `like` gives the source location.

        Raises VerifyException if the operands or properties do not fit, InvalidArgument for a wrong number of operands
        and for a property that is missing, unknown or no attribute.
        """
        given = {name: value for name, value in (properties or {}).items() if value is not None}
        definition = cls.get_irdl_definition()
        check_properties(cls, given)
        for name, prop in definition.properties.items():
            default = prop.default_value
            if name in given:
                continue
            if default is not None:
                given[name] = default
            elif not isinstance(prop, OptPropertyDef):
                raise InvalidArgument(cls.name, f"its property {name!r} is not given", "name it in `properties`")
        values = [SSAValue.get(operand) for operand in operands]
        least, most = arity(cls)
        if not least <= len(values) <= most:
            wanted = least if least == most else f"{least} or more" if most == inf else f"{least} to {most}"
            raise InvalidArgument(cls.name, f"takes {wanted} operands, not {len(values)}")
        unknown = [UNKNOWN_TYPE] * len(definition.results)
        op = created(cls, values, unknown, given, location=UNKNOWN_LOC if like is None else like.location)
        types = op.infer()
        if len(types) != len(op.results):  # a variadic result
            op.drop_all_references()
            return created(cls, values, types, given, location=op.location)
        op.set_result_types(types)
        return op

    def data_operands(self) -> tuple[SSAValue, ...]:
        """The operands that are not `PARAMETERS`, in their order."""
        if not self.PARAMETERS:
            return tuple(self.operands)
        names = [name for name, _ in self.get_irdl_definition().operands if name not in self.PARAMETERS]
        found: list[SSAValue] = []
        for given in (getattr(self, name) for name in names):
            found += [given] if isinstance(given, SSAValue) else [] if given is None else given
        return tuple(found)

    def broadcast_operands(self) -> tuple[SSAValue, ...]:
        """Return the operands of an elementwise op that broadcast to the shape of the result as in numpy."""
        return self.data_operands()

    @property
    def origin(self) -> Origin:
        """The origin of the result's elements: `ORIGIN`, unless a subclass overrides it because it depends on
        properties."""
        return self.ORIGIN

    def independent_along(self, axis: int) -> bool:
        """Whether index i along `axis` of the results depends only on index i along the same axis of the data operands.

        Then a batch may have any size. `axis` is not negative; False if that is not known. Operands that broadcast
        along the axis count as repeated.
        """
        return self.ELEMENTWISE or axis in range(rank(self.results[0]))[self.INDEPENDENT]

    def set_result_types(self, types: Sequence[Type]) -> bool:
        """Give the results these types; True if one changed."""
        changed = False
        for result, type in zip(tuple(self.results), types, strict=True):
            if result.type != type:
                Rewriter.replace_value_with_new_type(result, type)
                changed = True
        return changed

    def verify_(self) -> None:
        for number, (result, expected) in enumerate(zip(self.results, self.infer(), strict=True)):
            if not compatible(result.type, expected):
                raise VerifyException(f"{self.name}: result {number} is {result.type}; expected {expected}")
        check_ranges(self)
        for type in (value.type for value in self.operands):
            if is_tensor(type) and isinstance(type.element_type, StoredType) and not self.takes_stored:
                raise VerifyException(
                    f"{self.name}: has no meaning for {type.element_type}; relay.reinterpret it first"
                )

    @property
    def takes_stored(self) -> bool:
        """Whether the op accepts elements of a plug-in's type: ops of relay may move them, only a plug-in's op computes
        with them."""
        if self.name.partition(".")[0] not in ("relay", "qnn") or self.name == "relay.reinterpret":
            return True
        return self.origin is Origin.MOVED and not self.FILLS


class OneResultOp(TensorOp, ABC):
    """A `TensorOp` with one result."""

    result = result_def(TENSOR)


class AxisOp(TensorOp, ABC):
    """An op that processes each line of elements along the `axis` of its first operand independently of the others."""

    axis = prop_def(IntegerAttr)

    @property
    def along(self) -> int:
        """The axis, not negative."""
        return axis_of(self.axis.value.data, rank(self.operands[0]), self.name)

    def independent_along(self, axis: int) -> bool:
        return super().independent_along(axis) or axis != self.along


UNKNOWN_TYPE = NoneAttr()
"""The type of a result that is not inferred yet."""


def check_properties(kind: type[IRDLOperation], given: Mapping[str, object]) -> None:
    """Raise InvalidArgument for a property that the op does not have, and for a value that is no attribute."""
    known = kind.get_irdl_definition().properties
    for name, value in given.items():
        if name not in known:
            raise InvalidArgument(kind.name, f"has no property {name!r}", f"it has {', '.join(known) or 'none'}")
        if not isinstance(value, Attribute):
            what = f"its property {name!r} is {shown(value)}, which is no attribute"
            raise InvalidArgument(
                kind.name, what, "xdsl.dialects.builtin and relay.dialects.attributes make attributes"
            )


@cache
def arity(kind: type[IRDLOperation]) -> tuple[int, float]:
    """The least and the greatest number of operands of an op."""
    operands = [each for _, each in kind.get_irdl_definition().operands]
    least = sum(not isinstance(each, VarOperandDef) for each in operands)
    lists = any(isinstance(each, VarOperandDef) and not isinstance(each, OptOperandDef) for each in operands)
    return least, inf if lists else len(operands)


def created(
    kind: type[OperationInvT],
    operands: Sequence[SSAValue] = (),
    types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] | None = None,
    regions: Sequence[Region] = (),
    location: LocationAttr = UNKNOWN_LOC,
) -> OperationInvT:
    """Build an op as `kind.create` does, in two fifths of the time; for ops without successors."""
    op = kind.__new__(kind)
    if operands:
        op.operands = operands
    if len(types) == 1:
        op.results = SSAValues((OpResult(types[0], op, 0),))
    elif types:
        op.results = SSAValues(OpResult(type, op, number) for number, type in enumerate(types))
    op.properties, op.attributes, op.location = dict(properties or {}), {}, location
    for region in regions:
        op.add_region(region)
    for name, value in defaults_of(kind):
        op.properties.setdefault(name, value)
    return op


@cache
def defaults_of(kind: type[Operation]) -> Iterable[tuple[str, Attribute]]:
    """The properties of an op class that have a default value, as (name, value) pairs."""
    if not issubclass(kind, IRDLOperation):
        return ()
    given = kind.get_irdl_definition().properties.items()
    return [
        (name, each.default_value)
        for name, each in given
        if not isinstance(each, OptionalDef) and each.default_value is not None
    ]


FORMATS: dict[type, str] = {}
"""The `assembly_format` of each subclass of `TensorOp` that defines one."""


def format_of(kind: type[Operation]) -> str | None:
    """The `assembly_format` of a class, its own or an inherited one; a class without one gets a format that lists all
    operands by name, then the attributes and the types. None for a class with a parser of its own."""
    parsing = next(each for each in kind.mro() if "parse" in vars(each))
    if parsing is not TensorOp or not issubclass(kind, TensorOp):
        return None
    if (text := next((FORMATS[each] for each in kind.mro() if each in FORMATS), None)) is not None:
        return text
    given = kind.get_irdl_definition().operands
    absent = any(isinstance(operand, OptionalDef) for _, operand in given)
    names = "operands" if absent else " `,` ".join(f"${name}" for name, _ in given)
    return f"{names} attr-dict `:` functional-type(operands, results)"


@cache
def syntax_of(kind: type[TensorOp]) -> FormatProgram:
    """The parsed `assembly_format` of a class."""
    return FormatProgram.from_str(format_of(kind) or "", kind.get_irdl_definition())


def is_tensor(type: Attribute) -> TypeGuard[Type]:
    """Whether the type is a ranked tensor, of any element type."""
    return isinstance(type, TensorType)


def is_integer(type: Attribute) -> TypeGuard[IntegerType]:
    """Whether the type is an integer type, of any width and signedness."""
    return isinstance(type, IntegerType)


def is_code(type: Attribute, *widths: int) -> TypeGuard[IntegerType]:
    """Whether the type is an integer type of one of these widths in bits; 8 or 16 if none is given."""
    return is_integer(type) and type.width.data in (widths or (8, 16))


def compatible(actual: Attribute, expected: Attribute) -> bool:
    """Whether two tensor types agree in every dimension whose size both types know."""
    if actual == expected:
        return True
    if not is_tensor(actual) or not is_tensor(expected):
        return False
    a, b = actual.get_shape(), expected.get_shape()
    return (
        actual.element_type == expected.element_type
        and len(a) == len(b)
        and all(x == y or DYNAMIC in (x, y) for x, y in zip(a, b, strict=True))
    )


def tensor(value: SSAValue) -> Type:
    """The value's type, which must be a ranked tensor."""
    type = value.type
    if not is_tensor(type):
        raise VerifyException(f"expected a ranked tensor, got {type}")
    return type


def shape(value: SSAValue) -> tuple[int, ...]:
    return tensor(value).get_shape()


def rank(value: SSAValue) -> int:
    return len(shape(value))


def require(condition: bool, message: str) -> None:
    """Raise `VerifyException(message)` unless the condition holds."""
    if not condition:
        raise VerifyException(message)


def axis_of(axis: int, rank: int, what: str) -> int:
    """A possibly negative axis as a number in 0..rank-1."""
    require(-rank <= axis < rank, f"{what}: axis {axis} is outside a tensor of rank {rank}")
    return axis % rank


def broadcast(what: str, *shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that numpy's broadcast of the shapes gives, with `?` for unknown dimensions."""
    width = max((len(s) for s in shapes), default=0)
    result: list[int] = []
    for column in zip(*[(1,) * (width - len(s)) + tuple(s) for s in shapes], strict=True):
        known = {d for d in column if d not in (1, DYNAMIC)}
        require(len(known) <= 1, f"{what}: shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast")
        result.append(known.pop() if known else DYNAMIC if DYNAMIC in column else 1)
    return tuple(result)


def window(size: int, kernel: int, stride: int, dilation: int, before: int, after: int, what: str) -> int:
    """The number of positions of a dilated window along a dimension of `size` elements, padded by `before` and `after`;
    raises VerifyException if the window does not fit."""
    require(stride > 0 and dilation > 0 and kernel > 0, f"{what}: kernel, strides and dilation must be positive")
    if size == DYNAMIC:
        return DYNAMIC
    span = size + before + after - ((kernel - 1) * dilation + 1)
    require(
        span >= 0,
        f"{what}: a window of {(kernel - 1) * dilation + 1} does not fit in {size} padded to {size + before + after}",
    )
    return span // stride + 1


def two(values: Sequence[int], what: str) -> tuple[int, int]:
    require(len(values) == 2, f"{what} must have 2 numbers, has {len(values)}")
    return values[0], values[1]


def four(values: Sequence[int], what: str) -> tuple[int, int, int, int]:
    require(len(values) == 4, f"{what} must have 4 numbers, has {len(values)}")
    require(min(values) >= 0, f"{what} must not be negative")
    return values[0], values[1], values[2], values[3]
