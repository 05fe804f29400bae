"""Executables of model files whose importer must know sizes: the file is imported again for each tuple of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from os.path import abspath

import numpy as np
from xdsl.dialects.builtin import TensorType

from relay import signature
from relay.arguments import every, is_list, is_mapping, mapping, shown, size_name
from relay.compile.caches import growing, opened_or_growing
from relay.compile.dynamic import Compile, executable_for, serve_any_length, spec_of, with_sizes
from relay.compile.length import bounded
from relay.compile.request import Recipe
from relay.compile.rows import blocks_of
from relay.dialects.attributes import Array, element_type
from relay.dialects.op import DYNAMIC
from relay.errors import InvalidArgument, RelayError, Unsupported
from relay.frontend import import_model
from relay.frontend.importing.control import decisions
from relay.frontend.importing.sizes import UnknownSizes
from relay.module import IRModule
from relay.runtime import Executable
from relay.runtime.dynamic import DynamicExecutable, Interface
from relay.signature import TensorInfo
from relay.sizes import Symbol
from relay.transforms.caches_in_place import terms
from relay.transforms.linear import WHY
from relay.transforms.shape_arithmetic import Fold

SAMPLES = (1, 16, 128, 512)
"""Sizes that are tried in turn, where the importer needs sizes before the inputs are known."""
COMPUTED = "the importer needs the sizes, and what it computes of them may differ between any two"
_SHAPES = "{'input': (1, 16000)}"


def named_sizes(frontend: Mapping[str, object]) -> dict[str, object]:
    """The importer's options `batch` and `shapes`, if they give a name in place of a size. Raises InvalidArgument for
    numbers as text."""
    found: dict[str, object] = {}
    if isinstance(batch := frontend.get("batch"), str):
        found["batch"] = size_name(batch, "batch")
    shapes = frontend.get("shapes")
    for key, row in shapes.items() if is_mapping(shapes) else ():
        for size in row if is_list(row) else ():
            if isinstance(size, str):
                size_name(size, f"shapes[{shown(key)}]")
                found["shapes"] = shapes
    return found


def reimported(recipe: Recipe, compile: Compile, left: UnknownSizes | None = None) -> DynamicExecutable:
    """Make an executable for all sizes that the options name, or that the file leaves open (`left`: the importer's
    error about them). If the importer needs no sizes, the file is imported once."""
    model = recipe.model
    assert not isinstance(model, IRModule)
    if isinstance(model, str):  # the current folder may be another one when a size is seen
        model = abspath(model)
        recipe = replace(recipe, model=model)
    asked = named_sizes(recipe.frontend)
    plain = {name: value for name, value in recipe.frontend.items() if name not in asked}
    module: IRModule | None = None
    if left is None:
        try:
            module = import_model(model, plain)
        except UnknownSizes as error:
            left = error
        except InvalidArgument:
            pass
    if module is not None and any(DYNAMIC in info.shape for info in signature.read(module["main"])[0]):
        module.replace_weights(recipe.params)
        return opened_or_growing(with_sizes(module, **asked), replace(recipe, frontend=plain), compile)
    if left is not None and left.shapes:
        given = mapping(plain.pop("shapes", None) or {}, "shapes", _SHAPES)
        plain.pop("batch", None)
        asked = {"shapes": {**given, **_completed(asked, left.shapes)}}
    deciding: Mapping[int, TensorInfo] = {}
    if module is None:
        module, deciding = _sample(model, asked, plain, {} if left is None else left.small)
    inputs, outputs = signature.read(module["main"])
    for index, info in deciding.items():
        inputs.insert(index, info)
    named = bounded(_symbols(asked, inputs), recipe.maximum)
    asked_for, recipe = recipe, replace(recipe, maximum=None)
    names = {place: symbol.name for symbol in named for place in symbol.places}

    def specialise(sizes: Mapping[str, int], values: Mapping[str, Array]) -> Executable:
        frontend = {**plain, **_given(asked, sizes)}
        if not deciding:
            return compile(replace(recipe, frontend=frontend, repeated=interface.serves(sizes.values())))
        found = import_model(model, _with_constants(frontend, values))
        _insert_arguments(found, deciding)
        return compile(replace(recipe, model=found, frontend={}))

    open_inputs = [spec_of(_reopened(info, index, names), index, names) for index, info in enumerate(inputs)]
    unknown = [spec_of(replace(info, shape=(DYNAMIC,) * len(info.shape)), -1, names) for info in outputs]
    interface = Interface(open_inputs, unknown, named, list(deciding))

    def at(sizes: Mapping[str, int], folds: list[Fold] | None = None) -> IRModule:
        found = import_model(model, {**plain, **_given(asked, sizes)})
        found.replace_weights(recipe.params)
        return found

    def undecided(sizes: Mapping[str, int], folds: list[Fold] | None = None) -> IRModule:
        """The module for these sizes. Raises Unsupported if a branch is decided by values that the importer computes
        from the sizes."""
        with decisions() as decided:
            found = at(sizes)
        if decided:
            raise Unsupported(decided[0], WHY)
        return found

    if not deciding and (found := growing(module["main"], undecided, asked_for, compile, named)) is not None:
        return found
    interface = blocks_of(interface, at, recipe) if "batch" in asked else interface._replace(why=COMPUTED)
    executable = executable_for(interface, specialise, recipe)
    serve_any_length(executable, undecided, asked_for, compile)
    return executable


def _symbols(asked: Mapping[str, object], inputs: Sequence[TensorInfo]) -> list[Symbol]:
    """The symbols for sizes that the import options `asked` give by name (`batch`, or text in `shapes`), with the axes
    of `inputs` that have them."""
    places: dict[str, list[tuple[int, int]]] = {}
    if "batch" in asked:
        places[str(asked["batch"])] = [(index, 0) for index, info in enumerate(inputs) if info.kind == "input"]
    shapes = mapping(asked.get("shapes", {}), "shapes", _SHAPES)
    for index, info in enumerate(inputs):
        row = every(shapes[info.name], f"shapes[{info.name!r}]") if info.name in shapes else []
        for axis, size in enumerate(row):
            if isinstance(size, str):
                places.setdefault(size, []).append((index, axis))
    if wrong := [name for name in shapes if name not in [info.name for info in inputs]]:
        names = ", ".join(info.name for info in inputs)
        raise InvalidArgument(f"shapes[{shown(wrong[0])}]", "names no input", f"there are {names}")
    return [Symbol(name, tuple(at)) for name, at in places.items()]


def _completed(asked: Mapping[str, object], open: Mapping[str, Sequence[int | str]]) -> dict[str, Sequence[object]]:
    """The shapes of the inputs by name: those that `asked` requests, and for the other inputs the shapes `open` of the
    file, whose unknown sizes have names. If a requested shape replaces such a name by a number or another name, it is
    replaced in the other inputs, too."""
    rows: Mapping[str, object] = mapping(asked.get("shapes", {}), "shapes", _SHAPES)
    if "batch" in asked:
        rows = {name: [asked["batch"], *row[1:]] for name, row in open.items() if isinstance(row[0], str)}
    given = {name: every(row, f"shapes[{name!r}]") for name, row in rows.items()}
    pairs = [zip(row, given[name], strict=False) for name, row in open.items() if name in given]
    new = {old: size for pair in pairs for old, size in pair if isinstance(old, str)}
    return {**{name: [new.get(str(size), size) for size in row] for name, row in open.items()}, **given}


def _given(asked: Mapping[str, object], sizes: Mapping[str, int]) -> dict[str, object]:
    """The importer's options `batch` or `shapes`, with names of sizes replaced by the numbers in `sizes`."""
    if "batch" in asked:
        return {"batch": sizes[str(asked["batch"])]}
    rows = {name: every(row, f"shapes[{name!r}]") for name, row in mapping(asked["shapes"], "shapes", "").items()}
    return {"shapes": {n: [sizes[d] if isinstance(d, str) else d for d in row] for n, row in rows.items()}}


