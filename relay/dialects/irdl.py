"""Dialects as IRDL, which upstream's `mlir-opt --irdl-file` loads, and modules in the form that such dialects read.

IRDL has no op names with a ".", no properties, no optional attributes, no variadic groups with several types, and no
terminators. So `relay.nn.conv2d` is written `relay.nn_conv2d`, properties are written as attributes, those that may be
absent are not declared, values of a group of several types pass as the one type `!relay.several`, and `ub.unreachable`
stands after `byoc.yield`. `mlir-opt` then checks the number and kinds of operands, results, attributes and regions; it
checks nothing that needs a formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnrealizedConversionCastOp,
    UnregisteredAttr,
    VectorType,
)
from xdsl.dialects.ub import UnreachableOp
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AnyOf,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    OptionalDef,
    ParamAttrConstraint,
    RangeLengthConstraint,
    RangeOf,
    VariadicDef,
)
from xdsl.printer import Printer
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator
from xdsl.utils.target import Target

from relay.dialects.attributes import WeightAttr
from relay.dialects.context import OURS
from relay.dialects.plug_in import DIALECTS

BASES: dict[type[Attribute], tuple[str, ...]] = {
    ArrayAttr: ("#builtin.array",),
    DenseArrayBase: ("#builtin.dense_array",),
    DenseIntOrFPElementsAttr: ("#builtin.dense_int_or_fp_elements",),
    DenseResourceAttr: ("#builtin.dense_resource_elements",),
    DictionaryAttr: ("#builtin.dictionary",),
    FloatAttr: ("#builtin.float",),
    IntegerAttr: ("#builtin.integer",),
    IntegerType: ("!builtin.integer",),
    StringAttr: ("#builtin.string",),
    SymbolRefAttr: ("#builtin.symbol_ref",),
    TensorType: ("!builtin.tensor",),
    VectorType: ("!builtin.vector",),
    WeightAttr: ("#builtin.dense_int_or_fp_elements", "#builtin.dense_resource_elements"),
}
"""Upstream's IRDL names of each attribute class; any attribute is accepted for a class that is missing here."""

NAMES = ("relay", "qnn", "byoc")
"""The names of the dialects that are relay's own, not xDSL's or MLIR's."""

ANY = "several"
"""The name of a type that every exported dialect defines, such as `!relay.several`. IRDL requires all values of a
variadic operand or result to have one type: where their types differ, they are cast to this type."""


def dialects() -> list[Dialect]:
    """The dialects that upstream does not have."""
    return [OURS[name]() for name in NAMES]


def to_irdl(dialects: Iterable[Dialect]) -> str:
    """The dialects as one IRDL file."""
    return "\n".join(_dialect(dialect) for dialect in dialects)


def _dialect(dialect: Dialect) -> str:
    ops = [op for op in dialect.operations if issubclass(op, IRDLOperation)]
    types = [line for each in dialect.attributes for line in _type(each)]
    body = "".join([*types, *(line for op in ops for line in OpWriter(op, dialect.name).lines())])
    return f"irdl.dialect @{dialect.name} {{\n  irdl.type @{ANY}\n{body}}}\n"


def _type(cls: type[Attribute]) -> Iterator[str]:
    """Yield the IRDL definition of a type or attribute with unconstrained parameters; nothing for one with a syntax of
    its own."""
    own = {"parse_parameters", "print_parameters"}
    if not issubclass(cls, ParametrizedAttribute) or any(
        own & {*vars(base)} for base in cls.__mro__[:-1] if base is not ParametrizedAttribute
    ):
        return
    names = [name for name, _ in cls.get_irdl_definition().parameters]
    yield f"  irdl.{'type' if issubclass(cls, TypeAttribute) else 'attribute'} @{cls.name.partition('.')[2]} {{\n"
    yield from (f"    %{number} = irdl.any\n" for number, _ in enumerate(names))
    if names:
        yield f"    irdl.parameters({', '.join(f'{name}: %{number}' for number, name in enumerate(names))})\n"
    yield "  }\n"


def name_of(op: type[Operation] | Operation) -> tuple[str, str]:
    """The dialect and the name of an op in IRDL."""
    dialect, _, name = op.name.partition(".")
    return dialect, name.replace(".", "_")


