"""The `qnn` dialect: quantised ops. A code q stands for `scale * (q - zero_point)`.

A scale (f32) or zero point (i32) is a scalar, or a vector with one element per index of `axis`. A float32 scale does
not suffice to compute the same integers as TFLite, which multiplies some scales in double and some in float; so every
op that rescales also carries the `multiplier` (i32) and `shift` (i32) that the reference kernel would compute; the
scale is about multiplier * 2^(shift - 31). In formulas, `rescale(x)` is `x * multiplier * 2^(shift - 31)`, rounded as
`relay.fixed_point_multiply` does unless the op says otherwise; SRDHM and RDBPOT are gemmlowp's
`relay.rounding_doubling_high_multiply` and `relay.rounding_right_shift`. `min` and `max` are the bounds of the result's
codes: the dtype's range, tightened by a fused activation. Source of every formula: TFLite's reference kernels.
"""

# isort: off
from xdsl.ir import Dialect

from relay.dialects.qnn.binary import (
    DivideOp, EqualOp, GreaterEqualOp, GreaterOp, LessEqualOp, LessOp, NotEqualOp, PreluOp, QnnCompareOp,
    SquaredDifferenceOp,
)  # fmt: skip
from relay.dialects.qnn.elementwise import (
    AddOp, AlignedOp, CodesOp, MulOp, QnnAddBase, QnnBinaryOp, QnnUnaryOp, SigmoidOp, SubtractOp, TanhOp, TwoCodesOp,
)  # fmt: skip
from relay.dialects.qnn.functions import (
    AbsOp, EluOp, ExpOp, GeluOp, HardSwishOp, L2NormalizeOp, LeakyReluOp, LogOp, QnnFunctionOp, RsqrtOp, SqrtOp,
    TableOp,
)  # fmt: skip
from relay.dialects.qnn.nn import (
    ConcatenateOp, Conv2dOp, DenseOp, MeanOp, QnnProductOp, QnnReduceOp, SoftmaxOp, SumOp, TableSoftmaxOp,
)  # fmt: skip
from relay.dialects.qnn.products import BatchMatmulOp, Conv2dTransposeOp
from relay.dialects.qnn.quantize import (
    DequantizeOp, DynamicQuantizeLinearOp, DynamicQuantizeOp, QuantizeOp, RequantizeOp,
)  # fmt: skip
from relay.dialects.qnn.recurrent import LstmOp, SvdfOp

# Written by `python docs/generate.py`; do not edit: ops are found in the files beside this one.

Qnn = Dialect("qnn", [
    DivideOp, SquaredDifferenceOp, PreluOp, EqualOp, NotEqualOp, LessOp, LessEqualOp, GreaterOp, GreaterEqualOp, AddOp,
    SubtractOp, MulOp, SigmoidOp, TanhOp, GeluOp, EluOp, ExpOp, LogOp, RsqrtOp, SqrtOp, AbsOp, LeakyReluOp,
    HardSwishOp, L2NormalizeOp, Conv2dOp, DenseOp, MeanOp, SumOp, SoftmaxOp, TableSoftmaxOp, ConcatenateOp,
    Conv2dTransposeOp, BatchMatmulOp, QuantizeOp, DequantizeOp, RequantizeOp, DynamicQuantizeOp,
    DynamicQuantizeLinearOp, LstmOp, SvdfOp,
])  # fmt: skip

__all__ = [
    "AbsOp", "AddOp", "AlignedOp", "BatchMatmulOp", "CodesOp", "ConcatenateOp", "Conv2dOp", "Conv2dTransposeOp",
    "DenseOp", "DequantizeOp", "DivideOp", "DynamicQuantizeLinearOp", "DynamicQuantizeOp", "EluOp", "EqualOp", "ExpOp",
    "GeluOp", "GreaterEqualOp", "GreaterOp", "HardSwishOp", "L2NormalizeOp", "LeakyReluOp", "LessEqualOp", "LessOp",
    "LogOp", "LstmOp", "MeanOp", "MulOp", "NotEqualOp", "PreluOp", "Qnn", "QnnAddBase", "QnnBinaryOp", "QnnCompareOp",
    "QnnFunctionOp", "QnnProductOp", "QnnReduceOp", "QnnUnaryOp", "QuantizeOp", "RequantizeOp", "RsqrtOp", "SigmoidOp",
    "SoftmaxOp", "SqrtOp", "SquaredDifferenceOp", "SubtractOp", "SumOp", "SvdfOp", "TableOp", "TableSoftmaxOp",
    "TanhOp", "TwoCodesOp",
]  # fmt: skip
