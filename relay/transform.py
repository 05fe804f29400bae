"""Passes under their class names and Relay's names, and the classes that compose, edit and observe pipelines.

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
__getattr__, __dir__ = door(__name__, {
    "relay.exploration": "Exploration explore",
    "relay.exploration.bisection": "find_culprit",
    "relay.passes.analyses": "Analysis liveness shapes use_counts",
    "relay.passes.base": "Pass",
    "relay.passes.build_config": "BuildConfig",
    "relay.passes.checking": "BisectLimit CrashReproducer VerifyEach",
    "relay.passes.context": "PassContext",
    "relay.passes.decorators": "function_pass module_pass",
    "relay.passes.diagnostics": "CollectedErrors",
    "relay.passes.info": "PassInfo",
    "relay.passes.instruments": "PassInstrument pass_instrument",
    "relay.passes.pipeline": "Pipeline Sequential",
    "relay.passes.printing": "DumpIR PassPrintingInstrument PrintAfterAll PrintBeforeAll PrintChanged",
    "relay.passes.timing": "OpStatistics PassTimingInstrument",
    "relay.quantize.equalize_layers": "CrossLayerEqualization=EqualizeLayers EqualizeLayers",
    "relay.quantize.qdq_to_integer": "FakeQuantizationToInteger=QdqToInteger FoldQdq=QdqToInteger QdqToInteger",
    "relay.quantize.quantize": "PostTrainingQuantize=Quantize Quantize",
    "relay.transforms.fold_constant": "ConstFolding=FoldConstant ConstantFolding=FoldConstant FoldConstant",
    "relay.transforms.infer_types": "InferType=InferTypes InferTypes",
    "relay.transforms.inline": "Inline InlineGlobals=Inline",
    "relay.transforms.simplify": "Simplify SimplifyExpr=Simplify",
    "xdsl.transforms.canonicalize": "Canonicalize=CanonicalizePass",
    "xdsl.transforms.common_subexpression_elimination":
        "CommonSubexpressionElimination EliminateCommonSubexpr=CommonSubexpressionElimination",
    "xdsl.transforms.dead_code_elimination": "DeadCodeElimination",
}, former=['FoldQdq'], elsewhere="relay.universe:TVM_PASSES", rest="relay.universe:CLASSES")  # fmt: skip

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
