"""`inline-partitions` gives back the module that was partitioned, to the letter, where its pass says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import relay
from relay.byoc.partitioning.annotate_target import AnnotateTarget
from relay.byoc.partitioning.inline_partitions import InlinePartitions
from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.partitioning.partition_graph import PartitionGraph
from relay.byoc.patterns import Entry, is_constant, is_op, wildcard
from relay.module import IRModule
from tests.unit.partitioning_modules import Known, T, module, ops
from tests.unit.test_annotate_target import DIGITS, IF, WHILE

MODELS = Path(__file__).parents[3] / "shared" / "models"
DIAMOND = f"""func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}, {T}) {{
  %k = relay.constant dense<1.0> : {T}
  %a = relay.abs %x : ({T}) -> {T}
  %m = relay.multiply %y, %k : ({T}, {T}) -> {T}
  %b = relay.exp %a : ({T}) -> {T}
  %l = relay.constant dense<2.0> : {T}
  %c = relay.add %a, %l : ({T}, {T}) -> {T}
  %n = relay.multiply %m, %b : ({T}, {T}) -> {T}
  %d = relay.add %c, %b : ({T}, {T}) -> {T}
  %e = relay.subtract %d, %k : ({T}, {T}) -> {T}
  func.return %e, %n, %d : {T}, {T}, {T}
}}"""


@pytest.mark.parametrize("text", [DIAMOND, IF, WHILE])
def test_every_step_is_undone(known: Known, text: str):
    known("x", "abs", "subtract", entries=[Entry("bias", wildcard() + is_constant())])
    known("y", "multiply", "negative", "add")
    mod = IRModule.parse(text)
    steps = [MergeComposite(("x", "y"))(mod)]
    for step in (AnnotateTarget(("x", "y")), MergeCompilerRegions(), PartitionGraph(constants="hoist")):
        steps.append(step(steps[-1]))
    steps.append(PartitionGraph()(steps[1]))
    for step in steps:
        assert str(step) != str(mod) and str(InlinePartitions()(step)) == str(mod)


@pytest.mark.parametrize("model", [DIGITS, MODELS / "keras_lstm_mnist_ptq.tflite", MODELS / "kws_int8.tflite"])
def test_models_come_back(known: Known, model: Path):
    if not model.exists():
        pytest.skip(f"{model.name} is not there")
    conv = is_op("qnn.conv2d")(wildcard(), is_constant())
    known("x", "reshape", entries=[Entry("conv", is_op("qnn.requantize")(is_op("nn.bias_add")(conv, is_constant())))])
    known("y", "qnn.dense", "qnn.lstm", "nn.avg_pool2d", "nn.bias_add")
    mod = relay.frontend.from_tflite(model)
    parted = relay.build_external_compiler(mod, ["x", "y"])
    assert len(parted.functions) > 2
    assert InlinePartitions()(parted).to_text(locations=True) == mod.to_text(locations=True)


def test_settings_of_compilers_stay(known: Known):
    known("x", "abs")
    mod = module("a = abs x\nreturn a")
    back = InlinePartitions()(relay.build_external_compiler(mod, "x", exact=True))
    del back.op.attributes["byoc.exact"]
    assert str(back) == str(mod)


def test_equal_constants_become_one(known: Known):
    """What cannot be told apart when it comes back."""
    known("x", "add")
    text = "k = constant 1.0\na = add x k\nb = exp a\nc = add b k\nreturn c"
    back = InlinePartitions()(relay.build_external_compiler(module(text), "x"))
    assert ops(back) == ["constant", "add", "exp", "add"]
