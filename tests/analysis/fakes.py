"""Models with known weights and probabilities, and a tokenizer of words."""

import numpy as np
from keras import ops

PAD, UNK, BOS, EOS = range(4)


class Words:
    """One token per word, numbered in the order of first occurrence."""

    pad_id, unk_id, bos_id, eos_id = PAD, UNK, BOS, EOS

    def __init__(self):
        self.ids = {}

    @property
    def target(self):
        return self

    def encode(self, texts):
        return [
            [self.ids.setdefault(word, len(self.ids) + 4) for word in text.split()]
            for text in texts
        ]


class KnownWeights:
    """Has the same weights for every sentence, cut off at its end.

    Args:
        **blocks: weights `[H, T, S]` by sub-layer, for the longest sentence.
    """

    pad_id, bos_id, max_length = PAD, BOS, 16

    def __init__(self, **blocks):
        self.blocks = blocks

    def attention_scores(self, inputs):
        source, target = inputs["source_ids"], inputs["target_ids"]
        scores = {}
        for block, sublayers in self.blocks.items():
            queries = source if block.startswith("encoder") else target
            scores[block] = {
                name: self.on_batch(
                    weights, queries, target if self_in_decoder else source
                )
                for name, weights in sublayers.items()
                for self_in_decoder in [block.startswith("decoder") and name == "self"]
            }
        return scores

    def on_batch(self, weights, queries, keys):
        weights = np.asarray(weights, "float32")
        room = [(0, 0)] + [(0, self.max_length)] * 2
        whole = np.pad(weights, room)[:, : queries.shape[1], : keys.shape[1]]
        real = [ops.cast(ops.not_equal(ids, PAD), "float32") for ids in (queries, keys)]
        return whole * real[0][:, None, :, None] * real[1][:, None, None, :]


class KnownProbabilities:
    """Gives every token the same probability at every position.

    Args:
        log_probs: log probabilities of the tokens, `[V]`.
    """

    pad_id, bos_id, eos_id, max_length = PAD, BOS, EOS, 64

    def __init__(self, log_probs):
        self.logits = np.asarray(log_probs, "float32")
        self.vocabulary_size = len(self.logits)

    def __call__(self, inputs, training=None):
        shape = (*ops.shape(inputs["target_ids"]), self.vocabulary_size)
        return ops.broadcast_to(ops.convert_to_tensor(self.logits), shape)


def looks(*positions, length=None):
    """One head `[1, T, S]` that looks at one given position from each query."""
    return np.eye(length or len(positions))[None, list(positions)]
