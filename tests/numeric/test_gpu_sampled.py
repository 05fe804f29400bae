"""Kernels of large models for many images: some of the blocks of each, on the emulator, against the interpreter.

Every call of @main becomes one of its own: what it takes is an input, what it gives an output. So each kernel gets what
the interpreter computes for the calls before it, and nothing runs but the blocks that are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import CallOp, ReturnOp
from xdsl.ir import BlockArgument, SSAValue

import relay
from relay import signature
from relay.compile.pipeline import lowering_passes
from relay.dialects import relay as ops
from relay.dialects.attributes import Array
from relay.frontend import from_tflite
from relay.interpreters import run
from relay.lowering.gpu.emulator import Emulator
from relay.lowering.gpu.emulator.bulk import Mapped
from relay.lowering.gpu.emulator.machine import aligned, memory_of
from relay.lowering.gpu.tensor_maps import MAP_BYTES
from relay.lowering.gpu.tiles import SPLITS
from relay.module import IRModule
from relay.passes import Pipeline
from relay.target import resolve
from tests.numeric.gpu_models import golden_of
from tests.numeric.test_models_compiled import close
from tests.numeric.test_models_interpreted import MODELS

SAMPLED = 2
"""Blocks of each launch that run."""
FILLS = (0x01, 0xFE)
"""Bytes of memory before a run. What is equal after both runs was written, from nothing but what was: sums of such
words are far beyond what a code can be, on either side."""
BLOCK = re.compile(r"(%\w+) = call (range\(i32 0, \d+\) )(i32 @llvm\.nvvm\.read\.ptx\.sreg\.ctaid\.x\(\))")


def calls_of(module: IRModule) -> list[CallOp]:
    """The calls of @main, in order."""
    return [op for op in module["main"].body.block.ops if isinstance(op, CallOp)]


def taken(call: CallOp) -> list[SSAValue]:
    """What a call takes, but for constants."""
    return [value for value in call.operands if not isinstance(value.owner, ops.ConstantOp)]


def returning(module: IRModule, values: Sequence[SSAValue]) -> None:
    """Let @main return these values."""
    function = module["main"]
    last = function.body.block.last_op
    assert isinstance(last, ReturnOp)
    last.operands = values
    for name in (signature.INPUTS, signature.OUTPUTS):
        function.attributes.pop(name, None)
    function.update_function_type()


@dataclass(frozen=True)
class Values:
    """What a call takes, besides constants, and what it gives, of all images that were looked at."""

    name: str
    taken: list[Array]
    given: list[Array]


def values_of(path: Path, target: str) -> list[Values]:
    """The values of all calls of a model, for all its stored inputs at once: a number of each image, and what uses it,
    are one call where there is one image, and several where there are more."""
    images = golden_of(path)[0]
    module = relay.optimize(from_tflite(path, batch=len(images)), target)
    calls = calls_of(module)
    values = list(dict.fromkeys(value for call in calls for value in (*taken(call), *call.results)))
    returning(module, values)
    inputs = [np.concatenate(parts) for parts in zip(*images, strict=True)]
    found = dict(zip(values, run(module, inputs), strict=True))
    return [
        Values(call.callee.string_value(), [found[value] for value in taken(call)], [found[v] for v in call.results])
        for call in calls
    ]


def repeated(images: Array, count: int) -> Array:
    """The images again and again, so many in all."""
    return np.resize(images, (count, *images.shape[1:]))


def apart(module: IRModule) -> list[CallOp]:
    """Let @main take what calls take from each other, and return what each gives. The calls."""
    block, calls = module["main"].body.block, calls_of(module)
    for call in calls:
        for number, value in enumerate(call.operands):
            if not isinstance(value.owner, ops.ConstantOp):
                call.operands[number] = block.insert_arg(value.type, len(block.args))
    returning(module, [value for call in calls for value in call.results])
    for op in reversed(list(block.ops)):
        if op.results and not isinstance(op, CallOp) and not any(any(value.uses) for value in op.results):
            op.detach()
            op.erase()
    for argument in [argument for argument in block.args if not any(argument.uses)]:
        block.erase_arg(argument)
    returning(module, [value for call in calls for value in call.results])
    return calls


def filled(size: int, fill: int) -> Array:
    """So many bytes of a device's memory."""
    memory = aligned(size)
    memory[:] = fill
    return memory


