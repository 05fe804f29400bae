"""`export_c`: writes a whole model as C files, for any machine that has a C compiler."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from relay import signature
from relay.byoc.c import readme, source
from relay.byoc.c.ctype import F32
from relay.byoc.c.emit import emit
from relay.byoc.c.model import Model
from relay.byoc.c.program import Tensor
from relay.byoc.partitioning.compile_external import CompileExternal
from relay.errors import InvalidArgument
from relay.files import folder_of, write_folder
from relay.lowering.c_stream import Parameter, declarations
from relay.lowering.exported_regions import Regions, prototypes
from relay.lowering.exported_texts import cmake
from relay.module import IRModule
from relay.passes.info import as_module
from relay.signature import TensorInfo

BASE_ALIGNMENT = 8
"""The alignment of the arena in bytes, that of the widest type."""


def export_c(
    mod: IRModule | ModuleOp, folder: str | PathLike[str], name: str = "model", function: str = "main"
) -> list[Path]:
    """Write a function of the module as C files: `name.c`, `name.h`, `name.cmake` (a library for CMake), and `name.md`,
    which tells how to call the model. Returns the paths of the files.

    The C is C99 without any library but memcpy (and math.h where the model computes floats), with the weights as
    `static const` arrays; integers equal the interpreter's. The module is not changed. For a partitioned module,
    `name_regions.c` has the artifacts of external compilers, and calls their C functions (`Artifact.device`).

    Raises Unsupported, naming the op and its source, for an op that the compiler `c` does not support, and for a region
    whose artifact has no C functions to run it; InvalidArgument if the name is no identifier of C, or the files cannot
    be written.
    """
    model = read(mod, name, function)
    texts = {
        f"{name}.h": header(model),
        f"{name}.c": code(model, f'#include "{name}.h"\n'),
        f"{name}.md": readme.text(model, stream_parameters(model)),
    }
    if model.regions.functions:
        texts[f"{name}_regions.c"] = model.regions.code(f'#include "{name}.h"\n')
    sources = [file for file in texts if file.endswith(".c")]
    options = ["-std=c99", "-O2", "-ffp-contract=off"]
    texts[f"{name}.cmake"] = cmake(name, sources, [], options)
    return write_folder(folder_of(folder), {file: text.encode() for file, text in texts.items()})


def read(mod: IRModule | ModuleOp, name: str, function: str) -> Model:
    """Lower the function to C and return what the exported files will contain: the program, and the descriptions of its
    inputs, outputs and external regions. Raises InvalidArgument if `name`, the prefix of the exported names, is no C
    identifier."""
    if not name.isascii() or not name.isidentifier():
        raise InvalidArgument("export_c", f"the name {name!r} is no identifier of C", "use letters, digits and _")
    module = as_module(mod)
    inputs, outputs = signature.read(module[function])
    compiled = CompileExternal()(module)
    regions = Regions.of(compiled.op, name)
    return Model(name, emit(compiled[function], regions, compiled.op), inputs, outputs, regions)


def header(model: Model) -> str:
    """The text of the header file `name.h`, which declares the model's C functions, its tensors and their sizes."""
    name, macro = model.name, model.macro
    tensors = "".join(
        f"/* {tensor.name}: {source.plain(meaning(tensor, info))} */\n"
        f"#define {macro}_{tensor.name.upper()}_COUNT {tensor.count}\n"
        for tensor, info in model.rows
    )
    initial = "".join(
        f"/* What the state {tensor.name} starts with. */\nextern const {tensor.type.name} {name}_initial_{number}"
        f"[{macro}_{tensor.name.upper()}_COUNT];\n"
        for number, (tensor, info) in enumerate(model.rows)
        if tensor.place == "input" and info.initial is not None
    )
    failed = ", or the number from 1\n   of the region that failed" if model.regions.functions else ""
    return f"""/* A neural network in C99, made by relay: how to call it. */
#ifndef {macro}_H
#define {macro}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define {macro}_ARENA_BYTES {model.arena}
#define {macro}_INPUTS {len(model.inputs)}
#define {macro}_OUTPUTS {len(model.outputs)}

{tensors}
typedef struct {{
    const char *name; /* as in the model's file */
    const char *kind; /* "input", "output" or "state" */
    const char *type;
    int32_t rank;
    const int32_t *shape;
    int32_t bytes;
    float scale; /* real = scale * (code - zero_point); 0 where numbers are no codes */
    int32_t zero_point;
}} {name}_tensor;

extern const {name}_tensor {name}_inputs[{macro}_INPUTS];
extern const {name}_tensor {name}_outputs[{macro}_OUTPUTS];
{initial}
{model.regions.header()}/* Runs the model in an arena of {macro}_ARENA_BYTES bytes, aligned to {BASE_ALIGNMENT}.
   Reentrant. Returns 0, or -1 if the arena is not aligned{failed}. Tensors are dense, row-major, and do not overlap. */
int {name}_run_in(void *arena, {model.parameters});
{declarations(name, f"{name}_run_in", BASE_ALIGNMENT, stream_parameters(model))}
#ifndef {macro}_NO_STATIC_ARENA
/* The same in an arena of the model's own: one call at a time. */
int {name}_run({model.parameters});
#endif

#ifdef __cplusplus
}}
#endif

#endif
"""


