"""Trained models by their folders, and functions that translate with them."""

import functools
import hashlib
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from keras_attnvariants.cli.options import Precision
from keras_attnvariants.cli.options import SearchOptions
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.importing import import_tensorflow

if TYPE_CHECKING:
    import keras

    from keras_attnvariants import Tokenizer
    from keras_attnvariants import Translator
    from keras_attnvariants.serving import SavedTranslator

Translate = Callable[[list[str]], list[str]]

NO_TAG = (
    "--source-tag is checked with the vocabulary of --model: for an exported model or "
    "a server, write the tag in front of each sentence."
)

# Hypotheses that are searched at once, unless one sentence has more.
MAX_HYPOTHESES = 512
# How Keras begins when a class of a model is not registered.
UNKNOWN_CLASS = re.compile(r"Could not locate class '([^']*)'")


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """Whether translations are drawn at random, and how.

    Raises:
        ValueError: options of sampling are given without it.
    """

    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Draw each translation from the probabilities of the model instead of "
            "searching for the best, for back-translation for instance. A sentence has "
            "the same translation wherever it stands; another --seed gives another "
            "one.",
        ),
    ] = False
    temperature: Annotated[
        float,
        typer.Option(
            help="With --sample: below 1, probable words become more so; 0 is greedy "
            "search.",
            min=0,
        ),
    ] = 1.0
    top_k: Annotated[
        int,
        typer.Option(help="With --sample: how many words may be drawn; 0: all.", min=0),
    ] = 0
    top_p: Annotated[
        float,
        typer.Option(
            help="With --sample: draw from the fewest words that have this share of "
            "the probability together.",
            min=0,
            max=1,
        ),
    ] = 1.0
    seed: Annotated[
        int, typer.Option(help="With --sample: of the random numbers.", min=0)
    ] = 0

    def __post_init__(self) -> None:
        how = (self.temperature, self.top_k, self.top_p, self.seed)
        if not self.sample and how != (1.0, 0, 1.0, 0):
            raise ValueError(
                "--temperature, --top-k, --top-p and --seed need --sample. "
                f"Received: {', '.join(map(str, how))}"
            )

    def translations(
        self, translator: "Translator | SavedTranslator", texts: list[str]
    ) -> list[str]:
        """A drawn translation of each text, whatever the other texts are."""
        how = (self.temperature, self.top_k, self.top_p)
        seeds = [seed_of(self.seed, text) for text in texts]
        return [drawn.text for drawn in translator.sample(texts, *how, seed=seeds)]


def seed_of(seed: int, text: str) -> int:
    """A seed for one text, from the seed of all."""
    digest = hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def check_folders(
    model: Path | None, saved_model: Path | None, precision: Precision | None = None
) -> None:
    """Raises at once if a folder is missing or clearly of another kind.

    Raises:
        FileNotFoundError: says which file a folder should have.
        ValueError: a precision is given, and no model that it could apply to.
    """
    if model is None and precision is not None:
        raise ValueError(
            "--precision applies to --model: that of a SavedModel was chosen when it "
            f"was exported. Received: {precision.value}"
        )
    if model is not None:
        if not any((model / name).is_file() for name in ("log.jsonl", "manifest.json")):
            raise FileNotFoundError(
                "`--model` must be the folder of a run, with log.jsonl, or of a model, "
                f"with manifest.json. Received: {model}"
            )
    if saved_model is not None:
        check_saved_model("--saved-model", saved_model)


def check_saved_model(name: str, folder: Path) -> None:
    """Raises if a folder holds no SavedModel.

    Args:
        name: of the option or argument.
        folder: its value.

    Raises:
        FileNotFoundError: says which file a folder should have.
    """
    here = [folder, *folder.glob("[0-9]*")]
    if not any((path / "saved_model.pb").is_file() for path in here):
        raise FileNotFoundError(
            f"`{name}` must be a folder with saved_model.pb, or one of numbered "
            f"versions of it. Received: {folder}"
        )


def model_digest(folder: Path) -> str:
    """Digest of the files of a run's models, of a model folder, or of a SavedModel.

    Of several versions of a SavedModel it is that of the newest.
    """
    versions = [path.parent for path in folder.glob("[0-9]*/saved_model.pb")]
    numbers = [int(path.name) for path in versions if path.name.isdecimal()]
    if numbers:
        folder /= str(max(numbers))
    files = [folder / name / MANIFEST for name in ("", "best", "averaged")]
    if (folder / "saved_model.pb").is_file():
        files = sorted(folder.rglob("*"))
    digests = hashlib.sha256()
    for path in filter(Path.is_file, files):
        name = path.relative_to(folder).as_posix()
        digests.update(f"{file_entry(path)['sha256']} {name}\n".encode())
    return digests.hexdigest()


