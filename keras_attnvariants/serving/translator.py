"""Translating with exported models in Python, wherever they run."""

import warnings
from abc import ABC
from abc import abstractmethod
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from enum import IntEnum
from typing import Any
from typing import NamedTuple
from typing import TypeAlias
from typing import TypedDict
from typing import TypeVar
from typing import Unpack

import numpy as np

from keras_attnvariants.data.audio import samples_of
from keras_attnvariants.data.audio import wav_of
from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import option_values
from keras_attnvariants.utils.checks import check_known
from keras_attnvariants.utils.checks import listed
from keras_attnvariants.utils.checks import seeds_of_texts

T = TypeVar("T")
# One value for all texts, or a list with one for each.
OneOrEach: TypeAlias = T | Sequence[T]

# The signature of requests that name none, and the one that reads files.
DEFAULT = "serving_default"
TRANSLATE_WAV = "translate_wav"

# The score of a translation that was not found: `decoding.IMPOSSIBLE`, without Keras.
MISSING = -1e30


class Status(IntEnum):
    """Codes of the output `status`; `STATUS_DOCS` explains them.

    Servers merge the requests of many clients. So a sentence that cannot be translated
    does not fail the others: it has an empty translation and its own status.
    """

    OK = 0
    WRONG_LENGTH = 1
    UNKNOWN_ID = 2
    PADDING_INSIDE = 3
    NOTHING_FOUND = 4
    WRONG_OPTION = 5
    WRONG_FILE = 6
    WRONG_RATE = 7


STATUS_DOCS = {
    Status.OK: "all is well; an empty source has an empty hypothesis",
    Status.WRONG_LENGTH: "its entry of `lengths` is negative or above the width of "
    "`source_ids`",
    Status.UNKNOWN_ID: "an id within its length is not in the vocabulary",
    Status.PADDING_INSIDE: "an id within its length is that of padding",
    Status.NOTHING_FOUND: "the search found no hypothesis",
    Status.WRONG_OPTION: "an option is out of range, or excludes another",
    Status.WRONG_FILE: "it is not a WAV file of 16-bit PCM, or it ends early",
    Status.WRONG_RATE: "its sample rate is not 16,000 Hz",
}


class SavedTranslation(NamedTuple):
    """One translation of a text; fields that its signature does not return are empty.

    Attributes:
        text: the translation.
        score: log probability after length normalization.
        log_prob: log probability of the tokens and EOS.
        pieces: the tokens, including EOS.
        token_log_probs: their log probabilities; their sum is `log_prob`.
        source_pieces: the tokens of the source.
        alignment: attention of each token to each of the source, float32
            `[len(pieces), len(source_pieces)]`.
        truncated: whether a limit of the export cut the source.
        status: why there is no translation, if there is none.
    """

    text: str
    score: float
    log_prob: float | None = None
    pieces: tuple[str, ...] = ()
    token_log_probs: tuple[float, ...] = ()
    source_pieces: tuple[str, ...] = ()
    alignment: Array | None = None
    truncated: bool = False
    status: Status = Status.OK


class Constraints(TypedDict, total=False):
    """Options of `translate_with`, each one for all texts or a list with one for each.

    Options that are left out or `None` have the defaults of the export.

    Attributes:
        prefix: how translations begin.
        block_unknown: whether to forbid unknown tokens.
        min_length: least number of tokens before EOS.
        max_length: largest number of tokens with EOS.
        length_penalty: exponent of the length normalization.
        no_repeat_ngram: length of the n-grams that may not occur twice; 0 for none.
    """

    prefix: OneOrEach[str]
    block_unknown: OneOrEach[bool]
    min_length: OneOrEach[int | None]
    max_length: OneOrEach[int | None]
    length_penalty: OneOrEach[float | None]
    no_repeat_ngram: OneOrEach[int | None]


