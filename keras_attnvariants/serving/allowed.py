"""The operators that a SavedModel of this package may have.

All of them are in every build of TensorFlow and of TensorFlow Serving, but for the text
operators and that of oneDNN, and none of them reaches a file, a network, a device other
than the model's, a thread or Python, except those that restore and save weights.
"""

# TensorFlow Serving links these in from TensorFlow Text; both releases must agree.
TEXT_OPERATORS = frozenset(
    {
        "SentencepieceOp",
        "SentencepieceTokenizeOp",
        "SentencepieceDetokenizeOp",
        "SentencepieceIdToStringOp",
    }
)

_CALLS = """
    Assert Case Const Identity IdentityN If NoOp PartitionedCall Placeholder
    PreventGradient ReadVariableOp StatefulPartitionedCall StatelessCase StatelessIf
    StatelessWhile StopGradient VarHandleOp While
"""
_ARITHMETIC = """
    Abs Acos Acosh AddN AddV2 Asin Asinh Atan Atan2 Atanh Bitcast BitwiseAnd BitwiseOr
    BitwiseXor Cast Ceil ClipByValue Cos Cosh Cumprod Cumsum CumulativeLogsumexp Digamma
    Div DivNoNan Elu Erf Erfc Erfinv Exp Expm1 Floor FloorDiv FloorMod Inv Invert
    LeakyRelu LeftShift Lgamma Log Log1p Max Maximum Mean Min Minimum Mod Mul MulNoNan
    Neg Pow Prod RealDiv Reciprocal Relu Relu6 RightShift Rint Round Rsqrt Selu Sigmoid
    Sign Sin Sinh Softplus Softsign Sqrt Square SquaredDifference Sub Sum Tan Tanh
    TruncateDiv TruncateMod Xdivy Xlog1py Xlogy
"""
_LOGIC = """
    All Any ApproximateEqual ArgMax ArgMin Equal Greater GreaterEqual InTopKV2 IsFinite
    IsInf IsNan Less LessEqual LogicalAnd LogicalNot LogicalOr NotEqual Select SelectV2
    TopKV2 Where
"""
_SHAPES = """
    BroadcastArgs BroadcastTo ConcatV2 Diag DiagPart DynamicPartition DynamicStitch
    EnsureShape ExpandDims Fill Gather GatherNd GatherV2 InvertPermutation LinSpace
    MatrixBandPart MatrixDiagPartV3 MatrixDiagV3 MatrixSetDiagV3 MirrorPad OneHot
    OnesLike Pack Pad PadV2 ParallelDynamicStitch Range Rank Reshape ReverseSequence
    ReverseV2 Roll ScatterNd Shape ShapeN Size Slice Split SplitV Squeeze StridedSlice
    TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub
    TensorScatterUpdate TensorStridedSliceUpdate Tile Transpose Unique UniqueV2 Unpack
    ZerosLike
"""
_PRODUCTS = """
    AvgPool BatchMatMulV2 BatchMatMulV3 BiasAdd Conv2D DepthwiseConv2dNative
    Einsum FusedBatchNormV3 LogSoftmax MatMul MaxPool SegmentSum Softmax
    UnsortedSegmentMax UnsortedSegmentSum
"""
# Reproducible: all their randomness comes from a seed among their inputs.
_RANDOM = """
    StatelessMultinomial StatelessRandomGetAlg StatelessRandomGetKeyCounter
    StatelessRandomGetKeyCounterAlg StatelessRandomNormal StatelessRandomNormalV2
    StatelessRandomUniform StatelessRandomUniformV2 StatelessRandomUniformIntV2
"""
_LISTS_AND_TEXTS = """
    AsString EmptyTensorList RaggedGather RaggedRange RaggedTensorToTensor StringJoin
    StringLength StringLower StringStrip StringUpper Substr TensorListConcatV2
    TensorListElementShape TensorListFromTensor TensorListGather TensorListGetItem
    TensorListLength TensorListPopBack TensorListPushBack TensorListReserve
    TensorListResize TensorListSetItem TensorListStack UnicodeTranscode
"""

# Not among `tf.raw_ops`: TensorFlow for Linux on x86-64 has it, built with oneDNN.
ONEDNN_OPERATORS = frozenset({"_QuantizedMatMul"})

# Their results follow from their inputs alone.
PURE = frozenset(" ".join([_ARITHMETIC, _LOGIC, _SHAPES, _PRODUCTS]).split())

# What computes a result from its inputs and the weights.
COMPUTING = ONEDNN_OPERATORS | frozenset(
    " ".join(
        [_CALLS, _ARITHMETIC, _LOGIC, _SHAPES, _PRODUCTS, _RANDOM, _LISTS_AND_TEXTS]
    ).split()
)
# What a server runs besides when it loads the weights, and nothing else.
RESTORING = frozenset({"AssignVariableOp", "RestoreV2"})
# What makes weights of stored ones when they are loaded.
MAKING = frozenset({"AssignVariableOp"})
# What TensorFlow adds to save them again; a server never runs it.
SAVING = frozenset(
    """
    DisableCopyOnRead MergeV2Checkpoints SaveV2 ShardedFilename StaticRegexFullMatch
    """.split()
)
