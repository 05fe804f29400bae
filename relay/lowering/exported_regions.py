"""Writes the functions of external compilers for exported C: their artifacts as arrays, and calls that start, execute
and stop their devices.

`NAME_regions.c` needs the header of the model, and for linking the vendors' libraries, whose functions are those of
`relay.runtime.open_device`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from relay.artifact import CompiledFunction
from relay.dialects.attributes import Array, to_numpy
from relay.errors import Unsupported
from relay.lowering.externals import compiled

ROW = 20
"""The number of bytes on each line of the C arrays that are written."""


@dataclass(frozen=True)
class Regions:
    """The functions of a model that external compilers compiled, and the C code that an exported model needs to call
    them. `name`: the prefix of the C names; `by_name`: the functions by their names in the module, in the order in
    which the exported table `NAME_regions` has them."""

    name: str
    by_name: Mapping[str, CompiledFunction]

    @classmethod
    def of(cls, module: ModuleOp, name: str) -> Regions:
        """Return the external functions of a module. Raises Unsupported if one has no C functions that execute it."""
        found = compiled(module)
        if missing := next((made for made in found.values() if not made.device), None):
            what = f"was compiled by '{missing.compiler}', which names no C functions that run it"
            hint = "build it without that compiler; a compiler names them by Artifact.device"
            raise Unsupported(f"export: external function {missing.symbol}", what, hint)
        return cls(name, found)

    @property
    def functions(self) -> list[CompiledFunction]:
        """The external functions, in the order of their numbers."""
        return list(self.by_name.values())

    @property
    def devices(self) -> list[str]:
        """The prefixes of the C functions that run the external functions (PREFIX_init, PREFIX_execute,
        PREFIX_destroy), each prefix once. The vendors' libraries that contain them must be linked to the exported
        model."""
        return list(dict.fromkeys(made.device for made in self.functions))

    def header(self) -> str:
        """Return the C declarations, for the header that programs include, of the table of external functions and of
        the functions that initialize and destroy them; empty if there are no external functions."""
        name, macro = self.name, self.name.upper()
        if not self.functions:
            return ""
        return f"""/* Parts of the model run by {", ".join(self.devices)}: link {name}_regions.c, and the library
   that has the functions PREFIX_init, PREFIX_execute and PREFIX_destroy of each. */
#define {macro}_REGIONS {len(self.functions)}

typedef struct {{
    const char *name;
    const char *compiler;
    void *state;    /* what PREFIX_init made */
    int32_t status; /* what its function returned last */
}} {name}_region;

extern {name}_region {name}_regions[{macro}_REGIONS];

/* Starts them all, once before the first run. Returns 0, or the number from 1 of the one that failed: its status says
   why, and none is left started. */
int32_t {name}_init(void);

/* Stops them all, after the last run. */
void {name}_destroy(void);

