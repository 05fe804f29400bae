"""Generates the completion script for fish."""

from __future__ import annotations

from relay.tools.completion.words import Command, Option

SCRIPT = r"""# Completes @NAME@ in fish. Made by: @NAME@ --completion fish
# Put it into ~/.config/fish/completions/@NAME@.fish, or source it.

function _@F@_passes
    printf '%s\t%s\n' @PASSES@
end

function _@F@_pass_options
    switch $argv[1]
@PASS_OPTIONS@
    end
end

# The argument that is typed, without the name of its option and an opening quote.
function _@F@_typed
    commandline -ct | string replace -r '^--?[a-z-]+=' '' | string replace -r '^["\']' ''
end

# Passes after commas, options of a pass in its braces; $argv[1] is a pipeline so far, $argv[2] what stands before it.
function _@F@_pipeline
    set -l inside (string match -r '^(.*,)?([^,{]+)\{([^}]* )?[^} ]*$' -- "$argv[1]")
    if test (count $inside) -gt 0
        set -l before (string replace -r '[^ {]*$' '' -- "$argv[1]")
        for option in (_@F@_pass_options $inside[3])
            echo -- "$argv[2]$before$option="
        end
    else
        set -l before (string replace -r '[^,]*$' '' -- "$argv[1]")
        for line in (_@F@_passes)
            echo -- "$argv[2]$before$line"
        end
    end
end

function _@F@_edit
    set -l halves (string split -m 1 = -- (_@F@_typed))
    if test (count $halves) -eq 2
        _@F@_pipeline "$halves[2]" "$halves[1]="
    else
        _@F@_passes | string replace \t =\t
    end
end

complete -c @NAME@ -e
@OPTIONS@
"""


def script(command: Command) -> str:
    """The fish completion script of a command."""
    options = [step for step in command.passes if step.options]
    given = {
        "PASSES": " ".join(f"{quote(step.name)} {quote(step.help)}" for step in command.passes),
        "PASS_OPTIONS": "\n".join(
            f"        case {quote(step.name)}\n            printf '%s\\n' {' '.join(map(quote, step.options))}"
            for step in options
        ),
        "OPTIONS": "\n".join(line(option, command) for option in command.options),
        "NAME": command.name,
        "F": command.function,
    }
    text = SCRIPT
    for key, value in given.items():
        text = text.replace(f"@{key}@", value)
    return text


def line(option: Option, command: Command) -> str:
    """The line `complete ...` that defines one option."""
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    function = f"_{command.function}"
    action = {
        "flag": "",
        "value": " -x",
        "choice": f" -x -a {quote(' '.join(option.values))}",
        "file": " -r -F",
        "directory": " -x -a '(__fish_complete_directories)'",
        "pass": f" -x -a '({function}_passes)'",
        "pipeline": f" -x -a '({function}_pipeline ({function}_typed))'",
        "edit": f" -x -a '({function}_edit)'",
    }[option.kind]
    return f"complete -c {command.name} {' '.join(names)}{action} -d {quote(option.help)}"


def quote(text: str) -> str:
    """The text in single quotes, with fish's two escapes (backslash and single quote)."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
