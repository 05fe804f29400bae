"""The references with which `compare` compares a model: LiteRT, ONNX Runtime, the interpreter, or another
executable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from operator import methodcaller
from os import PathLike, fspath
from types import ModuleType
from typing import Any, Protocol

from relay import signature
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Unsupported
from relay.exploration.intermediates import Point, observed
from relay.exploration.measuring import results_of
from relay.interpreters import run as interpret
from relay.module import IRModule
from relay.plug_ins import installation
from relay.runtime import Executable


@dataclass(frozen=True)
class Results:
    """The results of a reference: the model's outputs, and tensors inside the model."""

    outputs: Sequence[Array]
    tensors: Mapping[int, Sequence[tuple[str, Array]]] = field(default_factory=dict[int, Sequence[tuple[str, Array]]])
    """By the number of an operator in the source model, the names and values of its outputs."""


class Reference(Protocol):
    """The interface of a runtime that runs the source model, so that a compiled model can be compared with its
    results."""

    @property
    def title(self) -> str:
        """The name and version of the reference, as shown to the user."""
        ...

    def run(self, inputs: Mapping[str, Array], layers: bool) -> Results:
        """Run the model and return its outputs, with the tensors between operators if `layers`. Raises RelayError."""
        ...


def installed(module: str, package: str, extra: str) -> ModuleType:
    """Import an optional module. Raises Unsupported, with the command that installs `package`, if it is missing."""
    try:
        return import_module(module)
    except ImportError:
        raise Unsupported("compare", f"the package {package} is not installed", installation(extra)) from None


@dataclass(frozen=True)
class LiteRt:
    """Runs the `.tflite` file with LiteRT: with LiteRT's reference kernels, or with its default kernels if `numerics`
    is "xnnpack"."""

    model: str | PathLike[str] | bytes
    numerics: str = "litert"

    @property
    def title(self) -> str:
        kernels = "default kernels" if self.numerics == "xnnpack" else "reference kernels"
        return f"LiteRT {version('ai-edge-litert')}, {kernels}"

    def run(self, inputs: Mapping[str, Array], layers: bool) -> Results:
        litert = installed("ai_edge_litert.interpreter", "ai-edge-litert", "litert")
        kinds = litert.OpResolverType
        kind = kinds.BUILTIN_REF if self.numerics != "xnnpack" else kinds.AUTO
        where = {"model_content": self.model} if isinstance(self.model, bytes) else {"model_path": fspath(self.model)}
        try:
            found: Any = litert.Interpreter(
                **where, experimental_op_resolver_type=kind, experimental_preserve_all_tensors=layers
            )
            details = found.get_input_details()
            for detail, array in zip(details, inputs.values(), strict=True):
                if list(detail["shape"]) != list(array.shape):
                    found.resize_tensor_input(detail["index"], list(array.shape))
            found.allocate_tensors()
            for detail, array in zip(details, inputs.values(), strict=True):
                found.set_tensor(detail["index"], array)
            found.invoke()
        except (ValueError, RuntimeError) as error:
            raise Unsupported("LiteRT", " ".join(str(error).split())) from None
        outputs = [found.get_tensor(detail["index"]) for detail in found.get_output_details()]
        return Results(outputs, self._tensors(found) if layers else {})

    def _tensors(self, found: Any) -> dict[int, list[tuple[str, Array]]]:
        names = {detail["index"]: str(detail["name"]) for detail in found.get_tensor_details()}
        tensors: dict[int, list[tuple[str, Array]]] = {}
        # the only way to find out which tensors an operator computes
        for row in methodcaller("_get_ops_details")(found):
            if row["op_name"] == "DELEGATE":
                continue
            try:
                given = [(names[index], found.get_tensor(index)) for index in row["outputs"] if index >= 0]
            except ValueError:  # tensors without readable data, such as resources
                continue
            tensors[int(row["index"])] = given
        return tensors


