"""Functions take turns, and the shortest time of each counts."""

import itertools

from keras_attnvariants.utils import timing
from keras_attnvariants.utils.timing import shortest_seconds


def test_functions_take_turns_after_a_first_call(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(ticks))
    calls = []

    def slow_at_times():
        calls.append("slow")
        for _ in range(5 * (len(calls) < 4)):
            next(ticks)

    found = shortest_seconds(
        {"slow": slow_at_times, "fast": lambda: calls.append("fast")}, rounds=2
    )
    assert calls == ["slow", "fast"] * 3
    assert found == {"slow": 1, "fast": 1}
