"""Attention of the words of a translation to those of the sentence: HTML and SVG."""

import html
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# What SentencePiece writes for the space before a word.
SPACE = "▁"

# Of pages that show what `Alignments.html` returns.
CSS = """
.kav-aligned { line-height: 1.9; margin-top: 0.5em; border-top: 1px solid #8884; }
.kav-aligned, .kav-name { overflow-wrap: anywhere; }
.kav-aligned p { font-weight: 600; }
.kav-aligned [data-s] { background: rgb(245 158 11 / var(--weight, 0)); padding: 2px 0;
  border-radius: 3px; }
.kav-aligned [data-t] { all: unset; cursor: pointer; padding: 2px 0;
  border-radius: 3px; }
.kav-aligned [data-t]:hover, .kav-aligned [data-t]:focus { background: #f59e0b;
  color: black; }
.kav-aligned [data-t]:focus-visible { outline: 2px solid; }
.kav-aligned ol { list-style: decimal; padding-left: 1.6em; }
.kav-aligned .kav-score { opacity: 0.7; font-size: 0.85em; white-space: nowrap; }
"""

# Of pictures, in pixels: a cell, the height of a letter, the space around words.
CELL, EM, GAP = 26, 15, 14


class Words(NamedTuple):
    """A sentence in words.

    Attributes:
        texts: the words, without spaces.
        spaced: whether a space comes before each.
        numbers: number of the word that each piece belongs to.
    """

    texts: list[str]
    spaced: list[bool]
    numbers: list[int]


class Hypothesis(NamedTuple):
    """A translation and what it attends to.

    Attributes:
        pieces: pieces of the translation, without the end of the sentence.
        score: its log probability after length normalization.
        weights: weights of its pieces on those of the source, `[T, S]`; zeros if the
            model has none.
    """

    pieces: Sequence[str]
    score: float
    weights: np.ndarray

    @property
    def text(self) -> str:
        """The translation."""
        return "".join(self.pieces).replace(SPACE, " ").strip()


def words(pieces: Sequence[str]) -> Words:
    """Joins pieces to words.

    A piece continues the word before if letters or digits of an alphabet meet there:
    punctuation marks and the characters of Chinese and Japanese are words.
    """
    texts: list[str] = []
    spaced: list[bool] = []
    numbers: list[int] = []
    for piece in pieces:
        text = piece.removeprefix(SPACE)
        begins = piece.startswith(SPACE) or not texts
        # A space that is a piece of its own belongs to the word after it.
        meets = "" if begins else texts[-1][-1:]
        if begins or (meets and not (joins(meets) and joins(text[:1]))):
            texts.append("")
            spaced.append(piece.startswith(SPACE))
        texts[-1] += text.replace(SPACE, " ")
        numbers.append(len(texts) - 1)
    return Words(texts, spaced, numbers)


def joins(character: str) -> bool:
    """Whether a character may continue a word, or have one continued after it."""
    return character.isalnum() and unicodedata.east_asian_width(character) not in "WF"


def word_weights(weights: np.ndarray, target: Words, source: Words) -> np.ndarray:
    """Weights between words: means over the pieces of a target word, sums over those
    of a source word.

    Args:
        weights: between pieces, `[T, S]`.
        target, source: their words.

    Returns:
        `[target words, source words]`.
    """
    rows, columns = (np.eye(len(w.texts))[w.numbers] for w in (target, source))
    counts = np.maximum(rows.sum(axis=0), 1.0)
    return rows.T @ weights @ columns / counts[:, None]


