"""`module_pass` and `function_pass`: passes from functions and classes, as decorators and as plain calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import ClassVar, ParamSpec, Protocol, overload

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from relay.arguments import names, shown, text
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes import registry
from relay.passes.base import Pass
from relay.passes.context import PassContext
from relay.passes.info import as_module, check_level

P = ParamSpec("P")
ModuleFunction = Callable[[IRModule, PassContext], IRModule | ModuleOp]
FunctionFunction = Callable[[FuncOp, IRModule, PassContext], FuncOp]


class TransformsModule(Protocol):
    """What a class under `module_pass` has."""

    def transform_module(self, mod: IRModule, ctx: PassContext, /) -> IRModule | ModuleOp:
        """The new module, or the given one, changed."""
        ...


class TransformsFunction(Protocol):
    """What a class under `function_pass` has."""

    def transform_function(self, func: FuncOp, mod: IRModule, ctx: PassContext, /) -> FuncOp:
        """The new function, or the given one, changed."""
        ...


@dataclass(frozen=True)
class MadePass(Pass):
    """A pass around a Python function; each has a class of its own, made by a decorator."""

    run: ClassVar[Callable[..., object]]


@dataclass(frozen=True)
class MadeModulePass(MadePass):
    """`run(mod, ctx) -> mod`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        mod = IRModule(op)
        result: object = type(self).run(mod, PassContext.current())
        if not isinstance(result, IRModule | ModuleOp):
            raise InvalidArgument(f"pass {self.name}", f"returned {result!r}", "return the module")
        new = as_module(result).op
        if new is not op:
            adopt(op, new)


@dataclass(frozen=True)
class MadeFunctionPass(MadePass):
    """`run(func, mod, ctx) -> func` on every function that has a body and belongs to no external compiler."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        mod = IRModule(op)
        for name, function in mod.functions.items():
            if not function.body.blocks or "compiler" in function.attributes:
                continue
            result: object = type(self).run(function, mod, PassContext.current())
            if not isinstance(result, FuncOp):
                raise InvalidArgument(f"pass {self.name}, @{name}", f"returned {result!r}", "return the function")
            if result is not function:
                mod[name] = result


def adopt(op: ModuleOp, new: ModuleOp) -> None:
    """Move what another module holds into this one."""
    for old in reversed(list(op.body.block.ops)):
        old.detach()
        old.erase(safe_erase=False)
    source = new.clone() if new.parent is not None else new
    for inner in list(source.body.block.ops):
        inner.detach()
        op.body.block.add_op(inner)
    op.attributes = dict(source.attributes)


@dataclass(frozen=True)
class Maker:
    """Makes a pass of a function, or a class of passes of a class; a decorator's arguments."""

    base: type[MadePass]
    decorator: str
    method: str
    opt_level: int | None
    name: str | None
    required: Sequence[str]

    def make(self, target: Callable[..., object]) -> MadePass | Callable[..., MadePass]:
        """The pass of a function; for a class, what makes a pass with the arguments of its constructor."""
        if not callable(target):
            raise InvalidArgument(self.decorator, f"{shown(target)} is no function", "give f(mod, ctx) or a class")
        if not isinstance(target, type):
            made = self.finish(target, target)
            registry.register(made)
            return made()
        if not callable(getattr(target, self.method, None)):
            raise InvalidArgument(self.where(target), f"the class has no method {self.method}", f"define {self.method}")

        def construct(*args: object, **options: object) -> MadePass:
            return self.finish(target, getattr(target(*args, **options), self.method))()

        return wraps(target, updated=())(construct)

    def finish(self, target: Callable[..., object], run: Callable[..., object]) -> type[MadePass]:
        """The class of a pass that calls `run`, named and documented as the target."""
        name = name_of(target) if self.name is None else text(self.name, self.where(target))
        if self.opt_level is None:
            raise InvalidArgument(self.where(target), "has no opt_level", "write opt_level=1: the level it runs from")
        check_level(self.opt_level, self.where(target))
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name):
            raise InvalidArgument(self.where(target), f"the name '{name}' has more than letters, digits, '-' and '_'")
        members: dict[str, object] = {
            "name": name,
            "opt_level": self.opt_level,
            "requires": tuple(names(self.required, "required")),
            "run": staticmethod(run),
            "__doc__": target.__doc__,
            "__module__": target.__module__,
        }
        return dataclass(frozen=True)(type(name_of(target), (self.base,), members))

    def where(self, target: Callable[..., object]) -> str:
        """The place of an error."""
        return f"{self.decorator} {name_of(target)}"


def name_of(target: Callable[..., object]) -> str:
    """What a function, class or other object that can be called is called."""
    return str(getattr(target, "__name__", type(target).__name__))


class ModuleDecorator(Maker):
    """`@module_pass(opt_level=1)`."""

    @overload
    def __call__(self, target: Callable[P, TransformsModule]) -> Callable[P, Pass]: ...
    @overload
    def __call__(self, target: ModuleFunction) -> Pass: ...
    def __call__(self, target: Callable[..., object]) -> object:
        return self.make(target)


class FunctionDecorator(Maker):
    """`@function_pass(opt_level=1)`."""

    @overload
    def __call__(self, target: Callable[P, TransformsFunction]) -> Callable[P, Pass]: ...
    @overload
    def __call__(self, target: FunctionFunction) -> Pass: ...
    def __call__(self, target: Callable[..., object]) -> object:
        return self.make(target)


@overload
def module_pass(
    pass_func: None = None, opt_level: int | None = None, name: str | None = None, required: Sequence[str] = ()
) -> ModuleDecorator: ...
@overload
def module_pass(
    pass_func: Callable[P, TransformsModule],
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] = (),
) -> Callable[P, Pass]: ...
@overload
def module_pass(
    pass_func: ModuleFunction, opt_level: int | None = None, name: str | None = None, required: Sequence[str] = ()
) -> Pass: ...
def module_pass(
    pass_func: Callable[..., object] | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] = (),
) -> object:
    """Make a pass of `f(mod, ctx) -> mod`, or of a class with `transform_module(self, mod, ctx) -> mod`.

    `mod` is an `IRModule` that may be changed in place and returned; `ctx` is the `PassContext`. `required` names
    passes or properties. A decorator, or a plain call: `module_pass(f, opt_level=1)`. `name` defaults to the
    function's. Raises InvalidArgument where `opt_level` is missing or the class lacks the method.
    """
    maker = ModuleDecorator(MadeModulePass, "module_pass", "transform_module", opt_level, name, required)
    return maker if pass_func is None else maker.make(pass_func)


@overload
def function_pass(
    pass_func: None = None, opt_level: int | None = None, name: str | None = None, required: Sequence[str] = ()
) -> FunctionDecorator: ...
@overload
def function_pass(
    pass_func: Callable[P, TransformsFunction],
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] = (),
) -> Callable[P, Pass]: ...
@overload
def function_pass(
    pass_func: FunctionFunction, opt_level: int | None = None, name: str | None = None, required: Sequence[str] = ()
) -> Pass: ...
def function_pass(
    pass_func: Callable[..., object] | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] = (),
) -> object:
    """Make a pass of `f(func, mod, ctx) -> func`, or of a class with `transform_function(self, func, mod, ctx)`.

    It is called for every function that has a body and belongs to no external compiler; a function may be changed in
    place and returned. The rest is as in `module_pass`.
    """
    maker = FunctionDecorator(MadeFunctionPass, "function_pass", "transform_function", opt_level, name, required)
    return maker if pass_func is None else maker.make(pass_func)
