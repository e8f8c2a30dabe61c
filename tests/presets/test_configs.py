"""Serialized layers, as configurations contain them."""

import keras

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.models import Transformer
from keras_attnvariants.presets.configs import BASE
from keras_attnvariants.presets.configs import layer_config
from keras_attnvariants.presets.configs import learned_attention


def test_keras_deserializes_what_the_functions_return():
    config = layer_config("HardCodedAttention", num_heads=2, offsets=[-1, 1])
    layer = keras.saving.deserialize_keras_object(config)
    assert type(layer) is HardCodedAttention
    assert (layer.num_heads, layer.offsets) == (2, (-1, 1))
    layer = keras.saving.deserialize_keras_object(learned_attention(4, dropout=0.1))
    assert type(layer) is DotProductAttention
    assert (layer.num_heads, layer.get_config()["dropout"]) == (4, 0.1)


def test_sizes_of_the_base_model_are_those_of_vaswani_et_al():
    sizes = {name: value for name, value in BASE.items() if name != "num_heads"}
    assert sizes == {"num_layers": 6, "hidden_dim": 512, "intermediate_dim": 2048}
    assert BASE["num_heads"] == 8
    assert set(sizes) <= set(Transformer.__init__.__annotations__)
