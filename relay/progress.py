"""Names that stood here up to 0.1, each with a warning that names its new place. Goes with 0.3."""

from relay.doors import door

__getattr__, __dir__ = door(__name__, {"relay.compile.progress": "Update bar unseen"}, former=None)
