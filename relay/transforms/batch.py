"""`with_batch`: a module whose batch is open, for a number of images."""

from __future__ import annotations

from typing import SupportsIndex

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX

from relay.arguments import positive
from relay.dialects.op import is_tensor
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.transforms.dynamic_to_static import DynamicToStatic

HINT = "give relay.build the file, or relay.frontend.from_tflite a batch"


def with_batch(mod: IRModule, batch: SupportsIndex) -> IRModule:
    """A copy whose arguments of `tensor<?x...>` are of that many images, and all that follows from them.

    A module that has this batch already is given back. Raises InvalidArgument for no number of images, and where the
    leading axes are fixed: whether the images of a module keep apart is known only of a file.
    """
    given, batch = batch, positive(batch)
    if not batch:
        raise InvalidArgument("batch", f"is {given!r}", "it must be a number of at least 1")
    dims = [each.get_shape() for each in mod["main"].function_type.inputs if is_tensor(each)]
    open = [shape for shape in dims if DYNAMIC_INDEX in shape]
    if not open and {shape[0] for shape in dims if shape} == {batch}:
        return mod
    if not open or any(shape.index(DYNAMIC_INDEX) or shape.count(DYNAMIC_INDEX) > 1 for shape in open):
        shapes = ", ".join("x".join("?" if d == DYNAMIC_INDEX else str(d) for d in shape) for shape in dims)
        raise InvalidArgument("batch", f"the module's arguments have the shapes {shapes}", HINT)
    copy = mod.clone()
    DynamicToStatic(sizes=batch).apply(Context(), copy.op)
    return copy
