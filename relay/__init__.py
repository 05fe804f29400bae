"""relay: a compiler for pre-quantised models, built on xDSL. `relay.build(model)` is the one call.

Every name is imported when it is first used, so that `import relay` costs nothing.
"""

from __future__ import annotations

from relay.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relay import byoc, errors, frontend, interpreters, qnn, quantize, runtime, transform
    from relay.byoc.composition import build_external_compiler
    from relay.compile.entry import build
    from relay.compile.pipeline import default_pipeline, optimize
    from relay.compile.records import Records
    from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
    from relay.exploration.comparing import compare
    from relay.exploration.tuning import tune
    from relay.module import IRModule
    from relay.passes.build_config import BuildConfig

__version__ = "0.1.0"

# Written by `python docs/generate.py`; do not edit what follows: it is made of the imports above.
__getattr__, __dir__ = door(
    __name__,
    {
        "BuildConfig": "relay.passes.build_config",
        "IRModule": "relay.module",
        "InvalidArgument": "relay.errors",
        "Malformed": "relay.errors",
        "Records": "relay.compile.records",
        "RelayError": "relay.errors",
        "Unsupported": "relay.errors",
        "build": "relay.compile.entry",
        "build_external_compiler": "relay.byoc.composition",
        "byoc": "relay.byoc:",
        "compare": "relay.exploration.comparing",
        "default_pipeline": "relay.compile.pipeline",
        "errors": "relay.errors:",
        "frontend": "relay.frontend:",
        "interpreters": "relay.interpreters:",
        "optimize": "relay.compile.pipeline",
        "qnn": "relay.qnn:",
        "quantize": "relay.quantize:",
        "runtime": "relay.runtime:",
        "transform": "relay.transform:",
        "tune": "relay.exploration.tuning",
    },
)

__all__ = [
    "BuildConfig", "IRModule", "InvalidArgument", "Malformed", "Records", "RelayError", "Unsupported", "__version__",
    "build", "build_external_compiler", "byoc", "compare", "default_pipeline", "errors", "frontend", "interpreters",
    "optimize", "qnn", "quantize", "runtime", "transform", "tune",
]  # fmt: skip
