"""The few operations that Keras lacks, or that differ between backends.

Everything else in the package is written with `keras.ops` alone.
"""

from keras_attnvariants.backend.blocks import jit_by_rows
from keras_attnvariants.backend.blocks import runs_by_rows
from keras_attnvariants.backend.compilation import constant
from keras_attnvariants.backend.compilation import faster_floats
from keras_attnvariants.backend.compilation import gains_from_xla
from keras_attnvariants.backend.compilation import in_xla
from keras_attnvariants.backend.compilation import jit
from keras_attnvariants.backend.compilation import keep_programs
from keras_attnvariants.backend.compilation import name
from keras_attnvariants.backend.compilation import remember
from keras_attnvariants.backend.compilation import remembered
from keras_attnvariants.backend.compilation import shared_tensor
from keras_attnvariants.backend.distribution import check_one_replica
from keras_attnvariants.backend.distribution import local_size
from keras_attnvariants.backend.distribution import local_value
from keras_attnvariants.backend.distribution import local_values
from keras_attnvariants.backend.inference import inference_copy
from keras_attnvariants.backend.inference import is_plain_int8
from keras_attnvariants.backend.inference import shallow_copy
from keras_attnvariants.backend.layers import Dense
from keras_attnvariants.backend.layers import Dropout
from keras_attnvariants.backend.layers import LayerNormalization
from keras_attnvariants.backend.layers import ReversibleEmbedding
from keras_attnvariants.backend.onednn import is_onednn_exact
from keras_attnvariants.backend.onednn import sums_exactly
from keras_attnvariants.backend.products import project_jointly
from keras_attnvariants.backend.products import sums_bfloat16_in_float32
from keras_attnvariants.backend.scan import scan
from keras_attnvariants.backend.scan import with_gradient
from keras_attnvariants.backend.shapes import VectorLists
from keras_attnvariants.backend.shapes import as_matrix
from keras_attnvariants.backend.shapes import at_least
from keras_attnvariants.backend.shapes import at_most
from keras_attnvariants.backend.shapes import of_any_rows
from keras_attnvariants.backend.shapes import reshape
from keras_attnvariants.backend.shapes import section
from keras_attnvariants.backend.shapes import sizes
from keras_attnvariants.backend.shapes import swap_rows
from keras_attnvariants.backend.shapes import take
from keras_attnvariants.backend.softmax import fused_attention
from keras_attnvariants.backend.softmax import has_fused_attention
from keras_attnvariants.backend.softmax import masked_softmax
from keras_attnvariants.backend.updates import accumulating_train_function
from keras_attnvariants.backend.updates import apply_adam
from keras_attnvariants.backend.updates import dense
from keras_attnvariants.backend.updates import has_adam

__all__ = [
    "Dense",
    "Dropout",
    "LayerNormalization",
    "ReversibleEmbedding",
    "VectorLists",
    "accumulating_train_function",
    "apply_adam",
    "as_matrix",
    "at_least",
    "at_most",
    "check_one_replica",
    "constant",
    "dense",
    "faster_floats",
    "fused_attention",
    "gains_from_xla",
    "has_adam",
    "has_fused_attention",
    "in_xla",
    "inference_copy",
    "is_onednn_exact",
    "is_plain_int8",
    "jit",
    "jit_by_rows",
    "keep_programs",
    "local_size",
    "local_value",
    "local_values",
    "masked_softmax",
    "name",
    "of_any_rows",
    "project_jointly",
    "remember",
    "remembered",
    "reshape",
    "runs_by_rows",
    "scan",
    "section",
    "shallow_copy",
    "shared_tensor",
    "sizes",
    "sums_bfloat16_in_float32",
    "sums_exactly",
    "swap_rows",
    "take",
    "with_gradient",
]
