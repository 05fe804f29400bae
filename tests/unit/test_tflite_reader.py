"""The TFLite reader: what it reads, and what each kind of bad file is told."""

import importlib
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.frontend.tflite import schema, sparsity
from relay.frontend.tflite.flatbuffer import Reader
from relay.frontend.tflite.model import Model, Tensor, read_model

MODELS = Path(__file__).parents[2].parent / "shared" / "models"
needs_models = pytest.mark.skipif(not MODELS.is_dir(), reason="the folder of real models is not here")

FORMATS = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "uint32": "I",
    "uint64": "Q",
} | {"float32": "f"}
CHILDREN = {
    "operator_codes": schema.OPERATOR_CODE,
    "subgraphs": schema.SUBGRAPH,
    "buffers": schema.BUFFER,
    "metadata": schema.METADATA,
    "tensors": schema.TENSOR,
    "operators": schema.OPERATOR,
    "quantization": schema.QUANTIZATION,
    "sparsity": {},
}
Values = dict[str, Any]


def write_table(out: bytearray, fields: schema.Fields, values: Values) -> int:
    """Append the table, 8 bytes a field, then what it points at; its offset. A child twice in a list is shared."""
    count = max((fields[name].slot + 1 for name in values), default=0)
    out += bytes(-len(out) % 8)
    vtable = len(out)
    places = {fields[name].slot: 8 + 8 * i for i, name in enumerate(values)}
    out += struct.pack(f"<{2 + count}H", 4 + 2 * count, 8 + 8 * len(values), *(places.get(i, 0) for i in range(count)))
    out += bytes(-len(out) % 8)
    table = len(out)
    out += struct.pack("<iI", table - vtable, 0) + bytes(8 * len(values))
    for name, value in values.items():
        field, at = fields[name], table + places[fields[name].slot]
        if field.kind in FORMATS:
            struct.pack_into(f"<{FORMATS[field.kind]}", out, at, value)
        else:
            target = write_target(out, name, field, value)
            struct.pack_into("<I", out, at, target - at)
    return table


def write_target(out: bytearray, name: str, field: schema.Field, value: Any) -> int:
    if field.kind in ("table", "union"):
        fields, values = value if field.kind == "union" else (CHILDREN[name], value)
        return write_table(out, fields, values)
    out += bytes(-len(out) % 8) + bytes(4)
    at = len(out)
    if field.kind == "string":
        raw = value if isinstance(value, bytes) else value.encode()
        out += struct.pack("<I", len(raw)) + raw + b"\0"
    elif field.of == "table":
        out += struct.pack("<I", len(value)) + bytes(4 * len(value))
        written: dict[int, int] = {}
        for place, child in zip(range(at + 4, len(out), 4), value, strict=True):
            if id(child) not in written:
                written[id(child)] = write_table(out, CHILDREN[name], child)
            struct.pack_into("<I", out, place, written[id(child)] - place)
    else:
        out += struct.pack(f"<I{len(value)}{FORMATS[field.of]}", len(value), *value)
    return at


def write_model(model: Values) -> bytes:
    out = bytearray(b"\0\0\0\0TFL3")
    root = write_table(out, schema.MODEL, model)
    struct.pack_into("<I", out, 0, root)
    return bytes(out)


