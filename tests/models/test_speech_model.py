"""Every encoder above the speech front end: padding, training, precision, search."""

import functools

import keras
import numpy as np
import pytest

from keras_attnvariants import attention
from keras_attnvariants import backend
from keras_attnvariants.data import save_model
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.decoding import Ensemble
from keras_attnvariants.decoding import Translator
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import score
from keras_attnvariants.models import Seq2SeqLSTM
from keras_attnvariants.models import SpeechFrontEnd
from tests.models import tiny
from tests.models.gradients import logits_and_gradients
from tests.reference.speech import batch_of
from tests.reference.speech import recording
from tests.selection import mostly_slow

# NumPy 2.4 and TensorFlow 2.21 disagree about a keyword of `__array__`.
pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")

LENGTHS = 9000, 4000, 500
POSITIONS = 15, 7, 1
ENCODERS = tuple(attention.variants("encoder"))
EACH_ENCODER = pytest.mark.parametrize(
    "name", mostly_slow(ENCODERS, ("DotProductAttention", "NeuralNgram"))
)


def make(name="DotProductAttention", **options):
    """A model of speech with this encoder."""
    variant = attention.variants("encoder")[name]
    encoder = variant.cls(**variant.examples[variant.fitting("encoder")[-1]])
    front_end = SpeechFrontEnd(tiny.WIDTH, num_time_masks=0, num_mel_masks=0)
    places = tiny.places(encoder, tiny.decoder(), tiny.learned())
    options = {"dropout": 0.0, "source_embedding": front_end, **options}
    return tiny.make(**places, num_layers=1, **options)


@functools.cache
def built(name="DotProductAttention", dtype="float32"):
    """A model with random weights; tests must not change it."""
    model = make(name, dtype=dtype)
    tiny.randomize(model)
    return model


def inputs():
    return {"source_ids": batch_of(*LENGTHS), **targets()}


def targets():
    return {"target_ids": tiny.inputs()["target_ids"]}


@EACH_ENCODER
def test_outputs_depend_on_no_other_recording_and_no_padding(name):
    model, batch = built(name), inputs()
    whole = tiny.forward(model, batch)
    more = batch | {"source_ids": np.pad(batch["source_ids"], ((0, 0), (0, 3333)))}
    tiny.near(tiny.forward(model, more), whole, 5e-5)
    for row, length in enumerate(LENGTHS):
        alone = {key: ids[row : row + 1] for key, ids in batch.items()}
        alone["source_ids"] = alone["source_ids"][:, :length]
        tiny.near(tiny.forward(model, alone)[0], whole[row], 5e-5)
    other = inputs()
    other["source_ids"][0] = recording(9000, seed=9)
    changed = tiny.forward(model, other)
    assert np.abs(changed[0] - whole[0]).max() > 1e-3
    tiny.near(changed[1:], whole[1:], 5e-5)


@EACH_ENCODER
def test_it_learns_through_the_convolutions(name):
    keras.utils.set_random_seed(1)
    model, batch = make(name), inputs()
    labels = np.pad(batch["target_ids"][:, 1:], ((0, 0), (0, 1)))
    _, gradients = logits_and_gradients(model, batch, labels)
    paths = [weight.path for weight in model.trainable_weights]
    for path, gradient in zip(paths, gradients, strict=True):
        gradient = tiny.to_numpy(gradient)
        assert np.isfinite(gradient).all()
        assert "convolution" not in path or np.abs(gradient).max() > 0
    assert sum("convolution" in path for path in paths) == 4
    model.compile(
        optimizer=keras.optimizers.Adam(1e-2),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=backend.name() == "jax",
    )
    history = model.fit(batch, labels, epochs=12, batch_size=3, verbose=0)
    assert history.history["loss"][-1] < 0.7 * history.history["loss"][0]


@EACH_ENCODER
def test_half_precision_stays_near(name):
    exact = tiny.forward(built(name), inputs())
    tiny.near(tiny.forward(built(name, "mixed_bfloat16"), inputs()), exact, 0.1)


@pytest.mark.parametrize("samples", [0, 1, 399, 4000])
def test_silence_and_nothing_have_finite_gradients(samples):
    model, batch = make(), inputs()
    batch["source_ids"][0] = 0
    batch["source_ids"][0, :samples] = 32_768
    labels = np.pad(batch["target_ids"][:, 1:], ((0, 0), (0, 1)))
    logits, gradients = logits_and_gradients(model, batch, labels)
    assert np.isfinite(logits).all()
    assert all(np.isfinite(tiny.to_numpy(gradient)).all() for gradient in gradients)


