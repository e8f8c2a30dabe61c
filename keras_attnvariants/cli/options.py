"""Options that several commands have."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.checks import checked
from keras_attnvariants.utils.checks import check_finite

if TYPE_CHECKING:
    from keras_attnvariants.data import Corpus


class Precision(StrEnum):
    """What a trained model computes in."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"


MaxInvalid = Annotated[
    float,
    typer.Option(
        help="Largest share of the lines of a file that may be invalid UTF-8.",
        min=0,
        max=1,
    ),
]
Split = Annotated[str, typer.Option(help="Which part of the corpus.")]
_MODEL = typer.Option(
    "--model",
    "--run",
    help="Folder of a run, of which the better model is taken (best validation "
    "or averaged weights), or a model folder.",
    show_default=False,
)
Model = Annotated[Path | None, _MODEL]
RequiredModel = Annotated[Path, _MODEL]
SourceTag = Annotated[
    str | None,
    typer.Option(
        help="Word in front of each source, with which --model was trained.",
        show_default=False,
    ),
]
SavedModel = Annotated[
    Path | None,
    typer.Option(
        help="Folder that `kav export` wrote. Its beam size is fixed.",
        show_default=False,
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        help="Model on TensorFlow Serving, such as localhost:8500/en-de, with "
        "/versions/2 or /labels/stable if it shall not be the newest. An address "
        "that begins with http:// is one of REST.",
        show_default=False,
    ),
]
# A thousand is what studies of very wide beams use; memory grows with the width.
BeamSize = Annotated[
    int | None,
    typer.Option(
        help="Hypotheses kept per sentence, at most 1000; default: as in the preset.",
        min=1,
        max=1000,
        show_default=False,
    ),
]
NoRepeatNgram = Annotated[
    int,
    typer.Option(
        help="No so many tokens in a row twice in a translation; 0: no limit.", min=0
    ),
]
PrecisionOption = Annotated[
    Precision | None,
    typer.Option(
        "--precision",
        help="What the model computes in; default: as in training.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The beam search, where it is not that of the preset."""

    beam_size: BeamSize = None
    length_penalty: Annotated[
        float | None,
        typer.Option(
            help="Exponent of the length normalisation; default: as in the preset.",
            callback=checked(check_finite),
            show_default=False,
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """What was given, by the names of the arguments of searches."""
        return given(beam_size=self.beam_size, length_penalty=self.length_penalty)


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """Which corpus, and what it is read as."""

    data: Annotated[
        str,
        typer.Option(
            help="A folder with train.en, train.de, validation.en, … (also .gz), a TSV "
            "file with two columns, or a name that `kav corpora` lists.",
            show_default=False,
        ),
    ]
    source: Annotated[
        str, typer.Option(help="Language to translate from.", show_default=False)
    ]
    target: Annotated[
        str, typer.Option(help="Language to translate into.", show_default=False)
    ]
    max_invalid: MaxInvalid = 0.01

    def load(self) -> "Corpus":
        """The corpus.

        Raises:
            ValueError, OSError: there is none, or it cannot be read.
        """
        from keras_attnvariants.data import load_corpus

        return load_corpus(
            self.data, self.source, self.target, max_invalid=self.max_invalid
        )


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}
