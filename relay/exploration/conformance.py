"""`relay-byoc test NAME`: test an external compiler on random ops and on models.

Random ops that the compiler takes are put together in modules. Each module is built; the executable must

- return the interpreter's integers, with no larger difference than the compiler declares, and its finite floats
  within `FLOATS`;
- return the same results when it is built twice, saved and loaded, and called by several threads;
- have code of only one machine in the saved file if the module is built for another target (`OTHER_TARGET`); such a
  build may also fail with a RelayError;
- raise a RelayError when an artifact is damaged;
- raise an error that names the function and the compiler when the device fails (`Compiler.faults`).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from relay import artifact
from relay.byoc import registry
from relay.byoc.accuracy import declared
from relay.byoc.composition import build_external_compiler
from relay.byoc.partitioning.matching import find as find_matches
from relay.byoc.partitioning.offers import Offer
from relay.byoc.partitioning.scope import eligible, opened, partitioned, variables
from relay.byoc.settings import compiler_of
from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.errors import RelayError
from relay.exploration.random_ops import RandomOps, kinds, numbers
from relay.interpreters import run
from relay.module import IRModule
from relay.runtime import Executable, Library, create, load
from relay.runtime.loaders import Native

FLOATS = 1e-4
"""The tolerance for floats after a few ops, relative to the largest magnitude."""
DRAWN = 3
"""The number of random ops of each kind that are drawn to find the kinds that the compiler takes."""
TOGETHER = 8
"""The number of random cases in one module; each becomes a region of its own."""
OTHER_TARGET = "aarch64"
MACHINE = re.compile(rb"\x7fELF.{14}(..)", re.DOTALL)
"""Matches the header of an ELF file; the group is the number of the machine that its code is for."""
DAMAGE: Mapping[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut in half": lambda data: data[: len(data) // 2],
    "of other bytes": lambda data: bytes(byte ^ 0x5A for byte in data),
}


@dataclass
class Conformance:
    """The result of `conformance`: what was tested and which problems were found."""

    name: str
    cases: int = 0
    taken: Counter[str] = field(default_factory=Counter[str])
    """By op name, the number of ops in tested modules that the compiler took."""
    checks: Counter[str] = field(default_factory=Counter[str])
    problems: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    def note(self, check: str, problem: str | None = None) -> None:
        """Count a check of this name, and record the problem if there is one."""
        self.checks[check] += 1
        if problem is not None:
            self.problems.append(f"{check}: {problem}")

    @property
    def passed(self) -> bool:
        """Whether the compiler took at least one op, and no problem was found."""
        return bool(self.taken) and not self.problems

    def __str__(self) -> str:
        ops = ", ".join(f"{name.removeprefix('relay.')} {count}" for name, count in sorted(self.taken.items()))
        made = ", ".join(f"{name} {count}" for name, count in self.checks.items())
        lines = [f"{self.name}: {self.cases} random cases in {self.seconds:.0f} s; taken: {ops or 'none'}"]
        lines += [f"checks: {made or 'none'}", *(f"FAILED {problem}" for problem in self.problems)]
        return "\n".join([*lines, "passed" if self.passed else "failed"])


def conformance(
    name: str,
    options: Mapping[str, object] | None = None,
    *,
    cases: int = 400,
    seed: int = 0,
    models: Mapping[str, IRModule] | None = None,
) -> Conformance:
    """Test the compiler `name` with these options on `cases` random ops, and on `models` by name.

    Raises what `relay.byoc.find` raises; the compiler's faults are recorded in the result.
    """
    registry.find(name, options)
    found = Conformance(name, cases)
    start = time.perf_counter()
    target = {name: dict(options or {})}
    for number, (what, module) in enumerate(_modules(found, target, cases, seed)):
        _try(found, target, what, module, np.random.default_rng([seed, number]), first=number == 0)
    for number, (what, module) in enumerate((models or {}).items()):
        _try(found, target, what, module, np.random.default_rng([seed, 1, number]), first=False)
    found.seconds = time.perf_counter() - start
    return found


def _modules(
    found: Conformance, target: Mapping[str, Mapping[str, object]], cases: int, seed: int
) -> Iterator[tuple[str, IRModule]]:
    """Yield test modules of up to `TOGETHER` random cases each, with their names. A case is a group of random ops of
    which the external compiler takes at least one; the cases of a module do not share values. `cases`: how many are
    drawn; `seed`: of the random numbers."""
    ((name, options),) = target.items()
    offer = Offer(registry.find(name, options), require_exact=False)
    every = kinds()
    known = [
        place for place in range(len(every)) if any(_takes(found, offer, module) for module in _drawn(seed, place))
    ]
    waiting: list[list[int]] = []
    for number in range(cases if known else 0):
        row = [seed, number, known[number % len(known)], *known]
        module = _module([row])
        if module is not None and _takes(found, offer, module):
            waiting.append(row)
    for start in range(0, len(waiting), TOGETHER):
        rows = waiting[start : start + TOGETHER]
        module = _module(rows)
        assert module is not None
        yield f"cases {', '.join(str(row[1]) for row in rows)}", module


@cache
def _drawn(seed: int, place: int) -> list[IRModule]:
    """Return modules of one random op each, of the kind at index `place` in `kinds()`."""
    modules = (_module([(seed, number, place)]) for number in range(DRAWN))
    return [module for module in modules if module is not None]


def _takes(found: Conformance, offer: Offer, module: IRModule) -> bool:
    """Whether the compiler takes at least one op of the module, alone or as part of a pattern's match."""
    block = module["main"].body.block
    ops = [op for op in block.ops if eligible(op) and variables(op)]
    try:
        return any(offer.takes(op) is True for op in ops) or bool(find_matches(block, offer))
    except RelayError as error:
        found.note("asked", str(error))
        return False


