"""Tables of relay's dialects, passes and targets by name, and of functions that lower layers take from higher ones;
each entry is imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe
from xdsl.utils.target import Target

from relay.dialects.context import OURS as DIALECTS


def _pass(path: str) -> Callable[[], type[ModulePass]]:
    """A factory whose `__module__` and `__name__` are those of the pass, which thus are known before it is imported."""

    def factory() -> type[ModulePass]:
        return _named(path)

    factory.__module__, factory.__name__ = path.split(":")
    return factory


def _target(path: str) -> Callable[[], type[Target]]:
    return lambda: _named(path)


def _named(path: str) -> Any:
    module, name = path.split(":")
    return getattr(import_module(module), name)


RENAMED = {"fold-qdq": "qdq-to-integer"}
"""The new names of renamed passes, by old name; the old names warn and are removed in 0.3."""
PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    "quantize": _pass("relay.quantize.quantize:Quantize"),
    "equalize-layers": _pass("relay.quantize.equalize_layers:EqualizeLayers"),
    "quantize-annotate": _pass("relay.quantize.quantize_annotate:QuantizeAnnotate"),
    "quantize-calibrate": _pass("relay.quantize.quantize_calibrate:QuantizeCalibrate"),
    "quantize-realize": _pass("relay.quantize.quantize_realize:QuantizeRealize"),
    "weight-only": _pass("relay.quantize.weight_only:WeightOnly"),
    "qdq-to-integer": _pass("relay.quantize.qdq_to_integer:QdqToInteger"),
    "merge-composite": _pass("relay.byoc.partitioning.merge_composite:MergeComposite"),
    "annotate-external-compiler": _pass("relay.byoc.partitioning.annotate_external_compiler:AnnotateExternalCompiler"),
    "annotate-target": _pass("relay.byoc.partitioning.annotate_target:AnnotateTarget"),
    "merge-compiler-regions": _pass("relay.byoc.partitioning.merge_compiler_regions:MergeCompilerRegions"),
    "prune-regions": _pass("relay.byoc.partitioning.prune_regions:PruneRegions"),
    "partition-graph": _pass("relay.byoc.partitioning.partition_graph:PartitionGraph"),
    "inline-partitions": _pass("relay.byoc.partitioning.inline_partitions:InlinePartitions"),
    "compile-external": _pass("relay.byoc.partitioning.compile_external:CompileExternal"),
    "print-choices": _pass("relay.transforms.print_choices:PrintChoices"),
    "print-ir": _pass("relay.transforms.print_ir:PrintIR"),
    "infer-types": _pass("relay.transforms.infer_types:InferTypes"),
    "attach-target": _pass("relay.transforms.attach_target:AttachTarget"),
    "legalize": _pass("relay.transforms.legalize:Legalize"),
    "signed-codes": _pass("relay.transforms.signed_codes:SignedCodes"),
    "qnn-legalize": _pass("relay.transforms.qnn_legalize:QnnLegalize"),
    "convert-layout": _pass("relay.transforms.convert_layout:ConvertLayout"),
    "alter-op-layout": _pass("relay.transforms.alter_op_layout:AlterOpLayout"),
    "simplify-inference": _pass("relay.transforms.simplify_inference:SimplifyInference"),
    "fold-explicit-padding": _pass("relay.transforms.fold_explicit_padding:FoldExplicitPadding"),
    "raise-ops": _pass("relay.transforms.raise_ops:RaiseOps"),
    "fold-scale-axis": _pass("relay.transforms.fold_scale_axis:FoldScaleAxis"),
    "combine-parallel-conv2d": _pass("relay.transforms.combine_parallel_conv2d:CombineParallelConv2D"),
    "combine-parallel-dense": _pass("relay.transforms.combine_parallel_dense:CombineParallelDense"),
    "canonicalize-cast": _pass("relay.transforms.canonicalize_cast:CanonicalizeCast"),
    "fast-math": _pass("relay.transforms.fast_math:FastMath"),
    "to-mixed-precision": _pass("relay.transforms.to_mixed_precision:ToMixedPrecision"),
    "caches-in-place": _pass("relay.transforms.caches_in_place:CachesInPlace"),
    "dynamic-to-static": _pass("relay.transforms.dynamic_to_static:DynamicToStatic"),
    "remove-unused-functions": _pass("relay.transforms.remove_unused_functions:RemoveUnusedFunctions"),
    "inline": _pass("relay.transforms.inline:Inline"),
    "simplify": _pass("relay.transforms.simplify:Simplify"),
    "fold-constant": _pass("relay.transforms.fold_constant:FoldConstant"),
    "dead-pixels": _pass("relay.transforms.dead_pixels:DeadPixels"),
    "unsigned-codes": _pass("relay.transforms.unsigned_codes:UnsignedCodes"),
    "fuse-ops": _pass("relay.transforms.fuse_ops:FuseOps"),
    "relay-to-linalg": _pass("relay.lowering.relay_to_linalg:RelayToLinalg"),
    "linalg-specialize-generic-ops": _pass("relay.lowering.linalg_specialize_generic_ops:LinalgSpecializeGenericOps"),
    "expand-apply-scale": _pass("relay.lowering.expand_apply_scale:ExpandApplyScale"),
    "bufferize": _pass("relay.lowering.bufferize:Bufferize"),
    "update-in-place": _pass("relay.lowering.update_in_place:UpdateInPlace"),
    "share-layers": _pass("relay.lowering.share_layers:ShareLayers"),
    "schedule": _pass("relay.lowering.schedule:Schedule"),
    "select-target-ops": _pass("relay.lowering.select_target_ops:SelectTargetOps"),
    "math-expand-ops": _pass("relay.lowering.math_expand_ops:MathExpandOps"),
    "distribute-loops": _pass("relay.lowering.distribute_loops:DistributeLoops"),
    "parallelize": _pass("relay.lowering.parallelize:Parallelize"),
    "share-kernels": _pass("relay.lowering.share_kernels:ShareKernels"),
    "plan-memory": _pass("relay.lowering.plan_memory:PlanMemory"),
    "schedule-gpu": _pass("relay.lowering.gpu.schedule_gpu:ScheduleGpu"),
    "convert-parallel-loops-to-gpu": _pass(
        "relay.lowering.gpu.convert_parallel_loops_to_gpu:ConvertParallelLoopsToGpu"
    ),
    "gpu-kernel-outlining": _pass("relay.lowering.gpu.gpu_kernel_outlining:GpuKernelOutlining"),
    "nvvm-attach-target": _pass("relay.lowering.gpu.nvvm_attach_target:NvvmAttachTarget"),
    "convert-gpu-to-nvvm": _pass("relay.lowering.gpu.convert_gpu_to_nvvm:ConvertGpuToNvvm"),
    "convert-gpu-to-llvm-spv": _pass("relay.lowering.gpu.convert_gpu_to_llvm_spv:ConvertGpuToLlvmSpv"),
    "gpu-module-to-binary": _pass("relay.lowering.gpu.gpu_module_to_binary:GpuModuleToBinary"),
}
"""Relay's passes by name. xDSL's `canonicalize`, `cse` and `dce` also work on relay's ops."""