def small_model() -> Values:
    """x: int8[1,4] -> FULLY_CONNECTED(x, w: int8[2,4], b: int32[2]) -> y: int8[1,2]"""
    weights: Values = {"scale": [0.5, 0.25], "zero_point": [0, 0], "quantized_dimension": 0}
    tensors: list[Values] = [
        {"name": "x", "shape": [1, 4], "type": 9, "shape_signature": [-1, 4], "quantization": {"scale": [0.1]}},
        {"name": "w", "shape": [2, 4], "type": 9, "buffer": 1, "quantization": weights},
        {"name": "b", "shape": [2], "type": 2, "buffer": 2, "quantization": weights | {"quantized_dimension": 3}},
        {"name": "y", "shape": [1, 2], "type": 9, "quantization": {"scale": [0.1], "zero_point": [-128]}},
    ]
    operator: Values = {
        "inputs": [0, 1, 2],
        "outputs": [3],
        "builtin_options_type": 8,
        "builtin_options": (schema.OPTIONS["FULLY_CONNECTED"].fields, {"fused_activation_function": 1}),
    }
    return {
        "version": 3,
        "description": "by hand",
        "operator_codes": [{"deprecated_builtin_code": 9, "version": 4}],
        "subgraphs": [{"name": "main", "tensors": tensors, "inputs": [0], "outputs": [3], "operators": [operator]}],
        "buffers": [{}, {"data": range(8)}, {"data": [1, 0, 0, 0, 255, 255, 255, 255]}, {"data": b"1.5.0"}],
        "metadata": [{"name": "min_runtime_version", "buffer": 3}],
    }


def read(model: Values) -> Model:
    return read_model(write_model(model), "a.tflite")


def read_tensor(**values: Any) -> Tensor:
    """A constant tensor read from a model that has nothing else."""
    data = values.pop("data")
    subgraph: Values = {"tensors": [{"buffer": 1} | values]}
    return read({"version": 3, "subgraphs": [subgraph], "buffers": [{}, {"data": data}]}).subgraphs[0].tensors[0]


def test_small_model() -> None:
    model = read(small_model())
    (graph,) = model.subgraphs
    x, w, b, y = graph.tensors
    (operator,) = graph.operators
    assert (model.version, model.description, graph.name) == (3, "by hand", "main")
    assert [(m.name, bytes(m.data)) for m in model.metadata] == [("min_runtime_version", b"1.5.0")]
    assert (graph.inputs, graph.outputs) == ((0,), (3,))
    assert (x.name, x.shape, x.shape_signature, x.type, x.data) == ("x", (1, 4), (-1, 4), "INT8", None)
    assert w.quantization and w.quantization.scale.tolist() == [0.5, 0.25] and w.quantization.axis == 0
    assert b.quantization and b.quantization.axis == 0
    assert y.shape_signature == (1, 2) and y.quantization and y.quantization.zero_point.tolist() == [-128]
    assert x.quantization and x.quantization.zero_point.tolist() == [0]
    assert w.to_numpy().tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]] and b.to_numpy().tolist() == [1, -1]
    assert (operator.kind, operator.version, operator.inputs, operator.outputs) == (
        "FULLY_CONNECTED",
        4,
        (0, 1, 2),
        (3,),
    )
    assert operator.options == {
        "fused_activation_function": "RELU",
        "weights_format": "DEFAULT",
        "keep_num_dims": False,
        "asymmetric_quantize_inputs": False,
        "quantized_bias_type": "FLOAT32",
    }


def test_constants_are_views() -> None:
    file = write_model(small_model())
    array = read_model(file).subgraphs[0].tensors[1].to_numpy()
    assert np.shares_memory(array, np.frombuffer(file, np.uint8)) and not array.flags.writeable


def test_writable_and_multidimensional_views() -> None:
    file = write_model(small_model())
    view = memoryview(bytearray(file))
    assert not read_model(view).subgraphs[0].tensors[1].to_numpy().flags.writeable
    with pytest.raises(InvalidArgument, match="pass bytes"):
        read_model(view[::2])


def test_options_default() -> None:
    model = small_model()
    model["operator_codes"][0] = {"builtin_code": schema.BUILTIN_OPERATORS.index("ADD")}
    del model["subgraphs"][0]["operators"][0]["builtin_options"]
    model["subgraphs"][0]["operators"][0]["builtin_options_type"] = 0
    (operator,) = read(model).subgraphs[0].operators
    assert operator.options == {"fused_activation_function": "NONE", "pot_scale_int16": True}


