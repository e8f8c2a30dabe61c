"""Trained models by name or folder, and functions that translate with them."""

import hashlib
import os
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Literal

from keras_attnvariants.cli.commands import given
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.options import MODEL_HELP
from keras_attnvariants.cli.options import SearchOptions
from keras_attnvariants.trained import find_model
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.importing import import_tensorflow

if TYPE_CHECKING:
    import keras

    from keras_attnvariants import Tokenizer
    from keras_attnvariants import Translator
    from keras_attnvariants.serving.translator import BaseTranslator

Translate = Callable[[list[str]], list[str]]
Precision = Literal["float32", "bfloat16", "int8"]

# Hypotheses that are searched at once, unless one sentence has more.
MAX_HYPOTHESES = 512
# Kinds of folders, and files of which each has one.
RUN = "the folder of a run, with log.jsonl"
MODEL = f"{RUN}, or of a model, with {MANIFEST}"
SAVED = "a folder with saved_model.pb, or one of numbered versions of it"
KINDS = {
    RUN: ["log.jsonl"],
    MODEL: ["log.jsonl", MANIFEST],
    SAVED: ["saved_model.pb", "[0-9]*/saved_model.pb"],
}


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """Whether translations are drawn at random, and how.

    Raises:
        ValueError: options of sampling are given without it.
    """

    sample: bool = option(
        "Draw each translation from the probabilities of the model instead of "
        "searching for the best, for back-translation for instance. A sentence has the "
        "same translation wherever it stands; another --seed gives another one.",
        False,
    )
    temperature: float = option(
        "With --sample: below 1, probable words become more so; 0 is greedy search.",
        1.0,
        min=0,
    )
    top_k: int = option("With --sample: how many words may be drawn; 0: all.", 0, min=0)
    top_p: float = option(
        "With --sample: draw from the fewest words that have this share of the "
        "probability together.",
        1.0,
        min=0,
        max=1,
    )
    seed: int = option("With --sample: of the random numbers.", 0, min=0)

    def __post_init__(self) -> None:
        how = (self.temperature, self.top_k, self.top_p, self.seed)
        if not self.sample and how != (1.0, 0, 1.0, 0):
            raise ValueError(
                "--temperature, --top-k, --top-p and --seed need --sample. "
                f"Received: {', '.join(map(str, how))}"
            )

    def translations(
        self, translator: "Translator | BaseTranslator", texts: list[str]
    ) -> list[str]:
        """A drawn translation of each text, whatever the other texts are."""
        how = (self.temperature, self.top_k, self.top_p)
        seeds = [seed_of(self.seed, text) for text in texts]
        return [drawn.text for drawn in translator.sample(texts, *how, seed=seeds)]


def seed_of(seed: int, text: str) -> int:
    """A seed for one text, from the seed of all."""
    digest = hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:4], "big") >> 1


