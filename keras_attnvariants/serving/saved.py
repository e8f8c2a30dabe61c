"""Translating with a SavedModel that `export` wrote, from Python."""

import os
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeAlias
from typing import TypeVar

import tensorflow as tf

from keras_attnvariants.serving import results
from keras_attnvariants.serving.calls import column
from keras_attnvariants.serving.calls import listed
from keras_attnvariants.serving.calls import signatures_of
from keras_attnvariants.serving.client import batches
from keras_attnvariants.serving.client.tensors import Signature
from keras_attnvariants.serving.results import Array
from keras_attnvariants.serving.results import SavedTranslation
from keras_attnvariants.serving.results import TargetScore
from keras_attnvariants.serving.status import STATUS_DOCS
from keras_attnvariants.serving.status import Status
from keras_attnvariants.serving.text_operators import register_text_operators
from keras_attnvariants.serving.verify import verify as check
from keras_attnvariants.serving.versions import INFO
from keras_attnvariants.serving.versions import newest_version
from keras_attnvariants.utils.files import read_json

T = TypeVar("T")
# One value for all texts, or a list with one for each.
OneOrEach: TypeAlias = T | Sequence[T]

DEFAULT = "serving_default"


class SavedTranslator:
    """Translates lists of texts with a SavedModel, in batches that it accepts.

    Each method calls the signature of its name (`translate` calls `serving_default`);
    what a model has is in `signatures`. An empty text has an empty translation.

    Args:
        path: what `export` returned, or the folder of all versions; the newest of
            them is loaded.
        verify: whether to refuse a SavedModel whose files have changed, or that has
            other operators than a translation needs, see
            `keras_attnvariants.serving.verify`.

    Attributes:
        path: folder of the version.
        info: the content of its `assets.extra/model_info.json`.
        signatures: what it has, by name.

    Raises:
        FileNotFoundError: the folder is not a SavedModel of this package.
        ValueError: it was exported without a tokenizer, or is not what it should be;
            by a method: it was exported without that signature.
        TypeError: by a method: texts are not a list of strings.

    Example:

    ```python
    translator = kav.serving.SavedTranslator("saved_models/en-de")
    translator.translate(["Good morning."])
    [[best, *others]] = translator.nbest(["Good morning."])
    ```
    """

    def __init__(self, path: str | os.PathLike[str], *, verify: bool = True) -> None:
        self.path = newest_version(path)
        if verify:
            check(self.path)
        self.info = read_json(self.path / INFO)
        self.signatures = signatures_of(self.info)
        if "text" not in self.signatures[DEFAULT].inputs:
            raise ValueError(
                "`path` must be a SavedModel that translates text. This one was "
                "exported without a tokenizer: call its signature translate_ids with "
                f"token ids. Received: {path}"
            )
        register_text_operators()
        self._loaded = tf.saved_model.load(str(self.path))

    def translate(self, texts: Sequence[str]) -> list[str]:
        """One translation per text."""
        inputs = {"text": listed("texts", texts)}
        found = self.predict(inputs, DEFAULT, ["translations"])
        translations: list[str] = found["translations"].tolist()
        return translations

    def nbest(self, texts: Sequence[str]) -> list[list[SavedTranslation]]:
        """The best translations of each text, best first; fewer if there are fewer."""
        from keras_attnvariants.decoding import IMPOSSIBLE

        found = self.predict({"text": listed("texts", texts)}, "nbest")
        return [results.several(row, IMPOSSIBLE) for row in results.rows_of(found)]

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
        from keras_attnvariants.decoding.translation import seeds_of_texts

        options = {
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "seed": seeds_of_texts(seed, len(listed("texts", texts))).tolist(),
        }
        return self._with_options("sample", texts, options)

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
            differs in width between batches is padded with zeros or `""`.

        Raises:
            ValueError: there is no such signature, or an input is missing, unknown, of
                another type or rank, or of another number of rows.
        """
        function = self._signature(signature)
        names = list(function.outputs if outputs is None else outputs)
        arrays = batches.checked_inputs(function, inputs)
        size = self.info["options"]["max_batch"]
        run = self._loaded.signatures[signature]
        rows, parts = [], []
        # Texts of about equal length go together: a batch is as slow as its longest.
        for indices, batch in batches.batches(function, arrays, size):
            tensors = {
                name: tf.constant(values, function.inputs[name].dtype)
                for name, values in batch.items()
            }
            found = run(**tensors)
            rows.append(indices)
            parts.append({name: results.decoded(found[name].numpy()) for name in names})
        return batches.joined(rows, parts)

    def _signature(self, name: str) -> Signature:
        """A signature by its name.

        Raises:
            ValueError: the model was exported without it.
        """
        if name not in self.signatures:
            has = ", ".join(repr(other) for other in self.signatures)
            raise ValueError(
                f"The SavedModel must have the signature {name!r}: name it when you "
                f"export (`kav export --signature {name}`). Received: {self.path}, "
                f"which has {has}"
            )
        return self.signatures[name]

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
