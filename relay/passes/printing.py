"""Instruments that show the IR: printed before or after passes, as a diff, or dumped to numbered files."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from difflib import unified_diff
from os import PathLike
from typing import TextIO

from relay.arguments import names as listed
from relay.arguments import path
from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.passes.info import PassInfo
from relay.passes.instruments import PassInstrument
from relay.passes.registry import canonical

COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}


class PassPrintingInstrument(PassInstrument):
    """Print the IR before and after the passes named (canonical names or aliases); `["all"]` is every pass."""

    def __init__(self, before: Sequence[str] = (), after: Sequence[str] = (), stream: TextIO | None = None):
        self.before, self.after = _names(before), _names(after)
        self.stream = stream

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self.before & {info.name, "all"}:
            self._print("before", mod, info)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self.after & {info.name, "all"}:
            self._print("after", mod, info)

    def _print(self, when: str, mod: IRModule, info: PassInfo) -> None:
        print(f"// IR {when} {info.name}\n{mod}", file=self.stream or sys.stderr)


def _names(names: Sequence[str]) -> set[str]:
    where = "PassPrintingInstrument"
    return {name if name == "all" else canonical(name, where) for name in listed(names, where)}


class PrintBeforeAll(PassPrintingInstrument):
    """Print the IR before every pass."""

    def __init__(self, stream: TextIO | None = None):
        super().__init__(before=["all"], stream=stream)


class PrintAfterAll(PassPrintingInstrument):
    """Print the IR after every pass."""

    def __init__(self, stream: TextIO | None = None):
        super().__init__(after=["all"], stream=stream)


class PrintChanged(PassInstrument):
    """Print the changes of each pass as a unified diff; a pass that changed nothing gives one line."""

    def __init__(self, stream: TextIO | None = None, *, colour: bool | None = None):
        self.stream = stream
        self.colour = colour
        self._before: list[str] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._before.append(str(mod))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        before, after = self._before.pop(), str(mod)
        stream = self.stream or sys.stderr
        if before == after:
            print(f"// {info.name} changed nothing", file=stream)
            return
        colour = stream.isatty() if self.colour is None else self.colour
        lines = unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="")
        print(f"// {info.name} changed", file=stream)
        for line in lines:
            print(f"{COLOURS[line[0]]}{line}\x1b[0m" if colour and line[:1] in COLOURS else line, file=stream)

    def run_failed_pass(self, mod: IRModule, info: PassInfo, error: BaseException) -> None:
        self._before.pop()


class DumpIR(PassInstrument):
    """Write `000_input.mlir`, then `001_legalize.mlir`, ... after each pass into a folder.

    `refresh` first removes the files of an earlier dump; no other file is touched.
    """

    def __init__(self, folder: str | PathLike[str], refresh: bool = False):
        self.folder = path(folder, "DumpIR")
        self.refresh = refresh
        self.number = 0

    def enter_pass_ctx(self) -> None:
        self._prepare()

    def _prepare(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidArgument(f"DumpIR {self.folder}", str(error.strerror), "name a folder") from None
        if self.refresh:
            for file in self.folder.glob("*.mlir"):
                if re.fullmatch(r"\d{3,}_[\w-]+\.mlir", file.name):
                    file.unlink()
            self.refresh = False

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self.number == 0:
            self._write("input", mod)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._write(info.name, mod)

    def _write(self, name: str, mod: IRModule) -> None:
        self._prepare()
        (self.folder / f"{self.number:03}_{name}.mlir").write_text(str(mod))
        self.number += 1
