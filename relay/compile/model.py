"""The part of `relay.build` behind the cache: runs the passes on a module or a model file, and makes an executable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from relay import signature
from relay.arguments import instance, mapping
from relay.artifact import is_compiled
from relay.byoc.partitioning.compile_external import CompileExternal
from relay.compile import cache
from relay.compile.assemble import Planned, assemble, backend_of
from relay.compile.caches import opened_or_growing
from relay.compile.claims import Claims
from relay.compile.dynamic import is_open, make_static
from relay.compile.length import bounded
from relay.compile.manifest import Signature
from relay.compile.pipeline import (
    PASSES_LOCK,
    attach_unless,
    check_attached,
    chosen_pipeline,
    defaults_of,
)
from relay.compile.progress import Update, bar, unseen
from relay.compile.records import Records
from relay.compile.reimported import named_sizes, reimported
from relay.compile.request import Recipe, Request
from relay.compile.work import Work, work_of
from relay.compile.workers import Compilation
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.files import NamedBytes, name_of
from relay.frontend import import_model, saved_model
from relay.frontend.importing.sizes import UnknownSizes
from relay.lowering.lengths import mark
from relay.lowering.schedule import Schedule
from relay.mapping import release
from relay.module import IRModule, arrays
from relay.passes import PassContext, Pipeline
from relay.passes.checking import ENTRY_OF_LOWERING, verify
from relay.passes.context import activated
from relay.passes.info import PassInfo, as_module
from relay.passes.requests import refuse_pending
from relay.passes.runner import Runner
from relay.runtime import Executable
from relay.target import Target, resolve
from relay.transforms.legalize import Legalize
from relay.transforms.qnn_patterns.softmax import tables_of_lengths

LLVM_EFFORT = (0, 1, 3, 3, 3)
"""LLVM's optimization level by `opt_level`."""
SILENT_SECONDS = 1.0
"""Builds that take less time, in seconds, show no progress bar."""


class Building(Runner):
    """The pass runner of a build. Passes such as `quantize{io=codes}` and `dynamic-to-static` may change the inputs and
    outputs of @main; the executable has the inputs and outputs that @main has when lowering begins."""

    def __init__(self, module: IRModule, code: Compilation, described: Signature, recipe: Recipe, progress: Update):
        super().__init__(module.op, **defaults_of(code.target))
        self.code, self.described, self.recipe = code, described, recipe
        self.work: Work = {}
        self.key: str | None = None  # of what is left to build after external compilers
        self.progress, self.done = progress, 1
        self.claims = Claims()
        self.type = module["main"].function_type
        self.shorter: IRModule | None = None
        self.tables: dict[bytes, Callable[[int], Array]] = {}

    def apply(self, step: ModulePass, info: PassInfo) -> None:
        self.progress(self.done, step.name)
        if ENTRY_OF_LOWERING in info.establishes:
            function = self.mod["main"]
            if function.function_type != self.type:
                signature.check(function)
                self.described = signature.read(function)
            elif signature.INPUTS in function.attributes:
                self.described = signature.read(function)
            self.work = {**self.work, **work_of(self.mod)}
            self.claims = backend_of(self.code.target).prepare(self.mod, self.code)
        if self.shorter is not None and isinstance(step, Legalize):
            self.tables = tables_of_lengths(self.mod.op, self.recipe.length)
        if self.shorter is not None and isinstance(step, Schedule):
            mark(self.mod.op, self.shorter.op, self.recipe.length, self.tables)
            self.shorter = None
        super().apply(step, info)
        release()
        self.done += 1
        if (
            step in self.recipe.pipeline
            and isinstance(step, CompileExternal)
            and any(map(is_compiled, self.mod.functions.values()))
        ):
            self.look_up()

    def look_up(self) -> None:
        """Look in the cache for a build of an equal module with equal external artifacts. Raises Found, which ends the
        run of the pipeline, if there is one."""
        steps = list(self.recipe.pipeline)
        left = Pipeline(steps[[step.name for step in steps].index(CompileExternal.name) + 1 :])
        recipe = replace(self.recipe, external=None, exact=None, params={}, frontend={}, pipeline=left)
        self.key = cache.key(self.mod, recipe)
        if self.key is not None:
            found = cache.find(self.key, self.mod, lambda kept: _rebuilt(replace(recipe, model=kept)))
            if found is not None:
                raise Found(found)


class Found(Exception):
    """Raised to end a pass run because the rest of the build was found in the cache."""

    def __init__(self, executable: Executable):
        self.executable = executable


def compile_model(request: Request) -> tuple[Executable, str | None]:
    """Compile a request, and return the executable with its cache key (None if it is not cached)."""
    return _found_or_compiled(resolved(request), request.progress)


