"""`kav shortlist`: a file that `kav export` reads."""

from keras_attnvariants.data import Corpus
from keras_attnvariants.data import Shortlist
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.training import load_run
from tests.cli.conftest import stdout


def test_texts_are_read_as_the_cache_has_them(
    kav, run_folder, corpus_folder, tmp_path, monkeypatch
):
    corpus = load_corpus(corpus_folder, "xx", "yy", cache_dir=tmp_path)
    model, tokenizer = load_run(run_folder)
    sides = map(tokenizer.encode, corpus.read_lines("train"))
    sizes = (model.source_vocabulary_size, model.vocabulary_size)
    expected = Shortlist.learn(list(zip(*sides, strict=True)), *sizes, common=200)
    monkeypatch.delattr(Corpus, "read_lines")
    monkeypatch.delattr(Tokenizer, "encode")
    options = ("--source", "xx", "--target", "yy", "--output", tmp_path / "list.npz")
    stdout(kav("shortlist", "--model", run_folder, "--data", corpus_folder, *options))
    learned = Shortlist.load(tmp_path / "list.npz")
    assert learned.common.tolist() == expected.common.tolist()
    assert learned.by_source.tolist() == expected.by_source.tolist()


def test_a_file_for_an_export(kav, run_folder, corpus_folder, tmp_path):
    file = tmp_path / "shortlist.npz"
    corpus = ("--data", corpus_folder, "--source", "xx", "--target", "yy")
    options = ("--candidates", 3, "--common", 5, "--output", file)
    output = stdout(kav("shortlist", "--model", run_folder, *corpus, *options))
    learned = Shortlist.load(file)
    assert len(learned.common) == 5 and learned.by_source.shape[1] == 3
    found = (learned.by_source >= 0).any(axis=1).sum()
    first, second = output.splitlines()
    assert first == (
        f"{file}: 5 tokens for all translations, and up to 3 for each of {found} "
        "source tokens"
    )
    assert second.startswith(f"Next: kav export --model {run_folder} ")
    saved = tmp_path / "saved"
    stdout(
        kav(
            *("export", "--model", run_folder, "--output", saved, "--ids-only"),
            *("--signature", "translate_ids", "--beam-size", 2),
            *("--shortlist", file, "--shortlist-width", 12),
        )
    )
    assert (saved / "1" / "saved_model.pb").exists()
