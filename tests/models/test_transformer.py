"""The Transformer: every flavour against the equations, masks, configuration."""

import json

import keras
import numpy as np
import pytest

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.models import ConcatenatedPositions
from keras_attnvariants.models import SinusoidalPositions
from keras_attnvariants.models import Transformer
from tests.models import naive
from tests.models import tiny
from tests.selection import mostly_slow

# NumPy 2.4 and TensorFlow 2.21 disagree about a keyword of `__array__`.
pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")

EACH_FLAVOUR = pytest.mark.parametrize("flavour", tiny.FLAVOURS)


# Lengths of one token are tested of every variant in `tests.attention`.
CASES = [
    (flavour, batch)
    for flavour in tiny.FLAVOURS
    for batch in tiny.BATCHES
    if flavour in tiny.BY_HAND or not batch.startswith("one")
]


@pytest.mark.parametrize(
    ("flavour", "batch"),
    mostly_slow(CASES, [case for case in CASES if case[0] in tiny.BY_HAND]),
)
def test_logits_are_those_of_the_equations(flavour, batch):
    batch, model = tiny.BATCHES[batch], tiny.built(flavour)
    logits = tiny.forward(model, batch)
    assert logits.shape == (*batch["target_ids"].shape, tiny.VOCABULARY)
    tiny.near(logits, naive.logits(model, **batch))


@EACH_FLAVOUR
def test_a_sentence_depends_neither_on_padding_nor_on_its_neighbours(flavour):
    batch, model = tiny.inputs(), tiny.built(flavour)
    together = tiny.forward(model)
    wider = np.pad(batch["source_ids"], ((0, 0), (0, 4)))
    tiny.near(tiny.forward(model, {**batch, "source_ids": wider}), together)
    reversed_batch = {name: ids[::-1].copy() for name, ids in batch.items()}
    tiny.near(tiny.forward(model, reversed_batch)[::-1], together)


@EACH_FLAVOUR
def test_a_position_sees_no_later_target_token(flavour):
    batch, model = tiny.inputs(), tiny.built(flavour)
    before = tiny.forward(model)
    target = batch["target_ids"].copy()
    target[:, 5:] = (target[:, 5:] + 7) % tiny.VOCABULARY
    after = tiny.forward(model, {**batch, "target_ids": target})
    tiny.near(after[:, :5], before[:, :5])
    assert np.abs(after[:, 5:] - before[:, 5:]).max() > 1e-2


def test_the_source_reaches_the_target_and_padding_does_not():
    batch, model = tiny.inputs(), tiny.built("hc-all, output and target tied")
    before = tiny.forward(model)
    source = batch["source_ids"].copy()
    source[0, -1] = 4 if source[0, -1] != 4 else 5
    after = tiny.forward(model, {**batch, "source_ids": source})
    assert np.abs(after[0] - before[0]).max() > 1e-2
    tiny.near(after[1:], before[1:])


@pytest.mark.parametrize(
    ("removed", "weights"),
    [
        ("encoder_attention", 4 * tiny.WIDTH**2 + 2 * tiny.WIDTH),
        ("decoder_attention", 4 * tiny.WIDTH**2 + 2 * tiny.WIDTH),
        ("cross_attention", 4 * tiny.WIDTH**2 + 2 * tiny.WIDTH),
        ("feed_forward", 2 * (2 * 16 * 24 + 24 + 16 + 2 * 16)),
    ],
)
def test_a_removed_sublayer_takes_its_weights_and_its_norm_along(removed, weights):
    absent = False if removed == "feed_forward" else None
    difference = tiny.make().count_params()
    difference -= tiny.make(**{removed: absent}).count_params()
    assert difference == tiny.SIZES["num_layers"] * weights


def test_a_single_head_is_as_wide_as_the_model():
    model = tiny.make(cross_attention=DotProductAttention(num_heads=1))
    layer = model.decoder_blocks[0].cross_attention
    assert (layer.head_dim, layer.scale) == (tiny.WIDTH, tiny.WIDTH**-0.5)


