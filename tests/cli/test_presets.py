"""`kav presets`: a table to filter."""

import pytest

from tests.cli.conftest import check_error
from tests.cli.conftest import stdout


def test_filters_narrow_the_table(kav):
    output = stdout(kav("presets", "hc-sa/iwslt16", "--paper", "you2020"))
    assert "you2020/hc-sa/iwslt16-en-de" in output
    assert "30.3" in output  # published
    assert "15.48M" in output
    assert "loem2022" not in output


@pytest.mark.parametrize(
    ("filters", "some", "none"),
    [
        (("--variant", "NeuralNgram"), "loem2022/neural-ngram/", "you2020/"),
        (("iwslt16", "--max-parameters", 16), "hc-sa/iwslt16-en-de", "100M"),
        (("iwslt16", "--max-parameters", 15.5), "hc-sa/iwslt16-en-de", "100M"),
    ],
)
def test_each_filter(kav, filters, some, none):
    output = stdout(kav("presets", *filters))
    assert some in output and none not in output


def test_nothing_fits(kav):
    check_error(kav("presets", "no-such-preset"), "No preset fits")
