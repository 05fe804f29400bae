"""oneDNN's C library (API 3), called through ctypes, with error statuses raised as exceptions.

Source: oneDNN's `dnnl.h` and `dnnl_types.h`, whose numbers stay the same within version 3.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_float, c_int, c_int64, c_size_t, c_uint, c_void_p
from functools import cache
from pathlib import Path

from relay.errors import Unsupported
from relay.plug_ins import installation

VARIABLE = "RELAY_ONEDNN"
"""The environment variable with the path of the library, if it is not found otherwise."""
NAMES = ("libdnnl.so.3", "libdnnl.3.dylib", "dnnl.dll")
MAJOR = 3

TYPES = {"float32": 3, "int32": 4, "int8": 5, "uint8": 6}
CPU, IN_ORDER, INFERENCE, ANY_FORMAT, WEIGHTS_QUERY, DIRECT = 1, 1, 96, 1, 131, 1
SOURCE, SOURCE_1, DESTINATION, WEIGHTS, BIAS = 1, 2, 17, 33, 41
MULTIPLE, SCALES, ZERO_POINTS = 1024, 4096, 8192
ARGUMENTS = {"src": SOURCE, "src1": SOURCE_1, "weights": WEIGHTS, "dst": DESTINATION}
ALGORITHMS = {
    "relu": 0x20,
    "tanh": 0x21,
    "abs": 0x24,
    "sqrt": 0x25,
    "linear": 0x26,
    "logistic": 0x29,
    "exp": 0x2A,
    "log": 0x2D,
    "clip": 0x2E,
    "pool_max": 0x1FF,
    "pool_avg": 0x3FF,
    "add": 0x1FFF0,
    "mul": 0x1FFF1,
    "max": 0x1FFF2,
    "min": 0x1FFF3,
    "div": 0x1FFF4,
    "sub": 0x1FFF5,
    "nearest": 0x2FFF0,
    "linear_resampling": 0x2FFF1,
    "reduce_max": 0x2FFF2,
    "reduce_min": 0x2FFF3,
    "reduce_sum": 0x2FFF4,
    "reduce_mean": 0x2FFF6,
    "softmax": 0x30000,
}
STATUSES = ("success", "out of memory", "invalid arguments", "unimplemented", "last", "runtime error", "not required")
MOST_AXES = 12

Dims = c_int64 * MOST_AXES


class Argument(Structure):
    """The structure `dnnl_exec_arg_t`."""

    _fields_ = (("arg", c_int), ("memory", c_void_p))


class Version(Structure):
    _fields_ = (("major", c_int), ("minor", c_int), ("patch", c_int))


def candidates() -> list[str]:
    """Possible paths of the library: from the environment, installed by pip, known to the system."""
    named = os.environ.get(VARIABLE)
    folders = (Path(sys.prefix) / "lib", Path(sys.prefix) / "Library" / "bin")
    installed = [str(folder / name) for folder in folders for name in NAMES if (folder / name).exists()]
    known = ctypes.util.find_library("dnnl")
    return [*([named] if named else []), *installed, *NAMES, *([known] if known else [])]


@cache
def open_library() -> ctypes.CDLL:
    """Load the library. Raises Unsupported if none of version 3 is found."""
    for name in candidates():
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        found.dnnl_version.restype = POINTER(Version)
        if found.dnnl_version().contents.major == MAJOR:
            found.dnnl_primitive_desc_query_md.restype = c_void_p
            found.dnnl_memory_desc_get_size.restype = c_size_t
            return found
    hint = f"{installation('onednn')}, or name the library's file in {VARIABLE}"
    raise Unsupported("oneDNN", f"no library of version {MAJOR} is found", hint)


class Library:
    """The library with an engine and a stream on the CPU."""

    def __init__(self) -> None:
        self.library = open_library()
        self.engine, self.stream = c_void_p(), c_void_p()
        self.call("engine_create", byref(self.engine), c_int(CPU), c_size_t(0))
        self.call("stream_create", byref(self.stream), self.engine, c_uint(IN_ORDER))

    def call(self, name: str, *arguments: object) -> None:
        """Call a function that returns a status. Raises Unsupported for an error."""
        status = int(getattr(self.library, f"dnnl_{name}")(*arguments))
        if status:
            what = STATUSES[status] if status < len(STATUSES) else f"status {status}"
            raise Unsupported(f"oneDNN: dnnl_{name}", what, "leave the op to the host, or install another version")

    def make(self, name: str, *arguments: object) -> c_void_p:
        """Call a function that creates an object, and return the object."""
        made = c_void_p()
        self.call(name, byref(made), *arguments)
        return made

    def description(self, shape: Sequence[int], dtype: str, strides: Sequence[int] | None) -> c_void_p:
        """A memory descriptor; without strides the primitive may choose the format. Rank 0 becomes a vector of one
        element."""
        dims, type = list(shape) or [1], c_int(TYPES[dtype])
        if strides is None:
            return self.make("memory_desc_create_with_tag", c_int(len(dims)), Dims(*dims), type, c_int(ANY_FORMAT))
        steps = list(strides) or [1]
        return self.make("memory_desc_create_with_strides", c_int(len(dims)), Dims(*dims), type, Dims(*steps))

    def memory(self, description: c_void_p, address: int) -> c_void_p:
        return self.make("memory_create", description, self.engine, c_void_p(address))

    def attributes(
        self, scales: Sequence[tuple[int, int]], zero_points: Sequence[int], post: Sequence[tuple[str, float, float]]
    ) -> c_void_p:
        """Primitive attributes: arguments with scales (and their masks), arguments with zero points, and elementwise
        post-ops."""
        made = self.make("primitive_attr_create")
        for argument, mask in scales:
            self.call("primitive_attr_set_scales_mask", made, c_int(argument), c_int(mask))
        for argument in zero_points:
            self.call("primitive_attr_set_zero_points_mask", made, c_int(argument), c_int(0))
        if post:
            chain = self.make("post_ops_create")
            for name, alpha, beta in post:
                self.call("post_ops_append_eltwise", chain, c_int(ALGORITHMS[name]), c_float(alpha), c_float(beta))
            self.call("primitive_attr_set_post_ops", made, chain)
        return made

    def execute(self, primitive: c_void_p, count: int, arguments: object) -> None:
        self.call("primitive_execute", primitive, self.stream, c_int(count), arguments)

    def wait(self) -> None:
        self.call("stream_wait", self.stream)

    def limit(self, threads: int) -> int:
        """Set the number of threads that OpenMP uses for calls of this thread. Returns the former number, or 0 if
        unknown."""
        try:
            former = int(self.library.omp_get_max_threads())
            self.library.omp_set_num_threads(c_int(threads))
        except AttributeError:
            return 0
        return former
