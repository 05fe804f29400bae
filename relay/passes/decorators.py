"""`module_pass` and `function_pass`: passes from functions and classes, as decorators and as plain calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cached_property, partial, wraps
from inspect import Parameter, signature
from typing import Any, ClassVar, ParamSpec, Protocol, TypedDict, Unpack, get_type_hints, overload

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.hints import isa

from relay.arguments import names, shown, text
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes import registry
from relay.passes.base import Pass
from relay.passes.context import PassContext, activated
from relay.passes.info import as_module, check_level

P = ParamSpec("P")
ModuleFunction = Callable[[IRModule, PassContext], IRModule | ModuleOp]
FunctionFunction = Callable[[FuncOp, IRModule, PassContext], FuncOp]


class TransformsModule(Protocol):
    """The interface of a class that `module_pass` decorates."""

    def transform_module(self, mod: IRModule, ctx: PassContext, /) -> IRModule | ModuleOp:
        """Return a new module, or the given one after changing it."""
        ...


class TransformsFunction(Protocol):
    """The interface of a class that `function_pass` decorates."""

    def transform_function(self, func: FuncOp, mod: IRModule, ctx: PassContext, /) -> FuncOp:
        """Return a new function, or the given one after changing it."""
        ...


@dataclass(frozen=True)
class MadePass(Pass):
    """The base class of passes that a decorator makes from a Python function or class; each has a class of its own. Its
    options are the keyword-only parameters of the function, or the parameters of the class."""

    bind: ClassVar[Callable[..., Callable[..., object]]]
    """Takes the options and returns the function that the pass runs."""

    @cached_property
    def run(self) -> Callable[..., object]:
        """The function that the pass runs, with the options bound."""
        return type(self).bind(**{each.name: getattr(self, each.name) for each in fields(self)})

    def spec(self, *, include_default: bool = False) -> ArgSpec:
        """The pass as part of a pipeline's text, with those options whose values text can express."""
        found = super().spec(include_default=include_default)
        written = {name: value for name, value in found.parameters.items() if isa(getattr(self, name), Text)}
        return ArgSpec(found.name, written)


Text = None | bool | int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]
"""Types of option values that pipeline text can express."""


