"""Legalization patterns of `qnn`, one file for each kind; `PATTERNS` lists all."""

from __future__ import annotations

from relay.transforms.legalization import Legalization
from relay.transforms.qnn_patterns import (
    arithmetic,
    binary,
    convolution,
    functions,
    recurrent,
    rescale,
    softmax,
    tables,
)

PATTERNS: list[type[Legalization]] = [
    each
    for kind in (convolution, rescale, arithmetic, binary, functions, softmax, tables, recurrent)
    for each in kind.PATTERNS
]
