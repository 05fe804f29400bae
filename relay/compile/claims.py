"""The claims of an artifact about its machine code: for each kernel call its formula, read from the fused functions
before they are lowered, and the addresses of its tensors, read from the planned module. `relay.validation` checks it.

The claims are JSON. `programs` maps a fused function's name to its operations: `arguments`, and `rows` with the name of
a formula, its parameters, operands and results (indices of values). `calls` has a row for each call of `@main`, in
order: the name of its program; the name of the function in the machine code (`code`), if it is that of another program,
because the kernels were merged; the addresses of operands, results and scratch memory; the names of the artifact's
constants that the code reads (`reads`), and of those from which accumulators start (`starts`); the schedule, and how
sums are rescaled. Constants of programs are in `arrays`; for the weights of an integer product there are only a digest
for each output channel and the range of its sums. The checker reads the weights themselves back from the machine code,
so that the file needs no second copy, and the weights that are used are those that are checked. The weights of a float
product are described by their products with two random pixels (`projections`), from which the expected sums of images
made of these pixels follow.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import memref, scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, to_numpy
from relay.dialects.element_types import is_float
from relay.dialects.op import is_tensor, shape, tensor
from relay.lowering.plan_memory import planned_rows
from relay.lowering.shaped import buffer_of, is_buffer, root, shape_of, size_of
from relay.mapping import used
from relay.module import IRModule

VERSION = 2
LARGEST = 1 << 18
"""The size in bytes of the largest constant that a claim includes."""
COLORS = 2
"""The number of random pixels by which a claim describes the weights of a float convolution or product: it contains
their products with each pixel instead of the weights (depthwise weights are stored unchanged)."""
Json = dict[str, Any]


@dataclass
class Claims:
    """What an artifact claims about its machine code, as JSON values (see the module's description). `programs`: the
    formulas of each kernel by function name; `calls`: the kernel calls of `@main` in order; `arrays`: the constants of
    the formulas by digest."""

    programs: dict[str, Json] = field(default_factory=dict[str, Json])
    calls: list[Json] = field(default_factory=list[Json])
    moves: list[Json] = field(default_factory=list[Json])
    flags: list[Json] = field(default_factory=list[Json])
    arrays: dict[str, Json] = field(default_factory=dict[str, Json])

    def array(self, value: Array) -> str:
        """Store a constant in `arrays` and return its name; empty if it is too large or its dtype is narrower than a
        byte."""
        if value.nbytes > LARGEST or value.dtype.kind not in "biuf":
            return ""
        data = np.ascontiguousarray(value)
        name = sha256(f"{data.dtype}{data.shape}".encode() + data.tobytes()).hexdigest()[:16]
        text = b64encode(data.tobytes()).decode()
        self.arrays.setdefault(name, {"dtype": str(data.dtype), "shape": list(data.shape), "data": text})
        return name

    def pack(self) -> bytes:
        """The claims as compressed JSON, which a saved file stores; empty if `@main` calls no kernels."""
        if not self.calls:
            return b""
        found = {"version": VERSION, **vars(self)}
        return zlib.compress(json.dumps(found, separators=(",", ":")).encode())


def read_formulas(module: ModuleOp) -> Claims:
    """Read the formulas of the calls of `@main` in a module whose kernels are fused and not yet lowered."""
    claims, functions = Claims(), {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, FuncOp)}
    main = functions.get("main")
    if main is None or len(main.body.blocks) != 1:
        return claims
    for op in main.walk():
        if isinstance(op, CallOp) and (function := functions[op.callee.string_value()]).body.blocks:
            name = function.sym_name.data
            if name not in claims.programs:
                claims.programs[name] = program(claims, function)
            claims.calls.append({**call_of(claims, op, function), "nested": nested(op)})
    return claims


def program(claims: Claims, function: FuncOp) -> Json:
    """Describe the operations of a fused function."""
    numbers: dict[SSAValue, int] = {value: number for number, value in enumerate(function.body.block.args)}
    rows: list[Json] = []
    results: list[int] = []
    for op in function.body.block.ops:
        if isinstance(op, ReturnOp):
            results = [numbers[value] for value in op.operands]
            continue
        for value in op.results:
            numbers[value] = len(numbers)
        rows.append(
            {
                "formula": op.name.removeprefix("relay."),
                "operands": [numbers[value] for value in op.operands],
                "results": [{"number": numbers[value], **described(value)} for value in op.results],
                "parameters": parameters(claims, op),
            }
        )
    arguments = [described(value) for value in function.body.block.args]
    return {"arguments": arguments, "rows": rows, "results": results}


def described(value: SSAValue) -> Json:
    """The dtype and shape of a value; empty if it is not a tensor."""
    if not is_tensor(value.type):
        return {}
    return {"dtype": str(dtype_of(tensor(value).element_type)), "shape": list(shape(value))}


def parameters(claims: Claims, op: Operation) -> Json:
    """The properties of an operation, as JSON."""
    if isinstance(op, relay.ConstantOp):
        return {"value": claims.array(to_numpy(op.value))}
    return {name: number for name, attr in op.properties.items() if (number := plain(attr)) is not None}


def plain(attr: Attribute) -> object:
    """An attribute as a JSON value; None if it has no such form."""
    match attr:
        case IntegerAttr() | FloatAttr():
            return attr.value.data
        case StringAttr():
            return attr.data
        case DenseArrayBase():
            return [number.item() for number in to_numpy(attr)]
        case ArrayAttr():
            return [plain(each) for each in attr.data]
        case IntegerType():
            return str(dtype_of(attr))
        case _:
            return str(dtype_of(attr)) if is_float(attr) else None


def call_of(claims: Claims, op: CallOp, function: FuncOp) -> Json:
    """Describe a kernel call: its constant arguments, by argument index, and facts about the kernel's weights."""
    given = {n: value.owner for n, value in enumerate(op.arguments) if isinstance(value.owner, relay.ConstantOp)}
    row: Json = {"kernel": function.sym_name.data, "constants": {}, "weights": {}}
    for number, constant in given.items():
        argument = function.body.block.args[number]
        users = [use.operation for use in argument.uses]
        array = to_numpy(constant.value)
        if len(users) == 1 and isinstance(product := users[0], relay.Conv2dOp | relay.DenseOp):
            if argument is product.kernel:
                codes = array.dtype.kind in "iu" and array.dtype.itemsize == 1
                known = weights if codes else projections if array.dtype.kind == "f" else None
                row["weights"][str(number)] = known(claims, product, array) if known else {}
                used(array.nbytes)
                continue
        row["constants"][str(number)] = claims.array(array)
    return row


def weights(claims: Claims, product: relay.Conv2dOp | relay.DenseOp, kernel: Array) -> Json:
    """For each output channel, the first 64 bits of the sha256 of its coefficients (`digests`), and the range of its
    sums for any data (`low` to `high`). The coefficients are 16-bit, in the order of kernel rows, columns, channels.
    The kernel's zero point is subtracted from them, and those that multiply only padding are 0."""
    zero_point = product.kernel_zero_point
    coefficients = by_channel(
        product, kernel.astype(np.int16) - np.int16(0 if zero_point is None else zero_point.value.data)
    )
    if isinstance(product, relay.Conv2dOp):
        coefficients = coefficients * reached(product, coefficients.shape[1:3])[None, :, :, None]
    rows = np.ascontiguousarray(coefficients, "<i2").reshape(coefficients.shape[0], -1)
    info = np.iinfo(dtype_of(tensor(product.data).element_type))
    offset = 0 if product.input_zero_point is None else product.input_zero_point.value.data
    least, most = info.min - offset, info.max - offset
    positive = np.maximum(rows, 0).sum(axis=1, dtype=np.int64)
    negative = rows.sum(axis=1, dtype=np.int64) - positive
    low, high = positive * least + negative * most, positive * most + negative * least
    digests = np.frombuffer(b"".join(sha256(row.tobytes()).digest()[:8] for row in rows), "<u8")
    return {"digests": claims.array(digests), "low": claims.array(low), "high": claims.array(high)}


def by_channel(product: relay.Conv2dOp | relay.DenseOp, kernel: Array) -> Array:
    """The kernel of a convolution as [output, row, column, input], that of a dense layer as [output, input]."""
    if isinstance(product, relay.DenseOp):
        return kernel
    layout = product.kernel_layout.data
    if layout == "HWOI":
        return kernel.reshape(*kernel.shape[:2], -1, 1).transpose(2, 0, 1, 3)
    return kernel.transpose([layout.index(axis) for axis in "OHWI"])


def projections(claims: Claims, product: relay.Conv2dOp | relay.DenseOp, kernel: Array) -> Json:
    """Describe a float kernel by its products with `COLORS` random pixels in float32, and the norm of each output
    channel. Numpy's RandomState(0) draws the pixels evenly from [-1, 1). For an image that consists of these pixels
    only, the sums follow from the products. Depthwise kernels, which have one input, are stored unchanged."""
    rows = by_channel(product, kernel).astype(np.float64)
    if not (isinstance(product, relay.Conv2dOp) and product.kernel_layout.data == "HWOI"):
        groups = int(product.groups.value.data) if isinstance(product, relay.Conv2dOp) else 1
        inputs = rows.shape[-1]
        colors = np.random.RandomState(0).uniform(-1, 1, (COLORS, groups, inputs))
        with np.errstate(invalid="ignore"):  # infinite weights
            found = np.concatenate([part @ colors[:, n].T for n, part in enumerate(np.split(rows, groups))])
    else:
        found = rows
    norms = np.linalg.norm(rows.reshape(len(rows), -1), axis=1)
    return {"projections": claims.array(found.astype(np.float32)), "norms": claims.array(norms.astype(np.float32))}


def reached(conv: relay.Conv2dOp, extent: tuple[int, ...]) -> Array:
    """A mask of int16 with the shape `extent`, the height and width of the convolution's kernel: 1 for each cell of the
    kernel that lies inside the image, not in the padding, at one or more positions of the result; all 1 if the layout
    is not NHWC."""
    if conv.data_layout.data != "NHWC" or conv.result_layout.data != "NHWC":
        return np.ones(extent, np.int16)
    flat = [to_numpy(attr) for attr in (conv.strides, conv.dilation, conv.padding)]
    axes: list[Array] = []
    for axis in range(2):
        stride, dilation, before = (int(each[axis]) for each in flat)
        at = np.arange(shape(conv.result)[1 + axis])[None, :] * stride - before
        place = at + np.arange(extent[axis])[:, None] * dilation
        inside = (place >= 0) & (place < shape(conv.data)[1 + axis])
        axes.append(np.asarray(inside.any(axis=1)))
    return np.outer(*axes).astype(np.int16)


def place_tensors(claims: Claims, module: IRModule) -> Claims:
    """Add the addresses of tensors to the claims, from the module with planned memory. Kernels that differ only in
    constants may have been merged into one, which is then the `code` of their calls. Returns empty claims if the
    module's calls differ from those of the claims."""
    main = module["main"]
    calls = [op for op in main.walk() if isinstance(op, CallOp)]
    codes = [op.callee.string_value() for op in calls]
    kernels = [row["kernel"] for row in claims.calls]
    if len(codes) != len(kernels) or len({*zip(kernels, codes, strict=True)}) != len({*kernels}):
        return Claims()
    names = {row["offset"]: row["name"] for row in planned_rows(module.op, "relay.constants")}
    place_moves(claims, main, names)
    for op, code, row in zip(calls, codes, claims.calls, strict=True):
        if code != row["kernel"]:
            row["code"] = code
        found = [place(main, value, names) for value in op.arguments]
        row["reads"] = [name for where in found if (name := where.get("constant"))]
        row["starts"] = [name for name in row["reads"] if START.search(name)]
        tensors = [where for where in found if "constant" not in where]
        known = claims.programs[row["kernel"]]
        fixed = {int(number) for number in (*row["constants"], *row["weights"])}
        inputs = [number for number in range(len(known["arguments"])) if number not in fixed]
        counts = len(inputs), len(known["results"])
        if sum(counts) <= len(tensors) <= sum(counts) + 1:
            row["operands"] = {str(number): where for number, where in zip(inputs, tensors, strict=False)}
            row["results"], row["scratch"] = tensors[counts[0] : sum(counts)], tensors[sum(counts) :]
        function = module[code]
        row["shown"] = {name: str(function.attributes[key]) for name, key in SHOWN if key in function.attributes}
    return claims


def place_moves(claims: Claims, main: FuncOp, names: Mapping[int, str]) -> None:
    """Add the stores and loop conditions of `@main` itself to the claims. `moves` has for each store the address
    written (`to`), the number of calls before it (`behind`), and the address read (`from`), which is empty unless the
    store always copies a whole tensor, as for states. `flags` has for each loop condition the address from which it is
    loaded, empty where not known."""
    behind = 0
    for op in main.walk():
        match op:
            case CallOp():
                behind += 1
            case memref.StoreOp():
                source = {} if (value := copied(op)) is None else place(main, value, names)
                claims.moves.append({"to": place(main, root(op.memref), names), "from": source, "behind": behind})
            case scf.ConditionOp():
                read = op.condition.owner
                claims.flags.append(place(main, root(read.memref), names) if isinstance(read, memref.LoadOp) else {})
            case _:
                pass


def copied(op: memref.StoreOp) -> SSAValue | None:
    """The buffer that the store copies to another one whenever `@main` runs; None if it does not always copy a whole
    buffer."""
    read = op.value.owner
    if not isinstance(read, memref.LoadOp) or tuple(read.indices) != tuple(op.indices) or nested(op):
        return None
    parts = any(prod(shape_of(view)) != prod(shape_of(root(view))) for view in (read.memref, op.memref))
    return None if parts else root(read.memref)


def nested(op: Operation) -> bool:
    """Whether the op is inside a branch, or inside a loop that computes its own condition."""
    around = op.parent_op()
    return around is not None and (isinstance(around, scf.IfOp | scf.WhileOp) or nested(around))


START = re.compile(r"\.start(#\d+)?$")
"""The pattern of names that `schedule` gives to constants from which accumulators start."""
SHOWN = (("schedule", "relay.schedule"), ("rescale", "relay.rescale"))
"""Attributes copied to the claims: the schedule, and the forms of rescaling that the compiler proved equal
(`expand-apply-scale`)."""


def place(main: FuncOp, value: SSAValue, names: Mapping[int, str]) -> Json:
    """The address of a tensor (argument of `@main`, offset in the arena, or name of a constant), and its size in
    bytes."""
    size, base = size_of(buffer_of(value)), root(value)
    offset = 0
    while isinstance(view := base.owner, memref.ViewOp):
        at = view.byte_shift.owner
        assert isinstance(at, ConstantOp) and isinstance(at.value, IntegerAttr)
        offset, base = offset + at.value.value.data, root(view.source)
    assert isinstance(base, BlockArgument) and is_buffer(base.type)
    count = len(main.body.block.args)
    if base.index == count - 2:
        return {"constant": names[offset], "bytes": size}
    if base.index == count - 1:
        return {"arena": offset, "bytes": size}
    return {"argument": base.index, "bytes": size}
