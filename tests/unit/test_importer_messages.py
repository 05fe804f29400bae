"""Every message of the importers has a case: those here, and those of the tests of the reader and of `from_tflite`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from relay.errors import RelayError
from relay.frontend import from_tflite
from relay.frontend.importing.formats import FORMATS
from tests.numeric import test_control_flow_against_litert as flowing
from tests.numeric import test_shapes_against_litert as sizing
from tests.numeric.litert_models import Case
from tests.unit import keras_message_cases, torch_message_cases
from tests.unit import test_batch as batching
from tests.unit import test_import_tflite as importing
from tests.unit import test_importers as sharing
from tests.unit import test_nested_subgraphs as nesting
from tests.unit import test_porting_docs as porting
from tests.unit import test_tflite_reader as reading
from tests.unit import test_wrong_arguments as arguing
from tests.unit.importer_message_calls import CALLS, RECURRENT
from tests.unit.importer_message_cases import CASES
from tests.unit.importer_message_options import PLAIN, WITH
from tests.unit.raise_sites import cases_of, recorded, sites, told

ERRORS = ("Malformed", "Unsupported", "InvalidArgument", "malformed", "unsupported", "refuse_types")
ONNX = "relay/frontend/onnx/"

READER: list[Callable[..., None]] = [
    reading.test_bad_model,
    reading.test_not_a_model,
    reading.test_every_truncation,
    reading.test_external_weights,
    reading.test_option_not_finite,
    reading.test_depth_is_bounded,
    reading.test_shared_data_is_bounded_work,
    reading.test_shared_custom_options_are_bounded_work,
    reading.test_to_numpy,
]
IMPORTER: list[Callable[..., None]] = [
    importing.test_bad_operators_are_told,
    importing.test_lstms_that_are_not_built,
    importing.test_missing_file_and_empty_bytes,
    importing.test_outputs_must_be_computed_tensors,
    importing.test_custom_operators_are_given_by_the_caller,
    importing.test_several_subgraphs_are_unsupported,
    batching.test_operators_that_mix_images_are_named,
    flowing.test_wrong_control_flow_is_told,
    sizing.test_many_numbers_from_a_shape_are_left_to_the_run,
    nesting.test_calls_are_copies_up_to_a_number,
    nesting.test_depth_is_that_of_the_longest_way,
]
ARGUMENTS = ("batch", "outputs", "numerics", "custom")
"""How the names of cases of wrong arguments start that are the importer's."""


def calls(folder: Path) -> Iterator[Callable[[], None]]:
    """The tests that count, with each of their cases."""
    yield lambda: sharing.test_text_is_imported_by_content(folder)
    yield lambda: sharing.test_text_that_is_not_mlir_is_told_where(folder)
    yield lambda: sharing.test_a_file_that_cannot_be_read_is_told_by_its_name("", "Is a directory", folder)
    yield from (lambda format=format: sharing.test_formats_are_told_by_content(format, folder) for format in FORMATS)
    for case in cases_of(sharing.test_what_is_no_model):
        yield lambda case=case: sharing.test_what_is_no_model(*case)
    for name in sharing.CASES:
        yield lambda name=name: sharing.test_is_told_by_every_importer("tflite", name, folder)
    for test in (*READER, *IMPORTER):
        for case in cases_of(test) if hasattr(test, "pytestmark") else [()]:
            yield lambda test=test, case=case: test(*case)
    yield lambda: porting.test_options_as_tvm_has_them("from_tflite")
    yield changed_bytes
    yield other_quantization
    for words, case in (CASES | PLAIN).items():
        yield lambda words=words, case=case: refused(words, case(), {})
    for words, (case, keywords) in WITH.items():
        yield lambda words=words, case=case, keywords=keywords: refused(words, case(), keywords)
    yield from (
        lambda name=name: arguing.test_is_one_clear_line(name) for name in arguing.CASES if name.startswith(ARGUMENTS)
    )
    for words, call in RECURRENT.items():
        yield lambda words=words, call=call: told_by(words, RelayError, call)
    for words, (error, call) in CALLS.items():
        yield lambda words=words, error=error, call=call: told_by(words, error, call)
    yield keras_message_cases.every
    yield torch_message_cases.every
    if find_spec("onnx") is not None:
        from tests.unit import onnx_message_cases  # here: it needs the package onnx

        yield lambda: onnx_message_cases.every(folder)


def changed_bytes() -> None:
    """A small file with any of its bytes 0 or 3: it is read, or refused."""
    file = reading.write_model(reading.small_model())
    for place in range(8, len(file)):
        for value in {0, 3} - {file[place]}:
            with suppress(RelayError):
                reading.read_model(file[:place] + bytes([value]) + file[place + 1 :])


def other_quantization() -> None:
    model = reading.small_model()
    reading.tensor(model, 1)["quantization"].update(details_type=1)
    with pytest.raises(RelayError, match="is quantised by "):
        from_tflite(reading.write_model(model))


def refused(words: str, case: Case, keywords: dict[str, Any]) -> None:
    with pytest.raises(RelayError, match=re.escape(words)):
        from_tflite(case.model(), **keywords)


def told_by(words: str, error: type[RelayError], call: Callable[[], object]) -> None:
    with pytest.raises(error, match=re.escape(words)):
        call()


def test_every_message_has_a_case(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these files")
    every = sites("relay/frontend", (), ERRORS)
    with recorded(every) as reached:
        for call in calls(tmp_path):
            call()
    missing = every - reached
    if find_spec("onnx") is None:
        missing -= {site for site in missing if site.path.startswith(ONNX)}
    assert not missing, told(missing, len(every))
