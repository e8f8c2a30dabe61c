"""The recurrent model one position at a time: steps, alignments, searches."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import score
from tests.decoding.toys import greedy_search
from tests.models import naive_lstm
from tests.models import tiny
from tests.models.stepping import BEAMS
from tests.models.stepping import check_alignments
from tests.models.stepping import check_one_graph_for_all_shapes
from tests.models.stepping import check_stepping
from tests.models.stepping import decode
from tests.models.stepping import hypotheses
from tests.models.stepping import reordering
from tests.models.stepping import walk
from tests.models.tiny_lstm import FLAVOURS
from tests.models.tiny_lstm import MASKED
from tests.models.tiny_lstm import arrays
from tests.models.tiny_lstm import built
from tests.selection import mostly_slow

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")

TENSORFLOW = backend.name() == "tensorflow"


@pytest.mark.parametrize("flavour", mostly_slow(FLAVOURS, ["attention"]))
def test_stepping_with_reordered_beams_equals_call(flavour):
    check_stepping(built(flavour))


@pytest.mark.parametrize(
    ("flavour", "dtype"),
    [("attention", "mixed_bfloat16"), ("no attention", "mixed_float16")],
)
def test_a_state_in_half_precision_stays_near_to_the_end(flavour, dtype):
    check_stepping(built(flavour, dtype), built(flavour), 0.1)


def test_alignments_are_the_attention_weights_and_change_no_logits():
    model, batch = built("attention"), tiny.inputs()
    tokens = hypotheses()
    parents = reordering(tokens.shape[2], ())
    (plain,) = walk(model, tokens, parents)
    logits, alignments = walk(model, tokens, parents, return_attention_scores=True)
    np.testing.assert_array_equal(logits, plain)
    _, expected = naive_lstm.logits_and_weights(
        arrays(model), model.get_config(), batch["source_ids"], tokens[:, 1]
    )
    for row, weights in zip(alignments[:, 1], expected, strict=True):
        tiny.near(row[:, : weights.shape[1]], weights)
        assert not row[:, weights.shape[1] :].any()


def test_alignments_without_attention_are_zero():
    tokens = hypotheses()
    parents = reordering(tokens.shape[2], (4,))
    model = built("no attention")
    _, alignments = walk(model, tokens, parents, return_attention_scores=True)
    assert alignments.shape == (*tokens.shape, tiny.SOURCE_LENGTH)
    assert not alignments.any()


def test_context_has_a_row_per_sentence_and_the_state_is_hidden_and_cell():
    model = built("attention")
    context = model.encode(ops.convert_to_tensor(tiny.inputs()["source_ids"]))
    state = model.initial_state(context, BEAMS, tiny.TARGET_LENGTH)
    assert {x.shape[0] for x in keras.tree.flatten(context)} == {tiny.BATCH}
    assert {k: tuple(x.shape) for k, x in state.items()} == {
        name: (tiny.BATCH, BEAMS, 8) for name in ("hidden", "cell")
    }


def test_steps_compile():
    model, batch = built("attention"), tiny.inputs()
    compiled = backend.jit(lambda source, tokens: decode(model, source, tokens))
    logits, _ = compiled(*map(ops.convert_to_tensor, batch.values()))
    tiny.near(tiny.to_numpy(logits)[:, 0], tiny.forward(model)[:, -1])


@pytest.mark.skipif(not TENSORFLOW, reason="only TensorFlow has dynamic shapes")
@pytest.mark.parametrize("flavour", ["attention", "no attention, one direction"])
def test_one_graph_serves_all_batch_sizes_and_lengths(flavour):
    check_one_graph_for_all_shapes(built(flavour))


@pytest.mark.parametrize("flavour", mostly_slow(MASKED, ["attention"]))
@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_the_score_of_a_found_translation_is_that_of_scoring(flavour, search):
    model, source = built(flavour), tiny.inputs()["source_ids"]
    compiled = backend.jit(
        lambda ids: search(model, ids, max_length=9, return_alignments=True),
        xla=flavour == "attention",
    )
    found = compiled(ops.convert_to_tensor(source))
    ids = tiny.to_numpy(found.ids)[:, 0]
    ended = (ids == model.eos_id).any(axis=1)
    assert ended.any()
    ids = np.where(ids == model.eos_id, model.pad_id, ids)
    expected, lengths = score(model, source, ids)
    tiny.near(tiny.to_numpy(found.log_probs)[ended, 0], tiny.to_numpy(expected)[ended])
    nothing = ops.zeros((tiny.BATCH, 1, ids.shape[1], tiny.SOURCE_LENGTH))
    check_alignments(
        model, source, found, lambda x: x["decoder"].get("cross", nothing)[:, 0]
    )
