"""Names that were in this module up to 0.1; each gives a warning with its new module. To be removed in 0.3."""

from relay import target
from relay.doors import door

__getattr__, __dir__ = door(__name__, {"relay.target": " ".join(target.__all__)}, former=None)
