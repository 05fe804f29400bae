"""`from_onnx`: imports an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, SupportsIndex

import numpy.typing as npt

from relay.errors import InvalidArgument
from relay.frontend.importing.options import Source, by_name, numerics_of, one_of
from relay.module import IRModule
from relay.plug_ins import installation

if TYPE_CHECKING:
    import onnx

    from relay.frontend.onnx.table import Convert

NUMERICS = ("ort", "qdq")


@by_name
def from_onnx(
    model: Source | onnx.ModelProto,
    *,
    batch: SupportsIndex | None = None,
    shapes: Mapping[str, Sequence[SupportsIndex]] | None = None,
    numerics: str = "ort",
    custom_ops: Mapping[str, Convert] | None = None,
    outputs: Sequence[str | SupportsIndex] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    shape_dict: Mapping[str, Sequence[SupportsIndex]] | None = None,
) -> IRModule:
    """Import an ONNX model, given by path, as bytes or as a ModelProto. The function `@main` has one argument per graph
    input that is no initializer, with channels first and dtypes as stored. Supported are operators of versions 7 to 28,
    functions of the model, and operators that ONNX defines by simpler ones.

    Unknown sizes are `?`, and named ones are symbols of the function (`relay.symbols`); `shapes` gives sizes by input,
    and `batch` gives every unknown leading one. `numerics` selects the integers of quantised models: "ort" for those of
    ONNX Runtime's integer kernels, "qdq" for those of the definition in floats. `custom_ops` maps operators of other
    domains to functions like those of the table: they take an `Importer` and a `Node`, and return a value per output.
    `outputs` are the tensors to compute instead of the graph's outputs; nodes that they do not need are dropped.
    `constants` are inputs with fixed values; they are no arguments, and may determine shapes. `shape_dict` is TVM's
    name of `shapes`.

    Raises Malformed (the file), Unsupported (every node that cannot be imported) or InvalidArgument. Source:
    https://onnx.ai/onnx/operators.
    """
    numerics_of(numerics, NUMERICS, "from_onnx")
    try:
        # imported here, since only this function needs the package onnx
        from relay.frontend.onnx.main_graph import imported
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("onnx", "google"):
            raise
        raise InvalidArgument("from_onnx", "the package onnx is not installed", installation("onnx")) from None
    return imported(model, batch, one_of(shapes, shape_dict), numerics, custom_ops, outputs, constants)
