"""Writes the programs of `torch_files` and what eager PyTorch gave of them: made once, and replayed without PyTorch.

    python -m tests.numeric.torch_files [NAME ...]

Only the programs of these names are written anew, if some are given. Needs torch, torchao and executorch beside relay.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.numeric.torch_nets import TORCHAO, calibrated, weights_quantized

FOLDER = Path(__file__).parent / "torch_files"
BATCHES = ((1, 3), (2, 0), (5, -4), (9, 2), (64, 1))
"""Batches that `branches` ran with, and the means of their numbers."""


def modules() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Modules, and the inputs that they are exported with."""
    torch: Any = import_module("torch")
    nn: Any = torch.nn
    loops: Any = import_module("torch._higher_order_ops")
    maps: Any = import_module("torch._higher_order_ops.map")

    class Images(nn.Module):
        def __init__(self) -> None:
            nn.Module.__init__(self)
            self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
            self.second, self.last = nn.Conv2d(8, 8, 3, groups=8, stride=2), nn.Linear(8, 5)

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.norm(self.first(x)))
            y = nn.functional.hardtanh(self.second(x), 0, 6)
            z = torch.cat([y + y, nn.functional.max_pool2d(x, 2, padding=0)[:, :, :3, :3]], 1)[:, :8]
            return self.last(nn.functional.adaptive_avg_pool2d(z, 1).flatten(1))

    class Sequences(nn.Module):
        def __init__(self) -> None:
            nn.Module.__init__(self)
            self.lstm = nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True)
            self.gru = nn.GRU(8, 4)

        def forward(self, x: Any) -> Any:
            return self.gru(self.lstm(x)[0])[0]

    class Attention(nn.Module):
        def __init__(self) -> None:
            nn.Module.__init__(self)
            self.norm, self.inner, self.outer = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

        def forward(self, x: Any) -> Any:
            q, k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in self.inner(self.norm(x)).chunk(3, -1))
            found = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + nn.functional.gelu(self.outer(found.transpose(1, 2).flatten(2)))

    def fewer(i: Any, _: Any) -> Any:
        return i < 5

    def doubled(i: Any, a: Any) -> Any:
        return i + 1, a * 2

    def raised(a: Any, b: Any) -> Any:
        return a * b + 1

    class Flow(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            some = torch.cond(x.sum() > 0, torch.add, torch.sub, (x, y))
            _, more = loops.while_loop(fewer, doubled, (torch.tensor(0), some))
            return maps.map(raised, more, y[0])

    def tall(x: Any) -> Any:
        return torch.cat([x, x], 1).cumsum(0) / x.shape[0]

    def wide(x: Any) -> Any:
        return torch.cond(x.amax() > 0, torch.abs, torch.neg, (x.softmax(0).repeat(1, 2),))

    def small(_: Any, a: Any) -> Any:
        return a.abs().sum() < 100

    class Branches(nn.Module):
        def forward(self, x: Any) -> Any:
            some = torch.cond(x.sum() > x.shape[0], tall, wide, (x,))
            return loops.while_loop(small, doubled, (torch.tensor(0), some))[1]

    class State(nn.Module):
        def __init__(self) -> None:
            nn.Module.__init__(self)
            self.register_buffer("sums", torch.zeros(2, 4))

        def forward(self, x: Any) -> Any:
            self.sums.add_(x)
            return self.sums * 2

    def layers() -> Any:
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16))

    vectors, matrix = (torch.randn(3, 64),), torch.randn(2, 4)
    found: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "images": (Images(), (torch.randn(2, 3, 8, 8),)), "sequences": (Sequences(), (torch.randn(2, 5, 3),)),
        "attention": (Attention(), (torch.randn(1, 6, 16),)), "flow": (Flow(), (matrix, matrix + 1)),
        "state": (State(), (matrix,)), "layers": (layers(), vectors), "branches": (Branches(), (torch.randn(4, 3),)),
    }  # fmt: skip
    for name, module, inputs in (
        ("static", Images(), lambda: (torch.randn(2, 3, 8, 8),)),
        ("dynamic", layers(), lambda: vectors),
    ):
        exported = torch.export.export(module.eval(), inputs()).module()
        found[f"pt2e_{name}"] = (calibrated(exported, inputs, dynamic=name == "dynamic"), inputs())
    for name, row in TORCHAO.items():
        found[f"torchao_{name.replace(' ', '_')}"] = (weights_quantized(layers().eval(), *row), vectors)
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    FOLDER.mkdir(exist_ok=True)
    arrays: dict[str, Any] = {}
    if names := sys.argv[1:]:
        with np.load(FOLDER / "results.npz") as file:
            arrays |= file
    for name, (module, inputs) in modules().items():
        if names and name not in names:
            continue
        module = module if name.startswith("pt2e") else module.eval()
        batch = torch.export.Dim("batch", min=1, max=64)
        shapes = ({0: batch},) if name in ("layers", "attention", "branches") else None
        given = tuple(torch.cat([each, each]) for each in inputs) if name == "attention" else inputs
        program = torch.export.export(module, given, dynamic_shapes=shapes)
        torch.export.save(program, FOLDER / f"{name}.pt2")
        with torch.no_grad():
            arrays[f"{name}_out"] = program.module()(*given).numpy()
        arrays |= {f"{name}_in{number}": each.numpy() for number, each in enumerate(given)}
        for batch, mean in BATCHES if name == "branches" else ():
            x = torch.randn(batch, 3) + mean
            arrays |= {f"{batch}_{name}_in0": x.numpy(), f"{batch}_{name}_out": program.module()(x).numpy()}
    np.savez_compressed(FOLDER / "results.npz", **arrays)


if __name__ == "__main__":
    main()
