"""`bufferize`: tensors to memrefs, by destination passing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, bufferization, func, memref, scf, tensor
from xdsl.dialects.builtin import (
    AnyFloat,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    ModuleOp,
    UnitAttr,
    i32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.utils import get_dynamic_index_list
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects.attributes import int_values, ints, scalar_attr
from relay.dialects.op import DYNAMIC, Type, created, is_tensor
from relay.dialects.op import tensor as tensor_of
from relay.errors import Unsupported
from relay.lowering.builder import contiguous, numbers
from relay.lowering.call_graph import CallGraph
from relay.lowering.shaped import Buffer, buffer_of, memref_type
from relay.lowering.walking import walked
from relay.passes import Pass
from relay.transforms.location import place

ALIGNMENT = 64


@dataclass(frozen=True)
class Bufferize(Pass):
    """Turn tensors into memrefs.

    Results of functions, also of those that are only declared, become arguments that the caller passes, so that kernels
    allocate only their own scratch memory; constants inside kernels become arguments, too. Both branches of an `scf.if`
    write its results to the same buffers, which are allocated before the `scf.if`; carried values of an `scf.while` are
    in the same buffers in every iteration. Memrefs that a function takes stay, and so do ops on them.

    Takes the output of `relay-to-linalg`: static shapes, `tensor.*`, `linalg.generic`, `linalg.fill`, `func.call`,
    `scf.if`, `scf.while`.
    """

    name = "bufferize"
    requires = ("linalg",)
    establishes = ("bufferized",)
    invalidates = ()
    why = "replaces tensors by memrefs"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        functions = (f.function_type for f in op.body.block.ops if isinstance(f, func.FuncOp))
        return not any(is_tensor(type) for f in functions for type in (*f.inputs, *f.outputs))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]
        calls = CallGraph(walked(op))
        for function in functions:
            if function.sym_visibility is not None and function.body.blocks and calls.of(function):
                hoist_constants(function, calls.of(function))
        for function in functions:
            if function.body.blocks:
                FunctionBufferizer(function).run()
            else:
                type = function.function_type
                buffers = [buffer_type(each) for each in (*type.inputs, *type.outputs)]
                function.properties["function_type"] = FunctionType.from_lists(buffers, [])


def check_signature(function: func.FuncOp) -> None:
    """Raise Unsupported for a result that is not a tensor, and for an argument of a public function that is neither a
    tensor nor a memref, because its callers pass arrays. A private function may take scalars."""
    takes = function.function_type.inputs if function.sym_visibility is None else ()
    for what, types in (("takes", takes), ("gives", function.function_type.outputs)):
        for type in types:
            if not is_tensor(type) and not (what == "takes" and isinstance(type, MemRefType)):
                scalar = what == "takes" and isinstance(type, IntegerType | IndexType | AnyFloat)
                hint = f"make it a tensor<{type}>; tensor.extract reads it" if scalar else ""
                raise Unsupported(f"function {function.sym_name.data}", f"{what} {type}, which is no tensor", hint)


VIEWS = tensor.CollapseShapeOp | tensor.ExpandShapeOp | tensor.ExtractSliceOp


def is_temporary(value: SSAValue) -> bool:
    """Whether the buffer of a tensor holds nothing that is read after the tensor's only use: it is not the buffer of an
    argument or a constant, nor a part of a buffer with other users."""
    owner = value.owner
    if isinstance(owner, Block | arith.ConstantOp) or not value.has_one_use():
        return False
    return not isinstance(owner, VIEWS) or is_temporary(owner.operands[0])


def buffer_type(type: Attribute) -> Attribute:
    """Return `memref<4xf32>` for `tensor<4xf32>`, and any other type unchanged."""
    return buffer_for(type) if is_tensor(type) else type


def buffer_for(type: Type) -> Buffer:
    """Return `memref<4xf32>` for `tensor<4xf32>`."""
    return memref_type(type.element_type, *type.get_shape())


class FunctionBufferizer:
    """Rewrites one function. `buffers` maps tensors to memrefs, `destination` maps a tensor to the memref that must
    contain it."""

    def __init__(self, function: func.FuncOp):
        self.function = function
        self.entry = self.block = function.body.block
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.destination: dict[SSAValue, SSAValue] = {}
        self.at: Operation = function

    def run(self) -> None:
        function, block = self.function, self.block
        end = block.last_op
        if not isinstance(end, func.ReturnOp):
            raise Unsupported(f"function {function.sym_name.data}", "has no func.return")
        first = block.first_op
        assert first is not None
        self.at = first
        check_signature(function)
        for constant in [
            op for op in function.walk() if isinstance(op, arith.ConstantOp) and is_tensor(op.result.type)
        ]:
            if constant.parent is not block:
                before = self.outermost(constant)
                constant.detach()
                block.insert_op_before(constant, before)
        tensors = [a for a in block.args if is_tensor(a.type)]
        for argument in tensors:
            new = block.insert_arg(buffer_type(argument.type), argument.index)
            new.name_hint, new.location = argument.name_hint, argument.location
            self.buffers[argument] = new
        outputs = [block.insert_arg(buffer_type(v.type), len(block.args)) for v in end.arguments]
        for value, output in zip(end.arguments, outputs, strict=True):
            self.assign(value, output)
        self.convert_block(end, outputs, func.ReturnOp())
        for argument in tensors:
            block.erase_arg(argument)
        function.update_function_type()
        function.properties.pop("arg_attrs", None)
        function.properties.pop("res_attrs", None)

    def convert_block(self, end: Operation, outputs: Sequence[SSAValue], new_end: Operation) -> None:
        """Convert the ops of the current block; the values that its terminator yields are written to `outputs`."""
        block = self.block
        for op in list(block.ops):
            self.at = op
            self.convert(op)
        self.at = end
        tensors = [value for value in end.operands if is_tensor(value.type)]
        for value, output in zip(tensors, outputs, strict=True):
            if self.destination.get(value) is not output:
                self.copy(self.held(value), output)
        self.insert(new_end)
        self.drop(block, end)

    def outermost(self, op: Operation) -> Operation:
        """Return the op of the function's own block that contains this op, or this op itself."""
        while op.parent is not self.entry:
            holder = op.parent_op()
            assert holder is not None
            op = holder
        return op

    def insert(self, op: Operation) -> None:
        op.location = self.at.location
        self.block.insert_op_before(op, self.at)

    def value(self, op: Operation) -> SSAValue:
        self.insert(op)
        return op.results[0]

    # Buffers of results

    def assign(self, value: SSAValue, buffer: SSAValue) -> None:
        """Make an op compute the tensor directly in this buffer, if possible."""
        op = value.owner
        if isinstance(op, Block) or op.parent is not self.block or value in self.destination:
            return
        match op:
            case tensor.CollapseShapeOp() | tensor.ExpandShapeOp():
                view = self.value(reshaped(buffer, tensor_of(op.src), op.reassociation))
                self.assign(op.src, view)
                if self.destination.get(op.src) is view:
                    self.destination[value] = buffer
            case tensor.InsertSliceOp():
                self.destination[value] = buffer
                if op.dest.has_one_use():
                    self.assign(op.dest, buffer)
            case tensor.EmptyOp() | linalg.GenericOp() | linalg.FillOp() | tensor.PadOp() | func.CallOp() | scf.IfOp():
                self.destination[value] = buffer
            case _:
                pass

    def fresh(self, value: SSAValue) -> SSAValue:
        """Return the buffer in which a tensor must be computed because a later op stores it there; a new buffer if
        no later op does."""
        return self.destination.get(value) or self.allocate(value)

    def allocate(self, value: SSAValue) -> SSAValue:
        """Allocate a buffer for a tensor."""
        type = tensor_of(value)
        if DYNAMIC in type.get_shape():
            raise Unsupported(place(self.at), f"has the dynamic shape {type}", "give all tensors static shapes")
        op = memref.AllocOp.create(
            result_types=[buffer_for(type)],
            properties={"alignment": scalar_attr(ALIGNMENT, i64), "operandSegmentSizes": numbers(i32, (0, 0))},
            location=self.at.location,
        )
        self.entry.insert_op_before(op, self.outermost(self.at))
        return op.memref

    def copy(self, source: SSAValue, target: SSAValue) -> None:
        self.insert(memref.CopyOp(source, target))

    def held(self, value: SSAValue) -> SSAValue:
        """Return the tensor's buffer. A tensor that no op writes, because it is empty or only gives a shape, gets one
        here."""
        if value not in self.buffers and isinstance(value.owner, tensor.EmptyOp):
            self.buffers[value] = self.fresh(value)
        return self.buffers[value]

    def dense(self, value: SSAValue) -> SSAValue:
        """Return the tensor's buffer, copied if it is a strided view."""
        buffer = self.held(value)
        if contiguous(buffer.type):
            return buffer
        new = self.allocate(value)
        self.copy(buffer, new)
        return new

    # Operations

    def convert(self, op: Operation) -> None:
        match op:
            case bufferization.ToBufferOp() if isinstance(op.tensor.owner, arith.ConstantOp):
                pass
            case arith.ConstantOp() if is_tensor(op.result.type):
                users = [use.operation for use in op.result.uses]
                if users and all(isinstance(user, bufferization.ToBufferOp) for user in users):
                    return
                new = read_only_buffer(op)
                self.block.insert_op_after(new, op)
                self.buffers[op.result] = new.results[0]
            case linalg.FillOp() if op.results:
                self.convert_fill(op)
            case linalg.GenericOp() if op.results:
                self.convert_generic(op)
            case tensor.PadOp():
                self.convert_pad(op)
            case tensor.CollapseShapeOp() | tensor.ExpandShapeOp():
                if op.result in self.destination:
                    self.buffers[op.result] = self.destination[op.result]
                else:
                    shaped = reshaped(self.dense(op.src), tensor_of(op.result), op.reassociation)
                    self.buffers[op.result] = self.value(shaped)
            case tensor.ExtractSliceOp():
                self.buffers[op.result] = self.view(self.held(op.source), op)
            case tensor.InsertSliceOp():
                self.convert_insert(op)
            case func.CallOp():
                self.convert_call(op)
            case scf.IfOp():
                self.convert_if(op)
            case scf.WhileOp():
                self.convert_while(op)
            case tensor.ExtractOp():
                Rewriter.replace_op(op, [], [self.value(memref.LoadOp.get(self.held(op.tensor), list(op.indices)))])
            case tensor.EmptyOp() | func.ReturnOp() | scf.YieldOp() | scf.ConditionOp():
                pass
            case _:
                if any(is_tensor(v.type) for v in (*op.operands, *op.results)):
                    raise Unsupported(f"bufferize: {op.name}", "is no operation that relay-to-linalg makes")

    def convert_fill(self, op: linalg.FillOp) -> None:
        """Convert a fill; if it only initializes reductions, these fill their own buffers instead."""
        result = op.results[0]
        users = [use.operation for use in result.uses]
        if result in self.destination or not all(
            isinstance(u, linalg.GenericOp) and result in tuple(u.outputs) for u in users
        ):
            self.buffers[result] = self.filled(op.inputs[0], result)

    def filled(self, number: SSAValue, result: SSAValue) -> SSAValue:
        """Return a buffer for a result, filled with a number."""
        buffer = self.fresh(result)
        self.insert(linalg.FillOp([number], [buffer], []))
        return buffer

    def init(self, value: SSAValue, result: SSAValue) -> SSAValue:
        """Return a buffer for the result of a generic op, initialized with the init tensor."""
        owner = value.owner
        if isinstance(owner, tensor.EmptyOp):
            return self.fresh(result)
        if isinstance(owner, linalg.FillOp) and value not in self.buffers:
            return self.filled(owner.inputs[0], result)
        return self.updated(value, result)

    def updated(self, value: SSAValue, result: SSAValue) -> SSAValue:
        """Return a buffer for the result of an op that changes elements of `value`: the buffer of `value` if it may be
        overwritten, else a copy of it."""
        buffer = self.buffers[value]
        if is_temporary(value) and self.destination.get(result, buffer) is buffer:
            return buffer
        new = self.fresh(result)
        self.copy(buffer, new)
        return new

    def convert_generic(self, op: linalg.GenericOp) -> None:
        outputs = [self.init(v, r) for v, r in zip(op.outputs, op.results, strict=True)]
        inputs = [self.held(v) if is_tensor(v.type) else v for v in op.inputs]
        body = op.body
        for inner in list(body.block.ops):
            if isinstance(inner, tensor.ExtractOp):
                load = memref.LoadOp.get(self.held(inner.tensor), list(inner.indices))
                load.location = inner.location
                body.block.insert_op_before(load, inner)
                Rewriter.replace_op(inner, [], [load.res])
        region = Region()
        body.move_blocks(region)
        new = linalg.GenericOp.create(
            operands=[*inputs, *outputs],
            properties={
                "indexing_maps": op.indexing_maps,
                "iterator_types": op.iterator_types,
                "operandSegmentSizes": numbers(i32, (len(inputs), len(outputs))),
            },
            regions=[region],
        )
        new.attributes.update(op.attributes)
        self.insert(new)
        self.buffers.update(zip(op.results, outputs, strict=True))

    def convert_pad(self, op: tensor.PadOp) -> None:
        end = op.region.block.last_op
        assert isinstance(end, tensor.YieldOp)
        buffer = self.filled(end.operands[0], op.result)
        source = self.held(op.source)
        sizes = tensor_of(op.source).get_shape()
        inner = self.value(subview(buffer, int_values(op.static_low), sizes, [1] * len(sizes)))
        self.copy(source, inner)
        self.buffers[op.result] = buffer

    def convert_insert(self, op: tensor.InsertSliceOp) -> None:
        empty = isinstance(op.dest.owner, tensor.EmptyOp)
        buffer = self.fresh(op.result) if empty else self.updated(op.dest, op.result)
        self.copy(self.held(op.source), self.view(buffer, op))
        self.buffers[op.result] = buffer

    def view(self, buffer: SSAValue, op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> SSAValue:
        if op.sizes or op.strides:
            raise Unsupported(f"bufferize: {op.name}", "has sizes or strides that are not constant")
        offsets = get_dynamic_index_list(int_values(op.static_offsets), op.offsets, DYNAMIC)
        return self.value(subview(buffer, offsets, int_values(op.static_sizes), int_values(op.static_strides)))

    def convert_call(self, op: func.CallOp) -> None:
        inputs = [self.dense(v) if is_tensor(v.type) else v for v in op.arguments]
        outputs = [self.fresh(r) for r in op.results]
        self.insert(func.CallOp(op.callee, [*inputs, *outputs], []))
        self.buffers.update(zip(op.results, outputs, strict=True))
        if not op.results:
            Rewriter.erase_op(op)

    def convert_if(self, op: scf.IfOp) -> None:
        """Convert an `scf.if`: both branches write the results to buffers; results that are not tensors remain
        results."""
        outputs = [self.fresh(result) for result in op.results if is_tensor(result.type)]
        for region in op.regions:
            for block in region.blocks:
                self.convert_inside(block, outputs, direct=True)
        self.insert_without_tensors(op, outputs)

    def convert_while(self, op: scf.WhileOp) -> None:
        """Convert a loop: carried tensors are in the same buffers in every iteration. The buffers of the test's block
        start as copies of the initial values; the buffers of the values that the test passes on are also the loop's
        results. Scalars remain loop-carried values."""
        tested, given = op.before_region.block, op.after_region.block
        carried = [self.allocate(arg) for arg in tested.args if is_tensor(arg.type)]
        for value, buffer in zip([v for v in op.arguments if is_tensor(v.type)], carried, strict=True):
            self.copy(self.dense(value), buffer)
        kept = [self.allocate(arg) for arg in given.args if is_tensor(arg.type)]
        for block, buffers, others in ((tested, carried, kept), (given, kept, carried)):
            tensors = [arg for arg in block.args if is_tensor(arg.type)]
            self.buffers.update(zip(tensors, buffers, strict=True))
            self.convert_inside(block, others, direct=False)
            for arg in tensors:
                block.erase_arg(arg)
        self.insert_without_tensors(op, kept)

    def convert_inside(self, block: Block, outputs: Sequence[SSAValue], *, direct: bool) -> None:
        """Convert the ops of a branch or of a loop's block in place. `direct`: ops may write to the outputs themselves,
        because nothing in the block reads them."""
        outer, at, end = self.block, self.at, block.last_op
        assert isinstance(end, scf.YieldOp | scf.ConditionOp) and block.first_op is not None
        self.block, self.at = block, block.first_op
        values = end.arguments if isinstance(end, scf.YieldOp) else end.args
        tensors = [value for value in values if is_tensor(value.type)]
        for value, output in zip(tensors, outputs, strict=True) if direct else ():
            self.assign(value, output)
        others = [value for value in values if not is_tensor(value.type)]
        new = scf.YieldOp(*others) if isinstance(end, scf.YieldOp) else scf.ConditionOp(end.condition, *others)
        self.convert_block(end, outputs, new)
        self.block, self.at = outer, at

    def insert_without_tensors(self, op: scf.IfOp | scf.WhileOp, buffers: Sequence[SSAValue]) -> None:
        """Insert a copy of an `scf.if` or `scf.while`, whose regions are already converted, without the operands and
        results that are tensors; `buffers` take the place of these results."""
        tensors = [result for result in op.results if is_tensor(result.type)]
        others = [result for result in op.results if not is_tensor(result.type)]
        new = type(op).create(
            operands=[value for value in op.operands if not is_tensor(value.type)],
            result_types=[result.type for result in others],
            regions=[op.detach_region(region) for region in list(op.regions)],
        )
        self.insert(new)
        for old, result in zip(others, new.results, strict=True):
            old.replace_all_uses_with(result)
        self.buffers.update(zip(tensors, buffers, strict=True))
        if not tensors:
            Rewriter.erase_op(op)

    def drop(self, block: Block, end: Operation) -> None:
        """Erase the old terminator of a block, and the ops whose results were tensors."""
        Rewriter.erase_op(end)
        for op in reversed(list(block.ops)):
            if any(is_tensor(r.type) for r in op.results) and not isinstance(op, arith.ConstantOp):
                Rewriter.erase_op(op, safe_erase=False)


def read_only_buffer(constant: arith.ConstantOp) -> bufferization.ToBufferOp:
    """Return the op that makes a constant tensor a buffer."""
    types, properties = [buffer_type(constant.result.type)], {"read_only": UnitAttr()}
    return created(bufferization.ToBufferOp, [constant.result], types, properties, location=constant.location)


def subview(
    buffer: SSAValue, offsets: Sequence[SSAValue | int], sizes: Sequence[int], strides: Sequence[int]
) -> Operation:
    """Return a view of a part of a buffer; its offsets may be computed."""
    result = memref.SubviewOp.infer_result_type(buffer_of(buffer), offsets, sizes, strides)
    return memref.SubviewOp.get(buffer, offsets, sizes, strides, result)


def reshaped(buffer: SSAValue, like: Type, reassociation: Attribute) -> Operation:
    """Return the buffer reshaped to the shape of a tensor type with more or fewer dimensions."""
    type = buffer_for(like)
    properties: dict[str, Attribute] = {"reassociation": reassociation}
    if type.get_num_dims() < buffer_of(buffer).get_num_dims():
        return memref.CollapseShapeOp.create(operands=[buffer], result_types=[type], properties=properties)
    properties["static_output_shape"] = ints(type.get_shape())
    return memref.ExpandShapeOp.create(operands=[buffer], result_types=[type], properties=properties)


def hoist_constants(function: func.FuncOp, calls: Sequence[func.CallOp]) -> None:
    """Replace the tensor constants of a kernel by arguments, which every call passes."""
    block = function.body.block
    constants = [op for op in function.walk() if isinstance(op, arith.ConstantOp) and is_tensor(op.result.type)]
    if not constants:
        return
    for constant in constants:
        argument = block.insert_arg(constant.result.type, len(block.args))
        constant.result.replace_all_uses_with(argument)
        constant.detach()
    function.update_function_type()
    function.properties.pop("arg_attrs", None)
    for call in calls:
        copies = [constant.clone() for constant in constants]
        new = func.CallOp(call.callee, [*call.operands, *(c.result for c in copies)], call.result_types)
        new.location = call.location
        Rewriter.insert_op([*copies, new], InsertPoint.before(call))
        Rewriter.replace_op(call, [], new.results)
    for constant in constants:
        constant.erase()
