"""`load`: reads a saved executable."""

from __future__ import annotations

from relay.runtime import archive
from relay.runtime.executable import Executable, executable_of


def load(file: archive.Source, num_threads: int = 1) -> Executable:
    """Load an executable that `Executable.save` wrote, from a path, bytes, or a file open for bytes; it runs on
    `num_threads` threads. It contains native code: trust it like a program.

    Raises Malformed if the file is not a saved executable or damaged, InvalidArgument if this CPU lacks a feature it
    needs, Unsupported if the loader of an external compiler is not installed or does not accept its artifact.
    """
    parts, where = archive.read(file)
    if "graph.json" not in parts:
        from relay.runtime import dynamic  # here: most executables are of known sizes

        executable: Executable = dynamic.loaded(parts, where)
    else:
        executable = executable_of(archive.saved(parts, where))
    executable.num_threads = num_threads
    return executable