"""

    def call(self, name: str, tensors: Sequence[str], label: str) -> str:
        """Return statements that call a function with these tensors; `label` makes their variable's name unique."""
        number = list(self.by_name).index(name)
        state = f"{self.name}_regions[{number}]"
        return (
            f"void *tensors_{label}[] = {{{', '.join(f'(void *){tensor}' for tensor in tensors)}}};\n"
            f"{state}.status = {self.functions[number].device}_execute({state}.state, tensors_{label});\n"
            f"if ({state}.status != 0)\n    return {number + 1};"
        )

    def code(self, include: str) -> str:
        """Return the text of the C file `NAME_regions.c`, which contains the artifacts and constants of all external
        functions, and initializes and destroys them. `include`: the text of its first `#include` lines."""
        parts = [f"/* What external compilers made of parts of {self.name}. */\n{include}#include <stddef.h>\n"]
        parts += map(prototypes, self.devices)
        rows: list[str] = []
        for number, made in enumerate(self.functions):
            parts.append(f"/* {made.symbol}: {made.data.size} bytes */\n" + blob(f"artifact_{number}", made.data))
            for place, (key, value) in enumerate(sorted(made.params.items())):
                array = to_numpy(value)
                parts.append(
                    f"/* {made.symbol}: constant {place}, {plain(key)}, {array.dtype} "
                    f"{'x'.join(map(str, array.shape)) or 'scalar'} */\n" + blob(f"constant_{number}_{place}", array)
                )
            table = ", ".join(f"constant_{number}_{place}.bytes" for place in range(len(made.params))) or "NULL"
            parts.append(f"static const void *const constants_{number}[] = {{{table}}};\n")
            rows.append(f'    {{"{quoted(made.symbol)}", "{quoted(made.compiler)}", NULL, 0}},\n')
        parts.append(f"{self.name}_region {self.name}_regions[] = {{\n{''.join(rows)}}};\n")
        return "\n".join([*parts, self.start()])

    def start(self) -> str:
        """Return the C text of `NAME_init`, which starts the devices of all external functions, and `NAME_destroy`,
        which stops them."""
        name, made, stops = self.name, "", ""
        for number, each in enumerate(self.functions):
            state = f"{name}_regions[{number}]"
            made += (
                f"    {state}.status = {each.device}_init(artifact_{number}.bytes, {each.data.size}, "
                f"constants_{number},\n        &{state}.state);\n    if ({state}.status != 0) {{\n"
                f"        stop({number});\n        return {number + 1};\n    }}\n"
            )
            stops = f"    if (count > {number})\n        {each.device}_destroy({state}.state);\n" + stops
        return f"""static void stop(int32_t count)
{{
{stops}}}

int32_t {name}_init(void)
{{
{made}    return 0;
}}

void {name}_destroy(void)
{{
    stop({len(self.functions)});
}}
"""

    def runner(self, parameters: str, arguments: str) -> str:
        """Return the C text of the function `NAME_run`, for the model called NAME. It calls the object code's entry
        `NAME_host` with a table of the external functions and their states. `parameters` is the text of the parameters
        that both functions share, and `arguments` that of the arguments that pass them on."""
        name = self.name
        rows = ",\n        ".join(
            f"{{{each.device}_execute, {name}_regions[{number}].state}}" for number, each in enumerate(self.functions)
        )
        return f"""
int32_t {name}_host(void *arena, {parameters}, void *table);

int32_t {name}_run(void *arena, {parameters})
{{
    struct {{
        struct {{
            int32_t (*execute)(void *state, void **tensors);
            void *state;
        }} regions[{len(self.functions)}];
        int64_t failed;
    }} table = {{{{
        {rows}}}, 0}};
    const int32_t refused = {name}_host(arena, {arguments}, &table);
    const int32_t number = (int32_t)(table.failed >> 32);
    if (refused != 0 || number == 0)
        return refused;
    {name}_regions[number - 1].status = (int32_t)(table.failed & 0xffffffff);
    return number;
}}
"""


def prototypes(device: str) -> str:
    """Return the C prototypes of the three functions that initialize, execute and destroy an artifact on a device."""
    return (
        f"int32_t {device}_init(const void *artifact, uint64_t size, const void *const *constants, void **state);\n"
        f"int32_t {device}_execute(void *state, void **tensors);\n"
        f"void {device}_destroy(void *state);\n"
    )


def blob(name: str, array: Array) -> str:
    """Return the C definition of `name`, a constant with the bytes of the array, aligned to 8 bytes."""
    words = [str(byte) for byte in np.ascontiguousarray(array).reshape(-1).view(np.uint8).tolist()] or ["0"]
    lines = "".join(f"    {', '.join(words[i : i + ROW])},\n" for i in range(0, len(words), ROW))
    union = f"static const union {{ uint8_t bytes[{len(words)}]; uint64_t alignment; }}"
    return f"{union} {name} = {{{{\n{lines}}}}};\n"


def quoted(text: str) -> str:
    """Return a text for a C string: nonprintable characters, quotes, backslashes and question marks (trigraphs) become
    `_`."""
    return "".join(c if " " <= c <= "~" and c not in '"\\\\?' else "_" for c in text)


def plain(text: str) -> str:
    """Return a text without characters that could end a C comment or line."""
    shown = "".join(character if character.isprintable() else "?" for character in text)
    return shown.replace("\\", "|").replace("*/", "* /").replace("/*", "/ *")
