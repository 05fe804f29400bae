"""Names that stood here up to 0.1, each with a warning that names its new place. Goes with 0.3."""

from relay.doors import door

NAMES = "SOURCES SOURCES_OF_DEVICES compiler content_of find keep keeps"
__getattr__, __dir__ = door(__name__, {"relay.compile.cache": NAMES}, former=None)
