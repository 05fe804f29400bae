"""What `relay-opt` reads: bytes whose format is told by their content, and text whose ops remember their place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from relay.errors import Malformed, Unsupported

KNOWN = "the formats known are MLIR text and TFLite"
OTHERS = {
    b"ML\xefR": ("MLIR bytecode", "turn it into text with mlir-opt"),
    b"\x7fELF": ("an ELF object", KNOWN),
    b"PK\x03\x04": ("a zip archive", "unpack it; " + KNOWN),
}
"""What other files begin with, what they are, and what to do about it."""
TEXT_CONTROLS = frozenset(b"\t\n\v\f\r")


def format_of(data: bytes, name: str) -> str:
    """`tflite` or `mlir`, by content. Raises Unsupported, naming the known formats, for anything else.

    A TFLite file has the identifier `TFL3` at byte 4; MLIR text is UTF-8 without control characters.
    """
    if data[4:8] == b"TFL3":
        return "tflite"
    for start, (what, hint) in OTHERS.items():
        if data.startswith(start):
            raise Unsupported(name, f"is {what}, which is not a format known here", hint)
    if any(byte < 32 and byte not in TEXT_CONTROLS for byte in set(data)):
        onnx = b"onnx" in data[:256] or name.endswith(".onnx")
        raise Unsupported(name, f"is {'ONNX' if onnx else 'binary'} and not a format known here", KNOWN)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise Malformed(name, f"byte {error.start} is not UTF-8", "MLIR text is UTF-8") from None
    return "mlir"


class LocatingParser(Parser):
    """xDSL's parser; an op whose text names no location gets the place where it is written."""

    def __init__(self, ctx: Context, text: str, name: str, first_line: int = 0):
        super().__init__(ctx, text, name)
        self.file = StringAttr(name)
        self.first_line = first_line
        self.starts = list(accumulate((len(line) for line in text.split("\n")), lambda a, b: a + b + 1, initial=0))

    def parse_operation(self) -> Operation:
        start = self.pos
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            line = bisect_right(self.starts, start)
            column = start - self.starts[line - 1] + 1
            op.location = FileLineColLoc(self.file, IntAttr(line + self.first_line), IntAttr(column))
        return op


def _post_order(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            for nested in block.ops:
                yield from _post_order(nested)
    yield op


def first_invalid(module: ModuleOp) -> tuple[Operation, str] | None:
    """The innermost first op that does not verify by itself, and why."""
    for op in _post_order(module):
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as error:
            return op, str(error)
    return None
