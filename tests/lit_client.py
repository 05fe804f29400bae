"""One call of a tool, done by `lit_server`. Hundreds of these start: they import only what the interpreter is built of,
which is a third of the time of `socket` and `json`."""

import marshal
import posix
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket

_, path, *arguments = sys.argv
call = socket(AF_UNIX)
call.settimeout(500)
call.connect(path)
data = marshal.dumps((arguments, posix.environ, posix.getcwd()))
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
call.sendmsg([len(data).to_bytes(4, "little")], [(SOL_SOCKET, SCM_RIGHTS, streams)])
call.sendall(data)
status = call.recv(1)
sys.exit(status[0] if status else f"{arguments[0]}: the server's process ended without an answer")
