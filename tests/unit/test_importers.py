"""What importers say of wrong arguments and files: one table of cases, which every importer must pass, and one row for
each importer. What is said of one format only stands in its own tests."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.arith import AddfOp
from xdsl.ir import SSAValue

from relay import frontend
from relay.compile.entry import build
from relay.dialects.attributes import ints
from relay.dialects.relay import AbsOp, ReshapeOp, TransposeOp
from relay.errors import InvalidArgument, Malformed, RelayError, Unsupported
from relay.files import name_of
from relay.frontend import from_onnx, from_pytorch, from_tflite, import_model, saved_model
from relay.frontend.importing.formats import FORMATS, detect
from relay.module import IRModule
from relay.tools.relay_opt import main
from tests.numeric.litert_models import Case, joined
from tests.numeric.torch_programs import archive, invoke, tensor
from tests.unit.importer_message_cases import f32
from tests.unit.keras_message_cases import Model

DIGITS = Path(__file__).parents[2] / "examples/digits/digits_int8.tflite"


@dataclass(frozen=True)
class Importer:
    """An importer, and small models of its format."""

    run: Callable[..., IRModule]
    suffix: str
    model: Callable[[], bytes]
    """Anything that is imported, of one input."""
    input: str
    """The input's name."""
    shape: str
    """Its sizes, as errors print them."""
    custom: Callable[[], bytes]
    """One custom operator, `X`, from tensor<2x3xf32> to tensor<2x3xf32>."""
    unsupported: Callable[[], bytes]
    """Two operators that cannot be imported."""
    two_batches: Callable[[], bytes]
    """Two inputs whose leading axes differ."""
    value: Callable[[Any, Any], SSAValue]
    """The value of a node's first input."""

    @property
    def name(self) -> str:
        return self.run.__name__


def _custom() -> bytes:
    return Case("CUSTOM", [f32(2, 3)], [f32(2, 3)], custom_code="X").model()


def _unsupported() -> bytes:
    return joined([Case("UNIQUE", [f32(4)], [f32(4)]), Case("HASHTABLE", [f32(4)], [f32(4)])])


def _two_batches() -> bytes:
    return Case("ADD", [f32(1, 4), f32(4)], [f32(1, 4)], "AddOptions").model()


def _value(importer: Any, node: Any) -> SSAValue:
    return importer.value(node.input(0))


def _onnx(*nodes: tuple[str, str, str, str], shapes: Mapping[str, Sequence[int]]) -> bytes:
    """Nodes of these domains and operators, from and to these names, as an ONNX model of float tensors."""
    helper = pytest.importorskip("onnx", reason="onnx builds the models").helper
    tensor = {name: helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()}
    made = [helper.make_node(kind, i.split(), [o], domain=domain) for domain, kind, i, o in nodes]
    read, given = {i for _, _, each, _ in nodes for i in each.split()}, {o for *_, o in nodes}
    ends = ([tensor[name] for name in shapes if name in some] for some in (read - given, given - read))
    graph = helper.make_graph(made, "g", *ends)
    opsets = [helper.make_opsetid(domain, 17) for domain in {"", *(domain for domain, *_ in nodes)}]
    model: bytes = helper.make_model(graph, opset_imports=opsets).SerializeToString()
    return model


def _onnx_model() -> bytes:
    nodes = [("", "Abs", "x" if not i else f"a{i}", f"a{i + 1}") for i in range(300)]
    return _onnx(*nodes, shapes={"x": (1, 8), **{o: (1, 8) for *_, o in nodes}})


def _torch(*nodes: tuple[str, str, str], shapes: Mapping[str, Sequence[int]]) -> bytes:
    """Calls of these operators, from and to these names, as a `.pt2` archive of float tensors."""
    made = [invoke(kind, dict(zip(("self", "other"), map(tensor, i.split()), strict=False)), o) for kind, i, o in nodes]
    given = {o for *_, o in nodes}
    read = {i for _, each, _ in nodes for i in each.split()}
    types = {name: (shape, "float32") for name, shape in shapes.items()}
    inputs = {name: each for name, each in types.items() if name not in given}
    return archive(made, inputs, [name for name in types if name in given - read], types)


