"""`load`: an executable from what `save` wrote."""

from __future__ import annotations

from relay.runtime import archive
from relay.runtime.executable import Executable, executable_of


def load(file: archive.Source, num_threads: int = 1) -> Executable:
    """Read what `Executable.save` wrote, to be run by so many threads: a path, bytes, or what is open for bytes.
    Native code: trust it like a program.

    Raises Malformed if the file is none of ours or damaged, InvalidArgument if this CPU lacks a feature it needs,
    Unsupported if the loader of an external compiler is not installed or does not take what it made.
    """
    parts, where = archive.read(file)
    if "graph.json" not in parts:
        from relay.runtime import dynamic  # here: most executables are of known sizes

        executable: Executable = dynamic.loaded(parts, where)
    else:
        executable = executable_of(archive.saved(parts, where))
    executable.num_threads = num_threads
    return executable
