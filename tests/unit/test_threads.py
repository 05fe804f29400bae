"""Threads: results never depend on them; teams are shared, survive forks, sleep, and end with the interpreter."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from relay.compile.entry import build
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Unsupported
from relay.lowering.codegen import compile_text
from relay.lowering.llvm.team import MEMBER, TEAM, TEAM_FUNCTIONS, team_text
from relay.lowering.llvm_ir import translate
from relay.lowering.parallelize import Parallelize
from relay.module import IRModule
from relay.passes import PassContext
from relay.runtime import Executable, executable, load, team
from relay.target import CpuTarget
from tests.marks import ci
from tests.numeric.shuffled_turns import Shuffled

ROOT = Path(__file__).parents[2]
IMAGE, MAPS, SUMS = "tensor<1x23x19x3xf32>", "tensor<1x23x19x20xf32>", "tensor<1x23x19xf32>"
KERNEL = "tensor<20x3x3x3xf32>"
WEIGHTS = np.linspace(-1, 1, 540, dtype="<f4").tobytes().hex()
TEXT = f"""func.func @main(%x: {IMAGE}) -> ({MAPS}, {SUMS}) {{
  %k = relay.constant {{label = "k"}} dense<"0x{WEIGHTS}"> : {KERNEL}
  %c = relay.nn.conv2d %x, %k {{padding = array<i64: 1, 1, 1, 1>, out_dtype = f32}} : ({IMAGE}, {KERNEL}) -> {MAPS}
  %t = relay.tanh %c : ({MAPS}) -> {MAPS}
  %s = relay.sum %t {{axis = array<i64: 3>}} : ({MAPS}) -> {SUMS}
  func.return %t, %s : {MAPS}, {SUMS}
}}
"""
X = np.random.default_rng(0).normal(size=(1, 23, 19, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def model() -> Executable:
    """A model whose loops threads share, however short they are."""
    with PassContext(config={"parallelize.fork": 1, "parallelize.least": 1}):
        made = build(IRModule.parse(TEXT))
    assert made.graph["team"] and made.get_source("mlir").count("scf.parallel") >= 3
    return made


@pytest.fixture(scope="module")
def saved(model: Executable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("threads") / "model.relay"
    model.save(path)
    return path


@pytest.fixture(scope="module")
def expected(model: Executable) -> list[Array]:
    assert model.num_threads == 1
    return outputs(model)


@pytest.fixture
def many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "cores", lambda: 8)


def outputs(made: Executable) -> list[Array]:
    found = made.run(X)
    assert isinstance(found, tuple)
    return list(found)


def same(found: list[Array], expected: list[Array]) -> bool:
    """Equal to the last bit."""
    return all(a.tobytes() == b.tobytes() for a, b in zip(found, expected, strict=True))


def test_any_partition_in_any_order(saved: Path, expected: list[Array], monkeypatch: pytest.MonkeyPatch):
    for seed in range(20):
        shuffled = Shuffled(seed)
        monkeypatch.setattr(executable, "team_for", shuffled.taken)
        assert same(outputs(load(saved, num_threads=2)), expected)
        assert shuffled.runs == 1 and len(shuffled.turns) >= 3 and min(shuffled.turns) > 1


@pytest.mark.usefixtures("many_cores")
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_any_number_of_threads(saved: Path, expected: list[Array], count: int):
    made = load(saved, num_threads=count)
    assert made.num_threads == count
    assert all(same(outputs(made), expected) for _ in range(200))
    made.set_input(0, X)
    made.run()
    assert same([made.get_output(0), made.get_output(1)], expected)


class Timed:
    """Runs that take so many nanoseconds with a team and without, by a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, together: int, alone: int):
        self.nanoseconds = [alone, together]
        self.now: int = 0
        self.runs = [0, 0]
        monkeypatch.setattr(team, "perf_counter_ns", self.clock)
        monkeypatch.setattr(team.Team, "start", self.started)
        made = team.Team((ctypes.c_uint64 * 4)(), 2)
        self.table = (ctypes.c_uint64 * 1)()
        self.call = made.bound(self.native, 0, team.Trial())

    @staticmethod
    def started(_: object) -> bool:
        return True

    def clock(self) -> int:
        return self.now

    def native(self, table: int) -> None:
        shared = self.table[0] != 0
        self.runs[shared] += 1
        self.now += self.nanoseconds[shared]

    def part(self, milliseconds: int) -> float:
        """The part of the runs of so many milliseconds that the team does."""
        self.runs, end = [0, 0], self.now + milliseconds * 1_000_000
        while self.now < end:
            self.call(ctypes.addressof(self.table))
        return self.runs[1] / sum(self.runs)


