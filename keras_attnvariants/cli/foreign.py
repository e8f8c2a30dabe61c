"""`kav import`: models of other toolkits."""

import shlex
from pathlib import Path
from typing import Literal

import typer

from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.utils.files import read_file
from keras_attnvariants.utils.folders import check_new
from keras_attnvariants.utils.importing import import_tensorflow

# Files that state the origin and the licence of a model.
DOCUMENTS = ("README.md", "LICENSE")


@command
def import_(
    *,
    form: Literal["hf", "marian"] = argument(
        "hf: MarianMT as Hugging Face has it, such as a model of OPUS-MT. marian: a "
        "model that Marian trained.",
        metavar="FORM",
        show_choices=False,
    ),
    folder: Path = argument("Folder of the model, as it was published or trained."),
    output: Path = option("Folder to write; it must not exist.", ...),
    weights: Path | None = option(
        "With marian: file of weights; default: the only .npz in the folder."
    ),
    vocabulary: list[Path] | None = option(
        "With marian: vocabulary, .yml or .spm; given twice: that of sources, that of "
        "targets. Default: the only *vocab*.yml in the folder, else the only .spm."
    ),
    subwords: list[Path] | None = option(
        "With marian and .yml: SentencePiece model, likewise once or twice. Default: "
        "source.spm and target.spm in the folder."
    ),
) -> None:
    """Import a model of Marian, or MarianMT of Hugging Face.

    The folder that is written is a model like any other here: it can be exported for
    servers, scored, and trained further. README.md and LICENSE are copied with it.

    [bold]Example:[/bold] kav import hf opus-mt-en-de --output models/en-de
    """
    check_output_folder("--output", output)
    check_new(output, "--output")
    if not folder.is_dir():
        raise FileNotFoundError(f"FOLDER must be a folder. Received: {folder}")
    if form == "hf" and (weights or vocabulary or subwords):
        raise ValueError(
            "--weights, --vocabulary and --subwords are for marian: files of Hugging "
            "Face have fixed names. Received: hf"
        )
    import_tensorflow()
    from keras_attnvariants import foreign
    from keras_attnvariants.data import save_model

    if form == "hf":
        read = foreign.read_huggingface(folder)
    else:
        read = foreign.read_marian(folder, weights, vocabulary or (), subwords or ())
    model, tokenizer = foreign.converted(read)
    found = {name: (folder / name).resolve() for name in DOCUMENTS}
    documents = {
        name: read_file(path) for name, path in found.items() if path.is_file()
    }
    save_model(model, output, tokenizer, extra_files=documents)
    typer.echo(
        f"{output}: {model.count_params():,} parameters, "
        f"{tokenizer.target.vocabulary_size:,} subwords"
    )
    place = shlex.quote(str(output))
    typer.echo(f"Next: kav export --model {place} --output saved_models/NAME")
