"""Prints which conformance tests catch which broken layer."""

from tests.attention import checks

if __name__ == "__main__":
    checks.print_table()
