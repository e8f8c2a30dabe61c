"""Metrics by name: sacrebleu's, and ROUGE and error rates in the same form.

Thus all support sacrebleu's signatures and several references, and give counts for each
sentence that add up, from which the package resamples test sets.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import regex
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.base import Score
from sacrebleu.metrics.base import Signature
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.machine import check_extra
from keras_attnvariants.utils.machine import installed

# Labels by the names that the package rouge-score has for them.
ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
# Labels and units of error rates, and the function of jiwer that counts the errors.
ERROR_RATES = {
    "wer": ("WER", "words", "process_words"),
    "cer": ("CER", "characters", "process_characters"),
}
_LETTER = regex.compile(r"\p{L}")
_LATIN = regex.compile(r"[\p{L}&&\p{Latin}]", regex.V1)
_NO_SPACES = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = regex.compile(
    rf"[\p{{L}}&&[{_NO_SPACES}]]\p{{M}}*|[[\p{{L}}\p{{M}}\p{{N}}]--[{_NO_SPACES}]]+",
    regex.V1,
)


class RatioMetric(Metric):
    """A metric in percent: summed over sentences, the first count over the second.

    Args:
        label: name of the scores.
        settings: parts of the signature.
    """

    def __init__(self, label: str, settings: Mapping[str, str | None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.label = label
        self.settings = settings

    def get_signature(self) -> Signature:
        """Settings, number of references, and versions; not sacrebleu's own."""
        found = super().get_signature()
        for name, value in {"version": None, **self.settings}.items():
            found.update(name, value)
        return found

    def details(self, sums: Sequence[float]) -> str:
        """All counts, in words; nothing by default."""
        return ""

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": refs}

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _aggregate_and_compute(self, stats: Sequence[Sequence[float]]) -> Score:
        return self._compute_score_from_stats(np.sum(stats, axis=0))

    def _compute_score_from_stats(self, stats: Sequence[float]) -> Score:
        # A sample of sentences may have no words.
        score = Score(self.label, 100 * float(stats[0]) / max(float(stats[1]), 1e-9))
        score._verbose = self.details(stats)
        return score


class Rouge(RatioMetric):
    """ROUGE (Lin 2004) by rouge-score: the mean F1 of summaries.

    With several references, the nearest one counts; one without words gives 0. The
    words of rouge-score are runs of English letters and digits. If most letters of a
    reference are not Latin, `words_of` finds the words instead.

    Args:
        kind: `"rouge1"`, `"rouge2"` or `"rougeL"`.
        stem: whether words are stemmed with Porter's algorithm.

    Raises:
        ValueError: rouge-score is not installed.
    """

    def __init__(self, kind: str, stem: bool = True) -> None:
        check_extra("ROUGE", "scores", ("rouge_score",))
        from rouge_score.rouge_scorer import RougeScorer

        settings = {
            "score": "mean-F1",
            "references": "best",
            "stem": "yes" if stem else "no",
            "rouge-score": installed("rouge-score"),
            "other-scripts": "unicode",
        }
        super().__init__(ROUGE[kind], settings)
        self.kind = kind
        self.latin = RougeScorer([kind], use_stemmer=stem)
        words = SimpleNamespace(tokenize=words_of)
        self.other = RougeScorer([kind], tokenizer=words)

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: Mapping[str, Any]
    ) -> list[float]:
        found = (self._f1(hypothesis, text) for text in ref_kwargs["references"])
        return [max(found), 1.0]

    def _f1(self, hypothesis: str, reference: str) -> float:
        scorer = self.latin if is_latin(reference) else self.other
        return float(scorer.score(reference, hypothesis)[self.kind].fmeasure)


def is_latin(text: str) -> bool:
    """Whether at least half of the letters of a text are Latin."""
    latin = len(_LATIN.findall(text))
    return 2 * latin >= len(_LETTER.findall(text))


def words_of(text: str) -> list[str]:
    """The runs of letters, marks and digits of a text, in lower case.

    Characters of scripts without spaces are words, with the marks that they carry.

    >>> words_of("В 2020-м: дождь. 下雨了")
    ['в', '2020', 'м', 'дождь', '下', '雨', '了']
    """
    return _WORD.findall(text.lower())


class ErrorRate(RatioMetric):
    """The rate of errors of words or characters, `(S + D + I) / N`, by jiwer.

    Words are separated by one or more spaces. Case and punctuation count. With several
    references, the one with the fewest errors counts.

    Args:
        kind: `"wer"` or `"cer"`.

    Raises:
        ValueError: jiwer is not installed.
    """

    def __init__(self, kind: str) -> None:
        label, self.unit, function = ERROR_RATES[kind]
        check_extra("An error rate", "scores", ("jiwer",))
        import jiwer

        self.count = getattr(jiwer, function)
        settings = {
            "case": "mixed",
            "punctuation": "yes",
            "spaces": "one",
            "jiwer": installed("jiwer"),
        }
        super().__init__(label, settings)

    def details(self, sums: Sequence[float]) -> str:
        _, units, *errors = map(round, sums)
        names = ("substitutions", "deletions", "insertions")
        parts = [f"{n} {name}" for n, name in zip(errors, names, strict=True)]
        return f"{', '.join(parts)}, {units} {self.unit}"

    def _cache_references(self, references: Sequence[Sequence[str]]) -> list[Any]:
        if not any((text or "").split() for refs in references for text in refs):
            raise ValueError("`references` must have words. Received: none")
        return super()._cache_references(references)

    def _preprocess_segment(self, sent: str) -> str:
        return " ".join(sent.split())

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: Mapping[str, Any]
    ) -> list[float]:
        return min(self._counts(hypothesis, r) for r in ref_kwargs["references"])

    def _counts(self, hypothesis: str, reference: str) -> list[float]:
        """Errors, units of the reference, and errors by kind."""
        found = self.count(reference, hypothesis)
        kinds = [found.substitutions, found.deletions, found.insertions]
        units = found.hits + found.substitutions + found.deletions
        return [sum(kinds), units, *kinds]


METRICS: dict[str, Callable[..., Metric]] = {
    "bleu": BLEU,
    "chrf": CHRF,
    "ter": TER,
    **{kind: partial(Rouge, kind) for kind in ROUGE},
    **{kind: partial(ErrorRate, kind) for kind in ERROR_RATES},
}
# BLEU of lower-cased Moses tokens, which older papers report.
MOSES = "bleu-moses"
NAMES = (*METRICS, MOSES)


def make_metric(name: str, tokenize: str = "13a", language: str = "") -> Metric:
    """The metric of this name.

    Args:
        name: one of `NAMES`.
        tokenize: sacrebleu's tokenizer for BLEU.
        language: code of the language that is scored, for BLEU of Moses tokens.

    Raises:
        ValueError: there is no such metric, or a package that it needs is missing.
    """
    check_choice("metric", name, NAMES)
    if name == MOSES:
        return moses_bleu(language)
    return METRICS[name](**({"tokenize": tokenize} if name == "bleu" else {}))


def label(name: str) -> str:
    """The name of a metric in tables, such as sacrebleu's `"chrF2"`."""
    if name == MOSES:
        return "BLEU, Moses tokens"
    return str(METRICS[name]().corpus_score(["a"], [["a"]]).name)


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
