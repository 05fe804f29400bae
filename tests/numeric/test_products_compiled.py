"""Products of matrices that are both computed at run time: the second one is packed by the code itself."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute

from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.dialects import relay
from relay.dialects.attributes import element_type
from relay.exploration.tuning import DrawSchedules
from relay.interpreters import run
from relay.passes import PassContext
from relay.target import host
from relay.transforms.print_choices import schedule_lines
from tests.numeric.compiled_modules import Net, equal
from tests.numeric.test_operators_compiled import target_of
from tests.numeric.test_schedule_attributes import with_pass

SHAPES = (
    (1, 9, 8, 16),
    (3, 8, 12, 33),
    (2, 17, 20, 130),
    (2, 30, 7, 24),
    (1, 8, 1, 17),
    (3, 10, 70, 20),
    (2, 12, 10, 3),
    (2, 9, 20, 8),
    (1, 16, 9, 1),
)
"""Matrices, rows, inner size, columns."""
FEW = ((2, 1, 64, 67), (1, 3, 67, 80), (1, 8, 130, 33), (3, 2, 16, 18), (1, 7, 300, 64), (1, 8, 19, 130))
"""Of few rows, where one side's rows are read as they lie, in parts: sizes around multiples of 4 and 16."""
FLAVOURS: dict[str, tuple[str, str, tuple[int, int] | None]] = {
    "i8": ("int8", "int8", (-5, 3)),
    "i8_plain": ("int8", "int8", (0, 0)),
    "u8": ("uint8", "uint8", (121, 140)),
    "u8_i8": ("uint8", "int8", (9, 0)),
    "i8_u8": ("int8", "uint8", (0, 128)),
    "f32": ("float32", "float32", None),
}


def products(flavour: str, shapes: Sequence[tuple[int, int, int, int]] = SHAPES) -> Net:
    """Every shape, both orders of the second matrix, with and without what usually follows."""
    net = Net(5)
    left, right, zeros = FLAVOURS[flavour]
    for batch, rows, inner, columns in shapes:
        for turned in (False, True):
            a = net.argument(net.numbers(left, batch, rows, inner))
            b = net.argument(net.numbers(right, batch, *((columns, inner) if turned else (inner, columns))))
            properties: dict[str, Attribute] = {"transpose_b": IntegerAttr.from_bool(turned)}
            if zeros is None:
                properties["out_dtype"] = element_type("float32")
            else:
                properties["input_zero_point"] = IntegerAttr(zeros[0], i32)
                properties["kernel_zero_point"] = IntegerAttr(zeros[1], i32)
            name = f"{batch}x{rows}x{inner}x{columns}{' turned' if turned else ''}"
            sums = net.add(relay.BatchMatmulOp, [a, b], properties)
            net.result(name, sums)
            again = net.add(relay.BatchMatmulOp, [a, b], properties)
            followed = net.relu(again, columns) if zeros is None else net.requantize(again, columns, left)
            net.result(f"{name} and what follows", followed)
    return net


def choices(net: Net) -> list[str]:
    """What the schedule says of each kernel with a product."""
    module = net.module()
    default_pipeline().apply(module)
    kernels = [function for name, function in module.functions.items() if "matmul" in name]
    return ["\n".join(schedule_lines(kernel.attributes.get("relay.schedule"))) for kernel in kernels]


@pytest.mark.parametrize(
    ("flavour", "shapes"),
    [
        ("i8", SHAPES[1:4]),
        ("f32", FEW[:3]),
        pytest.param("i8", SHAPES[-3:], marks=pytest.mark.ci),
        pytest.param("f32", (*SHAPES[1:4], *SHAPES[-3:], *FEW[3:]), marks=pytest.mark.ci),
    ],
)
def test_products(flavour: str, shapes: Sequence[tuple[int, int, int, int]]):
    with PassContext(opt_level=1):  # LLVM is quick there
        products(flavour, shapes).check()


@pytest.mark.slow
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_products_of_every_shape(flavour: str):
    products(flavour).check()


@pytest.mark.slow
def test_products_without_vectors():
    products("f32").check(target_of("generic"))


@pytest.mark.skipif(
    not host().features >= {"avx512f", "avx512vnni"}, reason="this CPU has no dot product of 8-bit codes"
)
def test_products_use_the_micro_kernel():
    said = choices(products("i8"))
    assert sum("codes_per_step 4" in text and "packed at run time" in text for text in said) >= 5
    (rest,) = choices(products("i8", [(2, 30, 7, 24)]))  # an inner size that is no multiple of 4
    assert "codes_per_step 4" in rest and "packed at run time" in rest
    assert all("packed at run time" in text for text in choices(products("i8", [(2, 9, 20, 8)])))
    assert sum("packed at run time" in text for text in choices(products("i8", [(2, 12, 10, 3)]))) == 1  # not of [n, k]


def test_few_rows_are_not_packed():
    net = Net(6)
    a, b = net.argument(net.numbers("float32", 2, 4, 16)), net.argument(net.numbers("float32", 2, 16, 32))
    properties = {"transpose_b": IntegerAttr.from_bool(False), "out_dtype": element_type("float32")}
    net.result("few", net.add(relay.BatchMatmulOp, [a, b], properties))
    assert not any("packed at run time" in text for text in choices(net))


@pytest.mark.parametrize("shapes", [FEW[:2], pytest.param(FEW[2:], marks=pytest.mark.ci)])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_few_rows_of_floats_with_any_schedule(seed: int, shapes: Sequence[tuple[int, int, int, int]]):
    net = products("f32", shapes)
    module = net.module()
    with PassContext(opt_level=1):
        executable = build(module, pipeline=with_pass(DrawSchedules(seed)))
    results = executable.run(*net.inputs)
    assert isinstance(results, tuple)
    for found, wanted in zip(results, run(module, net.inputs), strict=True):
        assert equal(found, wanted)


def test_a_product_of_one_more_column_than_vectors_hold():
    """With the data added to it: LLVM's passes fail on vectors of one lane that are stored."""
    net = Net(31)
    for columns in (1, 17):
        x = net.argument(net.numbers("float32", 24, columns))
        sums = net.dense(x, net.constant(net.numbers("float32", columns, columns)))
        net.result(f"{columns} columns", net.add(relay.AddOp, [net.relu(sums, columns), x], {}))
    net.check()
