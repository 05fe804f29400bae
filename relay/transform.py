"""Passes by their class names and by Relay's, and what composes, edits and watches them.

`mod = relay.transform.Sequential([relay.transform.Legalize(), relay.transform.FuseOps()])(mod)`

The passes of `relay.quantize` are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from xdsl.transforms.canonicalize import CanonicalizePass as Canonicalize
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination as EliminateCommonSubexpr
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from relay.byoc.partitioning.annotate_target import AnnotateTarget
from relay.byoc.partitioning.annotate_target import AnnotateTarget as AnnotateExternalCompiler
from relay.byoc.partitioning.compile_external import CompileExternal
from relay.byoc.partitioning.inline_partitions import InlinePartitions
from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.partitioning.partition_graph import PartitionGraph
from relay.byoc.partitioning.prune_regions import PruneRegions
from relay.exploration import Exploration, explore
from relay.exploration.bisection import find_culprit
from relay.lowering.bufferize import Bufferize
from relay.lowering.expand_apply_scale import ExpandApplyScale
from relay.lowering.gpu.convert_gpu_to_llvm_spv import ConvertGpuToLlvmSpv
from relay.lowering.gpu.convert_gpu_to_nvvm import ConvertGpuToNvvm
from relay.lowering.gpu.convert_parallel_loops_to_gpu import ConvertParallelLoopsToGpu
from relay.lowering.gpu.gpu_kernel_outlining import GpuKernelOutlining
from relay.lowering.gpu.gpu_module_to_binary import GpuModuleToBinary
from relay.lowering.gpu.nvvm_attach_target import NvvmAttachTarget
from relay.lowering.gpu.schedule_gpu import ScheduleGpu
from relay.lowering.math_expand_ops import MathExpandOps
from relay.lowering.parallelize import Parallelize
from relay.lowering.plan_memory import PlanMemory
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.lowering.schedule import Schedule
from relay.lowering.select_target_ops import SelectTargetOps
from relay.passes.analyses import Analysis, liveness, shapes, use_counts
from relay.passes.base import Pass, PassInfo
from relay.passes.build_config import BuildConfig
from relay.passes.checking import BisectLimit, CrashReproducer, VerifyEach
from relay.passes.context import PassContext
from relay.passes.decorators import function_pass, module_pass
from relay.passes.diagnostics import CollectedErrors
from relay.passes.instruments import PassInstrument, pass_instrument
from relay.passes.pipeline import Pipeline, Sequential
from relay.passes.printing import DumpIR, PassPrintingInstrument, PrintAfterAll, PrintBeforeAll, PrintChanged
from relay.passes.timing import OpStatistics, PassTimingInstrument
from relay.transforms.alter_op_layout import AlterOpLayout
from relay.transforms.canonicalize_cast import CanonicalizeCast
from relay.transforms.combine_parallel_conv2d import CombineParallelConv2D
from relay.transforms.combine_parallel_dense import CombineParallelDense
from relay.transforms.convert_layout import ConvertLayout
from relay.transforms.dead_pixels import DeadPixels
from relay.transforms.dynamic_to_static import DynamicToStatic
from relay.transforms.fast_math import FastMath
from relay.transforms.fold_constant import FoldConstant
from relay.transforms.fold_constant import FoldConstant as ConstFolding
from relay.transforms.fold_explicit_padding import FoldExplicitPadding
from relay.transforms.fold_scale_axis import FoldScaleAxis
from relay.transforms.fuse_ops import FuseOps
from relay.transforms.infer_types import InferTypes
from relay.transforms.infer_types import InferTypes as InferType
from relay.transforms.inline import Inline
from relay.transforms.legalize import Legalize
from relay.transforms.print_choices import PrintChoices
from relay.transforms.print_ir import PrintIR
from relay.transforms.qnn_legalize import QnnLegalize
from relay.transforms.remove_unused_functions import RemoveUnusedFunctions
from relay.transforms.simplify import Simplify
from relay.transforms.simplify import Simplify as SimplifyExpr
from relay.transforms.simplify_inference import SimplifyInference
from relay.transforms.to_mixed_precision import ToMixedPrecision
from relay.transforms.unsigned_codes import UnsignedCodes

if TYPE_CHECKING:
    from relay.quantize.equalize_layers import EqualizeLayers
    from relay.quantize.fold_qdq import FoldQdq
    from relay.quantize.quantize import Quantize
    from relay.quantize.quantize_annotate import QuantizeAnnotate
    from relay.quantize.quantize_calibrate import QuantizeCalibrate
    from relay.quantize.quantize_realize import QuantizeRealize

_HOME = {
    "EqualizeLayers": "relay.quantize.equalize_layers",
    "FoldQdq": "relay.quantize.fold_qdq",
    "Quantize": "relay.quantize.quantize",
    "QuantizeAnnotate": "relay.quantize.quantize_annotate",
    "QuantizeCalibrate": "relay.quantize.quantize_calibrate",
    "QuantizeRealize": "relay.quantize.quantize_realize",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'relay.transform' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "AlterOpLayout",
    "Analysis",
    "AnnotateExternalCompiler",
    "AnnotateTarget",
    "BisectLimit",
    "Bufferize",
    "BuildConfig",
    "Canonicalize",
    "CanonicalizeCast",
    "CollectedErrors",
    "CombineParallelConv2D",
    "CombineParallelDense",
    "CommonSubexpressionElimination",
    "CompileExternal",
    "ConstFolding",
    "ConvertGpuToLlvmSpv",
    "ConvertGpuToNvvm",
    "ConvertLayout",
    "ConvertParallelLoopsToGpu",
    "CrashReproducer",
    "DeadCodeElimination",
    "DeadPixels",
    "DumpIR",
    "DynamicToStatic",
    "EliminateCommonSubexpr",
    "EqualizeLayers",
    "ExpandApplyScale",
    "Exploration",
    "FastMath",
    "FoldConstant",
    "FoldExplicitPadding",
    "FoldQdq",
    "FoldScaleAxis",
    "FuseOps",
    "GpuKernelOutlining",
    "GpuModuleToBinary",
    "InferType",
    "InferTypes",
    "Inline",
    "InlinePartitions",
    "Legalize",
    "MathExpandOps",
    "MergeCompilerRegions",
    "MergeComposite",
    "NvvmAttachTarget",
    "OpStatistics",
    "Parallelize",
    "PartitionGraph",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "PassPrintingInstrument",
    "PassTimingInstrument",
    "Pipeline",
    "PlanMemory",
    "PrintAfterAll",
    "PrintBeforeAll",
    "PrintChanged",
    "PrintChoices",
    "PrintIR",
    "PruneRegions",
    "QnnLegalize",
    "Quantize",
    "QuantizeAnnotate",
    "QuantizeCalibrate",
    "QuantizeRealize",
    "RelayToLinalg",
    "RemoveUnusedFunctions",
    "Schedule",
    "ScheduleGpu",
    "SelectTargetOps",
    "Sequential",
    "Simplify",
    "SimplifyExpr",
    "SimplifyInference",
    "ToMixedPrecision",
    "UnsignedCodes",
    "VerifyEach",
    "explore",
    "find_culprit",
    "function_pass",
    "liveness",
    "module_pass",
    "pass_instrument",
    "shapes",
    "use_counts",
]
