"""A model behind HTTP: `MODEL=digits.relay uvicorn --app-dir examples/serving app:app`.

POST / takes the bytes of the input's codes and answers the outputs as JSON. As many runs at once as there are
processors, a few that wait, and 503 for what is more: a queue that grows serves nobody. Starlette is enough; for
FastAPI's pages and types write `app = FastAPI(routes=routes)`.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from relay import runtime

executable = runtime.load(os.environ["MODEL"])
spec = executable.inputs[0]
size = int(np.prod(spec.shape)) * spec.dtype.itemsize
workers = len(os.sched_getaffinity(0))
threads = ThreadPoolExecutor(workers)
room = workers + int(os.environ.get("WAITING", "2"))
"""How many more requests are taken."""


async def predict(request: Request) -> Response:
    """The outputs for one input; 400 for what is none, 503 where there is no room."""
    global room
    body = await request.body()
    if len(body) != size:
        return JSONResponse({"error": f"{size} bytes of {spec} are needed, {len(body)} came"}, 400)
    if room == 0:
        return JSONResponse({"error": "busy"}, 503, {"Retry-After": "1"})
    room -= 1
    try:
        image = np.frombuffer(body, spec.dtype).reshape(spec.shape)
        loop = asyncio.get_running_loop()
        outputs = await loop.run_in_executor(threads, executable.run, image)  # run() may be called from many threads
    finally:
        room += 1
    return JSONResponse([np.asarray(each).tolist() for each in (outputs if isinstance(outputs, tuple) else [outputs])])


async def health(request: Request) -> Response:
    """What is served."""
    return JSONResponse({"model": os.environ["MODEL"], "room": room})


routes = [Route("/", predict, methods=["POST"]), Route("/health", health)]
app = Starlette(routes=routes)
