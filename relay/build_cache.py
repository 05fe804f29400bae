"""Deprecated: names of this module up to 0.1, imported from their new modules with a warning. To be removed in 0.3."""

from relay.doors import door

NAMES = "SOURCES SOURCES_OF_DEVICES compiler content_of find keep keeps"
__getattr__, __dir__ = door(__name__, {"relay.compile.cache": NAMES}, former=None)
