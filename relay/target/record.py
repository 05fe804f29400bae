"""The target of code generation: a CPU or a GPU, as one record of features and costs."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from xdsl.ir import Attribute

from relay.arguments import mapping
from relay.errors import InvalidArgument
from relay.target.chips import CHIPS, Chip
from relay.target.costs import CpuCosts, GpuCosts, Measured, checked, replaced
from relay.target.dots import DOTS, NIBBLES, Dot, best_dot
from relay.target.llvm_features import BASELINE, absent, computes_floats
from relay.target.microarchitectures import MicroArchitecture, micro_architecture

LANES = 16
"""The number of 32-bit elements in a vector of the IR; LLVM splits it where registers are narrower."""
FUSING = frozenset({"fma", "avx512f", "neon", "d"})
"""Features of which each provides fused multiply-adds of f32 and f64."""
ADDRESSES_OF_32_BITS = ("arm", "riscv32", "thumb", "wasm32")
"""Prefixes of the triples of machines with 32-bit addresses."""
CACHED = frozenset({"sse2", "avx", "neon"})
"""Features that only processors with several cache levels have."""
HALF_FLOATS = ("avx512fp16", "fullfp16")
"""Features of which each provides arithmetic on f16."""
NVVM_TOWARD_ZERO = "llvm.nvvm.fma.rz.f"
NVVM_SATURATE, NVVM_TO_NEAREST = "llvm.nvvm.saturate.f", "llvm.nvvm.f2i.rn"
"""LLVM's intrinsics for NVIDIA GPUs that clip a float to [0, 1], and that convert a float to an integer with ties
rounded to even."""
TOWARD_ZERO = {"avx512f": "llvm.x86.avx512.vfmadd.f32", "fma-rz": NVVM_TOWARD_ZERO}
"""LLVM's intrinsic of an f32 multiply-add that rounds towards zero, by the feature that it needs."""
WARP = 32
"""The number of threads of a warp; register layouts and shuffles are written for this number."""
REGISTERS = {"avx512f": 64, "avx": 32, "sse2": 16, "neon": 16}
"""The size in bytes of the registers for 32-bit arithmetic, by the feature that provides them."""
TABLES = {
    "bytes": frozenset({"avx512f", "avx512vbmi"}),
    "words": frozenset({"avx512f", "avx512bw"}),
    "pieces32": frozenset({"avx2"}),
    "pieces16": frozenset({"ssse3"}),
    "quarters": frozenset({"neon"}),
}
"""Ways to look up many bytes at once, by permuting the bytes or words of vectors of 64, 32 or 16 bytes, the best first:
the features that each one needs, by name."""


