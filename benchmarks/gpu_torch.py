"""The same by torch, where it is installed: int8 and float16 products, networks in float16 as graphs and compiled."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

ROUNDS, TIMES = 7, 20
NETWORKS = ("resnet50", "mobilenet_v2")


def rows(sizes: Sequence[int], batches: Sequence[int], until: float) -> Iterator[tuple[str, float | str]]:
    """What is timed, by name, with its milliseconds or why there are none; nothing is begun after `until`."""
    try:
        torch: Any = importlib.import_module("torch")
        if not torch.cuda.is_available():
            raise ImportError("torch sees no GPU")
    except ImportError as error:
        yield "torch", str(error)
        return
    yield f"torch {torch.__version__}", ""
    actions: list[tuple[str, Callable[[], Callable[[], object]]]] = []
    for size in sizes:
        actions.append((f"torch._int_mm {size}", lambda size=size: int_product(torch, size)))
        actions.append((f"float16 product {size}", lambda size=size: float_product(torch, size)))
    for name in NETWORKS:
        for batch in batches:
            actions.append((f"{name} float16 graph, batch {batch}", lambda n=name, b=batch: graph_of(torch, n, b)))
    for name in NETWORKS:
        for batch in batches:
            actions.append((f"{name} float16 compiled, batch {batch}", lambda n=name, b=batch: compiled(torch, n, b)))
    for what, make in actions:
        if time.monotonic() > until:
            yield what, "no time was left"
            continue
        try:
            yield what, milliseconds(torch, make())
        except Exception as error:  # whatever another library does, this run goes on
            yield what, f"{type(error).__name__}: {error}".splitlines()[0][:200]


def milliseconds(torch: Any, action: Callable[[], object]) -> float:
    """The median time of an action on the device."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    found: list[float] = []
    for _ in range(3):
        action()
    for _ in range(ROUNDS):
        marks[0].record()
        for _ in range(TIMES):
            action()
        marks[1].record()
        torch.cuda.synchronize()
        found.append(marks[0].elapsed_time(marks[1]) / TIMES)
    return median(found)


def int_product(torch: Any, size: int) -> Callable[[], object]:
    """A product of codes to numbers of 32 bits."""
    a = torch.randint(-128, 127, (size, size), dtype=torch.int8, device="cuda")
    b = torch.randint(-128, 127, (size, size), dtype=torch.int8, device="cuda").t()
    return lambda: torch._int_mm(a, b)


def float_product(torch: Any, size: int) -> Callable[[], object]:
    """A product of float16 numbers."""
    a, b = (torch.randn(size, size, dtype=torch.float16, device="cuda") for _ in range(2))
    return lambda: a @ b


def network(torch: Any, name: str, batch: int) -> tuple[Any, Any]:
    """A network of torchvision's in float16, channels last, and images."""
    models: Any = importlib.import_module("torchvision.models")
    torch.backends.cudnn.benchmark = True
    model = getattr(models, name)().eval().half().cuda().to(memory_format=torch.channels_last)
    images = torch.randn(batch, 3, 224, 224, dtype=torch.float16, device="cuda")
    return model, images.to(memory_format=torch.channels_last)


def graph_of(torch: Any, name: str, batch: int) -> Callable[[], object]:
    """A network as a graph of CUDA's."""
    model, images = network(torch, name, batch)
    with torch.inference_mode():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                model(images)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(images)
    return graph.replay


def compiled(torch: Any, name: str, batch: int) -> Callable[[], object]:
    """A network compiled by torch."""
    model, images = network(torch, name, batch)
    fast = torch.compile(model, mode="reduce-overhead")

    def run() -> object:
        with torch.inference_mode():
            return fast(images)

    return run
