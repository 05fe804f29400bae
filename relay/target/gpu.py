"""Parses the text of GPU targets."""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import InvalidArgument, Unsupported
from relay.target.chips import CHIPS
from relay.target.record import GpuTarget

CUDA_TRIPLE, OPENCL_TRIPLE = "nvptx64-nvidia-cuda", "spirv64v1.2-unknown-unknown"
DEFAULT_CHIP = "sm_80"
MATMUL = ("tf32", "f16", "bf16")
"""The types to which the factors of float products can be rounded."""
OPENCL_FEATURES = frozenset({"dot"})
"""The optional features of OpenCL devices: `dot` needs cl_khr_integer_dot_product."""


def resolve_gpu(target: str, words: Sequence[str] = ()) -> GpuTarget:
    """Parse the text of a GPU target. `"cuda"` is any NVIDIA GPU from sm_80 on, and `"opencl"` any device that accepts
    SPIR-V 1.2. Options follow: `-arch=sm_90a` names the chip of a CUDA GPU; `-matmul=tf32` (or f16, bf16) rounds the
    factors of float products to this type; `-mattr=-mma` leaves a feature of a chip unused; `-mattr=+dot`, for OpenCL
    only, says that the device has integer dot products. Raises Unsupported for an unknown chip, and for `-matmul`
    without matrix units; InvalidArgument for other options. `words`: the words to parse, if not the whole text."""
    words = words or target.split()
    if words[:1] == ["opencl"]:
        given = [f"-mattr=+{name}" for name in sorted(OPENCL_FEATURES)]
        if unknown := [word for word in words[1:] if word not in given]:
            raise InvalidArgument(f"target {target!r}", f"has the option {unknown[0]}", f"there is {', '.join(given)}")
        return GpuTarget(OPENCL_TRIPLE, "", frozenset(word.partition("+")[2] for word in words[1:]), "opencl")
    options = {"-arch": DEFAULT_CHIP, "-matmul": "", "-mattr": ""}
    for word in words[1:]:
        option, _, value = word.partition("=")
        if option not in options:
            hint = f"there are -arch=sm_NN, -matmul={'|'.join(MATMUL)} and -mattr=-A"
            raise InvalidArgument(f"target {target!r}", f"has the option {word}", hint)
        options[option] = value
    chip, matmul = options["-arch"], options["-matmul"]
    if chip not in CHIPS:
        raise Unsupported(f"target {target!r}", f"names the chip {chip!r}", f"known are {', '.join(CHIPS)}")
    features = CHIPS[chip].features
    for change in options["-mattr"].split(",") if options["-mattr"] else ():
        if change[:1] != "-" or change[1:] not in features:
            hint = f"{chip} can go without {', '.join(f'-{name}' for name in sorted(features))}"
            raise InvalidArgument(f"target {target!r}", f"has the feature {change!r}", hint)
        features -= {change[1:]}
    found = GpuTarget(CUDA_TRIPLE, chip, features, "cuda", matmul)
    if matmul and matmul not in MATMUL:
        raise InvalidArgument(f"target {target!r}", f"has -matmul={matmul}", f"there are {', '.join(MATMUL)}")
    if matmul and not found.has("mma"):
        raise Unsupported(
            f"target {target!r}", f"rounds products to {matmul}", f"from {DEFAULT_CHIP} on there are such"
        )
    return found


def check_gpu(target: GpuTarget, where: str) -> None:
    """Raise InvalidArgument for a GPU target that no text can describe: an unknown triple, features that the chip
    lacks, an OpenCL target with fields besides its triple and features, or an unknown rounding of products."""
    chip = target.chip
    triple, features = (OPENCL_TRIPLE, OPENCL_FEATURES) if chip is None else (CUDA_TRIPLE, chip.features)
    if target.triple != triple:
        raise InvalidArgument(where, f"has triple = {target.triple!r}", f"of {target.kind} it is {triple}")
    if unknown := sorted(target.features - features):
        raise InvalidArgument(where, f"has the feature {unknown[0]!r}", f"there are {', '.join(sorted(features))}")
    if chip is None and target.cpu:
        raise InvalidArgument(where, f"has cpu = {target.cpu!r}", f"{target.kind} has none")
    if target.matmul and (target.matmul not in MATMUL or not target.has("mma")):
        hint = f"there are {', '.join(MATMUL)}, where there is the feature mma"
        raise InvalidArgument(where, f"has matmul = {target.matmul!r}", hint)
