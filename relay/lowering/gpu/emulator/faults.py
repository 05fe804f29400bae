"""The errors of emulated kernels."""

from __future__ import annotations

from relay.errors import RelayError


class KernelFault(RelayError):
    """A kernel did something that is undefined on a GPU, whether or not a GPU would detect it."""


class Wrong(Exception):
    """Four warps that compute a product together, or a thread that requests copies of tiles or uses their barriers,
    did something that is undefined on a GPU; the message says what."""
