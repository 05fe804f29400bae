"""The context with every dialect that a relay module may hold. A dialect is loaded when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pkgutil import resolve_name

from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects import get_all_dialects
from xdsl.ir import Attribute, Dialect, Operation, TypeAttribute

UPSTREAM = (
    "func", "math", "cf", "tensor", "llvm", "affine",
    "bufferization", "ml_program", "ub", "test",
)  # fmt: skip
"""The names of xDSL's dialects that relay's passes read or write."""


def _named(home: str) -> Callable[[], Dialect]:
    """A function that imports the dialect `module:NAME` of this package."""
    return partial(resolve_name, f"{__package__}.{home}")


class Resources(OpAsmDialectInterface):
    """The parser's resource handles, with their names as written. xDSL would rename a handle that another module of the
    process uses, so that a weight would not be found in its side-car file."""

    def declare_resource(self, key: str) -> str:
        self._blob_storage.setdefault(key, "")
        return key


def _builtin() -> Dialect:
    from xdsl.dialects.builtin import Builtin

    return Dialect("builtin", [*Builtin.operations], [*Builtin.attributes], [Resources()])


OURS: dict[str, Callable[[], Dialect]] = {
    "relay": _named("relay:Relay"),
    "qnn": _named("qnn:Qnn"),
    "byoc": _named("byoc:Byoc"),
    "amx": _named("amx:Amx"),
    "nvgpu": _named("nvgpu:Nvgpu"),
    "nvvm": _named("gpu_targets:Nvvm"),
    "xevm": _named("gpu_targets:Xevm"),
}
"""The constructors of dialects that xDSL lacks, by name."""

EXTENDED: dict[str, Callable[[], Dialect]] = {
    "arith": _named("arith:Arith"),
    "builtin": _builtin,
    "gpu": _named("gpu:Gpu"),
    "linalg": _named("linalg:NamedLinalg"),
    "memref": _named("memref:MemRef"),
    "scf": _named("scf:Scf"),
    "tosa": _named("tosa:Tosa"),
    "vector": _named("vector:Vectors"),
}
"""The constructors of upstream dialects with ops that xDSL lacks, by name: xDSL's ops and the added ones."""


class PlugInContext(Context):
    """A context that looks for an unknown dialect among installed packages when an op or type of that dialect is first
    looked up."""

    def clone(self) -> PlugInContext:
        return PlugInContext(
            self.allow_unregistered,
            self._loaded_dialects.copy(),
            self._loaded_ops.copy(),
            self._loaded_attrs.copy(),
            self._loaded_types.copy(),
            self._registered_dialects.copy(),
        )

    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        self._meet(name)
        return super().get_optional_op(name, dialect_stack=dialect_stack)

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        self._meet(name)
        return super().get_optional_type(name)

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        self._meet(name)
        return super().get_optional_attr(name)

    def get_optional_dialect(self, name: str) -> Dialect | None:
        self._meet(f"{name}.")
        return super().get_optional_dialect(name)

    def _meet(self, name: str) -> None:
        """Register the dialect of an op's or type's name, if another package provides it."""
        dialect, dot, _ = name.partition(".")
        if dot and dialect not in self._registered_dialects:
            from relay.dialects.plug_in import plugged  # here: most modules are of dialects that are registered

            if (factory := plugged(dialect)) is not None:
                self.register_dialect(dialect, factory)


def make_context() -> Context:
    """Return a new context with relay's dialects, the dialects of xDSL that relay uses, and those of xDSL that relay
    extends with missing ops; dialects of other packages are found by name when a module uses them."""
    ctx = PlugInContext()
    every = get_all_dialects()
    for name in UPSTREAM:
        ctx.register_dialect(name, every[name])
    for name, factory in (OURS | EXTENDED).items():
        ctx.register_dialect(name, factory)
    for name in ("builtin", "func", "relay", "qnn"):
        ctx.load_registered_dialect(name)
    return ctx
