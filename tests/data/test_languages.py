import pytest

from keras_attnvariants.data.languages import check_languages


def test_codes_of_two_languages():
    check_languages("pt-BR", "zh_Hant")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("", "de", "`source_language` must be a language code.*Received: ''"),
        ("en", "d e", "`target_language` must be a language code.*Received: 'd e'"),
        ("en", 3, "`target_language` must be a language code.*Received: 3"),
        ("en", "en", "must differ. Received: 'en' twice"),
    ],
)
def test_what_is_no_pair_of_codes(source, target, message):
    with pytest.raises(ValueError, match=message):
        check_languages(source, target)
