"""Options that several subcommands share: the model and how it is compiled, its inputs, and the output format."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click
from click.shell_completion import CompletionItem

from relay.errors import InvalidArgument, RelayError
from relay.tables import aligned
from relay.tools.shapes import shape_of

F = TypeVar("F", bound=Callable[..., Any])
Names = Callable[[], "list[str]"]


@dataclass(frozen=True)
class Manner:
    """The values of the options that stand before the subcommand."""

    quiet: bool = False
    progress: bool | None = None

    def note(self, text: str) -> None:
        """Print a message that is not part of the result on standard error, unless --quiet is given."""
        if not self.quiet:
            click.echo(text, err=True)


def targets() -> list[str]:
    """The names of known targets."""
    from relay.target import names

    return names()


def profiles() -> list[str]:
    """The runtimes whose integer arithmetic importers can reproduce, as `--numerics` names them."""
    from relay.frontend.onnx.import_graph import NUMERICS
    from relay.frontend.tflite.profiles import PROFILES

    return list(dict.fromkeys((*PROFILES, *NUMERICS)))


def compilers() -> list[str]:
    """The names of the registered external compilers."""
    from relay.byoc import registry

    return registry.names()


def formats() -> list[str]:
    """The names of the formats that can be imported."""
    from relay.frontend.importing.formats import FORMATS

    return [name for name, each in FORMATS.items() if not each.hint]


def peers() -> list[str]:
    """The names of the other runtimes that can be timed with `relay bench --against`."""
    from relay.tools.peers import PEERS

    return [name for name in PEERS if name != "ours"]


def completing(names: Names) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """A completion function that offers the names that `names` returns when completion is requested."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in names() if name.startswith(incomplete)]

    return complete


class ModelCommand(click.RichCommand):
    """A command that takes a model; its help ends with the known formats, and the names that its options `--target`,
    `--numerics` and `--external` take."""

    def format_help(self, ctx: click.Context, formatter: Any) -> None:
        lists: dict[str, Names] = {"Formats": formats}
        for option, names in {"--target": targets, "--numerics": profiles, "--external": compilers}.items():
            if any(option in each.opts for each in self.params):
                lists[option] = names
        self.epilog = "\n\n".join(f"{title}: {', '.join(names())}" for title, names in lists.items())
        super().format_help(ctx, formatter)


MODEL = click.Path(exists=True, dir_okay=False)


def _batch_size(text: str) -> int | str:
    """A number of at least 1, or the name of an open size, which `relay.build` accepts in its place."""
    try:
        number = int(text)
    except ValueError:
        return text
    if number < 1:
        raise click.BadParameter(f"{number} is not in the range x>=1")
    return number


IMPORT_OPTIONS = (
    click.option("--batch", type=_batch_size, metavar="N",
                 help="images per run; a name, such as n, leaves the number open until the run (default: the model's)"),
    click.option("--shape", multiple=True, metavar="NAME=1x224x224x3", help="import with this shape of the input NAME"),
    click.option("--numerics", metavar="NAME", shell_complete=completing(profiles),
                 help="runtime whose integer arithmetic is reproduced (default: litert; .onnx: ort; .pt2: xnnpack)"),
    click.option("--outputs-of", "tensors", metavar="A,B",
                 help="return these tensors of the model, given by name or number, instead of its outputs"),
)  # fmt: skip
TARGET = click.option("--target", default="llvm", metavar="TARGET", shell_complete=completing(targets),
                      help="the target to compile for (default: llvm, this machine)")  # fmt: skip
MODEL_OPTIONS = (
    TARGET,
    *IMPORT_OPTIONS,
    click.option("--external", metavar="A,B", shell_complete=completing(compilers),
                 help="external compilers for the operators that they support; relay compiles the others"),
    click.option("--exact", is_flag=True,
                 help="with --external: give a compiler only operators that it computes bit-exactly"),
    click.option("-O", "opt_level", type=click.IntRange(0, 4), metavar="LEVEL",
                 help="optimization level, 0 to 4; integer results do not depend on it (default: 2)"),
    click.option("--num-threads", type=click.IntRange(1), metavar="N",
                 help="threads that a run may use (default: 1)"),
    click.option("--memory-limit", type=click.IntRange(0), metavar="BYTES",
                 help="fail if the arena of intermediate tensors is larger, and name the layer at its peak"),
    click.option("--records", multiple=True, type=MODEL, metavar="FILE",
                 help="schedules that `relay tune` found; repeat the option to merge files"),
)  # fmt: skip
INPUT_OPTIONS = (
    click.option("--inputs", type=MODEL, metavar="FILE.npz",
                 help="arrays of the inputs, matched by name, or else in order"),
    click.option("--input", "given", multiple=True, metavar="NAME=FILE",
                 help="the file of one input: .npy, .npz or an image"),
    click.option("--fill", type=click.Choice(["random", "zeros", "ones"]), default="random",
                 help="values of inputs for which no file is given (default: random)"),
    click.option("--seed", type=click.IntRange(0), metavar="N", default=0, help="seed of random inputs (default: 0)"),
    click.option("--pixels", metavar="LOW..HIGH",
                 help="values of black and white in images (default: the range of 8-bit inputs; 0..1 for others)"),
)  # fmt: skip
JSON = click.option("--json", "as_json", is_flag=True, help="print the result as JSON")


