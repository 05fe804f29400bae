"""`docs/passes.md` from the passes, `docs/operators.md` from the ops, the tables of operators in `docs/support.md` from
the importers, the operator in `docs/architecture.md` from a build. `python docs/generate.py` writes them, and tests
compare them."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from xdsl.ir import Attribute, Dialect
from xdsl.irdl import (
    AnyOf,
    AttrOrPropDef,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    OptionalDef,
    ParamAttrConstraint,
    RangeLengthConstraint,
    RangeOf,
    VariadicDef,
)
from xdsl.passes import ModulePass
from xdsl.utils.hints import type_repr

import relay
from relay.compile.pipeline import default_pipeline
from relay.dialects.irdl import dialects
from relay.dialects.op import TensorOp
from relay.frontend import supported_operators
from relay.frontend.keras.operators import REFUSED as KERAS_REFUSED
from relay.frontend.keras.operators import TABLE as KERAS_TABLE
from relay.frontend.onnx.operators import TABLE
from relay.frontend.tflite.profiles import PROFILES
from relay.frontend.torch.operators import REFUSED
from relay.frontend.torch.operators import TABLE as TORCH_TABLE
from relay.lowering.llvm_ir import program
from relay.module import IRModule
from relay.passes.base import Pass
from relay.passes.config import options
from relay.passes.info import info_of, names_of, why_of
from relay.passes.pipeline import Pipeline
from relay.passes.registry import find
from relay.universe import PASSES

PAGE = Path(__file__).parent / "passes.md"
LEVELS = range(5)
HEAD = """# Passes

Written by `python docs/generate.py` from the passes; do not edit.

`relay.build` runs `relay.default_pipeline(target, opt_level)`; `relay-opt --show-pipeline -O2` prints it. A pass runs
from its level on (`PassContext(opt_level=2)` is the default). Level 0 is what correctness needs; the integers are equal
at every level. LLVM's own effort is 0 at level 0, 1 at level 1, and 3 from level 2 on.

"""


def levels() -> list[str]:
    """The table of the default pipeline: where each pass runs, and why it is there."""
    lines = ["| pass | " + " | ".join(map(str, LEVELS)) + " | why |", "|---" * (len(LEVELS) + 2) + "|"]
    at = [[step.name for step in default_pipeline("llvm", level)] for level in LEVELS]
    for step in default_pipeline("llvm", LEVELS[-1]):
        marks = " | ".join("x" if step.name in names else " " for names in at)
        lines.append(f"| [`{step.name}`](#{step.name}) | {marks} | {why_of(step)} |")
    return [*lines, ""]


def properties(classes: list[type[Pass]]) -> list[str]:
    """Which pass establishes, requires and invalidates each property."""
    lines = ["## Properties", "", "A pass's own name is a property too.", ""]
    lines += ["| property | established by | required by | invalidated by |", "|---|---|---|---|"]
    for prop in dict.fromkeys(prop for cls in classes for prop in cls.establishes):
        by = [
            ", ".join(f"`{cls.name}`" for cls in classes if prop in (getattr(cls, what) or ()))
            for what in ("establishes", "requires", "invalidates")
        ]
        lines.append(f"| {prop} | {by[0]} | {by[1]} | {by[2]} |")
    return [*lines, ""]


def describe(cls: type[ModulePass]) -> list[str]:
    """One pass: documentation, names, level, properties, options."""
    info, aliases = info_of(cls()), [name for name in names_of(cls)[1:]]
    lines = [f"## `{cls.name}`", ""]
    if issubclass(cls, Pass):
        lines += [inspect.cleandoc(cls.__doc__ or ""), ""]
    else:
        lines += [f"xDSL's own: {why_of(cls())}.", ""]
    lines.append(f"- also named {', '.join(f'`{alias}`' for alias in aliases)}; from level {info.opt_level}")
    for what, found in (
        ("requires", info.requires),
        ("establishes", info.establishes),
        ("invalidates", info.invalidates),
    ):
        if found:
            lines.append(f"- {what} {', '.join(found)}")
    for name, key in options(cls).items():
        if not key.deprecated:
            lines.append(f"- option `{name}`: {type_repr(key.type)}, default `{key.default!r}`")
    return [*lines, ""]


def page() -> str:
    """The whole page."""
    classes = [cls for name in PASSES if issubclass(cls := find(name), Pass)]
    foreign = [find(name) for name in ("canonicalize", "cse", "dce")]
    lines = [*levels(), *properties(classes), *(line for cls in (*classes, *foreign) for line in describe(cls))]
    return HEAD + "\n".join(lines).rstrip() + "\n"


OPERATORS = Path(__file__).parent / "operators.md"
OPERATORS_HEAD = """# Operators