def bytes_of(array: Array) -> Array:
    """An array in a device's memory."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    memory = aligned(flat.size)
    memory[:] = flat
    return memory


@dataclass(frozen=True)
class Call:
    """A call by itself: the slots of what it takes and gives, its launches, the last of which write its results."""

    inputs: list[int]
    outputs: list[int]
    launches: list[dict[str, Any]]


@dataclass(frozen=True)
class Blocks:
    """Those of a launch that run: `first + n step` for so many n."""

    first: int
    step: int
    count: int


class Calls:
    """A model of such calls, built for a GPU."""

    def __init__(self, path: Path, target: str, batch: int):
        module = relay.optimize(from_tflite(path, batch=batch), target)
        found = apart(module)
        inputs = [[value.index for value in call.operands if isinstance(value, BlockArgument)] for call in found]
        results = [len(call.results) for call in found]
        executable = relay.build(module, target, pipeline=Pipeline(lowering_passes(resolve(target))))
        self.graph, self.text = executable.graph, executable.get_source("ll")
        self.constants = memory_of(self.graph, executable.params, [])[-2]
        self.first = len(self.graph["inputs"])
        self.arena = self.first + len(self.graph["outputs"]) + 1
        self.calls = list(self.grouped(inputs, results))
        self.blocks = dict(map(self.chosen, filter(self.large, self.calls)))
        self.emulator = Emulator("".join(map(self.sampled, re.split(r"^(?=define )", self.text, flags=re.MULTILINE))))

    def grouped(self, inputs: Sequence[list[int]], results: Sequence[int]) -> Iterator[Call]:
        """The calls with their launches."""
        launches, first = iter(self.graph["device"]["launches"]), self.first
        for given, count in zip(inputs, results, strict=True):
            outputs = list(range(first, first := first + count))
            rows, missing = list[dict[str, Any]](), set(outputs)
            while missing:
                rows.append(next(launches))
                missing -= {slot for slot, _ in rows[-1]["arguments"]}
            yield Call(given, outputs, rows)
        assert not list(launches)

    def large(self, call: Call) -> bool:
        """Whether a call's last launch has more blocks than are looked at."""
        return call.launches[-1]["grid"][0] > SAMPLED

    def chosen(self, call: Call) -> tuple[str, Blocks]:
        """Which blocks run: some of the last launch; of a product in parts, the last tile's, of all parts; all of
        other launches."""
        *others, last = call.launches
        for row in others:
            if "mma" in self.kernel(row):
                tiles = row["grid"][0] // self.parts(row, last)
                return row["kernel"], Blocks(tiles - 1, tiles, row["grid"][0] // tiles)
        blocks = last["grid"][0]
        step = (blocks - 1) // (SAMPLED - 1)
        return last["kernel"], Blocks(blocks - 1 - step * (SAMPLED - 1), step, SAMPLED)

    def kernel(self, row: Mapping[str, Any]) -> str:
        """The text of a launch's kernel."""
        return self.text[self.text.index(f"@{row['kernel']}(") :].partition("\n}")[0]

    def parts(self, row: Mapping[str, Any], last: Mapping[str, Any]) -> int:
        """How many parts of the depth have blocks of their own: as many as fill their buffer."""
        sizes = re.findall(r" dereferenceable\((\d+)\)", self.kernel(row).partition("\n")[0])
        (size,) = (
            int(size)
            for size, at in zip(sizes, row["arguments"], strict=True)
            if at in last["arguments"] and at[0] == self.arena
        )
        (output,) = (at[0] for at in last["arguments"] if self.first <= at[0] < self.arena - 1)
        *shape, columns = self.graph["outputs"][output - self.first]["shape"]
        return max(n for n in SPLITS if size % (4 * n * prod(shape)) == 0 and size >= 4 * n * prod(shape) * columns)

    def sampled(self, text: str) -> str:
        """A kernel whose blocks stand for others, unless all of them run."""
        name = re.match(r"define .*?@(\w+)\(", text)
        blocks = self.blocks.get(name[1]) if name is not None else None
        if blocks is None:
            return text
        other = rf"\1n = call \3\n  \1m = mul i32 \1n, {blocks.step}\n  \1 = add i32 \1m, {blocks.first}"
        text, count = BLOCK.subn(other, text)
        assert count == 1 and "nctaid" not in text
        return text

    def run(self, call: Call, inputs: Sequence[Array], fill: int) -> list[Array]:
        """The results of a call, where the blocks that run write them."""
        memory = {slot: bytes_of(array) for slot, array in zip(call.inputs, inputs, strict=True)}
        memory |= {self.arena - 1: self.constants, self.arena: filled(self.graph["device"]["arena_bytes"], fill)}
        rows = [self.graph["outputs"][slot - self.first] for slot in call.outputs]
        for slot, row in zip(call.outputs, rows, strict=True):
            memory[slot] = filled(prod(row["shape"]) * np.dtype(row["dtype"]).itemsize, fill)
        for row in call.launches:
            blocks = self.blocks[row["kernel"]].count if row["kernel"] in self.blocks else row["grid"][0]
            buffers: list[Array] = [memory[slot][offset:] for slot, offset in row["arguments"]]
            maps = {int(map["argument"]): Mapped(buffers[int(map["argument"])], map) for map in row.get("maps", ())}
            for number in maps:
                buffers[number] = aligned(MAP_BYTES)
            self.emulator.launch(row["kernel"], blocks, row["block"][0], buffers, row["shared"], maps)
        return [
            memory[slot].view(row["dtype"]).reshape(row["shape"]) for slot, row in zip(call.outputs, rows, strict=True)
        ]


def check(name: str, target: str, batch: int) -> Calls:
    """Compare all calls of a model with the interpreter's, where blocks that ran wrote."""
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    values, model = values_of(path, target), Calls(path, target, batch)
    for value, call in zip(values, model.calls, strict=True):
        inputs = [repeated(images, batch) for images in value.taken]
        once, again = (model.run(call, inputs, fill) for fill in FILLS)
        for got, other, images in zip(once, again, value.given, strict=True):
            want, written = repeated(images, batch), got == other
            assert got.shape == want.shape and written.any(), value.name
            assert close(got[written], want[written]), value.name
    return model


@pytest.mark.slow
def test_calls_of_many_images():
    """Most of ResNet-50's products of 32 images are by `wgmma`, those of parts of the depth by `mma.sync`."""
    text = check("resnet50_224_int8", "cuda -arch=sm_90a", 32).text
    assert text.count("wgmma.mma_async") > 8 and text.count("call { i32, i32, i32, i32 } @llvm.nvvm.mma.") > 8