def load(
    folder: Path, precision: Precision | None = None
) -> tuple["keras.Model", "Tokenizer"]:
    """The model of a run or of a model folder, in a precision, and its tokenizer.

    Raises:
        FileNotFoundError: there is no model, or it has no tokenizer.
        ValueError: a file is not the one that was saved, or a class is unknown.
    """
    import_tensorflow()
    import keras_attnvariants as kav

    is_run = (folder / "log.jsonl").is_file()
    try:
        load = kav.training.load_run if is_run else kav.load_model
        model, tokenizer = load(folder)
    except TypeError as error:
        unknown = UNKNOWN_CLASS.search(str(error))
        if unknown is None:
            raise
        raise ValueError(
            f"The model has a class {unknown[1]!r} that is not of this package: name "
            f"the module that defines it by --import. Received: {folder}"
        ) from error
    if tokenizer is None:
        raise FileNotFoundError(
            f"The model folder must have a tokenizer.model. Received: {folder}"
        )
    return (model if precision is None else in_precision(model, precision)), tokenizer


def in_precision(model: "keras.Model", precision: Precision) -> "keras.Model":
    """The same model, computing in a precision."""
    from keras_attnvariants.models.base import with_policy

    if precision == Precision.INT8:
        with warnings.catch_warnings():
            # Keras warns of every layer that has nothing to quantize.
            warnings.simplefilter("ignore")
            model.quantize("int8")
        return model
    policies = {Precision.FLOAT32: "float32", Precision.BFLOAT16: "mixed_bfloat16"}
    return with_policy(model, policies[precision])


def translators(
    model: Path | None,
    saved_model: Path | None,
    search: SearchOptions,
    precision: Precision | None = None,
    no_repeat_ngram: int = 0,
    sampling: SamplingOptions | None = None,
    source_tag: str | None = None,
) -> dict[Path, Translate]:
    """Functions that translate lists of texts, by the folder of their model.

    Raises:
        ValueError: the vocabulary of a model has no such tag.
    """
    if source_tag is not None and saved_model is not None:
        raise ValueError(NO_TAG)
    found: dict[Path, Translate] = {}
    if model is not None:
        loaded, tokenizer = load(model, precision)
        import keras_attnvariants as kav

        if source_tag is not None and source_tag not in tokenizer.tags:
            known = ", ".join(map(repr, tokenizer.tags)) or "none"
            raise ValueError(
                f"--source-tag must be one that the model was trained with: {known}. "
                f"Received: {source_tag!r}"
            )
        settings = kav.models.SearchSettings.of(loaded, **search.given())
        # Without XLA: compiling every shape takes longer than a test set.
        translator = kav.Translator(
            loaded,
            tokenizer,
            settings.beam_size,
            settings.length_penalty,
            batch_sizes=batch_sizes(settings.beam_size),
            xla=False,
            no_repeat_ngram=no_repeat_ngram,
        )
        found[model] = translator.translate
        if sampling is not None:
            found[model] = functools.partial(sampling.translations, translator)
        if source_tag is not None:
            found[model] = functools.partial(_tagged, found[model], source_tag)
    if saved_model is not None:
        found[saved_model] = exported(saved_model, no_repeat_ngram, sampling)
    return found


def exported(
    folder: Path, no_repeat_ngram: int = 0, sampling: SamplingOptions | None = None
) -> Translate:
    """A function that translates lists of texts with a SavedModel.

    Raises:
        ValueError: its files have changed, or it is for token ids alone.
    """
    import_tensorflow()
    from keras_attnvariants.serving.saved import SavedTranslator

    translator = SavedTranslator(folder)
    if sampling is not None:
        return functools.partial(sampling.translations, translator)
    if no_repeat_ngram:

        def without_repeats(texts: list[str]) -> list[str]:
            found = translator.translate_with(texts, no_repeat_ngram=no_repeat_ngram)
            return [best.text for best in found]

        return without_repeats
    return translator.translate


def _tagged(translate: Translate, tag: str, texts: list[str]) -> list[str]:
    """Translations of texts with a tag in front of each."""
    return translate([f"{tag} {text}" for text in texts])


def served(place: str) -> Translate:
    """A function that translates lists of texts on a server, without TensorFlow here.

    Args:
        place: as `keras_attnvariants.serving.client.client.parse_place` reads it.
    """
    from keras_attnvariants.serving.client import Client
    from keras_attnvariants.serving.client.client import parse_place

    return Client(**parse_place(place)).translate


def batch_sizes(beam_size: int) -> tuple[int, ...]:
    """Sentences that are translated together: fewer, the wider the beam.

    The memory of a search grows with the number of hypotheses.
    """
    fitting = (n for n in (8, 32) if n * beam_size <= MAX_HYPOTHESES)
    return (1, *fitting)
