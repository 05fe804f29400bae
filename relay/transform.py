"""Passes by their class names and by Relay's, and what composes, edits and watches them.

`mod = relay.transform.Sequential([relay.transform.Legalize(), relay.transform.FuseOps()])(mod)`

Every name is imported when it is first used. The passes are those of `relay.universe.PASSES`.
"""

from __future__ import annotations

from relay.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from xdsl.transforms.canonicalize import CanonicalizePass as Canonicalize
    from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
    from xdsl.transforms.common_subexpression_elimination import (
        CommonSubexpressionElimination as EliminateCommonSubexpr,
    )
    from xdsl.transforms.dead_code_elimination import DeadCodeElimination

    from relay.byoc.partitioning.annotate_external_compiler import AnnotateExternalCompiler
    from relay.byoc.partitioning.annotate_target import AnnotateTarget
    from relay.byoc.partitioning.compile_external import CompileExternal
    from relay.byoc.partitioning.inline_partitions import InlinePartitions
    from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
    from relay.byoc.partitioning.merge_composite import MergeComposite
    from relay.byoc.partitioning.partition_graph import PartitionGraph
    from relay.byoc.partitioning.prune_regions import PruneRegions
    from relay.exploration import Exploration, explore
    from relay.exploration.bisection import find_culprit
    from relay.lowering.bufferize import Bufferize
    from relay.lowering.distribute_loops import DistributeLoops
    from relay.lowering.expand_apply_scale import ExpandApplyScale
    from relay.lowering.gpu.convert_gpu_to_llvm_spv import ConvertGpuToLlvmSpv
    from relay.lowering.gpu.convert_gpu_to_nvvm import ConvertGpuToNvvm
    from relay.lowering.gpu.convert_parallel_loops_to_gpu import ConvertParallelLoopsToGpu
    from relay.lowering.gpu.gpu_kernel_outlining import GpuKernelOutlining
    from relay.lowering.gpu.gpu_module_to_binary import GpuModuleToBinary
    from relay.lowering.gpu.nvvm_attach_target import NvvmAttachTarget
    from relay.lowering.gpu.schedule_gpu import ScheduleGpu
    from relay.lowering.linalg_specialize_generic_ops import LinalgSpecializeGenericOps
    from relay.lowering.math_expand_ops import MathExpandOps
    from relay.lowering.parallelize import Parallelize
    from relay.lowering.plan_memory import PlanMemory
    from relay.lowering.relay_to_linalg import RelayToLinalg
    from relay.lowering.schedule import Schedule
    from relay.lowering.select_target_ops import SelectTargetOps
    from relay.lowering.share_kernels import ShareKernels
    from relay.lowering.share_layers import ShareLayers
    from relay.lowering.update_in_place import UpdateInPlace
    from relay.passes.analyses import Analysis, liveness, shapes, use_counts
    from relay.passes.base import Pass
    from relay.passes.build_config import BuildConfig
    from relay.passes.checking import BisectLimit, CrashReproducer, VerifyEach
    from relay.passes.context import PassContext
    from relay.passes.decorators import function_pass, module_pass
    from relay.passes.diagnostics import CollectedErrors
    from relay.passes.info import PassInfo
    from relay.passes.instruments import PassInstrument, pass_instrument
    from relay.passes.pipeline import Pipeline, Sequential
    from relay.passes.printing import DumpIR, PassPrintingInstrument, PrintAfterAll, PrintBeforeAll, PrintChanged
    from relay.passes.timing import OpStatistics, PassTimingInstrument
    from relay.quantize.equalize_layers import EqualizeLayers
    from relay.quantize.equalize_layers import EqualizeLayers as CrossLayerEqualization
    from relay.quantize.qdq_to_integer import QdqToInteger
    from relay.quantize.qdq_to_integer import QdqToInteger as FakeQuantizationToInteger
    from relay.quantize.qdq_to_integer import QdqToInteger as FoldQdq
    from relay.quantize.quantize import Quantize
    from relay.quantize.quantize import Quantize as PostTrainingQuantize
    from relay.quantize.quantize_annotate import QuantizeAnnotate
    from relay.quantize.quantize_calibrate import QuantizeCalibrate
    from relay.quantize.quantize_realize import QuantizeRealize
    from relay.quantize.weight_only import WeightOnly
    from relay.transforms.alter_op_layout import AlterOpLayout
    from relay.transforms.attach_target import AttachTarget
    from relay.transforms.caches_in_place import CachesInPlace
    from relay.transforms.canonicalize_cast import CanonicalizeCast
    from relay.transforms.combine_parallel_conv2d import CombineParallelConv2D
    from relay.transforms.combine_parallel_dense import CombineParallelDense
    from relay.transforms.convert_layout import ConvertLayout
    from relay.transforms.dead_pixels import DeadPixels
    from relay.transforms.dynamic_to_static import DynamicToStatic
    from relay.transforms.fast_math import FastMath
    from relay.transforms.fold_constant import FoldConstant
    from relay.transforms.fold_constant import FoldConstant as ConstFolding
    from relay.transforms.fold_constant import FoldConstant as ConstantFolding
    from relay.transforms.fold_explicit_padding import FoldExplicitPadding
    from relay.transforms.fold_scale_axis import FoldScaleAxis
    from relay.transforms.fuse_ops import FuseOps
    from relay.transforms.infer_types import InferTypes
    from relay.transforms.infer_types import InferTypes as InferType
    from relay.transforms.inline import Inline
    from relay.transforms.inline import Inline as InlineGlobals
    from relay.transforms.legalize import Legalize
    from relay.transforms.print_choices import PrintChoices
    from relay.transforms.print_ir import PrintIR
    from relay.transforms.qnn_legalize import QnnLegalize
    from relay.transforms.raise_ops import RaiseOps
    from relay.transforms.remove_unused_functions import RemoveUnusedFunctions
    from relay.transforms.signed_codes import SignedCodes
    from relay.transforms.simplify import Simplify
    from relay.transforms.simplify import Simplify as SimplifyExpr
    from relay.transforms.simplify_inference import SimplifyInference
    from relay.transforms.to_mixed_precision import ToMixedPrecision
    from relay.transforms.unsigned_codes import UnsignedCodes


