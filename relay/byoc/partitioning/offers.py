"""What a partitioning pass needs to ask external compilers which ops they take. The compilers have the options that the
module states for them; if the module requires exact integers, they take only ops that they compute exactly. Their
answers are checked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc import registry, settings
from relay.byoc.compiler import Compiler, Refusal
from relay.byoc.guard import AUTHORS, asked, estimate, verdict
from relay.byoc.partitioning.scope import COMPILER, opened
from relay.dialects import byoc, qnn
from relay.dialects.attributes import WeightAttr
from relay.dialects.op import DYNAMIC, is_tensor, tensor
from relay.errors import Malformed, Unsupported

if TYPE_CHECKING:
    from relay.byoc.patterns import Entry

Names = tuple[str, ...] | str


def targets(names: Names, function: FuncOp, where: str) -> tuple[str, ...]:
    """The names of the compilers to consult for a function: that of its attribute `compiler` if it has one, else
    `names`.

    Raises Malformed if that attribute is no string.
    """
    attr = function.attributes.get(COMPILER)
    if attr is None:
        return (names,) if isinstance(names, str) else tuple(names)
    if not isinstance(attr, StringAttr):
        raise Malformed(f"{where}, function {function.sym_name.data}", f"its attribute compiler is {attr}, no name")
    return (attr.data,)


class Offer:
    """An external compiler that a partitioning pass asks which ops it takes. With `require_exact` it takes only ops for
    which it computes the same integers as the host."""

    def __init__(self, compiler: Compiler, require_exact: bool):
        self.compiler = settings.exact_part(compiler) if require_exact else compiler
        self.exact = not require_exact or compiler.exact
        self.inexact: dict[str, bool] = {}
        if require_exact:
            self.inexact = {e.name: not (compiler.exact if e.exact is None else e.exact) for e in table(compiler)}
        self.difference = compiler.difference or "its integers may be others"

    @cached_property
    def entries(self) -> Sequence[Entry]:
        """The compiler's pattern table."""
        return table(self.compiler)

    def takes(self, op: Operation) -> bool | Refusal:
        """Whether the compiler takes a single op that no pattern matched, or a composite of its own."""
        if (other := foreign(op, self.compiler)) is not None:
            return other
        if not isinstance(op, byoc.CompositeOp):
            with asked(self.compiler.name, f"supports({op.name})", [op]):
                answer = self.compiler.supports(op)
            return verdict(self.compiler.name, f"supports({op.name})", answer)
        owner, _, entry = op.composite.data.partition(".")
        if owner == self.compiler.name and self.inexact.get(entry, not self.exact):
            return Refusal(f"integers must be exact, and {op.composite.data}'s are not: {self.difference}")
        return owner == self.compiler.name

    def cost_of(self, ops: Sequence[Operation]) -> float | None:
        """The compiler's cost estimate in microseconds for a region of these ops, with composites replaced by their
        ops; None if it has none."""
        with asked(self.compiler.name, "cost"):
            answer = self.compiler.cost(opened(ops))
        return estimate(self.compiler.name, answer)


def table(compiler: Compiler) -> Sequence[Entry]:
    """The compiler's pattern table. Raises Unsupported if it contains anything else than entries."""
    from relay.byoc.patterns import Entry

    with asked(compiler.name, "patterns"):
        rows: list[object] = list(compiler.patterns())
    entries = [row for row in rows if isinstance(row, Entry)]
    if len(entries) < len(rows):
        raise Unsupported(f"compiler {compiler.name}", "patterns gave what is no Entry", AUTHORS)
    return entries


def foreign(op: Operation, compiler: Compiler) -> Refusal | None:
    """Return a Refusal if the compiler cannot read the op: a value is a scalar of control flow, a size is unknown, the
    compiler does not support a layout of the data or the kernel, or quantization parameters are packed. Return None if
    the compiler can read the op."""
    if not all(is_tensor(value.type) for value in (*op.operands, *op.results)):
        return Refusal("it takes or gives a scalar of control flow, no tensor")
    if any(DYNAMIC in tensor(value).get_shape() for value in (*op.operands, *op.results)):
        return Refusal("a size of it is not known: give the model's inputs static shapes")
    for name in ("data_layout", "out_layout", "layout"):
        attr = op.properties.get(name)
        if isinstance(attr, StringAttr) and attr.data and attr.data not in compiler.layouts:
            return Refusal(f"its layout is {attr.data}, not {' or '.join(compiler.layouts)}")
    kernel = op.properties.get("kernel_layout")
    if isinstance(kernel, StringAttr) and kernel.data not in compiler.kernel_layouts:
        return Refusal(f"its kernel layout is {kernel.data}, not {' or '.join(compiler.kernel_layouts)}")
    if isinstance(op, qnn.QuantizeOp | qnn.DequantizeOp | qnn.RequantizeOp):
        if any(isinstance(attr, WeightAttr) and attr.array.ndim > 1 for attr in op.properties.values()):
            return Refusal("its parameters are in packed form")
    return None


class Compilers:
    """The external compilers that a pass consults, each instantiated once with the module's options. If the module
    requires exact integers, each is restricted to the ops that it computes without any difference."""

    def __init__(self, module: ModuleOp, where: str, exact: bool | None = None):
        self.options, self.where = settings.read(module), where
        self.require_exact = settings.requires_exact(module) if exact is None else exact
        self.made: dict[str, Offer] = {}

    def of(self, names: Sequence[str]) -> list[Offer]:
        """An `Offer` for each compiler of these names, without repetitions. Raises the errors of `relay.byoc.find`."""
        for name in names:
            if name not in self.made:
                self.made[name] = Offer(registry.find(name, self.options.get(name), self.where), self.require_exact)
        return [self.made[name] for name in dict.fromkeys(names)]
