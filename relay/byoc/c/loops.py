"""Loop nests over tensors: extents, and for each pointer how far one step of each loop moves it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class Access:
    """Where a loop nest touches a tensor: `offset + sum of index * stride`, in elements."""

    strides: tuple[int, ...]
    offset: int = 0


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a dense tensor."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def dense(shape: Sequence[int]) -> Access:
    """Every element in turn."""
    return Access(row_major(shape))


def broadcast(shape: Sequence[int], to: Sequence[int]) -> Access:
    """numpy's broadcast of a dense tensor: an axis of one number does not move."""
    padded = (1,) * (len(to) - len(shape)) + tuple(shape)
    strides = row_major(padded)
    return Access(tuple(0 if size == 1 else stride for size, stride in zip(padded, strides, strict=True)))


def along(axis: int, rank: int) -> Access:
    """A vector along one axis."""
    return Access(tuple(int(i == axis % rank) for i in range(rank)))


def merged(extents: Sequence[int], accesses: Sequence[Access]) -> tuple[list[int], list[Access]]:
    """The same nest with as few loops as possible: loops of one step go, neighbours that every access walks as one
    become one."""
    sizes: list[int] = []
    columns: list[list[int]] = []
    for axis, extent in enumerate(extents):
        if extent == 1:
            continue
        steps = [access.strides[axis] for access in accesses]
        if columns and all(outer == inner * extent for outer, inner in zip(columns[-1], steps, strict=True)):
            sizes[-1] *= extent
            columns[-1] = steps
        else:
            sizes.append(extent)
            columns.append(steps)
    rows = [Access(tuple(c[i] for c in columns), access.offset) for i, access in enumerate(accesses)]
    return sizes, rows


def index(access: Access) -> str:
    """The access as an expression of the loop variables i, j, k, ..."""
    terms = [
        name if stride == 1 else f"{name} * {stride}"
        for name, stride in zip(VARIABLES, access.strides, strict=False)
        if stride != 0
    ]
    if access.offset or not terms:
        terms.append(str(access.offset))
    return " + ".join(terms).replace("+ -", "- ")


VARIABLES = ("i", "j", "k", "l", "m", "n", "p", "q", "r", "s", "t", "u", "v", "w")


def nest(extents: Sequence[int], accesses: Sequence[Access], body: Callable[[list[str]], str], depth: int = 1) -> str:
    """The text of a nest; `body` gives the innermost statements for the accesses' indices."""
    sizes, rows = merged(extents, accesses)
    return wrap(sizes, body([index(row) for row in rows]), depth)


def wrap(sizes: Sequence[int], body: str, depth: int = 1) -> str:
    """Loops of these sizes around statements."""
    lines = [
        f"{'    ' * (depth + level)}for (int32_t {name} = 0; {name} < {size}; ++{name})"
        + (" {" if level < len(sizes) - 1 or "\n" in body else "")
        for level, (size, name) in enumerate(zip(sizes, VARIABLES, strict=False))
    ]
    inside = "    " * (depth + len(sizes))
    lines += [inside + line for line in body.split("\n")]
    braces = [level for level, line in enumerate(lines[: len(sizes)]) if line.endswith("{")]
    lines += ["    " * (depth + level) + "}" for level in reversed(braces)]
    return "\n".join(lines) + "\n"


def copy(extents: Sequence[int], source: Access, target: Access, pointer: str = "input", size: str = "*output") -> str:
    """Copies elements: the innermost loop by memcpy where both sides are dense there."""
    sizes, (read, write) = merged(extents, [source, target])
    if not sizes:
        return f"    output[{index(write)}] = {pointer}[{index(read)}];\n"
    if read.strides[-1] == write.strides[-1] == 1:
        count, sizes = sizes[-1], sizes[:-1]
        read, write = Access(read.strides[:-1], read.offset), Access(write.strides[:-1], write.offset)
        return wrap(sizes, f"memcpy(output + {index(write)}, {pointer} + {index(read)}, {count} * sizeof {size});")
    return wrap(sizes, f"output[{index(write)}] = {pointer}[{index(read)}];")
