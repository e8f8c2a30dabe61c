"""Baseline summaries without a model: the first sentence, and the best one.

Each function takes documents and their references, and returns a text per document.
"""

import itertools
import re
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from keras_attnvariants.utils.metrics import make_metric

# A full stop, a question mark or an exclamation mark, perhaps in quotation marks, where
# the next word begins with anything but a small letter.
_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)[\"')\]”]*\s+(?![a-z])")


def sentences_of(document: str) -> list[str]:
    """The sentences of a text, at least one."""
    ends = (end.end() for end in _END.finditer(document))
    parts = itertools.pairwise([0, *ends, len(document)])
    found = [document[start:end].strip() for start, end in parts]
    return found if found[-1] else found[:-1] or found


def lead(documents: Sequence[str], references: Sequence[Sequence[Any]]) -> list[str]:
    """The first sentence of each document."""
    return [sentences_of(document)[0] for document in documents]


def oracle(documents: Sequence[str], references: Sequence[Sequence[Any]]) -> list[str]:
    """The sentence of each document that is nearest to its references.

    It has the highest sum of ROUGE-1 and ROUGE-2; no system that copies a sentence can
    be better.

    Args:
        documents: the texts.
        references: sets of one reference for each document, or `None`.
    """
    metrics: list[Any] = [make_metric(name) for name in ("rouge1", "rouge2")]

    def closeness(sentence: str, wanted: list[str]) -> float:
        return sum(m.sentence_score(sentence, wanted).score for m in metrics)

    found = []
    for document, *wanted in zip(documents, *references, strict=True):
        known = [text for text in wanted if text is not None]
        # The first sentence if none overlaps with the references.
        found.append(max(sentences_of(document), key=lambda s: closeness(s, known)))
    return found


BASELINES: dict[str, Callable[..., list[str]]] = {"lead-1": lead, "oracle": oracle}
