"""Draws the page of the comparison on Multi30k again, after a change to pages.

`python docs/comparisons/draw.py` reads multi30k.json.xz beside it. That file was made
from the page as it was first written, so that it has the figures in full, seeds one by
one with two digits, and curves and weights as exactly as the page draws them. Each run
has the mean costs of its system.
"""

import lzma
import tempfile
from pathlib import Path

from keras_attnvariants.experiments import ComparisonResult
from keras_attnvariants.experiments.page import write_page

RESULTS = Path(__file__).with_name("multi30k.json.xz")


def main() -> None:
    """Writes multi30k.html."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        path.write_bytes(lzma.decompress(RESULTS.read_bytes()))
        result = ComparisonResult.read(path)
    write_page(result, RESULTS.with_name("multi30k.html"))


if __name__ == "__main__":
    main()
