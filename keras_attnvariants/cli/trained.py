"""`kav models`: the trained models that the package contains, and uploads."""

import tempfile
from pathlib import Path

import typer

from keras_attnvariants.cli.catalogue import columns
from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.options import MODEL_HELP
from keras_attnvariants.trained.names import MODELS
from keras_attnvariants.trained.names import find_model
from keras_attnvariants.trained.names import model_names


@command
def models() -> None:
    """List the trained models that can be used by name, without a network.

    BLEU is that of the test set in the card of the model. A name stands wherever a
    command takes a model.

    [bold]Example:[/bold] kav translate --model kav/hc-sa/tatoeba-en-de 'Good morning.'
    """
    from rich.console import Console

    from keras_attnvariants.trained.cards import card_of

    table = columns("name", "languages", "params", "MB", "BLEU", "licence")
    for name in model_names():
        card = card_of(MODELS / name)
        languages, millions = f"{card.source}-{card.target}", card.parameters / 1e6
        size, bleu = f"{card.bytes / 1e6:.1f}", f"{card.bleu:.1f}"
        table.add_row(name, languages, f"{millions:.2f}M", size, bleu, card.license)
    Console(highlight=False).print(table)


@command
def push(
    model: str = argument(MODEL_HELP),
    address: str = argument(
        "Where to: hf://user/name, or kaggle://owner/model/keras/variation. A model "
        "that is there gets a new version."
    ),
) -> None:
    """Upload a model with its card, which `kav models pack` wrote.

    The library of the hub asks for your token, or finds it where it keeps it.

    [bold]Example:[/bold] kav models push runs/packed hf://me/base-en-de
    """
    from keras_attnvariants.trained import hubs
    from keras_attnvariants.trained.cards import card_of
    from keras_attnvariants.trained.cards import write_with_card

    folder = find_model(model, "MODEL")
    card = card_of(folder)
    with tempfile.TemporaryDirectory() as place:
        # The page is that of the figures in the card, whatever stands beside it.
        write_with_card(folder, card, Path(place) / "model")
        typer.echo(hubs.upload(Path(place) / "model", address))