def naive_search(model, source_ids, beams, length, exponent=0.6):
    """Ids and score of the best hypothesis for one recording, from whole calls."""
    live, finished = {(): 0.0}, []
    for position in range(length):
        candidates = {}
        for body, log_prob in live.items():
            target_ids = np.array([[model.bos_id, *body]], "int32")
            logits = tiny.forward(
                model, {"source_ids": source_ids, "target_ids": target_ids}
            )[0, -1]
            row = logits - np.log(np.exp(logits).sum())
            is_last = position + 1 == length
            tokens = {model.eos_id} if is_last else {*range(tiny.VOCABULARY)}
            for token in tokens - {model.pad_id, model.bos_id}:
                candidates[*body, token] = log_prob + row[token]
        best = sorted(candidates, key=lambda ids: -candidates[ids])[: 2 * beams]
        finished += [
            (ids, candidates[ids] * (6 / (5 + len(ids))) ** exponent)
            for ids in best
            if ids[-1] == model.eos_id
        ]
        live = [ids for ids in best if ids[-1] != model.eos_id][:beams]
        live = {ids: candidates[ids] for ids in live}
    return max(finished, key=lambda found: found[1])


@pytest.mark.parametrize("beams", [1, 3])
@EACH_ENCODER
def test_searches_are_those_of_a_naive_loop(name, beams):
    model, source_ids = built(name), batch_of(*LENGTHS)
    found = beam_search(
        model, source_ids, beam_size=beams, max_length=5, return_alignments=True
    )
    assert tuple(found.alignments.shape) == (3, 1, 5, 15)
    for row, (length, positions) in enumerate(zip(LENGTHS, POSITIONS, strict=True)):
        alone = source_ids[row : row + 1, :length]
        if beams == 1:  # greedy search ends with the first EOS
            ids = greedy(model, alone, 5)
        else:
            ids, value = naive_search(model, alone, beams, 5)
            np.testing.assert_allclose(found.scores[row, 0], value, atol=1e-4)
        assert tuple(np.asarray(found.ids)[row, 0, : len(ids)]) == tuple(ids)
        weights = tiny.to_numpy(found.alignments)[row, 0, : len(ids)]
        tiny.near(weights.sum(axis=-1), np.ones(len(ids)))
        assert not weights[:, positions:].any()
    log_probs, _ = score(model, source_ids, without_eos(model, found.ids[:, 0]))
    np.testing.assert_allclose(log_probs, found.log_probs[:, 0], atol=1e-4)


def greedy(model, source_ids, length):
    """The most probable tokens, one whole call for each."""
    ids = []
    while ids[-1:] != [model.eos_id]:
        target_ids = np.array([[model.bos_id, *ids]], "int32")
        batch = {"source_ids": source_ids, "target_ids": target_ids}
        row = tiny.forward(model, batch)[0, -1]
        row[[model.pad_id, model.bos_id]] = -np.inf
        is_last = len(ids) + 1 == length
        ids.append(model.eos_id if is_last else int(row.argmax()))
    return ids


def without_eos(model, ids):
    ids = np.asarray(ids)
    return np.where(ids == model.eos_id, 0, ids)[:, :-1]


def test_a_search_is_as_long_as_the_positions_of_its_source():
    model = make(search_settings={"extra_length": 3, "beam_size": 1})
    found = beam_search(model, batch_of(*LENGTHS), min_length=60)
    assert found.ids.shape[-1] == 61
    found = beam_search(model, batch_of(*LENGTHS), n_best=2)
    assert found.ids.shape[-1] == 18
    assert (tiny.to_numpy(found.lengths) <= np.array(POSITIONS)[:, None] + 3).all()


@pytest.mark.skipif(backend.name() != "tensorflow", reason="graphs of TensorFlow")
def test_a_graph_for_any_shape_finds_the_same():
    import tensorflow as tf

    model = built()
    options = {"beam_size": 2, "return_alignments": True}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def search(source_ids):
        return beam_search(model, source_ids, **options)

    for lengths in (LENGTHS, (640,), (5000, 1)):
        source_ids = batch_of(*lengths)
        expected = beam_search(model, source_ids, **options)
        for found, other in zip(search(source_ids), expected, strict=True):
            if other is not None:
                np.testing.assert_allclose(found, other, atol=1e-4)


