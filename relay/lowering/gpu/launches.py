"""The launches of a planned module, one after the other, with the places of their buffers: what a runtime does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith, func, gpu, memref
from xdsl.ir import BlockArgument, Operation, SSAValue

from relay.errors import Unsupported
from relay.lowering.gpu.convert_parallel_loops_to_gpu import constant
from relay.module import IRModule
from relay.transforms.location import place

Place = tuple[int, int]
"""The number of an argument of @main, and an offset in bytes."""


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel: `grid` blocks of `block` threads, `shared` bytes for each block."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[Place, ...]

    def row(self) -> dict[str, Any]:
        """The launch as JSON has it."""
        return {
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "shared": self.shared,
            "arguments": [list(argument) for argument in self.arguments],
        }


def launches(module: IRModule) -> list[Launch]:
    """What @main launches, in order. Raises Unsupported for what only a CPU does."""
    functions = {f.sym_name.data: f for f in module.op.body.block.ops if isinstance(f, func.FuncOp)}
    main = module["main"]
    places: dict[SSAValue, Place] = {argument: (number, 0) for number, argument in enumerate(main.body.block.args)}
    return list(launched(main, places, functions))


def launched(
    function: func.FuncOp, places: Mapping[SSAValue, Place], functions: Mapping[str, func.FuncOp]
) -> Iterator[Launch]:
    """What a function launches whose arguments lie at these places."""

    def place_of(value: SSAValue) -> Place:
        if isinstance(value, BlockArgument):
            return places[value]
        match value.owner:
            case memref.ViewOp() as view if (shift := constant(view.byte_shift)) is not None:
                base, offset = place_of(view.source)
                return base, offset + shift
            case memref.CollapseShapeOp() | memref.ExpandShapeOp() | memref.SubviewOp() | memref.CastOp() as view:
                return place_of(view.operands[0])
            case other:
                assert isinstance(other, Operation)
                raise Unsupported(place(other), "gives a kernel what is no buffer of the plan")

    for op in function.body.block.ops:
        match op:
            case gpu.LaunchFuncOp():
                yield Launch(
                    op.kernel.nested_references.data[0].data,
                    triple(op, op.gridSizeX, op.gridSizeY, op.gridSizeZ),
                    triple(op, op.blockSizeX, op.blockSizeY, op.blockSizeZ),
                    0 if op.dynamicSharedMemorySize is None else constant(op.dynamicSharedMemorySize) or 0,
                    tuple(place_of(value) for value in op.kernelOperands),
                )
            case func.CallOp():
                callee = functions[op.callee.string_value()]
                if not callee.body.blocks:
                    raise Unsupported(place(op), "calls a function of an external compiler", 'build for target="llvm"')
                arguments = zip(callee.body.block.args, op.arguments, strict=True)
                yield from launched(callee, {inner: place_of(value) for inner, value in arguments}, functions)
            case (
                arith.ConstantOp()
                | memref.ViewOp()
                | memref.CollapseShapeOp()
                | memref.ExpandShapeOp()
                | memref.SubviewOp()
                | memref.CastOp()
                | func.ReturnOp()
            ):
                pass
            case _:
                raise Unsupported(place(op), "is done by the host between kernels", 'build for target="llvm"')


def triple(op: Operation, *sizes: SSAValue) -> tuple[int, int, int]:
    """Sizes of a grid or block, which are constant."""
    found = [number for size in sizes if (number := constant(size)) is not None]
    if len(found) != 3:
        raise Unsupported(place(op), "has a grid whose size is not constant")
    return found[0], found[1], found[2]
