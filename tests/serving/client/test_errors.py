"""Failures by name, in one line."""

import pytest

from keras_attnvariants.serving.client import errors


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
    error = errors.error_of_code("here:1", code, "first\n\tsecond  line")
    assert type(error) is kind
    assert str(error) == f"here:1: first second line ({code})"


def test_a_message_that_is_too_large_has_a_name_of_its_own():
    details = "CLIENT: Received message larger than max (9 vs. 4)"
    error = errors.error_of_code("here:1", "RESOURCE_EXHAUSTED", details)
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
    error = errors.error_of_status("http://here", status, "no")
    assert type(error) is kind
    assert str(error) == f"http://here: no (HTTP {status})"


def test_what_servers_say_is_cut():
    assert len(errors.one_line("x" * 10_000)) == 401
