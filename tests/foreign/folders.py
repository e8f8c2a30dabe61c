"""Small random models as Marian and Hugging Face store them."""

import functools
import io
import json
from pathlib import Path

import numpy as np
import sentencepiece

from keras_attnvariants.data import sentencepiece_models

WIDTH, HIDDEN, HEADS, LAYERS = 16, 24, 2, {"encoder": 2, "decoder": 1}

ENGLISH = """the small house is old
a mouse lives in the house
the old man sees a horse
seven tables stand in the garden
she reads and he listens
water and bread on the table"""
GERMAN = """das kleine Haus ist alt
eine Maus wohnt im Haus
der alte Mann sieht ein Pferd
sieben Tische stehen im Garten
sie liest und er hört zu
Wasser und Brot auf dem Tisch"""


@functools.cache
def subwords(text, size=60, **options):
    """A SentencePiece model of some lines."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text.splitlines()),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def pieces(*models):
    """The pieces of models, each once, in an order that no model has."""
    found = {p for m in models for p in sentencepiece_models.ordinary_pieces(m)}
    return sorted(found, key=lambda piece: piece[::-1])


def arrays(source_size, target_size=None, seed=0):
    """Random weights by Marian's names; one table unless there are two sizes."""
    rng = np.random.default_rng(seed)
    found = {}

    def add(name, *shape, gain=1.0, mean=0.0):
        values = mean + gain * rng.normal(size=shape)
        found[name] = values.astype("float32")

    def add_layer(prefix, kinds, inner=WIDTH):
        for kind in kinds:
            rows, columns = {"1": (WIDTH, inner), "2": (inner, WIDTH)}.get(
                kind, (WIDTH, WIDTH)
            )
            add(f"{prefix}_W{kind}", rows, columns, gain=rows**-0.5)
            add(f"{prefix}_b{kind}", 1, columns, gain=0.1)
        norm = f"{prefix}_{'ffn' if kinds == '12' else 'Wo'}_ln"
        add(f"{norm}_scale", 1, WIDTH, gain=0.1, mean=1.0)
        add(f"{norm}_bias", 1, WIDTH, gain=0.1)

    for stack, depth in LAYERS.items():
        for number in range(1, depth + 1):
            prefix = f"{stack}_l{number}"
            add_layer(f"{prefix}_self", "qkvo")
            if stack == "decoder":
                add_layer(f"{prefix}_context", "qkvo")
            add_layer(f"{prefix}_ffn", "12", HIDDEN)
    tables = {"Wemb": source_size}
    if target_size is not None:
        tables = {"encoder_Wemb": source_size, "decoder_Wemb": target_size}
    for name, size in tables.items():
        add(name, size, WIDTH, gain=WIDTH**-0.5)
    add("decoder_ff_logit_out_b", 1, [*tables.values()][-1], gain=0.5)
    return found


def write_marian(folder, weights, vocabularies, models, **options):
    """Writes `model.npz`, and the vocabularies as `.yml` or, if bytes, `.spm`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "type": "transformer",
        "enc-depth": LAYERS["encoder"],
        "dec-depth": LAYERS["decoder"],
        "transformer-heads": HEADS,
        "transformer-dim-ffn": HIDDEN,
        "transformer-ffn-activation": "relu",
        "transformer-postprocess": "dan",
        "dim-vocabs": [1, 1],
    } | options
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in config.items())
    written = np.frombuffer(text.encode() + b"\0", "int8")
    np.savez(folder / "model.npz", **weights, **{"special:model.yml": written})
    for side, model in zip(("source", "target"), models, strict=False):
        (folder / f"{side}.spm").write_bytes(model)
    for name, tokens in vocabularies.items():
        lines = [f"{json.dumps(t, ensure_ascii=False)}: {i}" for i, t in tokens]
        (folder / name).write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def numbered(tokens):
    """Tokens after Marian's two special ones, with their ids."""
    return list(enumerate(["</s>", "<unk>", *tokens]))


def write_huggingface(folder, weights, tokens, models, targets=None, **options):
    """Writes a folder of MarianMT with the same weights, and `<pad>` as the last id."""
    import safetensors.numpy

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    pad = len(targets or tokens)
    config = {
        "model_type": "marian",
        "d_model": WIDTH,
        "activation_function": "swish",
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": targets is None,
        "max_position_embeddings": 64,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": 0,
        "num_beams": 3,
    }
    for stack, depth in LAYERS.items():
        config |= {
            f"{stack}_layers": depth,
            f"{stack}_attention_heads": HEADS,
            f"{stack}_ffn_dim": HIDDEN,
        }
    (folder / "config.json").write_text(json.dumps(config | options))
    names = {"vocab.json": tokens, "target_vocab.json": targets}
    for name, found in names.items():
        if found is not None:
            ids = {token: i for i, token in found} | {"<pad>": len(found)}
            (folder / name).write_text(json.dumps(ids))
    for side, model in zip(("source", "target"), models, strict=True):
        (folder / f"{side}.spm").write_bytes(model)
    safetensors.numpy.save_file(renamed(weights), folder / "model.safetensors")
    return folder


def with_padding(weights):
    """The weights with a row of zeros for `<pad>`, whose logits have a bias of 0."""
    return {
        name: np.concatenate([x, np.zeros_like(x[:1])])
        if name.endswith("Wemb")
        else np.pad(x, [(0, 0), (0, 1)])
        if name.endswith("logit_out_b")
        else x
        for name, x in weights.items()
    }


def renamed(weights):
    """Weights by the names of Hugging Face, whose matrices are transposed."""
    layers = {"self": "self_attn", "context": "encoder_attn"}
    norms = {
        "self_Wo": "self_attn_layer_norm",
        "context_Wo": "encoder_attn_layer_norm",
        "ffn_ffn": "final_layer_norm",
    }
    letters = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}
    others = {
        "Wemb": "model.shared.weight",
        "encoder_Wemb": "model.encoder.embed_tokens.weight",
        "decoder_Wemb": "model.decoder.embed_tokens.weight",
        "decoder_ff_logit_out_b": "final_logits_bias",
    }
    found = {}
    for name, x in weights.items():
        if name in others:
            found[others[name]] = x
            continue
        stack, layer, rest = name.split("_", 2)
        place = f"model.{stack}.layers.{int(layer[1:]) - 1}"
        if "_ln_" in rest:
            norm, kind = rest.split("_ln_")
            kind = {"scale": "weight", "bias": "bias"}[kind]
            found[f"{place}.{norms[norm]}.{kind}"] = x[0]
            continue
        part, weight = rest.split("_")
        letter, number = weight
        module = f"fc{number}" if part == "ffn" else f"{layers[part]}.{letters[number]}"
        kind, x = ("weight", x.T) if letter == "W" else ("bias", x[0])
        found[f"{place}.{module}.{kind}"] = np.ascontiguousarray(x)
    return found