@dataclass(frozen=True)
class MadeModulePass(MadePass):
    """A pass that calls `run(mod, ctx) -> mod`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        mod = IRModule(op)
        result = self.run(mod, PassContext.current())
        if not isinstance(result, IRModule | ModuleOp):
            raise InvalidArgument(f"pass {self.name}", f"returned {result!r}", "return the module")
        new = as_module(result).op
        if new is not op:
            adopt(op, new)


@dataclass(frozen=True)
class MadeFunctionPass(MadePass):
    """A pass that calls `run(func, mod, ctx) -> func` for every function that has a body and belongs to no external
    compiler."""

    parallel: ClassVar[bool] = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        mod, under = IRModule(op), PassContext.current()
        own = [f for f in mod.functions.values() if f.body.blocks and "compiler" not in f.attributes]

        def transform(function: FuncOp) -> FuncOp:
            with activated(under):  # a thread begins without a context
                result = self.run(function, mod, under)
            if not isinstance(result, FuncOp):
                where = f"pass {self.name}, @{function.sym_name.data}"
                raise InvalidArgument(where, f"returned {result!r}", "return the function")
            return result

        results = self._at_once(transform, own) if self.parallel else map(transform, own)
        for function, result in zip(own, results, strict=True):
            if result is not function:
                mod[function.sym_name.data] = result

    def _at_once(self, transform: Callable[[FuncOp], FuncOp], own: Sequence[FuncOp]) -> list[FuncOp]:
        from concurrent.futures import ThreadPoolExecutor  # here: few passes need it

        with ThreadPoolExecutor() as pool:
            return list(pool.map(transform, own))


def adopt(op: ModuleOp, new: ModuleOp) -> None:
    """Replace the contents of a module by those of another one."""
    for old in reversed(list(op.body.block.ops)):
        old.detach()
        old.erase(safe_erase=False)
    source = new.clone() if new.parent is not None else new
    for inner in list(source.body.block.ops):
        inner.detach()
        op.body.block.add_op(inner)
    op.attributes = dict(source.attributes)


class Effects(TypedDict, total=False):
    """Arguments of a decorator that declare how the pass affects properties and analyses."""

    invalidates: Sequence[str] | None
    establishes: Sequence[str]
    preserves: Sequence[str]


class FunctionEffects(Effects, total=False):
    """The optional keyword arguments of `function_pass`: those that state the effects of the pass, and `parallel`."""

    parallel: bool


@dataclass(frozen=True)
class Maker:
    """A decorator's arguments, which make a pass from a function, or a class of passes from a class."""

    base: type[MadePass]
    decorator: str
    method: str
    opt_level: int | None
    name: str | None
    required: Sequence[str]
    invalidates: Sequence[str] | None
    establishes: Sequence[str]
    preserves: Sequence[str]
    parallel: bool = False

    def make(self, target: Callable[..., object]) -> MadePass | Callable[..., MadePass]:
        """Make a pass from a function; for a class, a function that takes the arguments of its constructor and makes a
        pass."""
        if not callable(target):
            raise InvalidArgument(self.decorator, f"{shown(target)} is no function", "give f(mod, ctx) or a class")
        if not isinstance(target, type):
            made = self.finish(target, partial(partial, target))
            registry.register(made)
            return made()
        if not callable(getattr(target, self.method, None)):
            raise InvalidArgument(self.where(target), f"the class has no method {self.method}", f"define {self.method}")
        given = signature(target)
        kinds = {each.kind for each in given.parameters.values()}
        if kinds <= {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}:
            known = self.finish(target, partial(_method, target, self.method))
            registry.register(known)
        else:  # *args are no options: each pass is of a class of its own, found by no name
            known = None

        def construct(*args: object, **options: object) -> MadePass:
            if known is None:
                run = getattr(target(*args, **options), self.method)
                return self.finish(type(target.__name__, (), {"__doc__": target.__doc__}), lambda: run)()
            made = known(**given.bind(*args, **options).arguments)
            made.run  # noqa: B018  (what the constructor raises, it raises here)
            return made

        return wraps(target, updated=())(construct)

    def finish(self, target: Callable[..., object], bind: Callable[..., Callable[..., object]]) -> type[MadePass]:
        """Make the class of the pass from `target`, the decorated function or class, whose name, docstring and options
        it gets. `bind` takes the values of the options, and returns the function that runs the pass."""
        where = self.where(target)
        name = name_of(target) if self.name is None else text(self.name, where)
        if self.opt_level is None:
            raise InvalidArgument(where, "has no opt_level", "write opt_level=1: the level it runs from")
        check_level(self.opt_level, where)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name):
            raise InvalidArgument(where, f"the name '{name}' has more than letters, digits, '-' and '_'")
        members: dict[str, object] = {
            "name": name,
            "opt_level": self.opt_level,
            "requires": tuple(names(self.required, "required")),
            "establishes": tuple(names(self.establishes, "establishes")),
            "invalidates": None if self.invalidates is None else tuple(names(self.invalidates, "invalidates")),
            "preserves": tuple(names(self.preserves, "preserves")),
            "parallel": self.parallel,
            "bind": staticmethod(bind),
            "__doc__": target.__doc__,
            "__qualname__": getattr(target, "__qualname__", name_of(target)),
        }
        made = make_dataclass(
            name_of(target), options_of(target), bases=(self.base,), namespace=members, frozen=True, kw_only=True
        )
        made.__module__ = target.__module__  # which make_dataclass takes from its caller, from Python 3.12 on
        return made

    def where(self, target: Callable[..., object]) -> str:
        """How error messages name the decorated function or class."""
        return f"{self.decorator} {name_of(target)}"


def _method(target: type, name: str, /, **options: Any) -> Callable[..., object]:
    """The method `name` of an object of class `target` that is constructed with these options."""
    return getattr(target(**options), name)


def options_of(target: Callable[..., object]) -> list[tuple[str, Any, Any]]:
    """The options of a function (its keyword-only parameters) or class, as fields of a dataclass."""
    try:
        parameters = signature(target).parameters.values()
    except ValueError:  # a function of C that does not tell
        return []
    try:
        hints = get_type_hints(target.__init__ if isinstance(target, type) else target)
    except (NameError, TypeError):  # types that are not there when the program runs, objects with __call__
        hints = {}
    found: list[tuple[str, Any, Any]] = []
    for each in parameters:
        if isinstance(target, type) or each.kind is Parameter.KEYWORD_ONLY:
            default: Any = each.default
            if default is Parameter.empty:
                default = field()
            elif type(default).__hash__ is None:
                default = field(default_factory=partial(copy, default))
            found.append((each.name, hints.get(each.name, object), default))
    return found


