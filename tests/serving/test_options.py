"""Options of exported models."""

from types import SimpleNamespace

from keras_attnvariants.serving.options import Options


def test_buckets_grow_up_to_the_limit():
    def buckets(max_tokens):
        return Options(4, 0.6, 4, 64, 4096, max_tokens).buckets

    assert buckets(256) == (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
    assert buckets(600)[-4:] == (256, 384, 512, 600)
    assert buckets(100) == (8, 16, 24, 32, 48, 64, 96, 100)
    assert buckets(32) == (8, 16, 24, 32)
    assert buckets(5) == (5,)


def test_documents_are_longer_than_sentences():
    model = SimpleNamespace(max_length=2000, vocabulary_size=100)
    chosen = Options.of(model)
    assert (chosen.max_tokens, chosen.max_characters) == (256, 4096)
    model.task = "summarisation"
    chosen = Options.of(model)
    assert (chosen.max_tokens, chosen.max_characters) == (1024, 16384)
    assert chosen.buckets[-3:] == (512, 768, 1024)
