"""Records what PyTorch's operators give on random inputs: the cases that `test_torch_operators.py` replays.

    python -m tests.numeric.torch_recording tests/numeric/torch_cases.npz

Needs torch with its test dependencies (expecttest) beside relay. Inputs are those of PyTorch's own tests (`op_db`);
each is traced twice, whole (as `export` leaves operators) and decomposed, and every call of an operator that the
importer has a row for is a case, unless the importer refuses it.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from collections import defaultdict
from importlib import import_module
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from relay.errors import Unsupported
from relay.frontend import from_pytorch
from relay.frontend.torch.operators import TABLE
from tests.numeric.torch_calls import CALLS, Draw, is_of
from tests.numeric.torch_cases import Case, loaded, program, saved
from tests.numeric.torch_programs import NUMBERS

MOST_CASES, MOST_ELEMENTS, SAMPLES = 12, 150, 12
"""Of an operator; in all tensors of a case; inputs that are tried of an operator and element type."""
SECONDS = 40
"""For the samples of one of `op_db`; some take minutes."""


def main(path: str, seconds: str = "3600") -> None:
    """Add to the cases that the file has, if it is there, which stay as they are; for so many seconds look at the
    operators of `op_db`."""
    torch: Any = import_module("torch")
    rng = random.Random(0)
    found: dict[str, dict[str, Case]] = defaultdict(dict)
    before = loaded(path) if Path(path).exists() else {}
    for target, cases in before.items():
        found[target] = {case.signature(): case for case in cases}
    op_db: Any = import_module("torch.testing._internal.common_methods_invocations").op_db
    names = {target.split(".")[1] for target in TABLE} | {"softmax", "log_softmax", "embedding_bag", "cdist", "fold"}
    wanted = [number for number, each in enumerate(op_db) if each.name.rpartition(".")[2] in names]
    wanted = wanted if float(seconds) else []
    end = monotonic() + float(seconds)
    # a process for each, since a trace that fails leaves torch's modes behind
    with get_context("fork").Pool(4, maxtasksperchild=1) as pool:
        for part in pool.imap(recorded, wanted):
            if monotonic() > end:
                break
            for case in part:
                found[case.target].setdefault(case.signature(), case)
    recurrent(torch, found)
    core(torch, found)
    kept: list[Case] = []
    for target in sorted(found):
        own = before.get(target, [])
        kept += own + chosen([case for case in found[target].values() if case not in own], rng, MOST_CASES - len(own))
    saved(path, kept)
    print(f"{len(kept)} cases of {len({case.target for case in kept})} operators")


def recorded(number: int) -> list[Case]:
    """The cases that one operator of `op_db` gives."""
    warnings.simplefilter("ignore")
    torch: Any = import_module("torch")
    each: Any = import_module("torch.testing._internal.common_methods_invocations").op_db[number]
    torch.set_num_threads(1)
    torch.manual_seed(number)
    found: dict[str, dict[str, Case]] = defaultdict(dict)
    end = monotonic() + SECONDS
    for dtype in (torch.float32, torch.int64, torch.bool):
        if dtype in each.dtypes:
            record_samples(torch, each, dtype, found, end)
    return [case for rows in found.values() for case in rows.values()]


def record_samples(torch: Any, each: Any, dtype: Any, found: dict[str, dict[str, Case]], end: float) -> None:
    """Trace an operator on some inputs of its tests."""
    tree: Any = import_module("torch.utils._pytree")
    make_fx: Any = import_module("torch.fx.experimental.proxy_tensor").make_fx
    used = 0
    for sample in islice(each.sample_inputs("cpu", dtype), 80):
        leaves, spec = tree.tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        if sum(leaves[place].numel() for place in places) > MOST_ELEMENTS:
            continue
        used += 1
        if used > SAMPLES or monotonic() > end:
            return

        def call(*tensors: Any, leaves: Any = leaves, places: Any = places, spec: Any = spec) -> Any:
            given = list(leaves)
            for place, value in zip(places, tensors, strict=True):
                given[place] = value
            first, args, kwargs = tree.tree_unflatten(given, spec)
            return each.op(first, *args, **kwargs)

        tensors = [leaves[place].detach() for place in places]
        for whole in (False, True) if dtype == torch.float32 else (True,):
            try:
                graph = make_fx(call, pre_dispatch=whole)(*tensors)
                record_calls(torch, graph, tensors, found)
            except Exception:
                continue


def core(torch: Any, found: dict[str, dict[str, Case]]) -> None:
    """Random calls of core operators, until each has enough cases."""
    for name, draw in CALLS.items():
        for seed in range(6 * MOST_CASES):
            if sum(len(rows) for target, rows in found.items() if is_of(target, name)) >= MOST_CASES:
                break
            overload, args, kwargs = draw(Draw(seed))
            target: Any = getattr(getattr(torch.ops.aten, name.partition(".")[0]), overload)
            case = case_of(torch, target, args, kwargs, target(*args, **kwargs))
            if case is not None:
                found[str(target)].setdefault(case.signature(), case)


def recurrent(torch: Any, found: dict[str, dict[str, Case]]) -> None:
    """LSTM, GRU and RNN, which `op_db` lacks."""
    make_fx: Any = import_module("torch.fx.experimental.proxy_tensor").make_fx
    kinds = (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)
    for number in range(36):
        layers, both, first = 1 + number % 2, number % 3 == 0, number % 4 < 2
        layer = kinds[number % 3](2, 3, layers, bidirectional=both, batch_first=first, bias=number % 5 > 0).eval()
        x = torch.randn(2, 3, 2) if number % 7 else torch.randn(3, 2)
        names = [name for name, _ in layer.named_parameters()]
        weights = [weight.detach() for _, weight in layer.named_parameters()]

        def call(x: Any, *given: Any, layer: Any = layer, names: Any = names) -> Any:
            return torch.func.functional_call(layer, dict(zip(names, given, strict=True)), (x,))

        record_calls(torch, make_fx(call, pre_dispatch=True)(x, *weights), [x, *weights], found, 400)


def record_calls(
    torch: Any, graph: Any, tensors: list[Any], found: dict[str, dict[str, Case]], most: int = MOST_ELEMENTS
) -> None:
    """Run a traced graph, and keep each call of an operator that there is a row for."""

    class Recorder(torch.fx.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            result: Any = torch.fx.Interpreter.call_function(self, target, args, kwargs)
            name = str(target)
            if isinstance(target, torch._ops.OpOverload) and (name in TABLE or name.rpartition(".")[0] in TABLE):
                case = case_of(torch, target, args, kwargs, result)
                if case is not None and case.elements() <= most and not name.split(".")[1].endswith("_"):
                    found[name].setdefault(case.signature(), case)
            return result

    Recorder(graph).run(*tensors)


def case_of(torch: Any, target: Any, args: Any, kwargs: Any, result: Any) -> Case | None:
    """A call and its results; None for what has another kind of argument."""
    arrays: list[np.ndarray[Any, Any]] = []
    given = dict(zip([each.name for each in target._schema.arguments], args, strict=False)) | kwargs
    try:
        arguments = {name: serialized(torch, value, arrays) for name, value in given.items()}
    except (TypeError, ValueError):
        return None
    if not isinstance(result, torch.Tensor | tuple | list):
        return None
    results: list[Any] = [result] if isinstance(result, torch.Tensor) else [*result]
    if not all(isinstance(each, torch.Tensor) for each in results):
        return None
    try:
        outputs = [array_of(torch, each) for each in results]
    except ValueError:
        return None
    return Case(str(target), arguments, arrays, outputs)


def array_of(torch: Any, value: Any) -> np.ndarray[Any, Any]:
    names = (torch.float32, torch.int64, torch.int32, torch.bool, torch.uint8, torch.int8, torch.float64, torch.float16)
    if value.dtype not in names:
        raise ValueError(value.dtype)
    array: np.ndarray[Any, Any] = value.detach().resolve_conj().contiguous().numpy().copy()
    return array


def serialized(torch: Any, value: Any, arrays: list[np.ndarray[Any, Any]]) -> dict[str, Any]:
    """An argument as `.pt2` archives have it; tensors are put into `arrays`, and named by their numbers."""
    if isinstance(value, torch.Tensor):
        arrays.append(array_of(torch, value))
        return {"as_tensor": {"name": f"t{len(arrays) - 1}"}}
    names = ("uint8", "int8", "int32", "int64", "float32", "float64", "bool")
    numbers = {getattr(torch, name): NUMBERS[name] for name in names}
    match value:
        case None:
            return {"as_none": True}
        case bool():
            return {"as_bool": value}
        case int():
            return {"as_int": value}
        case float():
            return {"as_float": value if np.isfinite(value) else str(value)}
        case str():
            return {"as_string": value}
        case torch.dtype():
            if value not in numbers:
                raise ValueError(value)
            return {"as_scalar_type": numbers[value]}
        case torch.device() | torch.layout() | torch.memory_format():
            return {"as_none": True}
        case list() | tuple():
            items: list[Any] = [*value]
            if any(isinstance(each, torch.Tensor) for each in items):
                rows = [serialized(torch, each, arrays) for each in items]
                if all(isinstance(each, torch.Tensor) for each in items):
                    return {"as_tensors": [row["as_tensor"] for row in rows]}
                return {"as_optional_tensors": rows}
            kinds: dict[Any, str] = {bool: "as_bools", int: "as_ints", float: "as_floats"}
            kind: set[Any] = {type(each) for each in items} or {int}
            return (
                {kinds[kind.pop()]: items}
                if len(kind) == 1
                else {"as_sym_ints": [serialized(torch, e, []) for e in items]}
            )
        case _:
            raise TypeError(f"{value!r} is no argument of an archive")


def chosen(cases: list[Case], rng: random.Random, most: int) -> list[Case]:
    """So many at most that the importer takes, of different types and ranks first."""
    rng.shuffle(cases)
    seen: set[str] = set()
    order: list[Case] = []
    for case in cases:
        kind = json.dumps([case.kinds(), sorted(case.arguments)])
        (order.insert(len(seen), case) if kind not in seen else order.append(case))
        seen.add(kind)
    kept: list[Case] = []
    for case in order:
        if len(kept) >= most:
            break
        try:
            from_pytorch(program([case]))
        except Unsupported:
            continue
        except Exception as error:
            print(case.target, case.arguments, [each.shape for each in case.inputs], error)
            continue
        kept.append(case)
    return kept


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