def name_of(target: Callable[..., object]) -> str:
    """The name of a function, a class or another callable."""
    return str(getattr(target, "__name__", type(target).__name__))


class ModuleDecorator(Maker):
    """The decorator that `module_pass(opt_level=1)` returns."""

    @overload
    def __call__(self, target: Callable[P, TransformsModule]) -> Callable[P, Pass]: ...
    @overload
    def __call__(self, target: ModuleFunction) -> Pass: ...
    def __call__(self, target: Callable[..., object]) -> object:
        return self.make(target)


class FunctionDecorator(Maker):
    """The decorator that `function_pass(opt_level=1)` returns."""

    @overload
    def __call__(self, target: Callable[P, TransformsFunction]) -> Callable[P, Pass]: ...
    @overload
    def __call__(self, target: FunctionFunction) -> Pass: ...
    def __call__(self, target: Callable[..., object]) -> object:
        return self.make(target)


@overload
def module_pass(
    pass_func: None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] = (),
    **effects: Unpack[Effects],
) -> ModuleDecorator: ...
@overload
def module_pass(
    pass_func: Callable[P, TransformsModule],
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] = (),
    **effects: Unpack[Effects],
) -> Callable[P, Pass]: ...
@overload
def module_pass(
    pass_func: ModuleFunction,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] = (),
    **effects: Unpack[Effects],
) -> Pass: ...
def module_pass(
    pass_func: Callable[..., object] | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] = (),
    invalidates: Sequence[str] | None = None,
    establishes: Sequence[str] = (),
    preserves: Sequence[str] = (),
) -> object:
    """Make a pass of `f(mod, ctx) -> mod`, or of a class with `transform_module(self, mod, ctx) -> mod`.

    `mod` is an `IRModule` that may be changed in place and returned; `ctx` is the `PassContext`. `required` names
    passes or properties that must precede it; `establishes` names properties that hold after it, `invalidates` those
    that may not (by default each property is checked again when needed), `preserves` analyses whose results stay valid.
    Used as a decorator, or as a plain call: `module_pass(f, opt_level=1)`. `name` defaults to the function's.

    Options are the function's keyword-only parameters (`def f(mod, ctx, *, limit: int = 3)`), or those of the class's
    constructor: they are set by pipeline text (`f{limit=5}`), `dataclasses.replace(f, limit=5)`, or the context's
    `config`. `ctx.count("folded")` adds to a counter that `OpStatistics` shows.

    Raises InvalidArgument where `opt_level` is missing, the class lacks the method, or the name is that of a pass of
    relay, of xDSL or of another function.
    """
    kind = MadeModulePass, "module_pass", "transform_module"
    maker = ModuleDecorator(*kind, opt_level, name, required, invalidates, establishes, preserves)
    return maker if pass_func is None else maker.make(pass_func)


@overload
def function_pass(
    pass_func: None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] = (),
    **effects: Unpack[FunctionEffects],
) -> FunctionDecorator: ...
@overload
def function_pass(
    pass_func: Callable[P, TransformsFunction],
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] = (),
    **effects: Unpack[FunctionEffects],
) -> Callable[P, Pass]: ...
@overload
def function_pass(
    pass_func: FunctionFunction,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] = (),
    **effects: Unpack[FunctionEffects],
) -> Pass: ...
def function_pass(
    pass_func: Callable[..., object] | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] = (),
    invalidates: Sequence[str] | None = None,
    establishes: Sequence[str] = (),
    preserves: Sequence[str] = (),
    parallel: bool = False,
) -> object:
    """Make a pass of `f(func, mod, ctx) -> func`, or of a class with `transform_function(self, func, mod, ctx)`.

    It is called for every function that has a body and belongs to no external compiler; a function may be changed in
    place and returned. With `parallel` it is called for all of them at once, in threads; it may then change only its
    own function. This saves time for functions that compute with numpy or wait for other programs. The rest is as in
    `module_pass`.
    """
    kind = MadeFunctionPass, "function_pass", "transform_function"
    maker = FunctionDecorator(*kind, opt_level, name, required, invalidates, establishes, preserves, parallel)
    return maker if pass_func is None else maker.make(pass_func)
