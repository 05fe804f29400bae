"""Text that xDSL's parser would hang on, or let through."""

from __future__ import annotations

import pytest

from relay.errors import Malformed
from relay.module import IRModule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('func.func @f() attributes {a = "' + "A0" * 400 + "\n}", "End of file reached before closing string"),
        ("func.func private @f(i1073741824)", "an integer type has at most 16777215 bits"),
        (
            "func.func private @f() attributes {a = dense<1> : tensor<1xi65>}",
            "cannot be read: Format not implemented for i65",
        ),
        ("%r = relay.constant dense<[1, (2, 3]> : tensor<3xi8>", "cannot be read: Unexpected token"),
        (
            "func.func @f() {\n^1bb:\n  func.return\n}",
            "cannot be read: Invalid Block name format `1`$",
        ),
        (
            "%r = relay.zeros {shape = array<i64: 2>, dtype = f32} : () -> tensor<2xf32>",
            r"<text>:1:1: cannot be read: \(\) -> tensor<2xf32> should be of base attribute tensor",
        ),
        (
            "%r = relay.constant dense<1.0> : tensor<1152921504606846976x4xf32>",
            "<text>:1:1: cannot be read: MemoryError",
        ),
        ("%r = relay.constant dense<1000> : tensor<4xi8>", "Integer value 1000 is out of range"),
        (
            "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %b = relay.abs %a : (tensor<4xf32>) -> tensor<4xf32>\n"
            "  %a = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>\n  func.return %b : tensor<4xf32>\n}",
            r"<text>:2:3: operand #0 of relay.abs is not computed before it is used",
        ),
    ],
)
def test_bad_text_is_malformed(text: str, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        IRModule.parse(text)
