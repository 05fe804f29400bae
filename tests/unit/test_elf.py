"""Objects linked by us: calls between them and out of them, constants, data, zeros; what cannot be linked."""

from __future__ import annotations

import ctypes
import re
import shutil
import struct
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from relay.errors import Malformed, RelayError, Unsupported
from relay.lowering.codegen import compile_text
from relay.lowering.elf.object_file import read_object
from relay.lowering.elf.shared_object import ANDROID, link
from relay.target import CpuTarget, host

FIRST = """
@table = internal constant [4 x ptr] [ptr @one, ptr @two, ptr @other, ptr @expf]
@numbers = internal constant [2 x double] [double 0x4008000000000000, double 0x4010000000000000], align 64
@counter = internal global i64 40
@zeros = internal global [1000 x i64] zeroinitializer, align 64
@shared = global i64 7
declare float @expf(float)
declare void @other(ptr)
declare void @relay_second(ptr)
define internal void @one(ptr %p) noinline {
  %v = load i64, ptr @counter
  %n = add i64 %v, 1
  store i64 %n, ptr @counter
  store i64 %n, ptr %p
  ret void
}
define internal void @two(ptr %p) noinline {
  %i = load i64, ptr %p
  %a = getelementptr [1000 x i64], ptr @zeros, i64 0, i64 %i
  %o = load i64, ptr %a
  store i64 %i, ptr %a
  store i64 %o, ptr %p
  ret void
}
define void @relay_call(ptr %t) {
  %which = load i64, ptr %t
  %slot = getelementptr [4 x ptr], ptr @table, i64 0, i64 %which
  %f = load ptr, ptr %slot
  %p = getelementptr i64, ptr %t, i64 1
  call void %f(ptr %p)
  ret void
}
define void @relay_exp(ptr %t) {
  %v = load float, ptr %t
  %e = call float @expf(float %v)
  store float %e, ptr %t
  ret void
}
define void @relay_number(ptr %t) {
  %i = load i64, ptr %t
  %a = getelementptr [2 x double], ptr @numbers, i64 0, i64 %i
  %d = load double, ptr %a
  store double %d, ptr %t
  ret void
}
define void @relay_third(ptr %t) {
  call void @relay_second(ptr %t)
  ret void
}
"""
SECOND = """
@shared = external global i64
define void @other(ptr %p) {
  %v = load i64, ptr @shared
  store i64 %v, ptr %p
  ret void
}
define void @relay_second(ptr %p) {
  %v = load i64, ptr %p
  %m = mul i64 %v, %v
  store i64 %m, ptr %p
  ret void
}
define void @hidden(ptr %p) { ret void }
"""
CHECK = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(void) {
  void *lib = dlopen("./code.so", RTLD_NOW);
  if (!lib) { puts(dlerror()); return 1; }
  void (*call)(void *) = (void (*)(void *))dlsym(lib, "relay_call");
  long one[2] = {0, 0}, two[2] = {1, 900}, three[2] = {2, 0}, four[1] = {9}, five[1] = {1};
  float e = 1.0f;
  double d;
  call(one), call(one), call(two), call(three);
  ((void (*)(void *))dlsym(lib, "relay_exp"))(&e);
  ((void (*)(void *))dlsym(lib, "relay_third"))(four);
  ((void (*)(void *))dlsym(lib, "relay_number"))(five);
  memcpy(&d, five, 8);
  printf("%ld %ld %ld %.4f %ld %g %d\n", one[1], two[1], three[1], e, four[0], d, dlsym(lib, "hidden") != 0);
  return 0;
}
"""


def objects(target: CpuTarget) -> list[bytes]:
    return [compile_text(text, target, 1).code for text in (FIRST, SECOND)]


def run(library: ctypes.CDLL, name: str, data: bytes) -> bytes:
    memory = ctypes.create_string_buffer(data, len(data))
    library[name](memory)
    return memory.raw


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("elf") / "code.so"
    path.write_bytes(link(objects(host())))
    return ctypes.CDLL(str(path))


def test_calls_data_and_zeros(library: ctypes.CDLL):
    def call(which: int, value: int) -> int:
        return struct.unpack("<qq", run(library, "relay_call", struct.pack("<qq", which, value)))[1]

    assert [call(0, 0), call(0, 0)] == [41, 42]
    assert [call(1, 900), call(1, 900), call(1, 3)] == [0, 900, 0]
    assert call(2, 0) == 7


def test_a_function_of_the_system(library: ctypes.CDLL):
    (value,) = struct.unpack("<f", run(library, "relay_exp", struct.pack("<f", 1.0)))
    assert value == pytest.approx(2.7182817)


COPY = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @relay_copy(ptr %p) {
  %q = getelementptr i8, ptr %p, i64 4096
  call void @llvm.memcpy.p0.p0.i64(ptr %q, ptr %p, i64 4096, i1 false)
  ret void
}
"""