@dataclass(frozen=True)
class OnnxRuntime:
    """Runs the `.onnx` file with ONNX Runtime's CPU provider. With `layers`, tensors between nodes are made outputs of
    the model, which also keeps ONNX Runtime from fusing them away."""

    model: str | PathLike[str]

    @property
    def title(self) -> str:
        return f"ONNX Runtime {version('onnxruntime')}"

    def run(self, inputs: Mapping[str, Array], layers: bool) -> Results:
        runtime: Any = installed("onnxruntime", "onnxruntime", "onnxruntime")
        onnx: Any = installed("onnx", "onnx", "onnxruntime")
        model = onnx.load(fspath(self.model))
        outputs, nodes = [output.name for output in model.graph.output], list[tuple[int, list[str]]]()
        if layers:
            infos = {info.name: info for info in onnx.shape_inference.infer_shapes(model).graph.value_info}
            for number, node in enumerate(model.graph.node):
                names = [name for name in node.output if name in infos or name in outputs]
                nodes.append((number, names))
                model.graph.output.extend(infos[name] for name in names if name not in outputs)
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        try:
            session = exact_session(runtime, model.SerializeToString(), options)
            feed = {port.name: array for port, array in zip(session.get_inputs(), inputs.values(), strict=True)}
            names = [port.name for port in session.get_outputs()]
            values = dict(zip(names, session.run(None, feed), strict=True))
        except Exception as error:  # ONNX Runtime's own exceptions derive from Exception only
            raise Unsupported("ONNX Runtime", " ".join(str(error).split())) from None
        tensors = {number: [(name, values[name]) for name in names] for number, names in nodes}
        return Results([values[name] for name in outputs], tensors)


def exact_session(runtime: Any, model: bytes, options: Any) -> Any:
    """Create a session whose integer sums do not saturate on x86-64 machines without VNNI. ONNX Runtime cannot do so
    for models with QLinearConv on int8 data; they get an ordinary session."""
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except runtime.capi.onnxruntime_pybind11_state.NotImplemented:
        options.add_session_config_entry("session.x64quantprecision", "0")
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@dataclass(frozen=True)
class Interpreted:
    """Runs the module with the project's interpreter, op by op in numpy."""

    module: IRModule
    title: str = "the interpreter"

    def run(self, inputs: Mapping[str, Array], layers: bool) -> Results:
        module, points = observed(self.module, whole=True) if layers else (self.module, [])
        results = interpret(module, inputs)
        kinds = [info.kind for info in signature.read(self.module["main"])[1]]
        outputs = [result for kind, result in zip(kinds, results, strict=False) if kind == "output"]
        return Results(outputs, by_node(points, results))


@dataclass(frozen=True)
class Built:
    """Runs another executable, whose inputs and outputs correspond to the model's in order."""

    executable: Executable
    title: str

    def run(self, inputs: Mapping[str, Array], layers: bool) -> Results:
        if layers:
            hint = "compare with litert, onnxruntime or interpreter"
            raise InvalidArgument("layers", f"{self.title} keeps no tensors between operators", hint)
        specs = [spec for spec in self.executable.inputs if spec.kind == "input"]
        if len(specs) != len(inputs):
            raise InvalidArgument(self.title, f"takes {len(specs)} inputs; the model {len(inputs)}")
        given = {spec.name: array for spec, array in zip(specs, inputs.values(), strict=True)}
        return Results(outputs_of(self.executable, results_of(self.executable, given)))

    def translated(self, model: Executable, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Convert the model's inputs to the types that this executable takes: real numbers are quantized, quantized
        values dequantized."""
        specs = [spec for spec in model.inputs if spec.name in inputs]
        others = [spec for spec in self.executable.inputs if spec.kind == "input"]
        return {
            spec.name: array if spec.dtype == other.dtype else other.quantize(spec.dequantize(array))
            for spec, other, array in (
                (spec, other, inputs[spec.name]) for spec, other in zip(specs, others, strict=False)
            )
        }


def outputs_of(executable: Executable, results: Sequence[Array]) -> list[Array]:
    """Return the results that are outputs of the model, without states."""
    return [result for spec, result in zip(executable.outputs, results, strict=False) if spec.kind == "output"]


def by_node(points: Sequence[Point], results: Sequence[Array]) -> dict[int, list[tuple[str, Array]]]:
    """Group the observed values by the number of the source model's operator that computes them: name and array of
    each."""
    tensors: dict[int, list[tuple[str, Array]]] = {}
    for point in points:
        if point.node >= 0:
            tensors.setdefault(point.node, []).append((point.name, results[point.output]))
    return tensors
