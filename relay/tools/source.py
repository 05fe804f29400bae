"""What `relay-opt` reads: bytes whose format is told by their content."""

from __future__ import annotations

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
