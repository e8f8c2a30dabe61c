"""What became of each sentence of a request.

A server merges the requests of many clients. So a sentence that cannot be translated
must not fail the others: it has an empty translation and a status of its own.
"""

from enum import IntEnum


class Status(IntEnum):
    """Codes of the output `status`; what each means is in `STATUS_DOCS`."""

    OK = 0
    WRONG_LENGTH = 1
    UNKNOWN_ID = 2
    PADDING_INSIDE = 3
    NOTHING_FOUND = 4
    WRONG_OPTION = 5


STATUS_DOCS = {
    Status.OK: "translated; an empty text has an empty translation",
    Status.WRONG_LENGTH: "its entry of `lengths` is negative or above the width of "
    "`source_ids`",
    Status.UNKNOWN_ID: "an id within its length is not in the vocabulary",
    Status.PADDING_INSIDE: "an id within its length is that of padding",
    Status.NOTHING_FOUND: "the search found no translation",
    Status.WRONG_OPTION: "an option is out of range, or excludes another",
}
