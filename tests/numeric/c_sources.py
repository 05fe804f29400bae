"""Exported C, compiled by the machine's compilers and run: what the tests of compiler `c` share."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from relay import signature
from relay.byoc.c import export_c
from relay.byoc.c.ctype import TYPES
from relay.byoc.c.toolchain import STANDARD, STRICT
from relay.dialects.attributes import Array
from relay.module import IRModule
from relay.signature import TensorInfo

SANITIZED = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
"""Flags that stop the program at memory or arithmetic that C leaves undefined."""

MAIN = """#include "model.h"
#include <stdio.h>

%(arrays)s
int main(void)
{
    for (;;) {
%(reads)s        if (model_run(%(names)s) != 0)
            return 1;
%(writes)s    }
}
"""


def compiler(name: str = "cc") -> str:
    """A C compiler of the machine; the test is skipped where it is not installed."""
    if shutil.which(name) is None:
        pytest.skip(f"the C compiler {name} is not installed")
    return name


class Exported:
    """A module as an exported program; `run` feeds it through pipes."""

    def __init__(self, mod: IRModule, folder: Path):
        self.folder = folder
        self.files = export_c(mod, folder)
        self.inputs, self.outputs = signature.read(mod["main"])
        (folder / "main.c").write_text(main(self.inputs, self.outputs))

    def compile(self, command: str = "cc", flags: Sequence[str] = ("-O1",)) -> None:
        """Compile it, with every warning an error."""
        arguments = [compiler(command), *STANDARD, *STRICT, *flags, "model.c", "main.c", "-o", "model", "-lm"]
        done = subprocess.run(arguments, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for these inputs."""
        fed = b"".join(np.ascontiguousarray(array).tobytes() for array in inputs)
        done = subprocess.run(["./model"], input=fed, cwd=self.folder, capture_output=True, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr.decode()
        return split(done.stdout, self.outputs)


def main(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> str:
    """A program that reads inputs and writes outputs until nothing comes any more."""
    rows = [(f"input_{i}", info) for i, info in enumerate(inputs)]
    results = [(f"output_{i}", info) for i, info in enumerate(outputs)]
    parts: Mapping[str, str] = {
        "arrays": "".join(f"static {TYPES[info.dtype].name} {n}[{size(info)}];\n" for n, info in [*rows, *results]),
        "reads": "".join(
            f"        if (fread({n}, sizeof *{n}, {size(info)}, stdin) != {size(info)})\n            return 0;\n"
            for n, info in rows
        ),
        "names": ", ".join(n for n, _ in [*rows, *results]),
        "writes": "".join(f"        fwrite({n}, sizeof *{n}, {size(info)}, stdout);\n" for n, info in results),
    }
    return MAIN % parts


def size(info: TensorInfo) -> int:
    """Elements."""
    return int(np.prod(info.shape))


def split(data: bytes, outputs: Sequence[TensorInfo]) -> list[Array]:
    """The outputs of one run."""
    found: list[Array] = []
    for info in outputs:
        count = size(info) * info.dtype.itemsize
        found.append(np.frombuffer(data[:count], info.dtype).reshape(info.shape))
        data = data[count:]
    assert not data
    return found
