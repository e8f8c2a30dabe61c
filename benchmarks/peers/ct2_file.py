"""Translates a file by CTranslate2: `python ct2_file.py FOLDER FILE BEAMS`."""

import sys
from pathlib import Path

import ctranslate2
import sentencepiece

BATCH = 32


def main(folder: str, file: str, beams: str) -> None:
    """Prints one translation for each line."""
    # The models of the package read and write with one tokenizer.
    tokenizer = sentencepiece.SentencePieceProcessor(f"{folder}/tokenizer.model")
    translator = ctranslate2.Translator(folder, compute_type="int8", intra_threads=1)
    lines = Path(file).read_text("utf-8").splitlines()
    found = translator.translate_batch(
        tokenizer.encode(lines, out_type=str),
        beam_size=int(beams),
        max_batch_size=BATCH,
    )
    print("\n".join(tokenizer.decode([each.hypotheses[0] for each in found])))


if __name__ == "__main__":
    main(*sys.argv[1:])
