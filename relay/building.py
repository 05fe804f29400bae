"""Deprecated: names of this module up to 0.1, imported from their new modules with a warning. To be removed in 0.3."""

from relay.doors import door

NAMES = {"relay": "build", "relay.compile.entry": "uncollected=gc_paused"}
__getattr__, __dir__ = door(__name__, NAMES, former=None)
