"""Workers whose chief is started again."""

import contextlib
import threading

import pytest

from keras_attnvariants.tuning import TrialRecord
from keras_attnvariants.tuning.chief import free_address
from keras_attnvariants.tuning.chief import serving
from keras_attnvariants.tuning.workers import WorkerTuner
from tests.tuning.test_oracles import make

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Points:
    """Stands for the training of trials: its scores are the points."""

    def __init__(self, *after):
        self.after = iter(after)

    def __call__(self, folder, values):
        next(self.after, lambda: None)()
        costs = {"tokens_per_second": 1.0, "memory_mib": 1.0, "minutes": 1.0}
        score = float(values["n"])
        return TrialRecord(folder.name, {}, (score,), 1, 1, **costs, best_seed=1)


def test_a_worker_goes_on_while_its_chief_is_started_again(tmp_path, capsys):
    """The chief ends in the first trial, and is back a little later."""
    address = free_address()
    again = make(tmp_path, trials=2)
    with contextlib.ExitStack() as second, contextlib.ExitStack() as first:
        first.enter_context(serving(make(tmp_path, trials=2), address))

        def restart():
            again.reload()
            second.enter_context(serving(again, address))

        def kill():
            first.close()
            threading.Timer(1.5, restart).start()

        folder = tmp_path / "search"
        WorkerTuner(make(tmp_path), Points(kill), folder, address, "a").search()
    ended = [(t.status, t.score) for t in again.trials.values()]
    points = [t.hyperparameters.values["n"] for t in again.trials.values()]
    assert ended == [("COMPLETED", point) for point in points] and len(points) == 2
    printed = capsys.readouterr().out
    assert f"The chief at {address} does not answer: waiting for it.\n" in printed
    assert again.has_ended