def _found_or_compiled(recipe: Recipe, progress: bool | None) -> tuple[Executable, str | None]:
    with activated(recipe.context):
        content = None if recipe.external is not None else cache.content_of(recipe.model)
        key = None if content is None else cache.key(content, recipe)
        executable = None
        if key is not None and content is not None:
            executable = cache.find(key, content, lambda kept: _rebuilt(_named(recipe, kept)))
        if executable is None:
            with bar(progress, "building", 2 * len(recipe.pipeline) + 1, after=SILENT_SECONDS) as update:
                executable = _compile(recipe, update, progress)
            if key is not None and cache.keeps(executable):
                cache.keep(key, executable)
    return executable, key if key is not None and cache.keeps(executable) else None


def _named(recipe: Recipe, kept: IRModule | bytes) -> Recipe:
    """A copy of a recipe (the checked arguments of a build) with `kept` as its model: a module, or the bytes that the
    model's file had when it was first read. Bytes get the name of that file."""
    return replace(recipe, model=NamedBytes(kept, name_of(recipe.model)) if isinstance(kept, bytes) else kept)


def resolved(request: Request) -> Recipe:
    """The recipe of a build request: its arguments checked, names of target and pipeline replaced by the objects they
    stand for, and the current `PassContext` with the request's level. Raises InvalidArgument for wrong arguments."""
    machine = resolve(request.target)
    context = PassContext.current().at_level(request.opt_level)
    if request.records is not None:
        records = instance(request.records, Records, "records", "give what relay.tune returned")
        context = context.with_config({"schedule.records": records.text})
    given = request.model
    frontend = {} if request.frontend is None else mapping(request.frontend, "frontend", "{'batch': 1}")
    if isinstance(given, IRModule | ModuleOp) and frontend:
        raise InvalidArgument("frontend", "options are for model files; a module is imported already")
    if request.external is None and request.exact is not None:
        raise InvalidArgument("exact", "is for external compilers, and none is named", "write external='x'")
    if isinstance(given, IRModule | ModuleOp):
        model = as_module(given)
    else:
        model = saved_model(given)
    weights = arrays({} if request.params is None else request.params)
    with activated(context):
        pipeline = chosen_pipeline(request.pipeline, machine)
    return Recipe(
        model, machine, weights, pipeline, context, frontend, request.external, request.exact, request.max_variants,
        request.maximum,
    )  # fmt: skip


def _to_kernels(model: IRModule, chosen: Pipeline, machine: Target) -> IRModule:
    """A copy of a model, lowered up to the scheduling of its kernels."""
    steps = list(chosen)
    before = next((number for number, step in enumerate(steps) if isinstance(step, Schedule)), len(steps))
    module = model.clone()
    attach_unless(chosen, module, machine)
    Runner(module.op, **defaults_of(machine)).run(Pipeline(steps[:before]))
    return module


def _rebuilt(recipe: Recipe) -> Executable:
    with activated(recipe.context):
        return _compile(recipe)


def _compile(recipe: Recipe, progress: Update = unseen, shown: bool | None = False) -> Executable:
    """Build the model that `recipe`, the checked arguments of `relay.build`, describes. The caller has activated the
    recipe's pass context. `shown`: whether later builds for newly seen sizes show their progress."""
    machine, chosen = recipe.target, recipe.pipeline
    progress(0, "import")
    model = recipe.model

    def compile(static: Recipe) -> Executable:
        return _found_or_compiled(static, shown)[0]

    if named_sizes(recipe.frontend):
        return reimported(recipe, compile)
    if isinstance(model, IRModule):
        verify(model, "build")
        module = model.clone()
    else:
        try:
            module = import_model(model, recipe.frontend)
        except UnknownSizes as error:
            if not error.shapes:
                raise
            return reimported(recipe, compile, error)
    module.replace_weights(recipe.params)
    described = signature.read(module["main"])
    if not module["main"].body.blocks:
        raise InvalidArgument("function main", "is only declared", "give it a body")
    if is_open(module, recipe):
        return opened_or_growing(module, recipe, compile)
    if recipe.maximum:
        bounded((), recipe.maximum)
    make_static(module)
    if recipe.external is not None:
        from relay.byoc.composition import build_external_compiler

        with PASSES_LOCK:
            module = build_external_compiler(module, recipe.external, exact=recipe.exact)
    with Compilation(machine, LLVM_EFFORT[PassContext.current().opt_level]) as code:
        runner = Building(module, code, described, recipe, progress)
        with PASSES_LOCK:
            attach_unless(chosen, module, machine)
            if recipe.shorter is not None:
                runner.shorter = _to_kernels(recipe.shorter, chosen, machine)
            try:
                runner.run(chosen)
            except Found as found:
                return found.executable
            check_attached(module, machine)
            runner.reach("code generation", backend_of(machine).needed)
        refuse_pending(module.op, [step.name for step in chosen])
        done, rest = runner.done, len(chosen)
        planned = Planned(
            module,
            code,
            runner.described,
            runner.claims,
            lambda n, total: progress(done + rest * n / total, "code"),
            runner.work,
            recipe.repeated,
            recipe.length,
        )
        executable = assemble(planned)
    if runner.key is not None:
        cache.keep(runner.key, executable)
    return executable
