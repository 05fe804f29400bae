"""Executables of models with open sizes, which are specialised when sizes are first seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import lcm, prod
from typing import SupportsIndex, cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from relay import signature, symbols
from relay.arguments import every, mapping, positive, shown, size_name
from relay.compile.length import bounded, length_of, with_outputs
from relay.compile.request import Recipe
from relay.compile.rows import EXTERNAL, SINGLE, At, blocks_of, kept_apart, leads
from relay.dialects.attributes import Array
from relay.dialects.op import DYNAMIC, is_tensor
from relay.dialects.relay import DynamicOp
from relay.errors import InvalidArgument, RelayError, Unsupported
from relay.module import REQUESTS, IRModule
from relay.passes.info import as_module
from relay.runtime import Executable, TensorSpec
from relay.runtime.dynamic import MAX_VARIANTS, DynamicExecutable, Interface, Specialise
from relay.runtime.specification import Size
from relay.signature import TensorInfo
from relay.sizes import Symbol
from relay.transforms.batch import with_batch
from relay.transforms.dynamic_to_static import DynamicToStatic, give_sizes, resize
from relay.transforms.linear import WHY, are_alike, is_linear
from relay.transforms.location import function_of, place
from relay.transforms.shape_arithmetic import Fold, deciding_arguments, give_values, settle

MOST_NUMBERS = 64
"""The largest number of elements of an input whose values decide shapes: an executable is compiled for each of their
values, which are part of the key under which it is kept."""
SAMPLES = (61, 13, 4, 1)
"""Sizes that are tried in turn, to compare the result shapes of a conditional's branches."""
Compile = Callable[[Recipe], Executable]


def is_open(module: IRModule, recipe: Recipe) -> bool:
    """Return whether sizes of `@main` stay unknown until it runs: a size has a name (a symbol), an input of a model
    file has an unknown size, or shapes depend on the elements of an input. False if the pass `dynamic-to-static`, which
    fixes the sizes, is in the pipeline or requested by the module."""
    main = module["main"]
    if any(isinstance(step, DynamicToStatic) for step in recipe.pipeline):
        return False
    if DynamicToStatic.name in str(module.op.attributes.get(REQUESTS, "")):
        return False
    unnamed = not isinstance(recipe.model, IRModule) and _unknown(main)
    return unnamed or bool(main.attributes.get(symbols.SYMBOLS)) or bool(deciding_arguments(main))


def make_static(module: IRModule) -> None:
    """Fold computations of shapes if the sizes of all inputs of `main` are known. Raises Unsupported if a shape remains
    unknown because it depends on computed elements."""
    if not _unknown(module["main"]) and any(isinstance(op, DynamicOp) for op in module.op.walk()):
        settle(module.op)
        refuse_open(module.op)


def _unknown(main: FuncOp) -> bool:
    return any(DYNAMIC in type.get_shape() for type in main.function_type.inputs if is_tensor(type))


def opened(module: IRModule, recipe: Recipe, compile: Compile) -> DynamicExecutable:
    """Make an executable that, for each tuple of sizes, specialises the module and builds it by `compile`. Raises
    Unsupported for an input that decides shapes and is too large."""
    main = module["main"]
    named = bounded(symbols.completed(main, [info.name for info in signature.read(main)[0]]), recipe.maximum)
    symbols.write(main, named)

    def at(
        sizes: Mapping[str, int], folds: list[Fold] | None = None, values: Mapping[int, Array] | None = None
    ) -> IRModule:
        copy = module.clone()
        give_values(copy["main"], values or {})
        give_sizes(copy.op, [sizes[symbol.name] for symbol in named], folds)
        refuse_open(copy.op)
        return copy

    sample = sampled(module, named)
    interface = interface_of(main, named)._replace(deciding=deciding_arguments(sample["main"]))
    for index in interface.deciding:
        spec = interface.inputs[index]
        if any(isinstance(d, Size) for d in spec.shape) or prod(spec.shape) > MOST_NUMBERS:
            refuse_branches(sample.op)
            what = f"decides shapes, and is of shape {list(spec.shape)}"
            raise Unsupported(f"input '{spec.name}'", what, f"at most {MOST_NUMBERS} numbers can")

    def specialise(sizes: Mapping[str, int], values: Mapping[str, Array]) -> Executable:
        numbers = {index: values[interface.inputs[index].name] for index in interface.deciding}
        copy = at(sizes, values=numbers)
        repeated = interface.serves(sizes.values())
        return compile(replace(recipe, model=copy, params={}, frontend={}, repeated=repeated, maximum=None))

    interface = blocks_of(interface, at, recipe)
    executable = executable_for(interface, specialise, recipe)
    serve_any_length(executable, at, recipe, compile)
    return executable


