"""The attribute `relay.target` of a module: a dictionary of builtin attributes, which every MLIR tool accepts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, IntegerAttr, ModuleOp, StringAttr, f64, i64
from xdsl.ir import Attribute

from relay.arguments import instance
from relay.errors import InvalidArgument
from relay.target.chips import CHIPS
from relay.target.gpu import CUDA_TRIPLE, DEFAULT_CHIP, OPENCL_TRIPLE, check_gpu
from relay.target.record import UNKNOWN, CpuTarget, GpuTarget, Processor, Target
from relay.target.resolve import check_cpu

ATTRIBUTE = "relay.target"
UNKNOWN_GPU = GpuTarget(CUDA_TRIPLE, DEFAULT_CHIP, frozenset())
"""The target assumed for a module without one, where only GPUs are possible."""


def features_in(text: str) -> frozenset[str]:
    """The features of a comma-separated text in LLVM's spelling: `+avx512f,+avx512vnni`; the `+` may be missing."""
    return frozenset(name for part in text.split(",") if (name := part.strip().lstrip("+")))


def to_attributes(target: Target) -> DictionaryAttr:
    """The attribute of a target: `{kind = "cpu", triple = "...", cpu = "...", features = "+a,+b"}`, with `matmul` and
    the measured `costs` if it has them."""
    found: dict[str, Attribute] = {
        "kind": StringAttr(target.kind),
        "triple": StringAttr(target.triple),
        "cpu": StringAttr(target.cpu),
        "features": StringAttr(",".join(f"+{name}" for name in sorted(target.features))),
    }
    if isinstance(target, GpuTarget) and target.matmul:
        found["matmul"] = StringAttr(target.matmul)
    if target.measured:
        found["costs"] = DictionaryAttr({name: _number(value) for name, value in target.measured})
    return DictionaryAttr(found)


def _number(value: float) -> Attribute:
    return IntegerAttr(value, i64) if isinstance(value, int) else FloatAttr(value, f64)


KNOWN: dict[Attribute, Target] = {}
"""Targets that `attach` has written or `from_attributes` has read: their features are already checked by LLVM."""


def from_attributes(attribute: Attribute) -> Target:
    """The target that a dictionary describes. Raises InvalidArgument unless it describes a target for which code can be
    generated. A CPU without a triple is described by its features alone."""
    found = KNOWN.get(attribute)
    return KNOWN.setdefault(attribute, _read(attribute)) if found is None else found


def _read(attribute: Attribute) -> Target:
    if not isinstance(attribute, DictionaryAttr):
        raise InvalidArgument(ATTRIBUTE, f"is {attribute}", "write a dictionary, or run attach-target")
    given = attribute.data
    texts = {key: value.data for key, value in given.items() if key in KEYS and isinstance(value, StringAttr)}
    costs = given.get("costs", DictionaryAttr({}))
    if not given:
        raise InvalidArgument(ATTRIBUTE, "is empty", 'write {triple = "...", ...}, or leave it out for any CPU')
    if unknown := sorted(given.keys() - texts.keys() - {"costs"}):
        hint = f"texts are {', '.join(KEYS)}; costs is a dictionary of numbers"
        raise InvalidArgument(ATTRIBUTE, f"has {unknown[0]} = {given[unknown[0]]}", hint)
    triple, cpu, features = texts.get("triple", ""), texts.get("cpu", ""), _features(texts.get("features", ""))
    kind, matmul = texts.get("kind", "cpu"), texts.get("matmul", "")
    if kind == "cpu":
        found = CpuTarget(triple, cpu, features)
        if matmul:
            raise InvalidArgument(ATTRIBUTE, f'has matmul = "{matmul}"', "CPUs do not round products; leave it out")
        if triple:
            check_cpu(found, ATTRIBUTE)
        return found.with_costs(_numbers(costs))
    if kind not in ("cuda", "opencl") or (kind == "cuda" and cpu not in CHIPS):
        hint = f'there are "cpu", "opencl", and "cuda" with cpu = {", ".join(CHIPS)}'
        raise InvalidArgument(ATTRIBUTE, f'has kind = "{kind}", cpu = "{cpu}"', hint)
    found = GpuTarget(triple or (CUDA_TRIPLE if kind == "cuda" else OPENCL_TRIPLE), cpu, features, kind, matmul)
    check_gpu(found, ATTRIBUTE)
    return found.with_costs(_numbers(costs))


def _features(text: str) -> frozenset[str]:
    """Parse features that are written `+a,+b`. A target's attribute lists the features that are present, so `-a` is an
    error."""
    names = text.split(",") if text else []
    for number, name in enumerate(names):
        if not re.fullmatch(r"\+[a-z0-9][a-z0-9._-]*", name.strip()):
            raise InvalidArgument(ATTRIBUTE, f"has the feature {name!r}", 'write what is there: features = "+a,+b"')
        if name in names[:number]:
            raise InvalidArgument(ATTRIBUTE, f"has the feature {name!r} twice", "name each once")
    return features_in(text)


KEYS = ("kind", "triple", "cpu", "features", "matmul")


def _numbers(costs: Attribute) -> Mapping[str, float]:
    if not isinstance(costs, DictionaryAttr):
        raise InvalidArgument(ATTRIBUTE, f"has costs = {costs}", "write a dictionary of numbers")
    found: dict[str, float] = {}
    for name, value in costs.data.items():
        if not isinstance(value, IntegerAttr | FloatAttr):
            raise InvalidArgument(ATTRIBUTE, f"has the cost {name} = {value}", "write a number")
        found[name] = value.value.data
    return found


def attach(module: ModuleOp, target: Target) -> None:
    """Attach the target to the module. Raises InvalidArgument unless the arguments are a module and a target."""
    module = instance(module, ModuleOp, "attach", "give the module, of an IRModule its op: mod.op")
    instance(target, Processor, "attach", 'write attach(module, resolve("llvm"))')
    attribute = module.attributes[ATTRIBUTE] = to_attributes(target)
    KNOWN[attribute] = target


def target_of(module: ModuleOp) -> Target:
    """The module's target; `UNKNOWN` if it has none. Raises InvalidArgument for a malformed attribute, and for anything
    but a module."""
    module = instance(module, ModuleOp, "target_of", "give the module, of an IRModule its op: mod.op")
    attribute = module.attributes.get(ATTRIBUTE)
    return UNKNOWN if attribute is None else from_attributes(attribute)


def cpu_of(module: ModuleOp, needed_by: str) -> CpuTarget:
    """The module's target, which must be a CPU. Raises InvalidArgument if it is a GPU."""
    target = target_of(module)
    if isinstance(target, CpuTarget):
        return target
    raise InvalidArgument(needed_by, f"is for CPUs, and the module's target is {target.kind}", "attach another target")


def gpu_of(module: ModuleOp, needed_by: str) -> GpuTarget:
    """The module's target, which must be a GPU; `UNKNOWN_GPU` if it has none. Raises InvalidArgument if it is a CPU."""
    target = target_of(module)
    target = UNKNOWN_GPU if ATTRIBUTE not in module.attributes else target
    if isinstance(target, GpuTarget):
        return target
    raise InvalidArgument(needed_by, f"is for GPUs, and the module's target is {target.cpu}", "attach another target")
