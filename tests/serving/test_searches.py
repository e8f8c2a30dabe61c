"""Searches of exported models, by the width of their sources."""

import pytest

from keras_attnvariants.serving import export
from tests.serving.tools import sharp_model
from tests.serving.tools import translate_here


@pytest.mark.slow
def test_a_long_text_uses_a_wider_bucket(tokenizer, server, texts, tmp_path):
    model = sharp_model("hc-all", max_length=100)
    path = export(model, tokenizer, tmp_path, max_tokens=70)
    long = [" ".join(texts[i : i + 4])[:60] for i in range(4)]
    for batch in (texts[:2], [texts[0], *long]):
        _, expected = translate_here(model, tokenizer, batch)
        served = server.call(path, "serving_default", text=batch)
        assert served["translations"].tolist() == expected
