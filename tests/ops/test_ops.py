"""What an op has besides its class, all in tests/ops/KIND.mlir: functions that are printed as they are written, and
compiled, with 2 for `?`, where every result is compared with the interpreter's on random inputs; and, each below
`// -----` and `// error: MESSAGE`, texts that are refused with this message. A test here names what an op lacks."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.hints import isa

from relay.compile.entry import build
from relay.dialects.byoc import Body, Byoc, YieldOp
from relay.dialects.context import make_context
from relay.dialects.qnn import Qnn
from relay.dialects.relay import Relay
from relay.dialects.source import LocatingParser
from relay.errors import Malformed, RelayError
from relay.interpreters import MEANINGS, run
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.module import IRModule
from relay.passes import PassContext, Pipeline
from relay.tools.examples import one_main, random_inputs
from relay.transforms.equality import difference
from relay.transforms.legalize import Legalize
from tests import guarded
from tests.ops.examples import FILES, functions, invalid, runnable, valid

OPS: list[type[Operation]] = [*Relay.operations, *Qnn.operations]


def name_of(op: type[Operation]) -> str:
    return op.name


def file_name(path: Path) -> str:
    return path.name


def file_of(op: type[Operation]) -> str:
    """Where the examples of an op belong: the file named as the module of its class."""
    dialect, kind = op.__module__.split(".")[-2:]
    return f"tests/ops/{'' if dialect == 'relay' else f'{dialect}-'}{kind.replace('_', '-')}.mlir"


@cache
def examples() -> dict[str, list[FuncOp]]:
    """The functions that hold an op, by the op's name."""
    found: dict[str, list[FuncOp]] = {}
    for function in (function for path in FILES for function in functions(path)):
        for op in function.body.walk():
            found.setdefault(op.name, []).append(function)
    return found


def test_every_op_has_an_example() -> None:
    missing = {op.name: file_of(op) for op in (*OPS, *Byoc.operations) if op.name not in examples()}
    assert not missing, f"no examples of these: write functions with them into the files beside them: {missing}"


def test_every_op_has_a_meaning() -> None:
    """But what only has a body, or ends one."""
    computing = [op for op in (*OPS, *Byoc.operations) if op is not YieldOp and not issubclass(op, Body)]
    missing = {op.name: op.__module__.split(".")[-1] for op in computing if op not in MEANINGS}
    assert not missing, f"no meanings of these: put rows into MEANINGS of relay/interpreters/KIND.py: {missing}"


@cache
def refusal(function: FuncOp) -> RelayError | None:
    """Why a function, which may be the example of several ops, is not lowered."""
    module = IRModule()
    module["main"] = function
    try:
        RelayToLinalg()(Legalize()(module))
    except RelayError as error:
        return error
    return None


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_op_is_lowered(op: type[Operation]) -> None:
    found = next(filter(None, map(runnable, examples().get(op.name, ()))), None)
    assert found is not None, f"no example of {op.name} can be run with 2 for `?`: write one into {file_of(op)}"
    if (error := refusal(found)) is not None:
        kind, place = op.__module__.split(".")[-1], "expansions" if op.name.startswith("relay.") else "qnn_patterns"
        where = (
            f"an expansion in relay/transforms/{place}, beside {kind}'s, or a row of LOWERINGS in relay/lowering/linalg"
        )
        raise AssertionError(f"{op.name} has no lowering: write {where} ({error})") from error


@pytest.mark.parametrize("path", FILES, ids=file_name)
def test_relay_to_linalg_has_legalize_run_where_it_is_needed(path: Path) -> None:
    """`Legalize.holds` is not true of what has no lowering yet."""
    for function in filter(None, map(runnable, functions(path))):
        module = IRModule()
        module["main"] = function
        Pipeline([RelayToLinalg()])(module)


@pytest.mark.parametrize("path", FILES, ids=file_name)
def test_examples_are_printed_as_they_are_written(path: Path) -> None:
    text = valid(path)
    written = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("//")]
    module = IRModule.parse(text, name=path.name)
    printed = module.to_text(weights=True)
    assert [line.strip() for line in printed.splitlines() if line.strip()][1:-1] == written
    generic = module.to_text(weights=True, generic=True)
    assert IRModule.parse(generic).to_text(weights=True) == printed


@pytest.mark.parametrize("path", FILES, ids=file_name)
def test_errors_say_what_is_wrong(path: Path) -> None:
    for message, text in invalid(path):
        with pytest.raises((ParseError, VerifyException)) as caught:
            LocatingParser(make_context(), text, path.name).parse_module().verify()
        assert message in str(caught.value), f"{path.name}: {message}"


@pytest.mark.parametrize("op", [op for op in (*OPS, *Byoc.operations) if op is not YieldOp], ids=name_of)
def test_op_refuses_a_result_of_another_type_by_its_name(op: type[Operation]) -> None:
    """Whatever else it checks: ops that share all their messages with others have this one of their own."""
    function = examples()[op.name][0].clone()
    found = next(each for each in function.body.walk() if each.name == op.name)
    for number in range(len(found.results)):
        assert isa(type := found.results[number].type, TensorType[Attribute])
        Rewriter.replace_value_with_new_type(
            found.results[number], TensorType(type.element_type, [7, 7, 7, 7, 7, 7, 7])
        )
        with pytest.raises(VerifyException) as caught:
            found.verify(verify_nested_ops=False)
        assert str(caught.value).splitlines()[-1].strip().startswith(op.name)
        Rewriter.replace_value_with_new_type(found.results[number], type)


def in_double(function: FuncOp) -> FuncOp | None:
    """The function with f64 for f32; None where an op does not take it."""
    try:
        return IRModule.parse(str(function).replace("f32", "f64"))[function.sym_name.data]
    except Malformed:
        return None


@pytest.mark.parametrize("path", FILES, ids=file_name)
def test_meanings_overflow_only_where_their_result_does(path: Path) -> None:
    """Where the result in doubles is finite and not too large for f32, it is finite in f32."""
    found = [(function, in_double(function)) for function in map(runnable, functions(path)) if function is not None]
    wrong = list[str]()
    for function, double in found:
        if double is None or "f32" not in str(function):
            continue
        (module, names), (wide, _) = one_main([function]), one_main([double])
        inputs = random_inputs(module)
        widened = [x.astype(np.float64) if x.dtype == np.float32 else x for x in inputs]
        for name, a, b in zip(names, run(module, inputs), run(wide, widened), strict=True):
            if a.dtype == np.float32 and np.any(~np.isfinite(a) & (np.abs(b) < np.finfo(np.float32).max)):
                wrong.append(name)
    assert not wrong, f"{path.name}: a stable formula gives a finite number where these do not: {wrong}"


LONG = {"activation", "attention", "convolution", "nn", "pooling", "qnn", "qnn-functions", "resizing"}
"""Files of many kernels; what compiles most of them has other tests, and whole models."""


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.ci if path.stem in LONG else ()) for path in FILES],
    ids=file_name,
)
def test_compiled_code_gives_what_the_ops_mean(path: Path) -> None:
    module, names = one_main([*filter(None, map(runnable, functions(path)))])
    inputs = random_inputs(module)
    wanted = run(module, inputs)
    with PassContext(opt_level=1):
        results = guarded.run(build(module), *inputs)
    got = results if isinstance(results, tuple) else [results]
    wrong = [name for name, a, b in zip(names, got, wanted, strict=True) if difference([np.asarray(a)], [b], 1e-5)]
    assert not wrong, f"{path.name}: compiled code and interpreter differ in {wrong}"
