"""Schedules that measurements found to be faster, by kernel and processor, from JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from relay.errors import InvalidArgument
from relay.lowering.scheduling.given_constants import GivenConstants
from relay.module import IRModule
from relay.target import CpuTarget

Table = Mapping[str, Mapping[str, str]]
"""Schedules (`relay.schedule`) by processor and kernel signature."""


def processor_of(target: CpuTarget) -> str:
    """Return the key of a processor: CPU and features."""
    return f"{target.cpu or target.triple.partition('-')[0]} {','.join(sorted(target.features))}"


def signature_of(function: FuncOp, given: GivenConstants) -> str:
    """Return a hash of a kernel as 32 hexadecimal digits. It depends on the kernel's operations and types, and on which
    arguments are constants, but not on names, nor on the values that calls pass for these arguments."""
    module, copy = IRModule(), function.clone()
    copy.attributes.clear()
    copy.properties.pop("arg_attrs", None)
    module["kernel"] = copy
    constants = [given.constant(argument) for argument in function.body.block.args]
    return hashlib.sha256(f"{module.structural_hash()} {constants}".encode()).hexdigest()[:32]


@lru_cache(maxsize=8)
def table_of(text: str) -> Table:
    """Parse the JSON text of schedules that `relay tune` found, by processor and kernel. Raises InvalidArgument."""
    try:
        found: object = json.loads(text)
    except ValueError as error:
        raise InvalidArgument("schedule: records", f"is no JSON: {error}", HINT) from error
    if not isinstance(found, dict) or not all(
        isinstance(rows, dict) and all(isinstance(row, str) for row in cast("dict[str, object]", rows).values())
        for rows in cast("dict[str, object]", found).values()
    ):
        raise InvalidArgument("schedule: records", "is no table of processors, kernels and schedules", HINT)
    return cast(Table, found)


HINT = "give Records.text of relay.tune"


def attribute_of(text: str) -> DictionaryAttr:
    """Parse the schedule attribute of a record. Raises InvalidArgument."""
    ctx = Context()
    ctx.load_dialect(Builtin)
    try:
        found = Parser(ctx, text).parse_attribute()
    except ParseError as error:
        raise InvalidArgument("schedule: records", f"{text!r} is no attribute", HINT) from error
    if not isinstance(found, DictionaryAttr):
        raise InvalidArgument("schedule: records", f"{text!r} is no dictionary", HINT)
    return found
