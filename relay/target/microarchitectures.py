"""The table of micro-architectures, with one row each, looked up by LLVM's CPU names.

To add one, add a row: the names, the caches of a core as its maker publishes them, and the costs that differ from those
of `CpuCosts`, which are estimates for Cascade Lake.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from relay.target.costs import CpuCosts, replaced


@dataclass(frozen=True)
class Caches:
    """The sizes in bytes of a core's first- and second-level data caches; 0 if it has none. If the size differs between
    chips with this core, the usual size."""

    first: int = 0
    second: int = 0

    @property
    def blocks(self) -> dict[str, int]:
        """The fields of `CpuCosts` that say how many bytes may stay in a cache, scaled by the sizes of these caches:
        the defaults were chosen for Cascade Lake. A processor without a cache has uniformly fast memory, and keeps the
        defaults."""
        known = CpuCosts()
        parts = [(name, self.first, 32 << 10) for name in FIRST] + [(name, self.second, 1 << 20) for name in SECOND]
        return {name: getattr(known, name) * size // there for name, size, there in parts if size}


FIRST = ("tile_weight_bytes", "inner_weight_bytes", "scratch_bytes")
"""The fields of `CpuCosts` that say how many bytes may stay in the first-level cache; `Caches.blocks` scales them with
its size."""
SECOND = ("strip_bytes", "prefetch_bytes")
"""The fields of `CpuCosts` that say how many bytes may stay in the second-level cache; `Caches.blocks` scales them with
its size."""


@dataclass(frozen=True)
class MicroArchitecture:
    """A micro-architecture: the caches and costs of the CPUs with these LLVM names (`cpus`)."""

    name: str
    cpus: tuple[str, ...]
    caches: Caches
    costs: CpuCosts


def _row(name: str, cpus: str, first: int, second: int, **costs: float) -> MicroArchitecture:
    """Make a row; caches in KiB."""
    caches = Caches(first << 10, second << 10)
    known = replaced(CpuCosts(), tuple((caches.blocks | costs).items()))
    return MicroArchitecture(name, tuple(cpus.split()), caches, known)


WIDE = {"issue_width": 8.0, "multiplies_per_cycle": 4.0, "loads_per_cycle": 3.0}
"""The costs of Arm's large cores with four vector units: instructions, vector products and loads issued per cycle, from
their software optimization guides; Apple's from LLVM's model."""
IN_ORDER = {"rows_of_stage": 1, "longest_chain": 1000}
"""The costs of in-order cores, which gain nothing from interleaving more iterations or rows."""
NARROW = IN_ORDER | {"issue_width": 2.0, "multiplies_per_cycle": 1.0, "loads_per_cycle": 1.0}
"""The costs of Arm's small cores, which issue two instructions in order."""
ZEN_4 = {"tile_start": 4.0, "spilled_vector": 1.5, "rows_per_skipped": 48, "unrolled_operations": 24}
"""Costs fitted to schedules measured on a Zen 4."""
ZEN_5 = {
    "accumulator_latency": 4.0,
    "finishing_registers": 18,
    "idle_load": 0.1,
    "rows_per_skipped": 48,
    "scratch_bytes": 16 << 10,
    "spilled_vector": 1.5,
    "streams_ahead": 32,
    "tile_start": 8.0,
    "unrolled_operations": 24,
}
"""Costs fitted to schedules measured on a Zen 5, which finishes a tile while it starts the next if both are small."""
GENERIC = _row("generic", "", 32, 1024)
"""The row for CPUs that no other row names."""
ROWS: Sequence[MicroArchitecture] = [
    _row("Zen 4", "znver4", 32, 1024, **ZEN_4),
    _row("Zen 5", "znver5", 48, 1024, **ZEN_5),
    _row("Cascade Lake", "cascadelake", 32, 1024),
    _row("Sapphire Rapids", "sapphirerapids", 48, 2048),
    _row("Emerald Rapids", "emeraldrapids", 48, 2048),
    _row("Alder Lake", "alderlake", 48, 1280),
    _row("Neoverse N1", "neoverse-n1", 64, 1024),
    _row("Neoverse N2", "neoverse-n2", 64, 1024),
    _row("Neoverse V1", "neoverse-v1", 64, 1024, **WIDE),
    _row("Neoverse V2", "neoverse-v2 grace", 64, 2048, **WIDE),
    _row("Cortex-A53", "cortex-a53", 32, 512, **NARROW),
    _row("Cortex-A55", "cortex-a55", 32, 128, **NARROW),
    _row("Cortex-A72", "cortex-a72", 32, 1024, issue_width=3.0, loads_per_cycle=1.0),
    _row("Cortex-A76", "cortex-a76 cortex-a76ae", 64, 512),
    _row("Cortex-A78", "cortex-a78 cortex-a78ae", 64, 256, issue_width=6.0),
    _row("Cortex-X1", "cortex-x1 cortex-x1c", 64, 1024, **WIDE),
    _row("Cortex-X3", "cortex-x3", 64, 1024, **WIDE),
    _row("Apple M1", "apple-m1", 128, 12288, **WIDE),
    _row("Cortex-M4", "cortex-m4", 0, 0),
    _row("Cortex-M7", "cortex-m7", 16, 0),
    _row("Cortex-M33", "cortex-m33", 0, 0),
    _row("Cortex-M55", "cortex-m55", 32, 0),
]


@cache
def micro_architecture(cpu: str) -> MicroArchitecture:
    """The micro-architecture whose row in `ROWS` lists this LLVM CPU name; `GENERIC` if there is none."""
    return next((row for row in ROWS if cpu in row.cpus), GENERIC)
