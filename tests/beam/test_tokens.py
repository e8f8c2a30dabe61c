"""Token files of parts, as far as they need no Beam."""

from pathlib import Path

import keras

from keras_attnvariants.beam.engine import parts_of
from keras_attnvariants.beam.tokens import join_tokens
from keras_attnvariants.beam.tokens import tokenize_part
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.pipeline import write_tokens


def test_parts_give_the_files_of_one_process(folder, tmp_path, tokenizer):
    corpus = load_corpus(folder, "en", "de", cache_dir=tmp_path / "cache")
    files = corpus.files("train")
    write_tokens(files, tokenizer, tmp_path)
    # Some parts hold no line: the longest line has more bytes than a part.
    todo = parts_of(files.source, tmp_path / "part", 40)
    lines = []
    for part in todo:
        lines.append(tokenize_part(part, tokenizer.model_bytes))
        # TensorFlow forgets tokenizers at a new seed.
        keras.utils.set_random_seed(1)
    assert 0 in lines
    assert sum(lines) == corpus.reports["train"].written
    join_tokens([Path(part.output) for part in todo], tmp_path / "joined")
    for ending in (".ids", ".offsets"):
        expected = (tmp_path / f"source{ending}").read_bytes()
        assert (tmp_path / f"joined{ending}").read_bytes() == expected
    assert not list(tmp_path.glob("*part*"))
