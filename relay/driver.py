"""Names that stood here up to 0.1, each with a warning that names its new place. Goes with 0.3."""

from relay.doors import former_door

__getattr__, __dir__ = former_door(
    __name__,
    {
        "assemble": "relay.compile.assemble",
        "build": "relay",
        "compile_model": "relay.compile.model",
        "default_pipeline": "relay",
        "graph_passes": "relay.compile.pipeline",
        "import_model": "relay.frontend",
        "lowering_passes": "relay.compile.pipeline",
        "optimize": "relay",
    },
)
