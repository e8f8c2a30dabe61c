"""Processes wait for each other, and say which of them did not come."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from keras_attnvariants.backend.meeting import meet


def address():
    with socket.create_server(("", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def errors(numbers, processes, wait, expected=None):
    """What each call raised; `None` for those that returned."""
    place = address()

    def call(index):
        try:
            meet(place, numbers[index], (expected or {}).get(index, processes), wait)
        except (OSError, ValueError) as error:
            return f"{type(error).__name__}: {error}"

    with ThreadPoolExecutor(len(numbers)) as pool:
        return list(pool.map(call, range(len(numbers))))


def test_all_come_in_any_order():
    assert errors([2, 1, 0], 3, wait=20) == [None, None, None]


def test_process_0_names_those_that_did_not_come():
    first, second = errors([0, 2], 4, wait=1)
    assert "TimeoutError: process 1, 3 of 4 did not come to 127.0.0.1" in first
    assert "TimeoutError: process 2 did not meet all others" in second


def test_process_0_names_those_that_did_not_stay():
    place = address()
    with ThreadPoolExecutor(2) as pool:
        host = pool.submit(meet, place, 0, 3, 3)
        guests = [pool.submit(meet, place, 1, 3, 1), pool.submit(meet, place, 2, 3, 6)]
        with pytest.raises(TimeoutError, match="process 1 of 3 did not stay at 127"):
            host.result()
        assert all(guest.exception() for guest in guests)


def test_a_process_without_process_0_gives_up():
    [error] = errors([1], 2, wait=0.5)
    assert "did not meet all others at process 0, 127.0.0.1" in error


def test_two_processes_with_one_number_are_refused():
    found = errors([0, 1, 1], 3, wait=20)
    assert all("two processes have the number 1" in error for error in found)


def test_a_process_may_be_started_again_during_the_wait():
    place = address()
    host, port = place.split(":")
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(meet, place, 0, 3, 20)]
        while True:
            try:
                gone = socket.create_connection((host, int(port)))
                break
            except OSError:
                time.sleep(0.01)
        gone.sendall(b"1 3\n")
        gone.close()
        calls += [pool.submit(meet, place, number, 3, 20) for number in (1, 2)]
        assert [call.result() for call in calls] == [None] * 3


def test_other_expectations_are_refused():
    found = errors([0, 1], 2, wait=20, expected={1: 3})
    assert all("process 1 expects 3 processes, not 2" in error for error in found)


def test_a_port_that_is_taken():
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as (
        server
    ):
        port = server.getsockname()[1]
        with pytest.raises(OSError, match="cannot listen .* choose another port"):
            meet(f"127.0.0.1:{port}", 0, 2, 1)


def test_strangers_do_not_count():
    place = address()
    host, port = place.split(":")

    def stranger():
        while True:
            try:
                with socket.create_connection((host, int(port))) as connection:
                    connection.sendall(b"GET / HTTP/1.0")
                    return
            except OSError:
                pass

    thread = threading.Thread(target=stranger)
    thread.start()
    with pytest.raises(TimeoutError, match="process 1 of 2"):
        meet(place, 0, 2, 1)
    thread.join()
