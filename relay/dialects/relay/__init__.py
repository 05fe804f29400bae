"""The `relay` dialect, split by kind; `Relay` is the dialect itself."""

from xdsl.ir import Dialect

from relay.dialects.relay.activation import OPERATIONS as ACTIVATION
from relay.dialects.relay.activation import (
    ActivationOp,
    AlongAxisOp,
    CrossEntropyOp,
    CrossEntropyWithLogitsOp,
    FastSoftmaxOp,
    LeakyReluOp,
    LogSoftmaxOp,
    LossOp,
    LrnOp,
    PreluOp,
    ReluOp,
)
from relay.dialects.relay.convolution import OPERATIONS as CONVOLUTION
from relay.dialects.relay.convolution import (
    Conv1dOp,
    Conv1dTransposeOp,
    Conv2dTransposeOp,
    Conv3dOp,
    Conv3dTransposeOp,
    ConvBase,
    ConvNd,
    ConvTransposeBase,
    ConvTransposeNd,
    SpatialConvolution,
)
from relay.dialects.relay.creation import OPERATIONS as CREATION
from relay.dialects.relay.creation import (
    ArangeOp,
    CumprodOp,
    CumsumOp,
    CumulativeOp,
    FullLikeOp,
    FullOp,
    MatrixSetDiagOp,
    OneHotOp,
    OnesOp,
    SequenceMaskOp,
    ZerosOp,
)
from relay.dialects.relay.elementwise import OPERATIONS as ELEMENTWISE
from relay.dialects.relay.elementwise import (
    AbsOp,
    AddOp,
    BinaryOp,
    CastOp,
    CeilOp,
    ClipOp,
    CompareOp,
    DivideOp,
    EqualOp,
    ExpOp,
    FloorDivideOp,
    FloorOp,
    GreaterOp,
    LeftShiftOp,
    LessOp,
    LogOp,
    MaximumOp,
    MinimumOp,
    MultiplyOp,
    NegativeOp,
    RightShiftOp,
    RoundOp,
    RsqrtOp,
    SigmoidOp,
    SqrtOp,
    SubtractOp,
    TanhOp,
    UnaryOp,
    WhereOp,
)
from relay.dialects.relay.fixed_point import OPERATIONS as FIXED_POINT
from relay.dialects.relay.fixed_point import (
    FixedPointMultiplyOp,
    FixedPointReciprocalOp,
    HighMultiplyOp,
    LookupOp,
    RoundingRightShiftOp,
)
from relay.dialects.relay.image import OPERATIONS as IMAGE
from relay.dialects.relay.image import (
    Resize2dOp,
)
from relay.dialects.relay.indexing import OPERATIONS as INDEXING
from relay.dialects.relay.indexing import (
    AdvIndexOp,
    GatherOp,
    InvertPermutationOp,
    ReverseSequenceOp,
    ScatterAddOp,
    ScatterNdOp,
    ScatterOp,
    StridedSetOp,
    UnravelIndexOp,
)
from relay.dialects.relay.logical import OPERATIONS as LOGICAL
from relay.dialects.relay.logical import (
    BitwiseAndOp,
    BitwiseOrOp,
    BitwiseXorOp,
    FloorModOp,
    GreaterEqualOp,
    LessEqualOp,
    LogicalAndOp,
    LogicalOp,
    LogicalOrOp,
    LogicalXorOp,
    ModOp,
    NotEqualOp,
    PowerOp,
)
from relay.dialects.relay.matmul import OPERATIONS as MATMUL
from relay.dialects.relay.matmul import (
    BatchMatmulOp,
    MatmulBase,
    MatmulOp,
)
from relay.dialects.relay.nn import (
    IMAGE as IMAGE_AXES,
)
from relay.dialects.relay.nn import (
    KERNEL_LAYOUTS,
    BiasAddOp,
    Conv2dBase,
    Conv2dOp,
    DenseBase,
    DenseOp,
    SoftmaxOp,
)
from relay.dialects.relay.nn import OPERATIONS as NN
from relay.dialects.relay.norm import OPERATIONS as NORM
from relay.dialects.relay.norm import (
    BatchNormOp,
    DropoutOp,
    GroupNormOp,
    InstanceNormOp,
    L2NormalizeOp,
    LayerNormOp,
    NormOp,
)
from relay.dialects.relay.pooling import OPERATIONS as POOLING
from relay.dialects.relay.pooling import (
    AdaptiveAvgBase,
    AdaptiveAvgPool1dOp,
    AdaptiveAvgPool2dOp,
    AdaptiveAvgPool3dOp,
    AdaptiveMaxBase,
    AdaptiveMaxPool1dOp,
    AdaptiveMaxPool2dOp,
    AdaptiveMaxPool3dOp,
    AdaptivePoolOp,
    AvgPool1dOp,
    AvgPool2dOp,
    AvgPool3dOp,
    AvgPoolBase,
    GlobalAvgPool2dOp,
    GlobalMaxPool2dOp,
    GlobalPool2dOp,
    MaxPool1dOp,
    MaxPool2dOp,
    MaxPool3dOp,
    MaxPoolBase,
    Pool2dOp,
    PoolOp,
    SpatialOp,
)
from relay.dialects.relay.rearrange import OPERATIONS as REARRANGE
from relay.dialects.relay.rearrange import (
    BatchFlattenOp,
    BatchToSpaceNdOp,
    BlocksOp,
    DepthToSpaceOp,
    DilateOp,
    FifoBufferOp,
    MirrorPadOp,
    RearrangeOp,
    SpaceToBatchNdOp,
    SpaceToDepthOp,
    SubpixelOp,
)
from relay.dialects.relay.reduce import OPERATIONS as REDUCE
from relay.dialects.relay.reduce import (
    AllOp,
    AnyOp,
    ArgmaxOp,
    ArgminOp,
    ArgOp,
    BooleanReduceOp,
    MaxOp,
    MeanOp,
    MinOp,
    ProdOp,
    ReduceOp,
    ReducingOp,
    SumOp,
    VarianceOp,
)
from relay.dialects.relay.resizing import OPERATIONS as RESIZING
from relay.dialects.relay.resizing import (
    Resize1dOp,
    Resize3dOp,
    ResizeOp,
    UpsampleOp,
    Upsampling3dOp,
    UpsamplingOp,
)
from relay.dialects.relay.shape import OPERATIONS as SHAPE
from relay.dialects.relay.shape import (
    BroadcastToOp,
    ConcatenateOp,
    ConstantOp,
    GatherNdOp,
    PadOp,
    ReshapeOp,
    StridedSliceOp,
    TakeOp,
    TransposeOp,
)
from relay.dialects.relay.sort import OPERATIONS as SORT
from relay.dialects.relay.sort import (
    ArgsortOp,
    SortingOp,
    SortOp,
    TopkOp,
)
from relay.dialects.relay.transform import OPERATIONS as TRANSFORM
from relay.dialects.relay.transform import (
    BroadcastToLikeOp,
    CastLikeOp,
    CollapseSumLikeOp,
    CollapseSumToOp,
    ExpandDimsOp,
    LayoutTransformOp,
    LikeOp,
    MeshgridOp,
    ReinterpretOp,
    RepeatOp,
    ReshapeLikeOp,
    ReverseOp,
    SliceLikeOp,
    SplitOp,
    SqueezeOp,
    StackOp,
    TileOp,
    TransformOp,
)
from relay.dialects.relay.unary import OPERATIONS as UNARY
from relay.dialects.relay.unary import (
    AcoshOp,
    AcosOp,
    AsinhOp,
    AsinOp,
    AtanhOp,
    AtanOp,
    BitwiseNotOp,
    CopyOp,
    CoshOp,
    CosOp,
    ErfOp,
    Expm1Op,
    FastErfOp,
    FastExpOp,
    FastTanhOp,
    IsfiniteOp,
    IsinfOp,
    IsnanOp,
    Log2Op,
    Log10Op,
    LogicalNotOp,
    MeasureOp,
    NdarraySizeOp,
    OnesLikeOp,
    PredicateOp,
    ShapeOfOp,
    SignOp,
    SinhOp,
    SinOp,
    TanOp,
    TruncOp,
    ZerosLikeOp,
)