CLASSES = {factory.__module__: factory.__name__ for factory in PASSES.values()}
"""The names of the passes' classes, by module."""

PROVIDERS = {
    "bufferized": "bufferize",
    "compiled": "compile-external",
    "device-calls": "convert-gpu-to-nvvm",
    "expanded": "expand-apply-scale",
    "folded": "fold-constant",
    "functions": "math-expand-ops",
    "inference": "simplify-inference",
    "kernels": "fuse-ops",
    "launches": "convert-parallel-loops-to-gpu",
    "layouts": "alter-op-layout",
    "legal": "legalize",
    "linalg": "relay-to-linalg",
    "loops": "schedule",
    "no-qnn": "legalize",
    "outlined": "gpu-kernel-outlining",
    "planned": "plan-memory",
    "target-ops": "select-target-ops",
    "typed": "infer-types",
}
"""The first pass that establishes each property, so that a pass's requirements can be checked without importing all
passes."""

TARGETS: dict[str, Callable[[], type[Target]]] = {
    "llvm-ir": _target("relay.lowering.llvm_ir:LlvmIrTarget"),
    "c": _target("relay.byoc.c.target:CTarget"),
    "irdl": _target("relay.dialects.irdl:IrdlTarget"),
}

UNIVERSE = Universe(all_dialects=dict(DIALECTS), all_passes=dict(PASSES), all_targets=dict(TARGETS))
"""The universe that the entry point `xdsl.universe` refers to."""