def _functions(parted: IRModule) -> list[FuncOp]:
    return [f for f in parted.functions.values() if partitioned(f)]


def _module(rows: Sequence[Sequence[int]]) -> IRModule | None:
    """Return a module whose `@main` contains one case for each row, None if no valid op was drawn. A row holds: seed,
    case number, the index in `kinds()` of the first op, and the indices of ops that may follow it."""
    block, results, every = Block(), list[SSAValue](), list(kinds().values())
    for seed, number, first, *more in rows:
        ops = RandomOps((seed, number), block)
        value = ops.case(every[first])
        if value is None:
            return None
        for _ in range(ops.below(3) if more else 0):
            following = ops.case(every[more[ops.below(len(more))]], value)
            value = value if following is None else following
        results.append(value)
    block.add_op(ReturnOp(*results))
    type = FunctionType.from_lists(list(block.arg_types), [value.type for value in results])
    return IRModule(ModuleOp(list[Operation]([FuncOp("main", type, Region(block))])))


def _try(
    found: Conformance,
    target: Mapping[str, Mapping[str, object]],
    what: str,
    module: IRModule,
    rng: np.random.Generator,
    first: bool,
) -> None:
    """Build a module with the external compiler, test the executable, and note the findings in `found`. Only if
    `first`, also test a build for another target and the compiler's simulated device faults."""
    try:
        parted = build_external_compiler(module, target)
        executable = build(parted.clone())
    except RelayError as error:
        if _built_alone(module) is not None:
            found.note("built", f"{what}: {error}")
        return
    found.note("built")
    found.taken.update(op.name for f in _functions(parted) for op in opened(list(f.body.block.ops)[:-1]))
    given = [[numbers(rng, spec.dtype.name, spec.shape) for spec in executable.inputs] for _ in range(2)]
    if not _numbers(found, what, module, parted, executable, given):
        return
    _repeated(found, what, parted, executable, given)
    _damaged(found, what, executable, given[0])
    if first:
        _elsewhere(found, what, parted)
        _faults(found, target, module, given[0])


def _built_alone(module: IRModule) -> Executable | None:
    """The executable of the module built without external compilers; None if it cannot be built."""
    try:
        return build(module.clone())
    except RelayError:
        return None


def _results(executable: Executable, inputs: Sequence[Array]) -> list[Array]:
    found = executable.run(*inputs)
    return list(found) if isinstance(found, tuple) else [] if found is None else [found]


def _numbers(
    found: Conformance,
    what: str,
    module: IRModule,
    parted: IRModule,
    executable: Executable,
    given: Sequence[list[Array]],
) -> bool:
    """Run the executable on each list of inputs in `given`, and record in `found`, under the case's name `what`, which
    results differ from the interpreter's for `module` by more than the ops of `parted` (the partitioned module) may.
    Returns False if the executable raises an error, else True."""
    host: Executable | None = None
    limits = _limits(parted)
    for inputs in given:
        wanted = run(module, inputs)
        try:
            results = _results(executable, inputs)
        except RelayError as error:
            found.note("runs", f"{what}: {error}")
            return False
        for number, (result, reference) in enumerate(zip(results, wanted, strict=True)):
            limit, ops = limits[number]
            found.note("numbers")
            if _is_close(result, reference, limit):
                continue
            host = host or _built_alone(module)
            if host is not None and not _is_close(_results(host, inputs)[number], reference, limit):
                continue  # the op's definition leaves these values open: the host's differ from the interpreter's, too
            found.note(
                "numbers",
                f"{what}: result {number} of {ops} is not the formulas': {_difference_text(result, reference)}",
            )
    return True


