"""What a run of a comparison is trained with."""

from keras_attnvariants.data import load_corpus
from keras_attnvariants.data import mix_corpora
from keras_attnvariants.data.vocabularies import learn_vocabulary
from keras_attnvariants.experiments.runs import prepare_tokenizer
from keras_attnvariants.experiments.runs import training_settings
from keras_attnvariants.experiments.settings_file import read_settings
from keras_attnvariants.experiments.work import Work
from keras_attnvariants.models.saving import TOKENIZER
from keras_attnvariants.presets import get
from tests.experiments.toy import toy_file


def test_the_vocabulary_is_that_of_the_cache_with_its_tags(
    tmp_path, corpus_folder, corpus_cache
):
    corpus = load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)
    mixed = mix_corpora([corpus, corpus], tags=["<a>", ""], cache_dir=tmp_path)
    work = Work(read_settings(toy_file(tmp_path, corpus_folder)), tmp_path, "float32")
    work.__dict__["corpus"] = mixed
    prepare_tokenizer(work)
    learned = learn_vocabulary(mixed, 50, **work.settings.subwords)
    assert (tmp_path / TOKENIZER).read_bytes() == learned.model_bytes


def test_a_budget_of_tokens_counts_all_batches_of_an_update(tmp_path, corpus_folder):
    changes = {
        "updates = 4": f"tokens = {512 * 40}",
        "batch_tokens = 512": "batch_tokens = 512\naccumulate = 4",
    }
    settings = read_settings(toy_file(tmp_path, corpus_folder, **changes))
    work = Work(settings, tmp_path, "float32")
    system = settings.systems[0]
    batch_tokens, training = training_settings(work, system, get(system.preset))
    assert batch_tokens == 512 and training["accumulate"] == 4
    assert training["steps"] == 10 and training["validate_every"] == 5
