"""Files that commit 269d7d2 wrote, in tests/versions, are loaded or refused as docs/support.md says ("Versions").

`of_269d7d2.relay` is the digits for `x86_64-unknown-linux-gnu`, `of_269d7d2.mlir` what the importer made of them."""

from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.errors import Malformed
from relay.runtime import Executable, container, load
from tests.unit.pass_modules import DATA, ROOT

OLD = ROOT / "tests" / "versions"
X86 = sys.platform == "linux" and platform.machine() == "x86_64"


def check(executable: Executable, images: int) -> None:
    """The codes are LiteRT's."""
    data = np.load(DATA)
    for threads in (1, 2):
        executable.num_threads = threads
        for image, wanted in zip(data["int8_images"][:images], data["int8_out"], strict=False):
            np.testing.assert_array_equal(executable.run(image[None]), wanted[None])


@pytest.mark.skipif(not X86, reason="the file is for Linux on x86-64")
def test_a_saved_executable_is_loaded() -> None:
    check(load(OLD / "of_269d7d2.relay"), 100)


@pytest.mark.skipif(not X86, reason="the file is for Linux on x86-64")
def test_what_an_old_file_lacks_is_done_without(tmp_path: Path) -> None:
    old = load(OLD / "of_269d7d2.relay")
    assert "not checked: the file claims no formulas" in str(old.certify())
    old.save(tmp_path / "again.relay")
    check(load(tmp_path / "again.relay"), 10)


@pytest.mark.parametrize("version", [0, 1, container.VERSION + 1])
def test_another_format_is_refused_by_both_numbers(version: int) -> None:
    data = bytearray((OLD / "of_269d7d2.relay").read_bytes())
    assert data[8:12] == container.VERSION.to_bytes(4, "little")
    data[8:12] = version.to_bytes(4, "little")
    wanted = f"is of format version {version}; this is {container.VERSION}; build the model again"
    with pytest.raises(Malformed, match=wanted):
        load(bytes(data))


def test_module_text_is_read() -> None:
    text = (OLD / "of_269d7d2.mlir").read_text()
    check(relay.build(relay.IRModule.parse(text)), 100)


def test_what_does_not_exist_any_more_is_an_error_with_its_place() -> None:
    text = (OLD / "of_269d7d2.mlir").read_text()
    line = 1 + text[: text.index("qnn.conv2d")].count("\n")
    with pytest.raises(Malformed, match=rf"^old.mlir:{line}:\d+: "):
        relay.IRModule.parse(text.replace("qnn.conv2d", "qnn.conv2d_of_old", 1), name="old.mlir")


def test_the_page_says_which_format() -> None:
    page = (ROOT / "docs" / "support.md").read_text()
    (number,) = re.findall(r"The header has the number of the format, (\d+) now", page)
    assert int(number) == container.VERSION