class OpWriter:
    """Writes one op in IRDL. Every use of a constraint is written separately: IRDL takes two uses of one constraint
    value to mean equality."""

    def __init__(self, op: type[IRDLOperation], dialect: str):
        self.op, self.dialect, self.written = op, dialect, list[str]()

    def lines(self) -> Iterator[str]:
        """The op's definition."""
        definition = self.op.get_irdl_definition()
        rows = {
            "operands": [self.group(name, operand) for name, operand in definition.operands],
            "results": [self.group(name, result) for name, result in definition.results],
            "regions": [f"{name}: {self.write('irdl.region')}" for name, _ in definition.regions],
        }
        given = {name: p for name, p in (definition.properties | definition.attributes).items()}
        needed = [(name, p.constr) for name, p in given.items() if not isinstance(p, OptionalDef)]
        attributes = [f'"{name}" = {self.constraint(constraint)}' for name, constraint in needed]
        yield f"  irdl.operation @{name_of(self.op)[1]} {{\n"
        yield from (f"    {line}\n" for line in self.written)
        yield from (f"    irdl.{what}({', '.join(row)})\n" for what, row in rows.items() if row)
        if attributes:
            yield f"    irdl.attributes {{{', '.join(attributes)}}}\n"
        yield "  }\n"

    def write(self, text: str) -> str:
        """Append a line that defines an SSA value, and return the value's name."""
        self.written.append(f"%{len(self.written)} = {text}")
        return f"%{len(self.written) - 1}"

    def group(self, name: str, definition: object) -> str:
        """The IRDL text of an operand or result, or of a variadic group of them."""
        how = _variadicity(definition)
        extra = [f"@{self.dialect}::@{ANY}"] if how == "variadic " else []
        return f"{name}: {how}{self.constraint(getattr(definition, 'constr', None), extra)}"

    def constraint(self, constraint: object, extra: Sequence[str] = ()) -> str:
        """Write xDSL's constraint, or a weaker one, in IRDL and return the name of its value; `extra` lists types
        accepted in addition."""
        match constraint:
            case RangeLengthConstraint():
                return self.constraint(constraint.constraint, extra)
            case RangeOf():
                return self.constraint(constraint.constr, extra)
            case EqAttrConstraint() if not extra:
                return self.write(f"irdl.is {constraint.attr}")
            case _:
                pass
        bases = [f'"{base}"' for base in _bases(constraint)]
        if not bases:
            return self.write("irdl.any")
        values = [self.write(f"irdl.base {base}") for base in [*bases, *extra]]
        return values[0] if len(values) == 1 else self.write(f"irdl.any_of({', '.join(values)})")


def _bases(constraint: object) -> list[str]:
    """Upstream's names of all attributes that the constraint accepts; empty if they are not known."""
    match constraint:
        case BaseAttr():
            return list(BASES.get(constraint.attr, ()))
        case ParamAttrConstraint():
            return list(BASES.get(constraint.base_attr, ()))
        case AnyOf():
            parts = [_bases(part) for part in constraint.attr_constrs]
            return list(dict.fromkeys(base for part in parts for base in part)) if all(parts) else []
        case _:
            return []


def _variadicity(definition: object) -> str:
    if isinstance(definition, OptionalDef):
        return "optional "
    return "variadic " if isinstance(definition, VariadicDef) else ""


def irdl_form(module: ModuleOp) -> ModuleOp:
    """A copy of the module in which relay's ops have the names, attributes and operands with which `to_irdl` declares
    them to `mlir-opt`. xDSL's generic printer can print it."""
    copy, unregistered = module.clone(), Context(allow_unregistered=True)
    names = {*NAMES, *DIALECTS.names()}
    for op in list(copy.walk()):
        if op.name.partition(".")[0] in names and isinstance(op, IRDLOperation):
            _replace(op, unregistered)
    return copy


def _replace(op: IRDLOperation, ctx: Context) -> None:
    """Replace the op by an unregistered op under its IRDL name."""
    dialect, name = name_of(op)
    any_type = UnregisteredAttr.with_name_and_type(f"{dialect}.{ANY}", True)(f"{dialect}.{ANY}", True, False, "")
    definition = op.get_irdl_definition()
    operands, types = list(op.operands), list(op.result_types)
    if _differ(types) and any(_variadicity(d) == "variadic " for _, d in definition.results):
        types = [any_type] * len(types)
    before: list[Operation] = []
    if _differ([o.type for o in operands]) and any(_variadicity(d) == "variadic " for _, d in definition.operands):
        before = [UnrealizedConversionCastOp.create(operands=[o], result_types=[any_type]) for o in operands]
        operands = [cast.results[0] for cast in before]
    regions = [op.detach_region(region) for region in tuple(op.regions)]
    new = ctx.get_op(f"{dialect}.{name}").create(
        operands=operands,
        result_types=types,
        attributes=op.properties | op.attributes,
        regions=regions,
        location=op.location,
    )
    results: list[SSAValue] = list(new.results)
    after: list[Operation] = []
    if types != list(op.result_types):
        after = [
            UnrealizedConversionCastOp.create(operands=[value], result_types=[type])
            for value, type in zip(results, op.result_types, strict=True)
        ]
        results = [cast.results[0] for cast in after]
    if op.has_trait(IsTerminator):
        after.append(UnreachableOp.create())
    Rewriter.insert_op([*before, new, *after], InsertPoint.before(op))
    Rewriter.replace_op(op, [], results)


def _differ(types: Sequence[Attribute]) -> bool:
    return len(set(types)) > 1


@dataclass(frozen=True)
class IrdlTarget(Target):
    """Write the module in the generic form that `mlir-opt --irdl-file` reads with the dialects of `--emit-irdl`."""

    name = "irdl"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        printer = Printer(output, print_generic_format=True, print_properties_as_attributes=True)
        printer.print_op(irdl_form(module))
        output.write("\n")
