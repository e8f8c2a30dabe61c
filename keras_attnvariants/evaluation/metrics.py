"""Corpus scores: of translations by sacrebleu, of summaries and transcripts by others.

Two scores are comparable only if they were computed in the same way. So each score
carries a signature, such as sacrebleu's: version, tokenization, case, number of
references.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.machine import check_extra
from keras_attnvariants.utils.machine import installed

METRICS = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
# BLEU of lower-cased Moses tokens, which older papers report.
MOSES = "bleu-moses"
# By the names that the package rouge-score has for them.
ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}

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
    # As sacrebleu prints it: name, an equals sign, the score, and perhaps more.
    _, _, details = result.format().partition(" = ")[2].partition(" ")
    return Score(result.name, result.score, str(metric.get_signature()), details)


def corpus_rouge(
    hypotheses: Sequence[str], references: Sequence[str], stem: bool = True
) -> tuple[Score, ...]:
    """ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004), means of the F1 scores of summaries.

    Computed by the package rouge-score, which knows letters without accents and digits
    only: it is for English. Needs the extra `scores`.

    Args:
        hypotheses: one summary per document.
        references: one per document; not all without letters and digits that
            rouge-score knows.
        stem: whether words are stemmed with Porter's algorithm.

    Returns:
        Three `Score`, each between 0 and 100.

    Raises:
        ValueError: as for `corpus_bleu`, the references have no word, or rouge-score is
            not installed.

    Example:

    >>> rouge = corpus_rouge(["the cat sat"], ["the cat sat on the mat"])
    >>> [(score.name, round(score.value, 1)) for score in rouge]
    [('ROUGE-1', 66.7), ('ROUGE-2', 57.1), ('ROUGE-L', 66.7)]
    """
    check_extra("ROUGE", "scores", ("rouge_score",))
    from rouge_score.rouge_scorer import RougeScorer

    hypotheses, references = check_pairs(hypotheses, references)
    if not any(re.search("[a-z0-9]", text.lower()) for text in references):
        raise ValueError(
            "`references` must have words of letters a to z or digits. Received: none"
        )
    scorer = RougeScorer(list(ROUGE), use_stemmer=stem)
    pairs = zip(references, hypotheses, strict=True)
    found = [scorer.score(reference, summary) for reference, summary in pairs]
    signature = f"stem:{'yes' if stem else 'no'}|rouge-score:{installed('rouge-score')}"
    return tuple(
        Score(name, 100 * sum(s[key].fmeasure for s in found) / len(found), signature)
        for key, name in ROUGE.items()
    )


def word_error_rate(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """The word error rate, `(S + D + I) / N` over all sentences, by the package jiwer.

    Words are what spaces separate; case and punctuation count. Needs the extra
    `scores`.

    Args:
        hypotheses: one transcript per utterance.
        references: one per utterance; not all without words.

    Returns:
        A `Score` in percent; lower is better, and it can exceed 100. Its details are
        the numbers of substitutions, deletions, insertions and words.

    Raises:
        ValueError: as for `corpus_bleu`, the references have no word, or jiwer is not
            installed.

    Example:

    >>> score = word_error_rate(["the cat sat on mat"], ["the cat sat on the mat"])
    >>> round(score.value, 1), score.details
    (16.7, '0 substitutions, 1 deletions, 0 insertions, 6 words')
    """
    check_extra("The word error rate", "scores", ("jiwer",))
    import jiwer

    hypotheses, references = check_pairs(hypotheses, references)
    if not any(reference.split() for reference in references):
        raise ValueError("`references` must have words. Received: none")
    found = jiwer.process_words(references, hypotheses)
    words = found.hits + found.substitutions + found.deletions
    details = (
        f"{found.substitutions} substitutions, {found.deletions} deletions, "
        f"{found.insertions} insertions, {words} words"
    )
    return Score("WER", 100 * found.wer, f"jiwer:{installed('jiwer')}", details)


def moses_bleu(language: str) -> BLEU:
    """The metric `MOSES`.

    Raises:
        ValueError: sacremoses is not installed.
    """
    check_extra(f"The metric {MOSES!r}", "scores", ("sacremoses",))
    from sacremoses import MosesTokenizer

    metric = BLEU(tokenize="none", lowercase=True, force=True)
    tokenize = MosesTokenizer(language).tokenize
    metric.tokenizer = partial(tokenize, return_str=True, escape=False)
    metric.tokenizer_signature = f"sacremoses-{installed('sacremoses')}-{language}"
    return metric


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
    several = isinstance(references, list | tuple) and references
    if not several or isinstance(references[0], str):
        references = [references]
    sets = [check_texts("references", entry) for entry in references]
    for entry in sets:
        if len(entry) != count:
            raise ValueError(
                f"`references` must hold one reference per hypothesis. "
                f"Received: {len(entry)} references for {count} hypotheses"
            )
    return sets


def check_pairs(hypotheses: object, references: object) -> tuple[list[str], list[str]]:
    """Both as lists.

    Raises:
        ValueError: they are not two sequences of as many strings, or they are empty.
    """
    texts = check_texts("hypotheses", hypotheses)
    wanted = check_texts("references", references)
    check_references(wanted, len(texts))
    return texts, wanted
