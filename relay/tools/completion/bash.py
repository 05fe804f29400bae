"""Generates the completion script for bash."""

from __future__ import annotations

import shlex

from relay.tools.completion.words import Command, Option

SCRIPT = r"""# Completes @NAME@ in bash 4 and later. Made by: @NAME@ --completion bash
# Put it into ~/.local/share/bash-completion/completions/@NAME@, or source it.

@F@_passes=@PASSES@
declare -gA @F@_pass_options=(@PASS_OPTIONS@)

# Offer those of the words $1 that begin with $2, after $3, with $4 behind them.
@F@_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -P "$3" -S "$4" -- "$2")
}

# A pipeline so far, after $2: passes after commas, options of a pass in its braces.
@F@_pipeline() {
    local text=$1 name typed
    compopt -o nospace 2>/dev/null
    if [[ $text == *'{'* && ${text##*'{'} != *'}'* ]]; then
        name=${text%'{'*} name=${name##*,}
        typed=${text##*['{ ']}
        @F@_words "${@F@_pass_options[${name:-none}]}" "$typed" "$2${text%"$typed"}" =
    else
        typed=${text##*,}
        @F@_words "$@F@_passes" "$typed" "$2${text%"$typed"}"
    fi
}

@F@() {
    local cur=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) equals=
    COMPREPLY=()
    # Readline takes '=' for a word of its own.
    if [[ $cur == = ]]; then
        cur= equals=1
    elif [[ ${COMP_WORDS[at]} == = ]]; then
        at=$((at - 1)) equals=1
    fi
    cur=${cur#[\"\']}
    if [[ $equals ]]; then
        case ${COMP_WORDS[at - 1]} in
            @EDITS@) @F@_pipeline "$cur"; return ;;
        esac
    fi
    case ${COMP_WORDS[at]} in
@CASES@
    esac
    if [[ -z $equals && $cur == -* ]]; then
        @F@_words @FLAGS@ "$cur"
    fi
}

complete -o bashdefault -o default -F @F@ @NAME@
"""


def script(command: Command) -> str:
    """The bash completion script of a command."""
    function = command.function
    edits = [name for option in command.options if option.kind == "edit" for name in option.names]
    given = {
        "CASES": "\n".join(case(option, function) for option in command.options if option.kind not in ("flag", "file")),
        "PASSES": shlex.quote(" ".join(step.name for step in command.passes)),
        "PASS_OPTIONS": " ".join(
            f"[{step.name}]={shlex.quote(' '.join(step.options))}" for step in command.passes if step.options
        ),
        "EDITS": " | ".join(edits) or "''",
        "FLAGS": shlex.quote(" ".join(name for option in command.options for name in option.names)),
        "NAME": command.name,
        "F": function,
    }
    text = SCRIPT
    for key, value in given.items():
        text = text.replace(f"@{key}@", value)
    return text


def case(option: Option, function: str) -> str:
    """The branch of a shell `case` that offers completions after one option."""
    match option.kind:
        case "choice":
            offer = f'{function}_words {shlex.quote(" ".join(option.values))} "$cur"'
        case "pipeline":
            offer = f'{function}_pipeline "$cur"'
        case "pass":
            offer = f'{function}_words "${function}_passes" "$cur"'
        case "edit":
            offer = f'compopt -o nospace 2>/dev/null; {function}_words "${function}_passes" "$cur" "" ='
        case "directory":
            offer = 'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur")'
        case _:
            offer = "compopt +o default +o bashdefault 2>/dev/null"
    return f"        {' | '.join(option.names)}) {offer}; return ;;"
