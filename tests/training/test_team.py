"""What processes tell each other, on a board in memory; threads stand for processes."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from keras_attnvariants.training import team as module
from keras_attnvariants.training.team import DifferentProcessesError
from keras_attnvariants.training.team import ProcessLostError
from keras_attnvariants.training.team import Team


class Board:
    """Texts by name, for threads."""

    def __init__(self):
        self.texts = {}
        self.is_closed = False

    def _check(self):
        if self.is_closed:
            raise RuntimeError("UNAVAILABLE")

    def put(self, name, text):
        self._check()
        self.texts[name] = text

    def get(self, name, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._check()
            if name in self.texts:
                return self.texts[name]
            time.sleep(0.001)
        return None

    def under(self, folder):
        self._check()
        start = f"{folder}/"
        texts = dict(self.texts)
        return {
            k.removeprefix(start): v for k, v in texts.items() if k.startswith(start)
        }


@pytest.fixture
def board(monkeypatch):
    board = Board()
    monkeypatch.setattr(module, "Board", lambda: board)
    times = {"BEAT": 0.01, "SILENCE": 1.0, "GRACE": 0.5, "PATIENCE": 0.2}
    for name, seconds in times.items():
        monkeypatch.setattr(module, name, seconds)
    monkeypatch.setattr(module.atexit, "register", lambda function: None)
    monkeypatch.setattr(module, "tell_abort", lambda line: None)
    # It would end the tests where a thread is late.
    monkeypatch.setattr(module, "end_at_once", lambda: None)
    return board


def all_do(count, action):
    """What the action returns, or raises, in each process of a team."""
    teams = [Team(number, count) for number in range(count)]

    def call(team):
        try:
            return action(team)
        except Exception as error:
            return error
        finally:
            team._noticed.set()
            team._left.set()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, teams))


def test_a_single_process_agrees_with_itself():
    team = Team()
    assert team.writes and team.agreed(3) == 3
    assert team.shared_state(None) is None and team.shared_arrays([]) == []
    team.check_same({"a": 1})
    team.finish()
    team.fail(ValueError())


def test_all_take_what_process_0_says(board):
    def action(team):
        mine = {"is": team.process}
        found = [team.agreed(mine), team.agreed(None), team.agreed([team.process, 2])]
        team.finish()
        return found

    assert all_do(3, action) == [[{"is": 0}, None, [0, 2]]] * 3


def test_the_first_announcement_stays(board):
    def action(team):
        if team.writes:
            team.announce("stop", [5, None])
            team.announce("stop", [6, 15])
        team.finish()
        return team.announced("stop")

    assert all_do(2, action) == [[5, None]] * 2


def test_differences_are_named_in_all_processes(board):
    def action(team):
        value = 2000 if team.process == 2 else 1000
        rate = {"class_name": "X", "config": {"dropout": 0.1}}
        team.check_same({"model": rate, "training": {"data": {"batch_tokens": value}}})

    for error in all_do(3, action):
        assert isinstance(error, DifferentProcessesError)
        assert str(error) == (
            "process 2 has other settings or data than process 0: give all of them the "
            "same. Received: `batch_tokens` 2000 instead of 1000"
        )
        assert "--batch-tokens 2000" in error.message(
            {"batch_tokens": "--batch-tokens"}
        )


def test_who_waits_for_one_that_has_failed_is_told_why(board):
    def action(team):
        if team.writes:
            team.fail(ValueError("no space"))
            return None
        return team.agreed()

    _, error = all_do(2, action)
    assert isinstance(error, ProcessLostError)
    assert str(error).startswith("process 0 has ended (ValueError: no space): start")


def test_who_ends_because_of_another_one_is_not_blamed(board):
    board.put("ended/1", "ValueError: no space")
    follower = Team(2, 3)
    with pytest.raises(ProcessLostError) as caught:
        follower.agreed()
    follower.fail(caught.value)
    third = Team(0, 3)
    third._noticed.set()
    third._watcher.join()
    assert third._lost == str(caught.value)
    assert third._lost.startswith("process 1 has ended (ValueError: no space): start")


def test_who_waits_for_one_that_is_silent_ends(board):
    def action(team):
        if team.writes:
            team._left.set()
            return None
        return team.agreed()

    _, error = all_do(2, action)
    assert str(error).startswith("process 0 has ended or hangs: start all processes")


def test_without_process_0_there_is_no_board(board):
    def action(team):
        if team.writes:
            time.sleep(0.1)
            board.is_closed = True
            return None
        threading.Event().wait(0.3)
        try:
            team.fail(ValueError("Gloo all-reduce failed"))
        except ProcessLostError as error:
            return error

    _, error = all_do(2, action)
    assert str(error).startswith("process 0 cannot be reached any more: start")


def test_a_process_that_cannot_notice_is_ended(board, monkeypatch, capsys):
    """Its main thread waits for the other process within a computation."""
    ended = threading.Event()
    monkeypatch.setattr(module, "end_at_once", ended.set)

    def action(team):
        if team.writes:
            team.fail(ValueError("no space"))
        return team.process == 0 or ended.wait(5)

    assert all_do(2, action) == [True, True]
    assert (
        "Error: process 0 has ended (ValueError: no space)" in capsys.readouterr().err
    )
