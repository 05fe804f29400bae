"""Names that stood here up to 0.1, each with a warning that names its new place. Goes with 0.3."""

from relay import target
from relay.doors import former_door

__getattr__, __dir__ = former_door(__name__, dict.fromkeys(target.__all__, "relay.target"))
