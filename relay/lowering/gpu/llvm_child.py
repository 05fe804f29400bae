"""The process that compiles for GPUs, because LLVM aborts its process when it cannot compile something.

Reads a line of JSON (`triple`, `cpu`, `features`, `level`, `format`: assembly or bin, `settings` of LLVM) and LLVM IR
text from standard input; writes the compiled code. Imports only llvmlite, because it is started often.
"""

from __future__ import annotations

import json
import re
import sys

import llvmlite.binding as llvm

ODD = re.compile(r"[ <(\[]i(?!(?:1|8|16|32|64)\b)(\d+)\b")
"""Matches integer types that LLVM's SPIR-V back end widens without clearing their upper bits."""

ONE_CONDITION = re.compile(r"^( *)(%\S+) = select ([a-z ]*)i1 (\S+), (<(\d+) x \S+>.*)$", re.MULTILINE)
"""Matches a selection between vectors by one bit, which SPIR-V supports only from version 1.4 on."""
EACH_LANE = r"""\1%"\2 first" = insertelement <\6 x i1> poison, i1 \4, i64 0
\1%"\2 lanes" = shufflevector <\6 x i1> %"\2 first", <\6 x i1> poison, <\6 x i32> zeroinitializer
\1\2 = select \3<\6 x i1> %"\2 lanes", \5"""


def compiled(text: str, triple: str, cpu: str, features: str, level: int, format: str, settings: list[str]) -> bytes:
    """Compile the LLVM IR `text`, optimized at `level`, and return the target's assembly such as PTX (`format` is
    `assembly`) or binary such as SPIR-V (`bin`). `settings`: command-line options of LLVM. Raises ValueError for
    integer types that SPIR-V lacks."""
    for setting in settings:
        llvm.set_option("", setting)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=level)
    module.triple = triple
    module.data_layout = str(machine.target_data)
    options = llvm.PipelineTuningOptions(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    if format == "bin":
        if (odd := ODD.search(str(module))) is not None:
            raise ValueError(f"error: SPIR-V has no integers of {odd[1]} bits")
        module = llvm.parse_assembly(ONE_CONDITION.sub(EACH_LANE, str(module)))
    return machine.emit_assembly(module).encode() if format == "assembly" else machine.emit_object(module)


def main() -> None:
    """Read options (a line of JSON) and LLVM IR text from standard input, compile the text by `compiled`, and write the
    result to standard output."""
    options = json.loads(sys.stdin.buffer.readline())
    code = compiled(sys.stdin.buffer.read().decode(), **options)
    sys.stdout.buffer.write(code)


if __name__ == "__main__":
    main()
