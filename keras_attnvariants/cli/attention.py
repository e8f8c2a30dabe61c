"""`kav attention`: what a model attends to in a sentence, as a picture."""

from pathlib import Path
from typing import Annotated

import typer

from keras_attnvariants.cli.checks import check_matplotlib
from keras_attnvariants.cli.checks import check_output_file
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.models import check_folders
from keras_attnvariants.cli.models import load

Sentence = Annotated[
    str, typer.Argument(help="The sentence to read.", show_default=False)
]
Model = Annotated[
    Path,
    typer.Option(
        "--model", "--run", help="Folder of a run or of a model.", show_default=False
    ),
]
Translation = Annotated[
    str | None,
    typer.Option(
        help="A translation of the sentence; default: that of the model.",
        show_default=False,
    ),
]
Layer = Annotated[
    int | None,
    typer.Option(
        help="Number of the layer, from 1 at the bottom; default: the highest that has "
        "weights.",
        min=1,
        show_default=False,
    ),
]
Output = Annotated[Path, typer.Option(help="The picture, a .png file.")]


@command
def attention(
    sentence: Sentence,
    model: Model,
    translation: Translation = None,
    layer: Layer = None,
    output: Output = Path("attention.png"),
) -> None:
    """Draw the attention weights of one layer, all heads, on a sentence.

    A row of a panel is what one token attends to: of the sentence, of the translation
    so far, and, in cross-attention, the token that is predicted next.

    [bold]Example:[/bold] kav attention 'A man rides a horse.' --model runs/multi30k
    """
    check_matplotlib()
    check_folders(model, None)
    if output.suffix != ".png":
        raise ValueError(f"--output must end in .png. Received: {output}")
    check_output_file(output)
    for text in (sentence, translation):
        if text is not None and not text.strip():
            raise ValueError(f"A sentence must not be empty. Received: {text!r}")
    loaded, tokenizer = load(model)
    import keras_attnvariants as kav
    from keras_attnvariants.evaluation.attention_maps import Reading
    from keras_attnvariants.evaluation.attention_maps import draw_rows

    if translation is None:
        search = kav.models.SearchSettings.of(loaded)
        translator = kav.Translator(
            loaded, tokenizer, search.beam_size, search.length_penalty, xla=False
        )
        [translation] = translator.translate([sentence])
    rows = Reading(loaded, tokenizer, sentence, translation).rows(layer)
    draw_rows(rows, output)
    typer.echo(f"{translation}\n{output}")
