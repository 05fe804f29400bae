"""The errors of emulated kernels."""

from __future__ import annotations

from relay.errors import RelayError


class KernelFault(RelayError):
    """A kernel did something that is undefined on a GPU, whether or not a GPU would detect it."""


class Wrong(Exception):
    """A group of warps, or a thread that requests copies, did something that it must not do."""
