"""Trials per hour of several workers, on a search that they run."""

import pytest

from benchmarks import workers
from keras_attnvariants.data import load_corpus


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_two_workers_run_all_trials_of_a_search(corpus_folder, corpus_cache, tmp_path):
    corpus = load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)
    search = workers.make(corpus, tmp_path / "search", trials=2, updates=2, width=8)
    found = workers.measure(search, 2)
    assert 0 < found.under_way < found.with_start and found.cpu > 0
    assert [record.updates for record in search.result().records] == [2, 2]
    assert len(list(search.folder.glob("workers/*-[12].log"))) == 2
