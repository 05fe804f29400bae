"""A module whose names are imported from where they stand when they are first used: `import relay` costs nothing."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping


def door(
    package: str, homes: Mapping[str, str], former: Container[str] | None = (), elsewhere: str = ""
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module that names what stands in others: `homes` has the names by module, in one
    text: `name`, `name=other` for what is called `other` there, `name=` for the module itself. Names of `former` (all
    if it is None) are to go: they come with a warning that says what to write. `elsewhere` is where the table stands
    (`module:name`) of what to write instead of names that others have and the module lacks."""
    home = {each.partition("=")[0]: (module, each) for module, names in homes.items() for each in names.split()}

    def get(name: str) -> object:
        if name not in home:
            module, _, table = elsewhere.partition(":")
            instead = getattr(import_module(module), table).get(name, "") if module and name[0] != "_" else ""
            if instead and caller_does("IMPORT_FROM"):  # Python would put a message of its own in place of ours
                raise ImportError(f"cannot import name {name!r} from {package!r}; {instead}", name=name, path=package)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{instead and '; '}{instead}")
        module, written = home[name]
        found = import_module(module)
        attribute = written.rpartition("=")[2]
        if former is None or name in former:
            import warnings  # here: `import relay` imports this module

            now = f"{module}.{attribute}"
            warnings.warn(f"{package}.{name} is deprecated: write {now}", DeprecationWarning, stacklevel=2)
        return getattr(found, attribute) if attribute else found

    return get, lambda: sorted(home)


def caller_does(operation: str) -> bool:
    """Whether the function that called the caller's is at this instruction of Python's: to tell apart what Python asks
    in the same way."""
    from dis import opmap
    from inspect import currentframe

    here = currentframe()
    asking = here and here.f_back and here.f_back.f_back
    return asking is not None and asking.f_code.co_code[asking.f_lasti] == opmap[operation]
