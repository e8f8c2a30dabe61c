"""Our own presets: small enough for a CPU, marked as ours."""

import json

import keras
import pytest

import keras_attnvariants.training  # noqa: F401, for its schedules
from keras_attnvariants import attention
from keras_attnvariants import presets
from keras_attnvariants.models import Transformer
from keras_attnvariants.presets.kav import BY_CORPUS
from keras_attnvariants.presets.kav import PUBLISHED
from keras_attnvariants.presets.kav import SELF_ATTENTION
from tests.presets import tiny

OURS = [name for name in presets.names() if name.startswith("kav/")]


def test_which_variants_there_are_for_which_corpus():
    main, boxed = BY_CORPUS["bible"], BY_CORPUS["tatoeba-en-de"]
    assert (len(main), len(boxed)) == (4, 7)
    assert "kav/hc-sa/multi30k" in OURS
    for corpus, variants in (
        ("bible", main),
        ("tatoeba-en-de", boxed),
        ("tatoeba-de-en", boxed),
        ("multi30k", [*PUBLISHED, *SELF_ATTENTION]),
        ("scitldr", ["base", "hc-sa", "neural-ngram", "local-attention"]),
        ("digits", ["base", "neural-ngram", "local-attention"]),
    ):
        names = [name for name in OURS if name.endswith(corpus)]
        assert names == [f"kav/{variant}/{corpus}" for variant in variants]
    used = {type(layer) for name in OURS for layer in attention_of(name)}
    families = {variant.cls for variant in attention.variants().values()}
    assert families <= used


def test_every_recurrence_structure_and_scoring_is_there():
    layers = [layer for name in OURS for layer in attention_of(name)]
    used = [layer for layer in layers if hasattr(layer, "recurrence")]
    known = set(attention.recurrences.RECURRENCES.values())
    assert {type(layer.recurrence) for layer in used} == known
    used = [layer for layer in layers if hasattr(layer, "structure")]
    kinds = {(type(layer.structure), layer.scoring) for layer in used}
    assert len(kinds) == 3 * 2


def attention_of(name):
    model = tiny.model(name)
    if not isinstance(model, Transformer):
        return
    for block in (*model.encoder_blocks, *model.decoder_blocks):
        yield block.self_attention
        yield getattr(block, "cross_attention", None)


def test_learned_attention_starts_alike_in_all_presets_with_attention_layers():
    starts = {
        json.dumps(keras.initializers.serialize(layer.kernel_initializer)["config"])
        for name in OURS
        if not PUBLISHED.get(name.split("/")[1], "").startswith("cs287/")
        for layer in attention_of(name)
        if isinstance(layer, attention.DotProductAttention)
    }
    assert len(starts) == 1


@pytest.mark.parametrize("name", OURS)
def test_ours_claim_no_published_figures_and_are_small(name):
    preset = presets.get(name)
    assert preset.published == presets.PublishedFigures()
    assert preset.parameters < 10e6
    assert preset.config.get("normalization", "pre") == "pre"
    assert preset.training.label_smoothing == 0.1


def test_the_tiny_shape_of_multi30k():
    config = presets.get("kav/base/multi30k").config
    shape = ("num_layers", "hidden_dim", "intermediate_dim", "vocabulary_size")
    assert [config[name] for name in shape] == [4, 128, 256, 2000]


@pytest.mark.parametrize("name", OURS)
def test_the_learning_rate_reaches_its_peak_and_falls(name):
    training = presets.get(name).training
    schedule = keras.optimizers.schedules.deserialize(training.schedule)
    rates = [float(schedule(step)) for step in (0, 300, 800, training.steps)]
    assert max(rates) > 10 * rates[0]
    assert rates[-1] < max(rates) / 3


def test_replacements_of_self_attention_are_in_all_of_it_and_nowhere_else():
    for name, cls in (
        ("alibi", attention.AlibiAttention),
        ("linear", attention.LinearAttention),
        ("relative-bias", attention.RelativeBiasAttention),
    ):
        model = tiny.model(f"kav/{name}/multi30k")
        blocks = (*model.encoder_blocks, *model.decoder_blocks)
        assert {type(block.self_attention) for block in blocks} == {cls}
        crosses = {type(block.cross_attention) for block in model.decoder_blocks}
        assert crosses == {attention.DotProductAttention}
    for block in model.decoder_blocks:
        assert not block.self_attention.bidirectional


def test_models_of_other_tasks_differ_in_the_encoder_alone():
    for corpus in ("scitldr", "digits"):
        names = BY_CORPUS[corpus]
        configs = [presets.get(f"kav/{name}/{corpus}").config for name in names]
        for config in configs:
            differing = {key for key in config if config[key] != configs[0].get(key)}
            assert differing <= {"encoder_attention", "num_decoder_layers"}
        encoders = {json.dumps(config["encoder_attention"]) for config in configs}
        assert len(encoders) == len(names)


def test_a_model_of_digits_reads_recordings():
    preset = presets.get("kav/local-attention/digits")
    model = preset.build(num_layers=1, hidden_dim=16, intermediate_dim=8, num_heads=2)
    assert (preset.task, model.task, model.source_stride) == ("speech", "speech", 640)
    assert model.embeddings.source.hidden_dim == 16
    assert model.embeddings.source.longest_time_mask == 20
    assert 2e6 < preset.parameters < 4e6


def test_a_summariser_carries_the_limits_of_its_searches():
    preset = presets.get("kav/hc-sa/scitldr")
    model = preset.build(num_layers=1, hidden_dim=16, intermediate_dim=8, num_heads=2)
    settings = model.search_settings
    assert (settings.min_length, settings.no_repeat_ngram) == (8, 3)
    assert (model.task, model.max_length) == ("summarisation", 1024)
