"""Which of several functions is fastest on this machine."""

import math
import time
from collections.abc import Callable
from collections.abc import Mapping


def shortest_seconds(
    functions: Mapping[str, Callable[[], object]], rounds: int = 30
) -> dict[str, float]:
    """The shortest time of each function, in seconds, after a first call of each.

    They take turns, many times, so that other work on the machine does not slow down
    only one of them.

    Args:
        functions: functions by name. Each has to wait for what it computes.
        rounds: how often each is timed.
    """
    for function in functions.values():
        function()
    seconds = dict.fromkeys(functions, math.inf)
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds
