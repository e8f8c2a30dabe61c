"""Searches of exported models, by the width of their sources."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants.decoding import IMPOSSIBLE
from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.serving import Status
from keras_attnvariants.serving import export
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.searches import BucketedSearch
from keras_attnvariants.serving.searches import status_of_ids
from keras_attnvariants.serving.searches import with_status
from keras_attnvariants.serving.translator import STATUS_DOCS
from tests.serving.tools import as_batch
from tests.serving.tools import sharp_model
from tests.serving.tools import translate_here


@pytest.mark.slow
def test_a_long_text_uses_a_wider_bucket(tokenizer, server, texts, tmp_path):
    model = sharp_model("hc-all", max_length=100)
    path = export(model, tokenizer, tmp_path, signatures=(), max_tokens=70)
    long = [" ".join(texts[i : i + 4])[:60] for i in range(4)]
    for batch in (texts[:2], [texts[0], *long]):
        _, expected = translate_here(model, tokenizer, batch)
        served = server.call(path, "serving_default", text=batch)
        assert served["translations"].tolist() == expected


@pytest.mark.slow
def test_one_graph_finds_the_best_and_the_n_best_in_every_bucket():
    model = sharp_model("hc-sa")
    options = Options(4, 0.6, 3, 64, 4096, 30)
    search = BucketedSearch(model, options, n_best=3)
    assert options.buckets == (8, 16, 24, 30)
    for width in (7, 30):
        ids = as_batch([[5, 6, 7, *range(8, 4 + width)][:width], [9]])
        lengths = tf.constant([width, 1])
        several, best = search(ids, lengths), search(ids, lengths, count=1)
        assert several.ids.shape[:2] == (2, 3) and best.ids.shape[:2] == (2, 1)
        shared = min(several.ids.shape[2], best.ids.shape[2])
        np.testing.assert_array_equal(
            several.ids[:, :1, :shared], best.ids[:, :, :shared]
        )
        np.testing.assert_array_equal(several.scores[:, :1], best.scores)
        assert int(tf.reduce_max(best.lengths)) == best.ids.shape[2]
    assert search.shared.experimental_get_tracing_count() == 1


PAD = 0


def hypotheses(lengths):
    """One hypothesis for each sentence, of ones."""
    count = len(lengths)
    return Hypotheses(
        ids=tf.cast(tf.sequence_mask(lengths, 3), tf.int32)[:, None],
        scores=tf.fill((count, 1), -2.0),
        log_probs=tf.fill((count, 1), -4.0),
        lengths=tf.constant(lengths)[:, None],
        alignments=tf.ones((count, 1, 3, 2)),
        token_log_probs=tf.fill((count, 1, 3), -1.0),
    )


def test_each_row_has_the_first_status_that_applies():
    rows = {
        (4, 5, 6): (3, Status.OK),
        (4, -7, 99): (1, Status.OK),  # positions beyond the length are not used
        (99, 99, 99): (0, Status.OK),
        (4, 5, 7): (4, Status.WRONG_LENGTH),
        (4, 5, 8): (-1, Status.WRONG_LENGTH),
        (4, 10, 5): (2, Status.UNKNOWN_ID),
        (-1, 4, 5): (3, Status.UNKNOWN_ID),
        (10, 0, 4): (3, Status.UNKNOWN_ID),
        (4, PAD, 5): (3, Status.PADDING_INSIDE),
    }
    lengths, expected = zip(*rows.values(), strict=True)
    status = status_of_ids(tf.constant(list(rows)), tf.constant(lengths), 10, PAD)
    assert status.numpy().tolist() == list(expected)


def test_no_row_has_no_status():
    ids, lengths = tf.zeros((0, 3), tf.int32), tf.zeros(0, tf.int32)
    assert status_of_ids(ids, lengths, 10, PAD).shape == (0,)
    ids, lengths = tf.zeros((2, 0), tf.int32), tf.constant([0, 1])
    found = status_of_ids(ids, lengths, 10, PAD).numpy().tolist()
    assert found == [Status.OK, Status.WRONG_LENGTH]


def test_a_search_without_a_result_is_reported():
    before = tf.constant([Status.OK, Status.OK, Status.UNKNOWN_ID])
    _, after = with_status(hypotheses([1, 0, 0]), before, PAD)
    assert after.numpy().tolist() == [
        Status.OK,
        Status.NOTHING_FOUND,
        Status.UNKNOWN_ID,
    ]


def test_a_sentence_that_failed_has_no_hypothesis():
    found = hypotheses([3, 1])
    left, _ = with_status(found, tf.constant([Status.OK, Status.UNKNOWN_ID]), PAD)
    for all_of, some in zip(found, left, strict=True):
        np.testing.assert_array_equal(some[0], all_of[0])
    assert not left.ids[1].numpy().any()
    assert left.lengths.numpy().tolist() == [[3], [0]]
    impossible = np.float32(IMPOSSIBLE)
    assert left.scores[1, 0] == left.log_probs[1, 0] == impossible
    assert not left.alignments[1].numpy().any()
    assert not left.token_log_probs[1].numpy().any()
    alone = found._replace(alignments=None, token_log_probs=None)
    alone, _ = with_status(alone, tf.constant([Status.OK] * 2), PAD)
    assert alone.alignments is None


def test_every_code_is_documented():
    assert STATUS_DOCS.keys() == set(Status)
