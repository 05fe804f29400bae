"""The table of NVIDIA's GPU chips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SHUFFLING = frozenset({"dot", "fma-rz", "shuffle"})
MULTIPLYING = SHUFFLING | {"mma", "async-copy"}


@dataclass(frozen=True)
class Chip:
    """A chip: the least PTX version that LLVM needs for it, its features, the number of multiprocessors of its largest
    or usual model, and the KiB of shared memory that a block can request (CUDA C++ Programming Guide, "Technical
    Specifications per Compute Capability")."""

    ptx: str
    features: frozenset[str]
    processors: int
    shared: int


CHIPS: Mapping[str, Chip] = {
    "sm_75": Chip("+ptx63", SHUFFLING, 40, 64),
    "sm_80": Chip("+ptx70", MULTIPLYING, 108, 163),
    "sm_86": Chip("+ptx71", MULTIPLYING, 84, 99),
    "sm_87": Chip("+ptx74", MULTIPLYING, 16, 163),
    "sm_89": Chip("+ptx78", MULTIPLYING, 128, 99),
    "sm_90": Chip("+ptx78", MULTIPLYING, 132, 227),
    "sm_90a": Chip("+ptx84", MULTIPLYING | {"wgmma"}, 132, 227),
    "sm_100": Chip("+ptx86", MULTIPLYING, 148, 227),
    "sm_120": Chip("+ptx87", MULTIPLYING, 170, 99),
}
"""The chips by LLVM's names. LLVM accepts any other name with a warning, and generates code that no driver loads."""
