"""The digits model for a Cortex-M55 with an accelerator: compile it, run it under QEMU, compare with LiteRT's codes."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import relay
from relay.byoc import AnnotateTarget, MergeComposite, PartitionGraph, register
from relay.byoc.c import export_c

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from npu import NpuCompiler  # noqa: E402

DIGITS = HERE.parent / "digits"
ARM = ["arm-none-eabi-gcc", "-mthumb", "-mcpu=cortex-m55", "-mfloat-abi=soft"]
M55 = "thumbv8.1m.main-none-eabi -mcpu=cortex-m55"
BOARD = ["board.c", "-T", "board.ld", "-nostartfiles", "-specs=nosys.specs"]
QEMU = ["qemu-system-arm", "-M", "mps3-an547", "-nographic", "-semihosting-config", "enable=on,target=native"]
FLAGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-fno-tree-loop-distribute-patterns"]


def export(folder: Path, images: np.ndarray, kind: str) -> list[str]:
    """Write the partitioned model, as C or as object code, and the images; the files to link."""
    register(NpuCompiler)
    mod = relay.frontend.from_tflite(DIGITS / "digits_int8.tflite")
    parted = PartitionGraph()(AnnotateTarget(("npu",))(MergeComposite(("npu",))(mod)))
    if kind == "c":
        export_c(parted, folder, name="digits")
    else:
        relay.build(parted, target=kind).export(folder, name="digits")
    rows = ",\n".join(f"    {{{', '.join(map(str, image.reshape(-1)))}}}" for image in images)
    text = f"#define IMAGES {len(images)}\nstatic const int8_t images[IMAGES][DIGITS_INPUT_0_COUNT] = {{\n{rows}}};\n"
    (folder / "images.h").write_text(text)
    for file in HERE.iterdir():
        if file.suffix in (".c", ".ld"):
            shutil.copy(file, folder)
    return ["digits.c" if kind == "c" else "digits.o", "digits_regions.c", "npu.c", "main.c"]


def run(command: list[str], folder: Path) -> str:
    """What a command writes. Ends the program where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}{done.stdout}")
    return done.stdout or done.stderr


def codes(folder: Path, images: np.ndarray, host: bool, kind: str) -> tuple[np.ndarray, str]:
    """What the program reads in the images, and what it says of the accelerator."""
    folder.mkdir(parents=True, exist_ok=True)
    files = export(folder, images, kind)
    if host:
        run(["cc", *FLAGS, *files, "host.c", "-o", "digits"], folder)
        said = run(["./digits"], folder)
    else:
        run([*ARM, *FLAGS, *files, *BOARD, "-o", "digits.elf"], folder)
        said = run([*QEMU, "-kernel", "digits.elf"], folder)
    *lines, last = said.strip().splitlines()
    return np.array([line.split() for line in lines], np.int8), last


def main() -> None:
    """Compile, run, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default="build/microcontroller", type=Path)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--host", action="store_true", help="for this machine, by its C compiler")
    how.add_argument("--object", action="store_true", help="the processor's part as object code, not as C")
    given = parser.parse_args()
    data = np.load(DIGITS / "digits_test.npz")
    found, said = codes(given.folder, data["int8_images"][:20], given.host, M55 if given.object else "c")
    equal = int((found == data["int8_out"][:20]).all(1).sum())
    print(f"{equal} of {len(found)} images have the codes of LiteRT; {said}")
    sys.exit(equal != len(found))


if __name__ == "__main__":
    main()
