"""All checks of a saved executable. They run in a process of their own: if broken code ends it, that is recorded as a
finding."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

import numpy as np

from relay.runtime import archive, variants
from relay.runtime.container import WRONG
from relay.runtime.memory import Array
from relay.validation import blocks, claims, floats, plan, pointwise, randomly
from relay.validation.claims import ARENA, Call, Claims, Move, Place
from relay.validation.contraction import BITS, Differs, Product
from relay.validation.emulator import emulator_of, is_emulated
from relay.validation.finer import refine
from relay.validation.formulas import Undefined
from relay.validation.machine_code import Kernel, Machine, Unknown
from relay.validation.report import Part, Report
from relay.validation.sums import Sums
from relay.validation.tail import NoTail
from relay.validation.wide import Wide

SEED = 20
SECONDS = 60
"""The default limit of one kernel run, in seconds."""


def certify(
    model: str | PathLike[str] | bytes, bits: int = BITS, seconds: int = SECONDS, first: bool = False
) -> Report:
    """Check the machine code of a saved executable, given by its path or bytes, against the formulas that its file
    claims.

    `bits`: random tests of sums go on until a wrong coefficient is missed with a probability below 2^-bits. `seconds`:
    a kernel that runs longer counts as wrong. `first`: stop at the first kernel that is wrong. Raises Malformed or
    InvalidArgument if `model` is no saved executable.
    """
    parts, where = archive.read(model)
    if variants.TABLE not in parts:
        return certificate_of(archive.saved(parts, where, here=False), where, bits, seconds, first)
    report = Report(where, "another machine")
    interface, saved = variants.unpack(parts, where, here=False)
    for key, make in saved.items():
        each = certificate_of(make(), where, bits, seconds, first)
        sizes = ", ".join(f"{s.name}={size}" for s, size in zip(interface.symbols, key.sizes, strict=True))
        for part in each.parts:
            part.name = f"{sizes}: {part.name}"
        report.target, report.parts = each.target, [*report.parts, *each.parts]
    return report


def certificate_of(saved: archive.Saved, where: str, bits: int, seconds: int, first: bool) -> Report:
    """Check the machine code of an executable that is compiled for one size of its inputs, and return the report.
    `where`: the file's name in the report; `bits`, `seconds` and `first` are those of `certify`: the certainty of
    random tests, the time limit of a kernel, and whether to stop at the first wrong one."""
    report = Report(where, str(saved.graph.get("target", {}).get("triple", "another machine")))
    foreign = "is code of a GPU" if "device" in saved.graph else archive.foreign(saved.graph, where)
    if foreign is not None and (emulator := emulator_of(report.target)) is not None:
        foreign, report.target = None, f"{report.target}, under {os.path.basename(emulator)}"
    if foreign is not None or not saved.claims:
        part = Part("all", "the artifact", whole=True)
        part.say("not checked", f"it {foreign}{hint_of(report.target)}" if foreign else "the file claims no formulas")
        report.parts.append(part)
        return report
    isolated(archive.pack(saved), bits, seconds, first, report)
    return report


def hint_of(triple: str) -> str:
    """A text for the reason why code for the target `triple` was not checked: the program that is not installed and
    would run the code; empty if no program would."""
    return " (qemu's user mode, which would run it, is not installed)" if is_emulated(triple) else ""


def isolated(data: bytes, bits: int, seconds: int, first: bool, report: Report) -> None:
    """Check in another process, which prints each part of the check when it begins and when it is done; add the parts
    to the report. A crash or timeout becomes a finding of the part that had begun."""
    path = os.pathsep.join(each or os.getcwd() for each in sys.path)
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.NamedTemporaryFile(suffix=".relay") as file:
        file.write(data)
        file.flush()
        options = ["--inside", file.name, f"--bits={bits}", f"--seconds={seconds}", *["--first"] * first]
        command = [sys.executable, "-m", "relay.validation", *options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    text, ended, said = done.stdout, done.returncode, done.stderr
    begun = "all"
    for line in text.splitlines():
        try:
            row: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        if "begin" in row:
            begun = str(row["begin"])
        else:
            report.parts.append(Report.part_of(row))
    if ended != 0:
        part = Part(begun, "as claimed")
        if ended == -signal.SIGALRM:
            part.say("wrong", f"its code did not end within {seconds} s")
        elif ended < 0:
            part.say("wrong", f"its code crashed: {signal.Signals(-ended).name}")
        else:
            part.say("wrong", f"its check failed: {(said.strip().splitlines() or ['no message'])[-1]}")
        report.parts.append(part)


def inside(path: str, bits: int, seconds: int, first: bool, tell: Callable[[dict[str, Any]], None]) -> None:
    """Check the machine code of the saved executable `path` in this process; `bits`, `seconds` and `first` are those of
    `certify`. `tell` is called with `{"begin": name}` when the check of a kernel (or of the whole executable) begins,
    and with the fields of its `Part` when it is done."""
    from dataclasses import asdict

    saved = archive.saved(archive.read(path)[0], path, here=False)
    whole = Part("all", "every kernel, one after the other", whole=True)
    tell({"begin": whole.name})
    started = time.process_time()
    try:
        claimed = claims.read(saved.claims)
        machine = Machine(saved, claimed, seconds)
    except WRONG as error:
        whole.say("wrong", f"the claims cannot be read: {error}")
        return tell(asdict(whole))
    except Unknown as error:
        whole.say("not checked", str(error))
        return tell(asdict(whole))
    weights: dict[int, dict[int, Array]] = {}
    parts: list[Part] = []
    checked: dict[tuple[object, ...], Part] = {}
    for call in claimed.calls:
        part = Part(f"{call.number} {call.kernel}", formula_of(call))
        tell({"begin": part.name})
        begun = time.process_time()
        try:
            twin = checked.setdefault(identity(call), part)
            known = None if twin is part else weights.get(int(twin.name.split()[0]), {})
            if known is not None and twin.kinds <= {"not checked"}:
                part.findings = list(twin.findings)
            elif known is not None:
                part.say("tested", f"the code and the constants are those of {twin.name}; other runs are few")
                part.complete = twin.complete
            weights[call.number] = check_call(machine, claimed, call, part, bits, known)
        except (*WRONG, Unknown) as error:
            part.say("wrong", f"the claim contradicts itself: {error}")
        part.seconds = round(time.process_time() - begun, 3)
        parts.append(part)
        if first and "wrong" in part.kinds:
            return tell(asdict(part))
    tell({"begin": whole.name})
    if all("wrong" not in part.kinds for part in parts):
        check_whole(machine, claimed, weights, whole)
    if repeat := saved.graph.get("repeat"):
        parts.append(Part("blocks", "the entry point for each of many blocks of rows"))
        tell({"begin": parts[-1].name})
        blocks.check(machine, str(repeat["entry"]), parts[-1], np.random.default_rng(SEED))
    whole.seconds = round(time.process_time() - started - sum(part.seconds for part in parts), 3)
    for part in [whole, *parts]:
        tell(asdict(part))


def formula_of(call: Call) -> str:
    """The formulas that the call's kernel is claimed to compute, as one line of text: their names, each followed by the
    kind of rounding in parentheses if it has one."""
    rows = ((row.formula.removeprefix("nn."), row.parameters.get("rounding")) for row in call.program.rows)
    return " ".join(f"{name}({rounding})" if rounding else name for name, rounding in rows)


def identity(call: Call) -> tuple[object, ...]:
    """A key that is equal for calls of the same kernel with the same constants."""
    constants = tuple((number, value.tobytes()) for number, value in sorted(call.constants.items()))
    return call.kernel, call.reads, constants, tuple(sorted(call.weights))


def check_call(
    machine: Machine, claimed: Claims, call: Call, part: Part, bits: int, known: Mapping[int, Array] | None
) -> dict[int, Array]:
    """Check the machine code of one kernel call against the claimed formula, and add the results to the report `part`.
    A wrong coefficient is missed with a probability below 2^-`bits`. `known`: the weights that an earlier call with the
    same code and constants returned; fewer tests are then run. Returns the integer weights read back from the machine
    code, by the number of the kernel's argument."""
    if call.why:
        part.say("not checked", call.why)
        return {}
    try:
        machine.site(call.number)
    except Unknown as error:
        part.say("not checked", str(error))
        return {}
    rng = np.random.default_rng([SEED, call.number])
    kernel = Kernel(machine, call)
    weights: dict[int, Array] = dict(known or {})
    try:
        if call.projected:
            floats.check(kernel, part, rng)
            check_writes(machine, kernel, part, rng)
            return {}
        try:
            if known is not None:
                bits = 1
            elif call.weights:
                weights = check_product(kernel, part, rng, bits)
                machine.restore()
            else:
                pointwise.check(kernel, part)
        except NoTail as error:
            if call.weights:
                part.say("not checked", f"its sums, as it {error}")
        if call.weights.keys() <= weights.keys():
            randomly.check(kernel, part, claimed.calls, weights, rng, bits)
            check_writes(machine, kernel, part, rng)
    except (NoTail, Undefined) as error:
        part.say("not checked", f"with random numbers, as it {error}")
    except Differs as error:
        part.say("wrong", str(error))
    finally:
        machine.restore()
        part.runs = kernel.runs
    return weights


