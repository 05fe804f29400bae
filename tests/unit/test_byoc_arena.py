"""Memory for tensors that a compiler keeps between its steps."""

from __future__ import annotations

import numpy as np

from relay.byoc import Buffer, place


def test_no_two_buffers_that_live_at_once_overlap():
    rng = np.random.default_rng(1)
    for _ in range(50):
        buffers: list[Buffer] = []
        for _ in range(30):
            first = int(rng.integers(0, 40))
            buffers.append(Buffer(16 * int(rng.integers(1, 100)), first, first + int(rng.integers(0, 9))))
        total = place(buffers)
        assert total == max(b.offset + b.size for b in buffers) and all(b.offset % 16 == 0 for b in buffers)
        busiest = max(sum(b.size for b in buffers if b.first <= step <= b.last) for step in range(50))
        assert busiest <= total <= 1.6 * busiest
        for a in buffers:
            for b in buffers:
                if a is not b and a.first <= b.last and b.first <= a.last:
                    assert a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
    assert place([]) == 0
