"""Searches of a few tiny trials: killed, promoted, in parallel; their files."""

import dataclasses
import json
import sys

import pytest

from keras_attnvariants import serving
from keras_attnvariants import training
from keras_attnvariants import tuning
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.decoding import Translator
from keras_attnvariants.trained import load_model
from keras_attnvariants.training import NoamSchedule
from keras_attnvariants.training.run_settings import read_settings
from keras_attnvariants.tuning.search import SETTINGS
from keras_attnvariants.tuning.search import DifferentSearchError
from keras_attnvariants.tuning.search import work
from tests.faults import tuning as faults
from tests.toy_runs import write_corpus
from tests.tuning.toy import bare_preset
from tests.tuning.toy import toy_search

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module")
def corpus(corpus_folder, corpus_cache):
    return load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The result of a search of two trials."""
    return faults.make(write_corpus(tmp_path_factory.mktemp("undisturbed")), 2).run()


@pytest.mark.slow
def test_a_search_killed_in_a_trial_ends_like_an_undisturbed_one(
    forks, tmp_path, undisturbed
):
    """A search that was killed in the second of two trials."""
    write_corpus(tmp_path)
    faults.run_until_killed(forks, tmp_path, 2, update=faults.UPDATES + 4)
    search = faults.make(tmp_path, 2)
    assert [r.trial for r in search.result().records] == ["0"]
    [run] = tmp_path.glob("search/trial_1/seed-1")
    assert list(run.glob("state/*"))
    killed = search.run()
    assert len(killed.records) == 2
    faults.compare(killed, undisturbed)
    # Continued with the same call, it has nothing left to do.
    assert faults.make(tmp_path, 2).run().records == killed.records


@pytest.mark.slow
def test_two_workers_train_the_trials_of_one(tmp_path, undisturbed):
    found = faults.make(write_corpus(tmp_path), 2).run(workers=2)
    scores = {r.trial: pytest.approx(r.score, rel=1e-4) for r in undisturbed.records}
    assert {r.trial: r.score for r in found.records} == scores


@pytest.mark.slow
def test_the_best_model_of_a_search_is_exported_and_translates(undisturbed, tmp_path):
    model, tokenizer = training.load_run(undisturbed.run_folder())
    assert model.count_params() == undisturbed.best().parameters
    path = serving.export(
        model, tokenizer, tmp_path, beam_size=2, max_tokens=20, signatures=()
    )
    texts = ["abd klm", "ei"]
    translator = Translator(model, tokenizer, beam_size=2, xla=False)
    found = serving.SavedTranslator(path).translate(texts)
    assert found == translator.translate(texts) and any(found)


@pytest.mark.parametrize(
    "task, metric", [("translation", "bleu"), ("summarisation", "rouge1")]
)
def test_label_smoothing_cannot_be_searched_by_loss(corpus, tmp_path, task, metric):
    space = tuning.SearchSpace(training={"label_smoothing": [0.0, 0.1]})
    corpus = dataclasses.replace(corpus, task=task)
    with pytest.raises(ValueError, match=f"objective '{metric}'"):
        toy_search(corpus, tmp_path, space).check()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"objective": "ter"}, "`objective` must be one of"),
        ({"method": "grid"}, "`method` must be one of"),
        ({"max_trials": 0}, "`max_trials` must be a positive integer"),
        ({"seeds": (1, 1)}, "`seeds` must be different"),
        ({"seed": 0}, "`seed` must be a positive integer"),
    ],
)
def test_wrong_arguments(corpus, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        toy_search(corpus, tmp_path, **options)


@pytest.mark.parametrize("max_trials", [None, 3])
def test_missing_packages_are_named(corpus, tmp_path, monkeypatch, max_trials):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "keras_tuner", None)
    with pytest.raises(ValueError, match="sklearn, not installed.*pip install .*tune"):
        toy_search(corpus, tmp_path, method="bayesian", max_trials=max_trials)


@pytest.fixture
def search(corpus, tmp_path):
    """A search that has begun."""
    begun = toy_search(corpus, tmp_path, max_trials=2)
    (tmp_path / SETTINGS).write_text(json.dumps(begun.described()))
    return begun


OTHER = [
    ({"seed": 5}, "a search with other settings.*Received: `seed` 5 instead of 1$"),
    ({"budget": tuning.Budget(updates=7)}, "`updates` 7 instead of 6, `validations` 9"),
    ({"seeds": (1, 2)}, r"`seeds` \[1, 2\] instead of \[1\]"),
]


@pytest.mark.parametrize("options, message", OTHER)
def test_another_search_is_not_continued(corpus, search, options, message):
    other = toy_search(corpus, search.folder, max_trials=2, **options)
    with pytest.raises(ValueError, match=message):
        other.run()


def test_a_search_of_a_preset_in_other_sizes(search):
    other = dataclasses.replace(search, preset=bare_preset(num_layers=2))
    with pytest.raises(ValueError, match="`preset.num_layers` 2 instead of 1"):
        other.run()


def test_a_search_may_have_more_trials(corpus, search):
    more = toy_search(corpus, search.folder, max_trials=5)
    assert more.open() == more


def test_a_search_on_another_corpus(corpus, search, tmp_path_factory):
    folder = tmp_path_factory.mktemp("other")
    for split in ("train", "validation"):
        for name, path in zip(("xx", "yy"), corpus.files(split), strict=True):
            lines = path.read_text().splitlines()[1:]
            (folder / f"{split}.{name}").write_text("\n".join(lines) + "\n")
    other = load_corpus(folder, "xx", "yy", cache_dir=folder / "cache")
    with pytest.raises(ValueError, match="on another corpus.*`train_sentences`"):
        toy_search(other, search.folder, max_trials=2).run()


def test_a_search_on_a_corpus_with_alignments(search):
    saved = {**search.described(), "alignments": "0" * 64}
    (search.folder / SETTINGS).write_text(json.dumps(saved))
    with pytest.raises(ValueError, match="another corpus.*`alignments` None instead"):
        search.open()


def test_schedules_are_the_same_in_every_process(corpus, tmp_path):
    found = [
        toy_search(
            corpus, tmp_path, settings={"learning_rate": NoamSchedule(8)}
        ).described()
        for _ in range(2)
    ]
    assert found[0] == found[1] and "NoamSchedule" in str(found[0]["settings"])


def test_a_worker_imports_modules_first(search):
    other = dataclasses.replace(search, imports=("no_such.module",))
    with pytest.raises(ValueError, match=r"cannot be imported.*no_such\.module$"):
        work(other, print)


@pytest.mark.slow
def test_workers_that_cannot_begin_end_the_search(search):
    other = dataclasses.replace(search, imports=("no_such.module",))
    with pytest.raises(
        ValueError, match=r"^worker \d failed, and 1 more: `imports` can"
    ):
        other.run(workers=2)
    assert len(list(search.folder.glob("workers/*.log"))) == 2


@pytest.fixture
def model(run_folder):
    return str(run_folder / "best")


def test_trials_go_on_from_a_model_with_its_sizes(corpus, tmp_path, model):
    search = toy_search(corpus, tmp_path, continue_from=model)
    trained, tokenizer = load_model(model)
    assert search.vocabulary_size == tokenizer.vocabulary_size
    assert search.preset.options["hidden_dim"] == trained.get_config()["hidden_dim"]
    search.open()
    assert Tokenizer.load(tmp_path / TOKENIZER).sha256 == tokenizer.sha256
    assert len(search.described()["continue_from"]) == 64


def test_a_search_goes_on_from_the_same_model_alone(corpus, tmp_path, model):
    toy_search(corpus, tmp_path, continue_from=model).open()
    other = toy_search(corpus, tmp_path, vocabulary_size=60)
    with pytest.raises(DifferentSearchError, match="`continue_from` None"):
        other.open()
    with pytest.raises(ValueError, match="`vocabulary_size` and `subwords` describe"):
        toy_search(corpus, tmp_path, continue_from=model, vocabulary_size=7)


@pytest.mark.slow
def test_a_trial_begins_with_the_weights_of_the_model(corpus, tmp_path, model):
    space = tuning.SearchSpace(training={"learning_rate": [1e-3]})
    search = toy_search(corpus, tmp_path, space, continue_from=model, max_trials=1)
    run = search.run().run_folder()
    data = read_settings(run)["training"]["data"]
    assert data["from_model"] == search.described()["continue_from"]
