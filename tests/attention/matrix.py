"""Prints the conformance matrix: tests passed, by variant, role, dtype and mode.

A list of what does not apply to a variant, and why, follows the matrix.
"""

from collections import Counter

import keras

from keras_attnvariants import attention

PROPERTY = "conformance"
COLUMNS = [
    (dtype, mode)
    for dtype in ("float32", "mixed_bfloat16", "mixed_float16")
    for mode in ("eager", "xla")
]
outcomes: dict[tuple[str, str, str, str], Counter] = {}
skipped: Counter[tuple[str, str, str]] = Counter()


def pytest_collection_modifyitems(items):
    """Notes on every test of a case the cell of the matrix that it belongs to."""
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        case = parameters.get("case")
        if case is not None and hasattr(case, "variant"):
            mode = parameters.get("mode", "eager")
            cell = (case.variant, case.role, case.dtype, mode)
            item.user_properties.append((PROPERTY, cell))


def pytest_runtest_logreport(report):
    """Counts the outcome of a test in its cell."""
    cell = dict(report.user_properties).get(PROPERTY)
    if cell is not None and (report.when == "call" or report.failed):
        outcomes.setdefault(tuple(cell), Counter())[report.outcome] += 1
    if cell is not None and report.skipped:
        reason = report.longrepr[-1].removeprefix("Skipped: ")
        skipped[cell[0], cell[1], reason] += 1


def pytest_terminal_summary(terminalreporter):
    """The table, one row per variant and role; `passed/run` in each cell."""
    if not outcomes:
        return
    backend = keras.config.backend()
    terminalreporter.section(f"attention conformance on {backend} (passed/run)")
    titles = [f"{dtype.removeprefix('mixed_')} {mode}" for dtype, mode in COLUMNS]
    rows = [["variant", "role", *titles]]
    for name, role in sorted({cell[:2] for cell in outcomes}):
        cells = [outcomes.get((name, role, *column)) for column in COLUMNS]
        rows.append([name, role, *map(summary, cells)])
    write_rows(terminalreporter, rows)
    terminalreporter.section("what does not apply, and why (tests)", sep="-")
    write_rows(terminalreporter, [*missing_roles(), *skipped_tests()])


def missing_roles():
    """The roles that a variant does not take, with the reason."""
    for name in sorted({cell[0] for cell in outcomes}):
        roles = attention.get(name).roles
        reason = f"its equation makes sense as {' or '.join(sorted(roles))}"
        for role in attention.registry.ROLES:
            if role not in roles:
                yield [name, role, reason, "all"]


def skipped_tests():
    """Reasons given by single tests, with their counts."""
    for (name, role, reason), count in sorted(skipped.items()):
        yield [name, role, reason, str(count)]


def write_rows(terminalreporter, rows):
    """Rows of text, in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        terminalreporter.write_line("  ".join(padded))


def summary(counts):
    """`passed/run`, marked where something failed."""
    if not counts:
        return "-"
    run = counts["passed"] + counts["failed"]
    mark = " FAILED" if counts["failed"] else ""
    return f"{counts['passed']}/{run}{mark}"
