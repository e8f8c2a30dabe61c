"""Reads and cleans word alignments of training pairs, and maps them to tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np

from keras_attnvariants.data.cleaning import clean_pair
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.data.text_files import fingerprint
from keras_attnvariants.data.text_files import read_text_lines
from keras_attnvariants.data.token_files import write_rows
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.utils.caches import cached_folder
from keras_attnvariants.utils.chunks import chunks
from keras_attnvariants.utils.folders import FolderWriter

# Indices of a source word and of a target word, from 0.
Link = tuple[int, int]
LINK = re.compile(r"(\d+)([-p?])(\d+)")

# Name of the file beside a cleaned corpus.
ALIGNMENTS = "train.alignments"
_PAIRS_PER_BLOCK = 4096
_WORD = re.compile(r"\S+")


def parse_links(
    text: str, reverse: bool, where: str
) -> tuple[frozenset[Link], frozenset[Link]]:
    """The sure and the possible links of a line; sure links are also possible.

    Args:
        text: `0-0 1-2` for sure links, `1p2` or `1?2` for possible ones.
        reverse: whether the target word comes first in a link.
        where: line and file, for the error message.

    Raises:
        ValueError: something in the line is not a link.
    """
    sure, possible = set(), set()
    for word in text.split():
        found = LINK.fullmatch(word)
        if not found:
            raise ValueError(
                "Links must be like 0-0, 1-2 or 1p2, numbered from 0. "
                f"Received: {word!r:.40} in {where}"
            )
        link = int(found[1]), int(found[3])
        link = link[::-1] if reverse else link
        possible.add(link)
        if found[2] == "-":
            sure.add(link)
    return frozenset(sure), frozenset(possible)


def check_links(
    links: frozenset[Link], source_words: int, target_words: int, where: str
) -> None:
    """Raises `ValueError` unless all links are between words that exist."""
    for source, target in sorted(links):
        if source >= source_words or target >= target_words:
            raise ValueError(
                f"Links must be between {source_words} source and {target_words} "
                "target words, numbered from 0; are source and target the wrong way "
                f"round? Received: {source}-{target} in {where}"
            )


def cached_alignments(
    folder: Path, files: ParallelFiles, path: Path, max_characters: int
) -> Path:
    """The file with the links of the pairs that cleaning keeps, written once.

    It has the sure links of each pair, such as `0-0 1-2`, sorted.

    Args:
        folder: the cleaned corpus.
        files: the training split before cleaning.
        path: one line of links for each pair, plain or `.gz`.
        max_characters: as for `clean_split`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it does not have a line for each pair, or a line is not a list of
            links between the words of its pair.
    """

    def write(into: FolderWriter) -> None:
        rows = zip_longest(read_text_lines(path), files.pairs())
        with (into.path / ALIGNMENTS).open("w", encoding="ascii") as file:
            for number, (line, pair) in enumerate(rows, start=1):
                if line is None or pair is None:
                    missing = "line of links" if line is None else "pair"
                    raise ValueError(
                        "A file of alignments must have a line for each pair of the "
                        f"training split. Received: no {missing} {number} for {path}"
                    )
                where = f"line {number} of {path}"
                links, _ = parse_links(line, False, where)
                texts, problem = clean_pair(pair, max_characters)
                if problem is None:
                    source, target = (len(text.split()) for text in texts)
                    check_links(links, source, target, where)
                    file.write(" ".join(f"{i}-{j}" for i, j in sorted(links)) + "\n")

    name = f"alignments-{fingerprint([path])}"
    return cached_folder(folder / name, write) / ALIGNMENTS


def write_token_links(
    files: ParallelFiles, alignments: Path, tokenizer: Tokenizer, path: Path
) -> None:
    """Converts links between words to links between tokens, and writes them.

    Two tokens are linked if their words are. Each entry of the `TokenFile` is a pair:
    target token, source token.
    """

    def found() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        pairs = zip(*map(read_text_lines, (*files, alignments)), strict=True)
        for block in chunks(pairs, _PAIRS_PER_BLOCK):
            sources, targets, lines = map(list, zip(*block, strict=True))
            sides = [
                words_of_tokens(tokenizer, sources),
                words_of_tokens(tokenizer.target, targets),
            ]
            links = [
                token_links(parse_links(line, False, str(alignments))[0], *words)
                for line, *words in zip(lines, *sides, strict=True)
            ]
            yield np.concatenate(links), np.array([len(row) for row in links])

    write_rows(found(), path)


def words_of_tokens(tokenizer: Tokenizer, texts: Sequence[str]) -> list[np.ndarray]:
    """The number of the word, from 0, that each token of a text belongs to.

    Words are separated by white space in the text before normalization.
    """
    numbers = []
    for text, begins in zip(texts, tokenizer.begins(texts), strict=True):
        ends = [word.end() for word in _WORD.finditer(text)]
        words = np.searchsorted(ends, begins, side="right")
        numbers.append(np.minimum(words, max(len(ends) - 1, 0)))
    return numbers


def token_links(
    links: Iterable[Link], source: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """Links between tokens, int32 `[links, 2]`: target token and source token.

    Args:
        links: links between words.
        source, target: the number of the word that each token belongs to.
    """
    linked = np.zeros((target.max(initial=0) + 1, source.max(initial=0) + 1), bool)
    for source_word, target_word in links:
        # Words at the end may have no token, if normalization drops their characters.
        if target_word < len(linked) and source_word < linked.shape[1]:
            linked[target_word, source_word] = True
    return np.argwhere(linked[np.ix_(target, source)]).astype(np.int32)
