"""External compilers ("bring your own codegen"): the base class of plug-ins, their registry, and the partitioning of a
module. May import `frontend`, `lowering`, the layers below them, and `runtime`.

Every name is imported when it is first used, since loaders are modules of this package and run without the compiler.
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
__getattr__, __dir__ = door(__name__, {
    "relay.byoc.arena": "Buffer place",
    "relay.byoc.calibrating": "Edges calibration",
    "relay.byoc.compiler": "Artifact BuildInfo Compiler Refusal",
    "relay.byoc.composition": "build_external_compiler external_pipeline",
    "relay.byoc.measuring": "Difference differences",
    "relay.byoc.partitioning.annotate_external_compiler": "AnnotateExternalCompiler",
    "relay.byoc.partitioning.annotate_target": "AnnotateTarget",
    "relay.byoc.partitioning.inline_partitions": "InlinePartitions",
    "relay.byoc.partitioning.merge_compiler_regions": "MergeCompilerRegions",
    "relay.byoc.partitioning.merge_composite": "MergeComposite",
    "relay.byoc.partitioning.partition_graph": "PartitionGraph",
    "relay.byoc.partitioning.prune_regions": "PruneRegions",
    "relay.byoc.patterns": "Entry Match Pattern is_constant is_elementwise is_expr is_op is_output is_var wildcard",
    "relay.byoc.quantized": "Product read_product",
    "relay.byoc.regions": "Kernel Region Values",
    "relay.byoc.registry": "find names register",
    "relay.byoc.report": "partition_report",
    "relay.partition_report": "PartitionReport",
})  # fmt: skip

__all__ = [
    "AnnotateExternalCompiler", "AnnotateTarget", "Artifact", "Buffer", "BuildInfo", "Compiler", "Difference", "Edges",
    "Entry", "InlinePartitions", "Kernel", "Match", "MergeCompilerRegions", "MergeComposite", "PartitionGraph",
    "PartitionReport", "Pattern", "Product", "PruneRegions", "Refusal", "Region", "Values", "build_external_compiler",
    "calibration", "differences", "external_pipeline", "find", "is_constant", "is_elementwise", "is_expr", "is_op",
    "is_output", "is_var", "names", "partition_report", "place", "read_product", "register", "wildcard",
]  # fmt: skip
