"""One call of a tool, done by `lit_server`. Imports as little as can be."""

import json
import os
import socket
import sys

_, path, *arguments = sys.argv
with socket.socket(socket.AF_UNIX) as call:
    call.connect(path)
    data = json.dumps([arguments, dict(os.environ), os.getcwd()]).encode()
    socket.send_fds(call, [len(data).to_bytes(4, "little")], [0, 1, 2])
    call.sendall(data)
    status = call.recv(1)
sys.exit(status[0] if status else f"{arguments[0]}: the server's process ended without an answer")
