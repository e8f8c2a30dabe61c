"""Chen, Ling and Rivera 2019: two LSTM models and two small Transformers.

A class report. The recurrent models and the data follow the released code; of the
Transformers the report gives depth, heads, width and dropout, and what it leaves open
is said in the notes of the presets.
"""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from keras_attnvariants.models import Seq2SeqLSTM
from keras_attnvariants.presets.counting import count_lstm_parameters
from keras_attnvariants.presets.layers import layer
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import Published
from keras_attnvariants.presets.preset import Training
from keras_attnvariants.presets.registry import register

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
    "ends when the validation loss rises, and the best epoch is kept. The released "
    "beam search returns the best 10 hypotheses, none longer than 50 tokens."
)

TRANSFORMER_NOTE = (
    "Width of heads and of the feed-forward sub-layers are not published: the model "
    "width by the number of heads, rounded up, and 800 are assumed. The released "
    "modules have errors that may explain the figures: one projection for queries, "
    "keys and values; a softmax over queries; a decoder that drops its self-attention; "
    "a decoder mask that shows the future and hides the past; layer normalisation with "
    "a bias that starts at 1 and an epsilon added to the unbiased standard deviation. "
    "This is the Transformer that was meant."
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


def preset(
    name: str,
    architecture: Callable[..., dict[str, Any]],
    options: Mapping[str, Any],
    figures: tuple[float, float, float],
    notes: str,
    **model: Any,
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
        notes=f"{DATA_NOTE} {notes}",
        **model,
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
    "megatron": (
        {"num_layers": 3, "num_heads": 4, "dropout": 0.2},
        (2.7, 15.0, 9.68),
        "An epoch took 15 minutes on Google Colab.",
    ),
    "soundwave": (
        {"num_layers": 4, "num_heads": 3, "dropout": 0.1},
        (2.8, 16.0, 7.08),
        "An epoch took more than 20 minutes on Google Colab.",
    ),
}

LSTM_SIZES = {"embedding_dim": 100}
TRANSFORMER_SIZES = {"hidden_dim": 200, "intermediate_dim": 800, "position_dim": 20}

for _name, (_options, _figures, _notes) in LSTMS.items():
    _options = {**LSTM_SIZES, **_options}
    _model = {"model": Seq2SeqLSTM, "count": count_lstm_parameters}
    register(preset(_name, lstm, _options, _figures, _notes, **_model))
for _name, (_options, _figures, _notes) in TRANSFORMERS.items():
    _options = {**TRANSFORMER_SIZES, **_options}
    _notes = f"{TRANSFORMER_NOTE} {_notes}"
    register(preset(_name, transformer, _options, _figures, _notes))
