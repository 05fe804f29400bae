"""Formatting of an error as the one line `where: what; hint` that a command prints."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError, VerifyException

from relay.dialects.source import invalid, parser_message, said_last
from relay.errors import Malformed, RelayError
from relay.passes import CollectedErrors
from relay.transforms.location import words

TRACEBACK = "RELAY_TRACEBACK"
"""The environment variable that, set to 1, makes commands print the Python traceback before an error's line."""


WIDTH = 2000
"""The maximum length of an error line, in characters."""


def one_line(text: str) -> str:
    """The text without line breaks; the middle of a very long text is replaced by `...`."""
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH * 3 // 4]} ... {line[-WIDTH // 4 :]}"


def line_of(error: BaseException, file: str, doing: str = "", module: ModuleOp | None = None) -> str:
    """The line that reports an error met in `file` while `doing` a step on `module`, with notes that pass instruments
    added."""
    notes = "".join(f"; {one_line(n)}" for n in getattr(error, "__notes__", ()) if n.startswith("instrument "))
    return f"{_line_of(error, file, doing, module)}{notes}"


def _line_of(error: BaseException, file: str, doing: str, module: ModuleOp | None) -> str:
    where = f"{file}: {doing}" if doing else file
    match error:
        case CollectedErrors():
            return str(error)
        case Malformed(__cause__=VerifyException() as cause):
            return _line_of(cause, file, error.where, module)
        case RelayError():
            return one_line(str(error))
        case ParseError():
            said = parser_message(error)
            return one_line(f"{error.span.get_location()}: {said}")
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
        case UnicodeDecodeError():
            return f"{where}: byte {error.start} is not UTF-8; MLIR text is UTF-8"
        case ValueError() if str(error) == "mlir-opt is not available":
            return f"{where}: {error}; install MLIR's tools"
        case RecursionError():
            return f"{where}: is nested too deeply"
        case MemoryError():
            return f"{where}: there is not enough memory"
        case ModuleNotFoundError():
            return one_line(f"{where}: {error}; install the package that it needs")
        case _:
            what = one_line(f"{type(error).__name__}: {error}")
            return f"{where}: unexpected {what}; set {TRACEBACK}=1 to see where, and please report it"
