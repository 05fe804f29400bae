"""Lazy modules: their public names are imported from other modules when they are first used, so that `import relay` is
fast."""

from __future__ import annotations

from functools import cache
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping


def door(
    package: str,
    homes: Mapping[str, str],
    former: Container[str] | None = (),
    elsewhere: str = "",
    rest: str = "",
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` for a module that re-exports names of other modules.

    `homes` lists the names by defining module, separated by spaces: `name`, `name=other` if the name is `other` there,
    or `name=` for the module itself. Names in `former` (all names if it is None) are deprecated: using one warns with
    the name to write instead. `elsewhere` is the place (`module:name`) of a table of hints for names that the module
    lacks, by name; `rest` is the place of a table with further rows of `homes`, which is imported when the first name
    is used.
    """

    @cache
    def home() -> dict[str, tuple[str, str]]:
        rows = {**_table(rest), **homes}
        return {each.partition("=")[0]: (module, each) for module, names in rows.items() for each in names.split()}

    def get(name: str) -> object:
        if name not in home():
            instead = "" if name[0] == "_" else _table(elsewhere).get(name, "")
            # raised here, since Python would replace the message of an AttributeError by its own
            if instead and caller_does("IMPORT_FROM"):
                raise ImportError(f"cannot import name {name!r} from {package!r}; {instead}", name=name, path=package)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{instead and '; '}{instead}")
        module, written = home()[name]
        found = import_module(module)
        attribute = written.rpartition("=")[2]
        if former is None or name in former:
            import warnings  # here: `import relay` imports this module

            now = f"{module}.{attribute}"
            warnings.warn(f"{package}.{name} is deprecated: write {now}", DeprecationWarning, stacklevel=2)
        return getattr(found, attribute) if attribute else found

    return get, lambda: sorted(home())


def _table(place: str) -> Mapping[str, str]:
    """The table that `place`, written `module:name`, names; an empty one for an empty string."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name) if module else {}


def caller_does(operation: str) -> bool:
    """Whether the caller of the calling function is executing the bytecode instruction `operation`. A special method
    uses this to distinguish syntax for which Python calls it in the same way."""
    from dis import opmap
    from inspect import currentframe

    here = currentframe()
    asking = here and here.f_back and here.f_back.f_back
    return asking is not None and asking.f_code.co_code[asking.f_lasti] == opmap[operation]
