"""The `relay-opt` options about its pipeline: the passes to run, edits of the pipeline, and instruments that observe
it."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Container, Mapping, Sequence

import relay
from relay.errors import InvalidArgument
from relay.passes import PassContext, PassInstrument, Pipeline, registry
from relay.passes.checking import BisectLimit, CrashReproducer
from relay.passes.info import LEVELS
from relay.passes.printing import DumpIR, PassPrintingInstrument, PrintAfterAll, PrintChanged
from relay.passes.registry import Factory
from relay.passes.timing import OpStatistics, PassTimingInstrument
from relay.tools.help import GROUPS, UPSTREAM

EDITS = ("insert_before", "insert_after", "remove")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options about the pipeline, except `-p` and those that xDSL's tool already has."""
    parser.add_argument(
        "--show-pipeline", action="store_true", help="print which passes would run, and why; needs no FILE"
    )
    parser.add_argument("--attach-target", metavar="TARGET", help="target to compile for, as 'aarch64 -mattr=+dotprod'")
    add_level(parser)
    for flag, metavar, help in (
        ("--insert-before", "NAME=PASS", "run PASS before the pass NAME"),
        ("--insert-after", "NAME=PASS", "run PASS after the pass NAME"),
        ("--remove", "NAME", "remove the pass NAME from the pipeline"),
    ):
        parser.add_argument(flag, metavar=metavar, help=help, action="append", default=[])
    parser.add_argument("--verify-each", action="store_true", help="verify the module after each pass (default)")
    parser.add_argument("--print-ir-before-all", action="store_true", help=SUPPRESS)
    parser.add_argument("--print-ir-after-all", action="store_true", help="print the IR after each pass")
    for when in ("before", "after"):
        parser.add_argument(
            f"--print-ir-{when}", metavar="A,B", action="append", default=[], help=f"print the IR {when} these passes"
        )
    parser.add_argument("--print-ir-changed", action="store_true", help="print what each pass changes, as a diff")
    parser.add_argument("--dump-ir", metavar="DIR", help="write the IR after each pass to numbered files in DIR")
    parser.add_argument("--stats", action="store_true", help="print how each pass changes the number of ops by kind")
    parser.add_argument(
        "--opt-bisect-limit", type=int, metavar="N", help="run the first N optional passes, and all required ones"
    )
    parser.add_argument(
        "--crash-reproducer", metavar="FILE", help="if a pass fails, write it and the IR before it to FILE"
    )


def add_level(parser: ArgumentParser) -> None:
    """Add the option `-O LEVEL`."""
    parser.add_argument(
        "-O",
        dest="opt_level",
        type=int,
        choices=LEVELS,
        metavar="LEVEL",
        help="optimization level, 0 to 4 (default: 2, or 4 with -p)",
    )


def parse_pipeline(text: str, known: Mapping[str, Factory]) -> Pipeline:
    """Parse a pipeline; `known` passes take precedence over registered ones. Raises InvalidArgument."""
    return Pipeline(registry.parse(text, "relay-opt -p", known))


def pipeline_of(args: Namespace, target: str, known: Mapping[str, Factory]) -> Pipeline:
    """The pipeline that the arguments select: that of `-p`; else `build`'s default pipeline if an option shows,
    searches or edits it or gives a level; else an empty one. Edits are applied to it."""
    edited = any(getattr(args, edit) for edit in EDITS)
    if args.passes:
        pipeline = parse_pipeline(args.passes, known)
    elif args.show_pipeline or args.find_culprit or edited or args.opt_level is not None:
        pipeline = relay.default_pipeline(target, args.opt_level)
    else:
        pipeline = Pipeline()
    if args.attach_target is not None:
        from relay.transforms.attach_target import AttachTarget

        steps = [step for step in pipeline if not isinstance(step, AttachTarget)]
        pipeline = Pipeline([AttachTarget(args.attach_target), *steps])
    for option, insert in (("insert_before", pipeline.insert_before), ("insert_after", pipeline.insert_after)):
        for text in getattr(args, option):
            name, equals, step = text.partition("=")
            if not equals or not step:
                flag = f"--{option.replace('_', '-')}"
                raise InvalidArgument(flag, f"'{text}' names no pass to insert", f"write {flag} fuse-ops=cse")
            insert(name, parse_pipeline(step, known))
    for name in args.remove:
        pipeline.remove(name)
    return pipeline


