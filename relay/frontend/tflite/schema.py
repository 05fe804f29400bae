"""The TFLite schema as data: the fields of its tables, the names of its enums, the options of its operators.

Source: TFLite schema.fbs, version 3. A field's slot is its index in the table's vtable; slots never change their
meaning and new fields are added last, so this table also reads older and newer files. A test compares every row with
LiteRT's own generated schema.
"""

from __future__ import annotations

from typing import NamedTuple

Kind = str
"""The type of a field: that of its number, such as `int8` or `bool`, or `string`, `vector`, `table` or `union`."""


class Field(NamedTuple):
    """One field of a table; `of` is the type of a vector's elements."""

    slot: int
    kind: Kind
    default: int | float | bool = 0
    of: Kind = "table"
    names: tuple[str, ...] = ()
    """The names of an enum's values 0, 1, …; empty for a plain number."""


Fields = dict[str, Field]


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

_ENUMS: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "Activation": ("int8", ACTIVATIONS),
    "Details": ("uint8", QUANTIZATION_DETAILS),
    "Dimension": ("int8", ("DENSE", "SPARSE_CSR")),
    "LstmKernel": ("int8", LSTM_KERNELS),
    "MirrorPadMode": ("int8", MIRROR_PAD_MODES),
    "Padding": ("int8", PADDINGS),
    "TensorType": ("int8", TENSOR_TYPE_NAMES),
    "WeightsFormat": ("int8", WEIGHTS_FORMATS),
}
"""The types of the numbers of enums, and the names of their values."""


def fields_of(schema: str) -> Fields:
    """The fields of a table, written in the order of their slots as in the schema: `name:type` or `name:type=default`;
    `[type]` is a vector, and `_` a field that relay does not read."""
    fields: Fields = {}
    for slot, field in enumerate(schema.split()):
        name, _, type = field.partition(":")
        type, _, default = type.partition("=")
        if type in _ENUMS:
            kind, names = _ENUMS[type]
            fields[name] = Field(slot, kind, names=names)
        elif type.startswith("["):
            fields[name] = Field(slot, "vector", of=type.strip("[]"))
        elif type == "bool":
            fields[name] = Field(slot, type, default == "true")
        elif name != "_":
            fields[name] = Field(slot, type, 0.0 if type == "float32" else int(default or 0))
    return fields


MODEL = fields_of(
    "version:uint32 operator_codes:[table] subgraphs:[table] description:string buffers:[table] _ metadata:[table]"
)
OPERATOR_CODE = fields_of("deprecated_builtin_code:int8 custom_code:string version:int32=1 builtin_code:int32")
SUBGRAPH = fields_of("tensors:[table] inputs:[int32] outputs:[int32] operators:[table] name:string")
TENSOR = fields_of(
    "shape:[int32] type:int8 buffer:uint32 name:string quantization:table is_variable:bool sparsity:table "
    "shape_signature:[int32] _ _ external_buffer:uint32"
)
QUANTIZATION = fields_of(
    "_ _ scale:[float32] zero_point:[int64] details_type:Details details:union quantized_dimension:int32"
)
BLOCKS = fields_of("scales:int32 zero_points:int32 block_size:int32 block_shape:[int32]")
OPERATOR = fields_of(
    "opcode_index:uint32 inputs:[int32] outputs:[int32] builtin_options_type:uint8 builtin_options:union "
    "custom_options:[uint8] _ mutating_variable_inputs:[bool] intermediates:[int32] large_custom_options_offset:uint64 "
    "large_custom_options_size:uint64"
)
BUFFER = fields_of("data:[uint8] offset:uint64 size:uint64")
METADATA = fields_of("name:string buffer:uint32")

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


class Options(NamedTuple):
    """An options table: its member number in the union BuiltinOptions, its name in the schema, its fields."""

    member: int
    name: str
    fields: Fields


def _options(member: int, name: str, schema: str) -> Options:
    return Options(member, name, fields_of(schema))


_ACTIVATED = "fused_activation_function:Activation"
_WINDOW = "padding:Padding stride_w:int32 stride_h:int32"
_DILATED = "dilation_w_factor:int32=1 dilation_h_factor:int32=1"
_CONV_3D = _options(
    106,
    "Conv3DOptions",
    f"padding:Padding stride_d:int32 stride_w:int32 stride_h:int32 {_ACTIVATED} dilation_d_factor:int32=1 {_DILATED}",
)
_POOL_2D = _options(5, "Pool2DOptions", f"{_WINDOW} filter_width:int32 filter_height:int32 {_ACTIVATED}")
_REDUCER = _options(27, "ReducerOptions", "keep_dims:bool")
_CELL = f"{_ACTIVATED} cell_clip:float32 proj_clip:float32"

