"""The checks of `relay-dialect test`: a plug-in's dialect must pass what this project's tests require of relay's own
dialects."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.hints import isa

from relay.compile.entry import build
from relay.dialects import plug_in
from relay.dialects.attributes import Array, dtype_of, elements
from relay.dialects.context import make_context
from relay.dialects.element_types import StoredType
from relay.dialects.op import TensorOp, rank, tensor
from relay.dialects.plug_in import known
from relay.dialects.relay import ConstantOp
from relay.dialects.source import LocatingParser
from relay.errors import RelayError
from relay.interpreters import evaluate, has_meaning, run
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.module import IRModule
from relay.passes import Pass, PassContext
from relay.tools.examples import functions, invalid, one_main, ops, random_input, random_inputs, runnable, valid
from relay.transforms.equality import difference
from relay.transforms.fold_constant import FoldConstant
from relay.transforms.legalize import Legalize

TOLERANCE = 1e-5
"""The largest accepted error of floats from compiled code, relative to the largest magnitude of the reference."""
MLIR_OPT = "mlir-opt-22"
MLIR_FLAGS = ("--allow-unregistered-dialect", "--mlir-print-op-generic")


def check(name: str) -> list[str]:
    """The faults of the dialect of this name, one line each; empty if it passes all checks.

    Raises InvalidArgument if no package has the dialect, and Unsupported if it cannot be loaded.
    """
    subject, faults = Subject(known(name)), list[str]()
    plug_in.dialect_of(name)
    for title, find in CHECKS.items():
        try:
            faults += [f"{title}: {fault}" for fault in find(subject)]
        except RelayError as error:
            if not any(fault.endswith(str(error)) for fault in faults):
                faults.append(f"{title}: {error}")
    return faults


@dataclass(frozen=True)
class Subject:
    """The dialect being checked and its examples."""

    name: str

    @cached_property
    def ops(self) -> list[type[Operation]]:
        return [*plug_in.dialect_of(self.name).operations]

    @cached_property
    def file(self) -> str:
        """The name of the examples file in messages, as `package:path`; empty if the plug-in gives none."""
        given = plug_in.dialect_plug_in(self.name)
        return "" if given is None else given.examples

    @cached_property
    def text(self) -> str:
        package, _, file = self.file.partition(":")
        with plug_in.blamed(self.name, f"its examples, {self.file or 'none'}, cannot be read"):
            return (files(package) / file).read_text("utf-8")

    @cached_property
    def functions(self) -> list[FuncOp]:
        """The functions of the valid examples."""
        return functions(self.text, self.file)

    def examples(self, op: type[Operation]) -> list[FuncOp]:
        """The valid examples that contain the op."""
        return [each for each in self.functions if any(isinstance(inner, op) for inner in each.body.walk())]

    @cached_property
    def main(self) -> tuple[IRModule, list[str]]:
        """All runnable examples in one `@main`, and for each of its results the function and op that it comes from."""
        return one_main([*filter(None, map(runnable, self.functions))])

    def inputs(self) -> Iterator[list[Array]]:
        """Arguments for `main`: first random ones, then extreme integers."""
        inputs = random_inputs(self.main[0])
        yield inputs
        random = np.random.default_rng(1)
        yield [extremes(array, random) for array in inputs]


def extremes(array: Array, random: np.random.Generator) -> Array:
    """An array of random choices among the smallest and largest value, 0, 1 and -1 of its type, for integers of up to
    32 bits; other arrays are returned unchanged."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize > 4:
        return array
    info = np.iinfo(array.dtype)
    given = np.array([info.min, info.max, 0, 1, max(-1, info.min)], array.dtype)
    return random.choice(given, array.shape)


def documentation(subject: Subject) -> Iterator[str]:
    for op in subject.ops:
        if not op.__doc__:
            yield f"{op.name} has no docstring: write its formula there"


def completeness(subject: Subject) -> Iterator[str]:
    for op in subject.ops:
        found = subject.examples(op)
        if not issubclass(op, TensorOp):
            yield f"{op.name} is no relay.dialects.op.TensorOp, by which passes know what they may do with it"
        elif not found:
            yield f"{op.name} has no example: write a function with it into {subject.file}"
        elif not has_meaning(next(each for each in found[0].body.walk() if isinstance(each, op))):
            yield f"{op.name} has no meaning"
        elif op in plug_in.part(subject.name, "scalars") and not op.ELEMENTWISE:
            yield f"{op.name} has scalar code, which is used of ops that are ELEMENTWISE only"
        else:
            yield from lowering(subject, op, found)