@dataclass(frozen=True, kw_only=True)
class SystemOptions:
    """Systems that translate: a model, an exported one, or one on a server."""

    model: str | None = option(MODEL_HELP, None, "--model", "--run")
    saved_model: Path | None = option(
        "Folder that `kav export` wrote. Its beam size is fixed."
    )
    server: str | None = option(
        "Model on TensorFlow Serving, such as localhost:8500/en-de, with /versions/2 "
        "or /labels/stable if it shall not be the newest. An address that begins with "
        "http:// or https:// is one of REST."
    )
    precision: Precision | None = option(
        "What the model computes in; default: as in training."
    )
    source_tag: str | None = option(
        "Word in front of each source, with which --model was trained."
    )

    @property
    def count(self) -> int:
        """Number of systems."""
        systems = (self.model, self.saved_model, self.server)
        return sum(system is not None for system in systems)

    @property
    def task(self) -> str:
        """The task of the model; an exported one translates unless told otherwise."""
        if self.model is None:
            return "translation"
        return model_task(model_folder("--model", self.model))

    @property
    def shown_server(self) -> str | None:
        """The server without its password."""
        if self.server is None:
            return None
        from keras_attnvariants.serving.client.exchange import without_password

        return without_password(self.server)

    def check(self) -> None:
        """Raises at once if an option lacks another, or a folder is of another kind.

        Raises:
            FileNotFoundError: says which file a folder should have, or which names
                are near to one that is unknown.
            ValueError: there is no model for a precision or a tag, or the server has no
                address.
        """
        if self.model is None and self.precision is not None:
            raise ValueError(
                "--precision applies to --model: that of an exported model was chosen "
                f"when it was exported. Received: {self.precision}"
            )
        if self.model is not None:
            model_folder("--model", self.model)
        if self.saved_model is not None:
            check_place("--saved-model", self.saved_model, SAVED)
        if self.server is not None:
            from keras_attnvariants.serving.client.exchange import check_address
            from keras_attnvariants.serving.client.exchange import parse_place

            check_address(parse_place(self.server)["address"])
        if self.source_tag is not None and (self.model is None or self.count > 1):
            raise ValueError(
                "--source-tag is checked with the vocabulary of --model: for an "
                "exported model or a server, write the tag in front of each sentence."
            )

    def translators(
        self,
        search: SearchOptions,
        no_repeat_ngram: int | None = None,
        sampling: SamplingOptions | None = None,
    ) -> dict[str, Translate]:
        """Functions that translate lists of texts, by their model as it was given.

        Raises:
            ValueError: a model cannot be loaded, or has no such tag.
        """
        found: dict[str, Translate] = {}
        if self.model is not None:
            translator = self._of_model(self.model, search, no_repeat_ngram)
            translate: Translate = translator.translate
            if sampling is not None:
                translate = partial(sampling.translations, translator)
            if self.source_tag is not None:
                translate = partial(tagged, translate, self.source_tag)
            found[self.model] = translate
        for name, exported in self._exported():
            translate = exported.translate
            if sampling is not None:
                translate = partial(sampling.translations, exported)
            elif no_repeat_ngram is not None:
                translate = partial(no_repeats, exported, no_repeat_ngram)
            found[name] = translate
        return found

    def _exported(self) -> Iterator[tuple[str, "BaseTranslator"]]:
        if self.saved_model is not None:
            import_tensorflow()
            from keras_attnvariants.serving.saved import SavedTranslator

            yield str(self.saved_model), SavedTranslator(self.saved_model)
        if self.server is not None:
            # Without TensorFlow here.
            from keras_attnvariants.serving.client import Client
            from keras_attnvariants.serving.client.exchange import parse_place

            yield str(self.shown_server), Client(**parse_place(self.server))

    def _of_model(
        self, name: str, search: SearchOptions, no_repeat_ngram: int | None
    ) -> "Translator":
        model, tokenizer = load(model_folder("--model", name), self.precision)
        import keras_attnvariants as kav

        if self.source_tag is not None and self.source_tag not in tokenizer.tags:
            known = ", ".join(map(repr, tokenizer.tags)) or "none"
            raise ValueError(
                f"--source-tag must be one that the model was trained with: {known}. "
                f"Received: {self.source_tag!r}"
            )
        settings = kav.models.SearchSettings.of(model, **given(search))
        # Without XLA: compiling every shape takes longer than a test set.
        return kav.Translator(
            model,
            tokenizer,
            batch_sizes=batch_sizes(settings.beam_size),
            xla=False,
            no_repeat_ngram=no_repeat_ngram,
            **given(search),
        )


def tagged(translate: Translate, tag: str, texts: list[str]) -> list[str]:
    """Translations of texts with a tag in front of each."""
    return translate([f"{tag} {text}" for text in texts])


def no_repeats(translator: "BaseTranslator", size: int, texts: list[str]) -> list[str]:
    """Translations without so many tokens in a row twice."""
    found = translator.translate_with(texts, no_repeat_ngram=size)
    return [best.text for best in found]


