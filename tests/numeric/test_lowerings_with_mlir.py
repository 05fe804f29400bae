"""The ops of the dialect's round trips, at level 2: upstream's verifiers take what they become."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.parser import Parser
from xdsl.utils.hints import isa

from relay.dialects.context import make_context
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.transforms.legalize import Legalize

KINDS = ["unary", "logical", "reduce", "transform", "creation", "indexing", "sort", "matmul", "pooling", "activation"]
"""Files of round trips whose ops are lowered."""
FOLDER = Path(__file__).parents[1] / "filecheck" / "dialects"
TOOL = next((found for name in ("mlir-opt-22", "mlir-opt") if (found := shutil.which(name))), None)


def static(function: FuncOp) -> bool:
    """Whether every dimension in it is known."""
    values = [value for op in function.body.block.ops for value in (*op.operands, *op.results)]
    return not any(isa(v.type, TensorType) and DYNAMIC_INDEX in v.type.get_shape() for v in values)


def return_all(function: FuncOp) -> None:
    """Make every result in it one of the function's."""
    block = function.body.block
    values = [result for op in block.ops for result in op.results]
    end = block.last_op
    assert isinstance(end, ReturnOp)
    end.detach()
    end.erase()
    block.add_op(ReturnOp(*values))
    types = [arg.type for arg in block.args], [value.type for value in values]
    function.properties["function_type"] = FunctionType.from_lists(*types)


@pytest.mark.skipif(TOOL is None, reason="mlir-opt is not installed")
@pytest.mark.parametrize("name", KINDS)
def test_lowerings(name: str) -> None:
    assert TOOL is not None
    context = make_context()
    module = Parser(context, (FOLDER / f"{name}.mlir").read_text()).parse_module()
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    assert any(map(static, functions))
    for function in functions:
        if static(function):
            return_all(function)
        else:
            function.detach()
    Legalize().apply(context, module)
    RelayToLinalg().apply(context, module)
    done = subprocess.run([TOOL], input=str(module), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
