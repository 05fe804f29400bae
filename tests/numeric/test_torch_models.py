"""Networks of torchvision, timm and transformers with random weights, exported by torch, against eager PyTorch.

    pytest -m torch tests/numeric/test_torch_models.py

docs/pytorch.md says how an environment with torch is made without its CUDA libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay.compile.entry import build
from relay.frontend import from_pytorch
from relay.interpreters import run

pytestmark = pytest.mark.torch


def package(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} makes the models", exc_type=ImportError)


def vision(name: str) -> Any:
    return getattr(package("torchvision").models, name)(weights=None)


def text(kind: str, **options: Any) -> Any:
    """A small network of transformers."""
    transformers = package("transformers")
    return getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**options))


def image(size: int, batch: int = 1) -> Any:
    return (package("torch").randn(batch, 3, size, size),)


def tokens(count: int = 12) -> Any:
    return (package("torch").randint(0, 90, (1, count)),)


SMALL = {"vocab_size": 100, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
NETS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "ResNet-18": (lambda: vision("resnet18"), lambda: image(64)),
    "MobileNetV3": (lambda: vision("mobilenet_v3_small"), lambda: image(64)),
    "EfficientNet-B0": (lambda: vision("efficientnet_b0"), lambda: image(64)),
    "ViT-tiny": (
        lambda: package("timm").create_model("vit_tiny_patch16_224", pretrained=False, img_size=64),
        lambda: image(64),
    ),
    "BERT": (lambda: text("Bert", intermediate_size=96, **SMALL), tokens),
    "GPT-2": (lambda: text("GPT2", vocab_size=100, n_embd=48, n_layer=2, n_head=4, n_positions=64), tokens),
    "Llama": (
        lambda: text("Llama", intermediate_size=96, num_key_value_heads=2, use_cache=False, **SMALL),
        tokens,
    ),
    "Whisper encoder": (
        lambda: package("transformers")
        .WhisperModel(
            package("transformers").WhisperConfig(
                vocab_size=100, d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_source_positions=40,
                pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
            )
        )
        .encoder,
        lambda: (package("torch").randn(1, 80, 80),),
    ),
}  # fmt: skip


def first(result: Any) -> Any:
    """The tensor of a result, the first of several."""
    named = hasattr(result, "values") and not hasattr(result, "dtype")
    several: Any = [*result.values()] if named else result
    return several[0] if named or isinstance(result, tuple | list) else result


def distance(found: Any, wanted: Any) -> float:
    return float(np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize("decomposed", [False, True], ids=["whole", "decomposed"])
@pytest.mark.parametrize("name", NETS)
def test_is_within_1e_5_of_eager(name: str, decomposed: bool, tmp_path: Path) -> None:
    """Interpreted and compiled, of a file."""
    torch = package("torch")
    torch.manual_seed(0)
    make, inputs = NETS[name]
    model, given = make().eval(), inputs()
    with torch.no_grad():
        wanted = first(model(*given)).numpy()
        program = torch.export.export(model, given)
    program = program.run_decompositions() if decomposed else program
    path = tmp_path / "model.pt2"
    torch.export.save(program, path)
    arrays = [each.numpy() for each in given]
    found = run(from_pytorch(path), arrays)[0]
    assert distance(found, wanted) <= 1e-5
    if not decomposed:
        result = build(str(path))(*arrays)
        assert distance(first(result), wanted) <= 1e-5


def test_a_program_is_taken_as_it_is() -> None:
    """An ExportedProgram is saved to memory, and read as a file is."""
    torch = package("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh()).eval()
    x = torch.randn(2, 4)
    (found,) = run(from_pytorch(torch.export.export(model, (x,))), [x.numpy()])
    assert distance(found, model(x).detach().numpy()) <= 1e-6
