"""The command-line tools: each parses its arguments, calls a public function and prints. May import every package of
relay; none imports it."""