def alignment_html(
    source: Sequence[str], hypotheses: Sequence[Hypothesis], name: str
) -> str:
    """A sentence and its translations: who points at a word, or goes there by keyboard,
    sees in the source what it attends to.

    The page needs `CSS`, and no script.

    Args:
        source: the pieces of the sentence.
        hypotheses: its translations, best first.
        name: an identifier that nothing else on the page has, of letters and digits.
    """
    there = words(source)
    rules, items = [], []
    for number, hypothesis in enumerate(hypotheses):
        here = words(hypothesis.pieces)
        buttons = []
        for row, weights in enumerate(word_weights(hypothesis.weights, here, there)):
            key, text = f"{number}-{row}", here.texts[row]
            rules += shades(f"#{name}", key, weights)
            told = html.escape(spoken(text, there.texts, weights))
            buttons.append(
                f'<button type="button" data-t="{key}" aria-label="{told}">'
                f"{html.escape(text)}</button>"
            )
        score = f'<span class="kav-score">{hypothesis.score:.2f}</span>'
        items.append(f"<li>{spaced(buttons, here)} {score}</li>")
    spans = [
        f'<span data-s="{column}">{html.escape(text)}</span>'
        for column, text in enumerate(there.texts)
    ]
    return (
        f'<div class="kav-aligned" id="{name}"><style>{"".join(rules)}</style>'
        f"<p>{spaced(spans, there)}</p><ol>{''.join(items)}</ol></div>"
    )


def alignment_svg(source: Sequence[str], hypothesis: Hypothesis) -> str:
    """A picture of the weights between words, with a row for each target word.

    It needs neither matplotlib nor fonts of its own, and any browser shows it.

    Args:
        source: the pieces of the sentence.
        hypothesis: its translation.
    """
    there, here = words(source), words(hypothesis.pieces)
    rows = word_weights(hypothesis.weights, here, there)
    highest = rows.max(initial=1e-9)
    sides = [[html.escape(text) for text in side.texts] for side in (there, here)]
    # Of a sans-serif font, two thirds of an em are enough for most words.
    top, left = (
        GAP + 0.6 * EM * max(map(len, w.texts), default=0) for w in (there, here)
    )
    width, height = (
        CELL * len(w.texts) + n + GAP for w, n in ((there, left), (here, top))
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="sans-serif" font-size="{EM}">'
        '<rect width="100%" height="100%" fill="white"/>'
    ]
    for column, text in enumerate(sides[0]):
        place = f"translate({left + CELL * (column + 0.65):.0f} {top - 6:.0f})"
        parts.append(f'<text transform="{place} rotate(-90)">{text}</text>')
    for row, text in enumerate(sides[1]):
        y = top + CELL * row
        place = f'x="{left - 6:.0f}" y="{y + 0.65 * CELL:.0f}"'
        parts.append(f'<text {place} text-anchor="end">{text}</text>')
        for column, other in enumerate(sides[0]):
            weight = rows[row, column]
            shade = f'fill="#1d4ed8" fill-opacity="{weight / highest:.2f}"'
            parts.append(
                f'<rect x="{left + CELL * column:.0f}" y="{y:.0f}" width="{CELL - 1}" '
                f'height="{CELL - 1}" {shade} stroke="#ddd">'
                f"<title>{text} to {other}: {weight:.0%}</title></rect>"
            )
    return "\n".join([*parts, "</svg>"])


def shades(page: str, key: str, weights: np.ndarray) -> list[str]:
    """The rules that shade the words of the source while a target word is chosen."""
    strongest = weights.max(initial=0.0)
    if not strongest > 0.0:
        return []
    chosen = f'{page}:has([data-t="{key}"]:is(:hover, :focus))'
    return [
        f'{chosen} [data-s="{column}"] {{ --weight: {weight / strongest:.2f} }}\n'
        for column, weight in enumerate(weights)
        if weight >= 0.05 * strongest
    ]


def spoken(text: str, source: Sequence[str], weights: np.ndarray) -> str:
    """A target word with what it attends to most, for those who listen."""
    best = np.argsort(-weights, kind="stable")[:2]
    found = [f"{source[i]} {weights[i]:.0%}" for i in best if weights[i] > 0.0]
    return f"{text}: {', '.join(found)}" if found else text


def spaced(items: Sequence[str], words: Words) -> str:
    """Items in a row, with the spaces of the words that they stand for."""
    pairs = zip(items, words.spaced, strict=True)
    return "".join(f" {item}" if space else item for item, space in pairs).strip()
