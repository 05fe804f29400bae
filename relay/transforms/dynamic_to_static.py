"""The pass `dynamic-to-static`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from relay.arguments import is_list, positive, shown
from relay.dialects.op import DYNAMIC, is_tensor, tensor
from relay.dialects.relay import DynamicOp
from relay.errors import InvalidArgument, Unsupported
from relay.passes import Pass
from relay.symbols import SYMBOLS, read
from relay.transforms.inlining import is_public
from relay.transforms.shape_arithmetic import Fold, settle


@dataclass(frozen=True)
class DynamicToStatic(Pass):
    """Replace the unknown sizes (`?`) of public functions' arguments by given ones. `sizes` lists them in order of
    appearance, or is one number for all (default 1, the batch). Sizes with equal names (`relay.symbols`) count once.
    All types that follow are inferred again, and computations of shapes are folded: `relay.dyn.reshape` and the like
    become ops without `dyn`, and an `scf.if` whose condition follows from sizes becomes the branch that is taken.
    Raises InvalidArgument for a wrong number of sizes, one that is not positive, or one that the limits of its name
    exclude, Malformed where an op does not accept the sizes, and Unsupported for a function of several blocks."""

    name: ClassVar[str] = "dynamic-to-static"
    opt_level = 2
    why = "replaces unknown sizes by the given ones"
    sizes: tuple[int, ...] | int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        give_sizes(op, self.sizes)


def give_sizes(op: ModuleOp, each: Sequence[int] | int, folds: list[Fold] | None = None) -> None:
    """Implementation of the pass `dynamic-to-static`. `each`: the sizes of the unknown axes in order of appearance, or
    one size for all. Each computation of a shape that is replaced by its value is appended to `folds`."""
    functions = [f for f in op.body.block.ops if isinstance(f, FuncOp) and f.body.blocks and is_public(f)]
    named = {(function, *place): each for function in functions for each in read(function) for place in each.places}
    places = [
        (function, argument.index, axis)
        for function in functions
        for argument in function.body.blocks[0].args
        for axis in unknown(argument)
    ]
    for function, _, _ in places:
        if len(function.body.blocks) > 1:
            raise Unsupported(f"@{function.sym_name.data}", "has several blocks", "use scf.if and scf.while instead")
    keys = {place: (place[0], named[place].name) if place in named else place for place in places}
    count = len({*keys.values()})
    given = [positive(size) for size in (each if is_list(each) else [each] * count)]
    if len(given) != count or not all(given):
        hint = "give one positive size for each, or one for all"
        raise InvalidArgument("dynamic-to-static", f"sizes are {shown(each)} for {count} unknown ones", hint)
    if not count and not any(isinstance(inner, DynamicOp) for inner in op.walk()):
        return
    sizes: dict[object, int] = {}
    for place, key in keys.items():
        if key not in sizes:
            size = given.pop(0)
            sizes[key] = named[place].check(size) if place in named else size
    for function in functions:
        function.attributes.pop(SYMBOLS, None)
    resize(op, {place: sizes[key] for place, key in keys.items()}, folds)


def resize(module: ModuleOp, sizes: Mapping[tuple[FuncOp, int, int], int], folds: list[Fold] | None = None) -> None:
    """Set the sizes of argument axes, keyed by (function, argument, axis), and update all types that follow."""
    dims: dict[SSAValue, list[int]] = {}
    for (function, index, axis), size in sizes.items():
        argument = function.body.block.args[index]
        dims.setdefault(argument, list(tensor(argument).get_shape()))[axis] = size
    for argument, given in dims.items():
        Rewriter.replace_value_with_new_type(argument, TensorType(tensor(argument).element_type, given))
    for function in module.body.block.ops:
        if isinstance(function, FuncOp) and function.body.blocks:
            types = [argument.type for argument in function.body.blocks[0].args]
            outputs = function.function_type.outputs.data
            function.properties["function_type"] = FunctionType.from_lists(types, outputs)
    settle(module, folds)


def unknown(value: SSAValue) -> list[int]:
    """The axes of unknown size of a value."""
    dims = value.type.get_shape() if is_tensor(value.type) else ()
    return [axis for axis, size in enumerate(dims) if size == DYNAMIC]
