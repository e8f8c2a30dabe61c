"""Options of exported models."""

from types import SimpleNamespace

import pytest

from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.options import sizes_up_to


def test_buckets_grow_up_to_the_limit():
    def buckets(max_tokens):
        return Options(4, 0.6, 4, 64, 4096, max_tokens).buckets

    assert buckets(256) == (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
    assert buckets(600)[-4:] == (256, 384, 512, 600)
    assert buckets(100) == (8, 16, 24, 32, 48, 64, 96, 100)
    assert buckets(32) == (8, 16, 24, 32)
    assert buckets(5) == (5,)


@pytest.mark.parametrize("largest", [1, 2, 3, 7, 33, 48, 64, 100])
def test_sizes_grow_by_at_most_a_half_up_to_the_largest(largest):
    sizes = sizes_up_to(largest)
    assert sizes[0] == 1 and sizes[-1] == largest
    for size, following in zip(sizes, sizes[1:], strict=False):
        # One sentence more than a size is padded to the next size.
        assert size < following <= max(size * 1.5, size + 1)


def test_documents_are_longer_than_sentences():
    model = SimpleNamespace(max_length=2000, vocabulary_size=100)
    chosen = Options.of(model)
    assert (chosen.max_tokens, chosen.max_characters) == (256, 4096)
    model.task = "summarisation"
    chosen = Options.of(model)
    assert (chosen.max_tokens, chosen.max_characters) == (1024, 16384)
    assert chosen.buckets[-3:] == (512, 768, 1024)
