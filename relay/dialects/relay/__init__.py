"""The `relay` dialect, one file for each group of ops; `Relay` is the dialect itself."""

# isort: off
from xdsl.ir import Dialect

from relay.dialects.relay.activation import (
    ActivationOp, AlongAxisOp, CrossEntropyOp, CrossEntropyWithLogitsOp, FastSoftmaxOp, GeluOp, LeakyReluOp,
    LogSoftmaxOp, LossOp, LrnOp, PreluOp, ReluOp,
)  # fmt: skip
from relay.dialects.relay.attention import AttentionOp, RotaryEmbeddingOp
from relay.dialects.relay.convolution import (
    Conv1dOp, Conv1dTransposeOp, Conv2dTransposeOp, Conv3dOp, Conv3dTransposeOp, ConvBase, ConvNd, ConvTransposeBase,
    ConvTransposeNd, SpatialAxes, SpatialConvolution,
)  # fmt: skip
from relay.dialects.relay.creation import (
    ArangeOp, CumprodOp, CumsumOp, CumulativeOp, FullLikeOp, FullOp, InitOp, MatrixSetDiagOp, OneHotOp, OnesOp,
    SequenceMaskOp, ZerosOp,
)  # fmt: skip
from relay.dialects.relay.dynamic import (
    DynArangeOp, DynAxesOp, DynBroadcastToOp, DynExpandDimsOp, DynFullOp, DynNumberOp, DynOneHotOp, DynPadOp,
    DynReshapeOp, DynResize1dOp, DynResize2dOp, DynResize3dOp, DynResizeOp, DynSqueezeOp, DynStridedSliceOp, DynTileOp,
    DynTopkOp, DynamicOp,
)  # fmt: skip
from relay.dialects.relay.elementwise import (
    AbsOp, AddOp, BinaryOp, CastOp, CeilOp, ClipOp, CompareOp, DivideOp, EqualOp, ExpOp, FloorDivideOp, FloorOp,
    GreaterOp, LeftShiftOp, LessOp, LogOp, MaximumOp, MinimumOp, MultiplyOp, NegativeOp, RightShiftOp, RoundOp,
    RsqrtOp, SigmoidOp, SqrtOp, SubtractOp, TanhOp, UnaryOp, WhereOp,
)  # fmt: skip
from relay.dialects.relay.fixed_point import (
    FixedPointMultiplyOp, FixedPointReciprocalOp, HighMultiplyOp, LookupOp, ROUNDINGS, RoundingRightShiftOp,
)  # fmt: skip
from relay.dialects.relay.image import Resize2dOp
from relay.dialects.relay.indexing import (
    AdvIndexOp, DynamicUpdateSliceOp, GatherOp, InvertPermutationOp, ReverseSequenceOp, ScatterAddOp, ScatterAlongOp,
    ScatterBase, ScatterNdOp, ScatterOp, StridedSetOp, UnravelIndexOp,
)  # fmt: skip
from relay.dialects.relay.logical import (
    BitwiseAndOp, BitwiseOrOp, BitwiseXorOp, FloorModOp, GreaterEqualOp, LessEqualOp, LogicalAndOp, LogicalOp,
    LogicalOrOp, LogicalXorOp, ModOp, NotEqualOp, PowerOp,
)  # fmt: skip
from relay.dialects.relay.matmul import BatchMatmulOp, MatmulBase, MatmulOp
from relay.dialects.relay.nn import (
    BiasAddOp, CentredOp, Conv2dBase, Conv2dOp, DenseBase, DenseOp, IMAGE_AXES, KERNEL_LAYOUTS, SoftmaxOp,
    WeightOnlyDenseOp,
)  # fmt: skip
from relay.dialects.relay.norm import (
    BatchNormOp, DropoutOp, GroupNormOp, InstanceNormOp, L2NormalizeOp, LayerNormOp, NormOp, PerAxisOp, RmsNormOp,
)  # fmt: skip
from relay.dialects.relay.pooling import (
    AdaptiveAvgBase, AdaptiveAvgPool1dOp, AdaptiveAvgPool2dOp, AdaptiveAvgPool3dOp, AdaptiveMaxBase,
    AdaptiveMaxPool1dOp, AdaptiveMaxPool2dOp, AdaptiveMaxPool3dOp, AdaptivePoolOp, AvgPool1dOp, AvgPool2dOp,
    AvgPool3dOp, AvgPoolBase, GlobalAvgPool2dOp, GlobalMaxPool2dOp, GlobalPool2dOp, ImageOp, MaxPool1dOp, MaxPool2dOp,
    MaxPool3dOp, MaxPoolBase, Pool2dOp, PoolOp, SpatialOp,
)  # fmt: skip
from relay.dialects.relay.rearrange import (
    BatchFlattenOp, BatchToSpaceNdOp, BlocksOp, DepthToSpaceOp, DilateOp, FifoBufferOp, MirrorPadOp, RearrangeOp,
    SpaceToBatchNdOp, SpaceToDepthOp, SubpixelOp,
)  # fmt: skip
from relay.dialects.relay.reduce import (
    AllOp, AnyOp, ArgOp, ArgmaxOp, ArgminOp, BooleanReduceOp, MaxOp, MeanOp, MinOp, ProdOp, ReduceOp, ReducingOp,
    SumOp, VarianceOp,
)  # fmt: skip
from relay.dialects.relay.resizing import Resize1dOp, Resize3dOp, ResizeOp, UpsampleOp, Upsampling3dOp, UpsamplingOp
from relay.dialects.relay.shape import (
    BroadcastToOp, ConcatenateOp, ConstantOp, GatherNdOp, PadOp, ReshapeOp, StridedSliceOp, TakeOp, TransformOp,
    TransposeOp,
)  # fmt: skip
from relay.dialects.relay.sort import ArgsortOp, SortOp, SortingOp, TopkOp
from relay.dialects.relay.transform import (
    BroadcastToLikeOp, CastLikeOp, CollapseSumLikeOp, CollapseSumToOp, ExpandDimsOp, LayoutTransformOp, LikeOp,
    MeshgridOp, ReinterpretOp, RepeatOp, ReshapeLikeOp, ReverseOp, SliceLikeOp, SplitOp, SqueezeOp, StackOp, TileOp,
)  # fmt: skip
from relay.dialects.relay.unary import (
    AcosOp, AcoshOp, AsinOp, AsinhOp, AtanOp, AtanhOp, BitwiseNotOp, CopyOp, CosOp, CoshOp, ErfOp, Expm1Op, FastErfOp,
    FastExpOp, FastTanhOp, IsfiniteOp, IsinfOp, IsnanOp, Log10Op, Log2Op, LogicalNotOp, MeasureOp, NdarraySizeOp,
    OnesLikeOp, PredicateOp, ShapeOfOp, SignOp, SinOp, SinhOp, TanOp, TruncOp, ZerosLikeOp,
)  # fmt: skip
from relay.dialects.relay.vision import NonMaxSuppressionOp

