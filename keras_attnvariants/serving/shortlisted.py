"""Searches among the target tokens that a source makes likely."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attnvariants.backend import constant
from keras_attnvariants.backend import shallow_copy
from keras_attnvariants.backend import shared_tensor
from keras_attnvariants.backend import take
from keras_attnvariants.data.shortlist import Shortlist
from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.decoding.step_model import for_decoding
from keras_attnvariants.models.embeddings import TokenEmbeddings
from keras_attnvariants.serving.exported import copy_attributes
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Tensor


class ShortlistedSteps:
    """A step model whose vocabulary is a separate list of tokens for each sentence.

    Tokens are numbered by their index in that list, which begins with the first ids of
    the vocabulary: special tokens keep their ids. `restored` turns indices into ids.
    Probabilities are normalised over the tokens of the list.

    Args:
        model: a step model with `TokenEmbeddings`.
        shortlist: the target tokens that source tokens propose.
        width: number of tokens in a list, `W`.

    Raises:
        ValueError: the width or the shortlist does not fit the model.
        TypeError: the model has no `TokenEmbeddings`.
    """

    def __init__(self, model: Any, shortlist: Shortlist, width: int) -> None:
        copy_attributes(model, self)
        self.model = model
        if not isinstance(getattr(model, "embeddings", None), TokenEmbeddings):
            raise TypeError(
                "`shortlist` needs a model that predicts tokens by one matrix, such as "
                f"Transformer or Seq2SeqLSTM. Received: {type(model).__name__}"
            )
        shortlist.check(model.source_vocabulary_size, model.vocabulary_size)
        first = max(model.pad_id, model.bos_id, model.eos_id, 1) + 1
        # All lists have these in common.
        check_integer("shortlist_width", width, minimum=first + len(shortlist.common))
        self.vocabulary_size = min(width, model.vocabulary_size)
        size, count = model.vocabulary_size, shortlist.by_source.shape[1]
        # Tokens with larger values enter a list first: common ones, then the best
        # proposals of all source tokens, then the second best ones.
        always = np.zeros(size, "float32")
        always[shortlist.common] = always[:first] = count + 1
        self.always = shared_tensor(constant(always))
        # One more column and token, where there is no proposal.
        proposed = np.where(shortlist.by_source < 0, size, shortlist.by_source)
        proposed[model.pad_id] = size
        self.proposed = shared_tensor(constant(proposed.astype("int32")))
        self.ranks = np.arange(count, 0, -1, dtype="float32")

    def inference_copy(self) -> Any:
        """A copy whose model computes in the graph that is being traced."""
        return shallow_copy(self, model=for_decoding(self.model))

    def tokens(self, source_ids: Tensor) -> Tensor:
        """The list of each sentence: int32 `[B, W]`, in ascending order."""
        size = self.model.vocabulary_size
        batch, length = tf.unstack(tf.shape(source_ids))
        proposed = take(self.proposed, source_ids)  # [B, S, n]
        rows = tf.range(batch)[:, None, None] * (size + 1)
        ranks = tf.tile(self.ranks, [batch * length])
        scores = tf.math.unsorted_segment_max(
            ranks, tf.reshape(proposed + rows, [-1]), batch * (size + 1)
        )
        scores = tf.reshape(scores, [batch, size + 1])[:, :size]
        _, found = tf.math.top_k(tf.maximum(scores, self.always), self.vocabulary_size)
        return tf.sort(found, axis=-1)

    def encode(self, source_ids: Tensor) -> NestedTensors:
        """The context of the model, the lists, and the embeddings of their tokens."""
        tokens = self.tokens(source_ids)
        outputs = self.model.embeddings.columns(tokens)
        context = self.model.encode(source_ids)
        return {"model": context, "tokens": tokens, "outputs": outputs}

    def initial_state(
        self, context: NestedTensors, beams: int, max_length: int
    ) -> NestedTensors:
        """As in the model."""
        return self.model.initial_state(context["model"], beams, max_length)

    def step(
        self,
        tokens: Tensor,
        position: Tensor,
        state: NestedTensors,
        context: NestedTensors,
        **options: Any,
    ) -> tuple[Any, ...]:
        """As in the model, with indices into the lists as tokens."""
        ids = take(context["tokens"], tokens, axis=1, batch_axes=1)
        columns = context["outputs"]

        def logits(x: Tensor) -> Tensor:
            found = x @ columns["kernel"]
            return found + columns["bias"] if "bias" in columns else found

        # The owner of the method may have other weights than the encoder.
        model = self.model.step.__self__
        embed_step = model.embeddings.embed_step
        embeddings = SimpleNamespace(embed_step=embed_step, logits=logits)
        limited = shallow_copy(model, embeddings=embeddings)
        return limited.step(ids, position, state, context["model"], **options)

    def restored(self, found: Hypotheses, source_ids: Tensor) -> Hypotheses:
        """Hypotheses with ids `[B, N, T]` instead of indices into the lists."""
        tokens = self.tokens(source_ids)
        ids = take(tokens, found.ids, axis=1, batch_axes=1)
        return found._replace(ids=ids)
