"""All dialects, passes and targets: relay's, xDSL's and those of other packages; of two with the same name the first
wins.

xDSL's own `get_multiverse` refuses to start when two packages share a name. Here relay's come first, then xDSL's, then
those of other packages in the order of their entry points' names.
"""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import cast

from xdsl.passes import ModulePass
from xdsl.targets import get_all_targets
from xdsl.universe import XDSL_UNIVERSE, Universe

from relay.dialects.context import EXTENDED
from relay.dialects.plug_in import universes
from relay.errors import InvalidArgument
from relay.passes.registry import register
from relay.universe import UNIVERSE


def everything() -> Universe:
    """A universe with every dialect, pass and target that is installed."""
    merged = Universe(all_targets=dict(get_all_targets()))
    for universe in (*reversed([*universes()]), XDSL_UNIVERSE, UNIVERSE, Universe(all_dialects=dict(EXTENDED))):
        merged.all_dialects.update(universe.all_dialects)
        merged.all_passes.update(universe.all_passes)
        merged.all_targets.update(universe.all_targets)
    return merged


def load(path: str) -> None:
    """Run a Python file, which may register compilers and passes; pass classes that it defines, plain xDSL ones
    included, are registered too. Raises InvalidArgument, naming the file, if it fails."""
    if not Path(path).is_file():
        raise InvalidArgument("--load", f"there is no file {path}", "name a Python file")
    name = f"relay_loaded_{Path(path).stem}"
    spec = spec_from_file_location(name, path, loader=SourceFileLoader(name, path))
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        found = [each for each in vars(module).values() if isinstance(each, type)]
        for cls in cast(list[type[object]], found):
            if issubclass(cls, ModulePass) and cls.__module__ == name and "name" in vars(cls):
                register(cls)
    except Exception as error:
        raise InvalidArgument(f"--load {path}", f"{type(error).__name__}: {error}", "it is run as Python") from error
