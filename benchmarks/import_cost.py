"""What importing ONNX models costs: `python -m benchmarks.import_cost MODEL.onnx ...`.

Each in a process of its own that has imported the package onnx before: the processor's time, and the most memory beyond
the bytes of the file. Linux only.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from time import process_time

from relay.errors import Malformed
from relay.frontend import from_onnx


def status(key: str) -> int:
    """A number of bytes of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(key))


def cost(path: str) -> tuple[float, int]:
    """Seconds, and bytes of memory beyond those of the file."""
    with suppress(Malformed):
        from_onnx(b"\x08\x08")
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the highest resident size is counted anew
    start = process_time()
    module = from_onnx(path)
    took = process_time() - start
    assert module["main"].body.blocks
    return took, status("VmHWM") - before - Path(path).stat().st_size


def main() -> None:
    for name in sys.argv[1:]:
        with get_context("spawn").Pool(1) as pool:
            seconds, extra = pool.apply(cost, (name,))
        size = Path(name).stat().st_size / 1e6
        print(f"{Path(name).name}: {size:.1f} MB, {seconds:.2f} s, {max(extra, 0) / 1e6:.0f} MB beyond its bytes")


if __name__ == "__main__":
    main()
