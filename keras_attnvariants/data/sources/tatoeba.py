"""Tatoeba: short sentences translated by volunteers, as OPUS collects them."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from keras_attnvariants.data.files import held_out_split
from keras_attnvariants.data.registry import register_corpus
from keras_attnvariants.data.sources.archives import member_lines
from keras_attnvariants.data.sources.download import download

_ORIGIN = "https://object.pouta.csc.fi/OPUS-Tatoeba/v2023-04-12/moses"


@register_corpus(
    "tatoeba",
    languages=("cs", "de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "tr"),
    origin=_ORIGIN,
    megabytes=20,
    digests=("first use",),
    licence="CC BY 2.0 FR",
)
def write_tatoeba(into: Path, languages: tuple[str, str], downloads: Path) -> None:
    """Writes 94 % for training, and 3 % each for validation and test.

    All translations of a sentence of the first language fall in one split.
    """
    pair = "-".join(languages)
    with tempfile.TemporaryDirectory(dir=into) as folder, ExitStack() as stack:
        archive = download(
            f"{_ORIGIN}/{pair}.txt.zip", Path(folder), downloads, name=f"{pair}.txt.zip"
        )
        files = {
            (split, language): stack.enter_context(
                open(into / f"{split}.{language}", "w", encoding="utf-8", newline="\n")
            )
            for split in ("train", "validation", "test")
            for language in languages
        }
        sides = (member_lines(archive, f"Tatoeba.{pair}.{la}") for la in languages)
        for texts in zip(*sides, strict=True):
            split = held_out_split(texts[0])
            for language, text in zip(languages, texts, strict=True):
                files[split, language].write(text + "\n")
