"""Word alignments of training pairs."""

import itertools

import numpy as np
import pytest

from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data import mix_corpora
from keras_attnvariants.data.alignments import check_links
from keras_attnvariants.data.alignments import parse_links
from keras_attnvariants.data.alignments import words_of_tokens


def test_sure_and_possible_links():
    sure, possible = parse_links("0-0 1p2 3?1", False, "line 1 of a")
    assert sure == {(0, 0)} and possible == {(0, 0), (1, 2), (3, 1)}
    assert parse_links("3-1", True, "line 1 of a")[0] == {(1, 3)}
    assert parse_links("", False, "line 1 of a") == (frozenset(), frozenset())


@pytest.mark.parametrize("text", ["0", "0-", "a-b", "-1-0", "0-0,1-1", "0--1"])
def test_malformed_links_are_refused_with_their_place(text):
    with pytest.raises(ValueError, match=r"Received: '.*' in line 7 of a\.txt"):
        parse_links(f"1-1 {text}", False, "line 7 of a.txt")


@pytest.mark.parametrize("link", [(2, 0), (0, 3)])
def test_links_beyond_the_last_word_are_refused(link):
    check_links(frozenset({(1, 2)}), 2, 3, "line 1 of a")
    with pytest.raises(ValueError, match=f"Received: {link[0]}-{link[1]} in line 7"):
        check_links(frozenset({(1, 2), link}), 2, 3, "line 7 of a")


PAIRS = 120


def write_aligned(folder, seed=4, spoiled=True):
    """Made-up words, read backwards, with links and some pairs that are dropped."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list("abdeikmorst"), 4)) for _ in range(30)]
    sources, targets, links = [], [], []
    for number in range(PAIRS):
        line = rng.choice(words, rng.integers(1, 6)).tolist()
        ends = len(line) - 1
        sources.append(" ".join(line))
        targets.append(" ".join(line[::-1]))
        links.append(" ".join(f"{i}-{ends - i}" for i in range(len(line)) if i != 3))
        if spoiled and number % 7 == 2:
            targets[-1] = "" if number % 2 else "x" * 3000
    folder.mkdir(exist_ok=True)
    texts = {"train.xx": sources, "train.yy": targets, "links": links}
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_aligned(tmp_path_factory.mktemp("aligned"))


@pytest.fixture(scope="module")
def corpus(folder):
    links = folder / "links"
    return load_corpus(folder, "xx", "yy", folder / "cache", alignments=links)


def reference(source, target, links, tokenizer):
    """Links between the tokens of two sentences, found word by word."""
    words = [
        [number for number, word in enumerate(text.split()) for _ in pieces(word)]
        for text, pieces in (
            (source, lambda word: tokenizer.encode([word])[0]),
            (target, lambda word: tokenizer.encode([word])[0]),
        )
    ]
    found = {tuple(map(int, link.split("-"))) for link in links.split()}
    return {
        (t, s)
        for (t, to), (s, of) in itertools.product(
            enumerate(words[1]), enumerate(words[0])
        )
        if (of, to) in found
    }


def test_links_stay_with_the_pairs_that_are_kept(corpus):
    sources, targets = corpus.read_lines("train")
    links = corpus.alignments.read_text().splitlines()
    assert len(sources) == len(links) < PAIRS
    for source, target, line in zip(sources, targets, links, strict=True):
        for link in line.split():
            i, j = map(int, link.split("-"))
            assert source.split()[i] == target.split()[j]


def test_batches_have_the_links_of_their_pairs(corpus):
    tokenizer = Tokenizer.train(corpus.splits["train"], 45)
    tokens = TokenizedCorpus(corpus, tokenizer, max_length=8)
    assert tokens.plan("train", 256, 3).num_skipped > 0
    sources, targets = corpus.read_lines("train")
    lines = corpus.alignments.read_text().splitlines()
    ids = zip(tokenizer.encode(sources), tokenizer.encode(targets), strict=True)
    known = {
        (tuple(s), tuple(t)): (source, target, links)
        for (s, t), source, target, links in zip(
            ids, sources, targets, lines, strict=True
        )
    }
    seen = 0
    for inputs, labels, _ in tokens.training_dataset(256, seed=3).take(12):
        matrices = inputs["alignments"].numpy()
        assert matrices.dtype == bool
        assert matrices.shape == (*labels.shape, inputs["source_ids"].shape[1])
        for row, matrix in enumerate(matrices):
            source = inputs["source_ids"][row].numpy()
            target = labels[row].numpy()
            source, target = source[source > 0], target[target > 0][:-1]
            if not len(target):
                assert not matrix.any()
                continue
            pair = known[tuple(source), tuple(target)]
            expected = reference(*pair, tokenizer)
            assert set(zip(*matrix.nonzero(), strict=True)) == expected
            seen += bool(expected)
    assert seen > 50


def test_words_are_those_of_the_text_not_of_its_normalization():
    texts = ["ab cd\u00b4ef", "\u2026 \ufb01x", "a\u00a0b", ""]
    tokenizer = Tokenizer.train([*texts, "... fix"] * 20, 18)
    for text, words in zip(texts, words_of_tokens(tokenizer, texts), strict=True):
        assert len(words) == len(tokenizer.encode([text])[0])
        assert sorted(set(words.tolist())) == list(range(len(text.split())))


def test_corpora_are_joined_with_their_links(corpus, tmp_path):
    plain = write_aligned(tmp_path / "plain", seed=5, spoiled=False)
    plain = load_corpus(plain, "xx", "yy", tmp_path / "cache")
    mixed = mix_corpora([plain, corpus], tags=["", "<x>"], cache_dir=tmp_path / "cache")
    sources, targets = mixed.read_lines("train")
    lines = mixed.alignments.read_text().split("\n")[:-1]
    assert len(lines) == len(sources) and not any(lines[:PAIRS]) and any(lines[PAIRS:])
    for source, target, line in zip(sources, targets, lines, strict=True):
        for link in line.split():
            i, j = map(int, link.split("-"))
            assert source.split()[i] == target.split()[j]
    untagged = mix_corpora([plain, plain], cache_dir=tmp_path / "cache")
    assert untagged.alignments is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], r"no line of links 120 for .*links"),
        (lambda lines: [*lines, "0-0"], r"no pair 121 for .*links"),
        (lambda lines: ["0-0", "0_0", *lines[2:]], r"'0_0' in line 2 of .*links"),
        (lambda lines: ["0-0", "0-9", *lines[2:]], r"0-9 in line 2 of .*links"),
    ],
)
def test_bad_files_are_refused_with_their_line(folder, tmp_path, change, message):
    path = tmp_path / "links"
    lines = change((folder / "links").read_text().splitlines())
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(ValueError, match=message) as error:
        load_corpus(folder, "xx", "yy", tmp_path / "cache", alignments=path)
    assert "\n" not in str(error.value)


def test_missing_files_and_tables_are_refused(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        load_corpus(folder, "xx", "yy", tmp_path, alignments=tmp_path / "none")
    (tmp_path / "a.tsv").write_text("a\tb\n")
    with pytest.raises(ValueError, match="one for each language"):
        load_corpus(
            tmp_path / "a.tsv", "xx", "yy", tmp_path, alignments=folder / "links"
        )
