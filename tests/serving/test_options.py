"""Options of exported models."""

from keras_attnvariants.serving.options import Options


def test_buckets_double_up_to_the_limit():
    def buckets(max_tokens):
        return Options(4, 0.6, 4, 64, 4096, max_tokens).buckets

    assert buckets(256) == (32, 64, 128, 256)
    assert buckets(100) == (32, 64, 100)
    assert buckets(32) == (32,)
    assert buckets(5) == (5,)
