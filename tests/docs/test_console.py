"""The commands in the pages: their options exist, and required ones are given.

They are parsed, not run; of `make`, only `make -n` runs.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from keras_attnvariants.cli import app
from tests.benchmarks.conftest import benchmark  # noqa: F401
from tests.docs import pages

REST = "…"
OPERATORS = {"|", "||", "&&", ";", "&"}
REDIRECTIONS = {"<", ">", ">>"}


def lines_of(text: str) -> list[str]:
    """The command lines of a block; those that end with a backslash are continued."""
    joined = text.replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in joined if line.startswith("$ ")]


def calls_in(line: str) -> Iterator[list[str]]:
    """The words of each program that a command line starts."""
    words: list[str] = []
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    for word in lexer:
        if word in OPERATORS:
            yield words
            words = []
        elif word in REDIRECTIONS:
            next(lexer)
        elif words or not re.fullmatch(r"\w+=.*", word):
            words.append(word)
    yield words


def check(command: Any, words: list[str], name: str) -> None:
    """Parses the words of a call as its program would; raises if they are wrong."""
    if words == ["--help"]:
        return
    if hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    if REST in words:
        words = [word for word in words if word != REST]
        required = [p.opts[0] for p in command.params if p.required]
        words += [
            x for option in required if option not in words for x in (option, "1")
        ]
    command.make_context(name, words)


def calls() -> list[Any]:
    """Every call of a program of this repository in a page."""
    found = []
    for page in pages.PAGES:
        for block in pages.blocks(page, "console"):
            for line in lines_of(block.text):
                for words in calls_in(line):
                    if words[:1] in (["kav"], ["make"]) or (
                        words[:1] == ["python"] and words[1].startswith("benchmarks/")
                    ):
                        name = f"{page.stem}: {' '.join(words)}"
                        found.append(pytest.param(words, id=name))
    return found


@pytest.mark.parametrize("words", calls())
def test_a_call_fits_its_program(words, benchmark):  # noqa: F811
    program, *rest = words
    if program == "kav":
        check(get_command(app), rest, "kav")
    elif program == "make":
        call = ["make", "-n", *rest]
        subprocess.run(call, cwd=pages.REPOSITORY, check=True, capture_output=True)
    else:
        name = rest[0].removeprefix("benchmarks/").removesuffix(".py")
        check(get_command(benchmark(name).app), rest[1:], name)


def test_the_pages_have_calls():
    programs = [call.values[0][0] for call in calls()]
    assert programs.count("kav") > 40 and {"make", "python"} < set(programs)


@pytest.mark.parametrize(
    "line",
    [
        "kav evaluate --model runs/first --source de",
        "kav translate --modell runs/first 'A sentence.'",
        "kav trane --data d",
        "kav train … --coordinates host:1",
        "kav train --data d --source de --target en --run r --minutes 0",
    ],
)
def test_a_wrong_call_is_found(line):
    [[_, *words]] = calls_in(line)
    with pytest.raises(Exception, match="(?i)option|parameter|trane|greater than"):
        check(get_command(app), words, "kav")


def test_words_of_a_line():
    line = "A=1 zcat x.gz | kav translate --model 'a b' < in > out   # as a stream"
    found = [["zcat", "x.gz"], ["kav", "translate", "--model", "a b"]]
    assert list(calls_in(line)) == found
    assert lines_of("$ kav a \\\n    --b\nprinted\n$ kav c\n") == [
        "kav a      --b",
        "kav c",
    ]
