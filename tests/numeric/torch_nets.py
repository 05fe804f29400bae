"""Networks of torchvision, timm and transformers with random weights, float and quantized, held against eager PyTorch.

    python -m tests.numeric.torch_nets [NET...]

prints the table of docs/pytorch.md. Needs torch, torchvision, timm, transformers, torchao and executorch beside relay.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.frontend import from_pytorch
from relay.frontend.torch.archive import Archive
from relay.interpreters import run
from relay.quantize import QdqToInteger, integer_share, stayed
from tests.numeric.torch_programs import NUMBERS, Json, archive

PT2E = "torch.ops.quantized_decomposed."
QUANTIZE, DEQUANTIZE = f"{PT2E}quantize_per_tensor.default", f"{PT2E}dequantize_per_tensor.default"
SMALL = {"vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
WHISPER = {
    "vocab_size": 100, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "max_source_positions": 40,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "use_cache": False,
}  # fmt: skip


def vision(name: str) -> Any:
    return getattr(import_module("torchvision.models"), name)(weights=None)


def text(kind: str, **options: Any) -> Any:
    """A small network of transformers."""
    transformers: Any = import_module("transformers")
    return getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**options))


def whisper(part: str) -> Any:
    return getattr(text("Whisper", **WHISPER), part)


def vit() -> Any:
    return import_module("timm").create_model("vit_tiny_patch16_224", pretrained=False, img_size=64)


def image() -> tuple[Any, ...]:
    return (import_module("torch").randn(1, 3, 64, 64),)


def tokens() -> tuple[Any, ...]:
    return (import_module("torch").randint(3, 90, (1, 12)),)


NETS: dict[str, tuple[Callable[[], Any], Callable[[], tuple[Any, ...]]]] = {
    "ResNet-18": (lambda: vision("resnet18"), image),
    "MobileNetV3": (lambda: vision("mobilenet_v3_small"), image),
    "EfficientNet-B0": (lambda: vision("efficientnet_b0"), image),
    "ViT-tiny": (vit, image),
    "BERT": (lambda: text("Bert", intermediate_size=96, **SMALL), tokens),
    "GPT-2": (
        lambda: text("GPT2", vocab_size=100, n_embd=64, n_layer=2, n_head=4, n_positions=64, use_cache=False),
        tokens,
    ),
    "Llama": (lambda: text("Llama", intermediate_size=96, num_key_value_heads=2, use_cache=False, **SMALL), tokens),
    "Whisper encoder": (lambda: whisper("encoder"), lambda: (import_module("torch").randn(1, 80, 80),)),
    "Whisper decoder": (lambda: whisper("decoder"), tokens),
}
IMAGES = ("ResNet-18", "MobileNetV3", "EfficientNet-B0", "ViT-tiny")
TORCHAO: dict[str, tuple[str, dict[str, Any]]] = {
    "int8 weights": ("Int8WeightOnlyConfig", {}),
    "int8 dynamic": ("Int8DynamicActivationInt8WeightConfig", {}),
    "int4 weights": ("IntxWeightOnlyConfig", {"weight_dtype": "int4", "granularity": 32}),
    "8da4w": ("Int8DynamicActivationIntxWeightConfig", {"weight_dtype": "int4", "weight_granularity": 32}),
}
FORMS = ("float", "decomposed", "PT2E static", "PT2E dynamic", *TORCHAO)


def applies(net: str, form: str) -> bool:
    """Static codes are of images, what only linear layers have of the others; GPT-2 has none. Dynamic codes of networks
    that compute masks do not run in eager PyTorch: the quantizer's observers make floats of their indices."""
    if net == "GPT-2" or (form == "PT2E dynamic" and net in ("Llama", "Whisper decoder")):
        return form in ("float", "decomposed")
    return form in ("float", "decomposed") or (form == "PT2E static") == (net in IMAGES)


def first(result: Any) -> Any:
    """The tensor of a result, the first of several."""
    named = hasattr(result, "values") and not hasattr(result, "dtype")
    several: Any = [*result.values()] if named else result
    return several[0] if named or isinstance(result, tuple | list) else result


def distance(found: Any, wanted: Any) -> float:
    return float(np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max())


def exported(net: str, form: str) -> tuple[Any, tuple[Any, ...]]:
    """The program in this form, and its inputs."""
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    make, inputs = NETS[net]
    model, given = make(), inputs()
    with torch.no_grad():  # of random weights alone the last layers would give next to nothing
        for _ in range(8 if net in IMAGES else 0):
            model.train()(torch.cat([inputs()[0] for _ in range(4)]))
    model.eval()
    if form in TORCHAO:
        model = weights_quantized(model, *TORCHAO[form])
    program = torch.export.export(model, given)
    if form.startswith("PT2E"):
        model = calibrated(program.module(), inputs, dynamic=form.endswith("dynamic"))
        program = torch.export.export(model, given)
    return program.run_decompositions() if form == "decomposed" else program, given


