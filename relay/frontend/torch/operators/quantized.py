"""Quantized programs: `quantized_decomposed` of PT2E, and the forms of torchao."""