Written by `python docs/generate.py` from the classes of `relay/dialects`; do not edit.

Every op of ours: what it computes, what it takes and gives, and where that is from. An op of `relay` has the name and
the attributes of [Relay](https://tvm.apache.org/docs/v0.15.0/reference/langref/relay_op.html)'s, with `relay.` before
it, and its meaning unless the op says otherwise; one of `qnn` computes TFLite's reference kernel. `?` is an attribute
that may be left out. The meaning is also written in numpy, one function per op, in `relay/interpreters`; tests
compare the compiled code with it. In Python an op is made by its class: `relay.dialects.relay.ClipOp.make([x],
{"a_min": ..., "a_max": ...})` infers the results.

"""
WORDS = {
    "Attribute": "any",
    "DenseArrayBase": "integers",
    "DenseIntOrFPElementsAttr": "elements",
    "DenseResourceAttr": "elements",
    "FloatAttr": "float",
    "IntegerAttr": "integer",
    "IntegerType": "integer type",
    "StringAttr": "text",
    "TensorType": "tensor",
    "TypedAttribute": "number",
    "UnitAttr": "flag",
    "VectorType": "vector",
    "WeightAttr": "elements",
}
"""What classes of attributes are called on the page."""


def kind_of(constraint: object) -> str:
    """What a constraint takes, in words."""
    match constraint:
        case RangeLengthConstraint():
            return kind_of(constraint.constraint)
        case RangeOf():
            return kind_of(constraint.constr)
        case EqAttrConstraint():
            return f"`{constraint.attr}`"
        case AnyOf():
            return " or ".join(dict.fromkeys(map(kind_of, constraint.attr_constrs)))
        case ParamAttrConstraint():
            parts = str(constraint.param_constrs)
            boolean = constraint.base_attr.__name__ == "IntegerAttr" and "IntegerType(1)" in parts
            return "bool" if boolean else WORDS.get(constraint.base_attr.__name__, constraint.base_attr.__name__)
        case BaseAttr():
            return WORDS.get(constraint.attr.__name__, constraint.attr.__name__)
        case _:
            return "any"


def value_row(name: str, definition: object) -> str:
    """An operand or a result: `name`: tensor."""
    many = "any number of " if isinstance(definition, VariadicDef) and not isinstance(definition, OptionalDef) else ""
    mark = "?" if isinstance(definition, OptionalDef) else ""
    kind = kind_of(getattr(definition, "constr", None))
    return f"`{name}`{mark}: {many}{kind}{'s' if many and kind == 'tensor' else ''}"


def attribute_row(name: str, definition: AttrOrPropDef) -> str:
    """An attribute: `name`: integer = `1 : i64`."""
    mark = "?" if isinstance(definition, OptionalDef) else ""
    default: Attribute | None = definition.default_value
    return f"`{name}`{mark}: {kind_of(definition.constr)}" + (f" = `{default}`" if default is not None else "")


def inherited(op: type[IRDLOperation]) -> Iterator[str]:
    """What the op's bases say of all that are of them."""
    for base in op.__mro__[1:]:
        if base is TensorOp or base is IRDLOperation:
            return
        if base.__module__ == TensorOp.__module__:
            continue
        if issubclass(base, IRDLOperation) and "__doc__" in vars(base) and base.__doc__:
            yield f"`{base.__name__}`: {inspect.cleandoc(base.__doc__)}"


def describe_op(op: type[IRDLOperation]) -> list[str]:
    """One op: what it computes, what its kind does, operands, attributes, results, its class."""
    definition = op.get_irdl_definition()
    lines = [f"### `{op.name}`", "", inspect.cleandoc(op.__doc__ or ""), ""]
    for text in inherited(op):
        lines += [text, ""]
    rows = {
        "takes": [value_row(name, operand) for name, operand in definition.operands],
        "attributes": [attribute_row(*item) for item in (definition.properties | definition.attributes).items()],
        "regions": [f"`{name}`" for name, _ in definition.regions],
        "gives": [value_row(name, result) for name, result in definition.results],
    }
    lines += [f"- {what} {', '.join(row)}" for what, row in rows.items() if row]
    path = op.__module__.replace(".", "/") + ".py"
    return [*lines, f"- class [`{op.__name__}`](../{path})", ""]


def describe_dialect(dialect: Dialect) -> list[str]:
    """A dialect's ops by the modules they are written in."""
    ops = [op for op in dialect.operations if issubclass(op, IRDLOperation)]
    ops.sort(key=lambda op: (op.__module__, op.name))
    home = sys.modules[f"relay.dialects.{dialect.name}"]
    lines = [f"# `{dialect.name}`", ""]
    if dialect.name != "relay":
        lines += [inspect.cleandoc(home.__doc__ or ""), ""]
    names = [op.name.partition(".")[2] for op in sorted(ops, key=lambda op: op.name)]
    links = [f"[{name}](#{dialect.name}{name.replace('.', '')})" for name in names]
    lines += [f"{len(ops)} op{'s' * (len(ops) > 1)}: {', '.join(links)}.", ""]
    for name, group in groupby(ops, key=lambda op: op.__module__):
        if name != home.__name__:
            kind = name.rpartition(".")[2].replace("_", " ")
            lines += [f"## `{dialect.name}`: {kind}", "", inspect.cleandoc(sys.modules[name].__doc__ or ""), ""]
        for op in group:
            lines += describe_op(op)
    return lines


def operators_page() -> str:
    """The whole page of operators."""
    lines = [line for dialect in dialects() for line in describe_dialect(dialect)]
    return OPERATORS_HEAD + "\n".join(lines).rstrip() + "\n"


SUPPORT = Path(__file__).parent / "support.md"
MARKS = ("<!-- operators: written by python docs/generate.py -->\n", "<!-- end -->\n")


def kinds_table() -> str:
    """The operators that the importer takes, by its table, and the numerics by theirs."""
    lines = ["| Operator | Versions |", "|---|---|"]
    lines += [f"| {kind} | {first} to {last} |" for kind, (first, last) in supported_operators().items()]
    lines += ["", "| `numerics` | Operators on codes that it takes ([which integers](numerics.md)) |", "|---|---|"]
    for name, profile in PROFILES.items():
        kinds = "all above" if profile.kinds is None else ", ".join(profile.kinds)
        lines.append(f"| `{name}` | {kinds} |")
    return "\n".join(lines) + "\n"


ONNX_MARKS = ("<!-- operators of ONNX: written by python docs/generate.py -->\n", "<!-- end of operators -->\n")


def onnx_table() -> str:
    """The operators of ONNX that have a rule of their own, by domain."""
    lines = ["| Domain | Operators |", "|---|---|"]
    for domain in sorted({domain for domain, _ in TABLE}):
        kinds = ", ".join(sorted(kind for of, kind in TABLE if of == domain))
        lines.append(f"| {domain or 'ai.onnx'} | {kinds} |")
    return "\n".join(lines) + "\n"


TORCH_MARKS = ("<!-- operators of PyTorch: written by python docs/generate.py -->\n", "<!-- end of PyTorch -->\n")


def torch_table() -> str:
    """The operators of PyTorch that have a rule, by dialect, and those that are refused by name."""
    lines = ["| Dialect | Operators |", "|---|---|"]
    for dialect in sorted({target.partition(".")[0] for target in TORCH_TABLE}):
        own = {target.removeprefix(f"{dialect}.") for target in TORCH_TABLE if target.startswith(f"{dialect}.")}
        names = sorted(name for name in own if not name.endswith("_") or name.startswith("__"))
        lines.append(f"| {dialect} | {', '.join(names)} |")
    return "\n".join(lines + refused_rows(REFUSED, "Operators")) + "\n"


def refused_rows(refused: dict[str, str], title: str) -> list[str]:
    """A table of what is refused by name, by reasons."""
    reasons: dict[str, list[str]] = {}
    for target, why in refused.items():
        reasons.setdefault(why, []).append(target.removeprefix("aten."))
    lines = ["", f"| Refused, because it | {title} |", "|---|---|"]
    return lines + [f"| {why} | {', '.join(sorted(names))} |" for why, names in sorted(reasons.items())]


KERAS_MARKS = ("<!-- layers of Keras: written by python docs/generate.py -->\n", "<!-- end of Keras -->\n")


def keras_table() -> str:
    """The layers of Keras that have a rule, the operations of `keras.ops`, and the layers that are refused by name."""
    operations = sorted(name.removeprefix("ops.") for name in KERAS_TABLE if name.startswith("ops."))
    layers = sorted(name for name in KERAS_TABLE if not name.startswith("ops."))
    lines = ["| | Classes |", "|---|---|", f"| Layers | {', '.join(layers)} |"]
    lines.append(f"| `keras.ops` | {', '.join(operations)} |")
    return "\n".join(lines + refused_rows(KERAS_REFUSED, "Layers")) + "\n"


def support_page() -> str:
    """The page of what is supported, with the tables anew."""
    text = SUPPORT.read_text()
    tables = ((MARKS, kinds_table), (ONNX_MARKS, onnx_table), (TORCH_MARKS, torch_table), (KERAS_MARKS, keras_table))
    for (begin, end), table in tables:
        head, rest = text.split(begin)
        text = head + begin + table() + end + rest.split(end)[1]
    return text


ARCHITECTURE = Path(__file__).parent / "architecture.md"
FOLLOWED_MARKS = ("<!-- one operator: written by python docs/generate.py -->\n", "<!-- end of the operator -->\n")
FOLLOWED = """func.func @main(%x: tensor<1x16xf32>) -> tensor<1x16xf32> {
  %0 = relay.nn.relu %x : (tensor<1x16xf32>) -> tensor<1x16xf32>
  func.return %0 : tensor<1x16xf32>
}
"""
MACHINE = "x86_64-unknown-linux-gnu -mcpu=cascadelake"
SHOWN = {"fuse-ops": 1, "relay-to-linalg": 2, "plan-memory": 3}
"""The passes after which the kernel is shown, with the stage that it is on then."""


def followed() -> str:
    """One operator on each stage: its kernel after the passes that complete the stage, LLVM IR, and instructions."""
    mod, parts = IRModule.parse(FOLLOWED), [("Stage 0, as a file has it", "mlir", FOLLOWED)]
    for step in default_pipeline(MACHINE, 2):
        mod = Pipeline([step])(mod)
        if step.name in SHOWN:
            parts.append((f"Stage {SHOWN[step.name]}, after `{step.name}`", "mlir", kernel_in(mod.to_text())))
    written = program(mod.op).text.partition("\ndefine internal")[2].partition("\n}\n")[0]
    parts.append(("Stage 4, LLVM IR", "llvm", f"define internal{written}\n}}\n"))
    assembly = relay.build(IRModule.parse(FOLLOWED), target=MACHINE).get_source("asm")
    vectors = [line.strip().expandtabs(8) for line in assembly.partition("relay_main")[0].splitlines() if "zmm" in line]
    parts.append(("and its instructions on vectors", "asm", "\n".join([*vectors, ""])))
    return "\n".join(f"{title}:\n\n```{language}\n{text}```\n" for title, language, text in parts)


def kernel_in(text: str) -> str:
    """The function of the one kernel in a module's text, without what was noted on it."""
    body = text.partition("  func.func private ")[2].partition("\n  }\n")[0]
    lines = re.sub(r" attributes \{relay\.schedule.*\} \{", " {", f"func.func private {body}\n}}\n").splitlines()
    return "\n".join([line.removeprefix("  ") if line.startswith("    ") else line for line in lines] + [""])


def architecture_page() -> str:
    """The page of the architecture, with the operator anew."""
    begin, end = FOLLOWED_MARKS
    head, rest = ARCHITECTURE.read_text().split(begin)
    return head + begin + followed() + end + rest.split(end)[1]


if __name__ == "__main__":
    ARCHITECTURE.write_text(architecture_page())
    PAGE.write_text(page())
    OPERATORS.write_text(operators_page())
    SUPPORT.write_text(support_page())
