"""Names that stood here up to 0.1, each with a warning that names its new place. Goes with 0.3."""

from relay.doors import door

NAMES = {"relay": "build", "relay.compile.entry": "uncollected=gc_paused"}
__getattr__, __dir__ = door(__name__, NAMES, former=None)
