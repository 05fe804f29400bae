"""The meaning of every op as a numpy function: the reference of the tests, and the evaluator of constant folding. This
package may import `target`, `dialects` and the packages below them, but not `passes`.

`run` runs a module's function, `evaluate` one op. `register` gives the same functions to xDSL's own `Interpreter`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from relay import signature
from relay.dialects import plug_in
from relay.dialects.attributes import Array, dtype_of, elements
from relay.dialects.op import DYNAMIC, TensorOp, tensor
from relay.dialects.relay import ConstantOp
from relay.errors import InvalidArgument
from relay.interpreters import (
    activation,
    attention,
    byoc,
    convolution,
    creation,
    dynamic,
    elementwise,
    fixed_point,
    functions,
    image,
    indexing,
    matmul,
    nn,
    norm,
    pooling,
    qnn,
    qnn_binary,
    qnn_functions,
    qnn_recurrent,
    rearrange,
    reduce,
    resizing,
    shape,
    sort,
    transform,
    vision,
)
from relay.interpreters.func import Machine
from relay.interpreters.meaning import Meaning
from relay.module import IRModule
from relay.signature import TensorInfo

if TYPE_CHECKING:
    from xdsl.interpreter import Interpreter

KINDS = {
    "Elementwise": elementwise.MEANINGS,
    "Functions": functions.MEANINGS,
    "Transform": transform.MEANINGS,
    "Creation": creation.MEANINGS,
    "Dynamic": dynamic.MEANINGS,
    "Indexing": indexing.MEANINGS,
    "Sort": sort.MEANINGS,
    "FixedPoint": fixed_point.MEANINGS,
    "Reduce": reduce.MEANINGS,
    "Shape": shape.MEANINGS,
    "Nn": nn.MEANINGS,
    "Convolution": convolution.MEANINGS,
    "Matmul": matmul.MEANINGS,
    "Rearrange": rearrange.MEANINGS,
    "Activation": activation.MEANINGS,
    "Pooling": pooling.MEANINGS,
    "Resizing": resizing.MEANINGS,
    "Norm": norm.MEANINGS,
    "Attention": attention.MEANINGS,
    "Image": image.MEANINGS,
    "Vision": vision.MEANINGS,
    "Qnn": qnn.MEANINGS,
    "QnnFunctions": qnn_functions.MEANINGS,
    "QnnBinary": qnn_binary.MEANINGS,
    "QnnRecurrent": qnn_recurrent.MEANINGS,
    "Byoc": byoc.MEANINGS,
}
MEANINGS: dict[type[Operation], Meaning] = {op: meaning for rows in KINDS.values() for op, meaning in rows.items()}
"""The numpy function of every op type that has one."""


def register(interpreter: Interpreter) -> None:
    """Register the numpy functions of relay, qnn, byoc and func ops, and of other packages' ops, in xDSL's
    interpreter."""
    # imported here, since it imports every dialect that xDSL interprets
    from relay.interpreters.registration import register_meanings

    register_meanings(
        interpreter, {**KINDS, **{name: plug_in.part(name, "meanings") for name in plug_in.DIALECTS.names()}}
    )


def has_meaning(op: Operation) -> bool:
    """Whether `evaluate` can compute the op."""
    return type(op) in MEANINGS or plug_in.row(op, "meanings") is not None


def evaluate(op: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
    """Compute the results of one op. The operands are not checked; results may share memory with operands.

    Raises Unsupported if the op belongs to neither relay, qnn, byoc nor a plug-in dialect that defines its meaning.
    """
    with np.errstate(all="ignore"):
        return Machine({}, MEANINGS).op(op, operands)


def compute(
    op_type: type[TensorOp], operands: Sequence[Array], properties: Mapping[str, Attribute | None] | None = None
) -> tuple[Array, ...]:
    """Compute the results of an op of type `op_type` with these operands and properties, without a module.

    Raises InvalidArgument if the op's verifier rejects them.
    """
    values = [ConstantOp.make([], {"value": elements(array)}) for array in operands]
    try:
        op = op_type.make(values, properties)
    except VerifyException as error:
        raise InvalidArgument(op_type.name, str(error)) from None
    return evaluate(op, operands)


def run(
    module: IRModule | ModuleOp, inputs: Sequence[Array] | Mapping[str, Array], function: str = "main"
) -> tuple[Array, ...]:
    """Run a function of the module on inputs (in order, or by argument name), and return its results as new arrays.

    States that are not given start with their initial values, as in `Executable.run`.

    Raises InvalidArgument if the number, a name, a type or a shape of the inputs is wrong, or there is no such
    function; Unsupported if the function contains an op without meaning (all ops of relay, qnn, byoc and func have
    one).
    """
    functions = (module if isinstance(module, IRModule) else IRModule(module)).functions
    machine = Machine(functions, MEANINGS)
    block = machine.body(function)
    arguments = check_inputs(functions[function], inputs)
    with np.errstate(all="ignore"):
        results = [np.array(result) for result in machine.block(block, arguments)]
    return signature.cut(results, signature.read(functions[function])[1])


def argument_infos(function: FuncOp) -> list[TensorInfo]:
    """The signature of the function's arguments. Without a signature their names are those in the text, else `arg` and
    the position."""
    infos, _ = signature.read(function)
    if signature.INPUTS in function.attributes:
        return infos
    hints = [argument.name_hint for argument in function.body.block.args]
    return [replace(info, name=hint or info.name) for info, hint in zip(infos, hints, strict=True)]


def check_inputs(function: FuncOp, inputs: Sequence[Array] | Mapping[str, Array]) -> list[Array]:
    """Check inputs against the function's arguments, and return them in order. Raises InvalidArgument."""
    where = f"function {function.sym_name.data}"
    infos = argument_infos(function)
    names = [info.name for info in infos]
    initial = {info.name: info.initial for info in infos if info.initial is not None}
    if isinstance(inputs, Mapping):
        given = {info.name: name for info, name in zip(signature.read(function)[0], names, strict=True)}
        inputs = initial | {given.get(name, name): array for name, array in inputs.items()}
        missing, unknown = [n for n in names if n not in inputs], [n for n in inputs if n not in names]
        if missing or unknown:
            wrong = f"input {missing[0]} is missing" if missing else f"there is no input {unknown[0]}"
            raise InvalidArgument(where, wrong, f"it takes {', '.join(names)}")
        inputs = [inputs[name] for name in names]
    if all(name in initial for name in names[len(inputs) :]):
        inputs = [*inputs, *(initial[name] for name in names[len(inputs) :])]
    if len(inputs) != len(names):
        raise InvalidArgument(where, f"takes {len(names)} inputs, got {len(inputs)}")
    arrays = [np.asarray(array) for array in inputs]
    for name, array, argument in zip(names, arrays, function.body.block.args, strict=True):
        try:
            type = tensor(argument)
        except VerifyException as error:
            raise InvalidArgument(f"{where}, input {name}", str(error)) from None
        dims, dtype = type.get_shape(), dtype_of(type.element_type)
        fits = len(dims) == array.ndim and all(d in (size, DYNAMIC) for d, size in zip(dims, array.shape, strict=True))
        if array.dtype != dtype or not fits:
            wanted = f"{dtype} of shape {['?' if d == DYNAMIC else d for d in dims]}"
            raise InvalidArgument(
                f"{where}, input {name}", f"is {array.dtype} of shape {list(array.shape)}; it takes {wanted}"
            )
    return arrays


__all__ = ["MEANINGS", "compute", "evaluate", "has_meaning", "register", "run"]
