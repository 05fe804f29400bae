"""What the pass machinery costs per pass on a module of 500 ops, in microseconds: `python -m benchmarks.passes`.

Passes that do nothing run in a pipeline, and called one by one; clones and verification are not in the figures. Each
is a median over rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp

from relay.module import IRModule
from relay.passes import Pass, PassContext, PassInstrument, Pipeline, module_pass
from relay.passes.runner import Runner

OPS, PASSES, ROUNDS = 500, 100, 50


def chain(count: int) -> ModuleOp:
    """A module of this many ops in a row."""
    body = "\n".join(f"%v{n + 1} = relay.negative %v{n} : (tensor<4xf32>) -> tensor<4xf32>" for n in range(count))
    text = f"func.func @main(%v0: tensor<4xf32>) -> tensor<4xf32> {{ {body}\nfunc.return %v{count} : tensor<4xf32> }}"
    return IRModule.parse(text).op


def idle(name: str, required: tuple[str, ...] = ()) -> Pass:
    """A pass that does nothing."""

    def nothing(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod

    return module_pass(nothing, opt_level=0, name=name, required=required)


def microseconds(call: Callable[[], object], passes: int = PASSES) -> float:
    """The median time of a call, per pass."""
    times: list[float] = []
    for _ in range(ROUNDS):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return median(times) / passes * 1e6


def main() -> None:
    """Print the table."""
    op, plain = chain(OPS), idle("idle")
    needy = [idle("needy", ("legal",)), plain]
    inside = Pipeline([plain] * PASSES)
    checked = Pipeline(needy * (PASSES // 2))
    print(f"in a pipeline                      {microseconds(lambda: inside.apply(op)):8.1f} us")
    print(f"half of them look at the module    {microseconds(lambda: checked.apply(op)):8.1f} us")
    with PassContext(instruments=[PassInstrument(), PassInstrument()]):
        print(f"in a pipeline, two instruments     {microseconds(lambda: inside.apply(op)):8.1f} us")
    print(
        f"called by itself                   {microseconds(lambda: Runner(op).run([plain], explicit=True), 1):8.1f} us"
    )
    print(f"clone of the module, for scale     {microseconds(op.clone, 1):8.1f} us")


if __name__ == "__main__":
    main()
