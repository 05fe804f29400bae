"""`relay.byoc.differences`: the results of partitions compared with the interpreter's on the same tensors."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from ctypes import addressof, c_uint64
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from relay.artifact import CompiledFunction
from relay.byoc.accuracy import declared
from relay.byoc.calibrating import Edges, calibration
from relay.byoc.compiler import BuildInfo, Refusal
from relay.byoc.partitioning.compile_external import compiled, prepared
from relay.byoc.partitioning.scope import partitioned
from relay.byoc.settings import compiler_of, requires_exact
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.op import is_tensor
from relay.errors import InvalidArgument, Unsupported
from relay.module import IRModule
from relay.runtime import loaders
from relay.runtime.external import SIGNATURE, External, Wrapper
from relay.runtime.memory import address, aligned_array
from relay.target import target_of


@dataclass(frozen=True, slots=True)
class Difference:
    """The error of one result of a partitioned function, over all its runs: how far it is from the interpreter's result
    for the same inputs."""

    function: str
    compiler: str
    result: int
    each: int | None
    """The maximum error of a single op of the partition, in quantization steps, as the compiler states it; None if it
    states none."""
    declared: int | None
    """The largest error of the result, in quantization steps, that follows from what the compiler declares for its ops;
    None if unknown."""
    largest: float
    """The largest measured error in quantization steps; for floats, as a fraction of the largest magnitude."""
    mean: float
    """The mean measured error, in the unit of `largest`."""
    elements: int
    """The number of elements compared."""

    @property
    def holds(self) -> bool:
        """Whether the measured error is within the stated bound."""
        return self.declared is None or self.largest <= self.declared

    def __str__(self) -> str:
        said = "not known" if self.declared is None else str(self.declared)
        return (
            f"{self.function} result {self.result}: off by {self.largest:g}, {self.mean:.4f} on average; said: {said}"
        )


def differences(
    mod: IRModule | ModuleOp, inputs: Sequence[Array] | Mapping[str, Array], function: str = "main"
) -> list[Difference]:
    """Measure the error of each partition on the tensors that reach it when the interpreter runs the module on these
    inputs: every partitioned function is compiled, loaded, and run alone. Returns a `Difference` for each result, in
    the module's order.

    Raises InvalidArgument if nothing is partitioned, and errors of the compilers, their loaders and the interpreter.
    """
    module = mod.op if isinstance(mod, IRModule) else mod
    functions = [f for f in IRModule(module).functions.values() if partitioned(f) and f.body.blocks]
    if not functions:
        raise InvalidArgument("differences", "the module has no partitioned functions", "run partition-graph first")
    edges = calibration(module, inputs, function)
    return [row for f in functions for row in rows(module, f, edges[f.sym_name.data])]


def rows(module: ModuleOp, function: FuncOp, edges: Sequence[Edges]) -> list[Difference]:
    """The differences of a function's results from the interpreter's, one row for each result; empty if the function
    did not run."""
    if not edges:
        return []
    name = edges[0].compiler
    compiler = compiler_of(module, name, f"function {function.sym_name.data}")
    each, said = declared(compiler, function)
    run = loaded(module, function, name)
    results = [run(edge.inputs) for edge in edges]
    found: list[Difference] = []
    for number, codes in enumerate(said):
        off = np.concatenate(
            [apart(got[number], edge.outputs[number]) for got, edge in zip(results, edges, strict=True)]
        )
        facts = (function.sym_name.data, name, number, each, codes)
        found.append(Difference(*facts, float(off.max(initial=0)), float(off.mean()) if off.size else 0.0, off.size))
    return found


def apart(got: Array, wanted: Array) -> Array:
    """The absolute difference of each element of `got` from `wanted`; for floats, divided by the largest finite
    magnitude in `wanted`."""
    if wanted.dtype.kind in "biu":
        return np.abs(got.astype(np.float64) - wanted.astype(np.float64)).reshape(-1)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    largest = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)) or 1.0
    return np.where(same, 0, np.abs(got.astype(np.float64) - wanted) / largest).reshape(-1)


class Loaded:
    """A compiled function that can be called with arrays."""

    def __init__(self, external: External) -> None:
        self.external = external

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        given = [aligned_array((array.shape, array.dtype)) for array in inputs]
        for place, array in zip(given, inputs, strict=True):
            place[...] = array
        results = [aligned_array(form) for form in self.external.outputs]  # a workspace is one of the outputs
        table = (c_uint64 * (len(given) + len(results)))(*map(address, (*given, *results)))
        if isinstance(native := self.external.loaded, loaders.Native):
            if status := SIGNATURE(native.address)(native.context, addressof(table)):
                raise self.external.failed(status)
        elif (wrapper := Wrapper(self.external, native))(None, addressof(table)):
            raise wrapper.failures.pop(threading.get_ident())
        return results


def loaded(module: ModuleOp, function: FuncOp, name: str) -> Loaded:
    """Compile and load a function. Raises Unsupported if the compiler refuses it."""
    compiler = compiler_of(module, name)
    (final,) = prepared(compiler, [function])
    made = compiled(compiler, final, BuildInfo(target_of(module), requires_exact(module)))
    if not isinstance(made, CompiledFunction):
        why = made.reason if isinstance(made, Refusal) else "gives ops for the host to compile"
        raise Unsupported(f"function {function.sym_name.data}", f"compiler {name} makes nothing of it: {why}")
    inputs, outputs = (
        [(type.get_shape(), dtype_of(type.element_type)) for type in types.data if is_tensor(type)]
        for types in (made.types.inputs, made.types.outputs)
    )
    params = {key: to_numpy(attr) for key, attr in made.params.items()}
    data = made.data.tobytes()
    native = loaders.load(name, made.version, made.symbol, data, params, inputs, outputs, made.requirement)
    return Loaded(External(made.symbol, name, made.version, inputs, outputs, native))