@pytest.mark.parametrize("alone", [80_000, 2_000_000])
def test_threads_that_do_not_pay_are_not_used(alone: int, monkeypatch: pytest.MonkeyPatch):
    timed = Timed(monkeypatch, together=alone + 1000, alone=alone)
    assert 0 < timed.part(5000) < 0.01
    timed.nanoseconds = [alone, alone // 2]  # the other processor has become free
    timed.part(2000)
    assert 0.99 < timed.part(5000) < 1
    timed.nanoseconds = [alone, 3_000_000]  # and is taken again
    timed.part(2000)
    assert 0 < timed.part(10_000) < 0.01


@pytest.mark.usefixtures("many_cores")
def test_many_users_of_one_team(saved: Path, expected: list[Array]):
    shared, wrong = load(saved, num_threads=3), list[int]()

    def use(number: int) -> None:
        mine = shared if number % 2 else load(saved, num_threads=2 + number % 3)
        for turn in range(100):
            if number == 1 and turn % 10 == 0:
                shared.num_threads = 1 + turn // 10 % 4
            if not same(outputs(mine), expected):
                wrong.append(number)

    users = [threading.Thread(target=use, args=(number,)) for number in range(6)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert wrong == []


@pytest.mark.usefixtures("many_cores")
def test_workers_sleep_when_nothing_runs(saved: Path, expected: list[Array]):
    made = load(saved, num_threads=4)
    outputs(made)
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.3, "three workers that looked for work would take 1.5 s"
    assert same(outputs(made), expected)


START = """
import os, sys, threading
import llvmlite.binding as llvm
import numpy as np
from relay.runtime import load, team
team.cores = lambda: 4
made = load(sys.argv[1], num_threads=3)
x = np.load(sys.argv[2])
first = [a.tobytes() for a in made.run(x)]
def check():
    for _ in range(50):
        assert [a.tobytes() for a in made.run(x)] == first
"""
FORK = """
from relay.runtime import library
workers = lambda: len(os.listdir("/proc/self/task"))
check()
assert workers() >= 3
for turn in range(3):
    held = library._LOCKS[0]
    with held:  # as by a thread that loads code
        child = os.fork()
    if not child:
        load(sys.argv[1])
        made.num_threads = 3  # the parent may have seen that threads do not pay
        alone = workers()
        check()
        os._exit(0 if alone == 1 and workers() == 3 else 3)
    check()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
EXIT = """
def forever():
    while True:
        made.run(x)
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
check()
"""


@pytest.mark.parametrize(
    "body",
    [FORK, *ci((EXIT, "check()\nsys.exit(0)"))],
    ids=["fork", "exit", "plain"],
)
def test_processes(saved: Path, tmp_path: Path, body: str):
    np.save(tmp_path / "x.npy", X)
    command = [sys.executable, "-W", "ignore", "-c", START + body, str(saved), str(tmp_path / "x.npy")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_of_a_build_and_of_a_file(model: Executable, saved: Path):
    assert load(saved).num_threads == 1 and load(saved, num_threads=2).num_threads == 2
    made = build(IRModule.parse(TEXT), num_threads=3)
    assert made.num_threads == 3
    made.num_threads = 1
    assert made.num_threads == 1


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "2", 1025])
def test_refuses_other_numbers(model: Executable, count: int):
    with pytest.raises(InvalidArgument, match=f"num_threads: {count!r} is no number from 1 to 1024; this process may"):
        model.num_threads = count
    assert model.num_threads == 1


def test_no_more_threads_than_processors(saved: Path, monkeypatch: pytest.MonkeyPatch):
    for cores in (1, 2, 5):
        monkeypatch.setattr(team, "cores", partial(int, cores))
        library = load(saved).library
        found = team.team_for(library, TEAM_FUNCTIONS, 4)
        assert (1 if found is None else found.threads) == min(cores, 4)


def test_a_file_of_another_form_runs_on_one_thread(saved: Path, expected: list[Array], monkeypatch: pytest.MonkeyPatch):
    assert (TEAM_FUNCTIONS, TEAM, MEMBER) == (team.FORM, team.TEAM, team.MEMBER)
    monkeypatch.setattr(team, "cores", lambda: 2)
    assert team.team_for(load(saved).library, TEAM_FUNCTIONS, 2) is not None
    monkeypatch.setattr(team, "FORM", "relay_team_of_later")
    assert team.team_for(load(saved).library, TEAM_FUNCTIONS, 2) is None
    assert same(outputs(load(saved, num_threads=2)), expected)


def test_processors_of_a_process():
    every = os.sched_getaffinity(0)
    assert 1 <= team.cores() <= len(every)
    os.sched_setaffinity(0, {min(every)})
    try:
        assert team.cores() == 1
    finally:
        os.sched_setaffinity(0, every)


BUFFER = "memref<200x100xf32>"
KERNEL_TEXT = f"""
func.func private @NAME(%x: {BUFFER}, %y: {BUFFER}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = arith.constant 200 : index
  scf.for %i = %zero to %rows step %one {{
    %a = memref.load %x[%i, %zero] : {BUFFER}
    %e = math.exp %a : f32
    memref.store %e, %y[%i, %zero] : {BUFFER}
  }} MARK
  func.return
}}"""


@pytest.mark.parametrize(("calls", "shared"), [(["turns"] * 9, True), (["turns"] * 9 + ["order"], False)])
def test_a_kernel_that_nobody_shares_reads_what_others_wrote(calls: list[str], shared: bool):
    lines = [f"func.call @{name}(%x, %x) : ({BUFFER}, {BUFFER}) -> ()" for name in calls]
    main = "\n".join([f"func.func @main(%x: {BUFFER}) {{", *lines, "func.return", "}"])
    kernels = {"turns": "{relay.independent}", "order": ""}
    texts = [KERNEL_TEXT.replace("NAME", name).replace("MARK", mark) for name, mark in kernels.items()]
    module = Parallelize(fork=100)(IRModule.parse("\n".join([main, *texts])))
    assert ("scf.parallel" in str(module)) == shared


def test_a_shared_loop_needs_a_parallel_one_inside():
    loop = "scf.for %i = %zero to %end step %one {\n  } {relay.shared}"
    constants = [f"%{name} = arith.constant {n} : index" for n, name in enumerate(("zero", "one", "end"))]
    module = IRModule.parse("\n".join(["func.func @main() {", *constants, loop, "func.return", "}"]))
    with pytest.raises(Unsupported, match="{relay.shared}: has not one scf.parallel inside, of constant"):
        translate(module.op)


@pytest.mark.parametrize(
    "triple",
    [
        "x86_64-unknown-linux-gnu",
        *(pytest.param(f"{machine}-unknown-linux-gnu", marks=pytest.mark.ci) for machine in ("aarch64", "riscv64")),
    ],
)
def test_a_team_for_other_machines(triple: str):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    declarations: dict[str, str] = {}
    text = "\n".join([team_text(triple, declarations), *declarations.values(), "attributes #0 = { nounwind }", ""])
    code = compile_text(text, CpuTarget(triple, "generic-rv64" if "riscv" in triple else "generic", frozenset()))
    waits = {"x86_64": "pause", "aarch64": "yield"}.get(triple.split("-")[0], "")
    assert TEAM_FUNCTIONS in code.assembly() and waits in code.assembly()
