"""Searches of exported models, by the width of their sources."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants.serving import export
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.searches import BucketedSearch
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
