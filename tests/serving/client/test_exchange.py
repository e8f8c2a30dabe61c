"""Pauses between attempts at a request, and failures by name, in one line."""

import pytest

from keras_attnvariants.serving.client import exchange as errors


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("INVALID_ARGUMENT", errors.InvalidRequestError),
        ("NOT_FOUND", errors.ModelNotFoundError),
        ("UNAVAILABLE", errors.ServerUnavailableError),
        ("DEADLINE_EXCEEDED", errors.DeadlineError),
        ("RESOURCE_EXHAUSTED", errors.ServerBusyError),
        ("UNAUTHENTICATED", errors.AccessError),
        ("INTERNAL", errors.ServingError),
    ],
)
def test_a_status_of_grpc_has_its_exception(code, kind):
    error = errors.error_of("here:1", code, "first\n\tsecond  line")
    assert type(error) is kind
    assert str(error) == f"here:1: first second line ({code})"


def test_a_message_that_is_too_large_has_a_name_of_its_own():
    details = "CLIENT: Received message larger than max (9 vs. 4)"
    error = errors.error_of("here:1", "RESOURCE_EXHAUSTED", details)
    assert type(error) is errors.MessageTooLargeError


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.InvalidRequestError),
        (404, errors.ModelNotFoundError),
        (413, errors.MessageTooLargeError),
        (503, errors.ServerUnavailableError),
        (504, errors.DeadlineError),
        (500, errors.ServingError),
    ],
)
def test_a_status_of_http_has_its_exception(status, kind):
    error = errors.error_of("http://here", status, "no")
    assert type(error) is kind
    assert str(error) == f"http://here: no (HTTP {status})"


def test_messages_of_servers_are_cut_and_cannot_control_a_terminal():
    assert len(errors.one_line("x" * 10_000)) == 401
    text = "\x1b[31ma\x07\u202e b\r\nc\u2028d\x9b2J\0e"
    assert errors.one_line(text) == "[31ma b c d2Je"


GONE = errors.ServerUnavailableError("x: gone")


def test_pauses_double_up_to_the_longest_and_vary():
    for failed, longest in enumerate([0.25, 0.5, 1, 2, 4, 4], start=1):
        pauses = [errors.pause_after(GONE, failed, 60, left=60) for _ in range(50)]
        assert longest / 2 <= min(pauses) < max(pauses) <= longest


def test_no_pause_outlasts_the_deadline():
    with pytest.raises(errors.DeadlineError, match="gone; tried 1 times in 0.1 sec"):
        errors.pause_after(GONE, 1, 0.1, left=0.1)
