"""Deprecated: names of this module up to 0.1, imported from their new modules with a warning. To be removed in 0.3."""

from relay.doors import door

__getattr__, __dir__ = door(
    __name__,
    {
        "relay": "build default_pipeline optimize",
        "relay.compile.assemble": "assemble",
        "relay.compile.model": "compile_model",
        "relay.compile.pipeline": "graph_passes lowering_passes",
        "relay.frontend": "import_model",
    },
    former=None,
)
