"""`relay-opt --find-culprit`: finds the pass after which the module computes other results, and the operator
concerned."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from math import inf
from typing import NoReturn

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes import Pipeline


def add_arguments(parser: ArgumentParser) -> None:
    """Add the option `--find-culprit`, which searches for the pass that changes the module's results, and the options
    for the search's inputs and tolerance."""
    help = (
        "run the module after each pass, and print the first pass and operator that change its results (exit code 1),"
        " or the pass after which it cannot be run on this machine, such as lowering to a GPU (exit code 2)"
    )
    parser.add_argument("--find-culprit", action="store_true", help=help)
    parser.add_argument("--inputs", metavar="FILE", help="with --find-culprit: .npz of inputs (default: random)")
    parser.add_argument("--seed", type=seed, metavar="N", help="with --find-culprit: random seed (default: 0)")
    parser.add_argument(
        "--tolerance",
        type=tolerance,
        metavar="X",
        help="with --find-culprit: float tolerance, relative to a tensor's largest magnitude (default: 1e-4)",
    )


def seed(text: str) -> int:
    """Parse a seed for random inputs, an integer of at least 0."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"'{text}' is not a whole number of at least 0")
    return int(text)


def tolerance(text: str) -> float:
    """Parse a tolerance: a finite float of at least 0."""
    number = float(text)
    if not 0 <= number < inf:
        raise ArgumentTypeError(f"{text} is not a number of at least 0")
    return number


def check(args: Namespace, error: Callable[[str], NoReturn]) -> None:
    """Call `error` if an option of the search is given without --find-culprit, or one that contradicts it."""
    if not args.find_culprit:
        for name in ("inputs", "seed", "tolerance"):
            if getattr(args, name) is not None:
                error(f"--{name} is an option of --find-culprit, which is not given")
        return
    if args.show_pipeline:
        error("--find-culprit runs the passes that --show-pipeline only prints: give one of them")
    if args.target != "mlir":
        error(f"--find-culprit prints a report, and no module as -t {args.target} does: give one of them")
    if args.passes is not None and not args.passes.strip():
        error("--find-culprit -p '' has no pass to search: name passes, or leave -p out for those that build runs")


def search(op: ModuleOp, pipeline: Pipeline, args: Namespace) -> tuple[int, str]:
    """Search for the first pass of the pipeline that changes the results of `@main`. Returns the exit code and the
    report: 0 if all passes give equal results, 1 if results change, 2 if not every pass could be compared. Raises
    RelayError if the inputs or the module cannot be run."""
    from relay.exploration.bisection import find_culprit

    module = IRModule(op)
    inputs = inputs_of(module, args.inputs, args.seed or 0)
    finding = find_culprit(module, pipeline, inputs, tolerance=1e-4 if args.tolerance is None else args.tolerance)
    return 0 if finding.equal else 2 if finding.culprit is None else 1, f"{finding}\n"


def inputs_of(module: IRModule, file: str | None, seed: int) -> list[Array]:
    """The arguments of `@main`: from a .npz file by name, or random. A state that the file leaves out has its initial
    value. Raises InvalidArgument."""
    from relay.interpreters import argument_infos
    from relay.runtime.arrays import arrays_of
    from relay.runtime.specification import random_array

    given = {} if file is None else dict(arrays_of(file))
    random = np.random.default_rng(seed)
    inputs: list[Array] = []
    for info in argument_infos(module["main"]):
        if info.name in given:
            inputs.append(given.pop(info.name))
        elif info.initial is not None:
            inputs.append(np.array(info.initial))
        elif file is None and min(info.shape, default=0) < 0:
            sizes = "x".join("?" if size < 0 else str(size) for size in info.shape)
            what = f"is of unknown size {sizes}: there are no random numbers for it"
            raise InvalidArgument(f"--find-culprit: input {info.name}", what, "give --batch N, or --inputs FILE")
        elif file is None:
            inputs.append(random_array(info.shape, info.dtype, random))
        else:
            raise InvalidArgument(file, f"has no input {info.name}", f"it has {', '.join(given) or 'nothing else'}")
    if given:
        raise InvalidArgument(str(file), f"names no input with {next(iter(given))}")
    return inputs
