"""`docs/stages.svg`: the stages of a module from file to code, and the passes and folders between them, drawn from the
default pipeline and the tree; `python docs/generate.py` writes it, and a test compares it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from textwrap import wrap

from relay.compile.pipeline import default_pipeline
from relay.frontend.importing.formats import MODELS

ROOT = Path(__file__).parents[1]
PICTURE = Path(__file__).parent / "stages.svg"
STAGES = (
    ("Stage 0: the model", "relay, qnn and byoc ops on tensors, as an importer makes them"),
    ("Stage 1: kernels of relay ops", "only relay ops, integer ones included; functions that are kernels, and @main"),
    ("Stage 2: linalg", "linalg.generic and tensor ops in kernels: upstream's dialects only from here on"),
    ("Stage 3: loops", "scf, vector, arith and memref over one planned arena: destination passing"),
    ("Stage 4: code", "LLVM IR and an object; PTX or SPIR-V for a GPU; C99"),
)
LAST = {"fuse-ops": 1, "relay-to-linalg": 2, "plan-memory": 3}
"""The stage that each of these passes completes."""
BELOW = ("llvm", "gpu", "c")
"""Folders of relay/lowering that make code of stage 3."""
WIDTH, BOX, LINE, ARROW = 900, 54, 15, 34


def passes() -> list[list[str]]:
    """What runs before each stage, from the model's file on."""
    names = [step.name for step in default_pipeline("llvm", 2)]
    ends = [0, *(names.index(name) + 1 for name in LAST)]
    between = [names[start:end] for start, end in zip(ends, ends[1:], strict=False)]
    folders = [f"relay/lowering/{name}" for name in BELOW if (ROOT / "relay" / "lowering" / name).is_dir()]
    importers = ", ".join(f".{name}" for name in MODELS)
    return [[f"relay/frontend reads {importers}"], *between, folders]


def text(x: int, y: int, words: str, *, size: int = 12, weight: str = "normal", fill: str = "#222") -> str:
    font = f'font-size="{size}" font-weight="{weight}" fill="{fill}"'
    return f'<text x="{x}" y="{y}" {font}>{escape(words)}</text>'


def arrow(y: int, height: int, lines: Sequence[str]) -> list[str]:
    """What leads from one box to the next, with the passes beside it."""
    head = f'<path d="M40 {y} V{y + height - 2} m-5 -7 l5 7 l5 -7" stroke="#3949ab" fill="none" stroke-width="2"/>'
    return [head, *(text(60, y + 20 + number * LINE, line, fill="#555") for number, line in enumerate(lines))]


def picture() -> str:
    """The whole picture."""
    body, y = list[str](), 0
    for (name, what), before in zip(STAGES, passes(), strict=True):
        lines = wrap(", ".join(before), 130)
        height = ARROW + LINE * (len(lines) - 1)
        body += arrow(y, height, lines)
        y += height
        body.append(f'<rect x="8" y="{y}" width="{WIDTH - 16}" height="{BOX}" rx="6" fill="#e8eaf6" stroke="#9fa8da"/>')
        body += [text(22, y + 22, name, size=14, weight="bold"), text(22, y + 42, what)]
        y += BOX
    body += [*arrow(y, ARROW, ["relay/runtime loads and runs it, without the compiler"])]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + ARROW + 6}" font-family="sans-serif">'
    return "\n".join([head, *body, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture())