IMPORTERS = {
    "tflite": Importer(
        from_tflite,
        ".tflite",
        DIGITS.read_bytes,
        "serving_default_image:0",
        r"\[-?1, 8, 8, 1\]",
        _custom,
        _unsupported,
        _two_batches,
        _value,
    ),
    "onnx": Importer(
        from_onnx,
        ".onnx",
        _onnx_model,
        "x",
        r"\[1, 8\]",
        lambda: _onnx(("mine", "X", "x", "y"), shapes={"x": (2, 3), "y": (2, 3)}),
        lambda: _onnx(("", "X", "x", "y"), ("", "Y", "y", "z"), shapes={"x": (4,), "y": (4,), "z": (4,)}),
        lambda: _onnx(("", "Add", "x y", "z"), shapes={"x": (1, 4), "y": (4,), "z": (1, 4)}),
        lambda importer, node: node.input(0),
    ),
    "pt2": Importer(
        from_pytorch,
        ".pt2",
        lambda: _torch(
            *(("aten.abs.default", "x" if not i else f"a{i}", f"a{i + 1}") for i in range(40)),
            shapes={"x": (1, 8), **{f"a{i + 1}": (1, 8) for i in range(40)}},
        ),
        "x",
        r"\[1, 8\]",
        lambda: _torch(("mine.X.default", "x", "y"), shapes={"x": (2, 3), "y": (2, 3)}),
        lambda: _torch(
            ("aten.x.default", "x", "y"), ("aten.y.default", "y", "z"), shapes={"x": (4,), "y": (4,), "z": (4,)}
        ),
        lambda: _torch(("aten.add.Tensor", "x y", "z"), shapes={"x": (1, 4), "y": (4,), "z": (1, 4)}),
        lambda importer, node: node.value("self"),
    ),
}
"""A line for each importer."""

Do = Callable[[Importer, Path], object]


def given(model: object = None, **options: object) -> Do:
    """The importer called with this model, or one that it takes, and options that it does not take."""
    return lambda each, folder: each.run(each.model() if model is None else model, **options)


def file(content: Callable[[Importer], bytes]) -> Do:
    """The importer called with a file of this content."""

    def call(each: Importer, folder: Path) -> object:
        path = folder / f"model{each.suffix}"
        path.write_bytes(content(each))
        return each.run(path)

    return call


def custom(function: object) -> Do:
    return lambda each, folder: each.run(each.custom(), custom_ops={"X": function})


def returning(value: object) -> Do:
    def function(importer: Any, node: Any) -> object:
        return value

    return custom(function)


def built(make: Callable[[Any, SSAValue], object]) -> Do:
    """A custom operator by a function that makes this of the operator's input."""

    def call(each: Importer, folder: Path) -> object:
        def function(importer: Any, node: Any) -> object:
            return make(importer, each.value(importer, node))

        return custom(function)(each, folder)

    return call


def shaped(sizes: object) -> Do:
    return lambda each, folder: each.run(each.model(), shapes={each.input: sizes})


def options(value: Any) -> Do:
    return lambda each, folder: import_model(each.model(), value)


