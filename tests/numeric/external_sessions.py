"""Modules that an external compiler takes as a whole, compiled by it and loaded, without building the host's part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

import relay
from relay.byoc import Artifact, BuildInfo, find, settings
from relay.byoc.partitioning.annotate_target import AnnotateTarget
from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.partitioning.partition_graph import PartitionGraph
from relay.dialects.attributes import dtype_of
from relay.dialects.context import make_context
from relay.dialects.op import shape, tensor
from relay.errors import Unsupported
from relay.runtime import loaders

Array = npt.NDArray[Any]
COMPILERS = ("litert", "xnnpack", "onnxruntime", "onednn")


def installed(name: str) -> None:
    """Skip the test where what the compiler needs is not installed."""
    try:
        find(name)
    except Unsupported as error:
        pytest.skip(str(error))


def whole(mod: relay.IRModule, name: str, options: Mapping[str, object] | None = None) -> FuncOp | None:
    """The one function that is the module for this compiler, with the module's arguments and results in their order;
    None if it leaves an op to the host. Nothing is pruned."""
    parts = relay.IRModule(mod.op.clone())
    settings.write(parts.op, {name: dict(options or {})})
    for step in (MergeComposite(name), AnnotateTarget(name), MergeCompilerRegions(), PartitionGraph()):
        step.apply(make_context(), parts.op)
    functions = [f for f in parts.functions.values() if f.attributes.get("compiler") == StringAttr(name)]
    main = parts["main"].body.block
    ops = [*main.ops]
    if len(functions) != 1 or [op.name for op in ops] != ["func.call", "func.return"]:
        return None
    call, end = ops
    same = [*call.operands] == [*main.args] and [*end.operands] == [*call.results]
    return functions[0] if same else None


class Session:
    """A partitioned function that its compiler compiled and its loader loaded."""

    def __init__(self, function: FuncOp, name: str, options: Mapping[str, object] | None = None) -> None:
        compiler = find(name, options)
        made = compiler.compile(function, BuildInfo())
        assert isinstance(made, Artifact)
        self.artifact = made
        end = function.get_return_op()
        assert end is not None
        inputs, self.outputs = (
            [(shape(value), dtype_of(tensor(value).element_type)) for value in values]
            for values in (function.body.block.args, end.arguments)
        )
        made, symbol = self.artifact, function.sym_name.data
        self.run = loaders.load(name, compiler.version, symbol, made.data, made.params, inputs, self.outputs)

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        outputs = [np.empty(*form) for form in self.outputs]
        assert not isinstance(self.run, loaders.Native)
        self.run(inputs, outputs)
        return outputs


def compare(result: Array, wanted: Array, codes: int, what: str) -> None:
    """At most that many codes apart; floats up to 1e-5 of the largest."""
    assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape), what
    if wanted.dtype.kind == "f":
        largest = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1e-6))
        assert np.allclose(result, wanted, rtol=1e-5, atol=1e-5 * largest, equal_nan=True), what
    elif wanted.dtype.itemsize == 1 and wanted.dtype.kind != "b":
        assert int(np.abs(result.astype(np.int16) - wanted.astype(np.int16)).max(initial=0)) <= codes, what
    else:
        assert np.array_equal(result, wanted), what