def test_operator_kinds() -> None:
    model = small_model()
    custom = {"deprecated_builtin_code": 32, "custom_code": "Decode", "version": 2}
    new = {"deprecated_builtin_code": 127, "builtin_code": 210}
    model["operator_codes"] = [custom, new, {"deprecated_builtin_code": 127, "builtin_code": 150}]
    first: Values = {"opcode_index": 0, "inputs": [0, -1], "outputs": [3], "custom_options": b"\x01\x02"}
    model["subgraphs"][0]["operators"] = [
        first | {"mutating_variable_inputs": [True, False], "intermediates": [-1, 3]},
        {"opcode_index": 1},
        {"opcode_index": 2},
    ]
    operators = read(model).subgraphs[0].operators
    assert [o.kind for o in operators] == ["CUSTOM:Decode", "BUILTIN:210", "GELU"]
    assert operators[0].custom_options == b"\x01\x02" and operators[0].inputs == (0, -1)
    assert operators[0].mutating_variable_inputs == (True, False) and operators[0].intermediates == (-1, 3)
    assert operators[1].options == {} and operators[2].options == {"approximate": False}


def test_data_behind_the_flatbuffer() -> None:
    model = small_model()
    model["buffers"][1] = {"offset": 1 << 20, "size": 8}
    size = len(write_model(model))
    model["buffers"][1]["offset"] = size
    file = write_model(model) + bytes(range(8))
    assert read_model(file).subgraphs[0].tensors[1].to_numpy().ravel().tolist() == list(range(8))
    with pytest.raises(Malformed, match=f"bytes {size} to {size + 8} are outside the file"):
        read_model(file[:-1])


def test_to_numpy() -> None:
    assert read_tensor(shape=[2], type=6, data=[0, 1]).to_numpy().tolist() == [False, True]
    assert read_tensor(shape=[0], type=2, data=[]).to_numpy().shape == (0,)
    assert read_tensor(shape=[], type=0, data=struct.pack("<f", 1.5)).to_numpy() == np.float32(1.5)
    with pytest.raises(Malformed, match="tensor 0 '': a BOOL is neither 0 nor 1"):
        read_tensor(shape=[2], type=6, data=[0, 2]).to_numpy()
    with pytest.raises(Unsupported, match="numpy has no type for INT4"):
        read_tensor(shape=[3], type=17, data=[0, 1]).to_numpy()
    with pytest.raises(Unsupported, match="numpy has no type for TYPE:99"):
        read_tensor(shape=[3], type=99, data=[0, 1]).to_numpy()
    with pytest.raises(Unsupported, match="sparse"):
        read_tensor(shape=[100], type=9, data=[0, 1], sparsity={}).to_numpy()
    with pytest.raises(InvalidArgument, match="tensor 0 'x': is not a constant"):
        read(small_model()).subgraphs[0].tensors[0].to_numpy()


def test_names_are_kept_and_shown_safely() -> None:
    model = small_model()
    for tensor in model["subgraphs"][0]["tensors"]:
        tensor["name"] = b"\x1b[31m\xff" + b"a" * 500
    tensors = read(model).subgraphs[0].tensors
    assert {t.name for t in tensors} == {"\x1b[31m\\xff" + "a" * 500}
    assert str(tensors[0]).isprintable() and len(str(tensors[0])) < 200


def graph(model: Values) -> Values:
    return model["subgraphs"][0]


def tensor(model: Values, index: int) -> Values:
    return model["subgraphs"][0]["tensors"][index]


def set_zero_point(model: Values, value: int) -> None:
    tensor(model, 3)["quantization"]["zero_point"] = [value]


