"""Targets: a record of a machine's features and costs, stored on the module as a dictionary of attributes. This package
may import `dialects` and the packages below it."""

from relay.target.attributes import (
    ATTRIBUTE,
    attach,
    cpu_of,
    features_in,
    from_attributes,
    gpu_of,
    target_of,
    to_attributes,
)
from relay.target.costs import CpuCosts, GpuCosts
from relay.target.gpu import resolve_gpu
from relay.target.record import LANES, CpuTarget, GpuTarget, Target
from relay.target.resolve import host, names, resolve, spelled

__all__ = [
    "ATTRIBUTE",
    "LANES",
    "CpuCosts",
    "CpuTarget",
    "GpuCosts",
    "GpuTarget",
    "Target",
    "attach",
    "cpu_of",
    "features_in",
    "from_attributes",
    "gpu_of",
    "host",
    "names",
    "resolve",
    "resolve_gpu",
    "spelled",
    "target_of",
    "to_attributes",
]
