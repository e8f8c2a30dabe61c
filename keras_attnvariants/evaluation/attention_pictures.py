"""Pictures of what models attend to, one for each task.

They need matplotlib, an optional dependency.
"""

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from keras_attnvariants.evaluation.aligned_translations import Words
from keras_attnvariants.evaluation.aligned_translations import words
from keras_attnvariants.evaluation.attention_maps import INK
from keras_attnvariants.evaluation.attention_maps import AttentionExample
from keras_attnvariants.evaluation.attention_maps import LayerWeights
from keras_attnvariants.evaluation.attention_maps import figure_of
from keras_attnvariants.models.speech import HOP
from keras_attnvariants.models.speech import NUM_MELS
from keras_attnvariants.models.speech import SAMPLE_RATE
from keras_attnvariants.models.speech import WINDOW
from keras_attnvariants.models.speech import mel_filters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# In inches: width of a picture, height of a spectrogram, of a token below it, and of
# axes with their labels.
WIDTH, SPECTROGRAM, TOKEN, AXES = 8.0, 1.9, 0.24, 0.9
# In points, of which an inch has 72: size of letters, space, height of lines, margin.
LETTERS, SPACE, LINE, MARGIN = 11.0, 3.5, 19.0, 8.0
SHADE = "#f59e0b"
HERTZ = (250, 500, 1000, 2000, 4000)


def heads(example: AttentionExample, depth: int | None = None) -> "Figure":
    """The weights of all heads of a layer, as matrices.

    Args:
        example: a model, a source and its target.
        depth: number of the layer; `None` for the highest with weights.

    Raises:
        ValueError: no such layer has weights.
    """
    return figure_of(example.rows(depth))


def spectrogram(example: AttentionExample, depth: int | None = None) -> "Figure":
    """The features of a recording, and below them the attention of its transcript.

    The upper rows are the 80 features of the front end, with mean 0 and variance 1. The
    lower rows are the tokens of the transcript, with the cross-attention from which
    each was predicted (the mean over heads). Both share the time axis.

    Args, Raises: as for `heads`.
    """
    from matplotlib.figure import Figure

    found = cross_attention(example, depth)
    ids = example.inputs["source_ids"]
    features = np.asarray(example.model.embeddings.source.features(ids)[0])
    tokens, positions = found.weights.shape
    size = SPECTROGRAM, TOKEN * tokens
    figure = Figure(figsize=(WIDTH, sum(size) + AXES), layout="constrained")
    above, below = figure.subplots(2, sharex=True, height_ratios=size)
    end = len(features) * HOP / SAMPLE_RATE
    image: Any = {"aspect": "auto", "interpolation": "nearest", "cmap": "Blues"}
    extent: tuple[float, ...] = (0, end, 0, NUM_MELS)
    above.imshow(features.T, origin="lower", vmin=-1, vmax=3, extent=extent, **image)
    filters = mel_filters()
    middles = np.linspace(0, SAMPLE_RATE / 2, WINDOW // 2 + 1) @ filters
    places = np.interp(HERTZ, middles / filters.sum(axis=0), np.arange(NUM_MELS) + 0.5)
    above.set_yticks(places, [f"{hertz:,} Hz" for hertz in HERTZ])
    above.set_title("log-mel features", fontsize=9, color=INK, loc="left")
    end = positions * example.model.source_stride / SAMPLE_RATE
    extent = (0, end, tokens - 0.5, -0.5)
    below.imshow(found.weights, vmin=0, extent=extent, **image)
    below.set_yticks(range(tokens), example.axes["cross"][0])
    what = f"{title(found)}: the darkest is {found.weights.max():.0%}"
    below.set_title(what, fontsize=9, color=INK, loc="left")
    below.set_xlabel("seconds", fontsize=9, color=INK)
    below.set_xlim(0, ids.shape[1] / SAMPLE_RATE)
    for axis in (above, below):
        axis.tick_params(length=0, labelsize=8, labelcolor=INK)
        axis.spines[:].set_color("0.8")
    return figure


def document(example: AttentionExample, depth: int | None = None) -> "Figure":
    """A summary, and its document with the attended words shaded.

    The shade of a word is its cross-attention weight, averaged over heads and summed
    over the tokens of the summary; the word with the largest sum is darkest.

    Args, Raises: as for `heads`.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    found = cross_attention(example, depth)
    source, summary = words(example.source_pieces), words(example.target_pieces)
    # Without EOS, which is not a word of the summary.
    sums = found.weights[:-1].sum(axis=0)
    sums = np.bincount(source.numbers, sums, minlength=len(source.texts))
    texts = (layout(summary, "bold"), layout(source))
    heights = [LINE * (lines[-1][1] + 1) for lines in texts]
    width, height = 72 * WIDTH, sum(heights) + 2 * LINE + 2 * MARGIN
    figure = Figure(figsize=(WIDTH, height / 72))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, width), ylim=(height, 0))
    axis.axis("off")
    write: dict[str, Any] = {
        "fontsize": LETTERS,
        "color": INK,
        "va": "center",
        "parse_math": False,
    }
    top = MARGIN + LINE / 2
    for text, (x, line, _) in zip(summary.texts, texts[0], strict=True):
        axis.text(x, top + LINE * line, text, weight="bold", **write)
    top += heights[0] + LINE / 2
    shades = zip(source.texts, texts[1], sums / sums.max(), strict=True)
    for text, (x, line, wide), shade in shades:
        middle = top + LINE * line
        box = Rectangle((x, middle - 0.45 * LINE), wide, 0.9 * LINE)
        box.set(facecolor=SHADE, alpha=shade, linewidth=0)
        axis.add_patch(box)
        axis.text(x, middle, text, **write)
    top += heights[1] + LINE / 4
    what = f"{title(found)}: the darkest is {sums.max() / sums.sum():.0%}"
    axis.text(MARGIN, top, what, **write | {"fontsize": 9})
    return figure


def cross_attention(example: AttentionExample, depth: int | None) -> LayerWeights:
    """The cross-attention of a layer, weights `[T, S]`: the mean over its heads."""
    [found] = example.highest(depth, ["cross"]).values()
    return found._replace(weights=found.weights.mean(axis=0))


def title(found: LayerWeights) -> str:
    """The description of the weights in a picture."""
    return f"cross-attention of layer {found.depth}, mean over heads"


def layout(text: Words, weight: str = "normal") -> list[tuple[float, int, float]]:
    """The left end, the line and the width of each word, in points.

    Lines break at spaces, and between other words that would exceed a line.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=LETTERS, weight=weight)
    widths = [
        text_to_path.get_text_width_height_descent(word, font, ismath=False)[0]
        for word in text.texts
    ]
    begins = [i for i, is_spaced in enumerate(text.spaced) if is_spaced or i == 0]
    left, line, places = MARGIN, 0, []
    for begin, end in itertools.pairwise([*begins, len(widths)]):
        for number in range(begin, end):
            wide = widths[number]
            needed = sum(widths[begin:end]) if number == begin else wide
            if left > MARGIN and left + needed > 72 * WIDTH - MARGIN:
                left, line = MARGIN, line + 1
            places.append((left, line, wide))
            left += wide
        left += SPACE
    return places


PICTURES: dict[str, Callable[[AttentionExample, int | None], "Figure"]] = {
    each.__name__: each for each in (heads, document, spectrogram)
}
