"""`#nvvm.target` and `#xevm.target`: the processor that a `gpu.module` is compiled for, with MLIR's names and
syntax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i32
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


class TargetAttr(ParametrizedAttribute):
    """A target processor by LLVM's names. Parameters that are absent from the text have MLIR's defaults."""

    FIELDS: ClassVar[Mapping[str, str | int]]
    """The parameters in the order in which they are written, with their defaults."""

    parameters_: DictionaryAttr

    @classmethod
    def of(cls, **given: str | int) -> Self:
        """Make the target with these parameters, and defaults for all others."""
        attributes = {
            name: IntegerAttr(value, i32) if isinstance(value, int) else StringAttr(value)
            for name, value in given.items()
            if value != cls.FIELDS[name]
        }
        return cls(DictionaryAttr(attributes))

    def get(self, name: str) -> str:
        """A parameter as text."""
        match self.parameters_.data.get(name):
            case StringAttr(data=text):
                return text
            case IntegerAttr(value=number):
                return str(number.data)
            case _:
                return str(self.FIELDS[name])

    def verify(self) -> None:
        for name in self.parameters_.data:
            if name not in self.FIELDS:
                raise VerifyException(f"{self.name} has no parameter {name}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        found: dict[str, Attribute] = {}
        if parser.parse_optional_punctuation("<") is None:
            return [DictionaryAttr(found)]
        while parser.parse_optional_punctuation(">") is None:
            name = parser.parse_identifier()
            parser.parse_punctuation("=")
            text = parser.parse_optional_str_literal()
            found[name] = IntegerAttr(parser.parse_integer(), i32) if text is None else StringAttr(text)
            parser.parse_optional_punctuation(",")
        return [DictionaryAttr(found)]

    def print_parameters(self, printer: Printer) -> None:
        given = self.parameters_.data
        if not given:
            return
        with printer.in_angle_brackets():
            words = [f'{n} = "{self.get(n)}"' if isinstance(given[n], StringAttr) else f"{n} = {self.get(n)}"
                     for n in self.FIELDS if n in given]  # fmt: skip
            printer.print_string(", ".join(words))


@irdl_attr_definition
class NvvmTargetAttr(TargetAttr):
    """`#nvvm.target<O = 3, chip = "sm_80", features = "+ptx70">`: an NVIDIA processor. Parameters left out of the text
    have upstream's defaults."""

    name = "nvvm.target"
    FIELDS: ClassVar[Mapping[str, str | int]] = {
        "O": 2,
        "triple": "nvptx64-nvidia-cuda",
        "chip": "sm_75",
        "features": "+ptx60",
    }


@irdl_attr_definition
class XevmTargetAttr(TargetAttr):
    """`#xevm.target<triple = "spirv64v1.2-unknown-unknown", chip = "">`: SPIR-V for OpenCL."""

    name = "xevm.target"
    FIELDS: ClassVar[Mapping[str, str | int]] = {"O": 2, "triple": "spirv64-unknown-unknown", "chip": "bmg"}


Nvvm = Dialect("nvvm", [], [NvvmTargetAttr])
Xevm = Dialect("xevm", [], [XevmTargetAttr])
