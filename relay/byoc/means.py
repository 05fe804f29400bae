"""Recognition of float means: a sum over some axes, divided by the number of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from relay.byoc.regions import constant_of
from relay.dialects import relay
from relay.dialects.attributes import dtype_of
from relay.dialects.op import rank, shape, tensor


def refusal(ops: Sequence[Operation]) -> str | None:
    """The reason why these two ops are not a sum and a division that compute a mean; None if they are."""
    total, quotient = ops
    if not isinstance(total, relay.SumOp) or not isinstance(quotient, relay.DivideOp):
        return "it is no mean"
    if dtype_of(tensor(total.input).element_type) != np.float32:
        return f"it is a mean of {tensor(total.input).element_type}"
    divisor = constant_of(quotient.rhs)
    count = math.prod(shape(total.input)[axis] for axis in total.axes())
    if divisor is None or divisor.size != 1 or divisor.ndim > rank(total.result) or divisor.reshape(()) != count:
        return "its divisor is not the number of its elements"
    return None
