"""`PassInstrument`: called before and after every pass, and may prevent it."""

from __future__ import annotations

from relay.arguments import every, instance
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes.info import PassInfo


class PassInstrument:
    """Base class of instruments: override the methods that are needed; here each does nothing. `info` describes the
    pass, `mod` is the module on which it runs. Instruments nest: after a pass, the last one of a context is called
    first. An exception in a method goes to the caller. If entering an instrument of a context fails, the instruments
    that were entered before it are exited; if exiting one fails, the others are exited all the same. After either
    failure the context has no instruments left."""

    def enter_pass_ctx(self) -> None:
        """Called when a context with this instrument is entered."""

    def exit_pass_ctx(self) -> None:
        """Called when the context is left, also because of an exception."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Whether the pass may run; it runs if every instrument says so. Not called for passes that a later pass
        requires."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Called before the pass runs."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Called after the pass has run."""

    def run_failed_pass(self, mod: IRModule, info: PassInfo, error: BaseException) -> None:
        """Called when the pass, or another instrument's method before or after it, has raised an exception; only if
        `run_before_pass` of this instrument was called before."""

    def count(self, what: str, number: int) -> None:
        """Called when the running pass counts something (`PassContext.count`)."""


METHODS = (
    "enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass", "run_failed_pass", "count"
)  # fmt: skip


def pass_instrument(cls: type) -> type[PassInstrument]:
    """A class decorator that adds the missing methods of `PassInstrument` to a class that has some of them."""
    if not any(hasattr(cls, name) for name in METHODS):
        raise InvalidArgument(f"pass_instrument {cls.__name__}", f"has none of the methods {', '.join(METHODS)}")
    made = type(cls.__name__, (cls, PassInstrument), {"__doc__": cls.__doc__, "__module__": cls.__module__})
    assert issubclass(made, PassInstrument)
    return made


def checked(instruments: object) -> list[PassInstrument]:
    """The instruments of a list. Raises InvalidArgument for an element that is not an instrument, such as a class."""
    found: list[PassInstrument] = []
    for each in every(instruments, "instruments"):
        if isinstance(each, type):
            raise InvalidArgument("instruments", f"{each.__name__} is a class", f"write {each.__name__}()")
        found.append(instance(each, PassInstrument, "instruments", "pass_instrument makes one of a class"))
    return found


def enter_all(instruments: list[PassInstrument]) -> None:
    """Enter the instruments in order; if one raises, exit those before it, clear the list, and raise."""
    for number, instrument in enumerate(instruments):
        try:
            instrument.enter_pass_ctx()
        except BaseException:
            entered = instruments[:number]
            instruments.clear()
            exit_all(entered)
            raise


def exit_all(instruments: list[PassInstrument]) -> None:
    """Exit each instrument, even if another raises; then clear the list, and raise the first error."""
    first: BaseException | None = None
    for instrument in list(instruments):
        try:
            instrument.exit_pass_ctx()
        except BaseException as error:
            first = first or error
    if first is not None:
        instruments.clear()
        raise first
