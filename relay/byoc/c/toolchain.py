"""Finds and runs the system's C compiler."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from relay.byoc.c.artifact import machine_named, machine_of
from relay.errors import Unsupported

CANDIDATES = ("cc", "gcc", "clang")
STANDARD = ("-std=c99", "-ffp-contract=off")
"""The flags that every compilation needs: C99, and no fused multiply-add instead of a product and a sum that are
rounded separately."""
STRICT = ("-Wall", "-Wextra", "-Werror", "-Wconversion", "-pedantic")
"""Flags that turn warnings into errors; the generated code compiles with them."""


def find(chosen: str = "", triple: str = "") -> list[str] | None:
    """The compiler's command as a list: the chosen one, that of `RELAY_CC`, or the first installed of cc, gcc and
    clang; for another architecture `TRIPLE-gcc`, such as "aarch64-linux-gnu-gcc". None if it is not installed."""
    wanted = shlex.split(chosen or os.environ.get("RELAY_CC", ""))
    if wanted:
        return wanted if shutil.which(wanted[0]) else None
    names = CANDIDATES if is_here(triple) else (f"{triple.replace('-unknown-', '-')}-gcc",)
    return next(([name] for name in names if shutil.which(name)), None)


def is_here(triple: str) -> bool:
    """Whether the triple names this machine's architecture, or is empty."""
    return not triple or triple.partition("-")[0] == platform.machine()


def shared_object(text: str, flags: Sequence[str], chosen: str = "", triple: str = "") -> bytes:
    """Compile a C file to a shared object. Raises Unsupported if no compiler is installed, if the compiler fails, or if
    it generates code for another machine than that of the triple.

    The same text and flags give the same bytes, since no path is part of them.
    """
    command = find(chosen, triple)
    if command is None:
        raise Unsupported(
            "compiler c", missing(chosen, triple), f"install gcc or clang{for_machine(triple)}, or set RELAY_CC"
        )
    with TemporaryDirectory(prefix="relay-c-") as folder:
        Path(folder, "function.c").write_text(text)
        arguments = [*command, *STANDARD, *flags, "-fPIC", "-shared", "-s", "function.c", "-o", "function.so", "-lm"]
        done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise Unsupported(f"compiler c: {shlex.join(arguments)}", lines[0], "see RELAY_CC and the option `flags`")
        code = Path(folder, "function.so").read_bytes()
    wanted = triple.partition("-")[0]
    if wanted and (made := machine_of(code)) != machine_named(wanted):
        what = f"{command[0]} makes code for {made}, and the build is for {triple}"
        raise Unsupported("compiler c", what, "give the option cc: a C compiler that makes code for it")
    return code


def missing(chosen: str = "", triple: str = "") -> str:
    """A message that no C compiler is installed."""
    wanted = chosen or os.environ.get("RELAY_CC", "")
    return f"the C compiler {wanted} is not installed" if wanted else f"no C compiler{for_machine(triple)} is installed"


def for_machine(triple: str) -> str:
    return "" if is_here(triple) else f" for {triple}"
