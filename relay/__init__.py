"""relay: a compiler for pre-quantised models, built on xDSL. `relay.build(model)` compiles a model into an executable.

Every public name is imported when it is first used, so that `import relay` is fast.
"""

from __future__ import annotations

from relay.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relay import byoc, errors, frontend, interpreters, qnn, quantize, runtime, transform, validation
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
__getattr__, __dir__ = door(__name__, {
    "relay.byoc": "byoc=",
    "relay.byoc.composition": "build_external_compiler",
    "relay.compile.entry": "build",
    "relay.compile.pipeline": "default_pipeline optimize",
    "relay.compile.records": "Records",
    "relay.errors": "InvalidArgument Malformed RelayError Unsupported errors=",
    "relay.exploration.comparing": "compare",
    "relay.exploration.tuning": "tune",
    "relay.frontend": "frontend=",
    "relay.interpreters": "interpreters=",
    "relay.module": "IRModule",
    "relay.passes.build_config": "BuildConfig",
    "relay.qnn": "qnn=",
    "relay.quantize": "quantize=",
    "relay.runtime": "runtime=",
    "relay.transform": "transform=",
    "relay.validation": "validation=",
})  # fmt: skip

__all__ = [
    "BuildConfig", "IRModule", "InvalidArgument", "Malformed", "Records", "RelayError", "Unsupported", "__version__",
    "build", "build_external_compiler", "byoc", "compare", "default_pipeline", "errors", "frontend", "interpreters",
    "optimize", "qnn", "quantize", "runtime", "transform", "tune", "validation",
]  # fmt: skip
