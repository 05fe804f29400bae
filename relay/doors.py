"""A module whose names are imported from where they stand when they are first used: `import relay` costs nothing."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping


def door(
    package: str, home: Mapping[str, str], former: Container[str] = (), elsewhere: str = ""
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module, whose names are `home`'s keys. A value is the module where the name
    stands; `module:other` if it has another name there, and `module:` if the module itself is meant. Names of `former`
    are to go: they come with a warning that says what to write. `elsewhere` is where the table stands (`module:name`)
    of what to write instead of names that others have and the module lacks."""

    def get(name: str) -> object:
        if name not in home:
            module, _, table = elsewhere.partition(":")
            instead = getattr(import_module(module), table).get(name, "") if module and name[0] != "_" else ""
            if instead and caller_does("IMPORT_FROM"):  # Python would put a message of its own in place of ours
                raise ImportError(f"cannot import name {name!r} from {package!r}; {instead}", name=name, path=package)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{instead and '; '}{instead}")
        module, colon, other = home[name].partition(":")
        found = import_module(module)
        attribute = other if colon else name
        if name in former:
            import warnings  # here: `import relay` imports this module

            now = f"{module}.{attribute}"
            warnings.warn(f"{package}.{name} is deprecated: write {now}", DeprecationWarning, stacklevel=2)
        return getattr(found, attribute) if attribute else found

    return get, lambda: sorted(home)


def former_door(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The same of a module that is to go, with all its names."""
    return door(package, home, home)


def caller_does(operation: str) -> bool:
    """Whether the function that called the caller's is at this instruction of Python's: to tell apart what Python asks
    in the same way."""
    from dis import opmap
    from inspect import currentframe

    here = currentframe()
    asking = here and here.f_back and here.f_back.f_back
    return asking is not None and asking.f_code.co_code[asking.f_lasti] == opmap[operation]
