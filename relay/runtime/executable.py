"""A compiled model: bind inputs, run, read outputs; save and load."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from relay.errors import InvalidArgument, Malformed
from relay.runtime.library import Library

Array = npt.NDArray[Any]
FORMAT = 1
ALIGNMENT = 64


@dataclass(frozen=True)
class TensorSpec:
    """An input or output: real = scale * (code - zero_point) where a scale is given. `kind`: input, output or state."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scale: float | None
    zero_point: int
    kind: str

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> TensorSpec:
        return TensorSpec(
            str(entry["name"]),
            tuple(int(d) for d in entry["shape"]),
            np.dtype(entry["dtype"]),
            None if entry.get("scale") is None else float(entry["scale"]),
            int(entry.get("zero_point") or 0),
            str(entry["kind"]),
        )


def aligned_bytes(size: int) -> Array:
    """Zeroed bytes that start at a multiple of 64."""
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def address(array: Array) -> int:
    return array.__array_interface__["data"][0]


class Frame:
    """What one run needs for itself: an arena and the table of addresses the entry point takes."""

    __slots__ = ("arena", "pointer", "table")

    def __init__(self, slots: int, constants: int, arena_bytes: int):
        self.arena = aligned_bytes(arena_bytes)
        self.table = np.zeros(slots, np.uint64)
        self.table[-2] = constants
        self.table[-1] = address(self.arena)
        self.pointer = address(self.table)


