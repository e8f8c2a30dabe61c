"""Trials: their budget, their vocabulary, their runs, and the arguments of these."""

import pytest

from keras_attnvariants import tuning
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data import mix_corpora
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.data.vocabularies import learn_vocabulary
from keras_attnvariants.tuning import trials
from keras_attnvariants.tuning.space import TrialArguments
from tests.tuning.toy import toy_search

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def corpus(corpus_folder, corpus_cache):
    return load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)


def test_the_vocabulary_has_the_tags_of_the_corpus(corpus, tmp_path):
    mixed = mix_corpora([corpus, corpus], tags=["<a>", ""], cache_dir=tmp_path)
    toy_search(mixed, tmp_path).open()
    found = (tmp_path / TOKENIZER).read_bytes()
    expected = Tokenizer.train(mixed.files("train"), 50, tags=mixed.tags)
    assert found == expected.model_bytes
    assert found == learn_vocabulary(mixed, 50).model_bytes


def test_a_budget_of_tokens_counts_all_batches_of_an_update(
    corpus, tmp_path, monkeypatch
):
    given = {}
    monkeypatch.setattr(
        trials, "train_preset", lambda *_, **options: given.update(options)
    )
    budget = tuning.Budget(tokens=512 * 60, validations=3)
    search = toy_search(
        corpus, tmp_path, budget=budget, settings={"accumulate": 4}, seeds=(1,)
    )
    arguments = TrialArguments({}, {"accumulate": 2}, None)
    for chosen, updates in ((arguments, 30), (arguments._replace(settings={}), 15)):
        trials.train(search, tmp_path / "trial/seed-1", 1, chosen)
        assert given["batch_tokens"] == 512
        assert given["settings"]["steps"] == updates
        assert given["settings"]["validate_every"] == updates // 3


def test_updates_are_the_same_for_all_batches():
    budget = tuning.Budget(updates=90)
    assert [budget.steps(batch) for batch in (512, 1024)] == [90, 90]
    assert budget.training(512, {})["validate_every"] == 10


def test_tokens_are_fewer_updates_of_larger_batches():
    budget = tuning.Budget(tokens=90_000)
    assert budget.steps(1000) == 90 and budget.steps(2000) == 45


def test_minutes_are_a_time_limit():
    budget = tuning.Budget(minutes=9, validate_every=7)
    assert [limit.limit for limit in budget.limits()] == [540]
    assert budget.training(512, {})["validate_every"] == 7
    assert tuning.Budget(updates=9).limits() == []


def test_settings_of_a_trial():
    budget = tuning.Budget(tokens=90_000)
    assert budget.training(500, {"accumulate": 2, "log_every": 3}) == {
        **{"accumulate": 2, "log_every": 3, "save_every": 10},
        **{"steps": 90, "validate_every": 10},
    }
    assert tuning.Budget(updates=9).training(500, {})["log_every"] == 1


@pytest.mark.parametrize("given", [{}, {"updates": 1, "tokens": 2}])
def test_exactly_one(given):
    with pytest.raises(ValueError, match="must be one of"):
        tuning.Budget(**given)
