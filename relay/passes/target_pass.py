"""`TargetPass`: a pass whose choices depend on the target of the module."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ModuleOp

from relay.passes.base import Pass
from relay.target import CpuTarget, GpuTarget, Target, cpu_of, features_in, gpu_of, target_of


@dataclass(frozen=True)
class TargetPass(Pass):
    """A pass that reads the module's target, which `attach-target` sets. Without a target it makes choices that any CPU
    can run.

    Before 0.2 the option `features` listed the target's features; it still replaces those of the module's target.
    """

    features: str = field(default="", kw_only=True, metadata={"deprecated": True})

    def __post_init__(self) -> None:
        if self.features:
            given = f'{self.name}{{features="..."}}'
            new = 'put attach-target{target="..."} before the pass, or set the module\'s attribute relay.target'
            warnings.warn(f"{given} is deprecated: {new}", DeprecationWarning, stacklevel=3)

    def target(self, module: ModuleOp) -> Target:
        """The module's target."""
        target = target_of(module)
        return replace(target, features=features_in(self.features)) if self.features else target

    def cpu(self, module: ModuleOp) -> CpuTarget:
        """The module's target. Raises InvalidArgument if it is a GPU."""
        target = cpu_of(module, self.name)
        return replace(target, features=features_in(self.features)) if self.features else target

    def gpu(self, module: ModuleOp) -> GpuTarget:
        """The module's target. Raises InvalidArgument if it is a CPU."""
        target = gpu_of(module, self.name)
        return replace(target, features=features_in(self.features)) if self.features else target
