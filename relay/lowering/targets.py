"""The old home of `relay.target`; goes after 0.2."""

from __future__ import annotations

import warnings

from relay import target


def __getattr__(name: str) -> object:
    if name not in target.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"relay.lowering.targets.{name} is relay.target.{name} now", DeprecationWarning, stacklevel=2)
    return getattr(target, name)
