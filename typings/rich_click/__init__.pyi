"""What `relay.tools.command` uses of rich-click, whose own types name click's `ParamType` without its arguments."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])
G = TypeVar("G", bound=Command)
Complete = Callable[[Context, Parameter, str], list[CompletionItem]]

UNPROCESSED: object

class Parameter:
    opts: list[str]

class Context:
    obj: Any
    command: Command
    command_path: str
    def find_root(self) -> Context: ...

class Command:
    epilog: str | None
    params: list[Parameter]
    def main(
        self, args: Sequence[str] | None = ..., prog_name: str | None = ..., *, standalone_mode: bool
    ) -> object: ...
    def format_help(self, ctx: Context, formatter: Any) -> None: ...
    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]: ...

class RichCommand(Command): ...

class RichGroup(Command):
    def list_commands(self, ctx: Context) -> list[str]: ...
    def get_command(self, ctx: Context, cmd_name: str) -> Command | None: ...
    def command(self, name: str | None = ...) -> Callable[[Callable[..., Any]], Command]: ...

class ClickException(Exception):
    exit_code: int
    def format_message(self) -> str: ...

class UsageError(ClickException):
    ctx: Context | None

class BadParameter(UsageError): ...
class Abort(RuntimeError): ...

class exceptions:
    class Exit(RuntimeError):
        exit_code: int

class Choice:
    def __init__(self, choices: Sequence[str]) -> None: ...

class IntRange:
    def __init__(self, min: int | None = ..., max: int | None = ...) -> None: ...

class FloatRange:
    def __init__(self, min: float | None = ..., max: float | None = ...) -> None: ...

class Path:
    def __init__(self, *, exists: bool = ..., dir_okay: bool = ...) -> None: ...

@overload
def command(
    name: str | None = ...,
    *,
    cls: type[G],
    help: str = ...,
    add_help_option: bool = ...,
    context_settings: dict[str, Any] = ...,
) -> Callable[[Callable[..., Any]], G]: ...
@overload
def command(name: str | None = ...) -> Callable[[Callable[..., Any]], Command]: ...
def group(name: str | None = ...) -> Callable[[Callable[..., Any]], RichGroup]: ...
def option(
    *names: str, type: object = ..., metavar: str = ..., help: str = ..., default: Any = ..., multiple: bool = ...,
    is_flag: bool = ..., required: bool = ..., shell_complete: Complete = ...,
) -> Callable[[F], F]: ...  # fmt: skip
def argument(
    name: str, *, type: object = ..., metavar: str = ..., nargs: int = ..., required: bool = ...
) -> Callable[[F], F]: ...
def version_option(version: str, *, prog_name: str) -> Callable[[F], F]: ...
def pass_obj(function: F) -> F: ...
def pass_context(function: F) -> F: ...
def echo(message: str, *, err: bool = ...) -> None: ...