def stream_parameters(model: Model) -> list[Parameter]:
    """The model's inputs and outputs, its states among them, as parameters of the C functions of a stream: a sequence
    of runs, between which the states are kept."""
    return [
        Parameter(
            tensor.name,
            tensor.type.name,
            info.kind,
            info.name,
            None if tensor.place == "output" or info.initial is None else f"{model.name}_initial_{number}",
        )
        for number, (tensor, info) in enumerate(model.rows)
    ]


def meaning(tensor: Tensor, info: TensorInfo) -> str:
    """The description of a tensor in a comment: kind, name, type, shape and quantization."""
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    scale = "" if info.scale is None else f", real = {np.float32(info.scale)} * (code - {info.zero_point})"
    return f"{info.kind} {info.name}, {tensor.type.name} {shape}{scale}"


def code(model: Model, declarations: str) -> str:
    """The C source that defines the model's functions and constants, to be written to a file. `declarations`: the text
    of the model's header, or an #include of it."""
    parts = (
        "/* A neural network in C99, made by relay. */\n",
        source.includes(model.program) + "\n" + declarations,
        *map(prototypes, model.regions.devices),
        source.definitions(model.program),
        tables(model),
        functions(model),
        source.long_constants(model.program),
    )
    return "\n".join(part for part in parts if part)


def tables(model: Model) -> str:
    """Definitions of the tables that the header declares: tensor descriptions and initial states."""
    name, lines = model.name, list[str]()
    for group, tensors, infos in (
        ("inputs", model.program.inputs, model.inputs),
        ("outputs", model.program.outputs, model.outputs),
    ):
        rows: list[str] = []
        for tensor, info in zip(tensors, infos, strict=True):
            shape = ", ".join(map(str, tensor.shape)) or "1"
            lines.append(f"static const int32_t shape_of_{tensor.name}[] = {{{shape}}};\n")
            scale = "0.0f" if info.scale is None else F32.literal(info.scale)
            text = (quoted(info.name), quoted(info.kind), quoted(tensor.type.name))
            size = tensor.count * tensor.type.size
            numbers = (len(tensor.shape), f"shape_of_{tensor.name}", size, scale, info.zero_point)
            rows.append(f"    {{{', '.join(map(str, (*text, *numbers)))}}},\n")
        lines.append(f"\nconst {name}_tensor {name}_{group}[] = {{\n{''.join(rows)}}};\n\n")
    for number, (tensor, info) in enumerate(zip(model.program.inputs, model.inputs, strict=True)):
        if info.initial is not None:
            values = np.ascontiguousarray(info.initial).reshape(-1)
            lines.append(f"const {tensor.type.name} {name}_initial_{number}[] = {{\n")
            lines.append(source.numbers(values, tensor.type) + "};\n\n")
    return "".join(lines)


def functions(model: Model) -> str:
    """The C functions that run the model."""
    name = model.name
    arguments = ", ".join(tensor.name for tensor, _ in model.rows)
    unused = "".join(f"    (void){tensor.name};\n" for tensor, _ in model.rows if not tensor.used)
    return f"""int {name}_run_in(void *arena_start, {model.parameters})
{{
    uint8_t *const arena = (uint8_t *)arena_start;
    if ((uintptr_t)arena % {BASE_ALIGNMENT} != 0)
        return -1;
{unused}{source.body(model.program)}
    return 0;
}}

#ifndef {model.macro}_NO_STATIC_ARENA
static union {{
    int64_t alignment;
    uint8_t bytes[{model.macro}_ARENA_BYTES];
}} own_arena;

int {name}_run({model.parameters})
{{
    return {name}_run_in(own_arena.bytes, {arguments});
}}
#endif
"""


def quoted(text: str) -> str:
    """A C string literal; characters other than printable ASCII become `?`."""
    plain = "".join(c if " " <= c <= "~" else "?" for c in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + '"'
