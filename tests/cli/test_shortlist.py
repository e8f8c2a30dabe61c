"""`kav shortlist`: a file that `kav export` reads."""

from keras_attnvariants.data import Shortlist
from tests.cli.conftest import stdout


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