def executable_for(interface: Interface, specialise: Specialise, recipe: Recipe) -> DynamicExecutable:
    """Make the executable of a model with sizes that are known only at run time. If the interface has `blocks` (numbers
    of rows such that any number of rows is run in blocks of these sizes), the model is built for each of them
    immediately."""
    executable = DynamicExecutable(interface, specialise, most_variants(recipe))
    if interface.blocks:
        name = interface.symbols[0].name
        executable.prepare(**{name: interface.blocks})
        if any("repeat" not in executable.variant(**{name: size}).graph for size in interface.blocks):
            executable.interface = interface._replace(blocks=(), why=EXTERNAL)
    return executable


def serve_any_length(executable: DynamicExecutable, at: At, recipe: Recipe, compile: Compile) -> None:
    """Build once for all lengths up to a maximum, if the model allows it; the executable's interface says why if it
    does not. `at` returns the module for given sizes."""
    interface = length_of(executable.interface, recipe)
    longest, length = interface.longest, interface.length
    if longest is not None and length is not None:
        sizes = interface.sizes(longest)
        try:
            [symbol] = (each for each in interface.symbols if each.name == length.name)
            folds: dict[int, list[Fold]] = {size: [] for size in (symbol.minimum, length.maximum - 1, length.maximum)}
            modules = {size: at(sizes | {length.name: size}, found) for size, found in folds.items()}
            longer, shorter = (modules[length.maximum - less] for less in (0, 1))
            shapes = [[info.shape for info in signature.read(each["main"])[1]] for each in (longer, shorter)]
            interface = with_outputs(interface, *shapes)
            if not (is_linear(folds, symbol) and are_alike(modules)):
                interface = interface._replace(length=None, why=WHY)
            if interface.length is not None:
                plain = replace(recipe, model=longer, params={}, frontend={}, maximum=None)
                executable.keep(longest, compile(replace(plain, shorter=shorter, length=length.maximum)))
                interface = with_batch_beside(interface, at)
        except RelayError as error:
            interface = interface._replace(length=None, why=str(error).replace("\n", " "))
    executable.interface, executable.outputs = interface, interface.outputs
    if interface.length is not None:
        executable.for_any_length()


def with_batch_beside(interface: Interface, at: At) -> Interface:
    """Set `length.batch` of an interface to the name of the model's second open size, if that size is the number of
    independent rows: the runtime then runs each row separately. Return the new interface, or the given one if the model
    has no such size. The model is one for which a single build serves any sequence length."""
    assert (length := interface.length) is not None
    others = [symbol for symbol in interface.symbols if symbol.name != length.name]
    if len(others) != 1 or not leads(others[0], interface):
        return interface
    name = others[0].name
    try:
        found = kept_apart(
            others[0], lambda rows, folds: at({length.name: length.maximum, name: rows}, folds), lambda _: SINGLE
        )
    except RelayError:
        return interface
    if found.why or 0 in length.outputs:
        return interface
    outputs = [
        spec._replace(shape=(size, *spec.shape[1:]))
        for spec, size in zip(interface.outputs, found.leading(name), strict=True)
    ]
    return interface._replace(outputs=outputs, length=length._replace(batch=name))


def most_variants(recipe: Recipe) -> int:
    """Return the maximum number of variants, executables for given input sizes, that a dynamic executable keeps besides
    those that its user prepared."""
    return MAX_VARIANTS if recipe.max_variants is None else recipe.max_variants


