"""External compilers ("bring your own codegen"): what a plug-in derives from, and how it is found.

Every name is imported when it is first used: loaders live below this package and run without the compiler.
"""

from __future__ import annotations

from relay.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relay.byoc.arena import Buffer, place
    from relay.byoc.calibrating import Edges, calibration
    from relay.byoc.compiler import Artifact, BuildInfo, Compiler, Refusal
    from relay.byoc.composition import build_external_compiler, external_pipeline
    from relay.byoc.measuring import Difference, differences
    from relay.byoc.partitioning.annotate_external_compiler import AnnotateExternalCompiler
    from relay.byoc.partitioning.annotate_target import AnnotateTarget
    from relay.byoc.partitioning.inline_partitions import InlinePartitions
    from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
    from relay.byoc.partitioning.merge_composite import MergeComposite
    from relay.byoc.partitioning.partition_graph import PartitionGraph
    from relay.byoc.partitioning.prune_regions import PruneRegions
    from relay.byoc.patterns import (
        Entry,
        Match,
        Pattern,
        is_constant,
        is_elementwise,
        is_expr,
        is_op,
        is_output,
        is_var,
        wildcard,
    )
    from relay.byoc.quantized import Product, read_product
    from relay.byoc.regions import Kernel, Region, Values
    from relay.byoc.registry import find, names, register
    from relay.byoc.report import partition_report
    from relay.partition_report import PartitionReport


# Written by `python docs/generate.py`; do not edit what follows: it is made of the imports above.
__getattr__, __dir__ = door(
    __name__,
    {
        "AnnotateExternalCompiler": "relay.byoc.partitioning.annotate_external_compiler",
        "AnnotateTarget": "relay.byoc.partitioning.annotate_target",
        "Artifact": "relay.byoc.compiler",
        "Buffer": "relay.byoc.arena",
        "BuildInfo": "relay.byoc.compiler",
        "Compiler": "relay.byoc.compiler",
        "Difference": "relay.byoc.measuring",
        "Edges": "relay.byoc.calibrating",
        "Entry": "relay.byoc.patterns",
        "InlinePartitions": "relay.byoc.partitioning.inline_partitions",
        "Kernel": "relay.byoc.regions",
        "Match": "relay.byoc.patterns",
        "MergeCompilerRegions": "relay.byoc.partitioning.merge_compiler_regions",
        "MergeComposite": "relay.byoc.partitioning.merge_composite",
        "PartitionGraph": "relay.byoc.partitioning.partition_graph",
        "PartitionReport": "relay.partition_report",
        "Pattern": "relay.byoc.patterns",
        "Product": "relay.byoc.quantized",
        "PruneRegions": "relay.byoc.partitioning.prune_regions",
        "Refusal": "relay.byoc.compiler",
        "Region": "relay.byoc.regions",
        "Values": "relay.byoc.regions",
        "build_external_compiler": "relay.byoc.composition",
        "calibration": "relay.byoc.calibrating",
        "differences": "relay.byoc.measuring",
        "external_pipeline": "relay.byoc.composition",
        "find": "relay.byoc.registry",
        "is_constant": "relay.byoc.patterns",
        "is_elementwise": "relay.byoc.patterns",
        "is_expr": "relay.byoc.patterns",
        "is_op": "relay.byoc.patterns",
        "is_output": "relay.byoc.patterns",
        "is_var": "relay.byoc.patterns",
        "names": "relay.byoc.registry",
        "partition_report": "relay.byoc.report",
        "place": "relay.byoc.arena",
        "read_product": "relay.byoc.quantized",
        "register": "relay.byoc.registry",
        "wildcard": "relay.byoc.patterns",
    },
)

__all__ = [
    "AnnotateExternalCompiler", "AnnotateTarget", "Artifact", "Buffer", "BuildInfo", "Compiler", "Difference", "Edges",
    "Entry", "InlinePartitions", "Kernel", "Match", "MergeCompilerRegions", "MergeComposite", "PartitionGraph",
    "PartitionReport", "Pattern", "Product", "PruneRegions", "Refusal", "Region", "Values", "build_external_compiler",
    "calibration", "differences", "external_pipeline", "find", "is_constant", "is_elementwise", "is_expr", "is_op",
    "is_output", "is_var", "names", "partition_report", "place", "read_product", "register", "wildcard",
]  # fmt: skip