def lowering(subject: Subject, op: type[Operation], found: Sequence[FuncOp]) -> Iterator[str]:
    """Faults in the op's lowering: no runnable example, or an example that does not lower to linalg."""
    function = next(filter(None, map(runnable, found)), None)
    if function is None:
        yield f"{op.name} has no example that can be run with 2 for ?"
        return
    module = IRModule()
    module["main"] = function
    try:
        RelayToLinalg()(Legalize()(module))
    except RelayError as error:
        yield f"{op.name} becomes no linalg: {error}"


def text(subject: Subject) -> Iterator[str]:
    source = valid(subject.text)
    written = [line.strip() for line in source.splitlines() if line.strip() and not line.strip().startswith("//")]
    module = IRModule.parse(source, name=subject.file)
    printed = module.to_text(weights=True)
    for line, given in zip((line.strip() for line in printed.splitlines()[1:-1]), written, strict=False):
        if line != given:
            yield f"{given!r} is printed {line!r}"
    if IRModule.parse(module.to_text(weights=True, generic=True)).to_text(weights=True) != printed:
        yield "the generic form is read as something else"


def messages(subject: Subject) -> Iterator[str]:
    for message, source in invalid(subject.text, subject.file):
        try:
            LocatingParser(make_context(), source, subject.file).parse_module().verify()
        except (ParseError, VerifyException) as error:
            if message not in str(error):
                yield f"{str(error).strip().splitlines()[-1]!r} is said where {message!r} should be"
        else:
            yield f"nothing is said where {message!r} should be"
    for op in subject.ops:
        if found := subject.examples(op):
            yield from other_results(op, next(each for each in found[0].clone().body.walk() if isinstance(each, op)))


def other_results(op: type[Operation], found: Operation) -> Iterator[str]:
    """Faults if the op's verifier accepts a result of another shape, or rejects it with a message that does not begin
    with the op's name."""
    for number, result in enumerate(tuple(found.results)):
        if not isa(type := result.type, TensorType[Attribute]):
            continue
        Rewriter.replace_value_with_new_type(result, TensorType(type.element_type, [7] * 7))
        try:
            found.verify(verify_nested_ops=False)
        except VerifyException as error:
            if not str(error).splitlines()[-1].strip().startswith(op.name):
                yield f"{op.name} refuses a result of another shape without its name: {error}"
        else:
            yield f"{op.name} takes any shape for result {number}"
        Rewriter.replace_value_with_new_type(found.results[number], type)


def types(subject: Subject) -> Iterator[str]:
    """Faults if an op's numpy implementation returns another dtype or shape than its type inference. Both must agree,
    since constant folding replaces an op by the results of its numpy implementation."""
    module, names = subject.main
    assert isinstance(end := module["main"].body.block.last_op, ReturnOp)
    wanted = [tensor(value) for value in end.arguments]
    for inputs in subject.inputs():
        for name, array, type in zip(names, run(module, inputs), wanted, strict=True):
            if (array.dtype, array.shape) != (dtype_of(type.element_type), type.get_shape()):
                yield f"{name} means {array.dtype} of shape {list(array.shape)}, and its type is {type}"


def facts(subject: Subject) -> Iterator[str]:
    """Faults if an op declares that index i of a result depends only on index i of its operands (`ELEMENTWISE`,
    `independent_along`) but its numpy implementation contradicts this. Passes that split batches rely on these
    declarations."""
    for function in filter(None, map(runnable, subject.functions)):
        for op in ops(function):
            if op.name.startswith(f"{subject.name}.") and (wrong := dependent_axes(op)):
                yield f"{op.name} says that indices along axis {wrong[0]} are independent, and they are not"


def dependent_axes(op: TensorOp) -> list[int]:
    """The axes along which the op declares indices to be independent although a change at one index changes results at
    others."""
    random, data = np.random.default_rng(2), op.data_operands()
    given = [random_input(tensor(value), random) for value in op.operands]
    before = evaluate(op, given)
    wrong: list[int] = []
    for axis in (axis for axis in range(rank(op.results[0])) if op.independent_along(axis)):
        for position, array in enumerate(given):
            if op.operands[position] not in data or array.shape != before[0].shape:
                continue
            first, rest = ((*[slice(None)] * axis, each) for each in (slice(1), slice(1, None)))
            other = array.copy()
            other[first] = random_input(tensor(op.operands[position]), random)[first]
            after = evaluate(op, [*given[:position], other, *given[position + 1 :]])
            if any(difference([a[rest]], [b[rest]]) for a, b in zip(after, before, strict=True)):
                wrong.append(axis)
    return wrong


