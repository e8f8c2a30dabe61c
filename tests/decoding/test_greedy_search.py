"""Greedy search against a loop in NumPy; `test_beam_search*` test it as well."""

import numpy as np
import pytest

from tests.decoding.toys import BOS
from tests.decoding.toys import EOS
from tests.decoding.toys import PAD
from tests.decoding.toys import TableModel
from tests.decoding.toys import greedy_search
from tests.decoding.toys import search
from tests.decoding.toys import table_sources


def most_probable(tables, max_length):
    """The ids `[T]` and the log probability of each table's greedy translation."""
    for table in tables.astype("float64"):
        log_probs = table - np.log(np.exp(table).sum(-1, keepdims=True))
        ids, total = [BOS], 0.0
        while ids[-1] != EOS:
            row = log_probs[len(ids) - 1, ids[-1]].copy()
            row[[PAD, BOS]] = -np.inf
            is_last = len(ids) == max_length
            token = EOS if is_last else int(row.argmax())
            total += row[token]
            ids.append(token)
        yield ids[1:] + [PAD] * (max_length + 1 - len(ids)), total


@pytest.fixture(scope="module")
def model():
    return TableModel(np.random.default_rng(7).normal(scale=2.0, size=(40, 5, 7, 7)))


@pytest.mark.parametrize("exponent", [0.0, 0.6])
def test_every_token_is_the_most_probable(model, exponent):
    options = {"length_penalty": exponent, "max_length": 5}
    found = search(model, table_sources(model), greedy_search, **options)
    ids, log_probs = zip(*most_probable(model.tables, 5), strict=True)
    np.testing.assert_array_equal(found.ids[:, 0], ids)
    np.testing.assert_allclose(found.log_probs[:, 0], log_probs, atol=1e-4)
    lengths = (np.array(ids) != PAD).sum(-1)
    np.testing.assert_array_equal(found.lengths[:, 0], lengths)
    scores = np.array(log_probs) * (6 / (5 + lengths)) ** exponent
    np.testing.assert_allclose(found.scores[:, 0], scores, atol=1e-4)
    assert len(np.unique(lengths)) > 2
