"""A corpus in lower-cased Moses tokens, as Wu et al. (2021) preprocess Multi30k.

    python docs/comparisons/lower_cased.py multi30k runs/lower-cased en de

It reads and writes files such as `train.en.gz`.
"""

import argparse
import gzip
from pathlib import Path

from sacremoses import MosesPunctNormalizer
from sacremoses import MosesTokenizer


def main() -> None:
    """Writes the files of both languages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of the corpus")
    parser.add_argument("output", type=Path, help="folder to write to")
    parser.add_argument("languages", nargs="+")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    for language in args.languages:
        normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
        for path in sorted(args.data.glob(f"*.{language}.gz")):
            with (
                gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines,
                gzip.open(args.output / path.name, "wt", encoding="utf-8") as found,
            ):
                for line in lines:
                    text = normalizer.normalize(line.rstrip("\n"))
                    tokens = tokenizer.tokenize(text, escape=False, return_str=True)
                    found.write(tokens.lower() + "\n")


if __name__ == "__main__":
    main()
