"""Stages 2 and 3, as printed, become object code by MLIR's and LLVM's own passes: its outputs are the reference's."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from relay import signature
from relay.compile.pipeline import default_pipeline
from relay.frontend import from_tflite
from relay.lowering.linalg_specialize_generic_ops import LinalgSpecializeGenericOps
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.module import IRModule
from relay.passes import PassContext, PassInfo, PassInstrument
from relay.transforms.fold_constant import FoldConstant
from relay.transforms.fuse_ops import FuseOps
from relay.transforms.legalize import Legalize
from tests.numeric import mlir_runner
from tests.unit.pass_modules import DIGITS

MODELS = Path(__file__).parents[2] / "../shared/models"
PIPELINE = """builtin.module(
  linalg-generalize-named-ops, tosa-to-arith{include-apply-rescale=true},
  one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map},
  buffer-results-to-out-params{modify-public-functions=true}, convert-linalg-to-loops, convert-vector-to-scf,
  expand-strided-metadata, lower-affine, convert-scf-to-cf, convert-vector-to-llvm, convert-math-to-llvm,
  convert-math-to-libm, arith-expand, convert-ub-to-llvm, convert-arith-to-llvm, convert-index-to-llvm,
  finalize-memref-to-llvm, convert-cf-to-llvm, convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},
  reconcile-unrealized-casts)"""
LEVELS = ("relay-to-linalg", "bufferize", "schedule", "select-target-ops")
SLOW = ("ad01_int8", "kws_int8", "kws_fp32", "resnet8_int8", "vww_96_int8", "mobilenet_v1_0.25_128_quant")
TRANSLATE = shutil.which("mlir-translate-22")

pytestmark = [
    mlir_runner.needs_mlir,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed, which links"),
]


class Texts(PassInstrument):
    """What passes leave, as text."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name in LEVELS:
            self.texts[info.name] = mod.to_text(weights=True)


def results(text: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], folder: Path) -> list[np.ndarray]:
    """What `@main` of the object code writes; `outputs` are arrays of their shapes and types."""
    assert TRANSLATE is not None
    lowered = mlir_runner.tool([str(mlir_runner.MLIR_OPT), f"--pass-pipeline={PIPELINE}"], text)
    module = llvm.parse_assembly(mlir_runner.tool([TRANSLATE, "--mlir-to-llvmir"], lowered))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1, reloc="pic"
    )
    code, library = folder / "model.o", folder / f"model{len(list(folder.iterdir()))}.so"
    code.write_bytes(machine.emit_object(module))
    folders = {f"-Wl,-rpath,{each.parent}" for each in mlir_runner.LIBRARIES}
    libraries = [*mlir_runner.LIBRARIES, *folders, "-lm"]  # copies that are not contiguous are a function of MLIR's
    subprocess.run(["cc", "-shared", "-o", library, code, *libraries], check=True)
    given = [*map(np.ascontiguousarray, inputs), *map(np.zeros_like, outputs)]
    ctypes.CDLL(str(library)).main(*(ctypes.c_void_p(array.ctypes.data) for array in given))
    return given[len(inputs) :]


def check(
    mod: IRModule, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray], exact: bool, folder: Path
) -> None:
    with PassContext(instruments=[seen := Texts()]):
        default_pipeline()(mod)
    assert tuple(seen.texts) == LEVELS
    for level, text in seen.texts.items():
        for found, golden in zip(results(text, inputs, expected, folder), expected, strict=True):
            tolerance = 0.0 if exact else 1e-5
            np.testing.assert_allclose(found, golden, rtol=tolerance, atol=tolerance, err_msg=level)


@pytest.mark.ci
def test_the_digits(tmp_path: Path) -> None:
    data = np.load(DIGITS.parent / "digits_test.npz")
    check(from_tflite(DIGITS), [data["int8_images"][:1]], [data["int8_out"][:1]], exact=True, folder=tmp_path)


