"""What goes wrong in a kernel."""

from __future__ import annotations

from relay.errors import RelayError


class KernelFault(RelayError):
    """A kernel did what a GPU would not forgive, or not even notice."""


class Wrong(Exception):
    """What a group of warps, or a thread that asks for copies, did that it must not."""
