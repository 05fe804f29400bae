"""Small modules written as a line an op, compilers that take what they are told to, and what became of the modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, NameLoc, StringAttr, TensorType, UnknownLoc, f32, i32, i64
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from relay.byoc.compiler import Artifact, BuildInfo, Compiler, Refusal
from relay.byoc.partitioning.annotate_target import AnnotateTarget
from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.partitioning.partition_graph import PartitionGraph
from relay.byoc.patterns import Entry
from relay.dialects import byoc, qnn, relay
from relay.dialects.attributes import Array, dtype_of, elements
from relay.dialects.op import TensorOp, Type, tensor
from relay.interpreters import run
from relay.module import IRModule

OPS: dict[str, type[TensorOp]] = {
    op.name.removeprefix("relay."): op
    for op in (*relay.Relay.operations, *qnn.Qnn.operations)
    if issubclass(op, TensorOp)
}
BOUNDS: dict[Attribute, dict[str, Attribute]] = {
    f32: {"a_min": FloatAttr(0.0, f32), "a_max": FloatAttr(6.0, f32)},
    i32: {"a_min": IntegerAttr(0, i32), "a_max": IntegerAttr(6, i32)},
}


T = "tensor<4xf32>"
FLOATS: Type = TensorType(f32, [4])
INTEGERS: Type = TensorType(i32, [4])


def properties(name: str, first: Sequence[SSAValue]) -> dict[str, Attribute]:
    """What ops need besides operands."""
    if name == "clip":
        return dict(BOUNDS[tensor(first[0]).element_type])
    if name == "concatenate":
        return {"axis": IntegerAttr(0, i64)}
    if name == "nn.conv2d":
        return {"out_dtype": f32}
    return {}


def function(text: str, inputs: str = "x", type: Type = FLOATS, name: str = "main") -> FuncOp:
    """A function of lines `result = op operands`, `result = constant number` and, last, `return results`; every
    argument has the type (by default 4 floats), every constant too. Ops come from an operator named as their result."""
    block = Block(arg_types=[type] * len(inputs.split()))
    values: dict[str, SSAValue] = dict(zip(inputs.split(), block.args, strict=True))
    for argument, hint in zip(block.args, inputs.split(), strict=True):
        argument.name_hint = hint
    for line in filter(None, map(str.strip, text.splitlines())):
        left, _, right = line.partition(" = ")
        if line.startswith("return"):
            block.add_op(ReturnOp(*(values[each] for each in line.replace(",", "").split()[1:])))
            continue
        kind, *operands = right.split()
        if kind == "constant":
            array = np.full(type.get_shape(), float(operands[0]), dtype_of(type.element_type))
            op: Operation = relay.ConstantOp.make([], {"value": elements(array, label=left)})
        elif kind == "call":
            op = CallOp(operands[0], [values[each] for each in operands[1:]], [type])
        else:
            given = [values[each] for each in operands]
            op = OPS[kind].make(given, properties(kind, given))
        block.add_op(op)
        op.location = NameLoc(StringAttr(left), UnknownLoc())
        for result, each in zip(op.results, left.split(", "), strict=True):
            values[each], result.name_hint = result, each
    assert isinstance(end := block.last_op, ReturnOp)
    types = ([argument.type for argument in block.args], [value.type for value in end.arguments])
    return FuncOp(name, types, Region(block))


def module(text: str, inputs: str = "x", type: Type = FLOATS) -> IRModule:
    """A module of one function, `main`."""
    mod = IRModule()
    mod["main"] = function(text, inputs, type)
    mod.verify()
    return mod


Supports = Callable[[Operation], bool | Refusal]
Cost = Callable[[Sequence[Operation]], float | None]
Regions = Callable[[Sequence[Operation]], Sequence[Sequence[Operation]] | Refusal]


class Known:
    """The registry of a test: `known("x", "add")` makes a compiler `x` known that takes `relay.add`."""

    def __init__(self, registered: dict[str, type[Compiler]]):
        self.registered = registered

    def __call__(
        self,
        name: str,
        *takes: str,
        entries: Sequence[Entry] = (),
        supports: Supports | None = None,
        cost: Cost | None = None,
        exact: bool = True,
        difference: str = "",
        on_functions: Sequence[ModulePass] = (),
        compiled: Callable[[FuncOp], Artifact] | None = None,
        regions: Regions | None = None,
    ) -> None:
        """A compiler that takes these ops and the matches of these entries."""
        given = (name, exact, difference, cost, supports, on_functions, compiled, regions)

        class Made(Compiler):
            name, exact, difference = given[:3]

            def patterns(self) -> Sequence[Entry]:
                return entries

            def supports(self, op: Operation) -> bool | Refusal:
                return given[4](op) if given[4] is not None else short(op) in takes

            def cost(self, ops: Sequence[Operation]) -> float | None:
                return None if given[3] is None else given[3](ops)

            def regions(self, ops: Sequence[Operation]) -> Sequence[Sequence[Operation]] | Refusal:
                return [ops] if given[7] is None else given[7](ops)

            def on_functions(self) -> Sequence[ModulePass]:
                return given[5]

            def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
                return Artifact(b"") if given[6] is None else given[6](function)

        self.registered[name] = Made


def short(op: Operation) -> str:
    """The op's name as Relay spells it."""
    return op.name.removeprefix("relay.")


