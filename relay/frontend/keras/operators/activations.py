"""Activations: by their names in a configuration, as layers, and as operations. Source: keras/src/activations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.functions import ACTIVATIONS, elu, glu, shrunk, softplus
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer, is_row
from relay.frontend.keras.table import TABLE, layer, op

Formula = Callable[[Scalar, Layer], Scalar]


def _softmax(x: Scalar, node: Layer, log: bool = False) -> Scalar:
    """Over one axis, or over several as one."""
    importer, rank = x.importer, x.importer.rank(x.value)
    given = node.config.get("axis", -1)
    axes = node.axes(-1 if given is None else given, rank)
    if len(axes) == 1:
        return x.of(relay.LogSoftmaxOp, axis=axes[0]) if log else x.of(relay.SoftmaxOp, beta=1.0, axis=axes[0])
    low = Scalar(importer, importer.call(relay.MaxOp, x.value, axis=axes, keepdims=True))
    parts = (x - low).exp()
    total = Scalar(importer, importer.call(relay.SumOp, parts.value, axis=axes, keepdims=True))
    return x - low - total.of(relay.LogOp) if log else parts / total


def _glu(x: Scalar, node: Layer) -> Scalar:
    return glu(x, node.axis(node.integer("axis", -1), len(node.static(x.value))))


def _soft_shrink(x: Scalar, node: Layer) -> Scalar:
    return shrunk(x, node.real("threshold", 0.5), node.real("threshold", 0.5))


def _relu(x: Scalar, node: Layer) -> Scalar:
    """`x` above the threshold and up to the largest value, below the threshold a slope."""
    importer = x.importer
    slope, threshold = node.real("negative_slope", 0.0), node.real("threshold", 0.0)
    most = node.real("max_value", math.inf)
    if not threshold and math.isinf(most):
        return x.of(relay.LeakyReluOp, alpha=slope) if slope else x.of(relay.ReluOp)
    if threshold:
        found = (x > threshold).choose(x, 0.0, x)
        found = found if math.isinf(most) else found.between(0.0, most)
    else:
        found = Scalar(importer, importer.clip(x.value, 0.0, most))
    return found - (-x + threshold).of(relay.ReluOp) * slope if slope else found


FORMULAS: dict[str, Formula] = {
    **{name: lambda x, n, f=function: f(x) for name, function in ACTIVATIONS.items()},
    "celu": lambda x, n: (x > 0.0).choose(x, ((x / n.real("alpha", 1.0)).exp() - 1.0) * n.real("alpha", 1.0), x),
    "elu": lambda x, n: elu(x, n.real("alpha", 1.0)),
    "exponential": lambda x, n: x.exp(),
    "gelu": lambda x, n: x.of(
        relay.GeluOp, approximate=BoolAttr.from_bool(n.flag("approximate", n.kind.startswith("ops.")))
    ),
    "glu": _glu,
    "hard_shrink": lambda x, n: (x.of(relay.AbsOp) > n.real("threshold", 0.5)).choose(x, 0.0, x),
    "hard_silu": lambda x, n: ACTIVATIONS["hard_swish"](x),
    "hard_tanh": lambda x, n: x.between(-1.0, 1.0),
    "leaky_relu": lambda x, n: x.of(relay.LeakyReluOp, alpha=n.real("negative_slope", 0.2)),
    "linear": lambda x, n: x,
    "log_sigmoid": lambda x, n: -softplus(-x),
    "log_softmax": lambda x, n: _softmax(x, n, log=True),
    "mish": lambda x, n: x * softplus(x).of(relay.TanhOp),
    "relu": lambda x, n: x.of(relay.ReluOp),
    "relu6": lambda x, n: x.between(0.0, 6.0),
    "sigmoid": lambda x, n: x.of(relay.SigmoidOp),
    "soft_shrink": _soft_shrink,
    "softmax": _softmax,
    "softplus": lambda x, n: softplus(x),
    "sparse_plus": lambda x, n: (x < 1.0).choose((x + 1.0).of(relay.MaximumOp, 0.0) * (x + 1.0) * 0.25, x, x),
    "sparse_sigmoid": lambda x, n: ((x + 1.0) * 0.5).between(0.0, 1.0),
    "squareplus": lambda x, n: (x + (x * x + n.real("b", 4.0)).of(relay.SqrtOp)) * 0.5,
    "swish": lambda x, n: ACTIVATIONS["silu"](x),
    "tanh": lambda x, n: x.of(relay.TanhOp),
    "threshold": lambda x, n: (x > n.real("threshold", 0.0)).choose(x, n.real("default_value", 0.0), x),
}
"""By their names in Keras; parameters are those of the layer or operation, or Keras's defaults."""
_CLASSES = {"".join(part.title() for part in name.split("_")): name for name in FORMULAS} | {
    "LogSoftmax": "log_softmax", "SquarePlus": "squareplus",
}  # fmt: skip


def activated(importer: Importer, node: Layer, value: SSAValue, name: str = "activation") -> SSAValue:
    """The activation that a configuration names, with its default parameters, or that it holds as a layer."""
    given = node.config.get(name) or "linear"
    if is_row(given) and str(given.get("module")).startswith("keras") and given["class_name"] != "function":
        inner = node.inner(str(given["class_name"]), name, given["config"], value)
        convert = TABLE.get(inner.kind)
        found = None if convert is None else convert(importer, inner)
        if isinstance(found, SSAValue):
            return found
    if not isinstance(given, str) or given not in FORMULAS:
        what = given if isinstance(given, str) else given.get("class_name") if is_row(given) else given
        raise node.unsupported(f"has the {name} {str(what)[:80]!r}")
    plain = node.inner("Activation", name, {})
    return FORMULAS[given](Scalar(importer, importer.real(value)), plain).value


@op(*_CLASSES)
def operation(importer: Importer, node: Layer) -> SSAValue:
    x = Scalar(importer, importer.real(node.x))
    return FORMULAS[_CLASSES[node.kind.removeprefix("ops.")]](x, node).value


_LAYERS: dict[str, Formula] = {
    "ELU": FORMULAS["elu"],
    "LeakyReLU": lambda x, n: x.of(relay.LeakyReluOp, alpha=n.real("negative_slope", 0.3)),
    "ReLU": _relu,
    "Softmax": _softmax,
}


@layer("Activation", *_LAYERS)
def activation(importer: Importer, node: Layer) -> SSAValue:
    formula = _LAYERS.get(node.kind)
    x = node.value()
    return activated(importer, node, x) if formula is None else formula(Scalar(importer, x), node).value


@layer("PReLU")
def prelu(importer: Importer, node: Layer) -> SSAValue:
    """A slope for each element, or for each index of the axes that do not share it."""
    x, alpha = Scalar(importer, node.value()), node.weights("alpha")["alpha"]
    slope = importer.weight(node, "alpha", np.ascontiguousarray(alpha))
    if alpha.size == alpha.shape[-1] and alpha.ndim == importer.rank(x.value) - 1:
        return importer.call(relay.PreluOp, x.value, importer.reshape(slope, [alpha.size]), axis=alpha.ndim)
    return (x > 0.0).choose(x, x * Scalar(importer, slope), x).value