Relay = Dialect(
    "relay",
    [
        *ELEMENTWISE,
        *FIXED_POINT,
        *REDUCE,
        *SHAPE,
        *NN,
        *NORM,
        *IMAGE,
        *UNARY,
        *LOGICAL,
        *CONVOLUTION,
        *MATMUL,
        *REARRANGE,
        *ACTIVATION,
        *POOLING,
        *TRANSFORM,
        *CREATION,
        *INDEXING,
        *RESIZING,
        *SORT,
    ],
)

__all__ = [
    "IMAGE_AXES", "KERNEL_LAYOUTS", "AbsOp", "AcosOp", "AcoshOp", "ActivationOp", "AdaptiveAvgBase",
    "AdaptiveAvgPool1dOp", "AdaptiveAvgPool2dOp", "AdaptiveAvgPool3dOp", "AdaptiveMaxBase", "AdaptiveMaxPool1dOp",
    "AdaptiveMaxPool2dOp", "AdaptiveMaxPool3dOp", "AdaptivePoolOp", "AddOp", "AdvIndexOp", "AllOp", "AlongAxisOp",
    "AnyOp", "ArangeOp", "ArgOp", "ArgmaxOp", "ArgminOp", "ArgsortOp", "AsinOp", "AsinhOp", "AtanOp", "AtanhOp",
    "AvgPool1dOp", "AvgPool2dOp", "AvgPool3dOp", "AvgPoolBase", "BatchFlattenOp", "BatchMatmulOp", "BatchNormOp",
    "BatchToSpaceNdOp", "BiasAddOp", "BinaryOp", "BitwiseAndOp", "BitwiseNotOp", "BitwiseOrOp", "BitwiseXorOp",
    "BlocksOp", "BooleanReduceOp", "BroadcastToLikeOp", "BroadcastToOp", "CastLikeOp", "CastOp", "CeilOp", "ClipOp",
    "CollapseSumLikeOp", "CollapseSumToOp", "CompareOp", "ConcatenateOp", "ConstantOp", "Conv1dOp", "Conv1dTransposeOp",
    "Conv2dBase", "Conv2dOp", "Conv2dTransposeOp", "Conv3dOp", "Conv3dTransposeOp", "ConvBase", "ConvNd",
    "ConvTransposeBase", "ConvTransposeNd", "CopyOp", "CosOp", "CoshOp", "CrossEntropyOp", "CrossEntropyWithLogitsOp",
    "CumprodOp", "CumsumOp", "CumulativeOp", "DenseBase", "DenseOp", "DepthToSpaceOp", "DilateOp", "DivideOp",
    "DropoutOp", "EqualOp", "ErfOp", "ExpOp", "ExpandDimsOp", "Expm1Op", "FastErfOp", "FastExpOp", "FastSoftmaxOp",
    "FastTanhOp", "FifoBufferOp", "FixedPointMultiplyOp", "FixedPointReciprocalOp", "FloorDivideOp",
    "FloorModOp", "FloorOp",
    "FullLikeOp", "FullOp", "GatherNdOp", "GatherOp", "GlobalAvgPool2dOp", "GlobalMaxPool2dOp", "GlobalPool2dOp",
    "GreaterEqualOp", "GreaterOp", "GroupNormOp", "HighMultiplyOp", "InstanceNormOp", "InvertPermutationOp",
    "IsfiniteOp", "IsinfOp", "IsnanOp", "L2NormalizeOp", "LayerNormOp", "LayoutTransformOp", "LeakyReluOp",
    "LeftShiftOp", "LessEqualOp", "LessOp", "LikeOp", "Log10Op", "Log2Op", "LogOp", "LogSoftmaxOp", "LogicalAndOp",
    "LogicalNotOp", "LogicalOp", "LogicalOrOp", "LogicalXorOp", "LookupOp", "LossOp", "LrnOp", "MatmulBase", "MatmulOp",
    "MatrixSetDiagOp", "MaxOp", "MaxPool1dOp", "MaxPool2dOp", "MaxPool3dOp", "MaxPoolBase", "MaximumOp", "MeanOp",
    "MeasureOp", "MeshgridOp", "MinOp", "MinimumOp", "MirrorPadOp", "ModOp", "MultiplyOp", "NdarraySizeOp",
    "NegativeOp", "NormOp", "NotEqualOp", "OneHotOp", "OnesLikeOp", "OnesOp", "PadOp", "Pool2dOp", "PoolOp", "PowerOp",
    "PredicateOp", "PreluOp", "ProdOp", "RearrangeOp", "ReduceOp", "ReducingOp", "ReinterpretOp", "Relay", "ReluOp",
    "RepeatOp", "ReshapeLikeOp", "ReshapeOp", "Resize1dOp", "Resize2dOp", "Resize3dOp", "ResizeOp", "ReverseOp",
    "ReverseSequenceOp", "RightShiftOp", "RoundOp", "RoundingRightShiftOp", "RsqrtOp", "ScatterAddOp", "ScatterNdOp",
    "ScatterOp", "SequenceMaskOp", "ShapeOfOp", "SigmoidOp", "SignOp", "SinOp", "SinhOp", "SliceLikeOp", "SoftmaxOp",
    "SortOp", "SortingOp", "SpaceToBatchNdOp", "SpaceToDepthOp", "SpatialConvolution", "SpatialOp", "SplitOp", "SqrtOp",
    "SqueezeOp", "StackOp", "StridedSetOp", "StridedSliceOp", "SubpixelOp", "SubtractOp", "SumOp", "TakeOp", "TanOp",
    "TanhOp", "TileOp", "TopkOp", "TransformOp", "TransposeOp", "TruncOp", "UnaryOp", "UnravelIndexOp", "UpsampleOp",
    "Upsampling3dOp", "UpsamplingOp", "VarianceOp", "WhereOp", "ZerosLikeOp", "ZerosOp",
]  # fmt: skip
