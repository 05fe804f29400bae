"""Expansions whose ops do not fit are an error that names the layer, not the verifier's own."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, NameLoc, StringAttr, TensorType, i1
from xdsl.ir import Block

from relay.dialects import relay
from relay.errors import Unsupported
from relay.transforms.expansion import Expansion


def test_ops_that_do_not_fit_name_the_place_of_the_source() -> None:
    value = Block(arg_types=[TensorType(i1, [2])]).args[0]
    source = relay.LogicalNotOp.make([value])
    place = FileLineColLoc(StringAttr("x.keras"), IntAttr(3), IntAttr(0))
    source.location = NameLoc(StringAttr("layer 3 ops.Cumsum 'c'"), place)
    with pytest.raises(Unsupported, match=r"layer 3 ops.Cumsum 'c'.*relay.add: takes numbers, not i1"):
        Expansion(source).add(relay.AddOp, [value, value])
