"""`relay-explore`: shows how a pipeline changes a module pass by pass, in the browser or as one HTML file."""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import sys
import tempfile
import threading
import traceback
import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from xdsl.utils.exceptions import VerifyException

from relay import __version__
from relay.dialects.context import make_context
from relay.dialects.source import LocatingParser
from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.files import read_file
from relay.frontend import import_model
from relay.frontend.importing.formats import importable
from relay.module import IRModule
from relay.plug_ins import installation
from relay.tools import plug_ins
from relay.tools.failure import TRACEBACK, line_of
from relay.tools.help import INPUT
from relay.tools.pipeline_options import add_level
from relay.viewer.recording import Explain, Recording


def arguments(args: Sequence[str] | None) -> Namespace:
    """Parse the command line. Raises InvalidArgument."""

    class Parser(ArgumentParser):
        """An argument parser whose errors are raised as InvalidArgument."""

        def error(self, message: str) -> NoReturn:
            raise InvalidArgument("relay-explore", message, "see relay-explore --help")

    parser = Parser("relay-explore", description="Show what each pass of a pipeline does to a module, in the browser.")
    parser.add_argument("file", help=INPUT)
    parser.add_argument(
        "-p", "--passes", metavar="PIPELINE", help="passes to run instead of relay.build's; '' runs none"
    )
    add_level(parser)
    parser.add_argument("--target", default="llvm", help="target to compile for (default: llvm, this machine)")
    parser.add_argument("--verify-each", action="store_true", help="verify the module after each pass")
    parser.add_argument("--weights", metavar="FILE", help="safetensors file of the weights that MLIR text elides")
    parser.add_argument(
        "--load",
        metavar="FILE",
        action="append",
        default=[],
        help="run a Python file that registers passes or compilers",
    )
    parser.add_argument("--html", metavar="FILE", help="write one self-contained page to FILE instead of serving it")
    parser.add_argument(
        "--profile", action="store_true", help="build and run the model, and colour the graph by run time"
    )
    parser.add_argument("--port", type=int, default=0, help="the port on 127.0.0.1 (default: any free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address without opening a browser")
    parser.add_argument(
        "--version", action="version", version=f"relay-explore {__version__}", help="print the version and exit"
    )
    return parser.parse_args(args)


def load(path: str, weights: str | None) -> IRModule:
    """Load the module of a file: MLIR text, whose ops get their line numbers as locations, or a model. Raises
    RelayError."""
    data = read_file(path, pipe=True)
    if importable(data, path) != "mlir":
        return import_model(path, {})
    mod = IRModule(LocatingParser(make_context(), data.decode(), path).parse_module())
    try:
        mod.op.verify()
    except VerifyException as error:
        where, _, what = line_of(error, path, module=mod.op).partition(": ")
        raise Malformed(where, what) from None
    if weights is not None:
        from relay.module import load_weights

        mod.bind(load_weights(weights))
    return mod


def explainer(file: str) -> Explain:
    """A function that formats errors as relay-opt does, naming `file`."""
    return lambda error, doing: line_of(error, file, doing)


def heat_of(args: Namespace) -> Mapping[str, float]:
    """The share of a run's time by operator, measured by building and profiling the model if --profile is given; else
    empty."""
    if not args.profile:
        return {}
    import relay

    return relay.build(args.file, args.target, opt_level=args.opt_level).profile().heat


def write_report(args: Namespace) -> int:
    """Run the pipeline and write the page that shows it. Returns 0, or 1 if a pass failed, which the page shows."""
    from relay.viewer.page import report

    recording = Recording(
        load(args.file, args.weights),
        args.passes,
        target=args.target,
        opt_level=args.opt_level,
        verify=args.verify_each,
        name=Path(args.file).name,
        explain=explainer(args.file),
        heat=heat_of(args),
    )
    record = recording.run()
    Path(args.html).write_text(report(record), encoding="utf-8")
    if record.error:
        print(record.error, file=sys.stderr)
    return 1 if record.error else 0


def serve(args: Namespace) -> int:
    """Serve the page on 127.0.0.1 until Ctrl-C. Raises Unsupported if a package that the server needs is missing."""
    try:
        from relay.viewer import server
    except ModuleNotFoundError as error:
        raise Unsupported(
            "relay-explore", f"the package {error.name} is not installed", installation("explore")
        ) from None
    from relay.viewer.session import Session

    name = Path(args.file).name
    session = Session(load(args.file, args.weights), name, args.target, explainer(args.file), heat_of(args))
    session.start(args.passes, args.opt_level, args.verify_each)
    with server.listen(args.port) as socket:
        port, token = socket.getsockname()[1], secrets.token_urlsafe(24)
        address = f"http://127.0.0.1:{port}/?token={token}"
        print(f"relay-explore shows {name} at {address}\nCtrl-C ends it", flush=True)
        if not args.no_browser:
            threading.Thread(target=open_browser, args=(address,), daemon=True).start()
        server.make_server(server.application(session, token, port)).run(sockets=[socket])
    return 0


def open_browser(address: str) -> None:
    """Open the address in the browser through a redirect in a file that only this user can read: other users can see a
    program's arguments, and whoever has the address's token can start programs."""
    folder = tempfile.mkdtemp(prefix="relay-explore-")  # created with mode 0700
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    page = Path(folder, "open.html")
    page.touch(0o600)
    page.write_text(f'<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={address}"><title>relay</title>')
    webbrowser.open(page.as_uri())


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool. Returns the exit code: 0, or 1 after one line about the error on standard error."""
    file = "relay-explore"
    try:
        parsed = arguments(args)
        file = parsed.file
        for path in parsed.load:
            plug_ins.load(path)
        return serve(parsed) if parsed.html is None else write_report(parsed)
    except KeyboardInterrupt:
        return 0
    except Exception as error:
        if os.environ.get(TRACEBACK) == "1":
            traceback.print_exc()
        print(line_of(error, file), file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