# Written by `python docs/generate.py`; do not edit what follows: it is made of the imports above.
__getattr__, __dir__ = door(
    __name__,
    {
        "AlterOpLayout": "relay.transforms.alter_op_layout",
        "Analysis": "relay.passes.analyses",
        "AnnotateExternalCompiler": "relay.byoc.partitioning.annotate_external_compiler",
        "AnnotateTarget": "relay.byoc.partitioning.annotate_target",
        "AttachTarget": "relay.transforms.attach_target",
        "BisectLimit": "relay.passes.checking",
        "Bufferize": "relay.lowering.bufferize",
        "BuildConfig": "relay.passes.build_config",
        "CachesInPlace": "relay.transforms.caches_in_place",
        "Canonicalize": "xdsl.transforms.canonicalize:CanonicalizePass",
        "CanonicalizeCast": "relay.transforms.canonicalize_cast",
        "CollectedErrors": "relay.passes.diagnostics",
        "CombineParallelConv2D": "relay.transforms.combine_parallel_conv2d",
        "CombineParallelDense": "relay.transforms.combine_parallel_dense",
        "CommonSubexpressionElimination": "xdsl.transforms.common_subexpression_elimination",
        "CompileExternal": "relay.byoc.partitioning.compile_external",
        "ConstFolding": "relay.transforms.fold_constant:FoldConstant",
        "ConstantFolding": "relay.transforms.fold_constant:FoldConstant",
        "ConvertGpuToLlvmSpv": "relay.lowering.gpu.convert_gpu_to_llvm_spv",
        "ConvertGpuToNvvm": "relay.lowering.gpu.convert_gpu_to_nvvm",
        "ConvertLayout": "relay.transforms.convert_layout",
        "ConvertParallelLoopsToGpu": "relay.lowering.gpu.convert_parallel_loops_to_gpu",
        "CrashReproducer": "relay.passes.checking",
        "CrossLayerEqualization": "relay.quantize.equalize_layers:EqualizeLayers",
        "DeadCodeElimination": "xdsl.transforms.dead_code_elimination",
        "DeadPixels": "relay.transforms.dead_pixels",
        "DistributeLoops": "relay.lowering.distribute_loops",
        "DumpIR": "relay.passes.printing",
        "DynamicToStatic": "relay.transforms.dynamic_to_static",
        "EliminateCommonSubexpr": "xdsl.transforms.common_subexpression_elimination:CommonSubexpressionElimination",
        "EqualizeLayers": "relay.quantize.equalize_layers",
        "ExpandApplyScale": "relay.lowering.expand_apply_scale",
        "Exploration": "relay.exploration",
        "FakeQuantizationToInteger": "relay.quantize.qdq_to_integer:QdqToInteger",
        "FastMath": "relay.transforms.fast_math",
        "FoldConstant": "relay.transforms.fold_constant",
        "FoldExplicitPadding": "relay.transforms.fold_explicit_padding",
        "FoldQdq": "relay.quantize.qdq_to_integer:QdqToInteger",
        "FoldScaleAxis": "relay.transforms.fold_scale_axis",
        "FuseOps": "relay.transforms.fuse_ops",
        "GpuKernelOutlining": "relay.lowering.gpu.gpu_kernel_outlining",
        "GpuModuleToBinary": "relay.lowering.gpu.gpu_module_to_binary",
        "InferType": "relay.transforms.infer_types:InferTypes",
        "InferTypes": "relay.transforms.infer_types",
        "Inline": "relay.transforms.inline",
        "InlineGlobals": "relay.transforms.inline:Inline",
        "InlinePartitions": "relay.byoc.partitioning.inline_partitions",
        "Legalize": "relay.transforms.legalize",
        "LinalgSpecializeGenericOps": "relay.lowering.linalg_specialize_generic_ops",
        "MathExpandOps": "relay.lowering.math_expand_ops",
        "MergeCompilerRegions": "relay.byoc.partitioning.merge_compiler_regions",
        "MergeComposite": "relay.byoc.partitioning.merge_composite",
        "NvvmAttachTarget": "relay.lowering.gpu.nvvm_attach_target",
        "OpStatistics": "relay.passes.timing",
        "Parallelize": "relay.lowering.parallelize",
        "PartitionGraph": "relay.byoc.partitioning.partition_graph",
        "Pass": "relay.passes.base",
        "PassContext": "relay.passes.context",
        "PassInfo": "relay.passes.info",
        "PassInstrument": "relay.passes.instruments",
        "PassPrintingInstrument": "relay.passes.printing",
        "PassTimingInstrument": "relay.passes.timing",
        "Pipeline": "relay.passes.pipeline",
        "PlanMemory": "relay.lowering.plan_memory",
        "PostTrainingQuantize": "relay.quantize.quantize:Quantize",
        "PrintAfterAll": "relay.passes.printing",
        "PrintBeforeAll": "relay.passes.printing",
        "PrintChanged": "relay.passes.printing",
        "PrintChoices": "relay.transforms.print_choices",
        "PrintIR": "relay.transforms.print_ir",
        "PruneRegions": "relay.byoc.partitioning.prune_regions",
        "QdqToInteger": "relay.quantize.qdq_to_integer",
        "QnnLegalize": "relay.transforms.qnn_legalize",
        "Quantize": "relay.quantize.quantize",
        "QuantizeAnnotate": "relay.quantize.quantize_annotate",
        "QuantizeCalibrate": "relay.quantize.quantize_calibrate",
        "QuantizeRealize": "relay.quantize.quantize_realize",
        "RaiseOps": "relay.transforms.raise_ops",
        "RelayToLinalg": "relay.lowering.relay_to_linalg",
        "RemoveUnusedFunctions": "relay.transforms.remove_unused_functions",
        "Schedule": "relay.lowering.schedule",
        "ScheduleGpu": "relay.lowering.gpu.schedule_gpu",
        "SelectTargetOps": "relay.lowering.select_target_ops",
        "Sequential": "relay.passes.pipeline",
        "ShareKernels": "relay.lowering.share_kernels",
        "ShareLayers": "relay.lowering.share_layers",
        "SignedCodes": "relay.transforms.signed_codes",
        "Simplify": "relay.transforms.simplify",
        "SimplifyExpr": "relay.transforms.simplify:Simplify",
        "SimplifyInference": "relay.transforms.simplify_inference",
        "ToMixedPrecision": "relay.transforms.to_mixed_precision",
        "UnsignedCodes": "relay.transforms.unsigned_codes",
        "UpdateInPlace": "relay.lowering.update_in_place",
        "VerifyEach": "relay.passes.checking",
        "WeightOnly": "relay.quantize.weight_only",
        "explore": "relay.exploration",
        "find_culprit": "relay.exploration.bisection",
        "function_pass": "relay.passes.decorators",
        "liveness": "relay.passes.analyses",
        "module_pass": "relay.passes.decorators",
        "pass_instrument": "relay.passes.instruments",
        "shapes": "relay.passes.analyses",
        "use_counts": "relay.passes.analyses",
    },
    former=["FoldQdq"],
    elsewhere="relay.universe:TVM_PASSES",
)

