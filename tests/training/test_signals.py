"""The first signal is a request, the second acts."""

import os
import signal
import threading

import pytest

from keras_attnvariants.training.signals import StopRequest


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_first_signal_is_noted(number, code):
    before = signal.getsignal(number)
    with StopRequest() as request:
        assert request.number is None
        os.kill(os.getpid(), number)
        assert request.number == number
        assert request.exit_code == code
    assert signal.getsignal(number) == before


@pytest.fixture
def interruptible():
    """As in a terminal: a shell lets the processes it puts aside ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_second_interrupt_acts_at_once(interruptible):
    with pytest.raises(KeyboardInterrupt), StopRequest():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


def test_outside_the_main_thread_nothing_is_caught():
    before = signal.getsignal(signal.SIGTERM)
    during = []

    def work():
        with StopRequest():
            during.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert during == [before]
