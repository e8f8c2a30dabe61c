from keras_attnvariants.experiments.page.english import differing


def marked(text: str, other: str) -> str:
    return " ".join(
        f"[{words}]" if differs else words for words, differs in differing(text, other)
    )


def test_equal_texts_do_not_differ():
    assert marked("a red house", "a red house") == "a red house"


def test_changed_inserted_and_moved_words_differ():
    assert marked("a blue house", "a red house") == "a [blue] house"
    assert marked("a very red house", "a red house") == "a [very] red house"
    assert marked("a house", "a red house") == "a house"
    assert marked("house a red", "a red house") == "[house] a red"


def test_words_are_compared_whole_and_with_case():
    assert marked("A houseboat", "a house") == "[A houseboat]"


def test_empty_texts():
    assert differing("", "a house") == []
    assert marked("a house", "") == "[a house]"
    assert differing(" \t", "") == []


def test_frequent_words_of_long_texts_are_compared_too():
    text = "a b " * 300
    assert marked(text, text) == text.strip()
