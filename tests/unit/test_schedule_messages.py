"""What `relay.schedule` cannot say, and options of the passes that read it: one line each, which names the place."""

from __future__ import annotations

import re

import pytest

from relay.errors import InvalidArgument
from relay.lowering.gpu.schedule_gpu import ScheduleGpu
from relay.lowering.parallelize import Parallelize
from relay.module import IRModule
from relay.passes import Pipeline
from relay.target import attach, resolve

ROWS = """func.func private @rows(%x: memref<8x64xi32>, %r: memref<8x64xi32>) attributes {relay.schedule = ATTRIBUTE} {
  %one = arith.constant 1 : i32
  linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x64xi32>) outs(%r : memref<8x64xi32>) {
  ^bb0(%a: i32, %b: i32):
    %0 = arith.addi %a, %one : i32
    linalg.yield %0 : i32
  }
  func.return
}"""  # noqa: E501

REFUSED = {
    "{ops = [{strategy = 'nest'}], tile = [1, 16]}": "has tile beside ops; write it in an entry of ops",
    "{ops = [{strategy = 'nest'}, 3]}": "ops is not an array of dictionaries; write ops = [{strategy = ...}, ...]",
    "{ops = [{op = 0}]}": "names no strategy; possible: elementwise, nest",
    "{ops = [{}]}": "names no strategy; the kernel has: op 0 elementwise",
    "{strategy = 'nest', order = [false, true]}": "order = [false, true] is not possible; possible: [0, 1], [1, 0]",
    "{strategy = 'elementwise', lanes = [16, true]}": "lanes = [16, true] is not possible; possible: ",
    "{threads = [{loop = 0, arund = 1}]}": "threads says arund of a loop; it may say loop, around and turns",
    "{threads = [{loop = 0, turns = -4}]}": "threads share a loop of -4 turns; leave turns out: it is not read",
    "{threads = [{loop = true}]}": "threads is not an array of loops; write threads = [{loop = 0}, ...]",
    "{threads = [{loop = -1}]}": "threads cannot share loop -1; ",
    "{threads = [{loop = 0, around = -1}]}": "threads cannot share loop 0 for all turns of loop -1; ",
    "{strategy = 'nest', threads = [{loop = 0, around = 1}]}": "threads cannot share loop 0 for all turns of loop 1; ",
    "{strategy = 'nest', threads = [{loop = 0}, {loop = 1}]}": "threads share one loop inside of another; ",
    "{ops = [{op = 7, strategy = 'nest'}]}": "op 7 is not scheduled by itself; the kernel has: op 0 elementwise",
    "{strategy = 3.5 : f32}": "3.500000e+00 : f32 is no decision; write true, a number, a name, or an array of these",
}


@pytest.mark.parametrize("attribute", REFUSED)
def test_what_a_schedule_cannot_say(attribute: str):
    module = IRModule.parse(ROWS.replace("ATTRIBUTE", attribute.replace("'", '"')))
    with pytest.raises(InvalidArgument, match=r"@rows: relay\.schedule.*" + re.escape(REFUSED[attribute])):
        Pipeline.parse("schedule,parallelize")(module)


CALLS = """func.func private @kernel(%x: memref<8xi32>)
func.func @main(%x: memref<8xi32>) attributes {relay.schedule = {strategy = "nest"}} {
  func.call @kernel(%x) : (memref<8xi32>) -> ()
  func.return
}"""


@pytest.mark.parametrize(("passes", "target"), [("schedule", "riscv64"), ("schedule-gpu", "cuda")])
def test_a_schedule_of_a_function_without_a_kernel(passes: str, target: str):
    module = IRModule.parse(CALLS)
    attach(module.op, resolve(target))
    with pytest.raises(InvalidArgument, match="^@main: relay.schedule: the function has nothing to schedule; write"):
        Pipeline.parse(passes)(module)


def test_a_scheduled_function_is_left_alone():
    module = Pipeline.parse("schedule")(IRModule.parse(ROWS.replace("ATTRIBUTE", "{}")))
    assert str(Pipeline.parse("schedule")(module)) == str(module)


def test_threads_are_not_for_gpus():
    module = IRModule.parse(ROWS.replace("ATTRIBUTE", "{threads = [{loop = 0}]}"))
    attach(module.op, resolve("cuda"))
    with pytest.raises(
        InvalidArgument, match="^@rows: relay.schedule: has threads, which are a CPU's; block is how many"
    ):
        Pipeline.parse("schedule-gpu")(module)


@pytest.mark.parametrize("option", ["fork", "least"])
def test_cycles_are_not_negative(option: str):
    with pytest.raises(InvalidArgument, match=f"option {option}: is -1; give a number of cycles"):
        Parallelize(**{option: -1})


@pytest.mark.parametrize(("option", "value"), [("processors", 30), ("matmul", '"tf32"')])
def test_options_that_the_target_has_warn_and_are_obeyed(option: str, value: int | str):
    with pytest.warns(DeprecationWarning, match=rf"schedule-gpu\{{{option}=...\}} is deprecated: put attach-target"):
        step = Pipeline.parse(f"schedule-gpu{{{option}={value}}}")[0]
    assert isinstance(step, ScheduleGpu)
    module = IRModule.parse("builtin.module {}")
    attach(module.op, resolve("cuda"))
    found = step.device(module.op)
    assert (found.processors if option == "processors" else f'"{found.matmul}"') == value
