"""Which searches are continued or joined, and how long a worker waits for its chief."""

import dataclasses

import pytest

from keras_attnvariants import tuning
from keras_attnvariants.data import load_corpus
from keras_attnvariants.training import NoamSchedule
from keras_attnvariants.tuning import settings
from keras_attnvariants.tuning import workers
from keras_attnvariants.tuning.chief import free_address
from tests.tuning.toy import bare_preset
from tests.tuning.toy import toy_search

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def corpus(corpus_folder, corpus_cache):
    return load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)


@pytest.fixture
def search(corpus, tmp_path):
    """A search whose chief has begun."""
    begun = toy_search(corpus, tmp_path, max_trials=2)
    settings.write_settings(tmp_path, begun.settings())
    return begun


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(workers, "PATIENCE", 0.2)
    monkeypatch.setattr(workers, "PAUSE", 0.05)


OTHER = [
    ({"seed": 5}, "a search with another `seed`.*Received: 5 instead of 1$"),
    ({"budget": tuning.Budget(updates=7)}, "a search with another `budget`"),
    ({"seeds": (1, 2)}, "a search with another `seeds`"),
]


@pytest.mark.parametrize("options, message", OTHER)
def test_another_search_is_neither_continued_nor_joined(
    corpus, search, options, message
):
    other = toy_search(corpus, search.folder, max_trials=2, **options)
    with pytest.raises(ValueError, match=message):
        other.run()
    with pytest.raises(ValueError, match=message):
        other.join(free_address(), "a")


def test_a_search_of_a_preset_in_other_sizes(search):
    trials = dataclasses.replace(search.trials, preset=bare_preset(num_layers=2))
    other = dataclasses.replace(search, trials=trials)
    with pytest.raises(ValueError, match="another `preset.num_layers`.*2 instead of 1"):
        other.run()


def test_a_search_may_have_more_trials(corpus, search):
    more = toy_search(corpus, search.folder, max_trials=5)
    settings.check_same_search(search.folder, more.settings())


def test_a_search_on_another_corpus(corpus, search, tmp_path_factory):
    folder = tmp_path_factory.mktemp("other")
    for split in ("train", "validation"):
        for name, path in zip(("xx", "yy"), corpus.files(split), strict=True):
            lines = path.read_text().splitlines()[1:]
            (folder / f"{split}.{name}").write_text("\n".join(lines) + "\n")
    other = load_corpus(folder, "xx", "yy", cache_dir=folder / "cache")
    with pytest.raises(ValueError, match="holds a search on another corpus"):
        toy_search(other, search.folder, max_trials=2).run()


def test_a_search_on_a_corpus_with_alignments(search):
    given = search.settings()
    settings.write_settings(search.folder, {**given, "alignments": "0" * 64})
    with pytest.raises(ValueError, match="another corpus.*content of alignments$"):
        settings.check_same_search(search.folder, given)


def test_schedules_are_the_same_in_every_process(corpus, tmp_path):
    found = [
        toy_search(
            corpus, tmp_path, settings={"learning_rate": NoamSchedule(8)}
        ).settings()
        for _ in range(2)
    ]
    assert found[0] == found[1] and "NoamSchedule" in str(found[0]["settings"])


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_chief_that_is_gone(search, impatient, has_begun):
    if not has_begun:
        (search.folder / settings.SETTINGS).unlink()
    with pytest.raises(ValueError, match=r"^No chief has answered for 0.2 seconds"):
        search.join(free_address(), "a")


@pytest.mark.parametrize("name", ["", "../a", "the-chief", "a b"])
def test_names_that_no_worker_can_have(search, name):
    with pytest.raises(ValueError, match="The name of a worker must"):
        search.join(free_address(), name)
