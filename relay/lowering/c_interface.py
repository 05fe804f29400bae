"""Exports a model as an object file and a C header. The object file contains the weights; the C function takes only
pointers to inputs, outputs and working memory, and there is nothing to free afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from relay.arguments import text
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Unsupported
from relay.lowering.c.types import TYPES
from relay.lowering.c_stream import Parameter, declarations
from relay.lowering.codegen import compile_text, is_linked
from relay.lowering.elf.object_file import undefined_symbols
from relay.lowering.elf.shared_object import ANDROID, NEEDED, link
from relay.lowering.elf.static_library import static_library
from relay.lowering.exported_regions import Regions, plain
from relay.lowering.exported_texts import cmake, compiler_flags, readme
from relay.lowering.llvm_ir import translate
from relay.module import IRModule
from relay.target import CpuTarget
from relay.tile_registers import REQUEST, TILE_DATA

TILES = f"""
   The code is for a processor with AMX, whose tile registers Linux gives to a process that asked for them:
   syscall(SYS_arch_prctl, {REQUEST:#x}, {TILE_DATA}) == 0, once, before the first call."""
"""A note in the header of a model whose kernels may use tile registers."""


@dataclass(frozen=True)
class Interface:
    """The C interface of a model: `graph` is the runtime's description of it; exported names are prefixed with
    `name`."""

    name: str
    graph: Mapping[str, Any]
    params: Mapping[str, Array]
    target: CpuTarget
    regions: Regions

    def __post_init__(self) -> None:
        name = text(self.name, "export", "a name is an identifier of C")
        if not name.isascii() or not name.isidentifier():
            raise InvalidArgument("export", f"the name {name!r} is no identifier of C", "use letters, digits and _")
        for parameter, row in self.tensors:
            if row["dtype"] not in TYPES:
                raise Unsupported(f"export: {parameter}", f"is {row['dtype']}, which C does not have", "cast it to f32")

    @property
    def tensors(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Inputs and outputs, with the names of their C parameters."""
        groups = (("input", self.graph["inputs"]), ("output", self.graph["outputs"]))
        return [(f"{group}_{number}", row) for group, rows in groups for number, row in enumerate(rows)]

    @property
    def initial(self) -> dict[str, Array]:
        """The initial values of states, by their names in C."""
        return {
            f"{self.name}_initial_{parameter.removeprefix('input_')}": self.params[row["initial"]]
            for parameter, row in self.tensors
            if row.get("initial") is not None
        }

    @property
    def entry(self) -> str:
        """The name of the entry point in the object code: the function that C calls, or, with functions of external
        compilers, the function that their wrapper in C calls."""
        return f"{self.name}_host" if self.regions.functions else f"{self.name}_run"

    def constants(self) -> Array:
        """Return all weights, each at its planned offset."""
        blob = np.zeros(int(self.graph["constants_bytes"]), np.uint8)
        for row in self.graph["constants"]:
            array = np.ascontiguousarray(self.params[row["name"]]).reshape(-1).view(np.uint8)
            blob[row["offset"] : row["offset"] + array.size] = array
        return blob

    def text(self, more: int) -> str:
        """Return LLVM IR of the constants, and of the function that C calls, which calls `@main`. It passes null for
        the last `more` arguments of `@main`; if there are external functions, the first of these arguments is their
        table instead."""
        blob, tensors = self.constants(), [f"ptr %{parameter}" for parameter, _ in self.tensors]
        table = ["ptr %table"] if self.regions.functions else []
        lines = [f"@constants = internal constant {data(blob)}, align {self.target.alignment}"]
        lines += [
            f"@{name} = constant {data(array)}, align {self.target.alignment}" for name, array in self.initial.items()
        ]
        arguments = [*tensors, "ptr @constants", "ptr %arena", *[*table, *["ptr null"] * more][:more]]
        return "\n".join(
            [
                *lines,
                f"define i32 @{self.entry}({', '.join(['ptr %arena', *tensors, *table])}) #0 {{",
                "  %address = ptrtoint ptr %arena to i64",
                f"  %low = and i64 %address, {self.target.alignment - 1}",
                "  %aligned = icmp eq i64 %low, 0",
                "  br i1 %aligned, label %run, label %refuse",
                "run:",
                f"  call void @main({', '.join(arguments)})",
                "  ret i32 0",
                "refuse:",
                "  ret i32 -1",
                "}",
            ]
        )

    @property
    def parameters(self) -> str:
        """The parameters of the function that C calls, after the arena."""
        return ", ".join(
            f"{'' if parameter.startswith('output') else 'const '}{TYPES[row['dtype']]} *{parameter}"
            for parameter, row in self.tensors
        )

    @property
    def stream_parameters(self) -> list[Parameter]:
        """The parameters of the model's C function, with the names of the states' initial values and whether each state
        can be updated in place: the description from which the C functions of a stream (a model with states) are
        written."""
        rows = [row["name"] for _, row in self.tensors]
        pairs = self.graph.get("in_place", ())
        in_place = {f"input_{input}" for input, output in pairs if rows[input] == self.graph["outputs"][output]["name"]}
        return [
            Parameter(
                parameter,
                TYPES[row["dtype"]],
                row["kind"],
                row["name"],
                started if started in self.initial else None,
                parameter in in_place,
            )
            for parameter, row in self.tensors
            for started in [f"{self.name}_initial_{parameter.removeprefix('input_')}"]
        ]

    def header(self) -> str:
        """Return the text of the header."""
        name, macro = self.name, self.name.upper()
        tensors = "".join(self.described(parameter, row) for parameter, row in self.tensors)
        initial = "".join(
            f"/* What the state of that number starts with. */\n"
            f"extern const {TYPES[str(array.dtype)]} {symbol}[{max(array.size, 1)}];\n"
            for symbol, array in self.initial.items()
        )
        regions = self.regions
        failed = ",\n   or the number from 1 of the region that failed" if regions.functions else ""
        asked = TILES if self.target.multiplies_tiles else ""
        return f"""/* A neural network in native code for {self.target.triple}, made by relay: how to call it. */
#ifndef {macro}_H
#define {macro}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define {macro}_ARENA_BYTES {max(int(self.graph["arena_bytes"]), 1)}
#define {macro}_ARENA_ALIGNMENT {self.target.alignment}
#define {macro}_INPUTS {len(self.graph["inputs"])}
#define {macro}_OUTPUTS {len(self.graph["outputs"])}

{tensors}{initial}
{regions.header()}/* Runs the model. The arena has {macro}_ARENA_BYTES bytes at a multiple of {macro}_ARENA_ALIGNMENT;
   what is in it before does not matter, and calls with arenas of their own may run at the same time. Tensors are dense,
   row-major, and do not overlap. Returns 0, or -1 if the arena is not aligned{failed}.{asked} */
int32_t {name}_run(void *arena, {self.parameters});
{declarations(name, f"{name}_run", self.target.alignment, self.stream_parameters)}
#ifdef __cplusplus
}}
#endif

#endif
"""

    def described(self, parameter: str, row: Mapping[str, Any]) -> str:
        """Return the description of a tensor: a comment, and macros with its sizes."""
        macro = f"{self.name}_{parameter}".upper()
        shape = "x".join(map(str, row["shape"])) or "scalar"
        known = row.get("scale") is not None
        meaning = f", real = {np.float32(row['scale'])} * (code - {row['zero_point']})" if known else ""
        lines = [
            f"/* {parameter}: {row['kind']} {plain(row['name'])}, {row['dtype']} {shape}{meaning} */",
            f"#define {macro}_COUNT {prod(row['shape'])}",
        ]
        if known:
            lines += [
                f"#define {macro}_SCALE {literal(row['scale'])}",
                f"#define {macro}_ZERO_POINT {row['zero_point']}",
            ]
        return "\n".join([*lines, "", ""])


def export(
    module: IRModule,
    graph: Mapping[str, Any],
    params: Mapping[str, Array],
    target: CpuTarget,
    effort: int,
    name: str,
    kind: str,
) -> dict[str, bytes]:
    """Return the contents of an exported module's files, by file name: object code or a library of it (`kind`: "o", "a"
    or "so"), a header, artifacts of external compilers in C, a README (`NAME.md`, as the folder may have its own
    README.md) and a CMake file that defines the library. Raises InvalidArgument for a bad name, and Unsupported for
    artifacts without C functions and for a shared library if relay cannot link for the target."""
    interface = Interface(name, graph, params, target, Regions.of(module.op, name))
    main = len(interface.tensors) + 2
    text = translate(
        module.op,
        target.function_attributes,
        entry=lambda count: interface.text(count - main),
        index_bits=target.index_bits,
    )
    code = compile_text(text, target, effort).code
    calls = undefined_symbols(code)
    file = f"{name}.o" if kind == "o" else f"lib{name}.{kind}"
    if kind == "a":
        code = static_library(code, [interface.entry, *interface.initial])
    elif kind == "so":
        if not is_linked(target):
            raise Unsupported("export", f"no shared library for {target.triple} is made", "write a static one, .a")
        code = link([code], f"{name}_", file, ANDROID if "android" in target.triple else NEEDED)
    files = {file: code, f"{name}.h": interface.header().encode()}
    if (regions := interface.regions).functions:
        arguments = ", ".join(parameter for parameter, _ in interface.tensors)
        text = regions.code(f'#include "{name}.h"\n') + regions.runner(interface.parameters, arguments)
        files[f"{name}_regions.c"] = text.encode()
    sources = [file for file in files if file.endswith(".c")]
    files[f"{name}.md"] = readme(
        name, file, graph, target, interface.tensors, interface.stream_parameters, calls
    ).encode()
    files[f"{name}.cmake"] = cmake(name, sources, [file], flags=compiler_flags(target)).encode()
    return files


def data(array: Array) -> str:
    """Return an array of bytes in LLVM IR: type and value."""
    raw = np.ascontiguousarray(array).tobytes() or b"\0"
    return f'[{len(raw)} x i8] c"{"".join(map(BYTES.__getitem__, raw))}"'


BYTES: Sequence[str] = [f"\\{code:02X}" for code in range(256)]


def literal(value: float) -> str:
    """Return a float as a C literal."""
    text = repr(float(np.float32(value)))
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"
