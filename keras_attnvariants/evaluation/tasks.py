"""Scores of other tasks than translation: summaries and transcripts of speech."""

import re
from collections.abc import Sequence

from keras_attnvariants.evaluation.metrics import Score
from keras_attnvariants.evaluation.metrics import check_references
from keras_attnvariants.evaluation.metrics import check_texts
from keras_attnvariants.utils.packages import check_extra
from keras_attnvariants.utils.packages import installed

# By the names that the package rouge-score has for them.
ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}


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


def check_pairs(hypotheses: object, references: object) -> tuple[list[str], list[str]]:
    """Both as lists.

    Raises:
        ValueError: they are not two sequences of as many strings, or they are empty.
    """
    checked = (
        check_texts("hypotheses", hypotheses),
        check_texts("references", references),
    )
    check_references(checked[1], len(checked[0]))
    return checked