def with_sizes(mod: IRModule | ModuleOp, *, batch: object = None, shapes: object = None, **others: object) -> IRModule:
    """Copy a module, and set open sizes of its arguments and all types that follow from them. `batch` is the leading
    size of the arguments where it is open. `shapes` gives shapes by the names of arguments, and sizes by their own
    names. A name in place of a number leaves the size open.

    Raises InvalidArgument for options of importers, and shapes that arguments cannot have.
    """
    module = as_module(mod)
    if others:
        hint = "a module is imported already; its importer takes them"
        raise InvalidArgument(next(iter(others)), "is for model files", hint)
    if batch is not None:
        if shapes is not None:
            raise InvalidArgument("relay.build", "both batch and shapes are given", "shapes say the batch too")
        if not isinstance(batch, str):
            return with_batch(module, cast(SupportsIndex, batch))
        size_name(batch, "batch")
        infos = signature.read(module["main"])[0]
        named = symbols.completed(module["main"], [info.name for info in infos])
        names = {place: symbol.name for symbol in named for place in symbol.places}
        shapes = {
            info.name: [batch, *(names.get((index, axis), size) for axis, size in enumerate(info.shape) if axis)]
            for index, info in enumerate(infos)
            if info.shape[:1] == (DYNAMIC,)
        }
        if not shapes:
            raise InvalidArgument("batch", "no argument has a leading axis of unknown size", "give a number")
    copy = module.clone()
    main: FuncOp = copy["main"]
    infos = {info.name: (index, info) for index, info in enumerate(signature.read(main)[0])}
    named = symbols.completed(main, list(infos))
    places = {place: symbol for symbol in named for place in symbol.places}
    by_name = {symbol.name: symbol for symbol in named}
    sizes: dict[str, int | str] = {}
    for wanted, given in mapping(shapes, "shapes", "{'input': (1, 16000)}").items():
        where = f"shapes[{shown(wanted)}]"
        if wanted in infos:
            index, info = infos[wanted]
            asked = every(given, where, "give a list of sizes")
            fits = len(asked) == len(info.shape)
            fits = fits and all(d == DYNAMIC or d == positive(size) for d, size in zip(info.shape, asked, strict=True))
            if not fits:
                what = f"{shown(given)} is no shape for {['?' if d == DYNAMIC else d for d in info.shape]}"
                raise InvalidArgument(where, what, "give as many sizes, of at least 1")
            for axis, size in enumerate(asked):
                if (index, axis) in places:
                    _give(sizes, places[index, axis], size, where)
        elif wanted in by_name:
            _give(sizes, by_name[wanted], given, where)
        else:
            what = "names no input and no size"
            raise InvalidArgument(where, what, f"there are {', '.join([*infos, *by_name])}")
    known = {symbol.name: size for symbol in named if isinstance(size := sizes.get(symbol.name), int)}
    at: dict[tuple[FuncOp, int, int], int] = {
        (main, *place): known[symbol.name] for place, symbol in places.items() if symbol.name in known
    }
    main.attributes.pop(symbols.SYMBOLS, None)
    if at:
        resize(copy.op, at)
    left = [replace(each, name=str(sizes.get(each.name, each.name))) for each in named if each.name not in known]
    if left:
        symbols.write(main, _joined(left))
    return copy


def _give(sizes: dict[str, int | str], symbol: Symbol, value: object, where: str) -> None:
    """Record in `sizes` that the size `symbol` gets `value`, a number or another name. Raises InvalidArgument for a
    value that is no size, a number that this size must not have, and a value other than the one recorded before."""
    size = size_name(value, where) if isinstance(value, str) else positive(value)
    if not size:
        raise InvalidArgument(where, f"{shown(value)} is no size", "give numbers of at least 1, or names")
    if isinstance(size, int):
        symbol.check(size)
    if sizes.setdefault(symbol.name, size) != size:
        what = f"size {symbol.name} is {sizes[symbol.name]} and {size}"
        raise InvalidArgument(where, what, "inputs that share a size must agree")