def folding(subject: Subject) -> Iterator[str]:
    """Faults if an op with constant operands is not folded, or if folding changes the results. Operands of the
    plug-in's own types stay arguments, since constants cannot have such types."""
    module, names = subject.main
    for inputs in subject.inputs():
        constant = module.clone()
        block = constant["main"].body.block
        assert (first := block.first_op) is not None
        left = list[Array]()
        for argument, array in zip(tuple(block.args), inputs, strict=True):
            made = ConstantOp.make([], {"value": elements(array)})
            if made.result.type != argument.type:
                left.append(array)
                continue
            block.insert_op_before(made, first)
            argument.replace_all_uses_with(made.result)
            block.erase_arg(argument)
        constant["main"].update_function_type()
        folded = FoldConstant()(constant)
        if kept := {op.name for op in ops(folded["main"]) if of_constants(subject, op)}:
            yield f"{', '.join(sorted(kept))} of constants is not folded"
        yield from differing(names, run(folded, left), run(module, inputs), 0.0, "folded")


def of_constants(subject: Subject, op: TensorOp) -> bool:
    """Whether the op belongs to the dialect, all its operands are constants, and its results can be constants."""
    constants = op.operands and all(isinstance(value.owner, ConstantOp) for value in op.operands)
    stored = any(isinstance(tensor(value).element_type, StoredType) for value in op.results)
    return bool(constants) and not stored and op.name.startswith(f"{subject.name}.")


def compiled(subject: Subject) -> Iterator[str]:
    """Faults if compiled code (levels 0 and 2) computes something else than the ops' numpy implementation."""
    module, names = subject.main
    for level in (0, 2):
        with PassContext(opt_level=level):
            executable = build(module)
        for inputs in subject.inputs():
            got = executable.run(*inputs)
            results = [np.asarray(each) for each in (got if isinstance(got, tuple) else (got,))]
            yield from differing(names, results, run(module, inputs), TOLERANCE, f"compiled at level {level}")


def differing(
    names: Sequence[str], got: Sequence[Array], wanted: Sequence[Array], tolerance: float, how: str
) -> Iterator[str]:
    for name, a, b in zip(names, got, wanted, strict=True):
        if (wrong := difference([a], [b], tolerance)) is not None:
            yield f"{name}, {how}, {wrong.removeprefix('result 0 ')}"


def upstream(subject: Subject) -> Iterator[str]:
    """Faults if `mlir-opt` rejects the generic form or changes it in a round trip; none if it is not installed."""
    if shutil.which(MLIR_OPT) is None:
        return
    module = IRModule.parse(valid(subject.text), name=subject.file)
    given = module.to_text(weights=True, generic=True)
    done = subprocess.run([MLIR_OPT, *MLIR_FLAGS], input=given, capture_output=True, text=True)
    if done.returncode != 0:
        yield f"{MLIR_OPT} refuses the generic form: {done.stderr.strip().splitlines()[0]}"
    elif not IRModule.parse(done.stdout).op.is_structurally_equivalent(module.op):
        yield f"{MLIR_OPT} prints the generic form as something else"


def passes(subject: Subject) -> Iterator[str]:
    for name in plug_in.part(subject.name, "passes"):
        cls: object = plug_in.passes()[name]()
        if not (isinstance(cls, type) and issubclass(cls, ModulePass)):
            yield f"{name} is no pass"
        elif cls.name != name:
            yield f"{name} calls itself {cls.name}"
        elif not cls.__doc__ or cls.__doc__.startswith(f"{cls.__name__}("):
            yield f"{name} has no docstring"
        elif not issubclass(cls, Pass):
            yield f"{name} is no relay.passes.Pass: its options are no keys of PassContext.config"


CHECKS: dict[str, Callable[[Subject], Iterator[str]]] = {
    "documentation": documentation,
    "completeness": completeness,
    "text": text,
    "messages": messages,
    "types": types,
    "facts": facts,
    "folding": folding,
    "compiled code": compiled,
    "mlir-opt": upstream,
    "passes": passes,
}
"""The checks by title, in the order in which they run; each yields faults."""
