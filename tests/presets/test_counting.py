"""Parameter counts by formula, against built models."""

import pytest

from keras_attnvariants import presets
from keras_attnvariants.presets.counting import count_parameters

VARIANTS = [name for name in presets.names() if "you2020" in name and "iwslt16" in name]


@pytest.mark.parametrize("name", [*VARIANTS, "kav/sh-x/multi30k", "kav/hc-all/bible"])
def test_the_formula_counts_what_a_built_model_has(name):
    preset = presets.get(name)
    sizes = {"vocabulary_size": 37, "hidden_dim": 12, "num_layers": 3}
    model = preset.build(intermediate_dim=10, **sizes)
    options = {**preset.options, **sizes, "intermediate_dim": 10}
    assert count_parameters(preset.architecture(**options)) == model.count_params()


@pytest.mark.parametrize("name", ["you2020/base/iwslt16", "you2020/sh-x/wmt16"])
def test_the_formula_counts_full_sizes_too(name):
    preset = presets.get(name)
    assert preset.parameters == preset.build().count_params()


def test_an_attention_layer_without_a_formula_is_not_guessed():
    config = presets.get("kav/base/bible").config
    config["encoder_attention"] = {"class_name": "Unheard", "config": {}}
    with pytest.raises(KeyError, match="Unheard"):
        count_parameters(config)
