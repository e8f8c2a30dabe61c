"""The few operations that Keras lacks, or that differ between backends.

Everything else in the package is written with `keras.ops` alone.
"""

from keras_attnvariants.backend.blocks import jit_by_rows as jit_by_rows
from keras_attnvariants.backend.blocks import splits_rows as splits_rows
from keras_attnvariants.backend.compilation import bfloat16_cost as bfloat16_cost
from keras_attnvariants.backend.compilation import constant as constant
from keras_attnvariants.backend.compilation import faster_floats as faster_floats
from keras_attnvariants.backend.compilation import gains_from_xla as gains_from_xla
from keras_attnvariants.backend.compilation import in_xla as in_xla
from keras_attnvariants.backend.compilation import jit as jit
from keras_attnvariants.backend.compilation import (
    jit_for_any_sizes as jit_for_any_sizes,
)
from keras_attnvariants.backend.compilation import keep_programs as keep_programs
from keras_attnvariants.backend.compilation import keep_result as keep_result
from keras_attnvariants.backend.compilation import kept_result as kept_result
from keras_attnvariants.backend.compilation import name as name
from keras_attnvariants.backend.compilation import shared_tensor as shared_tensor
from keras_attnvariants.backend.distribution import (
    check_one_replica as check_one_replica,
)
from keras_attnvariants.backend.distribution import local_value as local_value
from keras_attnvariants.backend.distribution import local_values as local_values
from keras_attnvariants.backend.inference import inference_copy as inference_copy
from keras_attnvariants.backend.inference import is_plain_int8 as is_plain_int8
from keras_attnvariants.backend.inference import shallow_copy as shallow_copy
from keras_attnvariants.backend.layers import Dense as Dense
from keras_attnvariants.backend.layers import Dropout as Dropout
from keras_attnvariants.backend.layers import Embedding as Embedding
from keras_attnvariants.backend.layers import LayerNormalization as LayerNormalization
from keras_attnvariants.backend.layers import ReversibleEmbedding as ReversibleEmbedding
from keras_attnvariants.backend.onednn import is_onednn_exact as is_onednn_exact
from keras_attnvariants.backend.onednn import sums_exactly as sums_exactly
from keras_attnvariants.backend.products import project_jointly as project_jointly
from keras_attnvariants.backend.products import (
    sums_bfloat16_in_float32 as sums_bfloat16_in_float32,
)
from keras_attnvariants.backend.scan import scan as scan
from keras_attnvariants.backend.scan import with_gradient as with_gradient
from keras_attnvariants.backend.shapes import VectorLists as VectorLists
from keras_attnvariants.backend.shapes import as_matrix as as_matrix
from keras_attnvariants.backend.shapes import at_least as at_least
from keras_attnvariants.backend.shapes import at_most as at_most
from keras_attnvariants.backend.shapes import reshape as reshape
from keras_attnvariants.backend.shapes import section as section
from keras_attnvariants.backend.shapes import sizes as sizes
from keras_attnvariants.backend.shapes import swap_rows as swap_rows
from keras_attnvariants.backend.shapes import take as take
from keras_attnvariants.backend.shapes import with_unknown_rows as with_unknown_rows
from keras_attnvariants.backend.shapes import with_unknown_value as with_unknown_value
from keras_attnvariants.backend.softmax import fused_attention as fused_attention
from keras_attnvariants.backend.softmax import (
    has_fused_attention as has_fused_attention,
)
from keras_attnvariants.backend.softmax import masked_softmax as masked_softmax
from keras_attnvariants.backend.updates import (
    accumulating_train_function as accumulating_train_function,
)
from keras_attnvariants.backend.updates import apply_adam as apply_adam
from keras_attnvariants.backend.updates import dense as dense
from keras_attnvariants.backend.updates import has_adam as has_adam
from keras_attnvariants.backend.updates import parallel_parts as parallel_parts
