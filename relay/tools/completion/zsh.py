"""Generates the completion script for zsh."""

from __future__ import annotations

import shlex

from relay.tools.completion.words import Command, Option

SCRIPT = r"""#compdef @NAME@
# Completes @NAME@ in zsh. Made by: @NAME@ --completion zsh
# Put it as _@NAME@ into a folder of $fpath, or source it after compinit.

typeset -ga @F@_passes=(
@PASSES@
)
typeset -gA @F@_pass_options=(@PASS_OPTIONS@)

@F@_names() {
    _describe -t passes pass @F@_passes "$@"
}

# Passes after commas, options of a pass in its braces.
@F@_pipeline() {
    if [[ $PREFIX == *\{* && ${PREFIX##*\{} != *\}* ]]; then
        local name=${${PREFIX%\{*}##*,}
        local -a names=(${=@F@_pass_options[$name]})
        compset -P '*[{]'
        compset -P '* '
        compadd -S = -- $names
    else
        compset -P '*,'
        @F@_names -S ''
    fi
}

@F@_edit() {
    if compset -P '*='; then
        @F@_pipeline
    else
        @F@_names -S =
    fi
}

@F@() {
    _arguments -s \
@ARGUMENTS@
        '*:file:_files'
}

if [[ $funcstack[1] == _@NAME@ ]]; then
    @F@ "$@"
else
    compdef @F@ @NAME@
fi
"""


def script(command: Command) -> str:
    """The zsh completion script of a command."""
    passes = [f"{step.name}:{step.help}" if step.help else step.name for step in command.passes]
    given = {
        "PASSES": "\n".join(f"    {shlex.quote(line)}" for line in passes),
        "PASS_OPTIONS": " ".join(
            f"{step.name} {shlex.quote(' '.join(step.options))}" for step in command.passes if step.options
        ),
        "ARGUMENTS": "\n".join(
            f"        {line} \\" for option in command.options for line in specifications(option, command.function)
        ),
        "NAME": command.name,
        "F": command.function,
    }
    text = SCRIPT
    for key, value in given.items():
        text = text.replace(f"@{key}@", value)
    return text


def specifications(option: Option, function: str) -> list[str]:
    """The option's specifications for `_arguments`, one for each of its spellings."""
    action = {
        "flag": "",
        "value": ": ",
        "choice": f":({' '.join(option.values)})",
        "file": ":_files",
        "directory": ":_files -/",
        "pass": f":{function}_names",
        "pipeline": f":{function}_pipeline",
        "edit": f":{function}_edit",
    }[option.kind]
    help = option.help.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
    found: list[str] = []
    for name in option.names:
        before = "*" if option.repeats else f"({' '.join(option.names)})"
        joined = "" if option.kind == "flag" else "=" if name.startswith("--") else "+"
        argument = "" if option.kind == "flag" else f":{option.kind}{action}"
        found.append(shlex.quote(f"{before}{name}{joined}[{help}]{argument}"))
    return found
