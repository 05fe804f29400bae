"""The old home of `relay.target`; goes after 0.2."""

from relay import target
from relay.doors import former_door

__getattr__, __dir__ = former_door(__name__, dict.fromkeys(target.__all__, "relay.target"))
