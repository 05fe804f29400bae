"""What code is generated for: a CPU or a GPU, as one record that says what it has and what that costs."""

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
"""Numbers of 32 bits in a vector of the IR; LLVM splits it where registers are narrower."""
FUSING = frozenset({"fma", "avx512f", "neon", "d"})
"""With any of these features, one instruction multiplies and adds floats of both widths with one rounding."""
ADDRESSES_OF_32_BITS = ("arm", "riscv32", "thumb", "wasm32")
"""The starts of triples of machines with 32-bit addresses."""
CACHED = frozenset({"sse2", "avx", "neon"})
"""Processors with any of these have several levels of caches."""
HALF_FLOATS = ("avx512fp16", "fullfp16")
"""With any of these, there is arithmetic of f16."""
NVVM_TOWARD_ZERO = "llvm.nvvm.fma.rz.f"
NVVM_SATURATE, NVVM_TO_NEAREST = "llvm.nvvm.saturate.f", "llvm.nvvm.f2i.rn"
"""LLVM's intrinsics of NVIDIA's GPUs that clip a float to 0 to 1, and make an integer of it, ties to even."""
TOWARD_ZERO = {"avx512f": "llvm.x86.avx512.vfmadd.f32", "fma-rz": NVVM_TOWARD_ZERO}
"""LLVM's intrinsic of a multiply-add of f32 that rounds towards zero, by the feature it needs."""
WARP = 32
"""Threads of a GPU that run together; layouts in registers and shuffles are written for this number."""
REGISTERS = {"avx512f": 64, "avx": 32, "sse2": 16, "neon": 16}
"""Bytes of a register that arithmetic of numbers of 32 bits takes at once, by the feature that it needs."""
TABLES = {
    "bytes": frozenset({"avx512f", "avx512vbmi"}),
    "words": frozenset({"avx512f", "avx512bw"}),
    "pieces32": frozenset({"avx2"}),
    "pieces16": frozenset({"ssse3"}),
    "quarters": frozenset({"neon"}),
}
"""Ways to look up many bytes at once, by permutations of bytes or words of 64, 32 or 16 bytes, the best first: a name,
and the features that it needs."""


