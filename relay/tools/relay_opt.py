"""`relay-opt`: xDSL's opt tool with the dialects, passes and targets of relay, reading MLIR text and model files."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import IO, Any, ClassVar, NoReturn

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, ParseError, PassFailedException, VerifyException
from xdsl.xdsl_opt_main import xDSLOptMain

from relay import __version__, frontend, symbols
from relay.dialects.context import make_context
from relay.dialects.irdl import dialects, to_irdl
from relay.dialects.plug_in import dialect_of, known
from relay.dialects.plug_in import passes as dialects_passes
from relay.dialects.source import LocatingParser, invalid
from relay.errors import InvalidArgument, RelayError
from relay.files import read_file
from relay.frontend.importing.formats import MODELS, importable
from relay.module import IRModule, load_weights
from relay.passes import PassContext, PassInfo, PassInstrument, Reporter
from relay.passes.checking import pipeline_of as reproduced_pipeline
from relay.passes.context import LEVELS
from relay.tools import culprit
from relay.tools.completion import SCRIPTS, script
from relay.tools.failure import TRACEBACK, line_of
from relay.tools.help import Sorted
from relay.tools.pass_list import list_passes, list_patterns, names_of_passes
from relay.tools.pipeline_options import (
    Watchers,
    add_arguments,
    context_of,
    parse_pipeline,
    pipeline_of,
    show,
    with_passes_of_flags,
)
from relay.tools.plug_ins import everything, load
from relay.tools.shapes import shape_of

COMMENTS = re.compile(r"(?:\s|//[^\n]*)*+")
"""Text without any operation."""


class HeldText(StringIO):
    """A text stream that keeps its contents in `text` when it is closed."""

    text: str = ""

    def close(self) -> None:
        self.text = self.getvalue()
        super().close()


class RelayOptMain(xDSLOptMain):
    """xDSL's opt tool, extended through its hooks. `doing` and `module` are the current step and module, for error
    messages."""

    version_format: ClassVar[str] = f"relay-opt {__version__} on xDSL {{xdsl_version}}"

    def __init__(self, args: Sequence[str] | None = None):
        self.doing = ""
        self.module: ModuleOp | None = None
        self.report = ""
        self.exit_code = 0
        self.held = HeldText()
        self.universe = everything()
        given = with_passes_of_flags(sys.argv[1:] if args is None else args, self.universe.all_passes)
        super().__init__("Read a module, run passes on it, and print it.", given)

    def register_all_dialects(self) -> None:
        self.ctx = make_context()
        for name, factory in self.universe.all_dialects.items():
            if name not in self.ctx.registered_dialect_names:
                self.ctx.register_dialect(name, factory)

    def register_all_passes(self) -> None:
        self.available_passes.update(self.universe.all_passes)

    def register_all_targets(self) -> None:
        self.available_targets.update(self.universe.all_targets)
        self.available_targets["llvm"] = self.available_targets["llvm-ir"]

    def register_all_frontends(self) -> None:
        self.available_frontends["mlir"] = self.read_mlir
        for name, format in MODELS.items():
            self.available_frontends[name] = partial(self.read_model, format.importer)

    def register_all_arguments(self, arg_parser: ArgumentParser) -> None:
        def error(message: str) -> NoReturn:
            raise InvalidArgument("relay-opt", message, "see relay-opt --help")

        arg_parser.prog, arg_parser.error, self.parser = "relay-opt", error, arg_parser
        arg_parser.usage, plain = "relay-opt [OPTION]... [FILE]", arg_parser.format_help
        arg_parser.format_help = lambda: plain() + "\n" + names_of_passes(dialects_passes() | self.universe.all_passes)
        options = Sorted(arg_parser)
        super().register_all_arguments(options)
        add_arguments(options)
        culprit.add_arguments(options)
        options.add_argument(
            "--load",
            metavar="FILE",
            action="append",
            default=[],
            help="run a Python file that registers compilers or passes",
        )
        options.add_argument(
            "--partition-report",
            action="store_true",
            help="print which ops external compilers take, and why they refuse others",
        )
        options.add_argument("--list-passes", action="store_true", help="print what each pass does, xDSL's included")
        options.add_argument(
            "--list-patterns",
            action="store_true",
            help="print the rewrite patterns of legalize for the target of --attach-target",
        )
        irdl = "print relay's dialects, and the dialect NAME if given, in IRDL, which mlir-opt --irdl-file reads"
        options.add_argument("--emit-irdl", nargs="?", const="", metavar="NAME", help=irdl)
        options.add_argument("--completion", choices=SCRIPTS, help="print a script for completion in this shell")
        options.add_argument("--weights", metavar="FILE", help="safetensors file of the weights that the text elides")
        options.add_argument("--save-weights", metavar="FILE", help="write the elided weights to FILE as safetensors")
        options.add_argument(
            "--batch", type=int, metavar="N", help="batch size of a model, or of text whose batch is `?`"
        )
        options.add_argument(
            "--shape",
            metavar="NAME=1x1280",
            action="append",
            default=[],
            help="import a model file with this shape of the input NAME",
        )
        options.add_argument(
            "--numerics",
            metavar="NAME",
            help="runtime whose integer arithmetic a quantized model reproduces: litert (default), litert-1.2, tflm, "
            "xnnpack (default for .pt2), ort (default for .onnx), tvm; or qdq: floats, as QDQ models are written",
        )
        options.add_argument("--outputs", metavar="A,B", help="import a model file with these tensors as its outputs")
        style = options.groups["output"].add_mutually_exclusive_group()
        style.add_argument(
            "--elide-weights", action="store_true", help="print weights over 1 KiB by name only (default)"
        )
        style.add_argument("--print-weights", action="store_true", help="print every weight in full")

    def setup_pipeline(self) -> None:
        for path in self.args.load:
            load(path)
        if self.args.output_file == "-":
            self.args.output_file = None
        culprit.check(self.args, self.parser.error)
        if self.args.attach_target is not None and not self.args.attach_target.strip():
            self.parser.error("--attach-target names no target: write one, such as --attach-target llvm")
        if self.args.target == "llvm":
            self.args.target = "llvm-ir"
        named = self.args.show_pipeline and self.args.target not in ("mlir", "llvm-ir")
        self.built_for = self.args.attach_target or (self.args.target if named else "llvm")
        self.chosen = pipeline_of(self.args, self.built_for, self.available_passes)

    def run(self) -> None:
        """Read the module, run the passes, write the result. The file named by `-o` is written only if everything
        succeeded."""
        if self.args.list_passes:
            list_passes(dialects_passes() | self.available_passes)
            return
        if self.args.list_patterns:
            list_patterns(self.built_for)
            return
        if self.args.emit_irdl is not None:
            others = [dialect_of(known(name)) for name in self.args.emit_irdl.split(",") if name]
            self.write(to_irdl([*dialects(), *others]))
            return
        if self.args.completion is not None:
            values = {"target": self.available_targets, "opt_level": map(str, LEVELS)}
            print(script(self.args.completion, self.parser, values, dialects_passes() | self.available_passes), end="")
            return
        if self.args.show_pipeline:
            level = PassContext.current().opt_level if self.args.opt_level is None else self.args.opt_level
            print(show(self.chosen, context_of(self.args), self.built_for, level))
            return
        if (self.args.split_input_file or self.args.verify_diagnostics) and not self.args.shrink:
            self.run_pieces()
        else:
            super().run()
        if self.args.output_file is not None and self.exit_code == 0:
            self.write(self.held.text)

    def run_pieces(self) -> None:
        """Process each piece of a split input; after a failing piece the others are still processed, as in mlir-opt.

        With --verify-diagnostics an error is accepted if a comment of the piece expects it there; in a piece without
        such comments errors are printed as xDSL's tool does.
        """
        from relay.tools.expected import expected, unmet  # here: few runs need it

        (pieces, format), output = self.prepare_input(), self.prepare_output()
        for number, (piece, first) in enumerate(pieces):
            if number:
                output.write("// -----\n")
            text = piece.read().decode("utf-8", "replace") if self.args.verify_diagnostics else ""
            piece.seek(0)
            commented, error = "expected-" in text, ""
            try:
                if (module := self.parse_chunk(piece, format, first)) is not None:
                    self.apply_passes(module)
                    output.write(self.output_resulting_program(module))
            except Exception as raised:
                if isinstance(raised, ParseError):
                    raised.span = replace(raised.span, line_offset=first)
                    shown = self.args.parsing_diagnostics
                else:
                    shown = self.args.verify_diagnostics and isinstance(raised, DiagnosticException)
                if shown and not commented:
                    print(raised, *getattr(raised, "__notes__", ()), sep="\n")
                else:
                    error = line_of(raised, self.get_input_name(), self.doing, self.module)
            output.flush()
            told = unmet(expected(text, first), error, self.get_input_name()) if commented else [error] if error else []
            for line in told:
                print(line, file=sys.stderr)
            self.exit_code = 1 if told else self.exit_code
        if output is not sys.stdout:
            output.close()

    def write(self, text: str) -> None:
        """Write the text to the file that `-o` names, or else to standard output."""
        if self.args.output_file is None:
            print(text, end="")
        else:
            Path(self.args.output_file).write_text(text)

    def prepare_output(self) -> IO[str]:
        return sys.stdout if self.args.output_file is None else self.held

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        """The bytes of the input file or of standard input, and their format, recognized by content."""
        if self.args.input_file in (None, "-"):
            data = sys.stdin.buffer.read()
        else:
            try:
                data = read_file(self.args.input_file, pipe=True)
            except ValueError as error:
                raise InvalidArgument(f"file {self.args.input_file!r}", str(error)) from None
        format = importable(data, self.get_input_name())
        if format != "mlir":
            self.args.split_input_file = False
        return BytesIO(data), format

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp | None:
        self.doing, self.module, self.first_line, self.imported = "", None, start_offset, False
        self.module = super().parse_chunk(chunk, file_extension)
        if self.module is not None and self.args.weights is not None:
            IRModule(self.module).bind(load_weights(self.args.weights))
        if self.module is not None and self.args.batch is not None and not self.imported:
            self.check(self.module)
            from relay.transforms.batch import with_batch  # here: it loads the interpreter

            self.module = with_batch(IRModule(self.module), self.args.batch).op
        return self.module

    def read_mlir(self, stream: IO[bytes]) -> ModuleOp:
        """Parse MLIR text; a piece of a split file may hold comments only. Without `-p`, the pipeline of a crash
        reproducer in the text is used. Raises InvalidArgument for options that only apply to model files."""
        for option in ("numerics", "outputs", "shape"):
            if getattr(self.args, option) not in (None, []):
                raise InvalidArgument(f"--{option}", "is for files of models", "MLIR text is imported already")
        text = stream.read().decode("utf-8-sig")
        reproduced = reproduced_pipeline(text)
        if reproduced is not None and not self.args.passes:
            self.chosen = parse_pipeline(reproduced, self.available_passes)
        if self.args.split_input_file and COMMENTS.fullmatch(text):
            return ModuleOp([])
        parser = LocatingParser(self.ctx, text, self.get_input_name(), self.first_line)
        return parser.parse_module(not self.args.no_implicit_module)

    def read_model(self, importer: str, stream: IO[bytes]) -> ModuleOp:
        """Import a model file with the importer of that name; a file on disk is named in errors and locations."""
        path = Path(self.args.input_file or "-")
        self.imported = True
        options: dict[str, Any] = {"batch": self.args.batch}
        if self.args.numerics is not None:
            options["numerics"] = self.args.numerics
        if self.args.shape:
            options["shapes"] = dict(map(shape_of, self.args.shape))
        if self.args.outputs is not None:
            names: list[str] = self.args.outputs.split(",")
            numbers = importer == "from_tflite"  # tensors of other formats may be called "12"
            options["outputs"] = [int(name) if numbers and name.isdecimal() else name for name in names]
        function: Callable[..., IRModule] = getattr(frontend, importer)
        return function(path if path.is_file() else stream.read(), **options).op

    def apply_passes(self, prog: ModuleOp) -> None:
        watchers = Watchers(self.args)
        ctx = context_of(self.args).with_instruments([Progress(self), *watchers.instruments])
        try:
            self.check(prog)
            with ctx:
                if self.args.find_culprit:
                    code, self.report = culprit.search(prog, self.chosen, self.args)
                    self.exit_code = 1 if 1 in (code, self.exit_code) else max(code, self.exit_code)
                    return
                self.chosen.apply(prog, self.ctx)
            if self.args.partition_report:
                print(IRModule(prog).partition_report(), file=sys.stderr)
        except RelayError as error:
            if self.args.verify_diagnostics:
                raise PassFailedException(str(error)) from error
            raise
        finally:
            watchers.report()
            for diagnostic in ctx.diagnostics.diagnostics:
                print(diagnostic, file=sys.stderr)

    def check(self, prog: ModuleOp) -> None:
        """Verify the module unless --disable-verify is given; if several ops are invalid, all of them are reported."""
        if self.args.disable_verify and not self.args.verify_each:
            return
        try:
            prog.verify()
        except VerifyException:
            found, report = list(invalid(prog)), Reporter()
            if len(found) > 1:
                for op, message in found:
                    report.error(op, message)
                report.raise_errors(f"{self.get_input_name()}: {self.doing}".removesuffix(": "))
            raise
        symbols.verify(prog)

    def output_resulting_program(self, prog: ModuleOp) -> str:
        if self.args.find_culprit:
            return self.report
        self.doing = f"target {self.args.target}"
        if self.args.save_weights is not None:
            IRModule(prog).save_weights(self.args.save_weights)
        if self.args.print_weights and self.args.target == "mlir":
            return IRModule(prog).to_text(
                weights=True, generic=self.args.print_op_generic, locations=self.args.print_debuginfo
            )
        return super().output_resulting_program(prog)


class Progress(PassInstrument):
    """Records which pass the tool is running, for its error messages, and verifies the module after each pass."""

    def __init__(self, tool: RelayOptMain):
        self.tool = tool

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.tool.doing = f"pass {info.name}"

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.tool.doing = f"after pass {info.name}"
        self.tool.check(mod.op)
        self.tool.doing = ""


@contextmanager
def deprecations_told() -> Generator[None]:
    """A context manager in which deprecation warnings are printed as one line each on standard error."""
    with warnings.catch_warnings():
        other = warnings.showwarning

        def tell(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if issubclass(category, DeprecationWarning):
                print(f"relay-opt: warning: {message}", file=sys.stderr)
            else:
                other(message, category, *where)

        warnings.simplefilter("default", DeprecationWarning)
        warnings.showwarning = tell
        yield


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool. Returns the exit code: 0; 1 after an error, which is one line on standard error, or after
    --find-culprit found a culprit, reported on standard output; 2 if --find-culprit could not compare all passes."""
    tool = None
    try:
        with deprecations_told():
            tool = RelayOptMain(args)
            tool.run()
        sys.stdout.flush()
    except (SystemExit, KeyboardInterrupt):
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except BaseException as error:
        if os.environ.get(TRACEBACK) == "1":
            traceback.print_exc()
        sys.stdout.flush()
        if tool is None:
            line = line_of(error, "relay-opt")
        else:
            line = line_of(error, tool.get_input_name(), tool.doing, tool.module)
        print(line, file=sys.stderr)
        return 1
    return tool.exit_code


if __name__ == "__main__":
    sys.exit(main())
