r"""Lines of text: the same everywhere that text is read or written.

Only `\n`, with or without `\r` before it, ends a line. Other line ends of Unicode and
Python (vertical tab, form feed, U+0085, U+2028 and others) belong to sentences, so that
line `i` of a file is line `i` for every other tool, too.
"""

import codecs
import re
from collections.abc import Iterator
from io import BufferedIOBase
from typing import IO

# Longer than any sentence. Memory holds one line.
LONGEST_LINE = 1 << 20


def byte_lines(
    stream: IO[bytes] | BufferedIOBase, longest: int = LONGEST_LINE
) -> Iterator[bytes]:
    """The lines of a binary stream, one by one, without their ends.

    A byte order mark of UTF-8 at the start is dropped. Nothing is read ahead of a line.

    Args:
        stream: the bytes, such as a binary file or a pipe.
        longest: most bytes in a line.

    Raises:
        ValueError: a line is longer; it is not read to its end.
    """
    number = 0
    while line := stream.readline(longest + len(b"\r\n")):
        number += 1
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        if len(text) > longest:
            raise ValueError(
                f"Line {number} is longer than {longest:,} bytes: a text has one "
                f"sentence per line. Received: {getattr(stream, 'name', stream)}"
            )
        yield text.removeprefix(codecs.BOM_UTF8) if number == 1 else text


def text_lines(stream: IO[bytes] | BufferedIOBase) -> Iterator[str]:
    """The lines of a UTF-8 stream; bytes that are not UTF-8 become U+FFFD."""
    for line in byte_lines(stream):
        yield line.decode("utf-8", "replace")


def split_lines(text: str) -> list[str]:
    """The lines of a text that is in memory, without their ends."""
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]


# Control characters of ASCII and Latin-1, with which a text could control a terminal.
CONTROLS = dict.fromkeys([*range(32), *range(127, 160)])


def without_controls(text: str) -> str:
    """The text without control characters, tabs and line breaks among them."""
    return text.translate(CONTROLS)


# Lone halves of surrogate pairs, which UTF-8 cannot represent.
_SURROGATE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """The text with U+FFFD for lone surrogates."""
    return _SURROGATE.sub("\ufffd", text)


def on_one_line(text: str) -> str:
    """The text with spaces for all characters that any program takes for a line end."""
    return " ".join(text.splitlines())
