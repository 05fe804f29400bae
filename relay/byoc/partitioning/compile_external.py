"""The pass `compile-external`: runs external compilers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay import artifact
from relay.artifact import CompiledFunction
from relay.byoc import accuracy, registry
from relay.byoc.compiler import Artifact, BuildInfo, Compiler, Refusal
from relay.byoc.guard import asked
from relay.byoc.partitioning.bodies import inline_all
from relay.byoc.partitioning.inline_partitions import inline_calls
from relay.byoc.partitioning.records import keep_operators, keep_refusals, restore
from relay.byoc.partitioning.refusals import refuse
from relay.byoc.partitioning.scope import CONSTANTS, blocks, eligible, functions
from relay.byoc.settings import compiler_of, requires_exact
from relay.dialects import byoc
from relay.dialects.attributes import dtype_of, element_type, elements, to_numpy
from relay.dialects.op import is_tensor
from relay.dialects.relay import ConstantOp
from relay.errors import RelayError, Unsupported
from relay.lowering.call_graph import CallGraph
from relay.passes import Pass, Pipeline
from relay.passes.runner import Runner
from relay.target import target_of
from relay.transforms.legalization import own
from relay.transforms.location import words

HANDLE_BYTES = 8


@dataclass(frozen=True)
class CompileExternal(Pass):
    """Have each external compiler compile the functions that `partition-graph` made for it. Each becomes a declaration
    that holds the artifact, and calls of it stay calls down to native code.

    A module that is only partly partitioned is finished first: annotations and regions become functions, composites
    outside of regions are dissolved, and a function that only requests a compiler (`compiler = "x"` without
    `global_symbol`) is offered to it. A function that its compiler refuses as a whole, or returns as other ops, is
    inlined into its callers on the host. Modules without any of these are not changed.
    """

    name: ClassVar[str] = "compile-external"
    establishes = ("compiled",)
    invalidates = ("legal", "folded", "kernels")
    why = "compiles the functions of external compilers"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(
            isinstance(inner, byoc.Boundary | byoc.Body) or (isinstance(inner, FuncOp) and is_external(inner))
            for inner in op.walk()
        )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        partition(ctx, op)
        waiting: dict[str, list[FuncOp]] = {}
        for function in [f for f in op.body.block.ops if isinstance(f, FuncOp) and is_external(f)]:
            waiting.setdefault(artifact.compiler_of(function) or "", []).append(function)
        for name, asking in waiting.items():
            compiler = compiler_of(op, name, f"function {asking[0].sym_name.data}")
            left = dict(zip(asking, prepared(compiler, asking), strict=True))
            made: dict[FuncOp, tuple[BuildInfo, CompiledFunction | Refusal | FuncOp]] = {}
            before = len(left) + 1
            while len(left) < before:  # repeated, since returning one function may change how the others are compiled
                before = len(left)
                for function, final in left.items():
                    info = build_info(op, function, left)
                    if function not in made or made[function][0] != info:
                        made[function] = info, compiled(compiler, final, info)
                for function in list(left):
                    if not isinstance(found := made[function][1], CompiledFunction):
                        del left[function]
                        give_back(op, function, found)
            for function in left:
                keep_operators(function)
                accuracy.keep(compiler, function)
                found = made[function][1]
                assert isinstance(found, CompiledFunction)
                if found.types != function.function_type:
                    provide(op, function, found.types)
                Rewriter.replace_op(function, artifact.declare(function, found), [])


def is_external(function: FuncOp) -> bool:
    """Whether an external compiler still has to compile the function."""
    return artifact.COMPILER in function.attributes and bool(function.body.blocks)


def partition(ctx: Context, module: ModuleOp) -> None:
    """Finish partitioning, so that no annotation, region or composite is left outside of external functions.

    A function with the attribute `compiler` that no pass made (it has no `global_symbol`) requests partitioning.
    """
    functions = [f for f in module.body.block.ops if isinstance(f, FuncOp) and is_external(f)]
    if any(artifact.SYMBOL not in function.attributes for function in functions):
        from relay.byoc.partitioning.annotate_external_compiler import AnnotateExternalCompiler
        from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
        from relay.byoc.partitioning.prune_regions import PruneRegions

        for step in (AnnotateExternalCompiler(), MergeCompilerRegions(), PruneRegions(compute=False)):
            step.apply(ctx, module)
    if any(isinstance(op, byoc.Boundary | byoc.Body) for op in own(module)):
        from relay.byoc.partitioning.partition_graph import PartitionGraph

        PartitionGraph().apply(ctx, module)


def prepared(compiler: Compiler, functions: Sequence[FuncOp]) -> list[FuncOp]:
    """Copies of the functions after the compiler's `on_functions` passes, which run on a module that contains only
    them, as host functions."""
    clones = [function.clone() for function in functions]
    module = ModuleOp(list[Operation](clones))
    with asked(compiler.name, "on_functions"):
        passes = Pipeline(list(compiler.on_functions())).items
    if passes:
        for clone in clones:
            clone.attributes.pop(artifact.COMPILER)
        Runner(module).run(passes, explicit=True)
    found = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    return [checked(compiler, function, found.get(function.sym_name.data)) for function in functions]


def checked(compiler: Compiler, old: FuncOp, new: FuncOp | None) -> FuncOp:
    """Check the function `new` that the external compiler's passes made of `old`, and return it with the attributes of
    `old`. Raises Unsupported if the passes removed the function, changed its type, or gave it several blocks."""
    if new is None or new.function_type != old.function_type or len(new.body.blocks) != 1:
        what = "is gone" if new is None else f"is now {new.function_type}"
        where = f"compiler {compiler.name}: function {old.sym_name.data}"
        raise Unsupported(where, f"{what} after the passes of on_functions or compile", f"it was {old.function_type}")
    new.attributes.update(old.attributes)
    return new


def build_info(module: ModuleOp, function: FuncOp, others: Collection[FuncOp]) -> BuildInfo:
    """Return the facts about the module that a function's compiler may use: target, exactness, where constants are
    stored, and which arguments and results, of at least `HANDLE_BYTES`, are only exchanged with functions of `others`.
    `others` are all functions that the same compiler compiles."""
    calls = CallGraph(module.walk())
    ours = {other.sym_name.data for other in others}

    def own(value: SSAValue) -> bool:
        callees = [use.operation for use in value.uses]
        every = [*callees, value.owner]
        called = all(isinstance(op, CallOp) and op.callee.string_value() in ours for op in every)
        return called and bool(callees) and bytes_of(value) >= HANDLE_BYTES

    found = calls.of(function)
    count, results = len(function.function_type.inputs), len(function.function_type.outputs)
    inputs = tuple(n for n in range(count) if found and all(own(call.arguments[n]) for call in found))
    outputs = tuple(n for n in range(results) if found and all(own(call.results[n]) for call in found))
    constants = "vendor" if CONSTANTS in function.attributes else "bind"
    return BuildInfo(target_of(module), requires_exact(module), constants, inputs, outputs)


def bytes_of(value: SSAValue) -> int:
    """The size of a tensor in bytes; 0 if unknown."""
    if not is_tensor(value.type) or DYNAMIC_INDEX in value.type.get_shape():
        return 0
    return prod(value.type.get_shape()) * dtype_of(value.type.element_type).itemsize


def give_back(module: ModuleOp, function: FuncOp, made: Refusal | FuncOp) -> None:
    """Inline the function into its callers on the host: its own ops (after a refusal), or those that its compiler
    returned."""
    name = function.sym_name.data
    if isinstance(made, Refusal):
        for op in function.walk():
            if eligible(op):
                refuse(op, artifact.compiler_of(function) or "", made.reason)
        made = function
    restore(module)
    for holder in functions(module):
        for block in list(blocks(holder)):
            inline_calls(block, {name: made})
            inline_all(block, byoc.CompositeOp)
    keep_refusals(module)
    Rewriter.erase_op(function)


def compiled(compiler: Compiler, function: FuncOp, build: BuildInfo) -> CompiledFunction | Refusal | FuncOp:
    """The compiled function, the compiler's refusal, or a function that the host compiles instead. Any exception of the
    compiler is raised as RelayError."""
    source = words(function.location)
    where = f"{source}: " if source else ""
    where += f"compiler {compiler.name}: function {function.sym_name.data}"
    for each in (*function.function_type.inputs, *function.function_type.outputs):
        if not is_tensor(each) or DYNAMIC_INDEX in each.get_shape():
            raise Unsupported(where, f"takes or gives {each}", "give the model's inputs a static shape")
    try:
        made = compiler.compile(function, build)
    except RelayError:
        raise
    except Exception as error:
        raise Unsupported(where, f"failed: {type(error).__name__}: {error}", "tell the compiler's authors") from error
    if isinstance(made, Refusal):
        return made
    if isinstance(made, FuncOp):
        return checked(compiler, function, made)
    if not isinstance(cast(object, made), Artifact):
        raise Unsupported(where, f"gave {made!r}, which is no Artifact", "tell the compiler's authors")
    with asked(compiler.name, f"what it made of {function.sym_name.data}"):
        if kept := left_out(function, made):
            hint = "partition with constants=bind, or have it put them into the artifact"
            raise Unsupported(where, f"leaves '{kept}' to the executable, but its constants are the vendor's", hint)
        return made_of(compiler, function, made)


def provide(module: ModuleOp, function: FuncOp, types: FunctionType) -> None:
    """Add a workspace to calls of the function, as an extra result that nothing reads, so that the memory plan
    allocates it."""
    for call in CallGraph(module.walk()).of(function):
        made = CallOp(function.sym_name.data, call.arguments, types.outputs.data)
        made.location = call.location
        made.attributes.update(call.attributes)
        Rewriter.replace_op(call, made, made.results[: len(call.results)])


def left_out(function: FuncOp, made: Artifact) -> str:
    """The name of a constant that the compiler leaves to the executable although it must be in the artifact; "" if
    there is none. Constants of one element are not checked."""
    if CONSTANTS not in function.attributes:
        return ""
    constants = [to_numpy(op.value) for op in function.walk() if isinstance(op, ConstantOp)]
    for name, array in made.params.items():
        for constant in constants:
            if (
                array.size > 1
                and constant.dtype == array.dtype
                and np.array_equal(constant.reshape(-1), array.reshape(-1))
            ):
                return name
    return ""


def made_of(compiler: Compiler, function: FuncOp, made: Artifact) -> CompiledFunction:
    """The artifact as a CompiledFunction. Raises TypeError or ValueError for parts of wrong types."""
    types, byte = function.function_type, element_type(np.dtype(np.uint8))
    if (size := count_of(made.workspace)) > 0:
        types = FunctionType.from_lists(types.inputs.data, [*types.outputs.data, TensorType(byte, [size])])
    return CompiledFunction(
        artifact.symbol_of(function),
        compiler.name,
        compiler.version,
        types,
        np.frombuffer(made.data, np.uint8),
        {name: elements(array, label=name) for name, array in made.params.items()},
        {kind: as_text(text) for kind, text in made.sources.items()},
        registry.requirement(compiler.name),
        as_prefix(made.device),
    )


def count_of(workspace: object) -> int:
    """The workspace as a number of bytes. Raises ValueError for any other object."""
    if not isinstance(workspace, int) or workspace < 0:
        raise ValueError(f"its workspace is {workspace!r}, no number of bytes")
    return workspace


def as_text(text: object) -> str:
    """Return the source text of an artifact. Raises TypeError for an object that is no string."""
    if not isinstance(text, str):
        raise TypeError(f"a source is {type(text).__name__}, no text")
    return text


def as_prefix(text: object) -> str:
    """`text` as the prefix of the names of C functions, or "" for none. Raises ValueError for any other object."""
    if not isinstance(text, str) or not (text == "" or (text.isascii() and text.isidentifier())):
        raise ValueError(f"its device is {text!r}, no identifier of C")
    return text