def test_templates_do_not_become_part_of_the_model():
    used = tiny.learned()
    x = np.ones((1, 2, tiny.WIDTH), "float32")
    used(x, x)
    model = tiny.make(cross_attention=used)
    assert model.count_params() == tiny.make().count_params()
    own = {id(weight) for weight in model.weights}
    assert not own & {id(weight) for weight in used.weights}
    assert all(layer.built for layer in model.layers)


def test_every_layer_has_its_own_weights_and_a_name_by_its_place():
    model = tiny.make(tie_embeddings="none")
    paths = [weight.path for weight in model.weights]
    assert len(set(paths)) == len(paths)
    assert any("decoder_1/cross_attention/key" in path for path in paths)
    kernels = [w for w in model.weights if w.path.endswith("query/kernel")]
    first, *others = [kernel.numpy() for kernel in kernels]
    assert all(np.abs(first - other).max() > 0.1 for other in others)
    embeddings = model.embeddings
    source, target = embeddings.source.embeddings, embeddings.target.embeddings
    assert np.abs(source.numpy() - target.numpy()).max() > 0.1


@pytest.mark.parametrize("flavour", tiny.BY_HAND)
def test_config_survives_json(flavour):
    model = tiny.built(flavour)
    config = json.loads(json.dumps(model.get_config()))
    again = Transformer.from_config(config)
    assert again.get_config() == model.get_config()
    again.set_weights(model.get_weights())
    tiny.near(tiny.forward(again), tiny.forward(model), 1e-6)


@pytest.mark.parametrize(
    "flavour",
    ["another in every layer", "positions concatenated, nothing tied or scaled"],
)
def test_a_keras_file_reloads_in_safe_mode(flavour, tmp_path):
    model = tiny.built(flavour)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    assert type(loaded) is Transformer
    tiny.near(tiny.forward(loaded), tiny.forward(model), 1e-6)


def test_a_symbolic_call_has_the_shape_and_dtype_of_the_logits():
    ids = {
        name: keras.Input((None,), dtype="int32")
        for name in ("source_ids", "target_ids")
    }
    logits = tiny.make(dtype="mixed_bfloat16")(ids)
    assert logits.shape == (None, None, tiny.VOCABULARY)
    assert logits.dtype == "bfloat16"


@pytest.mark.parametrize("name", ["source_ids", "target_ids"])
@pytest.mark.parametrize("positions", [None, ConcatenatedPositions(4, max_length=99)])
def test_a_sequence_beyond_max_length_is_refused(name, positions):
    model = tiny.make(positions=positions, tie_embeddings="none")
    long = np.full((1, tiny.MAX_LENGTH + 1), 5, "int32")
    short = np.full((1, tiny.MAX_LENGTH), 5, "int32")
    both = {"source_ids": short, "target_ids": short}
    assert tiny.forward(model, both).shape[1] == tiny.MAX_LENGTH
    with pytest.raises(ValueError, match=rf"{name}(.|\n)*72(.|\n)*Received: 73"):
        tiny.forward(model, {**both, name: long})


def test_positions_that_end_before_max_length_are_refused():
    with pytest.raises(ValueError, match="max_length.*10.*Received: 72"):
        tiny.make(positions=SinusoidalPositions(10))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocabulary_size": 3}, "eos_id.*3 tokens.*Received: 3"),
        ({"pad_id": -1}, "pad_id.*Received: -1"),
        ({"vocabulary_size": 0}, "vocabulary_size.*positive.*Received: 0"),
        ({"source_vocabulary_size": 0}, "source_vocabulary_size.*Received: 0"),
        ({"num_layers": 0}, "num_layers.*Received: 0"),
        ({"num_decoder_layers": 0}, "num_decoder_layers.*Received: 0"),
        ({"hidden_dim": 16.0}, "hidden_dim.*Received: 16.0"),
        ({"intermediate_dim": -1}, "intermediate_dim.*Received: -1"),
        ({"normalization": "both"}, "normalization.*pre.*post.*Received: 'both'"),
        ({"tie_embeddings": True}, "tie_embeddings.*decoder.*Received: True"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        tiny.make(**arguments)