def _given_to(options: Sequence[Callable[[F], F]], function: F) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def import_options(function: F) -> F:
    """Give a command the options by which a model is imported."""
    return _given_to(IMPORT_OPTIONS, function)


def model_options(function: F) -> F:
    """Give a command the options by which a model is imported and compiled."""
    return _given_to(MODEL_OPTIONS, function)


def input_options(function: F) -> F:
    """Give a command the options that specify a model's inputs."""
    return _given_to(INPUT_OPTIONS, function)


def arguments_of(chosen: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a command's options into two dictionaries: the keyword arguments of `relay.build`, in which the key
    `frontend` holds the importer's options; and all other options. Raises InvalidArgument."""
    build: dict[str, Any] = {}
    for key in ("target", "batch", "opt_level", "num_threads", "memory_limit"):
        if (value := chosen.pop(key, None)) is not None and (key, value) != ("target", "llvm"):
            build[key] = value
    if "target" in build:
        _check_target(build["target"])
    if external := chosen.pop("external", None):
        build["external"] = [known(name, compilers(), "--external") for name in external.split(",")]
    if chosen.pop("exact", False):
        if not external:
            raise InvalidArgument("--exact", "is for external compilers, and none is named", "add --external NAME")
        build["exact"] = True
    if files := chosen.pop("records", ()):
        from relay.compile.records import Records

        build["records"] = Records({})
        for file in files:
            build["records"] |= Records.load(file)
    frontend: dict[str, Any] = {}
    if numerics := chosen.pop("numerics", None):
        frontend["numerics"] = known(numerics, profiles(), "--numerics")
    if shapes := chosen.pop("shape", ()):
        frontend["shapes"] = dict(map(shape_of, shapes))
    if tensors := chosen.pop("tensors", None):
        frontend["outputs"] = [int(name) if name.isdecimal() else name for name in tensors.split(",")]
    if frontend:
        build["frontend"] = frontend
    return build, chosen


def known(name: str, names: Sequence[str], option: str) -> str:
    """The name, if it is one of `names`. Raises InvalidArgument, naming the option, otherwise."""
    if name not in names:
        raise InvalidArgument(option, f"{name!r} is not known", f"known are {', '.join(names)}")
    return name


def _check_target(text: str) -> None:
    """Raise InvalidArgument, naming the option, if the text is no target."""
    from relay.target import resolve

    try:
        resolve(text)
    except RelayError as error:
        raise InvalidArgument(f"--{error.where}", error.what, error.hint) from None


def module(file: str, build: dict[str, Any]) -> Any:
    """Import the model of a file. `build` has `relay.build`'s arguments, of which `frontend` and `batch` are used.
    Raises RelayError."""
    from relay.frontend import import_model
    from relay.frontend.importing.formats import importable

    frontend, batch = dict(build.get("frontend", {})), build.get("batch")
    if batch is not None and importable(file, file) == "mlir":
        from relay.transforms.batch import with_batch

        return with_batch(import_model(file, frontend), batch)
    return import_model(file, frontend if batch is None else {**frontend, "batch": batch})


def is_saved(file: str) -> bool:
    """Whether a file is an executable that relay saved."""
    from relay.runtime import container

    return container.is_saved(file)


def executable(file: str, build: dict[str, Any], manner: Manner) -> Any:
    """Load the executable of a file, or compile it if it is a model. Raises RelayError."""
    from relay import runtime

    if not is_saved(file):
        import relay

        return relay.build(file, **build, progress=manner.progress)
    threads = build.get("num_threads", 1)
    if more := sorted(set(build) - {"num_threads"}):
        raise InvalidArgument(file, "is compiled already", f"leave out {', '.join(more)}")
    return runtime.load(file, num_threads=threads)


def rows(lines: list[list[str]], right: frozenset[int] = frozenset()) -> str:
    """Format a table with aligned columns; the columns whose indices are in `right` are aligned right."""
    return "\n".join(aligned(lines, right))


def show(value: Any, text: str, as_json: bool) -> None:
    """Print a result, as the text or as JSON."""
    click.echo(json.dumps(value, indent=1) if as_json else text)


def stem_of(file: str) -> str:
    """The stem of a file name, changed to be a C identifier."""
    stem = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in Path(file).stem)
    return stem if stem[:1].isalpha() or stem[:1] == "_" else f"model_{stem}"
