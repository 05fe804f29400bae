"""Writes `scf.parallel`: the body of the loop, or a loop around it that threads share, becomes a function of a range of
iterations, which is called directly, or by a team of threads.

A team is memory whose first word is the address of a function `void fork(team, task, context, count)`, and its second
that of `void begin(team)`, which is called first in every inference. `fork` calls `task(context, first, end)` with
ranges that cover `count` iterations, in any order and on any threads, and returns when all are done.
`relay.lowering.llvm.team` implements a team.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects import memref, vector
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp, ParallelOp
from xdsl.ir import Operation, SSAValue

from relay.errors import Unsupported
from relay.lowering.builder import SHARED
from relay.lowering.call_graph import CallGraph
from relay.lowering.llvm.function import TEAM, FunctionWriter
from relay.lowering.llvm.types import type_name
from relay.lowering.shaped import is_buffer
from relay.lowering.walking import inside, walked
from relay.transforms.location import function_of

VIEWS = memref.ViewOp | memref.CollapseShapeOp | memref.ExpandShapeOp | memref.SubviewOp | memref.CastOp
RANGE = "i64 %first, i64 %end"


def names(ops: Iterable[Operation]) -> set[str]:
    """Return the names of the functions that contain the ops."""
    return {function.sym_name.data for op in ops if (function := function_of(op)) is not None}


def threaded(module: ModuleOp) -> frozenset[str]:
    """Return the functions that contain parallel loops, and the functions that call them."""
    ops = walked(module)
    calls = CallGraph(ops).by_callee
    found: set[str] = set()
    new = names(op for op in ops if op.name == ParallelOp.name)
    while new:
        found |= new
        new = names(call for name in new for call in calls.get(name, ())) - found
    return frozenset(found)


def write_parallel(w: FunctionWriter, op: Operation) -> None:
    """Write the loop as a function, for a team if there is one; inside another loop's function, it is written as a
    sequential loop."""
    assert isinstance(op, ParallelOp)
    if len(op.lowerBound) != 1 or op.initVals:
        raise Unsupported("llvm-ir: scf.parallel", "has more than one dimension, or reductions")
    if op is w.shared:
        write_turns(w, op, "%first", "%end")
    elif w.shared is not None:
        write_turns(w, op, "0", count_of(w, op))
    else:
        write_shared(w, op, op)


def count_of(w: FunctionWriter, op: ParallelOp) -> str:
    """Return the number of iterations of the loop."""
    start, stop, step = (w.of(values[0]) for values in (op.lowerBound, op.upperBound, op.step))
    distance = w.emit(f"sub nsw i64 {stop}, {start}")
    rounded = w.emit(f"add nsw i64 {distance}, {w.emit(f'sub nsw i64 {step}, 1')}")
    return w.emit(f"sdiv i64 {rounded}, {step}")


def parallel_in(loop: ForOp) -> ParallelOp:
    """Return the single parallel loop inside the loop. Raises Unsupported if its bounds are not constant."""
    found = [op for op in inside(loop.body.blocks) if op.regions and isinstance(op, ParallelOp)]
    if len(found) != 1 or not all(
        isinstance(bounds[0].owner, ConstantOp) for bounds in (found[0].lowerBound, found[0].upperBound, found[0].step)
    ):
        raise Unsupported(f"llvm-ir: scf.for {{{SHARED}}}", "has not one scf.parallel inside, of constant bounds")
    return found[0]


def write_shared(w: FunctionWriter, op: ParallelOp | ForOp, loop: ParallelOp) -> None:
    """Write the operation as a separate function of a range of the loop's iterations, and the code that runs all
    iterations: a fork of the team's threads on the function, or a single call of it if there is no team."""
    count = count_of(w, loop)
    name = f"{w.function.sym_name.data}.task{len(w.tasks)}"
    captured = captures(op)
    w.tasks.append(write_task(w, op, loop, name, captured))
    forked, alone, after = w.labels("forked", "alone", "after")
    team = w.emit(f"icmp ne ptr {TEAM}, null")
    several = w.emit(f"icmp sgt i64 {count}, 1")
    w.line(f"br i1 {w.emit(f'and i1 {team}, {several}')}, label %{forked}, label %{alone}")
    w.begin(alone)
    arguments = [w.typed(value) for value in captured.values]
    w.line(f"call void @{name}({', '.join([*arguments, 'i64 0', f'i64 {count}'])})")
    w.line(f"br label %{after}")
    w.begin(forked)
    context = w.reserve(f"alloca {captured.fields}")
    for number, argument in enumerate(arguments):
        w.line(f"store {argument}, ptr {w.emit(captured.address(context, number))}")
    fork = w.emit(f"load ptr, ptr {TEAM}, align 8")
    w.line(f"call void {fork}(ptr {TEAM}, ptr @{name}.entry, ptr {context}, i64 {count})")
    w.line(f"br label %{after}")
    w.begin(after)


