"""Expansions of `relay.dyn` ops, some of whose properties are given by operands, to ops with fixed properties, once
these operands are constant."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.interpreters.meaning import ops_of
from relay.transforms.expansion import Expansion
from relay.transforms.expansions.steps import Expansions


def static(new: Expansion, op: relay.DynamicOp) -> Sequence[SSAValue] | None:
    found = op.static()
    if found is None:
        return None
    new.ops.append(found)
    return found.results


EXPANSIONS: Expansions = dict.fromkeys(ops_of(relay.DynamicOp), static)