class Executable:
    """A compiled model. `run(x)` may be called from several threads; the bound form holds one set of arrays."""

    def __init__(self, graph: str | Mapping[str, Any], library: Library, params: Mapping[str, Array]):
        self._graph = cast(dict[str, Any], json.loads(graph)) if isinstance(graph, str) else dict(graph)
        self.library = library
        try:
            self.inputs = [TensorSpec.from_json(e) for e in self._graph["inputs"]]
            self.outputs = [TensorSpec.from_json(e) for e in self._graph["outputs"]]
            self._blob = self._assemble(params)
            self._arena = int(self._graph["arena_bytes"])
            entry = str(self._graph["entry"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise Malformed("graph", f"is not what relay.build writes: {error!r}") from None
        self._params = dict(params)
        self._initial = {
            e["name"]: params[e["initial"]].reshape(s.shape)
            for e, s in zip(self._graph["inputs"], self.inputs, strict=True)
            if e.get("initial") is not None
        }
        self._call: Callable[[int], None] = library.function(entry)
        self._slots = len(self.inputs) + len(self.outputs) + 2
        self._free: list[Frame] = []
        self._names = {spec.name: i for i, spec in enumerate(self.inputs)}
        self._lock = threading.Lock()
        self._bound: tuple[Frame, list[Array | None], list[Array]] | None = None
        self._ready = False
        self._signature = [(spec.shape, spec.dtype) for spec in self.inputs]
        self._results = [(spec.shape, spec.dtype) for spec in self.outputs]

    def _assemble(self, params: Mapping[str, Array]) -> Array:
        blob = aligned_bytes(int(self._graph["constants_bytes"]))
        for entry in self._graph["constants"]:
            name = entry["name"]
            if name not in params:
                raise InvalidArgument(f"params['{name}']", "is missing")
            array = np.ascontiguousarray(params[name])
            if list(array.shape) != list(entry["shape"]) or array.dtype != np.dtype(entry["dtype"]):
                raise InvalidArgument(f"params['{name}']", f"is {array.dtype}{list(array.shape)}; {entry['dtype']}{entry['shape']} is needed")
            flat = array.reshape(-1).view(np.uint8)
            blob[entry["offset"] : entry["offset"] + flat.size] = flat
        return blob

    # Running

    def run(self, *inputs: npt.ArrayLike, **named: npt.ArrayLike) -> Array | tuple[Array, ...] | None:
        """Run the model. With arguments: inputs in order or by name, and one array, or a tuple of all outputs, is
        returned; states that are not given start anew. Without arguments: run on what `set_input` bound.

        Raises InvalidArgument for a wrong count, name, shape or dtype.
        """
        if not inputs and not named and self.inputs:
            with self._lock:
                if not self._ready:
                    self._require_bound()
                self._call(cast(tuple[Frame, Any, Any], self._bound)[0].pointer)
            return None
        given = self._arrange(inputs, named)
        results = [np.empty(shape, dtype) for shape, dtype in self._results]
        try:
            frame = self._free.pop()
        except IndexError:
            frame = self._new_frame()
        table = frame.table
        slot = 0
        for array in given:
            table[slot] = array.__array_interface__["data"][0]
            slot += 1
        for array in results:
            table[slot] = array.__array_interface__["data"][0]
            slot += 1
        self._call(frame.pointer)
        self._free.append(frame)
        return results[0] if len(results) == 1 else tuple(results)

    __call__ = run

    def _new_frame(self) -> Frame:
        return Frame(self._slots, address(self._blob), self._arena)

    def _arrange(self, inputs: tuple[npt.ArrayLike, ...], named: Mapping[str, npt.ArrayLike]) -> list[Array]:
        signature = self._signature
        if len(inputs) == len(signature) and not named:
            result: list[Array] = []
            for value, (shape, dtype) in zip(inputs, signature, strict=True):
                if type(value) is np.ndarray and value.dtype == dtype and value.shape == shape:
                    flags = value.flags
                    if flags.c_contiguous and flags.aligned:
                        result.append(value)
                        continue
                result.append(self._check(len(result), value))
            return result
        if len(inputs) > len(signature):
            raise InvalidArgument("run", f"got {len(inputs)} inputs; the model has {len(signature)}")
        values: dict[int, npt.ArrayLike] = dict(enumerate(inputs))
        for name, value in named.items():
            index = self._index(name)
            if index in values:
                raise InvalidArgument(f"input '{name}'", "is given twice")
            values[index] = value
        arranged: list[Array] = []
        for index, spec in enumerate(self.inputs):
            if index in values:
                arranged.append(self._check(index, values[index]))
            elif spec.name in self._initial:
                arranged.append(np.ascontiguousarray(self._initial[spec.name]))
            else:
                raise InvalidArgument(f"input '{spec.name}'", "is not given", f"the inputs are {', '.join(self._names)}")
        return arranged

    def _index(self, name: str | int) -> int:
        index = name if isinstance(name, int) else self._names.get(name, -1)
        if not 0 <= index < len(self.inputs):
            raise InvalidArgument(f"input {name!r}", "is unknown", f"the inputs are {', '.join(self._names)}")
        return index

    def _check(self, index: int, value: npt.ArrayLike) -> Array:
        """The value as an array the code can read: dtype and shape must be right; strides are made so."""
        spec, array = self.inputs[index], np.asarray(value)
        if array.dtype != spec.dtype:
            raise InvalidArgument(f"input '{spec.name}'", f"has dtype {array.dtype}; {spec.dtype} is needed", self._hint(spec, array))
        if array.shape != spec.shape:
            raise InvalidArgument(f"input '{spec.name}'", f"has shape {list(array.shape)}; {list(spec.shape)} is needed")
        return np.require(array, requirements=["C", "A"])

    @staticmethod
    def _hint(spec: TensorSpec, array: Array) -> str:
        if spec.scale is not None and array.dtype.kind == "f":
            return f"quantise it: round(x / {spec.scale:g}) + {spec.zero_point}"
        return f"convert it with .astype('{spec.dtype}')"

    # Bound inputs

    def _binding(self) -> tuple[Frame, list[Array | None], list[Array]]:
        if self._bound is None:
            frame = self._new_frame()
            held: list[Array | None] = [None] * len(self.inputs)
            results = [np.zeros(shape, dtype) for shape, dtype in self._results]
            for slot, array in enumerate(results, len(held)):
                frame.table[slot] = address(array)
            self._bound = frame, held, results
            for index, spec in enumerate(self.inputs):
                if spec.name in self._initial:
                    self._bind(index, np.array(self._initial[spec.name]))
        return self._bound

    def _bind(self, index: int, array: Array) -> None:
        frame, held, _ = self._binding()
        held[index] = array
        frame.table[index] = address(array)
        self._ready = all(a is not None for a in held)

    def _require_bound(self) -> None:
        _, held, _ = self._binding()
        missing = [spec.name for spec, array in zip(self.inputs, held, strict=True) if array is None]
        if missing:
            raise InvalidArgument("run", f"inputs {', '.join(missing)} are not bound", "give them to run() or set_input()")
        self._ready = True

    def set_input(self, key: str | int, value: npt.ArrayLike) -> None:
        """Bind a copy of the value to an input, by name or number, for `run()` without arguments."""
        index = self._index(key)
        array = np.array(self._check(index, value), order="C", copy=True)
        with self._lock:
            self._bind(index, array)

    def get_output(self, key: int | str = 0) -> Array:
        """A copy of an output of the last `run()` without arguments."""
        names = [spec.name for spec in self.outputs]
        index = names.index(key) if isinstance(key, str) and key in names else key
        if not isinstance(index, int) or not 0 <= index < len(names):
            raise InvalidArgument(f"output {key!r}", "is unknown", f"the outputs are {', '.join(names)}")
        with self._lock:
            return self._binding()[2][index].copy()

    # What it is made of

    def __iter__(self) -> Iterator[Any]:
        """`graph, lib, params = executable`."""
        return iter((json.dumps(self._graph), self.library, dict(self._params)))

    @property
    def graph(self) -> dict[str, Any]:
        """Kernels, buffers, offsets, inputs and outputs, as in the JSON."""
        return self._graph

    @property
    def params(self) -> dict[str, Array]:
        """The constants as compiled (weights packed), by name."""
        return dict(self._params)

    def get_source(self, kind: str = "ll") -> str:
        """The text the code was made from: "mlir" (before translation), "ll" (LLVM IR) or "asm"."""
        if kind not in self.library.sources:
            known = ", ".join(sorted(self.library.sources)) or "none"
            raise InvalidArgument(f"get_source({kind!r})", "is not there", f"the sources are: {known}")
        return self.library.sources[kind]

    def save(self, path: str | PathLike[str]) -> None:
        """Write one file that `relay.runtime.load` reads: graph, object code, constants. The code is for this kind of CPU."""
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("format", str(FORMAT))
            archive.writestr("graph.json", json.dumps(self._graph))
            archive.writestr("code.o", self.library.code)
            buffer = io.BytesIO()
            np.savez(buffer, **{f"p{i}": a for i, a in enumerate(self._params.values())})
            archive.writestr("params.json", json.dumps(list(self._params)))
            archive.writestr("params.npz", buffer.getvalue())


def create(graph: str | Mapping[str, Any], lib: Library, params: Mapping[str, Array]) -> Executable:
    """An executable from its three parts; see `Executable.__iter__`."""
    return Executable(graph, lib, params)


def load(path: str | PathLike[str]) -> Executable:
    """Read what `Executable.save` wrote. Native code: trust it like a program.

    Raises Malformed if the file is none of ours or damaged, InvalidArgument if this CPU lacks a feature it needs.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.read("format").decode() != str(FORMAT):
                raise Malformed(str(path), "is of another format version", "build the model again")
            graph = cast(dict[str, Any], json.loads(archive.read("graph.json")))
            code = archive.read("code.o")
            names = cast(list[str], json.loads(archive.read("params.json")))
            with np.load(io.BytesIO(archive.read("params.npz")), allow_pickle=False) as arrays:
                params = {name: arrays[f"p{i}"] for i, name in enumerate(names)}
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, UnicodeDecodeError) as error:
        raise Malformed(str(path), f"is no saved executable: {error}") from None
    _check_host(graph, str(path))
    return Executable(graph, Library(code), params)


def _check_host(graph: Mapping[str, Any], where: str) -> None:
    import llvmlite.binding as llvm

    target = cast(Mapping[str, Any], graph.get("target", {}))
    here = llvm.get_process_triple()
    if str(target.get("triple", here)).split("-")[0] != here.split("-")[0]:
        raise InvalidArgument(where, f"is code for {target.get('triple')}; this machine is {here}")
    features = {name for name, there in llvm.get_host_cpu_features().items() if there}
    missing = sorted(set(cast(list[str], target.get("features", []))) - features)
    if missing:
        raise InvalidArgument(where, f"needs CPU features that are not here: {', '.join(missing)}")
