"""`Program`: a region as oneDNN runs it: tensors, constants, and steps that each become one primitive.

Compiler and loader share this format; it only needs numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from relay.runtime.memory import Array
from relay.runtime.programs import pack

KIND = "onednn 1"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A view of a buffer, with `strides` and `offset` in elements."""

    buffer: int
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    offset: int = 0

    def __str__(self) -> str:
        return f"%{self.buffer}:{'x'.join(map(str, (*self.shape, self.dtype)))}"

    @staticmethod
    def whole(buffer: int, shape: Sequence[int], dtype: str) -> Tensor:
        """The tensor that covers a whole buffer in row-major order."""
        strides: list[int] = []
        step = 1
        for size in reversed(shape):
            strides.append(step)
            step *= size
        return Tensor(buffer, tuple(shape), dtype, tuple(reversed(strides)))

    def permuted(self, axes: Sequence[int]) -> Tensor:
        """The tensor with its axes in another order."""
        return Tensor(
            self.buffer,
            tuple(self.shape[axis] for axis in axes),
            self.dtype,
            tuple(self.strides[axis] for axis in axes),
            self.offset,
        )

    def sliced(self, begin: Sequence[int], steps: Sequence[int], shape: Sequence[int]) -> Tensor:
        """The view that begins at index `begin` and takes every `steps[k]`-th element along axis k."""
        offset = self.offset + sum(b * s for b, s in zip(begin, self.strides, strict=True))
        strides = tuple(s * step for s, step in zip(self.strides, steps, strict=True))
        return Tensor(self.buffer, tuple(shape), self.dtype, strides, offset)

    def expanded(self, rank: int) -> Tensor:
        """The tensor with axes of size 1 added in front."""
        more = rank - len(self.shape)
        return Tensor(self.buffer, (1,) * more + self.shape, self.dtype, (0,) * more + self.strides, self.offset)


@dataclass(frozen=True, slots=True)
class Scaling:
    """The quantization of a tensor, `scale * (code - zero_point)`; several scales vary along `axes`."""

    scale: tuple[float, ...] = (1.0,)
    zero_point: int = 0
    axes: tuple[int, ...] = ()

    def __str__(self) -> str:
        scale = ",".join(f"{number:.6g}" for number in self.scale[:3])
        more = ",..." if len(self.scale) > 3 else ""
        return f"[{scale}{more}]*(q{-self.zero_point:+d})"


@dataclass(frozen=True, slots=True)
class Step:
    """One primitive: `kind` is its kind, `algorithm` the name of an algorithm of that kind, `options` its numeric
    parameters.

    `post` are elementwise functions of the result in float32, before it is scaled: name, alpha, beta.
    """

    kind: str
    sources: tuple[Tensor, ...]
    result: Tensor
    algorithm: str = ""
    weights: Tensor | None = None
    bias: Tensor | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    scalings: Mapping[str, Scaling] = field(default_factory=dict[str, Scaling])
    """The scalings by argument: "src", "src1", "weights", "dst"."""
    post: tuple[tuple[str, float, float], ...] = ()

    def __str__(self) -> str:
        tensors = (*self.sources, *(t for t in (self.weights, self.bias) if t is not None))
        numbers = "".join(f" {name}={value}" for name, value in self.options.items())
        scales = "".join(f" {name}:{scaling}" for name, scaling in self.scalings.items())
        post = "".join(f" then {name}({alpha:.6g}, {beta:.6g})" for name, alpha, beta in self.post)
        name = f"{self.kind} {self.algorithm}".rstrip()
        return f"{self.result} = {name} {', '.join(map(str, tensors))}{numbers}{scales}{post}"


@dataclass(frozen=True, eq=False)
class Program:
    """A program: the sizes of its buffers in bytes, constants by buffer index, the buffers of inputs and outputs, and
    the steps."""

    sizes: list[int]
    constants: dict[int, Array]
    inputs: list[int]
    outputs: list[int]
    steps: list[Step]

    @property
    def listing(self) -> str:
        """The steps as text, one per line."""
        return "".join(f"{step}\n" for step in self.steps)

    def pack(self) -> bytes:
        """The bytes of the artifact, with constants named by buffer index."""
        rest = {name: getattr(self, name) for name in ("sizes", "inputs", "outputs")}
        steps = [asdict(step) for step in self.steps]
        return pack(KIND, {**rest, "steps": steps}, {str(number): array for number, array in self.constants.items()})

    @staticmethod
    def of(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Program:
        """The program of an artifact's header and arrays, as `unpack` returns them."""
        constants = {int(number): array for number, array in arrays.items()}
        steps = [_step(row) for row in header["steps"]]
        return Program(header["sizes"], constants, header["inputs"], header["outputs"], steps)


def _tensor(row: Mapping[str, Any]) -> Tensor:
    return Tensor(row["buffer"], tuple(row["shape"]), row["dtype"], tuple(row["strides"]), row["offset"])


def _step(row: Mapping[str, Any]) -> Step:
    scalings = {
        name: Scaling(tuple(s["scale"]), s["zero_point"], tuple(s["axes"])) for name, s in row["scalings"].items()
    }
    return Step(
        row["kind"],
        tuple(_tensor(each) for each in row["sources"]),
        _tensor(row["result"]),
        row["algorithm"],
        row["weights"] and _tensor(row["weights"]),
        row["bias"] and _tensor(row["bias"]),
        row["options"],
        scalings,
        tuple((name, alpha, beta) for name, alpha, beta in row["post"]),
    )