INSTRUMENTS = {"relay.check_numbers": "relay.transforms.check_numbers:CheckNumbers"}
"""The classes of pass instruments, by the key of `PassContext.config` that requests one."""

NOTEBOOK = {
    "Comparison": "relay.viewer.comparison:content",
    "Exploration": "relay.viewer.notebook:of_exploration",
    "IRModule": "relay.viewer.notebook:of_module",
    "PassTimingInstrument": "relay.viewer.notebook:of_timing",
    "Pipeline": "relay.viewer.notebook:of_pipeline",
    "Record": "relay.viewer.notebook:of_record",
}
"""The functions that make the HTML which a notebook shows for an object, by the name of the object's class."""


def shown_in_notebook(value: object) -> str:
    """The HTML of an object whose class, or a base of it, is in `NOTEBOOK`."""
    name = next(cls.__name__ for cls in type(value).__mro__ if cls.__name__ in NOTEBOOK)
    return _named(NOTEBOOK[name])(value)


def instrument(key: str, value: object) -> Any:
    """The pass instrument that a key of `PassContext.config` requests, constructed from the key's value."""
    return _named(INSTRUMENTS[key])(value)


def public_names() -> list[str]:
    """The public names of `relay.transform`, which include the passes' class names and aliases."""
    return _named("relay.transform:__dir__")()


def partition_report(module: object, inputs: object) -> Any:
    """Call `relay.byoc.partition_report` on a module."""
    return _named("relay.byoc.report:partition_report")(module, inputs)


PRICES = {
    "cost": "relay.byoc.partitioning.estimates:Estimates",
    "measured": "relay.exploration.region_times:RegionTimes",
}
"""The classes that give the cost of a region, by the option `choose` of `annotate-external-compiler`."""


def prices(choose: str) -> Any:
    """The class that gives the cost of a region, imported, for the value `choose` of the option of
    `annotate-external-compiler`: `cost` or `measured`."""
    return _named(PRICES[choose])


def all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """The factories of xDSL's and relay's passes, by name."""
    return get_all_passes() | PASSES


TVM_PASSES = {
    **dict.fromkeys(
        ("ForwardFoldScaleAxis", "BackwardFoldScaleAxis"), "FoldScaleAxis() takes factors of both directions"
    ),
    **dict.fromkeys(
        ("ToANormalForm", "ToBasicBlockNormalForm", "ToGraphNormalForm", "ToCPS", "EtaExpand", "LambdaLift",
         "Defunctionalization", "PartialEvaluate", "FirstOrderGradient", "LazyGradientInit"),
        "modules are in SSA form, without closures: leave it out",
    ),
    **dict.fromkeys(
        ("AnnotateSpans", "CanonicalizeOps", "CapturePostDfsIndexInSpans", "DefuseOps", "LabelOps",
         "RemoveStandaloneReshapes", "SimplifyFCTranspose", "ToTraced"),
        "no other pass needs it: leave it out",
    ),
    **dict.fromkeys(
        ("ManifestAlloc", "ManifestLifetimes", "OptimizeVirtualMachine", "PlanDevices"),
        "PlanMemory(), which relay.build runs, plans all memory: leave it out",
    ),
    **dict.fromkeys(("Conv2dToSparse", "Conv2dToSparse2", "DenseToSparse"), "there are no sparse kernels"),
    "BatchingOps": "write CombineParallelConv2D() and CombineParallelDense()",
    "CombineParallelBatchMatmul": "write CombineParallelDense() for products with constants",
    "CollagePartition": "write AnnotateExternalCompiler(names, choose='cost')",
    "DivToMul": "a product with the inverse differs from the quotient, and no pass makes it: leave it out",
    "FlattenAtrousConv": "space_to_batch and batch_to_space are compiled as they are: leave it out",
    "FlexibleShapeDispatch": 'relay.build("model.tflite", batch="n") builds for the sizes that it sees',
    "InferTypeLocal": "write InferType()",
    "MarkCompilerFunctionsAsExtern": "PartitionGraph() does so",
    "OutlineCompilerFunctionsWithExistingGlobalSymbols": "PartitionGraph() does so",
    "SplitArgs": "kernels take any number of arguments: leave it out",
}  # fmt: skip
"""For each TVM pass that relay does not have, by TVM's name, a hint that says what to write instead."""
