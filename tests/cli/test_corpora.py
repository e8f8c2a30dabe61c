"""`kav corpora`: every registered corpus."""

from keras_attnvariants.data import corpus_names
from tests.cli.conftest import stdout


def test_every_corpus_is_listed(kav, corpus_cache):
    output = stdout(kav("corpora"))
    rows = [line.split()[0] for line in output.splitlines()[1:-1] if line[:1].strip()]
    assert rows == corpus_names()
    assert "public domain" in output
    assert str(corpus_cache) in output
