"""Draw the weights that result from the linear biases of ALiBi alone."""

from pathlib import Path

import numpy as np

import keras_attnvariants as kav
from keras_attnvariants.evaluation.attention_maps import Panel
from keras_attnvariants.evaluation.attention_maps import figure_of
from keras_attnvariants.evaluation.attention_maps import save

SENTENCE = "<s> A man in a red jacket rides a horse on the beach".split()
HEADS = 4
PATH = Path(__file__).parent / "pictures" / "distance_biases.png"


def main(path: Path = PATH) -> None:
    """Draws all heads of a layer whose queries are all zero."""
    layer = kav.AlibiAttention(num_heads=HEADS)
    x = np.zeros((1, len(SENTENCE), HEADS), "float32")
    _, weights = layer(x, x, return_attention_scores=True)
    panels = [
        Panel(f"head {head + 1}\nslope 1/{round(1 / slope)}", found, SENTENCE, SENTENCE)
        for head, (slope, found) in enumerate(
            zip(layer.slopes, np.array(weights[0]), strict=True)
        )
    ]
    save(figure_of([panels[:2], panels[2:]]), path)


if __name__ == "__main__":
    main()