def test_named_ops_of_the_digits(tmp_path: Path) -> None:
    """`mlir-opt` writes a named op without its region, and so computes what the name says."""
    mod, data = from_tflite(DIGITS), np.load(DIGITS.parent / "digits_test.npz")
    for each in (Legalize(), FoldConstant(), FuseOps(), RelayToLinalg(), LinalgSpecializeGenericOps()):
        mod = each(mod)
    text = mlir_runner.tool([str(mlir_runner.MLIR_OPT)], mod.to_text(weights=True))
    assert text.count("linalg.conv_2d_nhwc_fhwc_q") == 3 and text.count("linalg.pooling_nhwc_sum") == 1
    golden = data["int8_out"][:1]
    np.testing.assert_array_equal(results(text, [data["int8_images"][:1]], [golden], tmp_path)[0], golden)


MATRICES = """func.func @main(%x: tensor<2x3x5xi8>, %y: tensor<2x5x4xi8>) -> tensor<2x3x4xi32> {
  %0 = relay.nn.batch_matmul %x, %y {transpose_b = false, input_zero_point = -3 : i32, kernel_zero_point = 7 : i32}
    : (tensor<2x3x5xi8>, tensor<2x5x4xi8>) -> tensor<2x3x4xi32>
  func.return %0 : tensor<2x3x4xi32>
}"""


PRODUCT = """#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @main(%x: tensor<2x5xi8>, %y: tensor<5x4xi8>) -> tensor<2x4xi32> {
  %n = arith.constant 0 : i32
  %e = tensor.empty() : tensor<2x4xi32>
  %r = linalg.fill ins(%n : i32) outs(%e : tensor<2x4xi32>) -> tensor<2x4xi32>
  %z = arith.constant 7 : i32
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<2x5xi8>, tensor<5x4xi8>) outs(%r : tensor<2x4xi32>) {
  ^bb0(%p: i8, %q: i8, %s: i32):
    %1 = arith.extsi %p : i8 to i32
    %2 = arith.subi %1, %z : i32
    %3 = arith.extsi %q : i8 to i32
    %4 = arith.muli %2, %3 : i32
    %5 = arith.addi %s, %4 : i32
    linalg.yield %5 : i32
  } -> tensor<2x4xi32>
  func.return %0 : tensor<2x4xi32>
}"""


def test_named_products_of_codes(tmp_path: Path) -> None:
    """With zero points, which the name subtracts."""
    mod = LinalgSpecializeGenericOps()(RelayToLinalg()(IRModule.parse(MATRICES)))
    written = mlir_runner.tool([str(mlir_runner.MLIR_OPT)], mod.to_text(weights=True))
    assert written.count("linalg.quantized_batch_matmul ins") == 1
    random = np.random.default_rng(0)
    x, y = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((2, 3, 5), (2, 5, 4)))
    golden = (x.astype(np.int32) + 3) @ (y.astype(np.int32) - 7)
    np.testing.assert_array_equal(results(written, [x, y], [golden], tmp_path)[0], golden)


def test_a_named_product_of_codes(tmp_path: Path) -> None:
    """Of two matrices, the second without a zero point."""
    mod = LinalgSpecializeGenericOps()(IRModule.parse(PRODUCT))
    written = mlir_runner.tool([str(mlir_runner.MLIR_OPT)], mod.to_text(weights=True))
    assert written.count("linalg.quantized_matmul ins") == 1
    random = np.random.default_rng(0)
    x, y = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((2, 5), (5, 4)))
    golden = (x.astype(np.int32) - 7) @ y.astype(np.int32)
    np.testing.assert_array_equal(results(written, [x, y], [golden], tmp_path)[0], golden)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_model(name: str, tmp_path: Path) -> None:
    if not (path := MODELS / f"{name}.tflite").exists():
        pytest.skip(f"the model {name} is not here")
    golden, mod = np.load(MODELS / "golden" / f"{name}.npz"), from_tflite(path)
    inputs, outputs = signature.read(mod["main"])
    given = [golden[f"rand0_in{number}"] for number in range(len(inputs))]
    expected = [golden[f"rand0_out{number}"] for number in range(len(outputs))]
    check(mod, given, expected, exact=not name.endswith("fp32"), folder=tmp_path)