@dataclass(frozen=True)
class Processor(ABC):
    """A machine in LLVM's terms. Decisions depend on the properties below and on `costs`, never on CPU names.
    `measured`: values that replace estimates of `costs`; see `with_costs`."""

    triple: str
    cpu: str
    features: frozenset[str]
    measured: Measured = field(default=(), kw_only=True)

    @property
    @abstractmethod
    def costs(self) -> CpuCosts | GpuCosts:
        """The costs of instructions and memories: estimates, with measured numbers in place of some."""

    def with_costs(self, measured: Mapping[str, float]) -> Self:
        """The target with these measured values, by field name of `costs`. Raises InvalidArgument for anything but a
        mapping, for an unknown field, and for a value that is not a number of the field's type, or is negative."""
        given, estimates = mapping(measured, "costs", "{'fork': 3000}"), replace(self, measured=()).costs
        return replace(self, measured=checked(estimates, dict(self.measured) | given))

    @property
    @abstractmethod
    def feature_string(self) -> str:
        """The features in LLVM's syntax."""

    @property
    def function_attributes(self) -> str:
        """The attributes to put on every LLVM function."""
        return ""

    @property
    @abstractmethod
    def fuses(self) -> bool:
        """Whether f32 and f64 multiply-adds are one instruction; otherwise they are calls of libm."""

    @property
    def abi(self) -> str:
        """The name of the calling convention, if LLVM must be given one; else empty."""
        if not self.triple.startswith("riscv"):
            return ""
        floats = "d" if "d" in self.features else "f" if "f" in self.features else ""
        return ("lp64" if self.triple.startswith("riscv64") else "ilp32") + floats

    @property
    def llvm_triple(self) -> str:
        """The triple as LLVM reads it: architecture, vendor, system, environment. If the vendor is left out, as in
        `thumbv7em-none-eabihf`, LLVM mistakes the environment for the system, and ignores `eabihf`; so `unknown` is
        inserted. `eabi` and `eabihf` become `gnueabi` and `gnueabihf`. With these, LLVM calls `memcpy` for copies, as
        on other processors, and not `__aeabi_memcpy`; for floats it calls Arm's functions (AAPCS). This is necessary:
        GCC's library for ARMv6-M has the product of doubles only as `__aeabi_dmul`, not as `__muldf3`."""
        first, *system = self.triple.split("-")
        if system[:1] == ["linux"] or (system[:1] == ["none"] and len(system) == 2):
            system = ["unknown", *system]
        return re.sub("-(eabi(hf)?)$", r"-gnu\1", "-".join([first, *system]))

    @property
    def floats_in_registers(self) -> bool:
        """Whether functions on 32-bit Arm pass floats in floating-point registers (AAPCS-VFP, `-mfloat-abi=hard`),
        according to the triple's environment; otherwise in integer registers (`softfp`, `soft`)."""
        return self.triple.startswith(("arm", "thumb")) and self.triple.endswith("eabihf")

    @property
    def relocation(self) -> str:
        """LLVM's relocation model: position-independent code, or code for the address that a linker assigns."""
        return "pic" if "linux" in self.triple else "static"

    @property
    def divides_by_products(self) -> bool:
        """Whether kernels divide floats by a constant with a product and fused multiply-adds, instead of a division.
        They do so only if the quotient is rounded to an integer, and it is proved that the integers stay the same."""
        return False

    @property
    def takes_rows_in_turn(self) -> bool:
        """Whether one kernel computes all of a row (mean, deviation, following ops) before the next row."""
        return bool(self.triple)

    @property
    def takes_weights_in_blocks(self) -> bool:
        """Whether kernels read weights of few bits directly, without conversion to floats."""
        return bool(self.triple) and self.has_vectors

    @property
    def sums_along_rows(self) -> bool:
        """Whether kernels for a product whose first matrix has few rows read the second one as [columns, depth], and
        compute each sum along a row of both."""
        return False

    def packed_rows(self, floats: bool) -> int:
        """The least number of rows of a product's first matrix for which kernels pack or copy the second one."""
        return self.costs.packed_rows

    @property
    def keeps_scores(self) -> bool:
        """Whether attention is one kernel, which keeps the scores of a block of queries in scratch memory."""
        return bool(self.triple) and self.has_vectors

    def has(self, *features: str) -> bool:
        """Whether the target has all of these features."""
        return self.features.issuperset(features)

    def dot(self, group: int | None = None, unsigned: bool | None = None) -> Dot | None:
        """The target's best dot product instruction for micro-kernels: if `group` is given, one that adds `group`
        products to each sum; if `unsigned` is given, preferably one for data of this signedness. None if there is no
        such instruction."""
        best = best_dot(self.features, group)
        if best is None or unsigned is None:
            return best
        return next(self.dots_of(best.group, best.element, unsigned), best)

    @property
    def nibble_dot(self) -> Dot | None:
        """The instruction that multiplies pairs of unsigned 4-bit values by signed bytes; None if there is none."""
        return next((dot for dot in NIBBLES if dot.features <= self.features), None)

    def matrix_dot(self, unsigned: bool) -> Dot | None:
        """The instruction that multiplies two rows of codes by two rows of signed weights; None if there is none."""
        fitting = (dot for dot in DOTS if dot.matrix and dot.unsigned == unsigned)
        return next((dot for dot in fitting if dot.features <= self.features), None)

    def dots_of(self, group: int, element: Attribute, unsigned: bool) -> Iterator[Dot]:
        """The target's dot product instructions that add `group` products to each sum, of factors of type `element`
        (`unsigned`: the data is unsigned), the best first."""
        for dot in DOTS:
            if (dot.group, dot.element, dot.unsigned) == (group, element, unsigned) and dot.features <= self.features:
                yield dot

    @property
    def toward_zero(self) -> str | None:
        """LLVM's intrinsic of an f32 multiply-add that rounds towards zero; None if there is none."""
        return next((name for feature, name in TOWARD_ZERO.items() if feature in self.features), None)

    @property
    def multiplies_high(self) -> bool:
        """Whether one instruction gives the rounded upper half of a 32-bit product, and another one a rounding right
        shift: on AArch64."""
        return self.triple.startswith("aarch64") and "neon" in self.features

    @property
    def multiplies_wide(self) -> bool:
        """Whether one instruction multiplies 32 by 32 bits, adds 64 bits and returns the upper word: on NVIDIA's
        GPUs."""
        return self.toward_zero == NVVM_TOWARD_ZERO

    @property
    def multiplies_to_64_bits(self) -> bool:
        """Whether an instruction gives the 64-bit product of two 32-bit integers: a Cortex-M0 has none, and compilers
        call a function."""
        return not self.triple.startswith("thumbv6m")

    @property
    def multiplies_lanes(self) -> bool:
        """Whether one instruction multiplies 16-bit elements by a lane of another register and adds in 32 bits: on
        AArch64."""
        return self.multiplies_high

    @property
    def narrows_saturating(self) -> bool:
        """Whether one instruction narrows integers to half their width, with saturation: on AArch64."""
        return self.multiplies_high

    @property
    def half_floats(self) -> bool:
        """Whether the target has arithmetic on f16."""
        return not self.features.isdisjoint(HALF_FLOATS)

    @property
    def has_vectors(self) -> bool:
        """Whether the registers hold several 32-bit elements."""
        return True

    @property
    def alignment(self) -> int:
        """The alignment of buffers in bytes, which is also the largest number of bytes by which vector accesses may
        extend beyond the end of a buffer."""
        return 64 if self.has_vectors else 8

    @property
    def overlays_results(self) -> bool:
        """Whether a kernel's result may overlap an input that is not read later: on machines where memory is scarcer
        than time."""
        return False

    def room_of(self, size: int) -> int:
        """The bytes to reserve for a buffer of `size` bytes, including those after it that a vector load may access."""
        behind = self.alignment if self.has_vectors else 0
        return -(-(size + behind) // self.alignment) * self.alignment

    @property
    def whole_vectors(self) -> bool:
        """Whether one register holds a vector of the IR (`LANES` elements); such targets have masked vectors, too."""
        return "avx512f" in self.features

    @property
    def whole_dots(self) -> bool:
        """Whether one instruction multiplies 64 codes by 64 codes."""
        return self.has("avx512f", "avx512vnni")

    @property
    def multiplies_rows_by_rows(self) -> bool:
        """Whether kernels for the product of two computed matrices of 8-bit codes accept the second one in the layout
        [columns, depth]."""
        return self.whole_dots

    @property
    def saturates_in_libraries(self) -> bool:
        """Whether libraries may saturate sums of two products of uint8 and int8 to 16 bits: on x86 without VNNI, or if
        the processor is unknown."""
        is_x86 = not self.triple or self.triple.startswith(("x86_64", "i386", "i686"))
        return is_x86 and not (self.has("avxvnni") or self.has("avx512vnni"))

    @property
    def tables(self) -> tuple[str, ...]:
        """The target's ways to look up many bytes at once, the best first: keys of `TABLES`."""
        return tuple(name for name, needed in TABLES.items() if needed <= self.features)

    @property
    def shuffle_bytes(self) -> int:
        """The size in bytes of a register whose 8-bit elements can be shuffled by one instruction; 0 if there is
        none."""
        return 0

    @property
    def is_x86(self) -> bool:
        """Whether the target has x86 vector instructions."""
        return any(feature.startswith(("sse", "avx")) for feature in self.features)


@dataclass(frozen=True)
class CpuTarget(Processor):
    """A CPU as a target."""

    kind: ClassVar[Literal["cpu"]] = "cpu"

    @property
    def micro_architecture(self) -> MicroArchitecture:
        """The row of `cpu` in the table of micro-architectures, or the generic row."""
        return micro_architecture(self.cpu)

    @property
    def costs(self) -> CpuCosts:
        return replaced(self.micro_architecture.costs, self.measured)

    @property
    def feature_string(self) -> str:
        """The features in LLVM's syntax, `-sse4a,...,+avx2,+fma,...`, sorted: features that LLVM would assume for the
        CPU, but that the target lacks, are removed."""
        missing = sorted(absent(self.triple, self.cpu, self.features))
        return ",".join([f"-{name}" for name in missing] + [f"+{name}" for name in sorted(self.features)])

    @property
    def function_attributes(self) -> str:
        """The attributes of every LLVM function. With AVX-512: use 512-bit vectors, and align the stack, because LLVM
        by itself notices too late that it spills 64 bytes at a time. Without threads and vectors: optimize for size.
        Else none."""
        if not self.has_threads and not self.has_vectors:
            return "optsize"
        return '"prefer-vector-width"="512" "stackrealign"' if self.whole_vectors else ""

    @property
    def computes_floats(self) -> bool:
        """Whether floats are added by an instruction; otherwise the compiler's run-time library has a function for
        it."""
        return computes_floats(self.llvm_triple, self.cpu, self.feature_string)

    @property
    def fuses(self) -> bool:
        return not self.features.isdisjoint(FUSING)

    @property
    def divides_by_products(self) -> bool:
        return self.fuses

    def packed_rows(self, floats: bool) -> int:
        return self.costs.packed_float_rows if floats and self.sums_along_rows else self.costs.packed_rows

    @property
    def sums_along_rows(self) -> bool:
        return bool(self.triple) and self.has_vectors

    @property
    def multiplies_tiles(self) -> bool:
        """Whether one instruction multiplies 16 rows of 64 codes by 16 columns, in tile registers (AMX)."""
        return self.has("amx-tile", "amx-int8")

    @property
    def vector_registers(self) -> int:
        """The number of vectors of `LANES` accumulators that fit the registers."""
        if self.whole_vectors:
            return 32
        return 8 if self.features & {"avx", "neon"} else 4

    @property
    def register_bytes(self) -> int:
        """The bytes that one arithmetic instruction processes: 4 if there are no vectors."""
        _, always = BASELINE.get(self.triple.partition("-")[0], ("", frozenset[str]()))
        return next((size for feature, size in REGISTERS.items() if feature in self.features | always), 4)

    @property
    def has_vectors(self) -> bool:
        return not self.triple or self.register_bytes > 4

    @property
    def overlays_results(self) -> bool:
        return not self.has_threads and not self.has_vectors

    @property
    def compiled_again(self) -> bool:
        """Whether the code becomes C, whose compiler unrolls loops itself."""
        return self.triple == "c"

    @property
    def adds_products(self) -> bool:
        """Whether one instruction adds the products of 16 codes by 16 codes to a scalar, and loads can be masked, as in
        Arm's vectors of microcontrollers (MVE). On such a processor, kernels that do not use this instruction are
        scalar."""
        return self.has("mve")

    @property
    def has_threads(self) -> bool:
        """Whether a team of threads can execute loops: on Linux."""
        return "linux" in self.triple

    @property
    def index_bits(self) -> int:
        """The width of an index in bits: 32 for a target with addresses of 32 bits and without threads, else 64. With
        threads it is 64 because the iteration counts of the loops that threads share are 64-bit."""
        return 32 if not self.has_threads and self.triple.startswith(ADDRESSES_OF_32_BITS) else 64

    @property
    def shuffle_bytes(self) -> int:
        return 64 if "avx512bw" in self.features else 32 if "avx2" in self.features else 16

    @property
    def packs(self) -> bool:
        """Whether four whole vectors can be packed into one vector of bytes, with saturation."""
        return self.has("avx512f", "avx512bw")

    @property
    def has_caches(self) -> bool:
        """Whether the target has several cache levels, and instructions that prefetch into them."""
        return not self.features.isdisjoint(CACHED)


@dataclass(frozen=True)
class GpuTarget(Processor):
    """A GPU as a target. Its features are `dot` (four 8-bit products added to a sum), `fma-rz` (multiply-adds that
    round towards zero), `shuffle` (lanes of a warp read each other's numbers), `mma` (matrix products of a warp),
    `async-copy`, `wgmma`. `matmul`: the type to which factors of float products are rounded for matrix units; empty for
    products in float32."""

    kind: Literal["cuda", "opencl"] = "cuda"
    matmul: str = ""

    @property
    def chip(self) -> Chip | None:
        """The row of the table `CHIPS` (multiprocessors, shared memory, ...) for the GPU `cpu`; None for OpenCL."""
        return CHIPS[self.cpu] if self.kind == "cuda" else None

    @property
    def costs(self) -> GpuCosts:
        chip = self.chip
        known = (
            GpuCosts() if chip is None else GpuCosts(chip.processors, shared_bytes=chip.shared << 10, near_results=1)
        )
        return replaced(known, self.measured)

    def with_costs(self, measured: Mapping[str, float]) -> Self:
        found = super().with_costs(measured)
        for name, least in (("shared_bytes", 0), ("largest_block", WARP)):
            most, given = getattr(replace(self, measured=()).costs, name), getattr(found.costs, name)
            if given > most:
                raise InvalidArgument(f"costs['{name}']", f"is {given}", f"a block has {most} at most")
            if given < least:
                raise InvalidArgument(f"costs['{name}']", f"is {given}", f"a block has {least} at least")
        return found

    @property
    def feature_string(self) -> str:
        """The PTX version as an LLVM feature; empty for OpenCL."""
        return "" if self.chip is None else self.chip.ptx

    @property
    def extensions(self) -> str:
        """The SPIR-V extensions that the code may use."""
        return "+SPV_KHR_integer_dot_product" if self.kind == "opencl" and self.dots else ""

    @property
    def fuses(self) -> bool:
        return True

    @property
    def multiplies_rows_by_rows(self) -> bool:
        return self.matrix_units

    @property
    def processors(self) -> int:
        """The number of multiprocessors for which launches are planned."""
        return self.costs.processors

    @property
    def dots(self) -> bool:
        """Whether one instruction adds four 8-bit products to a sum."""
        return "dot" in self.features

    @property
    def shuffles(self) -> bool:
        """Whether lanes of a warp can read each other's registers."""
        return "shuffle" in self.features

    @property
    def matrix_units(self) -> bool:
        """Whether warps have matrix instructions, and asynchronous copies into shared memory."""
        return self.has("mma", "async-copy")

    @property
    def warpgroups(self) -> bool:
        """Whether groups of four warps have matrix instructions (wgmma)."""
        return "wgmma" in self.features


Target = CpuTarget | GpuTarget
"""A CPU or a GPU."""
UNKNOWN = CpuTarget("", "", frozenset())
"""The target of a module without one: a CPU with no special features."""