# Written by `python docs/generate.py`; do not edit: ops are found in the files beside this one.

Relay = Dialect("relay", [
    ReluOp, LeakyReluOp, GeluOp, PreluOp, LogSoftmaxOp, FastSoftmaxOp, LrnOp, CrossEntropyOp, CrossEntropyWithLogitsOp,
    AttentionOp, RotaryEmbeddingOp, Conv1dOp, Conv3dOp, Conv1dTransposeOp, Conv2dTransposeOp, Conv3dTransposeOp,
    ZerosOp, OnesOp, FullOp, FullLikeOp, ArangeOp, OneHotOp, CumsumOp, CumprodOp, SequenceMaskOp, MatrixSetDiagOp,
    DynReshapeOp, DynBroadcastToOp, DynStridedSliceOp, DynFullOp, DynArangeOp, DynPadOp, DynTileOp, DynTopkOp,
    DynOneHotOp, DynExpandDimsOp, DynSqueezeOp, DynResize1dOp, DynResize2dOp, DynResize3dOp, AddOp, SubtractOp,
    MultiplyOp, DivideOp, FloorDivideOp, MaximumOp, MinimumOp, LeftShiftOp, RightShiftOp, EqualOp, GreaterOp, LessOp,
    WhereOp, NegativeOp, AbsOp, SqrtOp, RsqrtOp, ExpOp, LogOp, SigmoidOp, TanhOp, RoundOp, FloorOp, CeilOp, ClipOp,
    CastOp, FixedPointMultiplyOp, HighMultiplyOp, RoundingRightShiftOp, FixedPointReciprocalOp, LookupOp, Resize2dOp,
    GatherOp, AdvIndexOp, ReverseSequenceOp, ScatterOp, ScatterAddOp, ScatterNdOp, StridedSetOp, DynamicUpdateSliceOp,
    InvertPermutationOp, UnravelIndexOp, NotEqualOp, GreaterEqualOp, LessEqualOp, LogicalAndOp, LogicalOrOp,
    LogicalXorOp, BitwiseAndOp, BitwiseOrOp, BitwiseXorOp, ModOp, FloorModOp, PowerOp, MatmulOp, BatchMatmulOp,
    Conv2dOp, DenseOp, WeightOnlyDenseOp, BiasAddOp, SoftmaxOp, BatchNormOp, LayerNormOp, RmsNormOp, InstanceNormOp,
    GroupNormOp, L2NormalizeOp, DropoutOp, MaxPool1dOp, MaxPool2dOp, MaxPool3dOp, AvgPool1dOp, AvgPool2dOp,
    AvgPool3dOp, GlobalMaxPool2dOp, GlobalAvgPool2dOp, AdaptiveMaxPool1dOp, AdaptiveMaxPool2dOp, AdaptiveMaxPool3dOp,
    AdaptiveAvgPool1dOp, AdaptiveAvgPool2dOp, AdaptiveAvgPool3dOp, BatchFlattenOp, MirrorPadOp, SpaceToBatchNdOp,
    BatchToSpaceNdOp, DepthToSpaceOp, SpaceToDepthOp, DilateOp, FifoBufferOp, SumOp, MaxOp, MinOp, ProdOp, AllOp,
    AnyOp, MeanOp, VarianceOp, ArgmaxOp, ArgminOp, Resize1dOp, Resize3dOp, UpsamplingOp, Upsampling3dOp, ConstantOp,
    ReshapeOp, TransposeOp, BroadcastToOp, ConcatenateOp, StridedSliceOp, TakeOp, GatherNdOp, PadOp, SortOp, ArgsortOp,
    TopkOp, ExpandDimsOp, SqueezeOp, StackOp, SplitOp, TileOp, RepeatOp, ReverseOp, MeshgridOp, CastLikeOp,
    ReshapeLikeOp, BroadcastToLikeOp, CollapseSumToOp, CollapseSumLikeOp, SliceLikeOp, LayoutTransformOp,
    ReinterpretOp, AcosOp, AcoshOp, AsinOp, AsinhOp, AtanOp, AtanhOp, CosOp, CoshOp, ErfOp, Expm1Op, Log2Op, Log10Op,
    SinOp, SinhOp, TanOp, TruncOp, FastErfOp, FastExpOp, FastTanhOp, SignOp, CopyOp, BitwiseNotOp, LogicalNotOp,
    ZerosLikeOp, OnesLikeOp, IsnanOp, IsinfOp, IsfiniteOp, ShapeOfOp, NdarraySizeOp, NonMaxSuppressionOp,
])  # fmt: skip

