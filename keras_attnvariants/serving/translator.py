"""Translating with exported models in Python, wherever they run."""

from abc import ABC
from abc import abstractmethod
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeAlias
from typing import TypeVar

from keras_attnvariants.serving import results
from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import column
from keras_attnvariants.serving.calls import listed
from keras_attnvariants.serving.results import STATUS_DOCS
from keras_attnvariants.serving.results import SavedTranslation
from keras_attnvariants.serving.results import Status
from keras_attnvariants.serving.results import TargetScore
from keras_attnvariants.utils.checks import seeds_of_texts

T = TypeVar("T")
# One value for all texts, or a list with one for each.
OneOrEach: TypeAlias = T | Sequence[T]

DEFAULT = "serving_default"


class BaseTranslator(ABC):
    """Translates lists of texts by the signatures of an exported model.

    Each method calls the signature of its name (`translate` calls `serving_default`),
    with as many texts at once as the model accepts, those of about equal length
    together. An empty text has an empty translation. It needs no TensorFlow.

    Raises:
        ValueError: by a method: the model was exported without that signature.
        TypeError: by a method: texts are not a list of strings.
    """

    @abstractmethod
    def _signature(self, name: str) -> Signature:
        """A signature by its name.

        Raises:
            ValueError: the model was exported without it.
        """

    def translate(self, texts: Sequence[str]) -> list[str]:
        """One translation per text."""
        inputs = {"text": listed("texts", texts)}
        if not inputs["text"]:
            return []
        found = self.predict(inputs, DEFAULT, ["translations"])
        translations: list[str] = found["translations"].tolist()
        return translations

    def nbest(self, texts: Sequence[str]) -> list[list[SavedTranslation]]:
        """The best translations of each text, best first; fewer if there are fewer."""
        found = self.predict({"text": listed("texts", texts)}, "nbest")
        return [results.several(row) for row in results.rows_of(found)]

    def align(self, texts: Sequence[str]) -> list[SavedTranslation]:
        """The best translation of each text, with its tokens and their sources."""
        found = self.predict({"text": listed("texts", texts)}, "align")
        return [results.translation(row) for row in results.rows_of(found)]

    def score(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> list[TargetScore]:
        """How probable each target is as a translation of its source.

        Raises:
            ValueError: the numbers of sources and targets differ.
        """
        inputs = {
            "source": listed("sources", sources),
            "target": listed("targets", targets),
        }
        found = self.predict(inputs, "score")
        return [results.target_score(row) for row in results.rows_of(found)]

    def translate_with(
        self,
        texts: Sequence[str],
        *,
        prefix: OneOrEach[str] = "",
        block_unknown: OneOrEach[bool] = False,
        min_length: OneOrEach[int | None] = None,
        max_length: OneOrEach[int | None] = None,
        length_penalty: OneOrEach[float | None] = None,
        no_repeat_ngram: OneOrEach[int | None] = None,
    ) -> list[SavedTranslation]:
        """The best translation of each text, under constraints of its own.

        Every option is one for all texts or a list with one for each; `None` leaves it
        to the export.

        Args:
            texts: the texts.
            prefix: how translations begin.
            block_unknown: whether to forbid unknown tokens.
            min_length: least number of tokens before EOS.
            max_length: largest number of tokens with EOS.
            length_penalty: exponent of the length normalization.
            no_repeat_ngram: no so many tokens in a row twice; 0 for any.

        Raises:
            ValueError: an option is out of range, or excludes another.
        """
        options = {
            "prefix": prefix,
            "block_unknown": block_unknown,
            "min_length": min_length,
            "max_length": max_length,
            "length_penalty": length_penalty,
            "no_repeat_ngram": no_repeat_ngram,
        }
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
            texts: the texts.
            temperature: below 1, probable words become more so; 0 is greedy search.
            top_k: how many words may be drawn; 0 for all.
            top_p: draw from the fewest words that have this probability together.
            seed: of the random numbers. If there is one, each text gets one of its own
                from it, by its place; with a seed of its own it has the same
                translation whatever the other texts are.

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
            outputs: names of those that are wanted; by default all.

        Returns:
            Arrays by name, in the order of the sentences; texts as objects. What
            differs in width between requests is padded with zeros or `""`.

        Raises:
            ValueError: there is no such signature, or an input is missing, unknown, of
                another type or rank, or of another number of rows.
        """

    def _with_options(
        self, signature: str, texts: Sequence[str], options: Mapping[str, Any]
    ) -> list[SavedTranslation]:
        """Translations by a signature that takes options for each sentence.

        Raises:
            ValueError: those of a sentence are out of range, or exclude each other.
        """
        inputs = {"text": listed("texts", texts)}
        specs = self._signature(signature).inputs
        for name, value in options.items():
            inputs[name] = column(name, value, len(texts), specs[name])
        found = self.predict(inputs, signature)
        translations = [results.translation(row) for row in results.rows_of(found)]
        for place, translation in enumerate(translations):
            if translation.status == Status.WRONG_OPTION:
                given = {name: inputs[name][place] for name in options}
                raise ValueError(
                    f"Of the text at position {place}, "
                    f"{STATUS_DOCS[Status.WRONG_OPTION]}. Received: {given}"
                )
        return translations
