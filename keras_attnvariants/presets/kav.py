"""The variants of You et al. (2020) in sizes that train on a CPU: our own presets.

The settings are starting points, not results; figures are measured, not published.
"""

from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import Training
from keras_attnvariants.presets.registry import register
from keras_attnvariants.presets.variants import MAIN

PAPER = "none: a configuration of this project"

# Deep stacks of post-normalisation need a long warm-up, which small budgets lack.
NORMALIZATION = "pre"


def cosine(peak: float, warmup_steps: int, steps: int) -> dict:
    """A linear rise to the highest rate, then half a cosine down to 2 % of it."""
    config = {
        "initial_learning_rate": 0.0,
        "decay_steps": steps - warmup_steps,
        "alpha": 0.02,
        "warmup_target": peak,
        "warmup_steps": warmup_steps,
    }
    return {"class_name": "CosineDecay", "config": config}


OPTIONS = {
    # The tiny Transformer of the Multi30k literature; captions have few words, and a
    # small vocabulary leaves most of the time to the layers.
    "multi30k": {
        "vocabulary_size": 2000,
        "num_layers": 4,
        "hidden_dim": 128,
        "intermediate_dim": 256,
        "num_heads": 4,
        "dropout": 0.2,
    },
    "bible": {
        "vocabulary_size": 4000,
        "num_layers": 3,
        "hidden_dim": 256,
        "intermediate_dim": 512,
        "num_heads": 4,
        "dropout": 0.05,
    },
}

TRAINING = {
    "multi30k": Training(
        schedule=cosine(peak=3e-3, warmup_steps=1000, steps=24000),
        batch_tokens=2048,
        steps=24000,
        label_smoothing=0.1,
        averaged_checkpoints=4,
        vocabulary="joint SentencePiece, 2,000 tokens",
    ),
    "bible": Training(
        schedule=cosine(peak=1.5e-3, warmup_steps=400, steps=5000),
        batch_tokens=2048,
        steps=5000,
        label_smoothing=0.1,
        averaged_checkpoints=4,
        vocabulary="joint SentencePiece, 4,000 tokens",
    ),
}

for _corpus, _sizes in OPTIONS.items():
    for _name, _variant in MAIN.items():
        _options = {
            **_sizes,
            "normalization": NORMALIZATION,
        }
        if _variant.cross_attention == "gaussian":
            _options["length_ratio"] = 1.0
        register(
            Preset(
                name=f"kav/{_name}/{_corpus}",
                paper=PAPER,
                architecture=_variant.architecture,
                options=_options,
                training=TRAINING[_corpus],
                notes="Ours; settings to start from, nothing measured yet.",
            )
        )
