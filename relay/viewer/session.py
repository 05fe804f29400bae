"""The state of the server: a module, the record of its last run, and the run in progress."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

from relay.errors import InvalidArgument
from relay.module import IRModule
from relay.viewer.recording import Explain, Record, Recording


class Busy(InvalidArgument):
    """Raised if a run is requested while another one is in progress."""


@dataclass(frozen=True)
class State:
    """The progress of a session. For the run in progress: `done`, the number of finished steps; `passes`, the number of
    passes in its pipeline; and `seconds`, the time since it began; all three are 0 if no run is in progress."""

    name: str
    run: int
    """The number of the last pipeline run that was recorded, counted from 1; 0 if there is none yet."""
    running: bool
    doing: str
    """The name of the pass that is running; "" if there is no run."""
    done: int
    passes: int
    seconds: float


class Session:
    """Runs pipelines on one module, one at a time, each in a thread of its own. All methods are thread-safe."""

    def __init__(
        self, mod: IRModule, name: str, target: str, explain: Explain, heat: Mapping[str, float] | None = None
    ):
        self.mod, self.name, self.target, self.explain, self.heat = mod, name, target, explain, heat
        self._lock = threading.Lock()
        self._recording: Recording | None = None
        self._started = 0.0
        self._records: list[Record] = []
        self._run = 0

    def start(self, pipeline: str | None, opt_level: int | None, verify: bool) -> None:
        """Start a run. Raises Busy if one is in progress, RelayError for a bad pipeline or level."""
        with self._lock:
            self._refuse_second()
        recording = Recording(
            self.mod,
            pipeline,
            target=self.target,
            opt_level=opt_level,
            verify=verify,
            name=self.name,
            explain=self.explain,
            heat=self.heat,
        )
        with self._lock:
            self._refuse_second()
            self._recording, self._started = recording, perf_counter()
        threading.Thread(target=self._work, args=(recording,), daemon=True, name="relay-explore run").start()

    def _refuse_second(self) -> None:
        if self._recording is not None:
            raise Busy("run", "another run is going on", "wait for it, or stop it")

    def _work(self, recording: Recording) -> None:
        record = recording.run()
        with self._lock:
            self._records = [record]
            self._run += 1
            self._recording = None

    def stop(self) -> None:
        """Stop the run in progress, if any, before its next pass."""
        with self._lock:
            if self._recording is not None:
                self._recording.recorder.stop.set()

    def state(self) -> State:
        """The progress of the session's pipeline run, if one is being recorded, and the number of the last run."""
        with self._lock:
            recording = self._recording
            if recording is None:
                return State(self.name, self._run, False, "", 0, 0, 0.0)
            recorder, seconds = recording.recorder, perf_counter() - self._started
            done = len(recording.record.steps)
            return State(self.name, self._run, True, recorder.doing, done, len(recording.pipeline), seconds)

    def record(self, run: int) -> Record:
        """The record of the last run. Raises InvalidArgument if `run` is not its number."""
        with self._lock:
            if run != self._run or not self._records:
                raise InvalidArgument(f"run {run}", "is not the last one", "reload the page")
            return self._records[0]
