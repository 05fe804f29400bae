"""Recurrent layers."""

from __future__ import annotations

from xdsl.ir import Attribute

from relay.byoc.c.ctype import I16
from relay.byoc.c.emitter import Emitter
from relay.dialects import qnn
from relay.dialects.attributes import to_numpy
from relay.errors import Unsupported
from relay.interpreters.meaning import number
from relay.transforms.location import place


def lstm(e: Emitter, op: qnn.LstmOp) -> None:
    time_major = bool(op.time_major.value.data)
    first, second, inputs = e.shape(op.data)
    steps, batches = (first, second) if time_major else (second, first)
    units, gates, cell_shift = e.shape(op.hidden_state)[-1], 3 if op.cifg.value.data else 4, number(op.cell_shift)
    if not -15 <= cell_shift <= -3:
        raise Unsupported(place(op), f"a cell scale of 2^{cell_shift} is not supported by c", "it takes 2^-15 to 2^-3")
    if op.numerics.data != "litert":
        raise Unsupported(place(op), f"the activations of {op.numerics.data} are not supported by c")
    fields: dict[str, object] = {
        "steps": steps, "batches": batches, "inputs": inputs, "units": units, "gates": gates,
        "step_stride": batches if time_major else 1, "batch_stride": 1 if time_major else steps,
        "input_zero_point": number(op.input_zero_point), "hidden_zero_point": number(op.hidden_zero_point),
        "input_multiplier": initializer(op.input_multiplier), "input_shift": initializer(op.input_shift),
        "recurrent_multiplier": initializer(op.recurrent_multiplier),
        "recurrent_shift": initializer(op.recurrent_shift),
        "hidden_multiplier": number(op.hidden_multiplier), "hidden_shift": number(op.hidden_shift),
        "cell_shift": cell_shift, "cell_clip": number(op.cell_clip),
    }  # fmt: skip
    function = e.kernel("lstm") + "_run"
    table = e.table("relay_lstm", "lstm", fields)
    results = [op.result, op.last_hidden, op.last_cell]
    e.call(op, function, table, *map(e.read, op.operands), e.scratch(I16, gates * units), *map(e.write, results))


def initializer(attr: Attribute) -> str:
    """The numbers of an array, in braces."""
    return "{" + ", ".join(map(str, to_numpy(attr).tolist())) + "}"


def svdf(e: Emitter, op: qnn.SvdfOp) -> None:
    (batches, inputs), (filters, memory) = e.shape(op.data), e.shape(op.time_kernel)
    rank, offset, state = number(op.rank), number(op.output_zero_point), e.type(op.state)
    if state != e.type(op.time_kernel):
        raise Unsupported(place(op), "a state of another type than the time kernel's is not supported by c")
    low = -128 if op.min is None else min(max(number(op.min), -128), 127)
    high = 127 if op.max is None else min(max(number(op.max), -128), 127)
    fields: dict[str, object] = {
        "batches": batches, "inputs": inputs, "units": filters // rank, "rank": rank, "memory": memory,
        "input_zero_point": number(op.input_zero_point),
        "feature_multiplier": number(op.feature_multiplier), "feature_shift": number(op.feature_shift),
        "multiplier": number(op.multiplier), "shift": number(op.shift),
        "output_zero_point": offset, "low": low - offset, "high": high - offset,
    }  # fmt: skip
    lowest, highest = map(str, state.range)
    function = e.kernel("svdf", state.short, Time=state.name, lowest=lowest, highest=highest)
    bias = "NULL" if op.bias is None else e.read(op.bias)
    operands = [e.read(value) for value in (op.data, op.feature_kernel, op.time_kernel)]
    table = e.table("relay_svdf", "svdf", fields)
    e.call(op, function, table, *operands, bias, e.read(op.state), e.write(op.result), e.write(op.new_state))
