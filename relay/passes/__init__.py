"""The pass machinery: `Pass`, `PassContext`, `Pipeline` (Relay's `Sequential`), decorators, instruments, analyses."""

from relay.passes.base import Pass
from relay.passes.context import PassContext
from relay.passes.decorators import function_pass, module_pass
from relay.passes.diagnostics import CollectedErrors, Diagnostic, Reporter
from relay.passes.info import PassInfo
from relay.passes.instruments import PassInstrument, pass_instrument
from relay.passes.pipeline import Pipeline, Sequential

__all__ = [
    "CollectedErrors",
    "Diagnostic",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "Pipeline",
    "Reporter",
    "Sequential",
    "function_pass",
    "module_pass",
    "pass_instrument",
]