# The options of the builtin operators that have any. An operator without a row has none, or none that relay knows.
OPTIONS: dict[str, Options] = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"), _POOL_2D),
    **dict.fromkeys(("CONV_3D", "CONV_3D_TRANSPOSE"), _CONV_3D),
    **dict.fromkeys(("MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"), _REDUCER),
    "ADD": _options(11, "AddOptions", f"{_ACTIVATED} pot_scale_int16:bool=true"),
    "ARG_MAX": _options(40, "ArgMaxOptions", "output_type:TensorType"),
    "ARG_MIN": _options(57, "ArgMinOptions", "output_type:TensorType"),
    "BATCH_MATMUL": _options(101, "BatchMatMulOptions", "adj_x:bool adj_y:bool asymmetric_quantize_inputs:bool"),
    "BIDIRECTIONAL_SEQUENCE_LSTM": _options(
        69, "BidirectionalSequenceLSTMOptions", f"{_CELL} merge_outputs:bool time_major:bool=true"
    ),
    "BIDIRECTIONAL_SEQUENCE_RNN": _options(
        70, "BidirectionalSequenceRNNOptions", f"time_major:bool {_ACTIVATED} merge_outputs:bool"
    ),
    "CALL_ONCE": _options(103, "CallOnceOptions", "init_subgraph_index:int32"),
    "CAST": _options(37, "CastOptions", "in_data_type:TensorType out_data_type:TensorType"),
    "CONCATENATION": _options(10, "ConcatenationOptions", f"axis:int32 {_ACTIVATED}"),
    "CONV_2D": _options(1, "Conv2DOptions", f"{_WINDOW} {_ACTIVATED} {_DILATED} quantized_bias_type:TensorType"),
    "CUMSUM": _options(102, "CumsumOptions", "exclusive:bool reverse:bool"),
    "DEPTHWISE_CONV_2D": _options(
        2, "DepthwiseConv2DOptions", f"{_WINDOW} depth_multiplier:int32 {_ACTIVATED} {_DILATED}"
    ),
    "DEPTH_TO_SPACE": _options(94, "DepthToSpaceOptions", "block_size:int32"),
    "DIV": _options(29, "DivOptions", _ACTIVATED),
    "FAKE_QUANT": _options(58, "FakeQuantOptions", "min:float32 max:float32 num_bits:int32 narrow_range:bool"),
    "FULLY_CONNECTED": _options(
        8,
        "FullyConnectedOptions",
        f"{_ACTIVATED} weights_format:WeightsFormat keep_num_dims:bool asymmetric_quantize_inputs:bool "
        "quantized_bias_type:TensorType",
    ),
    "GATHER": _options(23, "GatherOptions", "axis:int32 batch_dims:int32"),
    "GELU": _options(116, "GeluOptions", "approximate:bool"),
    "IF": _options(92, "IfOptions", "then_subgraph_index:int32 else_subgraph_index:int32"),
    "L2_NORMALIZATION": _options(12, "L2NormOptions", _ACTIVATED),
    "LEAKY_RELU": _options(75, "LeakyReluOptions", "alpha:float32"),
    "LOCAL_RESPONSE_NORMALIZATION": _options(
        13, "LocalResponseNormalizationOptions", "radius:int32 bias:float32 alpha:float32 beta:float32"
    ),
    "LSTM": _options(14, "LSTMOptions", f"{_CELL} kernel_type:LstmKernel asymmetric_quantize_inputs:bool"),
    "MIRROR_PAD": _options(77, "MirrorPadOptions", "mode:MirrorPadMode"),
    "MUL": _options(21, "MulOptions", _ACTIVATED),
    "ONE_HOT": _options(61, "OneHotOptions", "axis:int32"),
    "PACK": _options(59, "PackOptions", "values_count:int32 axis:int32"),
    "RESHAPE": _options(17, "ReshapeOptions", "new_shape:[int32]"),
    "RESIZE_BILINEAR": _options(15, "ResizeBilinearOptions", "_ _ align_corners:bool half_pixel_centers:bool"),
    "RESIZE_NEAREST_NEIGHBOR": _options(
        74, "ResizeNearestNeighborOptions", "align_corners:bool half_pixel_centers:bool"
    ),
    "REVERSE_SEQUENCE": _options(87, "ReverseSequenceOptions", "seq_dim:int32 batch_dim:int32"),
    "RNN": _options(7, "RNNOptions", _ACTIVATED),
    "SHAPE": _options(55, "ShapeOptions", "out_type:TensorType"),
    "SOFTMAX": _options(9, "SoftmaxOptions", "beta:float32"),
    "SPACE_TO_DEPTH": _options(19, "SpaceToDepthOptions", "block_size:int32"),
    "SPLIT": _options(35, "SplitOptions", "num_splits:int32"),
    "SPLIT_V": _options(79, "SplitVOptions", "num_splits:int32"),
    "SQUEEZE": _options(30, "SqueezeOptions", "squeeze_dims:[int32]"),
    "STRIDED_SLICE": _options(
        32,
        "StridedSliceOptions",
        "begin_mask:int32 end_mask:int32 ellipsis_mask:int32 new_axis_mask:int32 shrink_axis_mask:int32 offset:bool",
    ),
    "SUB": _options(28, "SubOptions", f"{_ACTIVATED} pot_scale_int16:bool=true"),
    "SVDF": _options(6, "SVDFOptions", f"rank:int32 {_ACTIVATED} asymmetric_quantize_inputs:bool"),
    "TRANSPOSE_CONV": _options(49, "TransposeConvOptions", f"{_WINDOW} {_ACTIVATED} quantized_bias_type:TensorType"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _options(
        71,
        "UnidirectionalSequenceLSTMOptions",
        f"{_CELL} time_major:bool asymmetric_quantize_inputs:bool diagonal_recurrent_tensors:bool",
    ),
    "UNIDIRECTIONAL_SEQUENCE_RNN": _options(31, "SequenceRNNOptions", f"time_major:bool {_ACTIVATED}"),
    "UNPACK": _options(64, "UnpackOptions", "num:int32 axis:int32"),
    "VAR_HANDLE": _options(111, "VarHandleOptions", "container:string shared_name:string"),
    "WHILE": _options(93, "WhileOptions", "cond_subgraph_index:int32 body_subgraph_index:int32"),
}