Damage = Callable[[Values], Any]
BAD_MODELS: dict[str, Damage] = {
    "the schema version is 2": lambda m: m.update(version=2),
    "the model has no subgraph": lambda m: m.update(subgraphs=[]),
    "buffer is 9, but there are 4": lambda m: tensor(m, 1).update(buffer=9),
    "opcode_index is 1, but there are 1": lambda m: graph(m)["operators"][0].update(opcode_index=1),
    "metadata.0..buffer is 7": lambda m: m["metadata"][0].update(buffer=7),
    "the builtin operator number is -1": lambda m: m.update(
        operator_codes=[{"builtin_code": -1, "deprecated_builtin_code": -2}]
    ),
    r"tensor 0 'x': the shape is \(1, -4\)": lambda m: tensor(m, 0).update(shape=[1, -4]),
    r"the shape is \(1, 1, 1, 1, 1, 1, 1, 1, …\)": lambda m: tensor(m, 0).update(shape=[1] * 9),
    r"the shape is \(1048576, 1048577\)": lambda m: tensor(m, 0).update(shape=[1 << 20, (1 << 20) + 1]),
    r"and its signature \(-1,?\)": lambda m: tensor(m, 0).update(shape_signature=[-1]),
    r"8 bytes of data for shape \(2, 3\) of INT8, which takes 6": lambda m: tensor(m, 1).update(shape=[2, 3]),
    "which takes 4": lambda m: tensor(m, 1).update(type=17),
    "a scale is negative or not finite": lambda m: tensor(m, 0).update(quantization={"scale": [float("nan")]}),
    "tensor 0.*: a scale is negative": lambda m: tensor(m, 0).update(quantization={"scale": [-1.0]}),
    "tensor 0.* a scale is negative or": lambda m: tensor(m, 0).update(quantization={"scale": [float("inf")]}),
    "1 scales, but 2 zero points": lambda m: tensor(m, 0).update(quantization={"scale": [1.0], "zero_point": [0, 0]}),
    "a zero point is outside -128 to 127": lambda m: set_zero_point(m, 128),
    "2 scales along dimension 1": lambda m: tensor(m, 1)["quantization"].update(quantized_dimension=1),
    "2 scales along dimension -1": lambda m: tensor(m, 1)["quantization"].update(quantized_dimension=-1),
    "details_type: 9 is not the number of one of NONE": lambda m: tensor(m, 1)["quantization"].update(details_type=9),
    "inputs name tensor 4, but there are 4": lambda m: graph(m).update(inputs=[4]),
    "operator 0 FULLY_CONNECTED: inputs name tensor -2": lambda m: graph(m)["operators"][0].update(inputs=[-2]),
    "outputs name tensor -1": lambda m: graph(m)["operators"][0].update(outputs=[-1]),
    "tensor 0 'x' is an input twice": lambda m: graph(m).update(inputs=[0, 0]),
    "uses tensor 0 'x' before anything produces it": lambda m: graph(m).update(inputs=[]),
    "writes tensor 0 'x', which is already written": lambda m: graph(m)["operators"][0].update(outputs=[0]),
    "writes tensor 1 'w', which is a constant": lambda m: graph(m)["operators"][0].update(outputs=[1]),
    "tensor 3 'y' is an output, but nothing produces it": lambda m: graph(m).update(operators=[]),
    "has options number 1, not 8": lambda m: graph(m)["operators"][0].update(builtin_options_type=1),
    "fused_activation_function: 6 is not the number of one of NONE, RELU": lambda m: graph(m)["operators"][0].update(
        builtin_options=(schema.OPTIONS["FULLY_CONNECTED"].fields, {"fused_activation_function": 6})
    ),
    "bytes 4096 to 4104 are outside the file": lambda m: m["buffers"].append({"offset": 4096, "size": 8}),
    "outside the file": lambda m: graph(m)["operators"][0].update(
        large_custom_options_offset=1 << 63, large_custom_options_size=1
    ),
}


@pytest.mark.parametrize("message", BAD_MODELS)
def test_bad_model(message: str) -> None:
    model = small_model()
    BAD_MODELS[message](model)
    with pytest.raises(Malformed, match=message) as caught:
        read(model)
    assert caught.value.where.startswith("a.tflite")