def test_the_newest_copy_of_memory(tmp_path: Path):
    """Without versions of symbols, `memcpy` would be the one that old programs get."""
    path, block = tmp_path / "copy.so", bytes(range(256)) * 16
    path.write_bytes(link([compile_text(COPY, host(), 1).code]))
    assert run(ctypes.CDLL(str(path)), "relay_copy", block + bytes(4096)) == block * 2
    assert b"\0memmove\0" in path.read_bytes() and b"\0memcpy\0" not in path.read_bytes()


def test_constants_and_calls_between_objects(library: ctypes.CDLL):
    assert struct.unpack("<d", run(library, "relay_number", struct.pack("<q", 1))) == (4.0,)
    assert struct.unpack("<q", run(library, "relay_third", struct.pack("<q", 9))) == (81,)


def test_only_what_is_exported_is_found(library: ctypes.CDLL):
    with pytest.raises(AttributeError):
        library["hidden"]


def test_equal_objects_give_equal_bytes():
    given = objects(host())
    assert link(given) == link(list(given))


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed (package binutils)")
def test_tools_read_it(tmp_path: Path):
    path = tmp_path / "code.so"
    path.write_bytes(link(objects(host())))
    done = subprocess.run(["readelf", "-aW", str(path)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    for text in ("relay_call", "DYN (Shared object file)", "libm.so.6", ".bss", "expf"):
        assert text in done.stdout
    assert "RWE" not in done.stdout, "no page is both written and executed"


def test_aarch64_runs_under_an_emulator(tmp_path: Path):
    compiler, emulator, root = "aarch64-linux-gnu-gcc", "qemu-aarch64", Path("/usr/aarch64-linux-gnu")
    if not (shutil.which(compiler) and shutil.which(emulator) and root.is_dir()):
        pytest.skip(f"{compiler} or {emulator} is not installed (packages gcc-aarch64-linux-gnu, qemu-user)")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = CpuTarget("aarch64-unknown-linux-gnu", "generic", frozenset({"neon"}))
    (tmp_path / "code.so").write_bytes(link(objects(machine)))
    (tmp_path / "main.c").write_text(CHECK)
    built = subprocess.run([compiler, "main.c", "-ldl", "-o", "main"], cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([emulator, "-L", str(root), "./main"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "42 0 7 2.7183 81 4 0\n", done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")
def test_names_for_the_loader_of_android(tmp_path: Path):
    """It wants the library's own name, and has the C library under other names than Linux's."""
    path = tmp_path / "libmodel.so"
    path.write_bytes(link(objects(host()), "relay_", "libmodel.so", ANDROID))
    done = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
    assert re.findall(r"\[(\S+)\]", done.stdout) == ["libm.so", "libc.so", "libmodel.so"]


def test_what_is_no_object():
    (whole, _) = objects(host())
    for data in (b"", b"\x7fELF", b"x" * 200, whole[:100], whole[:-200], link([whole, objects(host())[1]])):
        with pytest.raises(Malformed):
            read_object(data)


def test_damaged_objects_are_refused_or_linked():
    """A flipped byte in code or constants cannot be seen; one in what the linker reads must not make it fail oddly."""
    whole = bytearray(objects(host())[0])
    for at in range(0, len(whole), 7):
        bad = whole.copy()
        bad[at] ^= 0x81
        try:
            link([bytes(bad)])
        except RelayError as error:
            assert str(error)


def test_two_definitions():
    second = objects(host())[1]
    with pytest.raises(Malformed, match="defines other twice"):
        link([second, second])


def test_another_machine():
    data = bytearray(objects(host())[0])
    data[18:20] = struct.pack("<H", 243)
    with pytest.raises(Unsupported, match="known are x86-64 and AArch64"):
        link([bytes(data)])
