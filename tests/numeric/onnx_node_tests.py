"""The node tests of `onnx.backend.test`: each case imported, run and compared.

`run_case(case, compiled)` says why a case does not pass, or nothing. Sizes that are open become those of the data. A
model that is refused because an input decides a shape is imported again with its small inputs (rank 0 or 1, at most 16
elements) as constants: what an executable that specialises does when it first sees them.
"""

from __future__ import annotations

import signal
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import numpy as np

from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.errors import RelayError
from relay.frontend import from_onnx
from relay.interpreters import run
from relay.module import IRModule

SECONDS = 60
"""A case that takes longer has hung."""
SMALL = 16


@cache
def cases() -> Mapping[str, Any]:
    """The node tests by name."""
    import onnx.backend.test.loader as loader

    return {case.name: case for case in loader.load_model_tests(kind="node")}


def run_case(case: Any, compiled: bool = False) -> str:
    """Why the case does not pass; empty if it does."""
    try:
        with limited(SECONDS):
            return _differs(case, compiled)
    except RelayError as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    except TimeoutError:
        return f"takes longer than {SECONDS} seconds"
    except Exception as error:
        return f"crashes with {type(error).__name__}: {' '.join(str(error).split())}"


def _differs(case: Any, compiled: bool) -> str:
    for given, wanted in case.data_sets:
        module, left = imported(case.model, [_plain(each) for each in given])
        results = build(module).run(*left) if compiled else run(module, left)
        results = results if isinstance(results, Sequence) else (results,)
        for number, (result, value) in enumerate(zip(cast(Sequence[Array], results), wanted, strict=True)):
            if not same(result, _plain(value), case.rtol or 1e-3, case.atol or 1e-7):
                return f"output {number} differs"
    return ""


def imported(model: Any, given: Sequence[Any]) -> tuple[IRModule, list[Array]]:
    """The module for inputs like these, and those of them that it takes."""
    names = [each.name for each in model.graph.input]
    arrays = dict(zip(names, given, strict=True))
    numeric: dict[str, Array] = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    open_ = {
        each.name
        for each in model.graph.input
        if any(not dim.HasField("dim_value") for dim in each.type.tensor_type.shape.dim)
    }
    shapes = {name: array.shape for name, array in numeric.items() if name in open_}
    fixed: dict[str, Array] = {}
    try:
        module = from_onnx(model, shapes=shapes)
    except RelayError:
        fixed = {name: array for name, array in numeric.items() if array.ndim <= 1 and array.size <= SMALL}
        shapes = {name: dims for name, dims in shapes.items() if name not in fixed}
        if not fixed:
            raise
        module = from_onnx(model, shapes=shapes, constants=fixed)
    return module, [array for name, array in arrays.items() if name not in fixed]


def same(found: Array, wanted: Any, rtol: float, atol: float) -> bool:
    """Whether two results agree, as the runner of onnx.backend.test has it."""
    if isinstance(wanted, list):
        return False
    wanted = cast(Array, wanted)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if wanted.dtype.kind in "iub":
        return bool((found == wanted).all())
    exact = found.astype(np.float64), wanted.astype(np.float64)
    return bool(np.allclose(*exact, rtol=rtol, atol=atol, equal_nan=True))


def _plain(value: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(cast(Any, value)) if isinstance(value, np.generic) else value


@contextmanager
def limited(seconds: int) -> Generator[None]:
    """Raise TimeoutError in what takes longer, on the main thread."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