def test_option_not_finite() -> None:
    model = small_model()
    model["operator_codes"][0] = {"builtin_code": schema.BUILTIN_OPERATORS.index("SOFTMAX")}
    options = (schema.OPTIONS["SOFTMAX"].fields, {"beta": float("inf")})
    graph(model)["operators"][0] |= {"builtin_options_type": 9, "builtin_options": options}
    with pytest.raises(Malformed, match="beta: inf is not a finite number"):
        read(model)


def test_external_weights() -> None:
    model = small_model()
    tensor(model, 1)["external_buffer"] = 1
    with pytest.raises(Unsupported, match="tensor 1 'w': the data is in another file; store the weights"):
        read(model)


@pytest.mark.parametrize("file", [b"", b"\0" * 7, b"\0" * 8, b"\x08\0\0\0TFL3", b"\x08\0\0\0ONNX\0\0\0\0"])
def test_not_a_model(file: bytes) -> None:
    with pytest.raises(Malformed, match="^<bytes>: byte [0-9]+: "):
        read_model(file)


def test_every_truncation() -> None:
    file = write_model(small_model())
    for size in range(len(file) - 1):
        try:
            read_model(file[:size])
        except Malformed:
            continue
        assert not any(file[size:-1]), "only padding may be missing"


def test_shared_data_is_bounded_work() -> None:
    """20 000 operators that all point at one vector of 20 000 inputs."""
    refuse_soon([{"inputs": [0] * 20_000}] * 20_000)


def test_shared_custom_options_are_bounded_work() -> None:
    """20 000 operators that all copy the same 80 KB."""
    refuse_soon([{"large_custom_options_offset": 8, "large_custom_options_size": 80_000}] * 20_000)


def refuse_soon(operators: list[Values]) -> None:
    model = small_model()
    graph(model)["operators"] = operators
    file = write_model(model)
    assert len(file) < 200_000
    start = time.process_time()
    with pytest.raises(Malformed, match="refers to the same bytes too many times"):
        read_model(file)
    assert time.process_time() - start < 1


def test_depth_is_bounded() -> None:
    link: schema.Fields = {"next": schema.Field(0, "table")}
    nested = bytearray(struct.pack("<I4sHHHH", 16, b"DEEP", 6, 8, 4, 0))
    for _ in range(40):
        nested += struct.pack("<iI", len(nested) - 8, 4)
    deep = Reader(memoryview(bytes(nested)), "deep").root(link, b"DEEP", "root")
    with pytest.raises(Malformed, match="nested more than 16 deep"):
        while deeper := deep.table("next", link):
            deep = deeper


def test_errors() -> None:
    assert str(RelayError("a", "b")) == "a: b" and str(Unsupported("a", "b", "c")) == "a: b; c"
    assert issubclass(InvalidArgument, ValueError)


@needs_models
@pytest.mark.parametrize("path", sorted(MODELS.glob("*.tflite")), ids=lambda path: path.stem)
def test_real_models(path: Path) -> None:
    file = path.read_bytes()
    start = time.process_time()
    model = read_model(file, path.name)
    assert time.process_time() - start < 0.5, "an order of magnitude more than it takes"
    assert all(o.kind in schema.BUILTIN_OPERATORS for o in model.subgraphs[0].operators)
    for constant in model.subgraphs[0].tensors:
        if constant.data is not None:
            assert constant.to_numpy().nbytes == len(constant.data)


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


class RecordingBuilder:
    """Stands for the builder that LiteRT's generated functions write to: keeps what they say about a field."""

    said: tuple[str, int, Any]

    def __getattr__(self, method: str) -> Callable[[int, Any, Any], None]:
        def record(slot: int, value: Any, default: Any) -> None:
            self.said = (method.removeprefix("Prepend").removesuffix("Slot").lower(), slot, default)

        return record


