"""Legalization of `qnn`, split by kind; `PATTERNS` lists every pattern."""

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
    *convolution.PATTERNS,
    *rescale.PATTERNS,
    *arithmetic.PATTERNS,
    *binary.PATTERNS,
    *functions.PATTERNS,
    *softmax.PATTERNS,
    *tables.PATTERNS,
    *recurrent.PATTERNS,
]
