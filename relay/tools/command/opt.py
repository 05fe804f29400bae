"""`relay opt`: runs relay-opt."""

from relay.tools.command.forwarded import forwarded

command = forwarded("opt", "relay.tools.relay_opt", "Read a module, run passes on it, and print it (runs relay-opt).")
