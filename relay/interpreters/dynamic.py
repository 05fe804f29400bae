"""Evaluates ops that take some properties as operands (`relay.dyn`) with numpy: creates the op with static properties
from the operands' values, and evaluates that."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from relay.dialects import relay
from relay.dialects.attributes import Array, elements
from relay.errors import InvalidArgument
from relay.interpreters import creation, image, resizing, shape, sort, transform
from relay.interpreters.meaning import Meaning, Meanings, ops_of

STATIC: Mapping[type[Operation], Meaning] = {
    **creation.MEANINGS,
    **image.MEANINGS,
    **resizing.MEANINGS,
    **shape.MEANINGS,
    **sort.MEANINGS,
    **transform.MEANINGS,
}


def static(op: relay.DynamicOp, *operands: Array) -> Array | tuple[Array, ...]:
    values = [relay.ConstantOp.make([], {"value": elements(array)}) for array in operands]
    try:
        found = op.make(values, op.properties).static()
    except VerifyException as error:
        raise InvalidArgument(op.name, str(error)) from None
    assert found is not None, "all operands are known"
    return STATIC[type(found)](found, *operands[: len(found.operands)])


MEANINGS: Meanings = dict.fromkeys(ops_of(relay.DynamicOp), static)