@dataclass(frozen=True)
class Processor(ABC):
    """A machine in LLVM's terms. Choices depend on the properties below and on `costs`, never on names of CPUs.
    `measured`: numbers that replace estimates of `costs`; see `with_costs`."""

    triple: str
    cpu: str
    features: frozenset[str]
    measured: Measured = field(default=(), kw_only=True)

    @property
    @abstractmethod
    def costs(self) -> CpuCosts | GpuCosts:
        """The costs of instructions and memories: estimates, with measured numbers in place of some."""

    def with_costs(self, measured: Mapping[str, float]) -> Self:
        """The target with these numbers, by the names of `costs`' fields. Raises InvalidArgument for no mapping, for a
        name that the record does not have, and for a value that is not a number of the field's kind, or is negative."""
        given, estimates = mapping(measured, "costs", "{'fork': 3000}"), replace(self, measured=()).costs
        return replace(self, measured=checked(estimates, dict(self.measured) | given))

    @property
    @abstractmethod
    def feature_string(self) -> str:
        """The features as LLVM takes them."""

    @property
    @abstractmethod
    def function_attributes(self) -> str:
        """Attributes of every LLVM function."""

    @property
    @abstractmethod
    def fuses(self) -> bool:
        """Whether floats of both widths are multiplied and added by one instruction: else, by calls of libm."""

    @property
    def abi(self) -> str:
        """The calling convention, where LLVM has to be told."""
        if not self.triple.startswith("riscv"):
            return ""
        floats = "d" if "d" in self.features else "f" if "f" in self.features else ""
        return ("lp64" if self.triple.startswith("riscv64") else "ilp32") + floats

    @property
    def llvm_triple(self) -> str:
        """The triple as LLVM reads it: architecture, vendor, system, environment. Where the vendor is left out, as in
        `thumbv7em-none-eabihf`, it takes the environment for the system, and does not see what `eabihf` says. With
        `gnueabi`, copies are `memcpy` as on other processors, not `__aeabi_memcpy`, and floats have Arm's interface
        (AAPCS): GCC's library for ARMv6-M has a product of doubles as `__aeabi_dmul` alone, not as `__muldf3`."""
        first, *system = self.triple.split("-")
        if system[:1] == ["linux"] or (system[:1] == ["none"] and len(system) == 2):
            system = ["unknown", *system]
        return re.sub("-(eabi(hf)?)$", r"-gnu\1", "-".join([first, *system]))

    @property
    def floats_in_registers(self) -> bool:
        """Whether functions on Arm of 32 bits get and return floats in registers of the unit for floats (AAPCS-VFP,
        `-mfloat-abi=hard`), by the environment of the triple; else in those for integers (`softfp`, `soft`)."""
        return self.triple.startswith(("arm", "thumb")) and self.triple.endswith("eabihf")

    @property
    def relocation(self) -> str:
        """LLVM's relocation model: position-independent code, or code for the address that a linker assigns."""
        return "pic" if "linux" in self.triple else "static"

    @property
    @abstractmethod
    def divides_by_products(self) -> bool:
        """Whether two multiply-adds take the place of a division by a constant, where they give the same integers."""

    @property
    @abstractmethod
    def takes_rows_in_turn(self) -> bool:
        """Whether one kernel computes all of a row (mean, deviation, what follows) before it begins the next one."""

    @property
    @abstractmethod
    def takes_weights_in_blocks(self) -> bool:
        """Whether kernels read weights of few bits as they are, and need none in floats."""

    @property
    @abstractmethod
    def sums_along_rows(self) -> bool:
        """Whether kernels of few rows read the other matrix of a product as rows, and sum along both."""

    def packed_rows(self, floats: bool) -> int:
        """Rows of a product's first matrix at least for which kernels pack the second one, or copy it."""
        return self.costs.packed_rows

    @property
    @abstractmethod
    def keeps_scores(self) -> bool:
        """Whether attention is one kernel, which keeps the scores of a block of queries in scratch memory."""

    def has(self, *features: str) -> bool:
        """Whether it has all of these features."""
        return self.features.issuperset(features)

    def dot(self, group: int | None = None, unsigned: bool | None = None) -> Dot | None:
        """The dot product that micro-kernels should be made of; of `group` products, if that is given, and of data of
        this signedness, if there is one of as many."""
        best = best_dot(self.features, group)
        if best is None or unsigned is None:
            return best
        return next(self.dots_of(best.group, best.element, unsigned), best)

    @property
    def nibble_dot(self) -> Dot | None:
        """What multiplies pairs of unsigned numbers of 4 bits by signed bytes; None if there is no such instruction."""
        return next((dot for dot in NIBBLES if dot.features <= self.features), None)

    def matrix_dot(self, unsigned: bool) -> Dot | None:
        """What multiplies two rows of codes by two rows of signed weights; None if there is no such instruction."""
        fitting = (dot for dot in DOTS if dot.matrix and dot.unsigned == unsigned)
        return next((dot for dot in fitting if dot.features <= self.features), None)

    def dots_of(self, group: int, element: Attribute, unsigned: bool) -> Iterator[Dot]:
        """The dot products of so many factors of a type, the best first."""
        for dot in DOTS:
            if (dot.group, dot.element, dot.unsigned) == (group, element, unsigned) and dot.features <= self.features:
                yield dot

    @property
    def toward_zero(self) -> str | None:
        """LLVM's intrinsic of a multiply-add of f32 that rounds towards zero; None if there is no such instruction."""
        return next((name for feature, name in TOWARD_ZERO.items() if feature in self.features), None)

    @property
    def multiplies_high(self) -> bool:
        """Whether one instruction gives the rounded upper half of a product of 32 bits, another one shifts to the right
        and rounds: on AArch64."""
        return self.triple.startswith("aarch64") and "neon" in self.features

    @property
    def multiplies_wide(self) -> bool:
        """Whether one instruction multiplies 32 bits by 32, adds 64 bits and gives the upper word: on NVIDIA's GPUs."""
        return self.toward_zero == NVVM_TOWARD_ZERO

    @property
    def multiplies_to_64_bits(self) -> bool:
        """Whether it multiplies 32 bits by 32 and gives all 64: a Cortex-M0 does not, and compilers call a function."""
        return not self.triple.startswith("thumbv6m")

    @property
    def multiplies_lanes(self) -> bool:
        """Whether one instruction multiplies 16 bits by a lane of another register and adds 32: on AArch64."""
        return self.multiplies_high

    @property
    def narrows_saturating(self) -> bool:
        """Whether one instruction narrows integers to half of their bits, saturated: on AArch64."""
        return self.multiplies_high

    @property
    def half_floats(self) -> bool:
        """Whether it has arithmetic of f16."""
        return not self.features.isdisjoint(HALF_FLOATS)

    @property
    def has_vectors(self) -> bool:
        """Whether its registers hold several numbers of 32 bits."""
        return True

    @property
    def alignment(self) -> int:
        """The alignment of buffers in bytes; a vector may touch as many bytes behind one."""
        return 64 if self.has_vectors else 8

    @property
    def overlays_results(self) -> bool:
        """Whether a kernel's result may overlap an input that nothing reads later: where memory is short, not time."""
        return False

    def room_of(self, size: int) -> int:
        """The bytes to reserve for a buffer of `size`, including those behind it that a vector load may touch."""
        behind = self.alignment if self.has_vectors else 0
        return -(-(size + behind) // self.alignment) * self.alignment

    @property
    def whole_vectors(self) -> bool:
        """Whether one register holds a vector of the IR, of `LANES` numbers; such vectors have masks, too."""
        return "avx512f" in self.features

    @property
    def whole_dots(self) -> bool:
        """Whether it multiplies 64 codes by 64 with one instruction."""
        return self.has("avx512f", "avx512vnni")

    @property
    def multiplies_rows_by_rows(self) -> bool:
        """Whether of two computed matrices of codes the second one may be [columns, depth]."""
        return self.whole_dots

    @property
    def saturates_in_libraries(self) -> bool:
        """Whether libraries may saturate sums of two products of uint8 and int8 in 16 bits: on x86 without VNNI, or
        where the processor is not known."""
        is_x86 = not self.triple or self.triple.startswith(("x86_64", "i386", "i686"))
        return is_x86 and not (self.has("avxvnni") or self.has("avx512vnni"))

    @property
    def tables(self) -> tuple[str, ...]:
        """Its ways to look up many bytes at once, the best first: keys of `TABLES`."""
        return tuple(name for name, needed in TABLES.items() if needed <= self.features)

    @property
    @abstractmethod
    def shuffle_bytes(self) -> int:
        """Bytes of a register whose elements of 8 bits are shuffled at once; 0 where there is no such instruction."""

    @property
    def is_x86(self) -> bool:
        """Whether it has vector instructions of x86."""
        return any(feature.startswith(("sse", "avx")) for feature in self.features)


@dataclass(frozen=True)
class CpuTarget(Processor):
    """A CPU."""

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
        """`-sse4a,...,+avx2,+fma,...`, sorted: what LLVM would take the CPU to have besides is taken from it."""
        missing = sorted(absent(self.triple, self.cpu, self.features))
        return ",".join([f"-{name}" for name in missing] + [f"+{name}" for name in sorted(self.features)])

    @property
    def function_attributes(self) -> str:
        """What LLVM is told of every function: with AVX-512, to use all of it, and to align the stack: without being
        told, LLVM finds out that it spills 64 bytes at a time when it is too late to align them."""
        if not self.has_threads and not self.has_vectors:
            return "optsize"
        return '"prefer-vector-width"="512" "stackrealign"' if self.whole_vectors else ""

    @property
    def computes_floats(self) -> bool:
        """Whether it adds floats by an instruction: else, the compiler's library has a function for it."""
        return computes_floats(self.llvm_triple, self.cpu, self.feature_string)

    @property
    def fuses(self) -> bool:
        return not self.features.isdisjoint(FUSING)

    @property
    def divides_by_products(self) -> bool:
        return self.fuses

    @property
    def takes_rows_in_turn(self) -> bool:
        return bool(self.triple)

    @property
    def takes_weights_in_blocks(self) -> bool:
        return bool(self.triple) and self.has_vectors

    def packed_rows(self, floats: bool) -> int:
        return self.costs.packed_float_rows if floats and self.sums_along_rows else self.costs.packed_rows

    @property
    def sums_along_rows(self) -> bool:
        return bool(self.triple) and self.has_vectors

    @property
    def keeps_scores(self) -> bool:
        return bool(self.triple) and self.has_vectors

    @property
    def multiplies_tiles(self) -> bool:
        """Whether it multiplies 16 rows of 64 codes by 16 columns with one instruction, in tile registers (AMX)."""
        return self.has("amx-tile", "amx-int8")

    @property
    def vector_registers(self) -> int:
        """Vectors of `LANES` accumulators that the registers hold."""
        if self.whole_vectors:
            return 32
        return 8 if self.features & {"avx", "neon"} else 4

    @property
    def register_bytes(self) -> int:
        """Bytes that arithmetic takes at once: those of a number of 32 bits where there are no vectors."""
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
        """Whether one instruction adds the products of 16 codes by 16 to a number, and loads leave lanes out: Arm's
        vectors of microcontrollers (MVE). Other kernels are of scalars there, too."""
        return self.has("mve")

    @property
    def has_threads(self) -> bool:
        """Whether a team of threads can share loops: on Linux."""
        return "linux" in self.triple

    @property
    def index_bits(self) -> int:
        """Bits of an index: those of an address where nothing shares loops, which counts turns in 64."""
        return 32 if not self.has_threads and self.triple.startswith(ADDRESSES_OF_32_BITS) else 64

    @property
    def shuffle_bytes(self) -> int:
        return 64 if "avx512bw" in self.features else 32 if "avx2" in self.features else 16

    @property
    def packs(self) -> bool:
        """Whether it packs four whole vectors into one of bytes, with saturation."""
        return self.has("avx512f", "avx512bw")

    @property
    def has_caches(self) -> bool:
        """Whether it has several levels of caches and instructions that prefetch into them."""
        return not self.features.isdisjoint(CACHED)


@dataclass(frozen=True)
class GpuTarget(Processor):
    """A GPU. Its features are `dot` (four products of 8 bits in a sum), `fma-rz` (multiply-adds that round towards
    zero), `shuffle` (lanes of a warp read each other's numbers), `mma` (matrix products of a warp), `async-copy`,
    `wgmma`. `matmul`: what products of floats are rounded to for matrix units; empty for products in float32."""

    kind: Literal["cuda", "opencl"] = "cuda"
    matmul: str = ""

    @property
    def chip(self) -> Chip | None:
        """The row of `cpu`; None for OpenCL."""
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
        """The version of PTX."""
        return "" if self.chip is None else self.chip.ptx

    @property
    def extensions(self) -> str:
        """SPIR-V's extensions that the code may ask for."""
        return "+SPV_KHR_integer_dot_product" if self.kind == "opencl" and self.dots else ""

    @property
    def function_attributes(self) -> str:
        return ""

    @property
    def fuses(self) -> bool:
        return True

    @property
    def takes_rows_in_turn(self) -> bool:
        return True

    @property
    def multiplies_rows_by_rows(self) -> bool:
        return self.matrix_units

    @property
    def takes_weights_in_blocks(self) -> bool:
        return True

    @property
    def sums_along_rows(self) -> bool:
        return False

    @property
    def keeps_scores(self) -> bool:
        return True

    @property
    def divides_by_products(self) -> bool:
        return False

    @property
    def shuffle_bytes(self) -> int:
        return 0

    @property
    def processors(self) -> int:
        """Multiprocessors that launches are made for."""
        return self.costs.processors

    @property
    def dots(self) -> bool:
        """Whether four products of 8 bits are added to a sum by one instruction."""
        return "dot" in self.features

    @property
    def shuffles(self) -> bool:
        """Whether the lanes of a warp read each other's numbers."""
        return "shuffle" in self.features

    @property
    def matrix_units(self) -> bool:
        """Whether warps multiply matrices, and copy into shared memory while they do."""
        return self.has("mma", "async-copy")

    @property
    def warpgroups(self) -> bool:
        """Whether groups of four warps multiply matrices."""
        return "wgmma" in self.features


Target = CpuTarget | GpuTarget
"""A CPU or a GPU."""
UNKNOWN = CpuTarget("", "", frozenset())
"""The target of a module without one: a CPU with no special features."""
