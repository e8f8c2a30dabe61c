"""Naive float64 references, written from the papers' equations: the truth.

A reference takes the layer's config, its weights as NumPy arrays (see
`layer_weights`) and the inputs of `call`, and returns `(output, scores)`; the scores
of a variant without attention weights have no heads, `[B, 0, T, S]`.
"""

from keras import ops

from tests.reference.distance_biases import alibi_attention
from tests.reference.distance_biases import relative_bias_attention
from tests.reference.dot_product import dot_product_attention
from tests.reference.hard_coded import hard_coded_attention
from tests.reference.hard_coded import hard_coded_cross_attention
from tests.reference.linear import linear_attention
from tests.reference.local_attention import local_attention
from tests.reference.neural_ngram import concatenated_ngram
from tests.reference.neural_ngram import neural_ngram
from tests.reference.phrase import phrase_attention
from tests.reference.recurrent import recurrent_cross_attention

REFERENCES = {
    "AlibiAttention": alibi_attention,
    "ConcatenatedNgram": concatenated_ngram,
    "DotProductAttention": dot_product_attention,
    "HardCodedAttention": hard_coded_attention,
    "HardCodedCrossAttention": hard_coded_cross_attention,
    "LinearAttention": linear_attention,
    "LocalAttention": local_attention,
    "NeuralNgram": neural_ngram,
    "PhraseAttention": phrase_attention,
    "RecurrentCrossAttention": recurrent_cross_attention,
    "RelativeBiasAttention": relative_bias_attention,
}


def layer_weights(layer):
    """The layer's variables in float64, keyed `"<projection>/<kernel or bias>"`."""
    named = {}
    for variable in layer.weights:
        name = "/".join(variable.path.split("/")[-2:])
        named[name] = ops.convert_to_numpy(variable).astype("float64")
    return named
