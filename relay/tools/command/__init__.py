"""The subcommands of `relay`. A file imports the compiler when its command runs: `relay --help` starts without it."""
