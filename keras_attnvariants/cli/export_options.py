"""What `kav export` writes into a graph, as options."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from typing import Any

import typer


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """Limits of an exported graph, and how it computes."""

    n_best: Annotated[
        int | None,
        typer.Option(
            help="Translations that the signature nbest returns; default: the beam "
            "size.",
            min=1,
            show_default=False,
        ),
    ] = None
    max_batch: Annotated[
        int, typer.Option(help="Sentences in a request; more are refused.", min=1)
    ] = 64
    max_characters: Annotated[
        int,
        typer.Option(
            help="Characters of a text; the rest is cut off and reported.", min=1
        ),
    ] = 4096
    max_tokens: Annotated[
        int | None,
        typer.Option(
            help="Subwords of a text, likewise; default: 256, or the model's limit.",
            min=1,
            show_default=False,
        ),
    ] = None
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Compute in float32, so that a translation does not depend on the "
            "other sentences of its request.",
        ),
    ] = False
    onednn: Annotated[
        bool,
        typer.Option(
            "--onednn",
            help="With int8: multiply 8-bit integers by oneDNN, which is faster, but "
            "needs a server for Linux on x86-64 and a processor with VNNI.",
        ),
    ] = False
    packed: Annotated[
        bool,
        typer.Option(
            "--packed",
            help="Keep the decoder's weights as constants in the graph, which is then "
            "larger: faster on x86 processors, above all for few sentences.",
        ),
    ] = False
    shortlist: Annotated[
        Path | None,
        typer.Option(
            "--shortlist",
            help="File of kav.data.Shortlist: which tokens translations may have, by "
            "those of their source.",
            show_default=False,
        ),
    ] = None
    shortlist_width: Annotated[
        int | None,
        typer.Option(
            help="Tokens that each sentence has of the shortlist; default: one in 16 "
            "of the vocabulary, but at least 500.",
            min=1,
            show_default=False,
        ),
    ] = None

    def load(self) -> dict[str, Any]:
        """The same as arguments of `kav.serving.export`, the shortlist read.

        Raises:
            ValueError, OSError: its file cannot be read, or holds none.
        """
        from keras_attnvariants.data import Shortlist

        path = self.shortlist
        return {**vars(self), "shortlist": path and Shortlist.load(path)}
