"""Presets and corpora: listed, filtered, mixed with tags, translated by a teacher."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from keras_attnvariants.cli.catalogue import CorporaOptions
from keras_attnvariants.data import corpus_names
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout


def test_every_corpus_is_listed(kav, corpus_cache, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    output = stdout(kav("corpora"))
    table, addresses = output.split("They are fetched from:")
    rows = [line.split()[0] for line in table.splitlines()[1:] if line[:1].strip()]
    assert rows == corpus_names()
    assert max(map(len, table.splitlines())) <= 80
    assert " https://www.statmt.org/wmt16/translation-task.html\n" in addresses
    assert "public domain" in output
    assert str(corpus_cache) in output


LANGUAGES = ("--source", "xx", "--target", "yy")
SMALL = (
    *("--vocabulary-size", 50, "--layers", 1, "--width", 16, "--feed-forward", 16),
    *("--heads", 2, "--batch-tokens", 256, "--precision", "float32"),
    *("--validate-every", 4, "--samples", 0, "--score-sentences", 2),
)


@pytest.mark.parametrize(
    ("given", "phrase"),
    [
        (
            {"data_weight": [1]},
            "Give --data-weight once for each --data. Received: 1 ",
        ),
        (
            {"source_tag": ["<a>"] * 3},
            "Give --source-tag once for each --data. Received: 3",
        ),
        ({"source": ["xx"] * 3}, "Give --source once for each --data"),
    ],
    ids=str,
)
def test_not_as_many_as_corpora(given, phrase):
    options = {"data": ["one", "two"], "source": ["xx"], "target": ["yy"], **given}
    with pytest.raises(ValueError, match=phrase):
        CorporaOptions(**options)


@pytest.mark.parametrize(
    "splits, expected",
    [
        (("train", "validation", "test"), "kav evaluate --model r --data d\n"),
        (("train", "validation"), "--model r --data d --split validation\n"),
        (("train",), "Next: kav translate --model r"),
    ],
)
def test_the_next_commands_have_a_set_to_score(capsys, splits, expected):
    corpus = SimpleNamespace(splits=dict.fromkeys(splits), task="translation")
    CorporaOptions(data=["d"]).show_next(Path("r"), corpus)
    output = capsys.readouterr().out
    assert expected in output
    assert ("evaluate" in output) == (len(splits) > 1)


@pytest.mark.parametrize("unique", [False, True])
def test_repeated_sentences_are_left_out_if_asked(monkeypatch, tmp_path, unique):
    monkeypatch.setenv("KAV_CACHE", str(tmp_path / "cache"))
    for language in ("xx", "yy"):
        text = "".join(f"{word} {language}\n" for word in "abca")
        (tmp_path / f"train.{language}").write_text(text)
    given = {"data": [tmp_path], "source": ["xx"], "target": ["yy"]}
    corpus = CorporaOptions(**given, unique=unique).load()
    assert corpus.read_lines("train")[0][3:] == ([] if unique else ["a xx"])


@pytest.fixture(scope="module")
def corpora(corpus_folder, tmp_path_factory):
    """The corpus in two parts; the second translates from yy into xx."""
    folders = [tmp_path_factory.mktemp(name) for name in ("one", "two")]
    for file in corpus_folder.iterdir():
        lines = file.read_text().splitlines(keepends=True)
        cut = 4 * len(lines) // 5
        for folder, part in zip(folders, (lines[:cut], lines[cut:]), strict=True):
            (folder / file.name).write_text("".join(part))
    return folders


def last_state(run):
    latest = max((run / "state").glob("state-*"))
    with np.load(latest / "variables.npz") as arrays:
        return {name: arrays[name].tobytes() for name in arrays.files}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")
def test_two_corpora_with_tags(kav, corpora, tmp_path):
    """All options together, resumed exactly; then translations with a tag."""
    data = [word for folder in corpora for word in ("--data", folder)]
    languages = ("--source", "xx", "--source", "yy", "--target", "yy", "--target", "xx")
    tags = ("--source-tag", "<2yy>", "--source-tag", "<2xx>")
    links = corpora[1] / "links"
    lines = (corpora[1] / "train.xx").read_text().splitlines()
    ends = [len(line.split()) - 1 for line in lines]
    reverse = [" ".join(f"{i}-{end - i}" for i in range(end + 1)) for end in ends]
    links.write_text("".join(f"{line}\n" for line in reverse))
    guided = ("--alignments", "", "--alignments", links, "--alignment-weight", 0.1)
    options = ("--accumulate", 2, "--ema", 0.9, "--clip-norm", 1.0, *guided)
    command = ("train", *data, *languages, *tags, *SMALL, *options)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    mixture = ("--data-temperature", 5)
    output = stdout(kav(*command, *mixture, "--run", whole, "--steps", 8))
    assert "one" in output and f"--model {whole} --source-tag '<2yy>'" in output
    for steps in (3, 8):
        stdout(kav(*command, *mixture, "--run", parts, "--steps", steps))
    assert last_state(whole) == last_state(parts)
    other = kav(*command, "--data-weight", 1, "--data-weight", 1, "--run", parts)
    check_error(other, "--data-weight [1.0, 1.0] instead of None", "--data-temperature")
    other = kav(*command, *mixture, "--run", parts, "--accumulate", 4)
    check_error(other, "--accumulate 4 instead of 2")
    links.write_text("\n" * len(lines))
    other = kav(*command, *mixture, "--run", parts)
    check_error(other, "--alignments, links with sha256")

    tag = ("--source-tag", "<2xx>")
    tagged = stdout(kav("translate", "--model", whole, *tag, "ab de"))
    assert tagged == stdout(kav("translate", "--model", whole, "<2xx> ab de"))
    unknown = kav("translate", "--model", whole, "--source-tag", "<2zz>", "ab de")
    check_error(unknown, "'<2yy>', '<2xx>'", "Received: '<2zz>'")
    by_server = kav("translate", "--server", "x:1/m", "--source-tag", "<2zz>", "ab de")
    check_error(by_server, "--source-tag is checked with the vocabulary of --model")
    test = ("--data", corpora[0], *LANGUAGES, "--sentences", 2)
    assert "BLEU" in stdout(kav("evaluate", "--model", whole, *test, *tags[:2]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")
def test_the_recipe_for_distillation(kav, corpora, tmp_path):
    """A student learns from a teacher's translations of the training sources."""
    teacher, distilled = tmp_path / "teacher", tmp_path / "distilled"
    data = ("--data", corpora[1], *LANGUAGES)
    longer = ("--steps", 40, "--learning-rate", 0.01, "--validate-every", 20)
    stdout(kav("train", *data, *SMALL, *longer, "--run", teacher))
    distilled.mkdir()
    for name in ("train.xx", "validation.xx", "validation.yy"):
        (distilled / name).write_bytes((corpora[1] / name).read_bytes())
    files = ("--input", distilled / "train.xx", "--output", distilled / "train.yy")
    stdout(kav("translate", "--model", teacher, *files, "--beam-size", 1))
    sources, translations = (
        (distilled / f"train.{language}").read_text().splitlines()
        for language in ("xx", "yy")
    )
    assert len(sources) == len(translations) == 120
    data = ("--data", distilled, *LANGUAGES)
    output = stdout(
        kav("train", *data, *SMALL, "--steps", 4, "--run", tmp_path / "student")
    )
    assert "train: 120 pairs read" in output


