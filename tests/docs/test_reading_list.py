"""The ten files that docs/README.md names to a newcomer exist and are short."""

import re

from tests.docs import pages


def test_ten_files_of_at_most_2000_lines_in_all():
    page = pages.DOCS / "README.md"
    _, _, rest = page.read_text("utf-8").partition("## Ten files to begin with\n")
    section, _, _ = rest.partition("\n## ")
    paths = re.findall(r"\]\((\.\./keras_attnvariants/[\w/]+\.py)\)", section)
    assert len(paths) == len(set(paths)) == 10
    lines = [(page.parent / path).read_text("utf-8").count("\n") for path in paths]
    assert sum(lines) <= 2000