def test_weights_of_attention_are_those_of_positions():
    model, batch = built(), inputs()
    scores = model.attention_scores(batch)
    assert scores["encoder_0"]["self"].shape == (3, tiny.HEADS, 15, 15)
    cross = tiny.to_numpy(scores["decoder_0"]["cross"])
    assert cross.shape == (3, tiny.HEADS, tiny.TARGET_LENGTH, 15)
    for row, positions in enumerate(POSITIONS):
        assert not cross[row, ..., positions:].any()
        assert not tiny.to_numpy(scores["encoder_0"]["self"])[row, :, positions:].any()


def test_files_and_folders_hold_the_front_end(tmp_path):
    model, batch = built(), inputs()
    expected = tiny.forward(model, batch)
    model.save(tmp_path / "model.keras")
    loaded = [keras.saving.load_model(tmp_path / "model.keras")]
    loaded.append(load_model(save_model(model, tmp_path / "folder")).model)
    for other in loaded:
        np.testing.assert_array_equal(tiny.forward(other, batch), expected)
        assert other.get_config() == model.get_config() | {"name": other.name}
        assert (other.source_stride, other.source_vocabulary_size) == (640, 65_536)


def test_tying_is_that_of_target_and_output():
    paths = {tie: {w.path for w in make(tie_embeddings=tie).weights} for tie in TYING}
    assert len(paths["all"]) == len(paths["decoder"]) == len(paths["none"]) - 1


TYING = "all", "decoder", "none"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"source_eos": True}, ValueError, "`source_eos` must be left out of a model"),
        ({"pad_id": 1}, ValueError, "`pad_id` must be left out .*Received: 1"),
        ({"source_vocabulary_size": 9}, ValueError, "`source_vocabulary_size` must be"),
        (
            {"source_embedding": SpeechFrontEnd(8)},
            ValueError,
            "`hidden_dim` of the source embedding must be 16, .*Received: 8",
        ),
        (
            {"source_embedding": keras.layers.Dense(8)},
            TypeError,
            "`source_embedding` must be a layer such as SpeechFrontEnd",
        ),
    ],
)
def test_what_cannot_go_with_a_front_end_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        make(**options)


def test_a_recurrent_model_takes_no_front_end():
    with pytest.raises((TypeError, ValueError), match="source_embedding"):
        Seq2SeqLSTM(20, 8, 8, source_embedding=SpeechFrontEnd(8))


def test_longer_recordings_than_there_are_positions_are_refused():
    model = make(max_length=10)
    longest = {"source_ids": batch_of(6400)} | {"target_ids": np.array([[2, 5]])}
    assert np.isfinite(tiny.forward(model, longest)).all()
    with pytest.raises(ValueError, match="`source_ids` must be at most 6400"):
        tiny.forward(model, longest | {"source_ids": batch_of(6401)})


def test_models_of_other_strides_make_no_ensemble():
    texts = tiny.make(source_vocabulary_size=65_536, tie_embeddings="none")
    with pytest.raises(ValueError, match="the same `source_stride`"):
        Ensemble([built(), texts])
    both = Ensemble([built(), built()])
    found = beam_search(both, batch_of(*LENGTHS), beam_size=2, max_length=5)
    expected = beam_search(built(), batch_of(*LENGTHS), beam_size=2, max_length=5)
    np.testing.assert_array_equal(found.ids, expected.ids)


class Recordings:
    """A tokenizer of names, which are numbers of samples."""

    def encode(self, texts, longest):
        return [recording(int(text))[:longest] for text in texts]

    def decode(self, ids):
        return [" ".join(map(str, row)) for row in ids]


def test_a_translator_counts_positions():
    model = built()
    translator = Translator(
        model, Recordings(), 2, source_lengths=(8, 16), max_length=6, xla=False
    )
    texts = [str(length) for length in (*LENGTHS, 10_240)]
    with pytest.warns(UserWarning, match="more than 10240"):
        *found, cut = translator.translate([*texts, "20000"])
    assert translator.num_truncated == 1
    assert found == [Translator.translate(translator, [text])[0] for text in texts]
    best = beam_search(model, recording(20_000)[None, :10_240], 2, max_length=6)
    ids = np.asarray(best.ids)[0, 0, : int(best.lengths[0, 0]) - 1]
    assert cut == " ".join(map(str, ids))