class TargetScore(NamedTuple):
    """The probability of a target as a translation of its source.

    Attributes:
        log_prob: log-probability of its tokens and EOS.
        pieces: its tokens, including EOS.
        token_log_probs: their log probabilities.
        truncated: whether a limit of the export cut source or target.
    """

    log_prob: float
    pieces: tuple[str, ...]
    token_log_probs: tuple[float, ...]
    truncated: bool


def translation(row: Mapping[str, Any]) -> SavedTranslation:
    """The translation in the outputs for one sentence."""
    pieces = [piece for piece in row.get("pieces", ()) if piece]
    source = [piece for piece in row.get("source_pieces", ()) if piece]
    weights = row.get("alignments")
    log_probs = row.get("token_log_probs", np.zeros(0))
    return SavedTranslation(
        text=row["translations"],
        score=float(row["scores"]),
        log_prob=float(row["log_probs"]) if "log_probs" in row else None,
        pieces=tuple(pieces),
        token_log_probs=tuple(log_probs[: len(pieces)].tolist()),
        source_pieces=tuple(source),
        alignment=None if weights is None else weights[: len(pieces), : len(source)],
        truncated=bool(row["truncated"]),
        status=Status(row["status"]),
    )


def warn_of_cuts() -> None:
    """Warns that sources are cut."""
    # In one place, so that Python shows the warning once.
    warnings.warn(
        "There are sources longer than the model reads. They are cut, see `truncated`.",
        stacklevel=1,
    )


