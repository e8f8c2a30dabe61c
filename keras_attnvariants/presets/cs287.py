"""Chen, Ling and Rivera 2019: two LSTM models and two small Transformers.

A class report. The recurrent models and the data follow the released code; of the
Transformers the report gives depth, heads, width and dropout, and what it leaves open
is said in the notes of the presets.
"""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from keras_attnvariants.models import Seq2SeqLSTM
from keras_attnvariants.models import Transformer
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import Published
from keras_attnvariants.presets.preset import Training
from keras_attnvariants.presets.registry import register
from keras_attnvariants.presets.variants import layer

PAPER = "Chen, Ling and Rivera 2019, a report for CS287 at Harvard University"

# Words seen five times or more in the training data.
VOCABULARIES = {"vocabulary_size": 11_560, "source_vocabulary_size": 13_353}

TRAINING = Training(
    # A rate that never changes.
    schedule=layer("LinearDecay", initial=1e-3, final=1e-3, steps=1),
    batch_sentences=32,
    batch_tokens=800,
    epochs=10,
    steps=37_500,  # for about 120,000 pairs
    label_smoothing=0.0,
    beta_2=0.999,
    epsilon=1e-8,
    beam_size=3,
    length_penalty=0.0,
    extra_length=30,
    vocabulary="spaCy words seen at least 5 times, one vocabulary per language",
    metric="multi-bleu.perl on cased tokens, apparently of tst2013, the validation set",
)

DATA_NOTE = (
    "Pairs of at most 20 tokens on either side, for training and validation; training "
    "ends when the validation loss rises, and the best epoch is kept."
)

TRANSFORMER_NOTE = (
    "Width of heads and of the feed-forward sub-layers are not published: the model "
    "width by the number of heads, rounded up, and 800 are assumed. The released "
    "modules have errors (one projection for queries, keys and values; a softmax over "
    "queries; a decoder that drops its self-attention) that may explain the figures; "
    "this is the Transformer that was meant."
)


def lstm(**options: Any) -> dict[str, Any]:
    """The arguments of `Seq2SeqLSTM`, in the form of its `get_config`."""
    return options


def transformer(
    num_heads: int, hidden_dim: int, position_dim: int, dropout: float, **options: Any
) -> dict[str, Any]:
    """The arguments of `Transformer`, in the form of its `get_config`.

    Args:
        num_heads: heads of every attention layer; need not divide the width.
        hidden_dim: width of the model.
        position_dim: how much of that width the positions take.
        dropout: rate, also of attention weights.
        **options: further arguments, handed on as they are.
    """
    attention = layer(
        "DotProductAttention",
        num_heads=num_heads,
        key_dim=-(-hidden_dim // num_heads),
        dropout=dropout,
        use_bias=True,
    )
    return {
        **options,
        "hidden_dim": hidden_dim,
        "dropout": dropout,
        "encoder_attention": attention,
        "decoder_attention": attention,
        "cross_attention": attention,
        "positions": layer(
            "ConcatenatedPositions", position_dim=position_dim, max_position=20
        ),
        "embedding_scale": False,
        "normalization": "pre",
        "tie_embeddings": "none",
        "softmax_bias": True,
    }


def count_lstm(config: Mapping[str, Any]) -> int:
    """Number of parameters of a `Seq2SeqLSTM`.

    An LSTM of `u` units that reads `x` numbers has `4 u (x + u + 1)`. Embeddings of
    width `e` have `e` per token of source and target, the output projection `d + 1`
    per token of the target, and attention adds the context to what the decoder reads.
    """
    d, e = config["hidden_dim"], config["embedding_dim"]
    directions = 1 + config["bidirectional"]
    u = d // directions
    encoder = directions * 4 * u * (e + u + 1)
    decoder = 4 * d * (e + config["attention"] * d + d + 1)
    return encoder + decoder + count_tables(config, e)


def count_transformer(config: Mapping[str, Any]) -> int:
    """Number of parameters of a `Transformer` as it is configured here.

    With width `d`, `n = num_heads * key_dim` and feed-forward width `f`: `4 d n` and
    `3 n + d` for the matrices and biases of an attention layer, `2 d f + f + d` for a
    feed-forward sub-layer, `2 d` for every normalisation.
    """
    d, f = config["hidden_dim"], config["intermediate_dim"]
    heads = config["encoder_attention"]["config"]
    n = heads["num_heads"] * heads["key_dim"]
    attention = 4 * d * n + 3 * n + d + 2 * d
    feed_forward = 2 * d * f + f + d + 2 * d
    blocks = config["num_layers"] * (3 * attention + 2 * feed_forward)
    positions = config["positions"]["config"]
    width = positions["position_dim"]
    table = (positions["max_position"] + 1) * width
    return blocks + 2 * 2 * d + table + count_tables(config, d - width)


def count_tables(config: Mapping[str, Any], embedding_dim: int) -> int:
    """Parameters of both embeddings and of an output projection with bias."""
    target = config["vocabulary_size"]
    source = config["source_vocabulary_size"] or target
    return (source + target) * embedding_dim + target * (config["hidden_dim"] + 1)


def preset(
    name: str,
    model: type,
    architecture: Callable[..., dict[str, Any]],
    count: Callable[[Mapping[str, Any]], int],
    options: Mapping[str, Any],
    figures: tuple[float, float, float],
    notes: str = "",
) -> Preset:
    """A preset of the report; `figures` are loss, perplexity and BLEU."""
    loss, perplexity, bleu = figures
    return Preset(
        name=f"cs287/{name}/iwslt16-de-en",
        paper=PAPER,
        architecture=architecture,
        options={**VOCABULARIES, **options},
        training=TRAINING,
        published=Published({"de-en": bleu}, loss=loss, perplexity=perplexity),
        notes=f"{DATA_NOTE} {notes}".strip(),
        model=model,
        count=count,
    )


LSTMS = {
    "seq2seq": (
        {"hidden_dim": 100, "bidirectional": False, "attention": False},
        (3.23, 25.36, 6.32),
        "Its validation loss is flat from epoch 8 on. Units and vocabularies are those "
        "of the released code and of another solution of the same assignment.",
    ),
    "seq2seq-attn": (
        {"hidden_dim": 200, "bidirectional": True, "attention": True},
        (2.71, 15.05, 17.77),
        "Training ended after epoch 7. The released code masks no padding: build with "
        "`mask_padding=False` for that.",
    ),
}

TRANSFORMERS = {
    "megatron": ({"num_layers": 3, "num_heads": 4, "dropout": 0.2}, (2.7, 15.0, 9.68)),
    "soundwave": ({"num_layers": 4, "num_heads": 3, "dropout": 0.1}, (2.8, 16.0, 7.08)),
}

for _name, (_options, _figures, _notes) in LSTMS.items():
    _options = {"embedding_dim": 100, **_options}
    register(
        preset(_name, Seq2SeqLSTM, lstm, count_lstm, _options, _figures, _notes),
    )
for _name, (_options, _figures) in TRANSFORMERS.items():
    _options = {
        "hidden_dim": 200,
        "intermediate_dim": 800,
        "position_dim": 20,
        **_options,
    }
    register(
        preset(
            _name,
            Transformer,
            transformer,
            count_transformer,
            _options,
            _figures,
            TRANSFORMER_NOTE,
        )
    )
