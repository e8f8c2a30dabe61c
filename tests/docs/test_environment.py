"""The page on environment variables lists what the package reads."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
USE = re.compile(r"\bos\.(?:environ|getenv)\b")
NAMED = re.compile(
    r"\bos\.(?:environ(?:\.get|\.setdefault|\.pop)?|getenv)[\[(]\s*\"(\w+)\""
)


# Files that set variables for processes, which libraries read there.
SETTING = ("utils/machine.py",)


def test_every_variable_that_the_package_reads_is_listed():
    page = (REPOSITORY / "docs" / "environment.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    read = set()
    for path in (REPOSITORY / "keras_attnvariants").rglob("*.py"):
        if str(path).endswith(SETTING):
            continue
        source = path.read_text("utf-8")
        names = NAMED.findall(source)
        # Only names that are written out can be found.
        assert len(names) == len(USE.findall(source)), path
        read.update(names)
    assert sorted(listed) == sorted(read)