def _joined(named: Sequence[Symbol]) -> list[Symbol]:
    """Merge symbols with equal names, and intersect their ranges."""
    found: dict[str, Symbol] = {}
    for symbol in named:
        other = found.get(symbol.name)
        if other is not None:
            most = [each.maximum for each in (symbol, other) if each.maximum is not None]
            symbol = Symbol(
                symbol.name,
                (*other.places, *symbol.places),
                max(symbol.minimum, other.minimum),
                min(most, default=None),
                lcm(symbol.multiple, other.multiple),
            )
        found[symbol.name] = symbol
    return list(found.values())


def sampled(module: IRModule, named: Sequence[Symbol]) -> IRModule:
    """Return a copy of the module in which the named sizes have sample values, so that the result sizes of `scf.if` ops
    are known; without such ops, or if no sample fits, return the module itself. Branches whose sizes are equal for the
    samples are assumed to have equal sizes always."""
    if not any(isinstance(op, scf.IfOp) for op in module.op.walk()):
        return module
    for least in SAMPLES:
        copy = module.clone()
        with suppress(RelayError):
            sizes = tuple(size_from(symbol, least + number) for number, symbol in enumerate(named))
            give_sizes(copy.op, sizes)
            return copy
    return module


def size_from(symbol: Symbol, least: int) -> int:
    """A size that the symbol allows: the first one from `least` on, or else the largest."""
    size = -(-max(least, symbol.minimum) // symbol.multiple) * symbol.multiple
    return size if symbol.maximum is None else min(size, symbol.maximum // symbol.multiple * symbol.multiple)


def interface_of(main: FuncOp, named: Sequence[Symbol]) -> Interface:
    """The interface of a dynamic executable: its inputs and outputs, whose unknown sizes have the names of the symbols
    `named`."""
    inputs, outputs = signature.read(main)
    names = {place: symbol.name for symbol in named for place in symbol.places}
    return Interface(
        [spec_of(info, index, names) for index, info in enumerate(inputs)],
        [spec_of(info, -1, names) for info in outputs],
        list(named),
        deciding_arguments(main),
    )


def spec_of(info: TensorInfo, index: int, names: Mapping[tuple[int, int], str]) -> TensorSpec:
    """The specification of a tensor that callers see, for input `index`, or for a result if `index` is -1. `names`: the
    names of sizes that are known only at run time, by (input, axis); an unnamed one is shown as "?"."""
    shape = enumerate(info.shape)
    dims = tuple(Size(names.get((index, axis), "?")) if size == DYNAMIC else size for axis, size in shape)
    return TensorSpec(info.name, dims, info.dtype, info.scale, int(info.zero_point), info.kind)


def refuse_open(module: ModuleOp) -> None:
    """Raise Unsupported for ops whose shape is still unknown because it depends on computed elements."""
    refuse_branches(module)
    left = [op for op in module.walk() if isinstance(op, DynamicOp) and op.static() is None]
    if left:
        names = ", ".join(left[0].given())
        what = f"its {names} must be known when the sizes of the inputs are"
        more = f", and {len(left) - 1} more" if len(left) > 1 else ""
        raise Unsupported(place(left[0]), what + more, "they follow from elements that are computed")


def refuse_branches(module: ModuleOp) -> None:
    """Raise Unsupported for branches whose results differ in size although the input sizes are known."""
    for op in module.walk():
        if isinstance(op, scf.IfOp):
            ends = [region.block.last_op for region in op.regions]
            first, second = ([*end.operand_types] if end is not None else [] for end in ends)
            if first != second:
                both = " and ".join(", ".join(map(str, each)) for each in (first, second))
                function = function_of(op)
                inputs = ", ".join(map(str, function.function_type.inputs)) if function is not None else "none"
                hint = "which branch is taken follows from elements that are computed: both must give the same sizes"
                raise Unsupported(place(op), f"its branches give {both} for inputs of {inputs}", hint)