def check_product(kernel: Kernel, part: Part, rng: np.random.Generator, bits: int) -> dict[int, Array]:
    """Check the sums of a convolution or dense kernel on quantized values. Returns its weights, read back from the
    machine code, by the number of the kernel's argument. Raises Differs."""
    try:
        product = Product(kernel, part, rng, bits)
    except NoTail:
        if kernel.results[0].dtype.itemsize == 1:
            raise
        return Wide(kernel, part, rng, bits).check()
    product.check_rescale()
    refine(product)
    weights = product.check_weights()
    Sums(product).check()
    return weights


def check_writes(machine: Machine, kernel: Kernel, part: Part, rng: np.random.Generator) -> None:
    """Run the kernel once more on its current inputs: it must only write its results and scratch memory, and its
    results must not depend on the contents of scratch memory. Raises Differs."""
    results = [result.copy() for result in kernel.results]
    own = [*kernel.call.results, *kernel.call.scratch, *(move.to for move in machine.claims.moves)]
    memory = {ARENA: machine.arena, **dict(enumerate(machine.arguments))}
    for place in kernel.scratch:
        place[:] = rng.integers(0, 256, place.size)
    kept = {argument: base.copy() for argument, base in memory.items()}
    constants = machine.constants.copy()
    kernel.run()
    for result, before in zip(kernel.results, results, strict=True):
        if not np.array_equal(result.reshape(-1).view(np.uint8), before.reshape(-1).view(np.uint8)):
            raise Differs("results depend on what scratch memory held")
    for argument, base in memory.items():
        changed = base != kept[argument]
        for place in own:
            if place.argument == argument:
                changed[place.offset : place.offset + place.bytes] = False
        if changed.any():
            raise Differs(f"it writes where it shall not, at byte {int(np.flatnonzero(changed)[0])}")
    if not np.array_equal(constants, machine.constants):
        raise Differs("it writes to the constants")
    part.say("tested", "it writes its results and scratch memory only (one run)")


