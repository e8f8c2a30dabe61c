"""Speed by a clock that the tests set."""

from io import StringIO

import pytest
from rich.console import Console

from keras_attnvariants.evaluation import Speed
from keras_attnvariants.evaluation import measure_speed


class SlowTranslator:
    """Repeats its input and lets a given time pass in each call."""

    def __init__(self, monkeypatch, durations):
        self.now = 100.0
        self.durations = list(durations)
        monkeypatch.setattr("time.perf_counter", lambda: self.now)

    def __call__(self, texts):
        self.now += self.durations.pop(0)
        return [f"{text} {text}" for text in texts]


def test_median_run_counts_and_warm_up_does_not(monkeypatch):
    translate = SlowTranslator(monkeypatch, [50, 2, 100, 4])
    speed = measure_speed(translate, ["a b", "c"], runs=3)
    assert speed.warm_up_seconds == 50
    assert speed.seconds == (2, 100, 4)
    assert speed.sentences_per_second == 2 / 4
    assert speed.tokens_per_second == 6 / 4
    assert speed.hypotheses == ["a b a b", "c c"]


def test_clock_is_real_outside_these_tests():
    speed = measure_speed(lambda texts: texts, ["a"], runs=2)
    assert len(speed.seconds) == 2
    assert min(speed.seconds) > 0


def test_dictionary_and_table_hold_the_figures():
    speed = Speed(10, 200, (2.0,), 7.0, [])
    assert speed.to_dict() == {
        "sentences_per_second": 5.0,
        "tokens_per_second": 100.0,
        "sentences": 10,
        "tokens": 200,
        "seconds": [2.0],
        "warm_up_seconds": 7.0,
    }
    console = Console(width=100, record=True, file=StringIO())
    console.print(speed)
    text = console.export_text()
    assert "5.0" in text
    assert "100.0" in text
    assert "median of 1, warm-up 7.00 s" in text


@pytest.mark.parametrize(
    ("translate", "texts", "runs", "message"),
    [
        (list, [], 1, "`texts` must be .* at least one"),
        (list, "a", 1, "`texts` must be a sequence of strings.* Received: 'a'"),
        (list, ["a"], 0, "`runs` must be a positive integer. Received: 0"),
        (list, ["a"], 1.5, "`runs` must be a positive integer. Received: 1.5"),
        (lambda texts: texts[1:], ["a", "b"], 1, "Received: 1 strings for 2 texts"),
        (
            lambda texts: [1],
            ["a"],
            1,
            r"`translate\(texts\)` must be a sequence of strings",
        ),
        (lambda texts: None, ["a"], 1, r"`translate\(texts\)` must be a sequence"),
    ],
)
def test_bad_input_is_refused(translate, texts, runs, message):
    with pytest.raises(ValueError, match=message):
        measure_speed(translate, texts, runs=runs)
