"""Saturating fixed point with per-channel exponents. Nothing is imported here: relay imports what it needs."""

from relay.dialects.plug_in import DialectPlugIn

SFX = DialectPlugIn(
    dialect="relay_sfx.ops:Sfx",
    meanings="relay_sfx.meanings:MEANINGS",
    expansions="relay_sfx.expansions:EXPANSIONS",
    patterns="relay_sfx.patterns:PATTERNS",
    tflite="relay_sfx.importers:TFLITE",
    onnx="relay_sfx.importers:ONNX",
    examples="relay_sfx:examples.mlir",
)
