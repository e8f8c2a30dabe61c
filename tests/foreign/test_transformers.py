"""Random models of `transformers` and the same ones here: logits and tokens.

They run where PyTorch, `transformers` and `safetensors` are installed.
"""

import json

import numpy as np
import pytest

from keras_attnvariants.foreign import converted
from keras_attnvariants.foreign import read_huggingface
from tests.foreign import folders

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("safetensors")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses"),
]

SOURCE = folders.subwords(folders.ENGLISH)
TARGET = folders.subwords(folders.GERMAN)

SHAPES = {
    "shallow": {"d_model": 32, "layers": (1, 1), "heads": 2, "activation": "relu"},
    "deep encoder": {"d_model": 48, "layers": (3, 1), "heads": 8, "activation": "gelu"},
    "deep decoder": {"d_model": 64, "layers": (1, 3), "heads": 4, "activation": "relu"},
    "two vocabularies": {
        **{"d_model": 32, "layers": (2, 2), "heads": 4, "activation": "swish"},
        "separate": True,
    },
}


def written(folder, d_model, layers, heads, activation, separate=False):
    """Writes a random model; returns it and its tokens."""
    sides = [folders.numbered(folders.pieces(SOURCE, TARGET))] * 2
    if separate:
        sides = [folders.numbered(folders.pieces(model)) for model in (SOURCE, TARGET)]
        # The padding has one id in both.
        shortest = min(map(len, sides))
        sides = [side[:shortest] for side in sides]
    pad = len(sides[1])
    torch.manual_seed(0)
    theirs = transformers.MarianMTModel(
        transformers.MarianConfig(
            vocab_size=len(sides[0]) + 1,
            decoder_vocab_size=len(sides[1]) + 1,
            share_encoder_decoder_embeddings=not separate,
            d_model=d_model,
            encoder_layers=layers[0],
            decoder_layers=layers[1],
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            encoder_ffn_dim=2 * d_model,
            decoder_ffn_dim=2 * d_model,
            activation_function=activation,
            scale_embedding=True,
            max_position_embeddings=64,
            pad_token_id=pad,
            decoder_start_token_id=pad,
            eos_token_id=0,
        )
    ).eval()
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            if "positions" not in name:
                weight.add_(torch.randn_like(weight) * 0.2)
        theirs.final_logits_bias.normal_()
    theirs.save_pretrained(folder)
    names = ("vocab.json", "target_vocab.json")[: 1 + separate]
    for name, side in zip(names, sides, strict=False):
        ids = {token: i for i, token in side} | {"<pad>": pad}
        (folder / name).write_text(json.dumps(ids))
    (folder / "source.spm").write_bytes(SOURCE)
    (folder / "target.spm").write_bytes(TARGET)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"separate_vocabs": separate})
    )
    return theirs, [{token: i for i, token in side} for side in sides]


@pytest.mark.parametrize("shape", SHAPES)
def test_logits_and_tokens_are_those_of_transformers(tmp_path, shape):
    theirs, ids = written(tmp_path, **SHAPES[shape])
    model, tokenizer = converted(read_huggingface(tmp_path))
    their_tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path)
    sentences = [*folders.ENGLISH.splitlines(), "naïve zebras"]
    found = [their_tokenizer(text)["input_ids"] for text in sentences]
    pieces = tokenizer.pieces
    assert found == [
        [*(ids[0].get(pieces[i], 1) for i in row), 0]
        for row in tokenizer.encode(sentences)
    ]
    rng = np.random.default_rng(0)
    known = [i for i, p in enumerate(tokenizer.target.pieces) if p in ids[1]]
    for source, row in zip(found, tokenizer.encode(sentences), strict=True):
        target = rng.choice(known[2:], 9)
        pad = theirs.config.pad_token_id
        theirs_target = [pad, *(ids[1][tokenizer.target.pieces[i]] for i in target)]
        with torch.no_grad():
            expected = theirs(
                torch.tensor([source]), decoder_input_ids=torch.tensor([theirs_target])
            ).logits[0]
        inputs = {
            "source_ids": np.array([row]),
            "target_ids": np.array([[2, *target]]),
        }
        logits = np.asarray(model(inputs))[0]
        columns = [1, 0, *(ids[1][tokenizer.target.pieces[i]] for i in known[2:])]
        np.testing.assert_allclose(logits[:, known], expected[:, columns], atol=1e-4)
        np.testing.assert_allclose(logits[:, 2], expected[:, pad], atol=1e-4)
