"""The examples of the ops: `KIND.mlir` beside this file, in the form that tests/ops/test_ops.py says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.printer import Printer

from relay.dialects.op import TensorOp
from relay.dialects.relay import DynamicOp
from relay.errors import Malformed
from relay.module import IRModule

FILES = sorted(Path(__file__).parent.glob("*.mlir"))
BREAK = re.compile(r"^// -----\n", re.MULTILINE)


def valid(path: Path) -> str:
    """The examples of a file that are valid, all in one module."""
    return BREAK.split(path.read_text())[0]


def invalid(path: Path) -> list[tuple[str, str]]:
    """The others: what the error says, and the text."""
    found: list[tuple[str, str]] = []
    for text in BREAK.split(path.read_text())[1:]:
        message = re.match(r"// error: (.*)\n", text)
        assert message, f"{path.name}: write `// error: MESSAGE` below `// -----`, not {text[:80]!r}"
        found.append((message[1], text))
    return found


def functions(path: Path) -> list[FuncOp]:
    """The valid examples."""
    module = IRModule.parse(valid(path), name=path.name)
    return [op for op in module.op.body.block.ops if isinstance(op, FuncOp)]


def ops(function: FuncOp) -> Iterator[TensorOp]:
    """The ops of relay and qnn in a function."""
    named = (op for op in function.body.block.ops if op.name.startswith(("relay.", "qnn.")))
    return (op for op in named if isinstance(op, TensorOp))


def sized(function: FuncOp) -> FuncOp | None:
    """The function with 2 for every size that is not known; None where that is not valid."""
    text = StringIO()
    Printer(text).print_op(function)
    try:
        return IRModule.parse(text.getvalue().replace("?", "2"))[function.sym_name.data]
    except Malformed:
        return None


def runnable(function: FuncOp) -> FuncOp | None:
    """The function of known sizes, returning every tensor that its ops compute; None where there is none to run."""
    copy = None if "dense_resource" in str(function) else sized(function)
    if copy is None or any(isinstance(op, DynamicOp) and op.static() is None for op in ops(copy)):
        return None
    assert isinstance(end := copy.body.block.last_op, ReturnOp)
    end.operands = [value for op in ops(copy) if op.operands or op.name != "relay.constant" for value in op.results]
    copy.update_function_type()
    return copy if end.operands else None
