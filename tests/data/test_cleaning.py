"""Reading lines of any quality."""

import pytest

from keras_attnvariants.data.cleaning import SplitReport
from keras_attnvariants.data.cleaning import clean_line
from keras_attnvariants.data.cleaning import clean_split
from keras_attnvariants.data.splits import ParallelFiles


@pytest.mark.parametrize(
    ("line", "text", "problem"),
    [
        (b" a  b ", "a  b", None),
        ("ä\u2028b".encode(), "ä b", None),
        (b"a\xff", "a\ufffd", "invalid UTF-8"),
        (b"a\0b", "ab", "NUL"),
        (b"\xff\0", "\ufffd", "invalid UTF-8"),
        (b" \t ", "", "empty"),
        (b"\0", "", "NUL"),
        (b"abcdef", "abcdef", "over-long"),
    ],
)
def test_a_line_has_a_text_and_its_first_problem(line, text, problem):
    assert clean_line(line, max_characters=5) == (text, problem)


PAIRS = [(b"a", b"b"), None, (b"", b"\xff"), (b"c", b"")]


@pytest.mark.parametrize(("keep_bad", "written"), [(False, 1), (True, 4)])
def test_bad_pairs_are_counted_and_kept_if_asked(tmp_path, keep_bad, written):
    files = ParallelFiles(tmp_path / "a", tmp_path / "b")
    report = clean_split("test", PAIRS, files, 9, keep_bad)
    assert report == SplitReport(
        "test",
        read=4,
        written=written,
        kept=keep_bad,
        problems={"not two columns": 1, "invalid UTF-8": 1, "empty": 1},
    )
    assert [len(file.read_text("utf-8").split("\n")) for file in files] == (
        [written + 1] * 2
    )


def test_a_report_is_one_line():
    assert str(SplitReport("train", 1200, 1200)) == (
        "train: 1,200 pairs read, 1,200 written, no bad lines"
    )
    assert str(SplitReport("test", 2, 2, True, {"NUL": 1})) == (
        "test: 2 pairs read, 2 written; kept although: 1 NUL"
    )
