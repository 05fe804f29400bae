"""The subcommands of `relay`. Each module imports the compiler only when its command runs, so that `relay --help`
starts without it."""