def check_whole(machine: Machine, claimed: Claims, weights: Mapping[int, Mapping[int, Array]], part: Part) -> None:
    """Check the memory plan, and a run of all kernels together; add the findings to `part`."""
    calls, steps = claimed.calls, claimed.steps
    if claimed.branches or any(move.source is None for move in claimed.moves):
        part.say("not checked", "the memory plan, and all kernels together: there are branches or loops beside kernels")
        return
    if any(len(call.results) != len(call.program.results) for call in calls):
        part.say("not checked", "the memory plan: the claim does not say where all tensors lie")
        return
    places = [Place(number, 0, array.size) for number, array in enumerate(machine.arguments)]
    found = plan.contradictions(steps, places[: machine.inputs], places[machine.inputs :])
    for each in found:
        part.say("wrong", each)
    if not found:
        part.say("proved", "the memory plan: each kernel reads what an earlier one wrote, and nothing wrote over it")
    if any(call.projected for call in calls):
        part.say("not checked", "all kernels together: products of floats are compared one by one")
        return
    if any(call.why or call.weights.keys() - weights[call.number].keys() for call in calls):
        part.say("not checked", "all kernels together: some formulas are not known")
        return
    rng = np.random.default_rng(SEED)
    for array in machine.arguments[: machine.inputs]:
        array[:] = rng.integers(0, 256, array.size)
    memory = {ARENA: machine.arena.copy(), **{n: array.copy() for n, array in enumerate(machine.arguments)}}
    for call in steps:
        if isinstance(call, Move):
            bytes_at(memory, call.to)[:] = [bytes_at(memory, place) for place in call.operands.values()][0]
            continue
        forms = call.program.arguments
        given = {n: forms[n].view(bytes_at(memory, place).copy()) for n, place in call.operands.items()}
        try:
            values = call.program.evaluate({**call.constants, **weights[call.number], **given})
        except Undefined as error:
            part.say("not checked", f"all kernels together: {call.kernel} {error}")
            return
        for place, number in zip(call.results, call.program.results, strict=True):
            bytes_at(memory, place)[:] = np.ascontiguousarray(values[number]).reshape(-1).view(np.uint8)
    machine.function(None)()
    for number in range(machine.inputs, len(machine.arguments)):
        if not np.array_equal(machine.arguments[number], memory[number]):
            if any(call.program.floats for call in calls):
                part.say("not checked", "all kernels together: some compute floats, whose roundings may differ")
                return
            part.say("wrong", f"output {number - machine.inputs} of a run is not that of all formulas together")
            return
    part.say("tested", "a run of all kernels on random codes gives what all formulas give together")


def bytes_at(memory: Mapping[int, Array], place: Place) -> Array:
    """A writable view of a tensor's bytes, at offset `place.offset` of an argument of the entry point or of the arena.
    `memory`: the bytes of each argument by its number, and of the arena by `ARENA`."""
    return memory[place.argument][place.offset : place.offset + place.bytes]
