"""Imports activations: those named in a configuration, layers, and operations. Source: keras/src/activations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.frontend.importing import functions
from relay.frontend.importing.formulas import Scalar, logsumexp
from relay.frontend.importing.functions import ACTIVATIONS, elu, glu, shrunk, softplus
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer
from relay.frontend.keras.table import layer, output, wrapped

Formula = Callable[[Scalar, Layer], Scalar]


def _softmax(x: Scalar, node: Layer, log: bool = False) -> Scalar:
    """The softmax over one axis, or over several axes as one."""
    axes = node.axes(x.value, -1)
    if len(axes) == 1:
        return x.of(relay.LogSoftmaxOp, axis=axes[0]) if log else x.of(relay.SoftmaxOp, beta=1.0, axis=axes[0])
    found = x - Scalar(x.importer, logsumexp(x.importer, x.value, axes, keep=True))
    return found if log else found.exp()


def _relu(x: Scalar, node: Layer) -> Scalar:
    """`min(x, the maximum value)` where x is above the threshold, elsewhere `slope * (x - threshold)`."""
    slope, threshold = node.real("negative_slope", 0.0), node.real("threshold", 0.0)
    most = node.real("max_value", math.inf)
    if not threshold and math.isinf(most):
        return x.of(relay.LeakyReluOp, alpha=slope) if slope else x.of(relay.ReluOp)
    found = (x > threshold).choose(x, 0.0, x) if threshold else x
    found = found if math.isinf(most) else found.between(0.0, most)
    return found - (-x + threshold).of(relay.ReluOp) * slope if slope else found


def _gelu(x: Scalar, node: Layer) -> Scalar:
    """GELU; its default of `approximate` differs between the operation and the activation of that name."""
    return x.of(relay.GeluOp, approximate=BoolAttr.from_bool(node.flag("approximate", node.kind.startswith("ops."))))


FORMULAS: dict[str, Formula] = {
    **{name: lambda x, n, f=function: f(x) for name, function in ACTIVATIONS.items()},
    "celu": lambda x, n: (x > 0.0).choose(x, ((x / n.real("alpha", 1.0)).exp() - 1.0) * n.real("alpha", 1.0), x),
    "elu": lambda x, n: elu(x, n.real("alpha", 1.0)),
    "exponential": lambda x, n: x.exp(),
    "gelu": _gelu,
    "glu": lambda x, n: glu(x, n.axis(n.integer("axis", -1), len(x.importer.static(x.value)))),
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
    "soft_shrink": lambda x, n: shrunk(x, n.real("threshold", 0.5), n.real("threshold", 0.5)),
    "softmax": _softmax,
    "softplus": lambda x, n: softplus(x),
    "sparse_plus": lambda x, n: (x < 1.0).choose((x + 1.0).of(relay.MaximumOp, 0.0) * (x + 1.0) * 0.25, x, x),
    "sparse_sigmoid": lambda x, n: ((x + 1.0) * 0.5).between(0.0, 1.0),
    "squareplus": lambda x, n: (x + (x * x + n.real("b", 4.0)).of(relay.SqrtOp)) * 0.5,
    "swish": lambda x, n: ACTIVATIONS["silu"](x),
    "tanh": lambda x, n: x.of(relay.TanhOp),
    "threshold": lambda x, n: (x > n.real("threshold", 0.0)).choose(x, n.real("default_value", 0.0), x),
}
"""Activations by their names in Keras; parameters are those of the layer or operation, or Keras's defaults."""
_CLASSES: dict[str, Formula] = {
    **{f"ops.{''.join(part.title() for part in name.split('_'))}": formula for name, formula in FORMULAS.items()},
    "ops.SquarePlus": FORMULAS["squareplus"],
    "ELU": FORMULAS["elu"],
    "LeakyReLU": lambda x, n: x.of(relay.LeakyReluOp, alpha=n.real("negative_slope", 0.3)),
    "ReLU": _relu,
    "Softmax": _softmax,
}


@layer("Activation")
def activated(importer: Importer, node: Layer, value: SSAValue | None = None, name: str = "activation") -> SSAValue:
    """Apply the activation that a configuration names, with its default parameters, or contains as a layer."""
    given, x = node.entry(name) or "linear", node.value() if value is None else value
    if not isinstance(given, str) or given not in FORMULAS:
        return output(importer, wrapped(node, name, name, x))
    return FORMULAS[given](Scalar(importer, _operand(importer, given, x)), node.inner("Activation", name, {})).value


def _operand(importer: Importer, name: str, x: SSAValue) -> SSAValue:
    """The operand of an activation: integers are kept for `linear` and `relu`, and cast to float32 for others."""
    return x if name == "linear" else importer.numbers(x) if name == "relu" else importer.real(x)


@layer(*_CLASSES)
def activation(importer: Importer, node: Layer) -> SSAValue:
    plain = "relu" if node.kind == "ops.Relu" or (node.kind == "ReLU" and node.entry("max_value") is None) else ""
    return _CLASSES[node.kind](Scalar(importer, _operand(importer, plain, node.x)), node).value


@layer("PReLU")
def prelu(importer: Importer, node: Layer) -> SSAValue:
    """Import PReLU: a slope for each element, or shared along axes."""
    x, alpha = Scalar(importer, node.value()), node.weights("alpha")["alpha"]
    slope = importer.weight(node, "alpha", np.ascontiguousarray(alpha))
    if alpha.size == alpha.shape[-1] and alpha.ndim == importer.rank(x.value) - 1:
        return importer.call(relay.PreluOp, x.value, importer.reshape(slope, [alpha.size]), axis=alpha.ndim)
    return functions.prelu(x, Scalar(importer, slope)).value