def listing(block: Block) -> list[str]:
    """A word or a few for each op of a block: `add`, `begin x`, `call f`, `x[add, x.entry[multiply]]`."""
    found: list[str] = []
    for op in block.ops:
        match op:
            case byoc.CompilerBeginOp():
                found.append(f"begin {op.compiler.data}")
            case byoc.CompilerEndOp():
                found.append(f"end {op.compiler.data}")
            case byoc.RegionOp():
                found.append(f"{op.compiler.data}[{', '.join(listing(op.body.block))}]")
            case byoc.CompositeOp():
                found.append(f"{op.composite.data}[{', '.join(listing(op.body.block))}]")
            case CallOp():
                found.append(f"call {op.callee.string_value()}")
            case byoc.YieldOp() | ReturnOp():
                continue
            case _:
                found.append(short(op))
    return found


def ops(mod: IRModule, name: str = "main") -> list[str]:
    """The listing of a function."""
    return listing(mod[name].body.block)


def external(mod: IRModule) -> dict[str, list[str]]:
    """The listings of the functions of compilers, by name."""
    return {name: ops(mod, name) for name, function in mod.functions.items() if "compiler" in function.attributes}


def annotated(mod: IRModule, *targets: str) -> IRModule:
    return AnnotateTarget(targets)(mod)


def merged(mod: IRModule, *targets: str) -> IRModule:
    return MergeCompilerRegions()(annotated(MergeComposite(targets)(mod), *targets))


def partition(mod: IRModule, *targets: str) -> IRModule:
    """What goes to the targets, as functions; checked to verify, and to compute the same at every step."""
    composites = MergeComposite(targets)(mod)
    marked = annotated(composites, *targets)
    regions = MergeCompilerRegions()(marked)
    functions = PartitionGraph()(regions)
    same(mod, composites, marked, regions, functions)
    return functions


def arguments(mod: IRModule, seed: int = 0) -> list[Array]:
    """Inputs for `main`."""
    rng = np.random.default_rng(seed)
    found: list[Array] = []
    for argument in mod["main"].body.block.args:
        dtype = dtype_of(tensor(argument).element_type)
        numbers: npt.NDArray[Any] = rng.integers(-100, 100, tensor(argument).get_shape())
        found.append((numbers / 8 if dtype.kind == "f" else numbers).astype(dtype))
    return found


def same(mod: IRModule, *others: IRModule) -> None:
    """Every module verifies and computes what the first does."""
    given = arguments(mod)
    wanted = run(mod, given)
    for other in others:
        other.verify()
        for a, b in zip(run(other, given), wanted, strict=True):
            assert a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def returned(mod: IRModule, name: str = "main") -> Sequence[SSAValue]:
    """What a function returns."""
    end = mod[name].body.block.last_op
    assert isinstance(end, ReturnOp)
    return list(end.arguments)
