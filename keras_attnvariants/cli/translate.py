"""`kav translate`: text in, translations out."""

from pathlib import Path
from typing import Annotated

import typer

from keras_attnvariants.cli.checks import check_output_file
from keras_attnvariants.cli.errors import clear_errors
from keras_attnvariants.cli.inputs import Shard
from keras_attnvariants.cli.inputs import Source
from keras_attnvariants.cli.inputs import sentences
from keras_attnvariants.cli.models import NO_TAG
from keras_attnvariants.cli.models import Translate
from keras_attnvariants.cli.models import check_folders
from keras_attnvariants.cli.models import model_digest
from keras_attnvariants.cli.models import served
from keras_attnvariants.cli.models import translators
from keras_attnvariants.cli.options import BeamSize
from keras_attnvariants.cli.options import LengthPenalty
from keras_attnvariants.cli.options import Model
from keras_attnvariants.cli.options import NoRepeatNgram
from keras_attnvariants.cli.options import PrecisionOption
from keras_attnvariants.cli.options import SavedModel
from keras_attnvariants.cli.options import Server
from keras_attnvariants.cli.options import SourceTag
from keras_attnvariants.cli.outputs import LineWriter
from keras_attnvariants.cli.outputs import Settings
from keras_attnvariants.cli.outputs import output_to
from keras_attnvariants.cli.progress import LineProgress
from keras_attnvariants.cli.sampling import Sample
from keras_attnvariants.cli.sampling import Sampling
from keras_attnvariants.cli.sampling import Seed
from keras_attnvariants.cli.sampling import Temperature
from keras_attnvariants.cli.sampling import TopK
from keras_attnvariants.cli.sampling import TopP
from keras_attnvariants.cli.sampling import check_search_options
from keras_attnvariants.cli.texts import LARGEST_CHUNK
from keras_attnvariants.cli.texts import chunks
from keras_attnvariants.utils.files import file_entry

Texts = Annotated[
    list[str] | None,
    typer.Argument(
        help="Sentences; without any, one per line of standard input.",
        show_default=False,
    ),
]
Input = Annotated[
    Path | None,
    typer.Option(
        help="File to read instead, one sentence per line.", show_default=False
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        help="File to write to; default: standard output. It appears when it is "
        "complete; until then, its lines are in a file with .part at the end.",
        show_default=False,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue what was interrupted before --output was complete. Without it, "
        "or if nothing was begun, start from the beginning.",
    ),
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard",
        help="Only a part of --input, such as 3/8 for the third of eight. The outputs "
        "of all parts, one after another, are that of the whole.",
        show_default=False,
    ),
]


def translate(
    texts: Texts = None,
    model: Model = None,
    saved_model: SavedModel = None,
    server: Server = None,
    input: Input = None,
    output: Output = None,
    resume: Resume = False,
    shard: ShardOption = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    no_repeat_ngram: NoRepeatNgram = 0,
    source_tag: SourceTag = None,
    sample: Sample = False,
    temperature: Temperature = 1.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    seed: Seed = 0,
    precision: PrecisionOption = None,
) -> None:
    """Translate sentences: one line in, one line out.

    [bold]Example:[/bold] echo 'Two men play.' | kav translate --model runs/multi30k
    """
    with clear_errors():
        check_system(model, saved_model, server, beam_size, length_penalty)
        if texts and input:
            raise ValueError("Give either sentences or --input.")
        check_folders(model, saved_model, precision)
        drawn = Sampling(temperature, top_k, top_p, seed)
        if source_tag is not None and (saved_model or server):
            raise ValueError(NO_TAG)
        sampling = check_search_options(
            saved_model, server, sample, drawn, no_repeat_ngram
        )
        check_files(input, output, resume, shard)
        part = None if shard is None else Shard.parse(shard)
        options: Settings = {
            "--server": server,
            "--shard": shard,
            "--beam-size": beam_size,
            "--length-penalty": length_penalty,
            "--no-repeat-ngram": no_repeat_ngram,
            "--source-tag": source_tag,
            "--sample": None if sampling is None else repr(sampling),
            "--precision": precision,
        }
        with sentences(texts, input, part) as source:
            if output is not None:
                options |= origin(model, saved_model, input)
            with output_to(output, options, resume) as writer:
                rest = source._replace(texts=writer.rest(source.texts))
                if server is not None:
                    system = served(server)
                else:
                    [system] = translators(
                        model,
                        saved_model,
                        beam_size,
                        length_penalty,
                        precision,
                        no_repeat_ngram,
                        sampling,
                        source_tag,
                    ).values()
                translate_all(system, rest, writer)


def translate_all(system: Translate, source: Source, writer: LineWriter) -> None:
    """Translates text after text, and shows how far it is."""
    largest = 1 if source.first == 1 else LARGEST_CHUNK
    lists = chunks(source.texts, source.first, largest, writer.lines)
    if source.stream is None or writer.file.isatty():
        # The translations themselves show it.
        for texts in lists:
            writer.write(texts, system(texts))
        return
    with LineProgress(source.size) as progress:
        for texts in lists:
            writer.write(texts, system(texts))
            progress.update(writer.lines, source.stream.done)


def check_system(
    model: Path | None,
    saved_model: Path | None,
    server: str | None,
    beam_size: int | None,
    length_penalty: float | None,
) -> None:
    """Raises unless one system is given, with options that it has.

    Raises:
        ValueError: none or several are given, or an option of another.
    """
    if sum(system is not None for system in (model, saved_model, server)) != 1:
        raise ValueError("Give one of --model, --saved-model and --server.")
    if model is None and (beam_size, length_penalty) != (None, None):
        raise ValueError(
            "--beam-size and --length-penalty apply to --model: an exported model has "
            "its own."
        )


def check_files(
    input: Path | None, output: Path | None, resume: bool, shard: str | None
) -> None:
    """Raises before any work if a file cannot be read or written.

    Raises:
        ValueError: the translations would overwrite the sentences, or an option needs
            a file that was not given.
        OSError: a file or its folder is missing, or is no file.
    """
    check_output_file(output)
    if input and output and output.exists() and output.samefile(input):
        raise ValueError(f"--input and --output must differ. Received: {input} twice")
    if resume and (output is None or (output.exists() and not output.is_file())):
        raise ValueError(
            "--resume needs --output with the name of a file: only that can be "
            f"continued. Received: {output or 'no --output'}"
        )
    if shard is not None and (
        input is None or (input.exists() and not input.is_file())
    ):
        raise ValueError(
            "--shard needs --input with the name of a file: where the parts of a pipe "
            f"begin is not known. Received: {input or 'no --input'}"
        )


def origin(
    model: Path | None, saved_model: Path | None, input: Path | None
) -> Settings:
    """What translations come from: digests of the model and of the sentences."""
    folders = {"--model": model, "--saved-model": saved_model}
    found: Settings = {
        f"{option} with sha256": model_digest(folder)
        for option, folder in folders.items()
        if folder is not None
    }
    if input is not None and input.is_file():
        found["--input with sha256"] = file_entry(input)["sha256"]
    return found
