"""The TFLite schema as data: the fields of its tables, the names of its enums, the options of its operators.

Source: TFLite schema.fbs, version 3. A field's slot is its index in the table's vtable; slots never change their
meaning and new fields are added last, so this table also reads older and newer files. A test compares every row with
LiteRT's own generated schema.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal[
    "bool",
    "int8",
    "uint8",
    "uint16",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "float32",
    "string",
    "vector",
    "table",
    "union",
]


class Field(NamedTuple):
    """One field of a table; `of` is the type of a vector's elements."""

    slot: int
    kind: Kind
    default: int | float | bool = 0
    of: Kind = "table"
    names: tuple[str, ...] = ()
    """The names of an enum's values 0, 1, …; empty for a plain number."""


Fields = dict[str, Field]


def _vector(slot: int, of: Kind) -> Field:
    return Field(slot, "vector", of=of)


class TensorType(NamedTuple):
    """How a tensor type is stored: bits per element (0: no fixed size) and the numpy dtype, if numpy has one."""

    name: str
    bits: int
    dtype: str = ""


TENSOR_TYPES: tuple[TensorType, ...] = (
    TensorType("FLOAT32", 32, "<f4"),
    TensorType("FLOAT16", 16, "<f2"),
    TensorType("INT32", 32, "<i4"),
    TensorType("UINT8", 8, "|u1"),
    TensorType("INT64", 64, "<i8"),
    TensorType("STRING", 0),
    TensorType("BOOL", 8, "|b1"),
    TensorType("INT16", 16, "<i2"),
    TensorType("COMPLEX64", 64, "<c8"),
    TensorType("INT8", 8, "|i1"),
    TensorType("FLOAT64", 64, "<f8"),
    TensorType("COMPLEX128", 128, "<c16"),
    TensorType("UINT64", 64, "<u8"),
    TensorType("RESOURCE", 0),
    TensorType("VARIANT", 0),
    TensorType("UINT32", 32, "<u4"),
    TensorType("UINT16", 16, "<u2"),
    TensorType("INT4", 4),
    TensorType("BFLOAT16", 16),
    TensorType("INT2", 2),
    TensorType("UINT4", 4),
    TensorType("FLOAT8_E4M3FN", 8),
    TensorType("FLOAT8_E5M2", 8),
)
TENSOR_TYPE_NAMES = tuple(row.name for row in TENSOR_TYPES)
ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
PADDINGS = ("SAME", "VALID")
MIRROR_PAD_MODES = ("REFLECT", "SYMMETRIC")
WEIGHTS_FORMATS = ("DEFAULT", "SHUFFLED4x16INT8")
LSTM_KERNELS = ("FULL", "BASIC")
QUANTIZATION_DETAILS = ("NONE", "CustomQuantization", "BlockwiseQuantization", "MultiAxisQuantization")

MODEL: Fields = {
    "version": Field(0, "uint32"),
    "operator_codes": _vector(1, "table"),
    "subgraphs": _vector(2, "table"),
    "description": Field(3, "string"),
    "buffers": _vector(4, "table"),
    "metadata": _vector(6, "table"),
}
OPERATOR_CODE: Fields = {
    "deprecated_builtin_code": Field(0, "int8"),
    "custom_code": Field(1, "string"),
    "version": Field(2, "int32", 1),
    "builtin_code": Field(3, "int32"),
}
SUBGRAPH: Fields = {
    "tensors": _vector(0, "table"),
    "inputs": _vector(1, "int32"),
    "outputs": _vector(2, "int32"),
    "operators": _vector(3, "table"),
    "name": Field(4, "string"),
}
TENSOR: Fields = {
    "shape": _vector(0, "int32"),
    "type": Field(1, "int8"),
    "buffer": Field(2, "uint32"),
    "name": Field(3, "string"),
    "quantization": Field(4, "table"),
    "is_variable": Field(5, "bool", False),
    "sparsity": Field(6, "table"),
    "shape_signature": _vector(7, "int32"),
    "external_buffer": Field(10, "uint32"),
}
QUANTIZATION: Fields = {
    "scale": _vector(2, "float32"),
    "zero_point": _vector(3, "int64"),
    "details_type": Field(4, "uint8", names=QUANTIZATION_DETAILS),
    "details": Field(5, "union"),
    "quantized_dimension": Field(6, "int32"),
}
BLOCKS: Fields = {
    "scales": Field(0, "int32"),
    "zero_points": Field(1, "int32"),
    "block_size": Field(2, "int32"),
    "block_shape": _vector(3, "int32"),
}
OPERATOR: Fields = {
    "opcode_index": Field(0, "uint32"),
    "inputs": _vector(1, "int32"),
    "outputs": _vector(2, "int32"),
    "builtin_options_type": Field(3, "uint8"),
    "builtin_options": Field(4, "union"),
    "custom_options": _vector(5, "uint8"),
    "mutating_variable_inputs": _vector(7, "bool"),
    "intermediates": _vector(8, "int32"),
    "large_custom_options_offset": Field(9, "uint64"),
    "large_custom_options_size": Field(10, "uint64"),
}
BUFFER: Fields = {"data": _vector(0, "uint8"), "offset": Field(1, "uint64"), "size": Field(2, "uint64")}
METADATA: Fields = {"name": Field(0, "string"), "buffer": Field(1, "uint32")}

