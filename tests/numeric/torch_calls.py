"""Random calls of the core operators of ATen, and of overloads (`upsample_linear1d.vec`) that `export` writes, for
`torch_recording.py`: a row says what an operator is called with."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from importlib import import_module
from typing import Any

Call = tuple[str, tuple[Any, ...], dict[str, Any]]
"""The overload, its arguments in order, and those by name."""


def is_of(target: str, name: str) -> bool:
    """Whether a call is of the operator, or the overload, of this row."""
    return f"{target}.".startswith(f"aten.{name}.")


class Draw:
    """Random tensors and numbers, the same for a seed."""

    def __init__(self, seed: int) -> None:
        self.torch: Any = import_module("torch")
        self.torch.manual_seed(seed)
        self.random = random.Random(seed)

    def size(self, low: int = 1, high: int = 4) -> int:
        return self.random.randint(low, high)

    def sizes(self, low: int = 0, high: int = 4) -> list[int]:
        found = [self.size() for _ in range(self.size(low, high))]
        while self.torch.Size(found).numel() > 40:
            found[found.index(max(found))] = 1
        return found

    def x(self, *sizes: int) -> Any:
        """Floats of these sizes, or of any."""
        return self.torch.randn(sizes or self.sizes())

    def holes(self) -> Any:
        """Floats some of which are no numbers, or infinite."""
        x = self.of(1)
        drawn = self.torch.rand(x.shape)
        x[drawn < 0.3], x[drawn > 0.85] = float("nan"), float("-inf")
        return x

    def of(self, rank: int) -> Any:
        """Floats of that rank at least."""
        return self.torch.randn(self.sizes(rank, 4))

    def whole(self, high: int, *sizes: int) -> Any:
        return self.torch.randint(0, high, sizes)

    def any(self) -> Any:
        """Floats, integers or booleans."""
        x = self.x() * 3
        return self.random.choice((x, x, x.long(), x.int(), x > 0))

    def axis(self, x: Any) -> int:
        return self.random.randrange(-max(x.ndim, 1), max(x.ndim, 1))

    def axes(self, x: Any) -> list[int]:
        return sorted(self.random.sample(range(x.ndim), self.size(0, x.ndim))) or list(range(x.ndim))

    def flag(self) -> bool:
        return self.random.random() < 0.5

    def image(self, count: int, least: int = 3) -> Any:
        """A batch of few channels with so many spatial axes."""
        most = {1: 9, 2: 5, 3: 4}[count]
        return self.x(
            1 if count == 3 else self.size(1, 2), self.size(1, 2), *(self.size(least, most) for _ in range(count))
        )

    def vectors(self, count: int, channels: int) -> list[Any]:
        return [self.x(channels) for _ in range(count - 1)] + [self.x(channels).abs() + 0.5]


def plain(*names: str, change: Callable[[Any], Any] = lambda x: x) -> dict[str, Callable[[Draw], Call]]:
    """Functions of one tensor."""
    return {name: lambda d: ("default", (change(d.x()),), {}) for name in names}


def reduced(d: Draw, overload: str = "default", several: bool = True) -> Call:
    x = d.of(1)
    return overload, (x, d.axes(x) if several else d.axis(x), d.flag()), {}


def pooled(d: Draw, count: int) -> Call:
    kernel = [d.size(1, 3) for _ in range(count)]
    padding = [d.size(0, each // 2) for each in kernel]
    return "default", (d.image(count), kernel, [d.size(1, 2) for _ in kernel], padding), {}


def padded(d: Draw, count: int) -> Call:
    return "default", (d.image(count), [d.size(0, 2) for _ in range(2 * count)]), {}


def scattered(d: Draw, overload: str, *more: Any, source: bool = True, **named: Any) -> Call:
    x = d.of(1)
    axis = d.axis(x)
    index = d.torch.randint(0, x.shape[axis], [d.size(1, each) for each in x.shape])
    if overload in ("src", "value"):  # which of several would win is not said
        index = d.torch.argsort(d.torch.rand(x.shape), axis)
    return overload, (x, axis, index, d.torch.randn(index.shape) if source else 0.5, *more), named


def indexed(d: Draw, x: Any) -> list[Any]:
    shape = [d.size() for _ in range(d.size(1, 2))]
    count = d.size(1, x.ndim)
    return [d.torch.randint(-x.shape[axis], x.shape[axis], shape) for axis in range(count)]


def put(d: Draw) -> Call:
    x = d.of(2)
    places = d.torch.randperm(x.shape[0])[: d.size(1, x.shape[0])]
    return "default", (x, [places], d.torch.randn(len(places), *x.shape[1:]), d.flag()), {}


def bags(d: Draw) -> Call:
    count = d.size(3, 8)
    offsets = d.torch.tensor([0, *sorted(d.random.sample(range(1, count), d.size(0, 2)))])
    return "default", (d.x(6, 3), d.whole(6, count), offsets, False, d.size(0, 2)), {}


def folded(d: Draw) -> Call:
    height, width, kernel = d.size(3, 5), d.size(3, 5), d.size(1, 2)
    x = d.x(1, 2 * kernel**2, (height - kernel + 1) * (width - kernel + 1))
    return "default", (x, [height, width], [kernel] * 2, [1, 1], [0, 0], [1, 1]), {}


def sampled(d: Draw) -> Call:
    grid = d.x(1, d.size(), d.size(), 2)
    return "default", (d.x(1, 2, d.size(2, 4), d.size(2, 4)), grid, d.size(0, 2), d.size(0, 2), d.flag()), {}


def resized(d: Draw, overload: str, count: int, corners: bool, least: int) -> Call:
    """As `interpolate` calls it: to sizes without factors, or by factors without sizes (`vec`), or with both."""
    x, flags, by_sizes = d.image(count), [d.flag()] if corners else [], d.flag()
    factors = [d.random.choice((0.7, 1.0, 1.7, 2.0) if least > 1 else (0.5, 0.7, 1.7)) for _ in range(count)]
    sizes = [d.size(least, 6) for _ in range(count)]
    if overload == "vec":
        return overload, (x, sizes if by_sizes else None, *flags, None if by_sizes else factors), {}
    reached = [int(size * factor) for size, factor in zip(x.shape[2:], factors, strict=True)]
    return overload, ((x, sizes, *flags) if by_sizes else (x, reached, *flags, *factors)), {}


def normed(d: Draw, *rest: Any) -> Call:
    x = d.image(d.size(1, 2))
    return "default", (x, *d.vectors(4, x.shape[1]), *rest), {}


def grouped(d: Draw) -> Call:
    groups, n, width = d.size(1, 2), d.size(1, 2), d.size(1, 4)
    channels = 2 * groups
    return "default", (d.x(n, channels, width), d.x(channels), d.x(channels), n, channels, width, groups, 1e-5), {}


def copied(d: Draw) -> Call:
    kinds = (d.torch.float32, d.torch.float64, d.torch.int64, d.torch.int32, d.torch.bool, d.torch.uint8)
    return "default", (d.any(),), {"dtype": d.random.choice(kinds[:5])}


def sliced(d: Draw) -> Call:
    x = d.of(1)
    axis, start = d.axis(x), d.size(0, 2)
    end, step = start + d.size(0, 3), d.size(1, 2)
    part: Any = d.torch.randn(d.torch.ops.aten.slice.Tensor(x, axis, start, end, step).shape)
    return "default", (x, part, axis, start, end, step), {}


def selected(d: Draw) -> Call:
    x = d.of(1)
    axis = d.axis(x)
    return "default", (x, d.torch.randn(x.select(axis, 0).shape), axis, d.size(0, x.shape[axis] - 1)), {}


def chosen(d: Draw) -> Call:
    x, y = d.x(), d.random.random()
    other = d.x(*x.shape) if x.ndim else d.torch.tensor(0.5)
    return "self", (x > y, x, other), {}


def bounded(d: Draw) -> Call:
    x = d.any()
    x = x.long() if x.dtype == d.torch.bool else x
    low, high = d.random.choice([(-1, 1), (None, 1), (0, None), (-0.5, 2.5)])
    return "default", (x, low, high), {}


def split(d: Draw) -> Call:
    x = d.of(1)
    axis = d.axis(x)
    first = d.size(0, x.shape[axis])
    return "default", (x, [first, x.shape[axis] - first], axis), {}


def gathered(d: Draw) -> Call:
    _, (x, axis, index, *_), _ = scattered(d, "add")
    return "default", (x, axis, index), {}


def joined(d: Draw) -> Call:
    x = d.of(1)
    return "default", ([x, d.torch.randn(x.shape), d.torch.randn(x.shape)][: d.size(1, 3)], d.axis(x)), {}


def ordered(d: Draw, *middle: Any) -> Call:
    x = d.of(1)
    axis = d.axis(x)
    return "default", (x, *(d.size(1, x.shape[axis]) for _ in middle), axis, d.flag()), {}


RESIZES: dict[str, tuple[int, bool, int]] = {
    **{f"{kind}{n}d": (n, False, 1) for kind in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)},
    "upsample_linear1d": (1, True, 1), "upsample_bilinear2d": (2, True, 1), "upsample_trilinear3d": (3, True, 1),
    "upsample_bicubic2d": (2, True, 1), "_upsample_bilinear2d_aa": (2, True, 2), "_upsample_bicubic2d_aa": (2, True, 2),
}  # fmt: skip
"""The spatial axes of operators that resize, whether they may align corners, and the least size that they give:
antialiased to a width of 1, PyTorch 2.13 gives its first row for every row."""
CALLS: dict[str, Callable[[Draw], Call]] = {
    **plain(*"abs asinh atan ceil clone alias cos cosh elu erf exp expm1 floor gelu isinf isnan leaky_relu".split()),
    **plain(*"logical_not neg reciprocal relu round sigmoid sign sin sinh tanh trunc mean".split()),
    **plain("acos", "asin", "atanh", "tan", change=lambda x: x.clamp(-0.95, 0.95)),
    **plain("log", "log10", "log1p", "log2", "sqrt", "rsqrt", change=lambda x: x.abs() + 0.05),
    **plain("acosh", change=lambda x: x.abs() + 1.05),
    "bitwise_not": lambda d: ("default", (d.random.choice((d.x() > 0, (d.x() * 9).long())),), {}),
    "_adaptive_avg_pool2d": lambda d: ("default", (d.image(2), [d.size(1, 3), d.size(1, 3)]), {}),
    "_adaptive_avg_pool3d": lambda d: ("default", (d.image(3), [d.size(1, 2) for _ in range(3)]), {}),
    "adaptive_avg_pool1d": lambda d: ("default", (d.image(1), [d.size(1, 3)]), {}),
    "_embedding_bag": bags,
    "_log_softmax": lambda d: ("default", (x := d.of(1), d.axis(x), False), {}),
    "_native_batch_norm_legit": lambda d: normed(d, False, 0.1, 1e-5),
    "_native_batch_norm_legit_no_training": lambda d: normed(d, 0.1, 1e-5),
    "_pdist_forward": lambda d: ("default", (d.x(d.size(2, 4), 3), (0.0, 1.0, 2.0, 3.0, math.inf)[d.size(0, 4)]), {}),
    "_to_copy": copied,
    "amax": reduced, "amin": reduced, "any": lambda d: reduced(d, "dims"),
    "argmax": lambda d: reduced(d, several=False), "argmin": lambda d: reduced(d, several=False),
    "avg_pool1d": lambda d: pooled(d, 1), "avg_pool3d": lambda d: pooled(d, 3),
    "max_pool3d_with_indices": lambda d: pooled(d, 3),
    "bmm": lambda d: ("default", (d.x(2, 3, k := d.size()), d.x(2, k, d.size())), {}),
    "cat": joined, "clamp": bounded, "col2im": folded,
    "copy": lambda d: ("default", (x := d.x(), d.torch.randn(x.shape).to(x.dtype)), {}),
    "cumsum": lambda d: ("default", (x := d.of(1), d.axis(x)), {}),
    "embedding": lambda d: ("default", (d.x(6, 3), d.whole(6, *d.sizes(1, 2))), {}),
    "fill": lambda d: ("Scalar", (d.any(), d.size()), {}),
    "full": lambda d: ("default", (d.sizes(), d.random.choice((2, 0.5, True))), {}),
    "full_like": lambda d: ("default", (d.any(), d.size()), {}),
    "gather": gathered, "grid_sampler_2d": sampled,
    "index": lambda d: ("Tensor", (x := d.of(1), indexed(d, x)), {}),
    "index_put": put,
    "index_select": lambda d: ("default", (x := d.of(1), a := d.axis(x), d.whole(x.shape[a], d.size())), {}),
    "native_dropout": lambda d: ("default", (d.x(), 0.5, False), {}),
    "native_group_norm": grouped,
    "prod": lambda d: reduced(d, "dim_int", several=False),
    **{f"{kind}_pad{n}d": lambda d, n=n: padded(d, n) for kind in ("reflection", "replication") for n in (1, 2, 3)},
    "repeat": lambda d: ("default", (x := d.x(), [d.size(1, 2) for _ in range(x.ndim + d.size(0, 1))]), {}),
    "scalar_tensor": lambda d: ("default", (d.size(-99, 99),), {"dtype": (d.torch.float32, d.torch.int64)[d.flag()]}),
    "scatter": lambda d: scattered(d, "src") if d.flag() else scattered(d, "value", source=False),
    "scatter_add": lambda d: scattered(d, "default"),
    "scatter_reduce": lambda d: scattered(d, "two", ("sum", "prod", "amax", "amin", "mean")[d.size(0, 4)],
                                         include_self=d.flag()),
    **{name: lambda d: ("default", (d.holes(),), {}) for name in ("argmax", "argmin", "sign")},
    "select_scatter": selected, "slice_scatter": sliced,
    "sort": ordered, "topk": lambda d: ordered(d, "k"),
    "split_with_sizes": split,
    "sum": lambda d: reduced(d, "dim_IntList"),
    "upsample_bilinear2d": lambda d: ("default", (d.image(2), [d.size(2, 6), d.size(2, 6)], d.flag()), {}),
    "upsample_nearest2d": lambda d: ("default", (d.image(2), [d.size(2, 6), d.size(2, 6)]), {}),
    **{f"{name}.{kind}": lambda d, kind=kind, row=row: resized(d, kind, *row)
       for name, row in RESIZES.items() for kind in ("vec", "default")},
    "var": lambda d: ("correction", (x := d.of(2), d.axes(x)), {"correction": d.size(0, 1), "keepdim": d.flag()}),
    "where": chosen,
}  # fmt: skip
