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
from tests.numeric.torch_cases import Case
from tests.numeric.torch_cases import program as replayed
from tests.numeric.torch_programs import NUMBERS, Json, archive
from tests.numeric.torch_recording import case_of

PT2E = "torch.ops.quantized_decomposed."
QUANTIZE, DEQUANTIZE = f"{PT2E}quantize_per_tensor.default", f"{PT2E}dequantize_per_tensor.default"
SMALL = {"vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
WHISPER = {
    "vocab_size": 100, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "max_source_positions": 40,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "use_cache": False,
}  # fmt: skip


def vision(name: str) -> Any:
    return getattr(torchvision().models, name)(weights=None)


def torchvision() -> Any:
    """The package; where its library of operators, which no network here uses, does not fit torch's build, they are
    declared instead."""
    torch: Any = import_module("torch")
    try:
        return import_module("torchvision")
    except RuntimeError:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return import_module("torchvision")


def text(kind: str, **options: Any) -> Any:
    """A small network of transformers."""
    torchvision()
    transformers: Any = import_module("transformers")
    return getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**options))


def whisper(part: str) -> Any:
    return getattr(text("Whisper", **WHISPER), part)


def gpt2() -> Any:
    """With layers that quantizers know: GPT-2's own product is `Conv1D`, a linear layer whose matrix is transposed."""
    torch: Any = import_module("torch")
    model = text("GPT2", vocab_size=100, n_embd=64, n_layer=2, n_head=4, n_positions=64, use_cache=False)
    for block in model.h:
        for part, name in ((block.attn, "c_attn"), (block.attn, "c_proj"), (block.mlp, "c_fc"), (block.mlp, "c_proj")):
            old = getattr(part, name)
            new = torch.nn.Linear(*old.weight.shape)
            new.weight, new.bias = torch.nn.Parameter(old.weight.detach().T.contiguous()), old.bias
            setattr(part, name, new)
    return model


def vit() -> Any:
    torchvision()
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
    "GPT-2": (gpt2, tokens),
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


AT_RUN_TIME = ("PT2E dynamic", "int8 dynamic", "8da4w")
"""Forms whose scales are found at run time."""


def applies(net: str, form: str) -> bool:
    """Dynamic codes and torchao's are of linear layers, which of the images' networks only ViT-tiny has many of."""
    return form in FORMS[:3] or net == "ViT-tiny" or net not in IMAGES


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
        model = calibrated(program.module(), inputs, form.endswith("dynamic"), net in IMAGES)
        program = torch.export.export(model, given)
    return program.run_decompositions() if form == "decomposed" else program, given


def calibrated(model: Any, inputs: Callable[[], tuple[Any, ...]], dynamic: bool, scalars: bool = True) -> Any:
    """PT2E by XNNPACKQuantizer, kernels per channel. Before it annotates a program it makes float tensors of the
    numbers in it, `scalars`; without that, networks that compute indices of tokens still run."""
    steps: Any = import_module("torchao.quantization.pt2e.quantize_pt2e")
    xnnpack: Any = import_module("executorch.backends.xnnpack.quantizer.xnnpack_quantizer")
    config = xnnpack.get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic)
    quantizer = xnnpack.XNNPACKQuantizer().set_global(config)
    if not scalars:
        quantizer.transform_for_annotation = unchanged
    prepared = steps.prepare_pt2e(model, quantizer)
    for _ in range(4):
        prepared(*inputs())
    return steps.convert_pt2e(prepared)


def unchanged(model: Any) -> Any:
    return model


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


def by_operator(program: Any, given: Sequence[Any]) -> tuple[float, int]:
    """Operators as imported, each fed what eager PyTorch's was: the largest distance of floats, and how many integers
    differ."""
    torch: Any = import_module("torch")
    cases: list[Case] = []

    class Caller(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            if not isinstance(n.target, torch._ops.OpOverload):
                return torch.fx.Interpreter.run_node(self, n)
            fetched: Any = self.fetch_args_kwargs_from_env(n)
            given = torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, fetched)  # it may write into its own
            value: Any = torch.fx.Interpreter.run_node(self, n)
            case = case_of(torch, n.target, given[0], given[1], value)
            if case is not None and case.outputs:
                cases.append(case)
            return value

    with torch.no_grad():
        Caller(program.module()).run(*given)
    results = run(from_pytorch(replayed(cases), numerics="qdq"), [array for case in cases for array in case.inputs])
    pairs = list(zip(map(np.asarray, results), [array for case in cases for array in case.results], strict=True))
    floats = [distance(found, wanted) for found, wanted in pairs if wanted.dtype.kind == "f" and wanted.any()]
    return max(floats), sum(int((a != b).sum()) for a, b in pairs if b.dtype.kind != "f")


def rounded(program: Any, given: Sequence[Any]) -> Array:
    """The result where every float operator computes in float64, and its results are rounded to float32 once; those
    that quantize are computed as they are."""
    torch: Any = import_module("torch")

    def converted(values: Any, old: Any, new: Any) -> Any:
        def one(value: Any) -> Any:
            return value.to(new) if value.dtype == old else value

        return torch.utils._pytree.tree_map_only(torch.Tensor, one, values)

    class Wide(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            computes = isinstance(n.target, torch._ops.OpOverload) and n.target._schema.returns
            if not computes or n.target.namespace != "aten":
                return torch.fx.Interpreter.run_node(self, n)
            args, named = converted(self.fetch_args_kwargs_from_env(n), torch.float32, torch.float64)
            named = {name: torch.float64 if value is torch.float32 else value for name, value in named.items()}
            return converted(n.target(*args, **named), torch.float64, torch.float32)

    with torch.no_grad():
        return first(Wide(program.module()).run(*given)).numpy()


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
            if form in AT_RUN_TIME:
                found["operators"] = by_operator(program, given)
                found["eager off"] = distance(wanted, rounded(program, given))
            if compiled:
                found["compiled"] = distance(first(build(str(path))(*arrays)), wanted)
            return found
        data, read, names = cut(path)
        module = QdqToInteger()(from_pytorch(data))
        results = run(module, [*arrays, *(codes[name] for name in read)])
        found["operators"] = differing(results, [codes[name] for name in names])
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
