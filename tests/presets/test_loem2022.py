"""Loem et al. 2022: parameter counts, figures and settings."""

import pytest

from keras_attnvariants import presets
from keras_attnvariants.presets.counting import count_parameters


def wmt(row):
    return presets.get(f"loem2022/{row}/wmt16-en-de")


def with_biases(value):
    """A configuration whose n-grams have biases, as its attention does."""
    if isinstance(value, list):
        return [with_biases(entry) for entry in value]
    if isinstance(value, dict) and value.get("class_name", "").endswith("NeuralNgram"):
        return {**value, "config": {**value["config"], "use_bias": True}}
    if isinstance(value, dict):
        return {key: with_biases(entry) for key, entry in value.items()}
    return value


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("self-attention/wmt16-en-de", 60.92),
        ("self-attention/iwslt14-de-en", 36.66),
        ("neural-ngram/wmt16-en-de", 61.71),
        ("neural-ngram/iwslt14-de-en", 36.78),
        ("neural-ngram-no-global/wmt16-en-de", 61.45),
        ("neural-ngram-growing/wmt16-en-de", 61.97),
        ("neural-ngram-depth-6/wmt16-en-de", 50.48),
        ("neural-ngram-as-written/wmt16-en-de", 66.96),
        ("neural-ngram-as-written/iwslt14-de-en", 42.68),
    ],
)
def test_parameters_in_millions_with_biases_everywhere(name, millions):
    preset = presets.get(f"loem2022/{name}")
    assert (
        round(count_parameters(preset.model, with_biases(preset.config)) / 1e6, 2)
        == millions
    )
    # The equations of n-grams have none, which makes next to no difference.
    assert preset.parameters / 1e6 == pytest.approx(millions, abs=0.02)


def test_figures_of_the_paper():
    published = wmt("self-attention").published
    assert (published.bleu, published.dev_bleu) == ({"en-de": 27.2}, {"en-de": 26.02})
    assert published.parameters == 61_000_000
    assert wmt("neural-ngram").published.dev_bleu == {"en-de": 26.00}
    assert wmt("decoder-ngram").published.dev_bleu == {"en-de": 26.46}
    assert wmt("encoder-ngram").published.dev_bleu == {"en-de": 25.95}
    assert wmt("lowest-3-ngram").published.dev_bleu == {"en-de": 26.52}
    assert wmt("lowest-2-ngram").published.dev_bleu == {}
    iwslt = presets.get("loem2022/local-attention/iwslt14").published
    assert iwslt.bleu == {"de-en": 34.77}
    summaries = presets.get("loem2022/neural-ngram/cnn-dailymail").published
    assert summaries.rouge == {"rouge-1": 39.04, "rouge-2": 17.38, "rouge-l": 36.01}
    assert summaries.bleu == {}


def test_training():
    small, large = presets.get("loem2022/neural-ngram/iwslt14"), wmt("neural-ngram")
    assert (small.training.beam_size, large.training.beam_size) == (5, 4)
    assert (small.options["dropout"], large.options["dropout"]) == (0.3, 0.1)
    assert small.options["intermediate_dim"] == 1024
    assert (small.options["num_layers"], large.options["num_layers"]) == (9, 8)
    assert large.training.schedule["config"]["warmup_steps"] == 4000
