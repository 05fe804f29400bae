"""The options of `relay-opt` arranged in groups, with relay's own help text where xDSL's would list every registered
name."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser
from typing import Any

from relay.frontend.importing.formats import MODELS

GROUPS: dict[str, tuple[str, ...]] = {
    "input": ("--frontend", "--batch", "--shape", "--numerics", "--outputs", "--weights", "--load",
              "--split-input-file", "--allow-unregistered-dialect", "--no-implicit-module"),
    "pipeline": ("--passes", "--list-passes", "--list-patterns", "--show-pipeline", "--attach-target", "-O",
                 "--insert-before", "--insert-after", "--remove"),
    "passes": ("--print-ir-before-all", "--print-ir-after-all", "--print-ir-before", "--print-ir-after",
               "--print-ir-changed", "--print-between-passes", "--dump-ir", "--time-passes", "--stats",
               "--partition-report", "--opt-bisect-limit", "--crash-reproducer"),
    "output": ("--target", "--output-file", "--save-weights", "--print-op-generic", "--print-no-properties",
               "--print-debuginfo", "--syntax-highlight", "--emit-irdl", "--completion"),
    "checks": ("--verify-each", "--disable-verify", "--verify-diagnostics", "--parsing-diagnostics", "--shrink",
               "--find-culprit", "--inputs", "--seed", "--tolerance"),
}  # fmt: skip
"""The option names of each group, by group title; options in no group keep argparse's default group."""
UPSTREAM = {
    "--passes": "--pass-pipeline",
    "--print-ir-before-all": "--mlir-print-ir-before-all",
    "--print-ir-after-all": "--mlir-print-ir-after-all",
    "--print-ir-before": "--mlir-print-ir-before",
    "--print-ir-after": "--mlir-print-ir-after",
    "--print-ir-changed": "--mlir-print-ir-after-change",
    "--time-passes": "--mlir-timing",
    "--stats": "--mlir-pass-statistics",
    "--crash-reproducer": "--mlir-pass-pipeline-crash-reproducer",
    "--print-op-generic": "--mlir-print-op-generic",
    "--print-debuginfo": "--mlir-print-debuginfo",
}
"""mlir-opt's name of an option with the same meaning, by relay's name; the parser accepts both."""

INPUT = f"MLIR text, or a model: {', '.join(f'.{name}' for name in MODELS)}"
TEXTS: dict[str, dict[str, Any]] = {
    "--frontend": {"help": "format of the input (default: detected by content)"},
    "--passes": {
        "help": "passes to run, as in 'legalize,fuse-ops' or 'parallelize{fork=4000}'",
        "metavar": "PIPELINE",
        "default": None,
    },
    "--target": {"help": "mlir (default), llvm-ir, c, irdl, or an xDSL target", "metavar": "TARGET"},
    "--output-file": {"help": "write to FILE instead of standard output", "metavar": "FILE"},
    "--disable-verify": {"help": "do not verify the module"},
    "--version": {"help": "print the versions of relay-opt and xDSL and exit"},
    "--verify-diagnostics": {
        "help": "accept errors that `// expected-error` comments expect; without such comments, print a verifier error "
        "and exit with code 0"
    },
    "--shrink": {
        "help": "for the test-case reducer shrinkray: exit with code 0 if xDSL raised a ShrinkException, else 1"
    },
    "--no-implicit-module": {"help": "add no module op around the ops of the text"},
    "--allow-unregistered-dialect": {"help": "accept ops and types of unregistered dialects"},
    "--print-between-passes": {"help": "print the IR to standard output after each pass"},
    "--time-passes": {"help": "print the time that each pass takes"},
    "--print-op-generic": {"help": "print ops in the generic format"},
    "--split-input-file": {"help": "process the pieces between `// -----` lines one by one"},
    "--print-no-properties": {"help": "print properties as if they were attributes"},
    "--print-debuginfo": {"help": "print the locations of ops"},
    "--syntax-highlight": {"help": "highlight the syntax of what is printed"},
    "--parsing-diagnostics": {"help": "print a parse error, and exit with code 0"},
    "input_file": {"help": f"{INPUT} (default: standard input)", "metavar": "FILE"},
}


class Sorted(ArgumentParser):
    """A stand-in for an argument parser: it adds each option to the parser that it wraps, in the titled group that
    `GROUPS` lists it in, for a sorted help text."""

    def __init__(self, parser: ArgumentParser):
        super().__init__(add_help=False)
        self.parser = parser
        said = {
            "pipeline": "Without -p, the options --insert-*, --remove, -O and --find-culprit apply to the pipeline of "
            "relay.build. A pass may be an option of its own (--cse); mlir-opt's option names are accepted, too "
            "(--mlir-timing)."
        }
        self.groups = {title: parser.add_argument_group(title, said.get(title)) for title in GROUPS}

    def add_argument(self, *name_or_flags: str, **kwargs: Any) -> Action:
        """Add an option to the group that `GROUPS` lists it in, with its help text in `TEXTS`, if any. If `UPSTREAM`
        has mlir-opt's name of the option, also add the option under that name, without help text."""
        title = next((title for title, names in GROUPS.items() if name_or_flags[-1] in names), None)
        group = self.parser if title is None else self.groups[title]
        kwargs |= TEXTS.get(name_or_flags[-1], {})
        action = group.add_argument(*name_or_flags, **kwargs)
        if (upstream := UPSTREAM.get(name_or_flags[-1])) is not None:
            same: dict[str, Any] = {**kwargs, "dest": action.dest, "help": SUPPRESS}
            group.add_argument(upstream, **same)
        return action
