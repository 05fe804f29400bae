"""The system's C compiler: where it is, and how it is called."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from relay.errors import Unsupported

CANDIDATES = ("cc", "gcc", "clang")
STANDARD = ("-std=c99", "-ffp-contract=off")
"""What the code is written in: no product and sum may become one rounding."""
STRICT = ("-Wall", "-Wextra", "-Werror", "-Wconversion", "-pedantic")
"""The warnings that it is free of."""


def find(chosen: str = "") -> list[str] | None:
    """The compiler's command: the one chosen, that of `RELAY_CC`, or the first there is of cc, gcc and clang."""
    wanted = shlex.split(chosen or os.environ.get("RELAY_CC", ""))
    if wanted:
        return wanted if shutil.which(wanted[0]) else None
    return next(([name] for name in CANDIDATES if shutil.which(name)), None)


def shared_object(text: str, flags: Sequence[str], chosen: str = "") -> bytes:
    """The shared object of one C file. Raises Unsupported if there is no compiler or it refuses.

    The same text and flags give the same bytes: no path is part of them.
    """
    command = find(chosen)
    if command is None:
        raise Unsupported("compiler c", missing(chosen), "install gcc or clang, or set RELAY_CC")
    with TemporaryDirectory(prefix="relay-c-") as folder:
        Path(folder, "function.c").write_text(text)
        arguments = [*command, *STANDARD, *flags, "-fPIC", "-shared", "-s", "function.c", "-o", "function.so", "-lm"]
        done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise Unsupported(f"compiler c: {shlex.join(arguments)}", lines[0], "see RELAY_CC and the option `flags`")
        return Path(folder, "function.so").read_bytes()


def missing(chosen: str = "") -> str:
    """What is not there, in words."""
    wanted = chosen or os.environ.get("RELAY_CC", "")
    return f"the C compiler {wanted} is not installed" if wanted else "no C compiler is installed"
