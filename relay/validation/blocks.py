"""Check the function that runs a model on many blocks of rows: its results must be those of the entry point called for
each block."""

from __future__ import annotations

from ctypes import addressof, c_uint64
from signal import ITIMER_REAL, setitimer

import numpy as np

from relay.runtime.library import Library
from relay.runtime.memory import address
from relay.runtime.rows import ARENAS, STRIDE, TENSORS
from relay.validation.machine_code import Machine
from relay.validation.report import Part

COUNT, GUARD = 3, 64
"""`COUNT`: the number of blocks of rows with which the function that runs a model on many blocks is tested. `GUARD`:
the number of bytes behind the last block of each tensor that the function must not change."""


def check(machine: Machine, name: str, part: Part, rng: np.random.Generator) -> None:
    """Run the model on three blocks of random inputs, where a block is the data of one run: first with one call of the
    function `name`, then with one call of the artifact's entry point for each block. Compare the results, and add the
    finding to `part`."""
    if machine.emulator is not None:
        part.say("not checked", "blocks are run on the machine that the code is for only")
        return
    arguments = machine.arguments
    memory = [rng.integers(0, 256, COUNT * array.size + GUARD, np.uint8) for array in arguments]
    kept = [array.copy() for array in memory]
    table = (c_uint64 * (TENSORS + len(memory) + 2))()
    table[0], table[ARENAS], table[STRIDE] = COUNT, 1, machine.arena.size
    table[TENSORS:] = [address(array) for array in (*memory, machine.constants, machine.arena)]
    library = Library(bytes(machine.saved.code))
    native = library.function(name)
    setitimer(ITIMER_REAL, machine.seconds)
    native(addressof(table))
    setitimer(ITIMER_REAL, 0)
    entry = machine.function(None)
    for block in range(COUNT):
        for number, array in enumerate(arguments):
            array[:] = kept[number][block * array.size : (block + 1) * array.size]
        entry()
        for number, array in enumerate(arguments):
            found = memory[number][block * array.size : (block + 1) * array.size]
            if not np.array_equal(found, array):
                part.say("wrong", f"block {block} is not what the entry point gives")
                return
    if any(not np.array_equal(a[-GUARD:], b[-GUARD:]) for a, b in zip(memory, kept, strict=True)):
        part.say("wrong", "it writes behind the last block")
        return
    part.say("tested", f"{COUNT} blocks of random inputs give what the entry point gives for each")
    part.say("not checked", "blocks on several threads")
