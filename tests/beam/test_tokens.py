"""Token files of parts, as far as they need no Beam."""

import keras

from keras_attnvariants.beam import engine
from keras_attnvariants.beam.tokens import join_offsets
from keras_attnvariants.beam.tokens import tokenize_part
from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import load_corpus


def test_parts_give_the_files_of_one_process(monkeypatch, folder, tmp_path, tokenizer):
    corpus = load_corpus(folder, "en", "de", cache_dir=tmp_path / "cache")
    files = corpus.files("train")
    TokenizedCorpus(corpus, tokenizer).write_tokens(files, tmp_path)
    # Some parts hold no line: the longest line has more bytes than a part.
    monkeypatch.setattr(engine, "PART_BYTES", 40)
    todo = engine.parts_of(files.source, tmp_path / "part")
    lines = []
    for part in todo:
        lines.append(tokenize_part(part, tokenizer.model_bytes))
        # TensorFlow forgets tokenizers at a new seed.
        keras.utils.set_random_seed(1)
    assert 0 in lines
    assert sum(lines) == corpus.reports["train"].written
    for ending, join in ((".ids", engine.join), (".offsets", join_offsets)):
        files = [tmp_path / f"{part.output}{ending}" for part in todo]
        join(files, tmp_path / f"joined{ending}")
        expected = (tmp_path / f"source{ending}").read_bytes()
        assert (tmp_path / f"joined{ending}").read_bytes() == expected
    assert not list(tmp_path.glob("*part*"))
