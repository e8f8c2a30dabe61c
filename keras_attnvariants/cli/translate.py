"""`kav translate` and `kav transcribe`: turn texts or recordings into texts."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import flag
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import model_digest
from keras_attnvariants.cli.models import model_folder
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import SearchOptions
from keras_attnvariants.cli.options import check_output_file
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.cli.outputs import LineWriter
from keras_attnvariants.cli.outputs import Settings
from keras_attnvariants.cli.outputs import output_to
from keras_attnvariants.cli.systems import DecodingOptions
from keras_attnvariants.cli.systems import SystemOptions
from keras_attnvariants.cli.systems import Translate
from keras_attnvariants.cli.texts import LineProgress
from keras_attnvariants.cli.texts import Source
from keras_attnvariants.cli.texts import chunks
from keras_attnvariants.cli.texts import sentences
from keras_attnvariants.utils.files import is_stream


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Files to read and to write, instead of standard input and output.

    Raises:
        ValueError: the translations would overwrite the sentences, or an option
            needs a file that was not given.
        OSError: a file or its folder is missing, or is not a file.
    """

    input: Path | None = option("File to read instead, one sentence per line.")
    output: Path | None = option(
        "File to write to; default: standard output. It appears when it is complete; "
        "until then, its lines are in a file with .part at the end."
    )
    resume: bool = option(
        "Continue what was interrupted before --output was complete. Without it, or if "
        "nothing was begun, start from the beginning.",
        False,
    )

    def __post_init__(self) -> None:
        check_output_file(self.output)
        source, result = self.input, self.output
        if source and result and result.exists() and result.samefile(source):
            raise ValueError(
                f"--input and --output must differ. Received: {source} twice"
            )
        if self.resume and (result is None or is_stream(result)):
            raise ValueError(
                "--resume needs --output with the name of a file: only that can be "
                f"continued. Received: {result or 'no --output'}"
            )


@command
def translate(
    *,
    texts: list[str] | None = argument(
        "Sentences or documents; without any, one per line of standard input.", None
    ),
    systems: SystemOptions,
    files: FileOptions,
    how: DecodingOptions,
    imports: list[str] | None = IMPORTS,
) -> None:
    """Translate sentences, or summarise documents: one line in, one line out.

    [bold]Example:[/bold] echo 'Two men play.' | kav translate --model runs/multi30k
    """
    write_lines("translate", texts, systems, files, how, imports)


@command
def transcribe(
    *,
    recordings: list[str] | None = argument(
        "Recordings, such as WAV or FLAC files; without any, the path of one per line "
        "of standard input.",
        None,
    ),
    systems: SystemOptions,
    files: FileOptions,
    search: SearchOptions,
    imports: list[str] | None = IMPORTS,
) -> None:
    """Write down what is said in recordings: one line for each.

    [bold]Example:[/bold] kav transcribe --model runs/digits question.wav
    """
    how = DecodingOptions(**vars(search))
    write_lines("transcribe", recordings, systems, files, how, imports)


def write_lines(
    command: str,
    texts: list[str] | None,
    systems: SystemOptions,
    files: FileOptions,
    how: DecodingOptions,
    imports: list[str] | None,
) -> None:
    """Writes the output of a system for each text or recording; see `translate`.

    Raises:
        ValueError: options exclude each other, there is not exactly one system, or it
            is for another command.
    """
    if systems.count != 1:
        raise ValueError("Give one of --model, --saved-model and --server.")
    searches_otherwise = (how.beam_size, how.length_penalty) != (None, None)
    if systems.model is None and (searches_otherwise or imports):
        raise ValueError(
            "--beam-size, --length-penalty and --import apply to --model: an exported "
            "model has its own."
        )
    if texts and files.input:
        raise ValueError("Give either sentences or --input.")
    systems.check()
    if systems.model is None and how.sample and how.no_repeat_ngram:
        raise ValueError(
            "--sample and --no-repeat-ngram go together with --model only: an exported "
            f"model has a signature for each. Received: {how.no_repeat_ngram}"
        )
    settings: Settings = {}
    if files.output is not None:
        settings = {flag(name): value for name, value in vars(how).items()}
        settings |= origin(systems)
    with (
        sentences(texts, files.input) as source,
        output_to(files.output, settings, files.resume) as writer,
    ):
        rest = source._replace(texts=writer.rest(source.texts))
        if imports:
            import_modules(imports)
        from keras_attnvariants.data.tasks import of_command

        task = of_command(command)
        [system] = systems.translators(task, how).values()
        translate_all(system, rest, writer, task.at_once)


def translate_all(
    system: Translate, source: Source, writer: LineWriter, at_once: int
) -> None:
    """Translates texts, at most `at_once` at a time, and shows the progress."""
    largest = 1 if source.first == 1 else at_once
    # On a terminal, and for a few arguments, the translations themselves show it.
    is_shown = source.stream is not None and not writer.file.isatty()
    with LineProgress(source.size) if is_shown else nullcontext() as progress:
        for texts in chunks(source.texts, source.first, largest, writer.lines):
            writer.write(texts, system(texts))
            if progress is not None:
                progress.update(writer.lines, source.done)


def origin(systems: SystemOptions) -> Settings:
    """The system by option; models by their digests."""
    found: Settings = {
        "--server": systems.shown_server,
        "--source-tag": systems.source_tag,
        "--precision": systems.precision,
    }
    if systems.model is not None:
        folder = model_folder("--model", systems.model)
        found["--model with sha256"] = model_digest(folder)
    if systems.saved_model is not None:
        found["--saved-model with sha256"] = model_digest(systems.saved_model)
    return found
