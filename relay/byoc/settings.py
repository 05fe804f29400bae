"""The settings of a module for external compilers: their options, and whether integers must be exact.

Both are attributes of the module, so that later passes and the module's text have them: `byoc.options = {c = {unroll =
true}}` and `byoc.exact = true`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from relay.byoc import registry
from relay.byoc.compiler import Compiler, Refusal
from relay.dialects.plain import from_attribute, to_attribute
from relay.errors import InvalidArgument, Malformed

if TYPE_CHECKING:
    from relay.byoc.patterns import Entry, Match

OPTIONS = "byoc.options"
EXACT = "byoc.exact"


def compiler_of(module: ModuleOp, name: str, where: str = "external compiler") -> Compiler:
    """The compiler of this name with the module's options; if the module requires exactness, it refuses ops that are
    not exact. Raises the errors of `relay.byoc.find`."""
    compiler = registry.find(name, read(module).get(name), where)
    return exact_part(compiler) if requires_exact(module) else compiler


def write(module: ModuleOp, options: Mapping[str, Mapping[str, object]], exact: bool | None = None) -> None:
    """Store options by compiler, and whether integers must be exact, on the module; options of other compilers stay."""
    if exact is not None:
        if type(exact) is not bool:
            raise InvalidArgument("exact", f"is {exact!r}", "it is True or False")
        module.attributes[EXACT] = to_attribute(exact, EXACT)
    if given := {name: dict(row) for name, row in options.items() if row}:
        rows = read(module) | given
        module.attributes[OPTIONS] = to_attribute(rows, OPTIONS)


def read(module: ModuleOp) -> dict[str, dict[str, object]]:
    """The options of each external compiler, by its name, that the module stores as an attribute. Raises Malformed if
    the attribute is not a dictionary of dictionaries."""
    attr = module.attributes.get(OPTIONS)
    if attr is None:
        return {}
    found = from_attribute(attr, f"module attribute {OPTIONS}")
    if not isinstance(found, dict):
        raise Malformed(f"module attribute {OPTIONS}", f"is {attr}", "it is a dictionary of dictionaries")
    rows = cast(dict[str, object], found)
    for name, row in rows.items():
        if not isinstance(row, dict):
            raise Malformed(f"module attribute {OPTIONS}", f"{name} is {row!r}", "it is a dictionary of options")
    return cast(dict[str, dict[str, object]], rows)


def requires_exact(module: ModuleOp) -> bool:
    """Whether the module requires that every integer equals that of the ops' formulas. Raises Malformed."""
    attr = module.attributes.get(EXACT)
    found = False if attr is None else from_attribute(attr, f"module attribute {EXACT}")
    if not isinstance(found, bool):
        raise Malformed(f"module attribute {EXACT}", f"is {attr}", "it is true or false")
    return found


class _ExactPart(Compiler):
    """A wrapper of a compiler that takes only what the compiler computes exactly."""

    def __init__(self, compiler: Compiler):
        self.compiler = compiler
        difference = compiler.difference or "its integers may be others"
        self.refusal = Refusal(f"integers must be exact, and {compiler.name}'s are not: {difference}")

    def patterns(self) -> Sequence[Entry]:
        return [self._checked(entry) for entry in self.compiler.patterns()]

    def _checked(self, entry: Entry) -> Entry:
        exact = self.compiler.exact if entry.exact is None else entry.exact
        return entry if exact else replace(entry, check=self._refuse)

    def _refuse(self, match: Match) -> Refusal:
        return self.refusal

    def supports(self, op: Operation) -> bool | Refusal:
        answer = self.compiler.supports(op)
        return self.refusal if answer and not self.compiler.exact else answer

    def off_by(self, ops: Sequence[Operation]) -> int | None:
        return 0


FACTS = ("name", "version", "exact", "difference", "extra", "layouts", "kernel_layouts", "hoists", "faults")
METHODS = ("missing", "before_annotation", "on_functions", "cost", "regions", "compile")
"""The class attributes of a compiler that `exact_part` copies to the class that wraps it."""


def exact_part(compiler: Compiler) -> Compiler:
    """The compiler, wrapped to refuse every entry and op that is not exact."""
    facts = {key: getattr(compiler, key) for key in FACTS}
    methods = {key: staticmethod(getattr(compiler, key)) for key in METHODS}
    return type("ExactPart", (_ExactPart,), facts | methods)(compiler)
