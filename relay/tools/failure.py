"""An error as the one line `where: what; hint` that a command prints."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError, VerifyException

from relay.dialects.source import invalid, said_last
from relay.errors import RelayError
from relay.passes import CollectedErrors
from relay.transforms.location import words

TRACEBACK = "RELAY_TRACEBACK"
"""The environment variable that, set to 1, shows the Python traceback of an error before its line."""


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


def line_of(error: BaseException, file: str, doing: str = "", module: ModuleOp | None = None) -> str:
    """The line for any error met in `file`, while `doing` something to `module`."""
    where = f"{file}: {doing}" if doing else file
    match error:
        case CollectedErrors():
            return str(error)
        case RelayError():
            return one_line(str(error))
        case ParseError():
            return one_line(f"{error.span.get_location()}: {error.msg}")
        case VerifyException():
            found = None if module is None else next(invalid(module), None)
            if found is None:
                return one_line(f"{where}: {said_last(str(error))}")
            op, message = found
            place = words(op.location) or file
            return one_line(f"{place}: {message}; found {doing}" if doing else f"{place}: {message}")
        case ArgSpecParseError():
            return one_line(f"{where}: {said_last(str(error))}; write for example -p 'cse,dce'")
        case DiagnosticException():
            return one_line(f"{where}: {error}")
        case OSError() if error.strerror:
            return one_line(f"{error.filename or where}: {error.strerror}")
        case RecursionError():
            return f"{where}: is nested too deeply"
        case MemoryError():
            return f"{where}: there is not enough memory"
        case ModuleNotFoundError():
            return one_line(f"{where}: {error}; install the package that it needs")
        case _:
            what = one_line(f"{type(error).__name__}: {error}")
            return f"{where}: unexpected {what}; set {TRACEBACK}=1 to see where, and please report it"