# Indexed by BuiltinOperator, 0 to 209.
BUILTIN_OPERATORS: tuple[str, ...] = tuple(
    """
ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM
MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS
SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND
SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN
EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2
GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG
SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT
UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU
SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE
MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5
SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO
RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE
RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX
UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD
STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE
STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS
STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM STABLEHLO_NEGATE
STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH
STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE
STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE
STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE
STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE
""".split()
)


def _padding(slot: int) -> Field:
    return Field(slot, "int8", names=PADDINGS)


def _activation(slot: int) -> Field:
    return Field(slot, "int8", names=ACTIVATIONS)


def _type(slot: int, default: int = 0) -> Field:
    return Field(slot, "int8", default, names=TENSOR_TYPE_NAMES)


def _int32(slot: int, default: int = 0) -> Field:
    return Field(slot, "int32", default)


def _float32(slot: int) -> Field:
    return Field(slot, "float32", 0.0)


def _bool(slot: int, default: bool = False) -> Field:
    return Field(slot, "bool", default)


class Options(NamedTuple):
    """An options table: its member number in the union BuiltinOptions, its name in the schema, its fields."""

    member: int
    name: str
    fields: Fields


_CONV_2D = Options(
    1,
    "Conv2DOptions",
    {
        "padding": _padding(0),
        "stride_w": _int32(1),
        "stride_h": _int32(2),
        "fused_activation_function": _activation(3),
        "dilation_w_factor": _int32(4, 1),
        "dilation_h_factor": _int32(5, 1),
        "quantized_bias_type": _type(6),
    },
)
_DEPTHWISE_CONV_2D = Options(
    2,
    "DepthwiseConv2DOptions",
    {
        "padding": _padding(0),
        "stride_w": _int32(1),
        "stride_h": _int32(2),
        "depth_multiplier": _int32(3),
        "fused_activation_function": _activation(4),
        "dilation_w_factor": _int32(5, 1),
        "dilation_h_factor": _int32(6, 1),
    },
)
_POOL_2D = Options(
    5,
    "Pool2DOptions",
    {
        "padding": _padding(0),
        "stride_w": _int32(1),
        "stride_h": _int32(2),
        "filter_width": _int32(3),
        "filter_height": _int32(4),
        "fused_activation_function": _activation(5),
    },
)
_SVDF = Options(
    6,
    "SVDFOptions",
    {"rank": _int32(0), "fused_activation_function": _activation(1), "asymmetric_quantize_inputs": _bool(2)},
)
_FULLY_CONNECTED = Options(
    8,
    "FullyConnectedOptions",
    {
        "fused_activation_function": _activation(0),
        "weights_format": Field(1, "int8", names=WEIGHTS_FORMATS),
        "keep_num_dims": _bool(2),
        "asymmetric_quantize_inputs": _bool(3),
        "quantized_bias_type": _type(4),
    },
)
_CELL: Fields = {"fused_activation_function": _activation(0), "cell_clip": _float32(1), "proj_clip": _float32(2)}
_STEPS: Fields = {"time_major": _bool(0), "fused_activation_function": _activation(1)}
_LSTM = Options(
    14,
    "LSTMOptions",
    {**_CELL, "kernel_type": Field(3, "int8", names=LSTM_KERNELS), "asymmetric_quantize_inputs": _bool(4)},
)
_REDUCER = Options(27, "ReducerOptions", {"keep_dims": _bool(0)})
_STRIDED_SLICE = Options(
    32,
    "StridedSliceOptions",
    {
        "begin_mask": _int32(0),
        "end_mask": _int32(1),
        "ellipsis_mask": _int32(2),
        "new_axis_mask": _int32(3),
        "shrink_axis_mask": _int32(4),
        "offset": _bool(5),
    },
)
_TRANSPOSE_CONV = Options(
    49,
    "TransposeConvOptions",
    {
        "padding": _padding(0),
        "stride_w": _int32(1),
        "stride_h": _int32(2),
        "fused_activation_function": _activation(3),
        "quantized_bias_type": _type(4),
    },
)
_UNIDIRECTIONAL_SEQUENCE_LSTM = Options(
    71,
    "UnidirectionalSequenceLSTMOptions",
    {
        **_CELL,
        "time_major": _bool(3),
        "asymmetric_quantize_inputs": _bool(4),
        "diagonal_recurrent_tensors": _bool(5),
    },
)

