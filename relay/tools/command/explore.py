"""`relay explore`: runs relay-explore."""

from relay.tools.command.forwarded import forwarded

command = forwarded(
    "explore", "relay.tools.relay_explore", "Show in the browser how each pass changes a module (runs relay-explore)."
)