VECTORS = ("Int32Vector", "Uint16Vector", "Uint8Vector")
TABLES = {
    "Model": schema.MODEL,
    "OperatorCode": schema.OPERATOR_CODE,
    "SubGraph": schema.SUBGRAPH,
    "Tensor": schema.TENSOR,
    "QuantizationParameters": schema.QUANTIZATION,
    "SparsityParameters": sparsity.SPARSITY,
    "DimensionMetadata": sparsity.DIMENSION_METADATA,
    **dict(zip(VECTORS, (fields for fields, _ in sparsity.INDEX_VECTORS.values()), strict=True)),
    "Operator": schema.OPERATOR,
    "Buffer": schema.BUFFER,
    "Metadata": schema.METADATA,
} | {row.name: row.fields for row in schema.OPTIONS.values()}


@pytest.mark.parametrize("table", TABLES)
def test_fields_agree_with_litert(table: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT, whose schema this compares with, is not installed")
    litert = importlib.import_module("ai_edge_litert.schema_py_generated")
    for name, field in TABLES[table].items():
        builder = RecordingBuilder()
        getattr(litert, f"{table}Add{camel(name)}")(builder, 0)
        kind = field.kind if field.kind in FORMATS else "uoffsettrelative"
        assert builder.said == (kind, field.slot, field.default), f"{table}.{name}"
        if field.kind == "vector":
            start = getattr(litert, f"{table}Start{camel(name)}Vector")
            assert vector_item_size(start) == (4 if field.of == "table" else struct.calcsize(FORMATS[field.of]))


def vector_item_size(start: Callable[[Any, int], Any]) -> int:
    class Builder:
        def StartVector(self, item_size: int, count: int, alignment: int) -> int:
            return item_size

    return start(Builder(), 1)


ENUMS: dict[str, tuple[str, ...] | dict[int, str]] = {
    "BuiltinOperator": schema.BUILTIN_OPERATORS,
    "TensorType": schema.TENSOR_TYPE_NAMES,
    "ActivationFunctionType": schema.ACTIVATIONS,
    "Padding": schema.PADDINGS,
    "MirrorPadMode": schema.MIRROR_PAD_MODES,
    "FullyConnectedOptionsWeightsFormat": schema.WEIGHTS_FORMATS,
    "LSTMKernelType": schema.LSTM_KERNELS,
    "QuantizationDetails": schema.QUANTIZATION_DETAILS,
    "BuiltinOptions": {row.member: row.name for row in schema.OPTIONS.values()},
}


@pytest.mark.parametrize("enum", ENUMS)
def test_enums_agree_with_litert(enum: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT, whose schema this compares with, is not installed")
    litert = importlib.import_module("ai_edge_litert.schema_py_generated")
    generated: type = getattr(litert, enum)
    theirs = vars(generated)
    ours = ENUMS[enum]
    numbered = ours if isinstance(ours, dict) else dict(enumerate(ours))
    for number, name in numbered.items():
        assert theirs[name] == number
    if not isinstance(ours, dict):
        assert len([name for name in theirs if not name.startswith("_")]) == len(ours)


def test_option_tables() -> None:
    """The operators that real quantised models use have their options, and every row is an operator's."""
    assert set(schema.OPTIONS) <= set(schema.BUILTIN_OPERATORS)
    assert len(schema.BUILTIN_OPERATORS) == 210
    used = """CONV_2D DEPTHWISE_CONV_2D ADD SUB MUL DIV FULLY_CONNECTED RESHAPE SOFTMAX AVERAGE_POOL_2D MAX_POOL_2D SVDF
        RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR CONCATENATION CAST ARG_MAX ARG_MIN UNIDIRECTIONAL_SEQUENCE_LSTM GATHER
        PACK UNPACK MEAN SUM REDUCE_MAX REDUCE_MIN TRANSPOSE_CONV SPLIT STRIDED_SLICE LEAKY_RELU BATCH_MATMUL SQUEEZE
        L2_NORMALIZATION GELU"""
    assert set(used.split()) <= set(schema.OPTIONS)