_CONV_3D = Options(
    106,
    "Conv3DOptions",
    {
        "padding": _padding(0),
        "stride_d": _int32(1),
        "stride_w": _int32(2),
        "stride_h": _int32(3),
        "fused_activation_function": _activation(4),
        "dilation_d_factor": _int32(5, 1),
        "dilation_w_factor": _int32(6, 1),
        "dilation_h_factor": _int32(7, 1),
    },
)

# The options of the builtin operators that have any. An operator without a row has none, or none that relay knows.
OPTIONS: dict[str, Options] = {
    "ADD": Options(11, "AddOptions", {"fused_activation_function": _activation(0), "pot_scale_int16": _bool(1, True)}),
    "ARG_MAX": Options(40, "ArgMaxOptions", {"output_type": _type(0)}),
    "ARG_MIN": Options(57, "ArgMinOptions", {"output_type": _type(0)}),
    "AVERAGE_POOL_2D": _POOL_2D,
    "BATCH_MATMUL": Options(
        101, "BatchMatMulOptions", {"adj_x": _bool(0), "adj_y": _bool(1), "asymmetric_quantize_inputs": _bool(2)}
    ),
    "CALL_ONCE": Options(103, "CallOnceOptions", {"init_subgraph_index": _int32(0)}),
    "CAST": Options(37, "CastOptions", {"in_data_type": _type(0), "out_data_type": _type(1)}),
    "CONCATENATION": Options(
        10, "ConcatenationOptions", {"axis": _int32(0), "fused_activation_function": _activation(1)}
    ),
    "CONV_2D": _CONV_2D,
    "CONV_3D": _CONV_3D,
    "CONV_3D_TRANSPOSE": _CONV_3D,
    "CUMSUM": Options(102, "CumsumOptions", {"exclusive": _bool(0), "reverse": _bool(1)}),
    "DEPTHWISE_CONV_2D": _DEPTHWISE_CONV_2D,
    "DEPTH_TO_SPACE": Options(94, "DepthToSpaceOptions", {"block_size": _int32(0)}),
    "DIV": Options(29, "DivOptions", {"fused_activation_function": _activation(0)}),
    "FAKE_QUANT": Options(
        58,
        "FakeQuantOptions",
        {"min": _float32(0), "max": _float32(1), "num_bits": _int32(2), "narrow_range": _bool(3)},
    ),
    "FULLY_CONNECTED": _FULLY_CONNECTED,
    "GATHER": Options(23, "GatherOptions", {"axis": _int32(0), "batch_dims": _int32(1)}),
    "GELU": Options(116, "GeluOptions", {"approximate": _bool(0)}),
    "IF": Options(92, "IfOptions", {"then_subgraph_index": _int32(0), "else_subgraph_index": _int32(1)}),
    "L2_NORMALIZATION": Options(12, "L2NormOptions", {"fused_activation_function": _activation(0)}),
    "L2_POOL_2D": _POOL_2D,
    "LEAKY_RELU": Options(75, "LeakyReluOptions", {"alpha": _float32(0)}),
    "LOCAL_RESPONSE_NORMALIZATION": Options(
        13,
        "LocalResponseNormalizationOptions",
        {"radius": _int32(0), "bias": _float32(1), "alpha": _float32(2), "beta": _float32(3)},
    ),
    "LSTM": _LSTM,
    "BIDIRECTIONAL_SEQUENCE_LSTM": Options(
        69, "BidirectionalSequenceLSTMOptions", _CELL | {"merge_outputs": _bool(3), "time_major": _bool(4, True)}
    ),
    "BIDIRECTIONAL_SEQUENCE_RNN": Options(70, "BidirectionalSequenceRNNOptions", _STEPS | {"merge_outputs": _bool(2)}),
    "RNN": Options(7, "RNNOptions", {"fused_activation_function": _activation(0)}),
    "UNIDIRECTIONAL_SEQUENCE_RNN": Options(31, "SequenceRNNOptions", _STEPS),
    "MAX_POOL_2D": _POOL_2D,
    "MEAN": _REDUCER,
    "MIRROR_PAD": Options(77, "MirrorPadOptions", {"mode": Field(0, "int8", names=MIRROR_PAD_MODES)}),
    "MUL": Options(21, "MulOptions", {"fused_activation_function": _activation(0)}),
    "ONE_HOT": Options(61, "OneHotOptions", {"axis": _int32(0)}),
    "PACK": Options(59, "PackOptions", {"values_count": _int32(0), "axis": _int32(1)}),
    "REDUCE_ALL": _REDUCER,
    "REDUCE_ANY": _REDUCER,
    "REDUCE_MAX": _REDUCER,
    "REDUCE_MIN": _REDUCER,
    "REDUCE_PROD": _REDUCER,
    "RESHAPE": Options(17, "ReshapeOptions", {"new_shape": _vector(0, "int32")}),
    "RESIZE_BILINEAR": Options(
        15, "ResizeBilinearOptions", {"align_corners": _bool(2), "half_pixel_centers": _bool(3)}
    ),
    "RESIZE_NEAREST_NEIGHBOR": Options(
        74, "ResizeNearestNeighborOptions", {"align_corners": _bool(0), "half_pixel_centers": _bool(1)}
    ),
    "REVERSE_SEQUENCE": Options(87, "ReverseSequenceOptions", {"seq_dim": _int32(0), "batch_dim": _int32(1)}),
    "SHAPE": Options(55, "ShapeOptions", {"out_type": _type(0)}),
    "SOFTMAX": Options(9, "SoftmaxOptions", {"beta": _float32(0)}),
    "SPACE_TO_DEPTH": Options(19, "SpaceToDepthOptions", {"block_size": _int32(0)}),
    "SPLIT": Options(35, "SplitOptions", {"num_splits": _int32(0)}),
    "SPLIT_V": Options(79, "SplitVOptions", {"num_splits": _int32(0)}),
    "SQUEEZE": Options(30, "SqueezeOptions", {"squeeze_dims": _vector(0, "int32")}),
    "STRIDED_SLICE": _STRIDED_SLICE,
    "SUB": Options(28, "SubOptions", {"fused_activation_function": _activation(0), "pot_scale_int16": _bool(1, True)}),
    "SUM": _REDUCER,
    "SVDF": _SVDF,
    "TRANSPOSE_CONV": _TRANSPOSE_CONV,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _UNIDIRECTIONAL_SEQUENCE_LSTM,
    "UNPACK": Options(64, "UnpackOptions", {"num": _int32(0), "axis": _int32(1)}),
    "VAR_HANDLE": Options(
        111, "VarHandleOptions", {"container": Field(0, "string"), "shared_name": Field(1, "string")}
    ),
    "WHILE": Options(93, "WhileOptions", {"cond_subgraph_index": _int32(0), "body_subgraph_index": _int32(1)}),
}
