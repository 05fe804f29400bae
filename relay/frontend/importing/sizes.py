"""Sizes of inputs: those in the file, those that callers give, and names of unknown ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from relay.arguments import every, mapping, positive, shown
from relay.dialects.op import DYNAMIC, is_tensor
from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.frontend.importing.archives import AGAIN
from relay.frontend.importing.builder import is_value
from relay.frontend.importing.options import MAX_ELEMENTS
from relay.signature import TensorInfo
from relay.symbols import Symbol


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of each axis of an input, as the model file gives it: a number, unknown, or unknown with a name."""

    input: str
    dims: tuple[int, ...]
    """The sizes; -1 for an unknown one."""
    names: tuple[str, ...] = ()
    """The name of each axis's size, "" where the size is known or has no name; an empty tuple if no size has one."""

    @property
    def is_open(self) -> bool:
        return -1 in self.dims

    @property
    def named(self) -> list[int | str]:
        """The sizes, with a name for each unknown one; if the file has none, it is named by input and axis."""
        names = self.names or ("",) * len(self.dims)
        pairs = enumerate(zip(self.dims, names, strict=True))
        return [(name or f"{self.input}.{axis}") if size < 0 else size for axis, (size, name) in pairs]


class UnknownSizes(InvalidArgument):
    """Raised when a model can only be imported for given values of sizes that its file leaves unknown; `build` then
    imports it again for each combination."""

    shapes: Mapping[str, Sequence[int | str]]
    """The shapes of the inputs with unknown sizes, in which each unknown size is a name."""
    small: Mapping[int, TensorInfo]
    """The small integer inputs whose values may decide which ops are imported, by position."""


def given_sizes(
    inputs: Sequence[Sizes], shapes: object, batch: object, importer: str, file: str
) -> dict[str, tuple[int, ...]]:
    """The shapes that the caller of an importer gives in `shapes`, checked, by input name. Raises InvalidArgument for
    an unknown input, for a shape that does not fit the input, or if `batch` is given, too."""
    given = {} if shapes is None else mapping(shapes, "shapes", "{'input': (1, 16000)}")
    if given and batch is not None:
        raise InvalidArgument(importer, "both batch and shapes are given", "shapes say the batch too")
    found: dict[str, tuple[int, ...]] = {}
    for wanted, dims in given.items():
        matches = [each.dims for each in inputs if each.input == wanted]
        where = f"shapes[{shown(wanted)}]"
        if len(matches) != 1:
            known = ", ".join(f"{each.input!r} {list(each.dims)}" for each in inputs)
            raise InvalidArgument(where, f"names no input of {file}", f"it has {known}")
        sizes = [positive(size) for size in every(dims, where, "give a list of sizes")]
        if len(sizes) != len(matches[0]) or 0 in sizes or math.prod(sizes) > MAX_ELEMENTS:
            what = f"{shown(dims)} is no shape for {list(matches[0])}"
            raise InvalidArgument(where, what, "give as many sizes, of at least 1")
        found[wanted] = tuple(sizes)
    return found


def sized(inputs: Sequence[Sizes], shapes: object, images: int | None, importer: str, file: str) -> list[Sizes]:
    """The inputs with the sizes that a caller gives, and with unknown leading sizes set to `images` if that is
    given."""
    given = given_sizes(inputs, shapes, images, importer, file)
    found = [replace(each, dims=given.get(each.input, each.dims)) for each in inputs]
    return [
        replace(each, dims=(images, *each.dims[1:])) if images is not None and each.dims[:1] == (-1,) else each
        for each in found
    ]


def symbols_of(inputs: Sequence[Sizes]) -> list[Symbol]:
    """The named unknown sizes of the file, with the axes that have them."""
    places: dict[str, list[tuple[int, int]]] = {}
    for argument, each in enumerate(inputs):
        for axis, (size, name) in enumerate(zip(each.dims, each.names, strict=False)):
            if size < 0 and name:
                places.setdefault(name, []).append((argument, axis))
    return [Symbol(name, tuple(at)) for name, at in places.items()]


@contextmanager
def sizes_known(
    inputs: Sequence[Sizes], file: str, built: Callable[[], Iterable[object]], operators: Sequence[str],
    small: Mapping[int, TensorInfo] = {},
) -> Generator[None, None, None]:  # fmt: skip
    """A context manager for an import, which replaces an import error by UnknownSizes if an unknown size may be its
    cause. This is so if an input and one of the values imported so far (`built`) have unknown sizes, and the error
    has no other cause: it contains none of the texts `operators`, which say that an operator is not supported, and
    does not say that the file is damaged."""
    try:
        yield
    except (Malformed, Unsupported) as error:
        first = next((each for each in inputs if each.is_open), None)
        types = [each.type for each in built() if is_value(each)]
        unknown = any(is_tensor(type) and DYNAMIC in type.get_shape() for type in types)
        if first is None or not unknown or any(why in str(error) for why in (*operators, AGAIN)):
            raise
        reason = f", which must be known ({error.where}: {error.what})"
        raise unknown_sizes(first, inputs, file, reason, small) from None


def unknown_sizes(
    first: Sizes, inputs: Sequence[Sizes], file: str, reason: str = "", small: Mapping[int, TensorInfo] = {}
) -> UnknownSizes:
    """The error for inputs whose unknown sizes the caller must give. Its text names the input `first`, followed by the
    text `reason`. `small`: the small integer inputs, by position, whose values may decide which ops are imported."""
    text = "x".join("N" if size < 0 else str(size) for size in first.dims)
    hint = f"give it: shapes={{{first.input!r}: (...)}}, or --shape {first.input}={text} with numbers"
    error = UnknownSizes(f"{file}: input {first.input!r}", f"is of unknown size {list(first.dims)}{reason}", hint)
    error.shapes, error.small = {each.input: each.named for each in inputs if each.is_open}, small
    return error
