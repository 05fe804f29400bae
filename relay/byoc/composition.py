"""Partitioning a module for external compilers in one call, composed of the public passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from relay.byoc import registry, settings
from relay.byoc.partitioning.annotate_external_compiler import AnnotateExternalCompiler
from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
from relay.byoc.partitioning.partition_graph import PartitionGraph
from relay.byoc.partitioning.prune_regions import PruneRegions
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes import Pipeline
from relay.passes.info import as_module
from relay.passes.runner import Runner

Targets = str | Sequence[str] | Mapping[str, Mapping[str, object]]
"""Compilers by name, the first one preferred; in a mapping, with the options of each."""


def external_pipeline(
    target: Targets,
    *,
    mod_name: str = "relay",
    constants: str = "bind",
    choose: str = "order",
    prune: PruneRegions | None = None,
) -> Pipeline:
    """The passes that `build_external_compiler` runs, to be listed and edited: `annotate-external-compiler`,
    `merge-compiler-regions`, `prune-regions`, `partition-graph`. Raises the errors of `relay.byoc.find`."""
    options = options_of(target)
    for name, given in options.items():
        registry.find(name, given)
    passes: list[ModulePass | Pipeline] = [
        AnnotateExternalCompiler(tuple(options), choose=choose),
        MergeCompilerRegions(),
        prune or PruneRegions(compute=False),
        PartitionGraph(mod_name=mod_name, constants=constants),
    ]
    return Pipeline(passes)


def build_external_compiler(
    mod: IRModule | ModuleOp,
    target: Targets,
    *,
    exact: bool | None = None,
    mod_name: str = "relay",
    constants: str = "bind",
    choose: str = "order",
    prune: PruneRegions | None = None,
) -> IRModule:
    """Partition a module for external compilers: returns a new module in which each region that a compiler takes is a
    function with the attribute `compiler`, called by the host's functions. `relay.build` then has the compilers compile
    these.

    `target` names the compilers: "x", ["x", "y"], or with options {"x": {"threads": 2}}. If several take an op, the
    first gets it. With `choose="cost"` the cheapest of several plans is used; one of these plans leaves all ops to the
    host. The cost of a region is its compiler's own estimate, the cost of the host's ops an estimate from their
    schedules. With
    `choose="measured"` each region is timed instead, with its compiler and on the host, once on this machine.
    `exact=True` takes no op whose integers might differ from the reference's. `mod_name` is the prefix of the
    functions' names. `constants` says where the constants of a region are: inside its function ("bind"), among the
    function's arguments ("hoist"), or inside it and, once compiled, in the artifact ("vendor"). `prune` decides which
    regions return to the host; by default only those whose cost the compiler calls infinite.

    Raises InvalidArgument for an unknown compiler or option, Unsupported for a compiler that is not installed. A
    compiler's refusal is no error: `partition_report()` of the new module gives the reason.
    """
    module = as_module(mod).clone()
    settings.write(module.op, options_of(target), exact)
    pipeline = external_pipeline(target, mod_name=mod_name, constants=constants, choose=choose, prune=prune)
    Runner(module.op).run(pipeline.items, explicit=True)
    return module


def options_of(target: Targets) -> dict[str, dict[str, object]]:
    """The options of each compiler by name, in the order of the names. Raises InvalidArgument."""
    if isinstance(target, str):
        target = target.split(",")
    try:
        if isinstance(target, Mapping):
            options = {name.strip(): dict(row) for name, row in target.items()}
        else:
            options = {name.strip(): dict[str, object]() for name in target if name.strip()}
    except (TypeError, ValueError, AttributeError):
        hint = "give a name, names, or a mapping of names to options"
        raise InvalidArgument("external compiler", f"is {target!r}", hint) from None
    if not options:
        raise InvalidArgument(
            "target", "names no external compiler", f"there are {', '.join(registry.names()) or 'none'}"
        )
    return options