@dataclass(frozen=True)
class Captured:
    """What a loop reads from the surrounding function: `values`, which are passed to the loop's function; `views`, the
    ops in program order that its function repeats, such as views of buffers; and `constants`."""

    values: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    views: dict[Operation, None] = field(default_factory=dict[Operation, None])
    constants: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])

    def add(self, value: SSAValue) -> None:
        """Add a value to what the loop reads. Views of buffers are recomputed in the loop's function: if it received a
        view and its buffer, neither pointer could be `noalias`. Broadcasts are recomputed, too, since each would
        otherwise occupy a register from the start."""
        if value in self.constants or value in self.values:
            return
        owner = value.owner
        if isinstance(owner, ConstantOp):
            self.constants[value] = None
        elif isinstance(owner, VIEWS | vector.BroadcastOp):
            for operand in owner.operands:
                self.add(operand)
            self.views[owner] = None
        else:
            self.values[value] = None

    @property
    def fields(self) -> str:
        """The struct type of the context, in LLVM IR."""
        return f"{{ {', '.join(type_name(value.type) for value in self.values)} }}"

    def address(self, context: str, number: int) -> str:
        """Return the instruction that computes the address of captured value `number` in the struct at `context`, which
        is passed to the loop's function."""
        return f"getelementptr inbounds {self.fields}, ptr {context}, i32 0, i32 {number}"


def captures(op: ParallelOp | ForOp) -> Captured:
    """Return the values of the surrounding function that the loop reads."""
    inner_ops = inside(op.body.blocks)
    blocks = [*op.body.blocks, *(block for inner in inner_ops for region in inner.regions for block in region.blocks)]
    made = {result for inner in inner_ops for result in inner.results} | {arg for block in blocks for arg in block.args}
    found = Captured()
    for value in (*op.operands, *(operand for inner in inner_ops for operand in inner.operands)):
        if value not in made:
            found.add(value)
    return found


def write_task(w: FunctionWriter, op: Operation, loop: ParallelOp, name: str, captured: Captured) -> str:
    """Return the text of the function of a range of iterations, and of its entry, which loads the captured values from
    the context."""
    inner = w.task_writer(loop)
    parameters: list[str] = []
    for number, value in enumerate(captured.values):
        inner.names[value] = f"%c{number}"
        kind = "noalias nocapture " if is_buffer(value.type) else ""
        parameters.append(f"{type_name(value.type)} {kind}%c{number}")
    for value in captured.constants:
        inner.names[value] = w.of(value)
    for view in captured.views:
        inner.operation(view)
    inner.operation(op)
    inner.line("ret void")
    head = f"define internal void @{name}({', '.join([*parameters, RANGE])}) noinline #0 {{"
    lines = [f"define internal void @{name}.entry(ptr %context, {RANGE}) #0 {{"]
    arguments: list[str] = []
    for number, value in enumerate(captured.values):
        type = type_name(value.type)
        lines.append(f"  %a{number} = {captured.address('%context', number)}")
        lines.append(f"  %c{number} = load {type}, ptr %a{number}")
        arguments.append(f"{type} %c{number}")
    lines.append(f"  call void @{name}({', '.join([*arguments, RANGE])})")
    return "\n".join([head, "entry:", *inner.start, *inner.lines, "}", *lines, "  ret void", "}"])


def write_turns(w: FunctionWriter, op: ParallelOp, first: str, end: str) -> None:
    """Write the iterations from number `first` to `end` as a sequential loop."""
    block = op.body.block
    start, step = w.of(op.lowerBound[0]), w.of(op.step[0])
    head, inside, after = w.labels("head", "body", "after")
    before = w.label
    w.line(f"br label %{head}")
    w.begin(head)
    turn = w.fresh()
    phi = len(w.lines)
    w.lines.append("")
    w.line(f"br i1 {w.emit(f'icmp slt i64 {turn}, {end}')}, label %{inside}, label %{after}")
    w.begin(inside)
    place = turn if step == "1" else w.emit(f"mul nsw i64 {turn}, {step}")
    w.names[block.args[0]] = place if start == "0" else w.emit(f"add nsw i64 {place}, {start}")
    w.body(block)
    following = w.emit(f"add nsw i64 {turn}, 1")
    w.line(f"br label %{head}")
    w.lines[phi] = f"  {turn} = phi i64 [ {first}, %{before} ], [ {following}, %{w.label} ]"
    w.begin(after)
