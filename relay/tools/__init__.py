"""Commands: each parses its arguments, calls a front door and prints. May import every room; none imports it."""