__all__ = [
    "AlterOpLayout", "Analysis", "AnnotateExternalCompiler", "AnnotateTarget", "AttachTarget", "BisectLimit",
    "Bufferize", "BuildConfig", "CachesInPlace", "Canonicalize", "CanonicalizeCast", "CollectedErrors",
    "CombineParallelConv2D", "CombineParallelDense", "CommonSubexpressionElimination", "CompileExternal",
    "ConstFolding", "ConstantFolding", "ConvertGpuToLlvmSpv", "ConvertGpuToNvvm", "ConvertLayout",
    "ConvertParallelLoopsToGpu", "CrashReproducer", "CrossLayerEqualization", "DeadCodeElimination", "DeadPixels",
    "DistributeLoops", "DumpIR", "DynamicToStatic", "EliminateCommonSubexpr", "EqualizeLayers", "ExpandApplyScale",
    "Exploration", "FakeQuantizationToInteger", "FastMath", "FoldConstant", "FoldExplicitPadding", "FoldQdq",
    "FoldScaleAxis", "FuseOps", "GpuKernelOutlining", "GpuModuleToBinary", "InferType", "InferTypes", "Inline",
    "InlineGlobals", "InlinePartitions", "Legalize", "LinalgSpecializeGenericOps", "MathExpandOps",
    "MergeCompilerRegions", "MergeComposite", "NvvmAttachTarget", "OpStatistics", "Parallelize", "PartitionGraph",
    "Pass", "PassContext", "PassInfo", "PassInstrument", "PassPrintingInstrument", "PassTimingInstrument", "Pipeline",
    "PlanMemory", "PostTrainingQuantize", "PrintAfterAll", "PrintBeforeAll", "PrintChanged", "PrintChoices", "PrintIR",
    "PruneRegions", "QdqToInteger", "QnnLegalize", "Quantize", "QuantizeAnnotate", "QuantizeCalibrate",
    "QuantizeRealize", "RaiseOps", "RelayToLinalg", "RemoveUnusedFunctions", "Schedule", "ScheduleGpu",
    "SelectTargetOps", "Sequential", "ShareKernels", "ShareLayers", "SignedCodes", "Simplify", "SimplifyExpr",
    "SimplifyInference", "ToMixedPrecision", "UnsignedCodes", "UpdateInPlace", "VerifyEach", "WeightOnly", "explore",
    "find_culprit", "function_pass", "liveness", "module_pass", "pass_instrument", "shapes", "use_counts",
]  # fmt: skip
