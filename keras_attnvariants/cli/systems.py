"""Systems: a model, an exported one, or one on a server."""

import hashlib
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import SAVED
from keras_attnvariants.cli.models import Precision
from keras_attnvariants.cli.models import check_place
from keras_attnvariants.cli.models import load
from keras_attnvariants.cli.models import model_folder
from keras_attnvariants.cli.models import model_task
from keras_attnvariants.cli.models import translator_of
from keras_attnvariants.cli.options import MODEL_HELP
from keras_attnvariants.cli.options import SearchOptions
from keras_attnvariants.utils.importing import import_tensorflow
from keras_attnvariants.utils.importing import use_one_thread_per_operator

if TYPE_CHECKING:
    from keras_attnvariants import Translator
    from keras_attnvariants.data import tasks
    from keras_attnvariants.serving.translator import BaseTranslator

Translate = Callable[[list[str]], list[str]]


@dataclass(frozen=True, kw_only=True)
class DecodingOptions(SearchOptions):
    """Options of the search, and whether outputs are drawn at random instead.

    Raises:
        ValueError: options of sampling are given without it.
    """

    no_repeat_ngram: int | None = option(
        "Length of the n-grams that may not occur twice in an output; 0: no limit. "
        "Default: as in the preset.",
        min=0,
    )
    sample: bool = option(
        "Draw each translation from the probabilities of the model instead of "
        "searching for the best, for back-translation for instance. A sentence has the "
        "same translation wherever it stands; another --seed gives another one.",
        False,
    )
    temperature: float = option(
        "With --sample: below 1 favours probable words; 0 is greedy search.",
        1.0,
        min=0,
    )
    top_k: int = option("With --sample: how many words may be drawn; 0: all.", 0, min=0)
    top_p: float = option(
        "With --sample: draw from the fewest words whose probabilities sum to this.",
        1.0,
        min=0,
        max=1,
    )
    seed: int = option("With --sample: seed of the random numbers.", 0, min=0)

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
        """A drawn translation of each text, independent of the other texts."""
        how = (self.temperature, self.top_k, self.top_p)
        seeds = [seed_of(self.seed, text) for text in texts]
        return [drawn.text for drawn in translator.sample(texts, *how, seed=seeds)]


def seed_of(seed: int, text: str) -> int:
    """A seed for one text, from the common seed."""
    digest = hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:4], "big") >> 1


@dataclass(frozen=True, kw_only=True)
class SystemOptions:
    """Systems: a model, an exported one, or one on a server."""

    model: str | None = option(MODEL_HELP, None, "--model", "--run")
    saved_model: Path | None = option(
        "Folder that `kav export` wrote. Its beam size is fixed."
    )
    server: str | None = option(
        "Model on TensorFlow Serving, such as localhost:8500/en-de, with /versions/2 "
        "or /labels/stable for one other than the newest. http:// or https:// in front "
        "means REST instead of gRPC."
    )
    precision: Precision | None = option(
        "Precision in which the model computes; default: as in training."
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
        """The task of the model; a model on a server is taken to translate."""
        from keras_attnvariants.data import tasks

        if self.saved_model is not None:
            from keras_attnvariants.serving.folders import newest_version
            from keras_attnvariants.serving.folders import read_info

            # Exports from before there were tasks name none.
            info = read_info(newest_version(self.saved_model))
            return str(info.get("task", tasks.DEFAULT))
        if self.model is not None:
            return model_task(model_folder("--model", self.model))
        return tasks.DEFAULT

    @property
    def shown_server(self) -> str | None:
        """The server without its password."""
        from keras_attnvariants.serving.client.exchange import without_password

        return self.server and without_password(self.server)

    def check(self) -> None:
        """Checks early that options belong together, and folders are of the right kind.

        Raises:
            FileNotFoundError: a folder or name is wrong; the message has the file that
                the folder should have, or similar names.
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
            from keras_attnvariants.serving.client.exchange import parse_place
            from keras_attnvariants.serving.client.exchange import split_address

            split_address(parse_place(self.server)["address"])
        if self.source_tag is not None and (self.model is None or self.count > 1):
            raise ValueError(
                "--source-tag is checked with the vocabulary of --model: for an "
                "exported model or a server, write the tag in front of each sentence."
            )

    def translators(
        self, task: "tasks.Task", how: DecodingOptions
    ) -> dict[str, Translate]:
        """Functions that translate lists of texts, by model as the user gave it.

        Args:
            task: what the models have to read the inputs of.
            how: how they search, or draw.

        Raises:
            ValueError: a model cannot be loaded, has no such tag, or does not read the
                inputs of the task.
        """
        found: dict[str, Translate] = {}
        for name, translator in self._loaded(task, how):
            if name != self.model:
                check_reads(translator.reads_text, task, name)
            translate: Translate = translator.translate
            if how.sample:
                translate = partial(how.translations, translator)
            elif how.no_repeat_ngram is not None and name != self.model:
                translate = partial(no_repeats, translator, how.no_repeat_ngram)
            if self.source_tag is not None:
                translate = partial(tagged, translate, self.source_tag)
            found[name] = translate
        return found

    def _loaded(
        self, task: "tasks.Task", how: DecodingOptions
    ) -> Iterator[tuple[str, Any]]:
        """A translator for each system, by model as the user gave it."""
        if self.model is not None:
            from keras_attnvariants.data import tasks

            folder = model_folder("--model", self.model)
            # Before it is loaded, which takes long.
            check_reads(tasks.get(model_task(folder)).reads_text, task, self.model)
            model, tokenizer = load(folder, self.precision)
            if self.source_tag is not None and self.source_tag not in tokenizer.tags:
                known = ", ".join(map(repr, tokenizer.tags)) or "none"
                raise ValueError(
                    "--source-tag must be one that the model was trained with: "
                    f"{known}. Received: {self.source_tag!r}"
                )
            names = ("beam_size", "length_penalty", "no_repeat_ngram")
            options = {name: getattr(how, name) for name in names}
            yield self.model, translator_of(model, tokenizer, **options)
        if self.saved_model is not None:
            use_one_thread_per_operator()  # batches are translated side by side
            import_tensorflow()
            from keras_attnvariants.serving.saved import SavedTranslator

            yield str(self.saved_model), SavedTranslator(self.saved_model)
        if self.server is not None:
            # Does not import TensorFlow.
            from keras_attnvariants.serving.client import Client
            from keras_attnvariants.serving.client.exchange import parse_place

            yield str(self.shown_server), Client(**parse_place(self.server))


def check_reads(reads_text: bool, task: "tasks.Task", system: str) -> None:
    """Raises `ValueError` unless a system reads the inputs of a task."""
    from keras_attnvariants.data.tasks import command_for

    if reads_text != task.reads_text:
        what = "texts" if reads_text else "recordings"
        raise ValueError(
            f"This model reads {what}, and the task {task.name!r} has {task.reads}: "
            f"`kav {command_for(reads_text)}` uses it. Received: {system}"
        )


def tagged(translate: Translate, tag: str, texts: list[str]) -> list[str]:
    """Translations of texts with a tag in front of each."""
    return translate([f"{tag} {text}" for text in texts])


def no_repeats(translator: "BaseTranslator", size: int, texts: list[str]) -> list[str]:
    """Translations without repeated n-grams of `size` tokens."""
    found = translator.translate_with(texts, no_repeat_ngram=size)
    return [best.text for best in found]