def calibrated(model: Any, inputs: Callable[[], tuple[Any, ...]], dynamic: bool) -> Any:
    """PT2E by XNNPACKQuantizer, kernels per channel."""
    steps: Any = import_module("torchao.quantization.pt2e.quantize_pt2e")
    xnnpack: Any = import_module("executorch.backends.xnnpack.quantizer.xnnpack_quantizer")
    config = xnnpack.get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic)
    prepared = steps.prepare_pt2e(model, xnnpack.XNNPACKQuantizer().set_global(config))
    for _ in range(4):
        prepared(*inputs())
    return steps.convert_pt2e(prepared)


def weights_quantized(model: Any, config: str, options: dict[str, Any]) -> Any:
    """By torchao's `quantize_`."""
    torch, ao = import_module("torch"), import_module("torchao.quantization")
    groups: Any = import_module("torchao.quantization.granularity").PerGroup
    given = {k: groups(v) if isinstance(v, int) else getattr(torch, v) for k, v in options.items()}
    ao.quantize_(model, getattr(ao, config)(**given))
    return import_module("torchao.utils").unwrap_tensor_subclass(model)


def eager(program: Any, given: Sequence[Any]) -> tuple[Array, dict[str, Array]]:
    """The result, and each code tensor by its name in the graph."""
    torch: Any = import_module("torch")
    codes: dict[str, Array] = {}

    class Keeper(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            value: Any = torch.fx.Interpreter.run_node(self, n)
            if isinstance(value, torch.Tensor) and value.dtype == torch.int8:
                codes[n.name] = value.detach().numpy()
            return value

    with torch.no_grad():
        Keeper(program.module()).run(*given)
        return first(program.module()(*given)).numpy(), codes


def cut(path: Path) -> tuple[bytes, list[str], list[str]]:
    """The program with the codes that its operators read as inputs, and all codes that they give as outputs."""
    source = Archive(path.read_bytes(), str(path))
    module = source.program["graph_module"]
    graph: Json = module["graph"]
    codes = [each["outputs"][0]["as_tensor"]["name"] for each in graph["nodes"] if each["target"] == QUANTIZE]
    names = {number: name for name, number in NUMBERS.items()}
    types = {
        name: ([each["as_int"] for each in meta["sizes"]], names[meta["dtype"]])
        for name, meta in graph["tensor_values"].items()
    }
    weights: dict[str, Array] = {}
    inputs: dict[str, Any] = {}
    for spec in module["signature"]["input_specs"]:
        ((kind, row),) = spec.items()
        name = row["arg"].get("name") or row["arg"]["as_tensor"]["name"]
        if kind == "user_input":
            inputs[name] = types[name]
        else:
            weights[name] = source.array(row[f"{kind}_name"])
    read: list[str] = []
    for node in graph["nodes"]:
        given: Json = node["inputs"][0]["arg"]["as_tensor"] if node["target"] == DEQUANTIZE else {}
        if given.get("name") in codes:
            name = given["name"]
            given["name"] = f"given_{name}"
            inputs[f"given_{name}"] = types[name]
            read += [name] if name not in read else []
    return archive(graph["nodes"], inputs, codes, types, weights), read, codes


def differing(found: Sequence[Array], wanted: Sequence[Array]) -> tuple[int, float]:
    """The most that codes differ by, and the share of those that do."""
    away = np.concatenate(
        [np.abs(a.astype(int) - b.astype(int)).reshape(-1) for a, b in zip(found, wanted, strict=True)]
    )
    return int(away.max()), float((away > 0).mean())


def row(net: str, form: str, compiled: bool = True) -> dict[str, Any]:
    """What is measured of a net in a form: distances of the results by the largest; of static codes what differs."""
    program, given = exported(net, form)
    wanted, codes = eager(program, given)
    arrays = [each.numpy() for each in given]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt2"
        import_module("torch").export.save(program, path)
        found: dict[str, Any] = {"eager": distance(run(from_pytorch(path, numerics="qdq"), arrays)[0], wanted)}
        if form != "PT2E static":
            if compiled:
                found["compiled"] = distance(first(build(str(path))(*arrays)), wanted)
            return found
        data, read, names = cut(path)
        module = QdqToInteger()(from_pytorch(data))
        by_operator = run(module, [*arrays, *(codes[name] for name in read)])
        found["operators"] = differing(by_operator, [codes[name] for name in names])
        found["share"], found["stayed"] = integer_share(module["main"]), len(stayed(module))
        module = QdqToInteger()(from_pytorch(path, outputs=names))
        if compiled:
            result: Any = build(module)(*arrays)
            found["compiled codes"] = differing([np.asarray(each) for each in result], run(module, arrays))[1]
        return found


def main(nets: Sequence[str]) -> None:
    warnings.simplefilter("ignore")
    for net in nets or NETS:
        for form in FORMS:
            if applies(net, form):
                try:
                    print(f"| {net} | {form} | {told(row(net, form))} |", flush=True)
                except Exception as error:
                    print(f"| {net} | {form} | {type(error).__name__}: {str(error)[:300]} |", flush=True)


def told(found: dict[str, Any]) -> str:
    return " | ".join(
        f"{name} {value:.2g}" if isinstance(value, float) else f"{name} {value}" for name, value in found.items()
    )


if __name__ == "__main__":
    main(sys.argv[1:])
