"""Load on examples/serving: `python -m benchmarks.serving MODEL` prints throughput, and what overload gets.

The server is a process of its own. Saturation is what as many clients get done as it has workers; then four times as
many requests a second are sent, over connections that stay open, and every answer is compared with the executable's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import relay
from relay.runtime.specification import random_array

APP = Path(__file__).parents[1] / "examples" / "serving"
CONNECTIONS = 64


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> tuple[int, bytes]:
    """Status and body of one answer."""
    writer.write(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    head = await reader.readuntil(b"\r\n\r\n")
    status, length = int(head.split()[1]), int(head.lower().split(b"content-length:")[1].split()[0])
    return status, await reader.readexactly(length)


async def load(port: int, clients: int, rate: float | None, seconds: float, body: bytes, wanted: object) -> Any:
    """Answers by status (`wrong`: 200 with other numbers) and per second. `rate`: requests a second of all clients."""
    found: Counter[str] = Counter()
    begun = perf_counter()

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        due = begun + (number / rate if rate else 0.0)
        while (now := perf_counter()) < begun + seconds:
            if due > now:
                await asyncio.sleep(due - now)
            due += clients / rate if rate else 0.0
            status, answer = await ask(reader, writer, body)
            found["wrong" if status == 200 and json.loads(answer) != wanted else str(status)] += 1
        writer.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    elapsed = perf_counter() - begun
    return {"answers": dict(found), "per_s": {name: count / elapsed for name, count in found.items()}}


def resident(process: int) -> float:
    """The memory of a process, in MiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024


def measure(model: Path, batch: int, seconds: float) -> dict[str, Any]:
    """Saturation, four times that, and the server's memory after each of three such rounds."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        executable = relay.build(model, batch=batch)
        executable.save(saved := Path(folder) / "model.relay")
        spec = executable.inputs[0]
        image = random_array(spec.shape, spec.dtype, np.random.default_rng(0))
        outputs = executable.run(image)
        wanted = [np.asarray(each).tolist() for each in (outputs if isinstance(outputs, tuple) else [outputs])]
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        command = [sys.executable, "-m", "uvicorn", "--app-dir", str(APP), "app:app", "--port", str(port)]
        environment = {**os.environ, "MODEL": str(saved)}
        server = subprocess.Popen([*command, "--log-level", "error", "--no-access-log"], env=environment)
        try:
            wait(port)
            workers, body = len(os.sched_getaffinity(0)), image.tobytes()
            saturation = asyncio.run(load(port, workers, None, seconds, body, wanted))
            rate = 4 * saturation["per_s"]["200"]
            rounds: list[Any] = []
            memory: list[float] = []
            for _ in range(3):
                rounds.append(asyncio.run(load(port, CONNECTIONS, rate, seconds, body, wanted)))
                memory.append(resident(server.pid))
        finally:
            server.terminate()
            server.wait()
    return {"batch": batch, "saturation": saturation, "offered_per_s": rate, "rounds": rounds, "memory_mib": memory}


def wait(port: int, seconds: float = 60.0) -> None:
    """Until the server answers."""
    end = perf_counter() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if perf_counter() > end:
                raise


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--batch", type=int, default=1024, help="images of a request (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each round (default: %(default)s)")
    options = parser.parse_args(arguments)
    print(json.dumps(measure(options.model, options.batch, options.seconds), indent=1))


if __name__ == "__main__":
    main()
