"""`NodeConversion`: converts a graph's nodes to ops one by one, and continues after a node that cannot be imported in
order to report all problems."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Generic, TypeVar

import numpy as np
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block, SSAValue

from relay.dialects.op import DYNAMIC, is_tensor
from relay.errors import Malformed, RelayError
from relay.frontend.importing.builder import Builder, Place
from relay.frontend.importing.options import MAX_ELEMENTS
from relay.frontend.importing.problems import Problems

T = TypeVar("T")
B = TypeVar("B", bound=Builder)
MAX_RANK = 32
MOST_NODES = 100_000
"""The maximum number of nodes of a graph, including its functions, nested models, and unrolled loop iterations."""
DEEPEST = 24
"""The maximum nesting depth of functions, subgraphs and models."""
READ_ERRORS = (
    ArithmeticError, AttributeError, IndexError, KeyError, MemoryError, TypeError, ValueError, RecursionError,
)  # fmt: skip
"""The exceptions that reading a damaged graph may raise."""


@contextmanager
def readable(file: str, what: str) -> Generator[None, None, None]:
    """A context in which the exceptions that a damaged file causes are raised as Malformed."""
    try:
        yield
    except RelayError:
        raise
    except READ_ERRORS as error:
        raise Malformed(file, f"the {what} cannot be read: {type(error).__name__}: {error}") from error


@dataclass(slots=True, kw_only=True)
class NodeConversion(Generic[B]):
    """Counts the nodes that were converted, and collects the problems found."""

    importer: B
    problems: Problems
    depth: int = 0
    count: int = 0
    unknown: set[SSAValue] = field(default_factory=set[SSAValue])
    """Placeholders for the results of nodes that cannot be imported, and values that depend on them."""

    def begin(self, node: Place) -> None:
        """Count a node before its ops are built. Raises Unsupported if there are too many nodes."""
        self.count += 1
        if self.count > MOST_NODES:
            raise node.unsupported(f"functions, loops and nested models come to more than {MOST_NODES} nodes")
        self.importer.enter(node)

    def tried(
        self, node: Place, outputs: Sized, results: Callable[[], Sequence[T] | None], by_caller: bool
    ) -> Sequence[T | SSAValue]:
        """The values of a node's outputs, which `results` builds. If that fails, record why and return placeholders."""
        self.begin(node)
        found = self.problems.tried(node, results, by_caller=by_caller)
        self.importer.enter(node)
        if found is not None:
            return found
        missing = [Block(arg_types=[TensorType(f32, [])]).args[0] for _ in range(len(outputs))]
        self.unknown.update(missing)
        return missing

    def called(self, node: Place, convert: Callable[[], T], by_caller: bool) -> T:
        """The result of `convert`. Its exceptions are raised as errors in the file, unless the function is the caller's
        own (`by_caller`)."""
        try:
            with np.errstate(all="ignore"):
                return convert()
        except READ_ERRORS as error:
            if by_caller:
                raise
            raise node.malformed(f"cannot be read: {type(error).__name__}: {error}") from error

    def check_size(self, node: Place, value: SSAValue) -> tuple[int, ...]:
        """The sizes of a result. Raises Malformed if there are too many axes or elements."""
        dims = value.type.get_shape() if is_tensor(value.type) else ()
        if len(dims) > MAX_RANK or prod(size for size in dims if size != DYNAMIC) > MAX_ELEMENTS:
            raise node.malformed(f"a result would have the shape {['?' if size == DYNAMIC else size for size in dims]}")
        return dims

    @contextmanager
    def nested(self, node: Place, block: Block) -> Generator[None, None, None]:
        """A context in which a node's subgraph is built into a block; afterwards the node itself is continued."""
        if self.depth >= DEEPEST:
            raise node.unsupported(f"functions and subgraphs are more than {DEEPEST} deep in each other")
        outer = self.importer.block
        self.depth += 1
        self.importer.block = block
        try:
            yield
        finally:
            self.importer.block = outer
            self.depth -= 1
        self.importer.enter(node)
