"""The node tests of `onnx.backend.test`: each case imported, run and compared.

`run_case(case, compiled)` says why a case does not pass, or nothing: in the interpreter, or compiled by `OnnxBackend`.

`python -m tests.numeric.onnx_node_tests` runs all in the interpreter and writes `onnx_node_failures.json`, the cases
that do not pass with the reason of each, and the numbers in docs/support.md. With `--compiled` it runs those that pass
compiled, half an hour, and prints which do not.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from relay.compile.onnx_backend import OnnxBackend, imported
from relay.dialects.attributes import Array
from relay.errors import RelayError
from relay.interpreters import run
from tests.fuzz.run_cases import SECONDS, limited

FAILURES = Path(__file__).parent / "onnx_node_failures.json"
SUPPORT = Path(__file__).parents[2] / "docs/support.md"
MARKS = (
    "<!-- ONNX node tests: written by python -m tests.numeric.onnx_node_tests -->\n",
    "<!-- end of node tests -->\n",
)


@cache
def cases_of(module: str, operator: str) -> list[Any]:
    """The cases of a module of onnx.backend.test.case.node whose first node is this operator: much faster than all."""
    import onnx.backend.test.case.node as node

    import_module(f"{node.__name__}.{module}")
    every = list(getattr(node, "_NodeTestCases"))  # noqa: B009 - what its own collector reads
    return [case for case in every if case.model.graph.node[0].op_type == operator]


@cache
def cases() -> Mapping[str, Any]:
    """The node tests by name."""
    import onnx.backend.test.loader as loader

    return {case.name: case for case in loader.load_model_tests(kind="node")}


def expected() -> dict[str, str]:
    """The cases that do not pass, and why."""
    found: dict[str, str] = json.loads(FAILURES.read_text())
    return found


def table(failures: Mapping[str, str], count: int) -> str:
    """How many cases pass, and the reasons why others do not, in Markdown."""
    reasons = Counter(failures.values())
    lines = [f"{count - len(failures)} of the {count} node tests of `onnx.backend.test` (onnx 1.23.2) pass.", ""]
    lines += ["| Node tests | Why they do not pass |", "|---|---|"]
    lines += [
        f"| {number} | {reason} |" for reason, number in sorted(reasons.items(), key=lambda each: (-each[1], each[0]))
    ]
    return "\n".join(lines) + "\n"


def reason_of(said: str) -> str:
    """Why a case does not pass, without the names of its nodes and values."""
    what = re.sub(r"^\w+: (\w+: )?", "", said)
    what = re.sub(r"node \d+ ([\w.]+) '[^']*'", r"\1", what)
    what = re.sub(r"> ([\w.]+) '[^']*'", r"> \1", what)
    what = re.sub(r"(in|out)put '[^']*'", r"\1put", what)
    return re.sub(r", '[^']*',", "", what)[:120]


def main() -> None:
    said = {name: run_case(case) for name, case in cases().items()}
    failures = {name: reason_of(what) for name, what in said.items() if what}
    FAILURES.write_text(json.dumps(failures, indent=0, sort_keys=True) + "\n")
    head, rest = SUPPORT.read_text().split(MARKS[0])
    SUPPORT.write_text(head + MARKS[0] + table(failures, len(said)) + MARKS[1] + rest.split(MARKS[1])[1])


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
    found = (differing(case.model, given, wanted, case, compiled) for given, wanted in case.data_sets)
    return next((what for what in found if what), "")


def differing(model: Any, given: Sequence[Any], wanted: Sequence[Any], case: Any, compiled: bool = False) -> str:
    """Which output of the model is not the one wanted, by the tolerance of the case; empty if all are."""
    named = dict(zip([each.name for each in model.graph.input], [_plain(each) for each in given], strict=True))
    if compiled:
        results: Sequence[Array] = OnnxBackend.prepare(model).run(named)
    else:
        module, left = imported(model, named)
        results = run(module, [*left.values()])
    for number, (result, value) in enumerate(zip(results, wanted, strict=True)):
        if not same(result, _plain(value), case.rtol or 1e-3, case.atol or 1e-7):
            return f"output {number} differs"
    return ""


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


def main_compiled() -> None:
    failures = expected()
    said = {name: run_case(case, compiled=True) for name, case in cases().items() if name not in failures}
    print(*(f"{name}: {what}" for name, what in said.items() if what), sep="\n")
    print(f"{sum(not what for what in said.values())} of {len(said)} pass")


if __name__ == "__main__":
    main_compiled() if sys.argv[1:] == ["--compiled"] else main()
