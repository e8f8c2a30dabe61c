"""Chen, Ling and Rivera 2019: two LSTM models and two small Transformers.

A course report. The LSTM models and the data follow the released code. For the
Transformers the report gives depth, heads, width and dropout; the notes of the presets
say what it leaves open.
"""

from typing import Any

from keras_attnvariants.models import Seq2SeqLSTM
from keras_attnvariants.models import Transformer
from keras_attnvariants.presets.preset import PLACES
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import TrainingSettings
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.presets.preset import read_table
from keras_attnvariants.presets.registry import register

PAPER = "Chen, Ling and Rivera 2019, a report for CS287 at Harvard University"

# Words that occur at least five times in the training data.
VOCABULARIES = {"vocabulary_size": 11_560, "source_vocabulary_size": 13_353}

TRAINING = TrainingSettings(
    # A constant learning rate.
    schedule=layer_config("LinearDecay", initial=1e-3, final=1e-3, steps=1),
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
    vocabulary="spaCy words that occur at least 5 times, one vocabulary per language",
    metric="multi-bleu.perl on cased tokens, apparently of tst2013, the validation set",
)

DATA_NOTE = (
    "Training and validation use pairs of at most 20 tokens on either side. Training "
    "ends when the validation loss rises, and the best epoch is kept. The released "
    "beam search returns the best 10 hypotheses of at most 50 tokens."
)

TRANSFORMER_NOTE = (
    "The widths of heads and of feed-forward sub-layers are not published: the width "
    "of the model divided by the number of heads, rounded up, and 800 are assumed. The "
    "released modules have errors that may explain the scores: one projection for "
    "queries, keys and values; a softmax over queries; a decoder that drops its "
    "self-attention; a decoder mask that shows the future and hides the past; layer "
    "normalization with a bias that starts at 1 and an epsilon that is added to the "
    "unbiased standard deviation. This preset is the Transformer that was intended. "
    "Unlike the released modules, it has one table of positions for source and target, "
    "dropout on embeddings, and none inside feed-forward sub-layers."
)


def transformer(
    num_heads: int, hidden_dim: int, position_dim: int, dropout: float, **options: Any
) -> dict[str, Any]:
    """The arguments of `Transformer`, in the form of its `get_config`.

    Args:
        num_heads: number of heads per attention layer; need not divide the width.
        hidden_dim: width of the model.
        position_dim: width of the position embeddings, which is part of `hidden_dim`.
        dropout: rate, also for attention weights.
        **options: further arguments, passed on unchanged.
    """
    attention = layer_config(
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
        **dict.fromkeys(PLACES, attention),
        "positions": layer_config(
            "ConcatenatedPositions", position_dim=position_dim, max_position=20
        ),
        "embedding_scale": False,
        "normalization": "pre",
        "tie_embeddings": "none",
        "softmax_bias": True,
    }


CORPUS = "iwslt16-de-en"

MODELS = read_table(
    """
    model        embedding_dim hidden_dim bidirectional attention loss perplexity bleu
    seq2seq      100           100        False         False     3.23 25.36      6.32
    seq2seq-attn 100           200        True          True      2.71 15.05      17.77
    """,
    CORPUS,
) | read_table(
    """
    model      num_layers num_heads dropout loss perplexity bleu
    megatron   3          4         0.2     2.7  15.0       9.68
    soundwave  4          3         0.1     2.8  16.0       7.08
    """,
    CORPUS,
)

SIZES = {"hidden_dim": 200, "intermediate_dim": 800, "position_dim": 20}

NOTES = {
    "seq2seq": "The validation loss is flat from epoch 8 on. Units and vocabularies "
    "are those of the released code and of another solution of the same assignment.",
    "seq2seq-attn": "Training ended after epoch 7. The released code does not mask "
    "padding; build with `mask_padding=False` for the same.",
    "megatron": f"{TRANSFORMER_NOTE} An epoch took 15 minutes on Google Colab.",
    "soundwave": f"{TRANSFORMER_NOTE} An epoch took more than 20 minutes on Colab.",
}

for _name, (_options, _figures) in MODELS.items():
    _is_lstm = "num_layers" not in _options
    register(
        Preset(
            name=f"cs287/{_name}/{CORPUS}",
            paper=PAPER,
            architecture=dict if _is_lstm else transformer,
            options={**VOCABULARIES, **({} if _is_lstm else SIZES), **_options},
            training=TRAINING,
            published=_figures,
            notes=f"{DATA_NOTE} {NOTES[_name]}",
            model=Seq2SeqLSTM if _is_lstm else Transformer,
        )
    )
