import subprocess
from pathlib import Path

import numpy as np
import pytest
from relay_vega.loader import SOURCE

import relay
from relay.byoc import differences
from relay.byoc.c import export_c
from relay.errors import RelayError

DIGITS = Path(__file__).parents[2] / "digits"
IMAGES = np.load(DIGITS / "digits_test.npz")["int8_images"][:5]
MAIN = """#include "digits.h"
#include <stdio.h>
static union { uint8_t bytes[DIGITS_ARENA_BYTES + 64]; int64_t alignment; } arena;
int main(void)
{
    static int8_t image[DIGITS_INPUT_0_COUNT], codes[DIGITS_OUTPUT_0_COUNT];
    uint8_t *const start = arena.bytes + (64 - (uintptr_t)arena.bytes % 64);
    if (digits_init() != 0)
        return 1;
    while (fread(image, sizeof image, 1, stdin) == 1) {
        if (digits_run_in(start, image, codes) != 0)
            return 2;
        fwrite(codes, sizeof codes, 1, stdout);
    }
    digits_destroy();
    return 0;
}
"""


@pytest.fixture(scope="module")
def model() -> relay.IRModule:
    return relay.frontend.from_tflite(DIGITS / "digits_int8.tflite")


def parted(model: relay.IRModule, **options: object) -> relay.IRModule:
    return relay.build_external_compiler(model, {"vega": options})


@pytest.fixture(scope="module")
def wanted(model: relay.IRModule) -> np.ndarray:
    executable = relay.build(model)
    return np.array([executable.run(image[None]) for image in IMAGES])


def test_equal_integers_and_what_is_refused(model: relay.IRModule, wanted: np.ndarray, tmp_path: Path) -> None:
    module = parted(model)
    report = module.partition_report()
    assert len(report.of("vega")) == 6  # ops: two convolutions, their biases and requantizations
    assert "vega computes single pixels" in str(report)
    executable = relay.build(module)
    executable.save(tmp_path / "digits.relay")
    for each in (executable, relay.runtime.load(tmp_path / "digits.relay")):
        assert (np.array([each.run(image[None]) for image in IMAGES]) == wanted).all()
    rows = differences(module, [IMAGES[:1]])
    assert len(rows) == 2 and all(row.holds for row in rows)


def test_the_scratchpad_is_not_exceeded(model: relay.IRModule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay_vega.compiler.SCRATCHPAD", 300)
    report = parted(model).partition_report()
    assert len(report.of("vega")) == 3
    assert "512 weights do not fit vega's scratchpad of 300 bytes" in str(report)


def test_a_device_that_fails_is_named(model: relay.IRModule) -> None:
    executable = relay.build(parted(model, broken=True))
    with pytest.raises(RelayError, match="compiled by 'vega': failed with status 3: vega is too hot"):
        executable.run(IMAGES[:1])


def test_exported_c(model: relay.IRModule, wanted: np.ndarray, tmp_path: Path) -> None:
    export_c(parted(model), tmp_path, name="digits")
    (tmp_path / "main.c").write_text(MAIN)
    files = ["main.c", "digits.c", "digits_regions.c", str(SOURCE), "-lm"]
    subprocess.run(["cc", "-std=c99", "-O1", "-Wall", "-Werror", "-o", "digits", *files], cwd=tmp_path, check=True)
    done = subprocess.run(["./digits"], cwd=tmp_path, input=IMAGES.tobytes(), capture_output=True, check=True)
    assert (np.frombuffer(done.stdout, np.int8) == wanted.reshape(-1)).all()
