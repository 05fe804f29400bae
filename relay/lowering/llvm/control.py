"""Writes calls, returns, branches and loops."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects.func import CallOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Operation, SSAValue

from relay.lowering.builder import SHARED
from relay.lowering.llvm.function import EXTERNALS, TEAM, FunctionWriter, Writer
from relay.lowering.llvm.parallel import parallel_in, write_parallel, write_shared


def write_call(w: FunctionWriter, op: Operation) -> None:
    """Write a call, whose results are arguments since `bufferize`. An external function is `int32_t f(void *context,
    void **tensors)`: if it returns a nonzero status, this status and the function's number are stored in the word after
    the last entry of the array of external functions, and later external calls are skipped."""
    assert isinstance(op, CallOp)
    callee = op.callee.string_value()
    number = w.externals.get(callee)
    if number is None:
        given = [w.typed(argument) for argument in op.arguments]
        if callee in w.threaded:
            given.append(f"ptr {TEAM}")
        w.line(f"call void @{callee}({', '.join(given)})")
        return
    status = w.emit(f"getelementptr inbounds ptr, ptr {EXTERNALS}, i64 {2 * len(w.externals)}")
    before = w.emit(f"load i64, ptr {status}, align 8")
    failed = w.emit(f"icmp ne i64 {before}, 0")
    call, after = w.labels("call", "after")
    w.line(f"br i1 {failed}, label %{after}, label %{call}")
    w.begin(call)
    tensors = w.reserve(f"alloca [{len(op.arguments)} x ptr], align 8")
    for position, argument in enumerate(op.arguments):
        at = w.emit(f"getelementptr inbounds ptr, ptr {tensors}, i64 {position}")
        w.line(f"store {w.typed(argument)}, ptr {at}, align 8")
    words: list[str] = []
    for offset in (2 * number, 2 * number + 1):
        at = w.emit(f"getelementptr inbounds ptr, ptr {EXTERNALS}, i64 {offset}")
        words.append(w.emit(f"load ptr, ptr {at}, align 8"))
    code = w.emit(f"call i32 {words[0]}(ptr {words[1]}, ptr {tensors})")
    wrong = w.emit(f"icmp ne i32 {code}, 0")
    wide = w.emit(f"zext i32 {code} to i64")
    named = w.emit(f"or i64 {wide}, {number + 1 << 32}")
    kept = w.emit(f"select i1 {wrong}, i64 {named}, i64 0")
    w.line(f"store i64 {kept}, ptr {status}, align 8")
    w.line(f"br label %{after}")
    w.begin(after)


def write_return(w: FunctionWriter, op: Operation) -> None:
    """Write the end of the function."""
    w.line("ret void")


@contextmanager
def carried(
    w: FunctionWriter, head: str, arguments: Sequence[SSAValue], initial: Sequence[SSAValue]
) -> Generator[list[str]]:
    """Begin the basic block `head` of a loop with a phi for each of `arguments`. Yield a list, to which the caller
    adds, for each phi, the value that it takes from the end of an iteration. These values are known only when the body
    has been written, so the lines of the phis are reserved and filled in last."""
    before, starts = w.label, [w.of(value) for value in initial]
    w.line(f"br label %{head}")
    w.begin(head)
    first, nexts = len(w.lines), list[str]()
    for argument in arguments:
        w.names[argument] = w.fresh()
        w.lines.append("")
    yield nexts
    for line, (argument, start, next) in enumerate(zip(arguments, starts, nexts, strict=True), first):
        sources = f"[ {start}, %{before} ], [ {next}, %{w.label} ]"
        w.lines[line] = f"  {w.of(argument)} = phi {w.type(argument)} {sources}"


def write_for(w: FunctionWriter, op: Operation) -> None:
    """Write an `scf.for` as a loop tested at its start; bounds are signed."""
    assert isinstance(op, ForOp)
    if SHARED in op.attributes and w.shared is None:
        write_shared(w, op, parallel_in(op))
        return
    block = op.body.block
    end = block.last_op
    assert isinstance(end, YieldOp)
    head, inside, after = w.labels("head", "body", "after")
    with carried(w, head, block.args, (op.lb, *op.iter_args)) as nexts:
        induction = w.of(block.args[0])
        test = w.emit(f"icmp slt {w.index} {induction}, {w.of(op.ub)}")
        w.line(f"br i1 {test}, label %{inside}, label %{after}")
        w.begin(inside)
        w.body(block)
        following = w.emit(f"add nsw {w.index} {induction}, {w.of(op.step)}")
        nexts += [following, *(w.of(value) for value in end.operands)]
        w.line(f"br label %{head}{w.hints(op)}")
    w.begin(after)
    for result, argument in zip(op.res, block.args[1:], strict=True):
        w.names[result] = w.of(argument)


def write_if(w: FunctionWriter, op: Operation) -> None:
    """Write an `scf.if` as a branch; its results become phis where the branches join."""
    assert isinstance(op, IfOp)
    then, otherwise, end = w.labels("then", "else", "end")
    branches = [(then, op.true_region), (otherwise, op.false_region)]
    first, second = (label if region.blocks else end for label, region in branches)
    w.line(f"br i1 {w.of(op.cond)}, label %{first}, label %{second}")
    sources: list[list[str]] = [[] for _ in op.results]
    for label, region in branches:
        if not region.blocks:
            continue
        last = region.block.last_op
        assert isinstance(last, YieldOp)
        w.begin(label)
        for inner in region.block.ops:
            if inner is not last:
                w.operation(inner)
        for source, value in zip(sources, last.operands, strict=True):
            source.append(f"[ {w.of(value)}, %{w.label} ]")
        w.line(f"br label %{end}")
    w.begin(end)
    for result, source in zip(op.results, sources, strict=True):
        w.define(result, f"phi {w.type(result)} {', '.join(source)}")


def write_while(w: FunctionWriter, op: Operation) -> None:
    """Write an `scf.while`: a basic block for the test and one for the body. Carried values are phis of the test's
    block."""
    assert isinstance(op, WhileOp)
    first, second = op.before_region.block, op.after_region.block
    test, end = first.last_op, second.last_op
    assert isinstance(test, ConditionOp) and isinstance(end, YieldOp)
    head, inside, after = w.labels("head", "body", "after")
    with carried(w, head, first.args, op.arguments) as nexts:
        w.body(first)
        w.line(f"br i1 {w.of(test.condition)}, label %{inside}, label %{after}")
        given = [w.of(value) for value in test.args]
        w.begin(inside)
        w.names.update(zip(second.args, given, strict=True))
        w.body(second)
        nexts += [w.of(value) for value in end.operands]
        w.line(f"br label %{head}")
    w.begin(after)
    w.names.update(zip(op.res, given, strict=True))


CONTROL: dict[str, Writer] = {
    "func.call": write_call,
    "func.return": write_return,
    "scf.for": write_for,
    "scf.if": write_if,
    "scf.parallel": write_parallel,
    "scf.while": write_while,
}
