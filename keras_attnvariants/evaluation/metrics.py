"""Corpus scores of translations, computed by sacrebleu.

Two scores are comparable only if they were computed in the same way. So each score
carries sacrebleu's signature: version, tokenization, case, number of references.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from keras_attnvariants.utils.checks import check_choice

METRICS = {"bleu": BLEU, "chrf": CHRF, "ter": TER}

References = Sequence[str] | Sequence[Sequence[str]]


@dataclass(frozen=True)
class Score:
    """A corpus score and how it was computed.

    Attributes:
        name: `"BLEU"`, `"chrF2"` (`"chrF2++"` with words), `"TER"`, `"ROUGE-1"`,
            `"ROUGE-2"`, `"ROUGE-L"` or `"WER"`.
        value: between 0 and 100; TER and WER can exceed 100, and lower is better there.
        signature: settings and version, to be quoted with the value; sacrebleu's own
            for its metrics.
        details: for BLEU the four precisions, brevity penalty and lengths, for WER the
            numbers of errors and words.
    """

    name: str
    value: float
    signature: str
    details: str = ""

    def __str__(self) -> str:
        text = f"{self.name}|{self.signature} = {self.value:.2f}"
        return f"{text} {self.details}".rstrip()


def corpus_bleu(
    hypotheses: Sequence[str], references: References, **options: Any
) -> Score:
    """BLEU (Papineni et al. 2002) of detokenized translations.

    Args:
        hypotheses: one translation per sentence.
        references: one reference per sentence, or several such sequences.
        **options: arguments of `sacrebleu.metrics.BLEU`, such as `lowercase` or
            `tokenize` (`"13a"`, `"char"`, `"zh"`, `"ja-mecab"`, …).

    Returns:
        A `Score` between 0 and 100.

    Raises:
        ValueError: there is nothing to score, the numbers of hypotheses and
            references differ, or an entry is not a string.

    Example:

    >>> score = corpus_bleu(["The cat sat on the mat."], ["The cat sat on a mat."])
    >>> round(score.value, 1)
    48.9
    """
    return corpus_score(BLEU(**options), hypotheses, references)


def corpus_chrf(
    hypotheses: Sequence[str], references: References, **options: Any
) -> Score:
    """chrF (Popović 2015), the F-score of character n-grams.

    Args:
        hypotheses: one translation per sentence.
        references: one reference per sentence, or several such sequences.
        **options: arguments of `sacrebleu.metrics.CHRF`; `word_order=2` gives chrF++.

    Returns:
        A `Score` between 0 and 100.

    Raises:
        ValueError: as for `corpus_bleu`.

    Example:

    >>> score = corpus_chrf(["The cat sat on the mat."], ["The cat sat on a mat."])
    >>> score.name, round(score.value, 1)
    ('chrF2', 71.4)
    """
    return corpus_score(CHRF(**options), hypotheses, references)


def corpus_ter(
    hypotheses: Sequence[str], references: References, **options: Any
) -> Score:
    """TER (Snover et al. 2006), edits and shifts per reference word.

    Args:
        hypotheses: one translation per sentence.
        references: one reference per sentence, or several such sequences.
        **options: arguments of `sacrebleu.metrics.TER`; the default ignores case.

    Returns:
        A `Score` in percent; lower is better, and it can exceed 100.

    Raises:
        ValueError: as for `corpus_bleu`.

    Example:

    >>> score = corpus_ter(["The cat sat on the mat."], ["The cat sat on a mat."])
    >>> round(score.value, 1)
    16.7
    """
    return corpus_score(TER(**options), hypotheses, references)


def corpus_score(
    metric: Metric, hypotheses: Sequence[str], references: References
) -> Score:
    """The `Score` of a corpus by a metric of sacrebleu."""
    hypotheses = check_texts("hypotheses", hypotheses)
    references = check_references(references, len(hypotheses))
    result = metric.corpus_score(hypotheses, references)
    # sacrebleu keeps the precisions and lengths of BLEU only for its own printout.
    details = getattr(result, "_verbose", "")
    return Score(result.name, result.score, str(metric.get_signature()), details)


def check_tokenizer(name: str) -> None:
    """Raises unless sacrebleu has this tokenizer, with all that it needs.

    Raises:
        ValueError: there is no such tokenizer, or it cannot be used here.
    """
    check_choice("tokenize", name, BLEU.TOKENIZERS)
    try:
        BLEU(tokenize=name)
    except (RuntimeError, ImportError, OSError) as error:
        raise ValueError(
            f"sacrebleu cannot use this tokenizer: {error}. Received: {name!r}"
        ) from error


def check_texts(name: str, texts: Any) -> list[str]:
    """`texts` as a list.

    Raises:
        ValueError: it is not a sequence of strings, or it is empty.
    """
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise ValueError(
            f"`{name}` must be a sequence of strings. Received: {type(texts).__name__}"
        )
    if not texts:
        raise ValueError(f"`{name}` must not be empty. Received: {texts!r}")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"`{name}` must hold strings only. Received: {text!r} at index {index}"
            )
    return list(texts)


def check_references(references: Any, count: int) -> list[list[str]]:
    """The references in sacrebleu's form: a list of sets, each of `count` strings.

    Raises:
        ValueError: they are not, or there is nothing in them.
    """
    several = (
        isinstance(references, Sequence)
        and not isinstance(references, str)
        and len(references) > 0
        and not isinstance(references[0], str)
    )
    sets = [
        check_texts("references", entry)
        for entry in (references if several else [references])
    ]
    for entry in sets:
        if len(entry) != count:
            raise ValueError(
                f"`references` must hold one reference per hypothesis. "
                f"Received: {len(entry)} references for {count} hypotheses"
            )
    return sets