def test_filters_narrow_the_table(kav):
    output = stdout(kav("presets", "hc-sa/iwslt16", "--paper", "you2020"))
    assert "you2020/hc-sa/iwslt16-en-de" in output
    assert "30.3" in output  # published
    assert "15.48M" in output
    assert "loem2022" not in output


@pytest.mark.parametrize(
    ("filters", "some", "none"),
    [
        (("--variant", "NeuralNgram"), "loem2022/neural-ngram/", "you2020/"),
        (("iwslt16", "--max-parameters", 16), "hc-sa/iwslt16-en-de", "100M"),
        (("iwslt16", "--max-parameters", 15.5), "hc-sa/iwslt16-en-de", "100M"),
    ],
)
def test_each_filter(kav, filters, some, none):
    output = stdout(kav("presets", *filters))
    assert some in output and none not in output


def test_all_presets_begin_with_their_papers(kav):
    heading, *papers = stdout(kav("presets")).split("\n\n")[0].splitlines()
    assert heading.split() == ["paper", "presets", "title"]
    names = ["cs287", "loem2022", "nguyen2018", "rosendahl2021", "you2020", "kav"]
    assert [line.split()[0] for line in papers] == names


def test_nothing_fits(kav):
    check_error(kav("presets", "no-such-preset"), "No preset fits")
