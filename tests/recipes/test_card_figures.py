"""Figures for cards: scores as sacreBLEU has them, speed without the start."""

import os
from pathlib import Path

import pytest

from keras_attnvariants.evaluation import corpus_score
from tests.recipes.conftest import module_of

card_figures = module_of("card_figures")
Translated = card_figures.Translated
example, measured = card_figures.example, card_figures.measured
paired_scores, translated = card_figures.paired_scores, card_figures.translated

REFERENCES = [f"This is sentence number {n} of the test set." for n in range(20)]
TRANSLATIONS = [text.replace("number 1", "1") for text in REFERENCES]


class Words:
    """A tokenizer whose tokens are words."""

    @property
    def target(self):
        return self

    def encode(self, texts):
        return [text.split() for text in texts]


def test_scores_are_those_of_sacrebleu_with_intervals():
    bleu, chrf, ter = paired_scores(TRANSLATIONS, REFERENCES, REFERENCES)
    expected = corpus_score("bleu", TRANSLATIONS, REFERENCES)
    assert bleu.name == expected.name and bleu.packed == round(expected.value, 2)
    assert "bs:1000" in bleu.signature and "tok:13a" in bleu.signature
    assert bleu.float32 == 100 and bleu.float32_interval == 0 < bleu.packed_interval
    assert 0 < bleu.p_value < 1
    assert chrf.name == "chrF2" and chrf.packed < chrf.float32 == 100
    assert ter.packed == round(corpus_score("ter", TRANSLATIONS, REFERENCES).value, 2)


def test_speed_is_that_of_the_test_set_without_the_start(monkeypatch, tmp_path):
    packed, plain = tmp_path / "packed", tmp_path / "plain"
    samples = [("a b", "a c"), ("d e", "d e")]
    found = {
        (packed, 2): Translated(["a b", "d e"], 5.0, 600.0),
        (packed, 20): Translated(TRANSLATIONS, 7.0, 900.4),
        (plain, 20): Translated(REFERENCES, 8.0, 950.0),
    }
    monkeypatch.setattr(
        card_figures, "translated", lambda model, texts: found[model, len(texts)]
    )
    test = (REFERENCES, REFERENCES)
    figures = measured(packed, plain, test, samples, Words())
    speed, examples = figures["speed"], figures["examples"]
    assert figures["bleu"] == figures["scores"][0].packed < 100
    assert speed.sentences_per_second == 9.0
    tokens = sum(map(len, Words().encode(TRANSLATIONS))) - 4
    assert speed.tokens_per_second == tokens / 2
    assert (speed.start_seconds, speed.peak_megabytes) == (5.0, 900)
    assert [one.source for one in examples] == ["d e", "a b"]
    assert examples[0] == example(samples[1], "d e")
    assert examples[0].chrf == 100


def test_translations_come_from_a_process_with_one_thread(monkeypatch, tmp_path):
    package = tmp_path / "keras_attnvariants"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import os, pathlib, sys\n"
        "options = dict(zip(sys.argv[2::2], sys.argv[3::2]))\n"
        "text = pathlib.Path(options['--input']).read_text('utf-8')\n"
        "text = text.replace('THREADS', os.environ['TF_NUM_INTRAOP_THREADS'])\n"
        "pathlib.Path(options['--output']).write_text(text, 'utf-8')\n"
        "sys.exit(options['--model'] == 'missing')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    found = translated(tmp_path, ["a line\u2028in two", "", "THREADS"])
    assert found.texts == ["a line\u2028in two", "", "1"]
    # This process has hundreds of megabytes.
    assert 0 < found.seconds < 60 and 1 < found.megabytes < 100
    assert "TF_NUM_INTRAOP_THREADS" not in os.environ
    with pytest.raises(ChildProcessError, match="Received: status 1"):
        translated(Path("missing"), ["a"])
