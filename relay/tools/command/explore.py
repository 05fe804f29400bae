"""`relay explore`."""

from relay.tools.command.forwarded import forwarded

command = forwarded("explore", "relay.tools.relay_explore", "Show in the browser what each pass does: relay-explore.")