__all__ = [
    "AbsOp", "AcosOp", "AcoshOp", "ActivationOp", "AdaptiveAvgBase", "AdaptiveAvgPool1dOp", "AdaptiveAvgPool2dOp",
    "AdaptiveAvgPool3dOp", "AdaptiveMaxBase", "AdaptiveMaxPool1dOp", "AdaptiveMaxPool2dOp", "AdaptiveMaxPool3dOp",
    "AdaptivePoolOp", "AddOp", "AdvIndexOp", "AllOp", "AlongAxisOp", "AnyOp", "ArangeOp", "ArgOp", "ArgmaxOp",
    "ArgminOp", "ArgsortOp", "AsinOp", "AsinhOp", "AtanOp", "AtanhOp", "AttentionOp", "AvgPool1dOp", "AvgPool2dOp",
    "AvgPool3dOp", "AvgPoolBase", "BatchFlattenOp", "BatchMatmulOp", "BatchNormOp", "BatchToSpaceNdOp", "BiasAddOp",
    "BinaryOp", "BitwiseAndOp", "BitwiseNotOp", "BitwiseOrOp", "BitwiseXorOp", "BlocksOp", "BooleanReduceOp",
    "BroadcastToLikeOp", "BroadcastToOp", "CastLikeOp", "CastOp", "CeilOp", "CentredOp", "ClipOp", "CollapseSumLikeOp",
    "CollapseSumToOp", "CompareOp", "ConcatenateOp", "ConstantOp", "Conv1dOp", "Conv1dTransposeOp", "Conv2dBase",
    "Conv2dOp", "Conv2dTransposeOp", "Conv3dOp", "Conv3dTransposeOp", "ConvBase", "ConvNd", "ConvTransposeBase",
    "ConvTransposeNd", "CopyOp", "CosOp", "CoshOp", "CrossEntropyOp", "CrossEntropyWithLogitsOp", "CumprodOp",
    "CumsumOp", "CumulativeOp", "DenseBase", "DenseOp", "DepthToSpaceOp", "DilateOp", "DivideOp", "DropoutOp",
    "DynArangeOp", "DynAxesOp", "DynBroadcastToOp", "DynExpandDimsOp", "DynFullOp", "DynNumberOp", "DynOneHotOp",
    "DynPadOp", "DynReshapeOp", "DynResize1dOp", "DynResize2dOp", "DynResize3dOp", "DynResizeOp", "DynSqueezeOp",
    "DynStridedSliceOp", "DynTileOp", "DynTopkOp", "DynamicOp", "DynamicUpdateSliceOp", "EqualOp", "ErfOp", "ExpOp",
    "ExpandDimsOp", "Expm1Op", "FastErfOp", "FastExpOp", "FastSoftmaxOp", "FastTanhOp", "FifoBufferOp",
    "FixedPointMultiplyOp", "FixedPointReciprocalOp", "FloorDivideOp", "FloorModOp", "FloorOp", "FullLikeOp", "FullOp",
    "GatherNdOp", "GatherOp", "GeluOp", "GlobalAvgPool2dOp", "GlobalMaxPool2dOp", "GlobalPool2dOp", "GreaterEqualOp",
    "GreaterOp", "GroupNormOp", "HighMultiplyOp", "IMAGE_AXES", "ImageOp", "InitOp", "InstanceNormOp",
    "InvertPermutationOp", "IsfiniteOp", "IsinfOp", "IsnanOp", "KERNEL_LAYOUTS", "L2NormalizeOp", "LayerNormOp",
    "LayoutTransformOp", "LeakyReluOp", "LeftShiftOp", "LessEqualOp", "LessOp", "LikeOp", "Log10Op", "Log2Op", "LogOp",
    "LogSoftmaxOp", "LogicalAndOp", "LogicalNotOp", "LogicalOp", "LogicalOrOp", "LogicalXorOp", "LookupOp", "LossOp",
    "LrnOp", "MatmulBase", "MatmulOp", "MatrixSetDiagOp", "MaxOp", "MaxPool1dOp", "MaxPool2dOp", "MaxPool3dOp",
    "MaxPoolBase", "MaximumOp", "MeanOp", "MeasureOp", "MeshgridOp", "MinOp", "MinimumOp", "MirrorPadOp", "ModOp",
    "MultiplyOp", "NdarraySizeOp", "NegativeOp", "NonMaxSuppressionOp", "NormOp", "NotEqualOp", "OneHotOp",
    "OnesLikeOp", "OnesOp", "PadOp", "PerAxisOp", "Pool2dOp", "PoolOp", "PowerOp", "PredicateOp", "PreluOp", "ProdOp",
    "ROUNDINGS", "RearrangeOp", "ReduceOp", "ReducingOp", "ReinterpretOp", "Relay", "ReluOp", "RepeatOp",
    "ReshapeLikeOp", "ReshapeOp", "Resize1dOp", "Resize2dOp", "Resize3dOp", "ResizeOp", "ReverseOp",
    "ReverseSequenceOp", "RightShiftOp", "RmsNormOp", "RotaryEmbeddingOp", "RoundOp", "RoundingRightShiftOp",
    "RsqrtOp", "ScatterAddOp", "ScatterAlongOp", "ScatterBase", "ScatterNdOp", "ScatterOp", "SequenceMaskOp",
    "ShapeOfOp", "SigmoidOp", "SignOp", "SinOp", "SinhOp", "SliceLikeOp", "SoftmaxOp", "SortOp", "SortingOp",
    "SpaceToBatchNdOp", "SpaceToDepthOp", "SpatialAxes", "SpatialConvolution", "SpatialOp", "SplitOp", "SqrtOp",
    "SqueezeOp", "StackOp", "StridedSetOp", "StridedSliceOp", "SubpixelOp", "SubtractOp", "SumOp", "TakeOp", "TanOp",
    "TanhOp", "TileOp", "TopkOp", "TransformOp", "TransposeOp", "TruncOp", "UnaryOp", "UnravelIndexOp", "UpsampleOp",
    "Upsampling3dOp", "UpsamplingOp", "VarianceOp", "WeightOnlyDenseOp", "WhereOp", "ZerosLikeOp", "ZerosOp",
]  # fmt: skip
