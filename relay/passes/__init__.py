"""The pass machinery: `Pass`, `PassContext`, `Pipeline` (Relay's `Sequential`), decorators, instruments, analyses. May
import `target`, `dialects` and the packages below these, but not `interpreters`."""

from relay.doors import door
from relay.passes.base import Pass
from relay.passes.context import PassContext
from relay.passes.diagnostics import CollectedErrors, Diagnostic, Reporter
from relay.passes.info import PassInfo
from relay.passes.instruments import PassInstrument, pass_instrument
from relay.passes.pipeline import Pipeline, Sequential

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relay.passes.decorators import function_pass, module_pass

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

__getattr__ = door(__name__, {"relay.passes.decorators": "function_pass module_pass"})[0]
"""These names are imported on first use: the tools and `relay.build` do not need them."""
