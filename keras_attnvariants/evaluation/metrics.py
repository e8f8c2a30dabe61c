"""Corpus scores by name: of translations, of summaries and of transcripts.

Two scores are comparable only if they were computed in the same way. So each score
carries a signature, such as sacrebleu's: version, tokenization, case, number of
references.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU

from keras_attnvariants.backend.private import sentence_statistics
from keras_attnvariants.evaluation.significance import resampled
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.metrics import METRICS

# One for each sentence, or several such sequences, with `None` for missing ones.
References = Sequence[str] | Sequence[Sequence[str | None]]


@dataclass(frozen=True)
class Score:
    """A corpus score and how it was computed.

    Attributes:
        name: `"BLEU"`, `"chrF2"` (`"chrF2++"` with words), `"TER"`, `"ROUGE-1"`,
            `"ROUGE-2"`, `"ROUGE-L"`, `"WER"` or `"CER"`.
        value: between 0 and 100; TER, WER and CER can exceed 100, and lower is better
            there.
        signature: settings and version, to be quoted with the value; sacrebleu's own
            for its metrics.
        details: for BLEU the four precisions, brevity penalty and lengths, for error
            rates the numbers of errors and words.
        interval: bounds of 95 % of resampled test sets, if requested.
    """

    name: str
    value: float
    signature: str
    details: str = ""
    interval: tuple[float, float] | None = None

    @property
    def shown(self) -> str:
        """The value, and its interval if it has one."""
        bounds = "" if self.interval is None else " [{:.2f}, {:.2f}]"
        return f"{self.value:.2f}{bounds.format(*self.interval or ())}"

    def __str__(self) -> str:
        text = f"{self.name}|{self.signature} = {self.value:.2f}"
        return f"{text} {self.details}".rstrip()


def corpus_score(
    metric: str | Metric,
    hypotheses: Sequence[str],
    references: References,
    samples: int = 0,
    groups: Sequence[str] | None = None,
    **options: Any,
) -> Score:
    """The score of a corpus of translations, summaries or transcripts.

    Args:
        metric: `"bleu"` (Papineni et al. 2002, of detokenized translations), `"chrf"`
            (Popović 2015, the F-score of character n-grams) or `"ter"` (Snover et al.
            2006, edits and shifts per reference word) by sacrebleu; `"rouge1"`,
            `"rouge2"` or `"rougeL"` (Lin 2004), means of the F1 scores of summaries; or
            the error rates `"wer"` or `"cer"`, `(S + D + I) / N` over all sentences.
            The last five need the extra `scores`. Alternatively, a metric in
            sacrebleu's form.
        hypotheses: one text per sentence, document or recording.
        references: one for each, or several such sequences.
        samples: number of resampled test sets for an interval; 0 for no interval.
        groups: one for each sentence, such as its speaker; all sentences of a group are
            drawn together, since they are not independent.
        **options: for a metric by name, arguments of `sacrebleu.metrics.BLEU`
            (`lowercase`, `tokenize`: `"13a"`, `"char"`, `"zh"`, `"ja-mecab"`, …), of
            `CHRF` (`word_order=2` gives chrF++) or of `TER`; for ROUGE, `stem`: whether
            words are stemmed with Porter's algorithm.

    Raises:
        ValueError: there is nothing to score, the numbers of hypotheses, references or
            groups differ, an entry is not a string, or the references of an error rate
            have no word.

    Example:

    >>> one, other = ["The cat sat on the mat."], ["The cat sat on a mat."]
    >>> [round(corpus_score(name, one, other).value, 1) for name in ("bleu", "chrf")]
    [48.9, 71.4]
    >>> score = corpus_score("wer", ["the cat sat on mat"], ["the cat sat on the mat"])
    >>> round(score.value, 1), score.details
    (16.7, '0 substitutions, 1 deletions, 0 insertions, 6 words')
    """
    if isinstance(metric, str):
        metric = METRICS[check_choice("metric", metric, METRICS)](**options)
    hypotheses = check_texts("hypotheses", hypotheses)
    references = check_references(references, len(hypotheses))
    if groups is not None and len(groups) != len(hypotheses):
        raise ValueError(
            "`groups` must hold one for each hypothesis. "
            f"Received: {len(groups)} for {len(hypotheses)} hypotheses"
        )
    result = metric.corpus_score(hypotheses, references)
    # As sacrebleu prints it: name, an equals sign, the score, and perhaps more.
    _, _, details = result.format().partition(" = ")[2].partition(" ")
    interval = None
    if samples:
        counts = sentence_statistics(metric, hypotheses, references)
        drawn = resampled(metric, counts, samples, groups=groups)
        low, high = np.quantile(drawn, (0.025, 0.975))
        interval = float(low), float(high)
    return Score(
        result.name, result.score, str(metric.get_signature()), details, interval
    )


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
    is_list = isinstance(texts, Sequence) and not isinstance(texts, str)
    odd = [x for x in texts if not isinstance(x, str)] if is_list else [texts]
    if odd or not texts:
        raise ValueError(
            f"`{name}` must be a sequence of strings, at least one. "
            f"Received: {(odd or [texts])[0]!r:.80}"
        )
    return list(texts)


def check_references(references: Any, count: int) -> list[list[Any]]:
    """The references in sacrebleu's form: a list of sets, each of `count` strings.

    A sentence with fewer references than others has `None` in the remaining sets.

    Raises:
        ValueError: they do not have this form, or are empty.
    """
    several = isinstance(references, list | tuple) and references
    if not several or isinstance(references[0], str):
        references = [references]
    for number, entry in enumerate(references):
        known = ["" if text is None else text for text in entry] if number else entry
        check_texts("references", known)
        if len(entry) != count:
            raise ValueError(
                f"`references` must hold one reference per hypothesis. "
                f"Received: {len(entry)} references for {count} hypotheses"
            )
    return [[*entry] for entry in references]