CASES: dict[str, tuple[Do, type[RelayError], str]] = {
    "a number": (given(3), InvalidArgument, "^{name}: cannot read 3: .*; pass bytes or a path"),
    "no path": (
        lambda each, folder: saved_model(3),
        InvalidArgument,
        "^model: 3 is no module and no file; import a model",
    ),
    "no file": (given("no/such/file"), InvalidArgument, "^{name}: cannot read 'no/such/file': .*No such file"),
    "a NUL": (given("a\0b"), InvalidArgument, "^{name}: cannot read .*: .*embedded null "),
    "a directory": (
        lambda each, folder: each.run(folder),
        InvalidArgument,
        "^{name}: cannot read .*: .*a directory",
    ),
    "no bytes": (given(b""), Malformed, "^<bytes>: "),
    "an empty file": (file(lambda each: b""), Malformed, "^model.*: "),
    "a truncated file": (file(lambda each: each.model()[:100]), RelayError, "^model.*: "),
    "another format": (file(lambda each: b"\x7fELF" * 100), RelayError, "^model.*: "),
    "unknown option": (
        options({"bach": 1}),
        InvalidArgument,
        r"^frontend\['bach'\]: is no option of the importer; it has batch, ",
    ),
    "frontend=[1]": (
        options([1]),
        InvalidArgument,
        r"^frontend: \[1\] is no mapping; write frontend={{'batch': 1}}",
    ),
    "frontend=[]": (options([]), InvalidArgument, r"^frontend: \[\] is no mapping; write frontend={{'batch': 1}}"),
    **{
        f"batch={batch!r}": (given(batch=batch), InvalidArgument, f"^{{name}}: batch is {batch!r}; it must be a number")
        for batch in (0, -1, True, "8", 2.0)
    },
    "batch of two": (
        lambda each, folder: each.run(each.two_batches(), batch=2),
        Unsupported,
        r"^<bytes>: the inputs have shapes \[1, 4\], \[4\]; batch needs inputs of one leading axis",
    ),
    "batch and shapes": (
        lambda each, folder: each.run(each.model(), batch=2, shapes={each.input: [1]}),
        InvalidArgument,
        "^{name}: both batch and shapes are given; shapes say the batch too",
    ),
    "shapes=[1]": (given(shapes=[1]), InvalidArgument, r"^shapes: \[1\] is no mapping; write shapes={{'input'"),
    "another input": (
        given(shapes={"other": (1,)}),
        InvalidArgument,
        r"^shapes\['other'\]: names no input of <bytes>; it has '{input}' {shape}",
    ),
    "no sizes": (shaped(3), InvalidArgument, r"^shapes\['{input}'\]: 3 is no list; give a"),
    "too few sizes": (
        shaped([1]),
        InvalidArgument,
        r"^shapes\['{input}'\]: \[1\] is no shape for {shape}; give as many sizes, of at least 1",
    ),
    "outputs=5": (given(outputs=5), InvalidArgument, "^{name}, outputs: 5 is no list; give a list of tensors' names"),
    "outputs={}": (given(outputs={"a": 1}), InvalidArgument, "^{name}: outputs is {{'a': 1}}; give a list of tensors'"),
    "outputs=''": (given(outputs="text"), InvalidArgument, "^{name}: outputs is 'text'; give a list of tensors'"),
    "outputs=[]": (given(outputs=[]), InvalidArgument, r"^{name}: outputs is \[\]; give a list of tensors'"),
    "outputs=iter": (given(outputs=iter(())), InvalidArgument, "^{name}: outputs is <.*; give a list of tensors'"),
    "outputs=[True]": (given(outputs=[True]), InvalidArgument, "^outputs True: is no name and no number; give a list"),
    "outputs=[b'']": (
        given(outputs=["nothing"]),
        InvalidArgument,
        "^outputs 'nothing': names no computed tensor of <bytes>; the graph's own outputs are '",
    ),
    "all that is not supported": (
        lambda each, folder: each.run(each.unsupported()),
        Unsupported,
        "^<bytes>: 2 problems:" + 2 * "\n  .*: the operator is not supported(; .*)?" + "$",
    ),
    "no hook": (
        lambda each, folder: each.run(each.custom()),
        Unsupported,
        "X.* is not supported; pass it in custom_ops",
    ),
    "custom_ops='x'": (
        given(custom_ops="x"),
        InvalidArgument,
        "^custom_ops: 'x' is no mapping; write custom_ops={{",
    ),
    "custom_ops={'':}": (
        given(custom_ops={"": len}),
        InvalidArgument,
        r"^custom_ops\[''\]: names no operator; give the code of a custom operator",
    ),
    "custom_ops={5:}": (given(custom_ops={5: len}), InvalidArgument, "^custom_ops, key: 5 is no text"),
    "custom None": (custom(None), InvalidArgument, r"^custom_ops\['X'\]: None is no function; give a function of an"),
    "custom 1": (custom(1), InvalidArgument, r"^custom_ops\['X'\]: 1 is no function"),
    "custom arity": (
        custom(lambda: None),
        InvalidArgument,
        r"^custom_ops\['X'\]: .* takes other arguments; give it two",
    ),
    "gives None": (returning(None), InvalidArgument, r"X.*, custom_ops\['X'\]: returns None, which is no list"),
    "gives [1]": (returning([1]), InvalidArgument, r"custom_ops\['X'\]: returns 1, which is no value; return a"),
    "gives too few": (
        returning([]),
        InvalidArgument,
        r"custom_ops\['X'\]: returns 0 values, and the operator has 1 outputs; return a list",
    ),
    "gives a value": (
        built(lambda i, x: x),
        InvalidArgument,
        r"custom_ops\['X'\]: returns <Block.*, which is no list",
    ),
    "gives another type": (
        built(lambda i, x: [i.emit(ReshapeOp, [x], {"newshape": ints([3, 2])}).result]),
        InvalidArgument,
        r"X.*, custom_ops\['X'\]: gives tensor<3x2xf32> for .*, which is tensor<2x3xf32> in the file; cast or reshape",
    ),
    "gives what is not there": (
        built(lambda i, x: [AbsOp.make([x]).result]),
        InvalidArgument,
        r"custom_ops\['X'\]: returns a result of relay.abs, which is not in the module; make ops by importer.emit",
    ),
    "emits another dialect's op": (
        built(lambda i, x: [i.emit(AddfOp, [x])]),
        InvalidArgument,
        r"custom_ops\['X'\]: importer.emit: arith.addf is no op of relay or qnn; give a class of",
    ),
    "emits without a property": (
        built(lambda i, x: [i.emit(TransposeOp, [x]).result]),
        InvalidArgument,
        r"custom_ops\['X'\]: relay.transpose: its property 'axes' is not given; name it in `properties`",
    ),
    "emits what does not fit": (
        built(lambda i, x: [i.emit(ReshapeOp, [x], {"newshape": ints([7])}).result]),
        Malformed,
        "^<bytes>: .*X.*: relay.reshape: ",
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("importer", IMPORTERS)
def test_is_told_by_every_importer(importer: str, name: str, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds the models")
    each, (call, error, said) = IMPORTERS[importer], CASES[name]
    with pytest.raises(
        error, match=said.format(name=each.name, input=re.escape(each.input), shape=each.shape)
    ) as raised:
        call(each, tmp_path)
    assert type(raised.value) is error or error is RelayError
    assert "\n" not in str(raised.value) or "problems:" in said


def zipped(*names: str) -> bytes:
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    return data.getvalue()


TEXT = "func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> { func.return %x : tensor<1xf32> }"
FORMS: dict[str, tuple[bytes, str]] = {
    "tflite": (b"\0\0\0\0TFL3", ""),
    "mlir": (TEXT.encode(), ""),
    "onnx": (b"\x08\x0a\x12\x07pytorch", ""),
    "pt2": (zipped("m/archive_format", "m/models/m.json"), ""),
    "keras": (zipped("config.json", "model.weights.h5"), ""),
    "stablehlo": (b"ML\xefR\x0d\x0bStableHLO_v1.0.0\0", "is a StableHLO artifact and not a format known here"),
}


@pytest.mark.parametrize("format", FORMATS)
def test_formats_are_told_by_content(format: str, tmp_path: Path) -> None:
    """Of bytes and of files, whatever their name; what cannot be imported says so."""
    data, said = FORMS[format]
    path = tmp_path / "model.bin"
    path.write_bytes(data)
    assert detect(data, "x") == detect(path, "x") == format
    assert bool(said) == bool(FORMATS[format].hint)
    for model in (data, str(path)) if said else ():
        with pytest.raises(Unsupported, match=f"^({path}|<bytes>): {said}"):
            build(model)


REFUSED: dict[str, tuple[Callable[[Importer], bytes], dict[str, Any], list[str]]] = {
    "truncated": (lambda each: each.model()[:5000], {}, []),
    "unsupported": (lambda each: each.unsupported(), {}, []),
    "custom": (lambda each: each.custom(), {}, []),
    "batch": (lambda each: each.two_batches(), {"batch": 2}, ["--batch", "2"]),
    "no batch": (lambda each: each.model(), {"batch": 0}, ["--batch", "0"]),
    "shape": (lambda each: each.model(), {"shapes": {"other": [1]}}, ["--shape", "other=1"]),
    "numerics": (lambda each: each.model(), {"numerics": "x"}, ["--numerics", "x"]),
    "outputs": (lambda each: each.model(), {"outputs": ["nothing"]}, ["--outputs", "nothing"]),
}
"""Models and options that are refused: as Python and as the command line spell them."""


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("importer", IMPORTERS)
def test_every_front_door_says_the_same(
    importer: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The importer, `import_model`, `relay.build`, and `relay-opt` on one line."""
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds the models")
    each, (content, keywords, flags) = IMPORTERS[importer], REFUSED[name]
    path = tmp_path / f"model{each.suffix}"
    path.write_bytes(content(each))
    said: list[str] = []
    for call in (
        lambda: each.run(path, **keywords),
        lambda: import_model(path, keywords),
        lambda: build(path, frontend=keywords),
    ):
        with pytest.raises(RelayError) as raised:
            call()
        said.append(" ".join(str(raised.value).split()))
    assert main([str(path), *flags]) == 1
    assert {*said, " ".join(capsys.readouterr().err.split())} == {said[0]}


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (zipped("other"), Unsupported, "is a zip archive, which is not a format known here; unpack it"),
        (b"PK\x03\x04damaged", Unsupported, "is a zip archive, which is not a format known here; unpack it"),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            Unsupported,
            "is a pointer of Git LFS and not the file",
        ),
        (
            b"\0" * 20,
            Unsupported,
            "is binary and not a format known here; the formats known are MLIR text, TFLite",
        ),
        (b"a" * 5000 + b"\0", Unsupported, "is binary and not a format known here"),
        (b"a" * 5000 + b"\xff", Malformed, "byte 5000 is not UTF-8; MLIR text is UTF-8"),
        (TEXT.encode(), Malformed, "is text and no model; IRModule.parse reads MLIR text"),
        (b"", Malformed, "is empty; IRModule.parse reads MLIR text"),
    ],
)
def test_what_is_no_model(data: bytes, error: type[RelayError], said: str) -> None:
    with pytest.raises(error, match=f"^<bytes>: {said}"):
        build(data)


def test_text_is_imported_by_content(tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_text(TEXT)
    assert import_model(path, {})["main"].sym_name.data == "main"
    with pytest.raises(InvalidArgument, match="^frontend: options are for model files; MLIR text is imported already"):
        import_model(path, {"batch": 2})


def test_text_that_is_not_mlir_is_told_where(tmp_path: Path):
    """And that it may be the wrong file, unless it is named as MLIR is; options are not what is wrong with it."""
    for text in ("# hello", "hello world", ""):
        for name, hint in (("x.txt", "; is this the right file\\? the formats known are MLIR"), ("x.mlir", "$")):
            (tmp_path / name).write_text(text)
            with pytest.raises(Malformed, match=rf"{name}:1:[17]: [^;]*{hint}") as error:
                import_model(tmp_path / name, {"batch": 1})
            assert "{first_char}" not in str(error.value)


@pytest.mark.parametrize(
    "name, said",
    {"missing.tflite": "No such file or directory", "": "Is a directory", "a\0b": "embedded null"}.items(),
)
def test_a_file_that_cannot_be_read_is_told_by_its_name(name: str, said: str, tmp_path: Path):
    """Not by that of an importer that nobody called."""
    for call in (lambda: import_model(f"{tmp_path}/{name}", {}), lambda: build(f"{tmp_path}/{name}")):
        with pytest.raises(InvalidArgument) as error:
            call()
        shown = f"{tmp_path}/{name}".replace("\0", r"\x00")
        told = f"{re.escape(shown)}: cannot be read: [^;]*{said}[^;]*; give the path or the bytes of a model$"
        assert re.match(told, str(error.value))


def test_the_importers_are_listed():
    assert {"from_tflite", "import_model", "supported_operators"} <= {*dir(frontend)}


def test_a_model_in_memory_is_saved_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that `build` names it in errors, as its importer does, instead of `<bytes>`."""

    def save(self: object, path: Path) -> None:
        path.write_bytes(b"a model")

    live = Model()
    monkeypatch.setattr(Model, "save", save)
    monkeypatch.setattr(live, "built", True)
    assert saved_model(live) == b"a model"
    assert name_of(saved_model(live)) == "live"
