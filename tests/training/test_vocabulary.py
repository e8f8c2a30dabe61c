"""The vocabulary of several runs is learned once, and copied to each."""

from keras_attnvariants.data import load_corpus
from keras_attnvariants.data import mix_corpora
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.data.vocabularies import learn_vocabulary
from keras_attnvariants.training.vocabulary import copy_vocabulary
from keras_attnvariants.training.vocabulary import prepare_vocabulary


def test_the_vocabulary_is_that_of_the_cache_with_its_tags(
    tmp_path, corpus_folder, corpus_cache
):
    corpus = load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)
    mixed = mix_corpora([corpus, corpus], tags=["<a>", ""], cache_dir=tmp_path)
    prepare_vocabulary(tmp_path, mixed, 50, {"model_type": "bpe"})
    learned = learn_vocabulary(mixed, 50, model_type="bpe")
    assert (tmp_path / TOKENIZER).read_bytes() == learned.model_bytes


def test_what_is_there_stays(tmp_path, corpus_folder, corpus_cache):
    corpus = load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)
    (tmp_path / TOKENIZER).write_bytes(b"first")
    prepare_vocabulary(tmp_path, corpus, 50, {})
    copy_vocabulary(tmp_path, tmp_path / "run")
    (tmp_path / TOKENIZER).write_bytes(b"second")
    copy_vocabulary(tmp_path, tmp_path / "run")
    assert (tmp_path / "run" / TOKENIZER).read_bytes() == b"first"
