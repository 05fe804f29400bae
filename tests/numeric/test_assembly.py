"""The assembly of the heavy kernels: no scalar multiply is left in an innermost loop, of data or of addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

import relay
from tests.numeric.test_models_compiled import DIGITS
from tests.numeric.test_models_interpreted import ALL, LARGE, MODELS

HEAVY = ("conv2d", "dense", "elementwise")
"""What fuse-ops calls convolutions (depthwise ones too), products, and kernels of elementwise operations (adds)."""
SMALL = ("ad01_fp32", "ad01_int8", "kws_fp32", "kws_int8", "resnet8_int8")
SHORT = ("keras_lstm_mnist_ptq",)
"""Models with rows of fewer numbers than a vector has: 10 classes."""
JUMP = re.compile(r"j\w+|b(\.\w+)?|cbn?z|tbn?z")
X86_MULTIPLY = re.compile(r"i?mul[bwlq]?|mulx[lq]?|v?mul(ss|sd)|vfn?m(add|sub)\d+(ss|sd)")
ARM_MULTIPLY = re.compile(r"f?n?m(ul|add|sub|neg)|[su]m(ul|add|sub|neg)[lh]")
VECTOR_MULTIPLY = re.compile(r"vpdpbusds?|v?pmaddwd|v?pmuldq|v?pmull[wd]|v?mulp[sd]|vfn?m(add|sub)\d+p[sd]")


@dataclass(frozen=True)
class Instruction:
    """A mnemonic and its operands; a label has neither a mnemonic nor, in `operands`, its colon."""

    mnemonic: str
    operands: str

    @property
    def is_scalar_multiply(self) -> bool:
        if X86_MULTIPLY.fullmatch(self.mnemonic) and not re.match("[vz]\\d", self.operands):
            return True
        return ARM_MULTIPLY.fullmatch(self.mnemonic) is not None and re.match("[wxsd]\\d", self.operands) is not None


def functions(assembly: str) -> dict[str, list[Instruction]]:
    """The instructions and local labels of each function."""
    found: dict[str, list[Instruction]] = {}
    code: list[Instruction] = []
    for line in assembly.splitlines():
        if label := re.match(r"([\w.$]+):", line):
            if label[1].startswith("."):
                code.append(Instruction("", label[1]))
            else:
                code = found[label[1]] = []
        elif (words := re.split(r"#|//", line)[0].split(maxsplit=1)) and not words[0].startswith("."):
            code.append(Instruction(words[0], words[1].strip() if len(words) > 1 else ""))
    return found


def innermost_loops(code: list[Instruction]) -> list[list[Instruction]]:
    """What lies between a label and a jump back to it, where nothing inside jumps back."""
    labels = {each.operands: at for at, each in enumerate(code) if not each.mnemonic}
    loops: set[tuple[int, int]] = set()
    for at, each in enumerate(code):
        target = labels.get(each.operands.split(",")[-1].strip(), at + 1)
        if JUMP.fullmatch(each.mnemonic) and target <= at:
            loops.add((target, at))
    return [
        code[start : end + 1]
        for start, end in loops
        if not any((a, b) != (start, end) and start <= a and b <= end for a, b in loops)
    ]


def check(assembly: str) -> int:
    """The number of innermost loops read, after none of them showed a scalar multiply."""
    read = 0
    for name, code in functions(assembly).items():
        if re.sub(r"_\d+$", "", name) in HEAVY:
            loops = innermost_loops(code)
            read += len(loops)
            for loop in loops:
                wrong = [f"{each.mnemonic} {each.operands}" for each in loop if each.is_scalar_multiply]
                assert not wrong, f"{name}: {len(wrong)} scalar multiplies in a loop of {len(loop)}: {wrong[:3]}"
    return read


EXAMPLE = """
conv2d_0:
	imulq	%rax, %rbx
.LBB0_1:                                # =>This Loop Header
	imulq	%rax, %rcx
.LBB0_2:
	{inner}
	jne	.LBB0_2
	jmp	.LBB0_1
.LBB0_3:
	mulss	%xmm0, %xmm1
	retq
"""


@pytest.mark.parametrize("inner", ["imulq %rax, %rbx", "vmulss %xmm0, %xmm1, %xmm2", "vfmadd231ss %xmm0, %xmm1, %xmm2"])
def test_a_scalar_multiply_is_found(inner: str):
    with pytest.raises(AssertionError, match="conv2d_0: 1 scalar"):
        check(EXAMPLE.format(inner=inner))


@pytest.mark.parametrize("inner", ["mul w0, w1, w2", "fmadd s0, s1, s2, s3", "madd x0, x1, x2, x3", "smull x0, w1, w2"])
def test_a_scalar_multiply_is_found_for_arm(inner: str):
    text = EXAMPLE.replace("jne", "b.ne").replace("jmp", "b").format(inner=inner)
    with pytest.raises(AssertionError, match="conv2d_0: 1 scalar"):
        check(text)


@pytest.mark.parametrize(
    "inner", ["vpmulld %zmm0, %zmm1, %zmm2", "vpdpbusd %zmm0, %zmm1, %zmm2", "mul v0.4s, v1.4s, v2.4s"]
)
def test_other_multiplies_and_other_loops_are_let_pass(inner: str):
    assert check(EXAMPLE.format(inner=inner)) == 1


def test_digits_have_no_scalar_multiply():
    assembly = relay.build(DIGITS / "digits_int8.tflite").get_source("asm")
    check(assembly)
    convolutions = [code for name, code in functions(assembly).items() if name.startswith("conv2d")]
    assert len(convolutions) >= 2
    if "%rsp" in assembly:
        assert all(any(VECTOR_MULTIPLY.fullmatch(each.mnemonic) for each in code) for code in convolutions)


def check_model(name: str) -> None:
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    assert check(relay.build(path).get_source("asm")) > 0


@pytest.mark.ci
@pytest.mark.parametrize("name", SMALL)
def test_model_has_no_scalar_multiply(name: str):
    check_model(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in (*ALL, *LARGE) if name not in (*SMALL, *SHORT)])
def test_large_model_has_no_scalar_multiply(name: str):
    check_model(name)
