"""Scores of other tasks than translation: summaries and transcripts of speech."""

from collections.abc import Sequence

from keras_attnvariants.evaluation.metrics import Score
from keras_attnvariants.evaluation.metrics import check_references
from keras_attnvariants.evaluation.metrics import check_texts
from keras_attnvariants.utils.packages import check_extra
from keras_attnvariants.utils.packages import installed

# By the names that the package rouge-score has for them.
ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}


def corpus_rouge(
    summaries: Sequence[str], references: Sequence[str], stem: bool = True
) -> tuple[Score, ...]:
    """ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004), means of the F1 scores of summaries.

    Computed by the package rouge-score, which knows letters without accents and digits
    only: it is for English. Needs the extra `scores`.

    Args:
        summaries: one per document.
        references: one per document.
        stem: whether words are stemmed with Porter's algorithm.

    Returns:
        Three `Score`, each between 0 and 100.

    Raises:
        ValueError: as for `corpus_bleu`, or rouge-score is not installed.
    """
    check_extra("ROUGE", "scores", ("rouge_score",))
    from rouge_score.rouge_scorer import RougeScorer

    summaries = check_texts("summaries", summaries)
    references = check_texts("references", references)
    check_references(references, len(summaries))
    scorer = RougeScorer(list(ROUGE), use_stemmer=stem)
    pairs = zip(references, summaries, strict=True)
    found = [scorer.score(reference, summary) for reference, summary in pairs]
    signature = f"stem:{'yes' if stem else 'no'}|rouge-score:{installed('rouge-score')}"
    return tuple(
        Score(name, 100 * sum(s[key].fmeasure for s in found) / len(found), signature)
        for key, name in ROUGE.items()
    )


def word_error_rate(transcripts: Sequence[str], references: Sequence[str]) -> Score:
    """The word error rate, `(S + D + I) / N` over all sentences, by the package jiwer.

    Words are what spaces separate; case and punctuation count. Needs the extra
    `scores`.

    Args:
        transcripts: one per utterance.
        references: one per utterance; not all without words.

    Returns:
        A `Score` in percent; lower is better, and it can exceed 100. Its details are
        the numbers of substitutions, deletions, insertions and words.

    Raises:
        ValueError: as for `corpus_bleu`, the references have no word, or jiwer is not
            installed.
    """
    check_extra("The word error rate", "scores", ("jiwer",))
    import jiwer

    transcripts = check_texts("transcripts", transcripts)
    references = check_texts("references", references)
    check_references(references, len(transcripts))
    if not any(reference.split() for reference in references):
        raise ValueError("`references` must have words. Received: none")
    found = jiwer.process_words(references, transcripts)
    words = found.hits + found.substitutions + found.deletions
    details = (
        f"{found.substitutions} substitutions, {found.deletions} deletions, "
        f"{found.insertions} insertions, {words} words"
    )
    return Score("WER", 100 * found.wer, f"jiwer:{installed('jiwer')}", details)
