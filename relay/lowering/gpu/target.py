"""GPUs as targets: what LLVM is told of them, and what kernels may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from relay.errors import InvalidArgument, Unsupported
from relay.lowering.gpu.formats import FLOATS
from relay.lowering.targets import CpuTarget

CUDA_TRIPLE, OPENCL_TRIPLE = "nvptx64-nvidia-cuda", "spirv64v1.2-unknown-unknown"

CHIPS: dict[str, tuple[str, frozenset[str], int]] = {
    "sm_75": ("+ptx63", frozenset({"dot", "fma-rz", "shuffle"}), 40),
    "sm_80": ("+ptx70", frozenset({"dot", "fma-rz", "shuffle", "mma", "async-copy"}), 108),
    "sm_86": ("+ptx71", frozenset({"dot", "fma-rz", "shuffle", "mma", "async-copy"}), 84),
    "sm_87": ("+ptx74", frozenset({"dot", "fma-rz", "shuffle", "mma", "async-copy"}), 16),
    "sm_89": ("+ptx78", frozenset({"dot", "fma-rz", "shuffle", "mma", "async-copy"}), 128),
    "sm_90": ("+ptx78", frozenset({"dot", "fma-rz", "shuffle", "mma", "async-copy"}), 132),
    "sm_90a": ("+ptx84", frozenset({"dot", "fma-rz", "shuffle", "mma", "async-copy", "wgmma"}), 132),
    "sm_100": ("+ptx86", frozenset({"dot", "fma-rz", "shuffle", "mma", "async-copy"}), 148),
    "sm_120": ("+ptx87", frozenset({"dot", "fma-rz", "shuffle", "mma", "async-copy"}), 170),
}
"""NVIDIA's processors: the version of PTX that LLVM needs for them at least, what they have, and how many
multiprocessors the largest or the usual one of their kind has. LLVM takes any other name with a warning, and makes code
that nothing loads."""
DEFAULT_CHIP = "sm_80"


@dataclass(frozen=True)
class GpuTarget(CpuTarget):
    """A GPU as LLVM names it. Choices in lowering look at `features`: `dot` (four products of 8 bits in a sum),
    `fma-rz` (multiply-adds that round towards zero), `shuffle` (lanes of a warp read each other's numbers), `mma`
    (matrix products of a warp), `async-copy`, `wgmma`. `matmul`: what products of floats are rounded to for matrix
    units; empty for products in float32."""

    kind: Literal["cuda", "opencl"] = "cuda"
    matmul: str = ""

    @property
    def feature_string(self) -> str:
        """The version of PTX."""
        return CHIPS[self.cpu][0] if self.kind == "cuda" else ""

    @property
    def processors(self) -> int:
        """Multiprocessors that launches are made for."""
        return CHIPS[self.cpu][2] if self.kind == "cuda" else 1

    @property
    def function_attributes(self) -> str:
        return ""

    @property
    def fuses(self) -> bool:
        return True


def resolve_gpu(target: str) -> GpuTarget:
    """`"cuda"` is any NVIDIA GPU from sm_80 on, `"cuda -arch=sm_90a"` one of its kind, `"cuda -matmul=tf32"` rounds the
    factors of products of floats (also to f16, bf16); `"opencl"` any device that takes SPIR-V 1.2. Raises Unsupported
    for another chip, InvalidArgument for other options."""
    words = target.split()
    if words[:1] == ["opencl"]:
        if words[1:]:
            raise InvalidArgument(f"target {target!r}", f"has the option {words[1]}", "opencl has none")
        return GpuTarget(OPENCL_TRIPLE, "", frozenset(), "opencl")
    options = {"-arch": DEFAULT_CHIP, "-matmul": ""}
    for word in words[1:]:
        option, _, value = word.partition("=")
        if option not in options:
            hint = f"there are -arch=sm_NN and -matmul={'|'.join(FLOATS)}"
            raise InvalidArgument(f"target {target!r}", f"has the option {word}", hint)
        options[option] = value
    chip, matmul = options["-arch"], options["-matmul"]
    if chip not in CHIPS:
        raise Unsupported(f"target {target!r}", f"names the chip {chip!r}", f"known are {', '.join(CHIPS)}")
    features = CHIPS[chip][1]
    if matmul and matmul not in FLOATS:
        raise InvalidArgument(f"target {target!r}", f"has -matmul={matmul}", f"there are {', '.join(FLOATS)}")
    if matmul and "mma" not in features:
        raise Unsupported(
            f"target {target!r}", f"rounds products to {matmul}", f"from {DEFAULT_CHIP} on there are such"
        )
    return GpuTarget(CUDA_TRIPLE, chip, features, "cuda", matmul)