def context_of(args: Namespace) -> PassContext:
    """The pass context: the level of `-O` (without it 4, so that every named pass runs), and whether passes are
    verified."""
    unverified = args.disable_verify and not args.verify_each
    config = {"relay.verify": False} if unverified else {}
    return PassContext(4 if args.opt_level is None else args.opt_level, config=config)


def _names(args: Namespace, when: str) -> list[str]:
    """The pass names given by the option `--print-ir-before` or `--print-ir-after` (`when` is "before" or "after");
    `["all"]` if `--print-ir-before-all` or `--print-ir-after-all` is given."""
    if getattr(args, f"print_ir_{when}_all"):
        return ["all"]
    return [name for text in getattr(args, f"print_ir_{when}") for name in text.split(",")]


def with_passes_of_flags(args: Sequence[str], known: Container[str]) -> list[str]:
    """Rewrite mlir-opt's flags that name passes into one `-p` option: `--cse --canonicalize="top-down=true"` becomes
    `-p 'cse,canonicalize{top-down=true}'`. A flag that is also an option of relay-opt is kept as this option; if it
    begins with one dash, as LLVM's flags may, it gets two. Raises InvalidArgument if passes are named in both ways."""
    ours = {*UPSTREAM.values(), *(option for group in GROUPS.values() for option in group)}
    steps, rest = list[str](), list[str]()
    for arg in args:
        name, equals, options = arg.lstrip("-").partition("=")
        if arg.startswith("-") and name in known and f"--{name}" not in ours:
            steps.append(f"{name}{{{options}}}" if equals else name)
        elif arg.startswith("-") and f"-{arg}".partition("=")[0] in ours:
            rest.append(f"-{arg}")
        else:
            rest.append(arg)
    if steps and any(arg.startswith(("-p", "--passes", "--pass-pipeline")) for arg in rest):
        raise InvalidArgument("relay-opt", f"has -p and --{steps[0]}", "name all passes in one of the two ways")
    return [*rest, "-p", ",".join(steps)] if steps else rest


class Watchers:
    """The pass instruments that the arguments ask for; their reports go to standard error."""

    def __init__(self, args: Namespace):
        self.timing = PassTimingInstrument() if args.time_passes else None
        self.statistics = OpStatistics() if args.stats else None
        self.bisect = None if args.opt_bisect_limit is None else BisectLimit(args.opt_bisect_limit)
        self.reproducer = CrashReproducer(args.crash_reproducer) if args.crash_reproducer else None
        before, after = _names(args, "before"), _names(args, "after")
        printed = (
            PrintAfterAll(sys.stdout) if args.print_between_passes else None,
            PassPrintingInstrument(before, after) if before or after else None,
            PrintChanged() if args.print_ir_changed else None,
            DumpIR(args.dump_ir, refresh=True) if args.dump_ir else None,
        )
        every = (self.bisect, self.reproducer, self.statistics, *printed, self.timing)
        self.instruments: list[PassInstrument] = [one for one in every if one is not None]

    def report(self) -> None:
        """Print the timing, op statistics and bisection log that were gathered to standard error."""
        for part in (self.timing, self.statistics):
            if part is not None:
                print(part.render(), file=sys.stderr)
        if self.bisect is not None:
            print("\n".join(self.bisect.log), file=sys.stderr)


def show(pipeline: Pipeline, ctx: PassContext, target: str, level: int) -> str:
    """The text of `--show-pipeline`: a line per pass with whether it runs and why, then the equivalent `-p` option."""
    planned = pipeline.plan(ctx)
    width = max((len(row.name) for row in planned), default=0)
    lines = [f"target {target}, opt_level {level}"]
    lines += [f"{'' if row.runs else 'not '}{row.name:{width}}  {row.why}".rstrip() for row in planned]
    text = ",".join(str(row.step) for row in planned if row.runs)
    return "\n".join([*lines, f"-p '{text}'"])
