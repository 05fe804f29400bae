"""Tables of relay's dialects, passes and targets by name, and of functions that lower layers take from higher ones;
each entry is imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe
from xdsl.utils.target import Target

from relay.dialects.context import OURS as DIALECTS


def _pass(home: str, name: str, written: str = "") -> Callable[[], type[ModulePass]]:
    """A factory whose `__module__` and `__name__` are those of the pass, which thus are known before it is imported."""

    def factory() -> type[ModulePass]:
        return resolve_name(f"{factory.__module__}:{factory.__name__}")

    factory.__module__ = f"{home}.{name.replace('-', '_')}"
    factory.__name__ = written or name.title().replace("-", "")
    return factory


def _target(path: str) -> Callable[[], type[Target]]:
    return lambda: resolve_name(path)


RENAMED = {"fold-qdq": "qdq-to-integer"}
"""The new names of renamed passes, by old name; the old names warn and are removed in 0.3."""
HOMES = {
    "relay.quantize": (
        "quantize equalize-layers quantize-annotate quantize-calibrate quantize-realize weight-only qdq-to-integer"
    ),
    "relay.byoc.partitioning": (
        "merge-composite annotate-external-compiler annotate-target merge-compiler-regions prune-regions"
        " partition-graph inline-partitions compile-external"
    ),
    "relay.transforms": (
        "print-choices print-ir=PrintIR infer-types attach-target legalize signed-codes qnn-legalize"
        " convert-layout alter-op-layout simplify-inference fold-explicit-padding raise-ops fold-scale-axis"
        " combine-parallel-conv2d combine-parallel-dense canonicalize-cast fast-math to-mixed-precision"
        " caches-in-place dynamic-to-static remove-unused-functions inline simplify fold-constant dead-pixels"
        " unsigned-codes fuse-ops"
    ),
    "relay.lowering": (
        "relay-to-linalg linalg-specialize-generic-ops expand-apply-scale bufferize update-in-place share-layers"
        " schedule select-target-ops math-expand-ops distribute-loops parallelize share-kernels plan-memory"
    ),
    "relay.lowering.gpu": (
        "schedule-gpu convert-parallel-loops-to-gpu gpu-kernel-outlining nvvm-attach-target convert-gpu-to-nvvm"
        " convert-gpu-to-llvm-spv gpu-module-to-binary"
    ),
}
"""The names of the passes by the package that they are in. The pass `fold-constant` is the class `FoldConstant` in the
file `fold_constant.py`; the class of another name follows a `=`."""
PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    each.partition("=")[0]: _pass(home, *each.split("=")) for home, names in HOMES.items() for each in names.split()
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
    return resolve_name(NOTEBOOK[name])(value)


def instrument(key: str, value: object) -> Any:
    """The pass instrument that a key of `PassContext.config` requests, constructed from the key's value."""
    return resolve_name(INSTRUMENTS[key])(value)


def public_names() -> list[str]:
    """The public names of `relay.transform`, which include the passes' class names and aliases."""
    return resolve_name("relay.transform:__dir__")()


def partition_report(module: object, inputs: object) -> Any:
    """Call `relay.byoc.partition_report` on a module."""
    return resolve_name("relay.byoc.report:partition_report")(module, inputs)


PRICES = {
    "cost": "relay.byoc.partitioning.estimates:Estimates",
    "measured": "relay.exploration.region_times:RegionTimes",
}
"""The classes that give the cost of a region, by the option `choose` of `annotate-external-compiler`."""


def prices(choose: str) -> Any:
    """Import and return the class that gives the cost of a region, for the value of the option `choose` of
    `annotate-external-compiler`: `cost` or `measured`."""
    return resolve_name(PRICES[choose])


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