class BaseTranslator(ABC):
    """Translates lists of texts by the signatures of an exported model.

    Each method calls the signature of its name (`translate` calls `serving_default`),
    with as many texts at once as the model accepts, grouped by length. An empty text
    has an empty translation. Texts longer than the model reads are cut; `translate`
    warns of it. The class does not need TensorFlow.

    For a model of recordings, texts are paths of recordings.

    Raises:
        ValueError: by a method: the model was exported without that signature.
        TypeError: by a method: texts are not a list of strings.
    """

    # Samples of a recording that are read; one with that many counts as cut.
    _longest: int = 1 << 21

    @abstractmethod
    def _signature(self, name: str) -> Signature:
        """A signature by its name; raises `ValueError` if the model lacks it."""

    @property
    def reads_text(self) -> bool:
        """Whether sources are texts; else they are paths of recordings."""
        return "audio" not in self._signature(DEFAULT).inputs

    def translate(self, texts: Sequence[str]) -> list[str]:
        """One translation per text."""
        if not listed("texts", texts):
            return []
        name = DEFAULT if self.reads_text else TRANSLATE_WAV
        flags = self._signature(name).outputs.keys() & {"truncated"}
        inputs = self._source(texts, name)
        found = self.predict(inputs, name, ["translations", *flags])
        if any(found[flag].any() for flag in flags):
            warn_of_cuts()
        return found["translations"].tolist()

    def nbest(self, texts: Sequence[str]) -> list[list[SavedTranslation]]:
        """The best translations of each text, best first; fewer if there are fewer."""
        return [
            [
                translation({**row, "translations": text, "scores": score})
                for text, score in zip(row["translations"], row["scores"], strict=True)
                if score > MISSING
            ]
            for row in self._rows("nbest", self._source(texts, "nbest"))
        ]

    def align(self, texts: Sequence[str]) -> list[SavedTranslation]:
        """The best translation of each text, with its tokens and their sources."""
        rows = self._rows("align", self._source(texts, "align"))
        return [translation(row) for row in rows]

    def score(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> list[TargetScore]:
        """The probability of each target as a translation of its source.

        Raises:
            ValueError: the numbers of sources and targets differ.
        """
        inputs = self._source(sources, "score", "sources")
        inputs["target"] = listed("targets", targets)
        return [
            TargetScore(
                float(row["log_probs"]),
                tuple(row["pieces"][: row["lengths"]]),
                tuple(row["token_log_probs"][: row["lengths"]].tolist()),
                bool(row["truncated"]),
            )
            for row in self._rows("score", inputs)
        ]

    def translate_with(
        self, texts: Sequence[str], **options: Unpack[Constraints]
    ) -> list[SavedTranslation]:
        """The best translation of each text, under constraints of its own.

        Raises:
            ValueError: an option is unknown, out of range, or excludes another.
        """
        return self._with_options("translate_with", texts, options)

    def sample(
        self,
        texts: Sequence[str],
        temperature: OneOrEach[float | None] = None,
        top_k: OneOrEach[int | None] = None,
        top_p: OneOrEach[float | None] = None,
        seed: OneOrEach[int] = 0,
    ) -> list[SavedTranslation]:
        """A translation of each text, drawn at random, with its tokens.

        Options are one for all texts or a list with one for each.

        Args:
            temperature: below 1 favours probable words; 0 is greedy search.
            top_k: how many words may be drawn; 0 for all.
            top_p: draw from the fewest words whose probabilities sum to this.
            seed: seed of the random numbers. From a single seed each text gets its own,
                by its place. With a list of seeds, the translation of a text does not
                depend on the other texts.

        Raises:
            ValueError: an option is out of range.
        """
        options = {
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "seed": seeds_of_texts(seed, len(listed("texts", texts))).tolist(),
        }
        return self._with_options("sample", texts, options)

    @abstractmethod
    def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str = DEFAULT,
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """The outputs of any signature, for any number of sentences.

        Args:
            inputs: lists or arrays by name, all with one row per sentence.
            signature: its name.
            outputs: names of the outputs to return; by default all.

        Returns:
            Arrays by name, in the order of the sentences; texts as objects. Arrays
            that differ in width between requests are padded with zeros or `""`.

        Raises:
            ValueError: there is no such signature, or an input is missing, unknown, of
                another type or rank, or of another number of rows.
        """

    def _source(
        self, texts: Sequence[str], signature: str, name: str = "texts"
    ) -> dict[str, Any]:
        """The inputs of a signature for texts, or for paths of recordings.

        Args:
            texts: the sources.
            signature: its name.
            name: name of the argument, for messages.
        """
        values = listed(name, texts)
        inputs = self._signature(signature).inputs
        if inputs.keys().isdisjoint({"wav", "audio"}):
            return {"source" if signature == "score" else "text": values}
        signals = [samples_of(path, self._longest) for path in values]
        lengths = np.array([len(signal) for signal in signals], "int32")
        if max(lengths, default=0) == self._longest:
            warn_of_cuts()
        if "wav" in inputs:
            return {"wav": [wav_of(signal) for signal in signals]}
        audio = np.zeros((len(signals), max(lengths, default=0)), "float32")
        for row, signal in zip(audio, signals, strict=True):
            row[: len(signal)] = signal
        return {"audio": audio, "lengths": lengths}

    def _rows(
        self, signature: str, inputs: Mapping[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """The outputs of a signature for one sentence after another."""
        found = self.predict(inputs, signature)
        for row in zip(*found.values(), strict=True):
            yield dict(zip(found, row, strict=True))

    def _with_options(
        self, signature: str, texts: Sequence[str], options: Mapping[str, Any]
    ) -> list[SavedTranslation]:
        """Translations by a signature that takes options for each sentence.

        Raises:
            ValueError: an option is unknown, out of range, or excludes another.
        """
        inputs = self._source(texts, signature)
        specs = self._signature(signature).inputs
        for name in options:
            check_known(f"`{signature}`", name, specs)
        for name in specs.keys() - inputs.keys():
            inputs[name] = option_values(
                name, options.get(name), len(texts), specs[name]
            )
        translations = [translation(row) for row in self._rows(signature, inputs)]
        for place, found in enumerate(translations):
            if found.status == Status.WRONG_OPTION:
                given = {name: inputs[name][place] for name in options}
                raise ValueError(
                    f"The text at position {place} cannot be translated: "
                    f"{STATUS_DOCS[Status.WRONG_OPTION]}. Received: {given}"
                )
        return translations
