"""xDSL's `gpu` with upstream's (MLIR 22) form of the operations that differ or are missing. xDSL stores the kernel
marker and the block size in other attributes than upstream, whose `mlir-opt` silently drops the marker. A module may
hold both classes under equal names; relay's passes use the classes of this file."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import gpu
from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
    i32,
    i64,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Block, ParametrizedAttribute, Region
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_attr_definition,
    irdl_op_definition,
    lazy_traits_def,
    opt_attr_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    NoTerminator,
    SymbolOpInterface,
    SymbolTable,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from relay.dialects.extended import extended

CONTAINER = "gpu.container_module"
"""The attribute of a module that holds kernels and launches them."""


class Space(StrEnum):
    """Address space: memory of the device, of a thread block, or of one thread."""

    GLOBAL = "global"
    WORKGROUP = "workgroup"
    PRIVATE = "private"


@irdl_attr_definition
class AddressSpaceAttr(EnumAttribute[Space]):
    """`#gpu.address_space<workgroup>`: the memory that a memref lies in."""

    name = "gpu.address_space"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Space:
        with parser.in_angle_brackets():
            return parser.parse_str_enum(Space)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data.value)


@irdl_attr_definition
class ObjectAttr(ParametrizedAttribute):
    """`#gpu.object<#nvvm.target<...>, assembly = "...">`: the compiled form of a module for one target."""

    name = "gpu.object"
    target: Attribute
    format: StringAttr
    """`assembly` (text), `bin` or `offload`."""
    object: BytesAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            target = parser.parse_attribute()
            parser.parse_punctuation(",")
            format = parser.parse_identifier()
            parser.parse_punctuation("=")
            data = parser.parse_optional_bytes_literal()
            if data is None:
                data = parser.parse_str_literal().encode()
        return [target, StringAttr(format), BytesAttr(data)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.target)
            printer.print_string(f", {self.format.data} = ")
            printer.print_bytes_literal(self.object.data)


@irdl_op_definition
class ModuleOp(IRDLOperation):
    """A module of kernels that are compiled together, once for each of the `targets`."""

    name = "gpu.module"
    sym_name = prop_def(SymbolNameConstraint())
    targets = opt_prop_def(ArrayAttr[Attribute])
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface(), SymbolTable())

    def __init__(self, name: str):
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[Region(Block())])


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A function on the device; with the attribute `gpu.kernel`, one that the host launches."""

    name = "gpu.func"
    sym_name = attr_def(SymbolNameConstraint())
    kernel = opt_attr_def(UnitAttr, attr_name="gpu.kernel")
    sym_visibility = opt_attr_def(StringAttr)
    workgroup_attributions = attr_def(IntegerAttr, attr_name="workgroup_attributions")
    function_type = prop_def(FunctionType)
    known_block_size = opt_prop_def(DenseArrayBase.constr(i32))
    known_grid_size = opt_prop_def(DenseArrayBase.constr(i32))
    body = region_def()
    traits = traits_def(IsolatedFromAbove(), HasParent(ModuleOp), SymbolOpInterface())

    def __init__(self, name: str, body: Region, block: int, grid: int):
        """Make a kernel of `grid` blocks with `block` threads each, both in one dimension."""
        type = FunctionType.from_lists(body.block.arg_types, [])
        super().__init__(
            attributes={
                "sym_name": StringAttr(name),
                "gpu.kernel": UnitAttr(),
                "workgroup_attributions": IntegerAttr(0, i64),
            },
            properties={
                "function_type": type,
                "known_block_size": DenseArrayBase.from_list(i32, [block, 1, 1]),
                "known_grid_size": DenseArrayBase.from_list(i32, [grid, 1, 1]),
            },
            regions=[body],
        )

    @property
    def block_size(self) -> int | None:
        """The number of threads in a block; None if it is not known."""
        sizes = self.known_block_size
        if sizes is None:
            return None
        x, y, z = (int(size) for size in sizes.iter_values())
        return x * y * z

    def verify_(self) -> None:
        if not self.body.blocks:
            raise VerifyException("gpu.func has no body")
        shared = self.workgroup_attributions.value.data
        arguments = self.body.blocks[0].arg_types
        if self.function_type.inputs.data != arguments[: len(arguments) - shared]:
            raise VerifyException("the arguments of gpu.func's first block are not those of its type")
        if self.kernel is not None and len(self.function_type.outputs):
            raise VerifyException("a kernel gives no results")


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """The end of a function on the device."""

    name = "gpu.return"
    traits = traits_def(IsTerminator(), HasParent(FuncOp))
    assembly_format = "attr-dict"


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Barrier: each thread of a block waits here until all have arrived; writes before it are visible after it."""

    name = "gpu.barrier"
    assembly_format = "attr-dict"


@irdl_op_definition
class DynamicSharedMemoryOp(IRDLOperation):
    """The block's shared memory whose size is given at launch, as an array of bytes."""

    name = "gpu.dynamic_shared_memory"
    result = result_def(MemRefType)
    assembly_format = "attr-dict `:` type($result)"


@irdl_attr_definition
class SelectObjectAttr(ParametrizedAttribute):
    """`#gpu.select_object`: the first object that runs on the device."""

    name = "gpu.select_object"


@irdl_op_definition
class BinaryOp(IRDLOperation):
    """The compiled objects of the `gpu.module` of this name."""

    name = "gpu.binary"
    sym_name = prop_def(SymbolNameConstraint())
    objects = prop_def(ArrayAttr[ObjectAttr])
    offloadingHandler = opt_prop_def(Attribute)
    traits = lazy_traits_def(lambda: (SymbolOpInterface(),))

    def __init__(self, name: str, objects: Sequence[ObjectAttr]):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "objects": ArrayAttr(objects),
                "offloadingHandler": SelectObjectAttr(),
            }
        )


Gpu = extended(
    gpu.GPU,
    [ModuleOp, FuncOp, ReturnOp, BarrierOp, DynamicSharedMemoryOp, BinaryOp],
    [AddressSpaceAttr, ObjectAttr, SelectObjectAttr],
)
