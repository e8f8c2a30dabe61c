"""Summaries without a model."""

from keras_attnvariants.evaluation.baselines import lead
from keras_attnvariants.evaluation.baselines import oracle

DOCUMENTS = ["A dog ran. The cat sat on the mat.", "Rain fell. It stopped."]


def test_the_first_and_the_nearest_sentence():
    references = [["a cat on a mat", "it stopped"]]
    assert lead(DOCUMENTS, references) == ["A dog ran.", "Rain fell."]
    assert oracle(DOCUMENTS, references) == ["The cat sat on the mat.", "It stopped."]


def test_references_without_words_are_near_to_nothing():
    references = [["\N{HORIZONTAL ELLIPSIS}", "it stopped"], [None, None]]
    assert oracle(DOCUMENTS, references) == ["A dog ran.", "It stopped."]


def test_the_nearest_sentence_in_russian():
    document = "Кошка спала. Дождь шёл в Москве."
    assert oracle([document], [["дождь в Москве"]]) == ["Дождь шёл в Москве."]
