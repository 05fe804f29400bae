"""The `machine` dialect: what processors do in one instruction, before it is spelled for one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import IntegerType, UnitAttr, VectorType, i8, i16, i32
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

Vector = VectorType[Attribute]


def _vector(value: SSAValue) -> Vector:
    """The type of an operand, which its definition says is a vector."""
    return cast(Vector, value.type)


@irdl_op_definition
class DotProductOp(IRDLOperation):
    """`result[i] = accumulator[i] + sum over k < g of data[g*i + k] * weights[g*i + k]`, i32, wrapping.

    `accumulator`: `vector<n x i32>`; `data`, `weights`: `vector<(g*n) x i8>` or `<(g*n) x i16>`, g = 2 or 4. `weights`
    are signed, and `data` unless `unsigned` is given. `select-target-ops` spells it for the target.
    """

    name = "machine.dot_product"
    accumulator = operand_def(Vector)
    data = operand_def(Vector)
    weights = operand_def(Vector)
    unsigned = opt_prop_def(UnitAttr)
    result = result_def(Vector)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = (
        "$accumulator `,` $data `,` $weights attr-dict `:` type($accumulator) `,` type($data) `,` type($weights) `->`"
        " type($result)"
    )

    def verify_(self) -> None:
        sums, codes = _vector(self.accumulator), _vector(self.data)
        if self.result.type != sums or sums.element_type != i32 or len(sums.get_shape()) != 1:
            raise VerifyException(f"{self.name}: accumulator and result are one vector of i32 with one dimension")
        if self.weights.type != codes or codes.element_type not in (IntegerType(8), IntegerType(16)):
            raise VerifyException(f"{self.name}: data and weights are vectors of one type, of i8 or i16")
        lanes = sums.get_shape()[0]
        if len(codes.get_shape()) != 1 or codes.get_shape()[0] not in (2 * lanes, 4 * lanes):
            raise VerifyException(f"{self.name}: data and weights have 2 or 4 codes for each sum")


@dataclass(frozen=True)
class Dot:
    """An instruction: the features it needs, products per sum and the type of their factors, whether data is unsigned,
    how many sums it makes, its LLVM intrinsic, and whether that adds to an accumulator."""

    features: frozenset[str]
    group: int
    element: Attribute
    unsigned: bool
    lanes: int
    intrinsic: str
    adds: bool = True


def _bytes(features: str, unsigned: bool, lanes: int, name: str) -> Dot:
    return Dot(frozenset(features.split()), 4, i8, unsigned, lanes, f"llvm.{name}")


def _words(features: str, lanes: int, name: str, adds: bool = False) -> Dot:
    return Dot(frozenset(features.split()), 2, i16, False, lanes, f"llvm.{name}", adds)


DOTS: Sequence[Dot] = [
    _bytes("avx512vnni", True, 16, "x86.avx512.vpdpbusd.512"),
    _bytes("avxvnni", True, 8, "x86.avx512.vpdpbusd.256"),
    _bytes("i8mm", True, 4, "aarch64.neon.usdot.v4i32.v16i8"),
    _bytes("dotprod", False, 4, "aarch64.neon.sdot.v4i32.v16i8"),
    _words("avx512vnni", 16, "x86.avx512.vpdpwssd.512", adds=True),
    _words("avx512bw", 16, "x86.avx512.pmaddw.d.512"),
    _words("avxvnni", 8, "x86.avx512.vpdpwssd.256", adds=True),
    _words("avx2", 8, "x86.avx2.pmadd.wd"),
    _words("sse2", 4, "x86.sse2.pmadd.wd"),
]
"""Dot products that processors have, the best of a target first."""


def features_in(text: str) -> frozenset[str]:
    """The features that a text names as LLVM does, separated by commas: `+avx512f,+avx512vnni`, also without `+`."""
    return frozenset(name for part in text.split(",") if (name := part.strip().lstrip("+")))


def best_dot(features: frozenset[str], group: int | None = None) -> Dot | None:
    """The dot product that a target's micro-kernels should be made of; of `group` products, if that is given."""
    return next((dot for dot in DOTS if dot.features <= features and group in (None, dot.group)), None)


Machine = Dialect("machine", [DotProductOp])