def _sample(
    model: str | bytes, asked: Mapping[str, object], plain: Mapping[str, object], small: Mapping[int, TensorInfo]
) -> tuple[IRModule, Mapping[int, TensorInfo]]:
    """Import the model with one number for all named sizes, the first of `SAMPLES` with which the import succeeds. The
    module shows the inputs and outputs that the model has with any sizes. If the import succeeds only with zeros as
    constants for the inputs `small`, whose values may decide which ops are imported, `small` is returned as well, else
    an empty mapping."""
    numbers = {info.name: np.zeros(info.shape, info.dtype) for info in small.values()}
    ways: list[tuple[dict[str, object], Mapping[int, TensorInfo]]] = [({**plain}, {})]
    if small:
        ways.append((_with_constants(plain, numbers), small))
    for options, deciding in ways:
        for size in SAMPLES:
            with suppress(RelayError):
                return import_model(model, {**options, **_given(asked, _Alike(size))}), deciding
    return import_model(model, {**plain, **_given(asked, _Alike(SAMPLES[-1]))}), {}


def _with_constants(options: Mapping[str, object], values: Mapping[str, Array]) -> dict[str, object]:
    """The importer's options with these inputs added as constants."""
    if not values:
        return {**options}
    return {**options, "constants": {**mapping(options.get("constants") or {}, "constants", "{}"), **values}}


class _Alike(dict[str, int]):
    """A mapping from the name of a size to one number, `size`, for all names. The name of a sum, as in `past + 1`, has
    the sum of its terms: names have `size`, numbers their value."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def __missing__(self, name: str) -> int:
        return sum(int(term) if term.isdigit() else self.size for term in terms(name))


def _insert_arguments(module: IRModule, infos: Mapping[int, TensorInfo]) -> None:
    """Insert unused arguments of `@main` at these positions."""
    main = module["main"]
    inputs, outputs = signature.read(main)
    for index, info in infos.items():
        main.body.block.insert_arg(TensorType(element_type(info.dtype), info.shape), index)
        inputs.insert(index, info)
    main.update_function_type()
    signature.write(main, inputs, outputs)


def _reopened(info: TensorInfo, index: int, names: Mapping[tuple[int, int], str]) -> TensorInfo:
    dims = tuple(DYNAMIC if (index, axis) in names else size for axis, size in enumerate(info.shape))
    return replace(info, shape=dims, initial=None)
