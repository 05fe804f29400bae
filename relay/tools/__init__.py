"""Commands: each parses its arguments, calls the front door and prints."""