def _limits(parted: IRModule) -> list[tuple[int | None, str]]:
    """For each result of `@main`: how many quantization steps it may differ from the interpreter's (None if the
    compiler declares no limit), and a text of the ops that compute it."""
    end = parted["main"].body.block.last_op
    assert end is not None
    rows: list[tuple[int | None, str]] = []
    for value in end.operands:
        call = value.owner
        if not isinstance(call, CallOp) or not isinstance(value, OpResult):
            rows.append((None, "the host"))
            continue
        function = parted.functions[call.callee.string_value()]
        compiler = compiler_of(parted.op, artifact.compiler_of(function) or "")
        number = value.index
        alone = not any(isinstance(operand.owner, CallOp) for operand in call.operands)
        limit = declared(compiler, function)[1][number] if alone else None
        ops = " -> ".join(f"{op.name} {op.results[0].type}" for op in opened(list(function.body.block.ops)[:-1]))
        rows.append((0 if compiler.exact else limit, ops))
    return rows


def _is_close(result: Array, reference: Array, limit: int | None) -> bool:
    if (result.shape, result.dtype) != (reference.shape, reference.dtype):
        return False
    if reference.dtype.kind == "f":
        largest = float(np.abs(reference[np.isfinite(reference)]).max(initial=0)) or 1.0
        known = np.isfinite(reference)
        return np.allclose(result[known], reference[known], rtol=FLOATS, atol=FLOATS * largest)
    off = np.abs(result.astype(np.float64) - reference.astype(np.float64)).max(initial=0)
    return limit is None or bool(off <= limit)


def _difference_text(result: Array, reference: Array) -> str:
    if (result.shape, result.dtype) != (reference.shape, reference.dtype):
        return f"{result.dtype}{list(result.shape)} for {reference.dtype}{list(reference.shape)}"
    wrong = np.flatnonzero(~np.isclose(result.reshape(-1), reference.reshape(-1), rtol=FLOATS, atol=0, equal_nan=True))
    if not wrong.size:
        return "floats"
    at = int(wrong[0])
    seen, right = result.reshape(-1)[at], reference.reshape(-1)[at]
    return f"{wrong.size} of {result.size} differ, element {at} is {seen}, not {right}"


def _repeated(
    found: Conformance, what: str, parted: IRModule, executable: Executable, given: Sequence[list[Array]]
) -> None:
    """Check that threads, a second build, and a saved and loaded executable return the same results."""
    wanted = [_results(executable, inputs) for inputs in given]

    def same(check: str, other: Executable) -> None:
        turns = range(8 if check == "threads" else 2)
        with ThreadPoolExecutor(4) as pool:
            every = list(pool.map(_results, [other for _ in turns], [given[n % 2] for n in turns]))
        equal = [
            all(
                np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(results, wanted[n % 2], strict=True)
            )
            for n, results in enumerate(every)
        ]
        found.note(check, None if all(equal) else f"{what}: other numbers than before")

    try:
        same("threads", executable)
        again = build(parted.clone())
        found.note("same bytes", None if again.library.artifacts == executable.library.artifacts else what)
        with TemporaryDirectory() as folder:
            executable.save(Path(folder, "saved"))
            same("saved and loaded", load(Path(folder, "saved")))
    except RelayError as error:
        found.note("repeated", f"{what}: {error}")


def _damaged(found: Conformance, what: str, executable: Executable, inputs: list[Array]) -> None:
    """Check that damaged copies of one function's artifact, one for each kind of damage in `DAMAGE`, are refused."""
    wanted = _results(executable, inputs)
    symbol, data = next(iter(executable.library.artifacts.items()), ("", b""))
    for kind, damage in DAMAGE.items() if symbol else ():
        library = Library(executable.library.code, artifacts={**executable.library.artifacts, symbol: damage(data)})
        try:
            other = create(executable.graph, library, executable.params)
            # it is not called: damaged native code may end the process
            native = isinstance(other.externals[symbol].loaded, Native)
            wrong = native or not all(map(np.array_equal, _results(other, inputs), wanted))
        except RelayError:
            wrong = False
        found.note("damaged artifacts", f"{what}: that of {symbol}, {kind}, is taken" if wrong else None)


def _elsewhere(found: Conformance, what: str, parted: IRModule) -> None:
    try:
        with TemporaryDirectory() as folder:
            build(parted.clone(), OTHER_TARGET).save(Path(folder, "saved"))
            machines = set(MACHINE.findall(Path(folder, "saved").read_bytes()))
    except RelayError:
        machines = set[bytes]()
    found.note("other target", f"{what}: code of {len(machines)} machines in one file" if len(machines) > 1 else None)


def _faults(
    found: Conformance, target: Mapping[str, Mapping[str, object]], module: IRModule, inputs: list[Array]
) -> None:
    """Run the module once for each fault that the compiler can simulate (`Compiler.faults`), and check that the error
    names the compiler and a function."""
    ((name, options),) = target.items()
    for fault in registry.load(name).faults:
        parted = build_external_compiler(module, {name: {**options, **fault}})
        try:
            _results(build(parted), inputs)
        except RelayError as error:
            text = "\n".join([str(error), *getattr(error, "__notes__", ())])
            named = name in text and any(function.sym_name.data in text for function in _functions(parted))
            found.note("device faults", None if named else f"{fault}: the error names no function of {name}: {error}")
        else:
            found.note("device faults", f"{fault}: the run ends as if nothing had been")