def check_place(name: str, folder: Path, kind: str) -> None:
    """Raises at once if a folder is clearly not of a kind.

    Args:
        name: the option or argument.
        folder: its value.
        kind: one of `KINDS`.

    Raises:
        FileNotFoundError: says which file it should have.
    """
    if not any(any(folder.glob(pattern)) for pattern in KINDS[kind]):
        raise FileNotFoundError(f"`{name}` must be {kind}. Received: {folder}")


def model_folder(argument: str, name: str) -> Path:
    """The folder of a run, or of a model by its path, name or address.

    Args:
        argument: the option or argument.
        name: its value, see `keras_attnvariants.trained.find_model`.

    Raises:
        FileNotFoundError: there is no such model; says which names are near, or which
            file the folder should have.
        ValueError, FetchError: as for `find_model`.
    """
    folder = find_model(name, argument)
    check_place(argument, folder, MODEL)
    return folder


def model_task(folder: Path) -> str:
    """The task of the model of a run or of a model folder.

    An adapter says nothing of it: it is for models that translate.
    """
    path = folder / "config.json"
    if path.is_file():
        # Of something else than a model, loading it says what is wrong.
        with suppress(AttributeError, KeyError, TypeError):
            config = read_json(path)
            config = config.get("model", config)["config"]
            return str(config.get("task", "translation"))
    return "translation"


def short_names(models: list[str]) -> dict[str, Path]:
    """The folders of models: by the last parts of their paths, or by their names.

    Paths whose last parts are the same are whole.

    Raises:
        FileNotFoundError: there is no such model.
        ValueError: one is given twice.
    """
    if len(set(models)) < len(models):
        raise ValueError(f"Give each model once. Received: {', '.join(models)}")
    last = [Path(x).resolve().name if os.path.exists(x) else x for x in models]
    return {
        model if last.count(name) > 1 else name: model_folder("--model", model)
        for name, model in zip(last, models, strict=True)
    }


def model_digest(folder: Path) -> str:
    """Digest of the manifests of a run's models, of a model folder or of a SavedModel.

    Of several versions of a SavedModel it is that of the newest.
    """
    from keras_attnvariants.serving.folders import versions

    if numbers := versions(folder):
        folder /= str(numbers[-1])
    digests = hashlib.sha256()
    for name in (MANIFEST, f"best/{MANIFEST}", f"averaged/{MANIFEST}"):
        if (folder / name).is_file():
            entry = file_entry(folder / name)
            digests.update(f"{entry['sha256']} {name}\n".encode())
    return digests.hexdigest()


def load(
    folder: Path, precision: Precision | None = None
) -> tuple["keras.Model", "Tokenizer"]:
    """The model of a run or of a model folder, in a precision, and its tokenizer.

    Raises:
        FileNotFoundError: there is no model.
        ValueError: a file is not the one that was saved, a class is unknown, or the
            model does not translate or has no tokenizer.
    """
    import_tensorflow()
    import keras_attnvariants as kav

    is_run = (folder / "log.jsonl").is_file()
    load = kav.training.load_run if is_run else kav.load_model
    model, tokenizer = load(folder)
    if tokenizer is None or not hasattr(model, "initial_state"):
        raise ValueError(
            "The folder must hold a model that translates, with its tokenizer.model. "
            f"Received: {folder}, with a {type(model).__name__}"
        )
    return (model if precision is None else in_precision(model, precision)), tokenizer


def in_precision(model: "keras.Model", precision: Precision) -> "keras.Model":
    """The same model, computing in a precision.

    Around products of integers it computes in float32, whatever the training did: how
    bfloat16 is rounded depends on the processor.
    """
    from keras_attnvariants.models.templates import with_policy
    from keras_attnvariants.serving.precision import POLICIES
    from keras_attnvariants.serving.precision import with_integers

    if precision == "int8":
        return with_integers(model, "float32")
    return with_policy(model, POLICIES[precision])


def batch_sizes(beam_size: int) -> tuple[int, ...]:
    """Sentences that are translated together: fewer, the wider the beam.

    The memory of a search grows with the number of hypotheses.
    """
    fitting = (n for n in (8, 32) if n * beam_size <= MAX_HYPOTHESES)
    return (1, *fitting)
