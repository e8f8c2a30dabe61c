"""Draw what every attention variant looks at, on one sentence."""

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import keras
import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import typer  # noqa: E402
from PIL import Image  # noqa: E402

import keras_attnvariants as kav  # noqa: E402

SOURCE = "A man in a red jacket rides a horse on the beach."
TARGET = "Ein Mann in einer roten Jacke reitet am Strand auf einem Pferd."

# What precedes and follows a sentence.
START, END = "<s>", "</s>"

TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}

INK = "0.25"
CELL = 0.19  # inches
DOTS_PER_INCH = 110
COLORS = 128


@dataclass(frozen=True)
class Panel:
    """One matrix: what each row looks at.

    Attributes:
        title: above it.
        weights: `[rows, columns]`.
        rows, columns: the tokens.
    """

    title: str
    weights: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]


class Reading:
    """A model, the sentence in its tokens, and all weights of a full pass."""

    def __init__(self, folder: Path):
        self.model = kav.from_preset(folder)
        tokenizer = kav.Tokenizer.load(folder / "tokenizer.model")
        source, target = tokenizer.encode([SOURCE, TARGET])
        self.inputs = {
            "source_ids": np.array([source], "int32"),
            "target_ids": np.array([[tokenizer.bos_id, *target]], "int32"),
        }
        scores = self.model.attention_scores(self.inputs)
        self.scores = keras.tree.map_structure(keras.ops.convert_to_numpy, scores)
        source, target = (
            [label(tokenizer.pieces[i]) for i in ids] for ids in (source, target)
        )
        # Cross-attention is read by the token that is predicted from it.
        self.axes = {
            "encoder": (source, source),
            "decoder": ([START, *target],) * 2,
            "cross": ([*target, END], source),
        }

    def layers(self, place: str) -> list[tuple[keras.layers.Layer, np.ndarray]]:
        """All layers in a place that have weights, and those `[H, …]`."""
        role = "cross" if place == "cross" else "self"
        is_encoder = place == "encoder"
        blocks = self.model.encoder_blocks if is_encoder else self.model.decoder_blocks
        return [
            (getattr(block, f"{role}_attention"), found[role][0])
            for block in blocks
            if role in (found := self.scores[block.name])
        ]

    def sharpest(self, place: str) -> tuple[str, keras.layers.Layer, np.ndarray]:
        """The head with the largest weights: what to call it, layer, `[T, …]`.

        Of cross-attention one in the upper half: below it, heads follow the token that
        was read last rather than the one that is predicted.
        """
        layers = list(enumerate(self.layers(place), start=1))
        if place == "cross":
            layers = layers[len(layers) // 2 :]
        heads = [
            (f"layer {number}, head {head}", layer, weights)
            for number, (layer, found) in layers
            for head, weights in enumerate(found, start=1)
        ]
        return max(heads, key=lambda head: head[2].max(-1).mean())

    def panel(self, place: str, subtitle: str, weights: np.ndarray) -> Panel:
        """The panel of one matrix."""
        return Panel(f"{TITLES[place]}\n{subtitle}", weights, *self.axes[place])


def label(piece: str) -> str:
    """A piece as a reader wants it: what continues a word begins with a hyphen."""
    if piece.startswith("▁"):
        return piece[1:]
    return f"-{piece}" if piece.isalnum() else piece


# What is drawn of each variant


def learned(reading: Reading, *places: str) -> list[Panel]:
    """The sharpest head of each place."""
    heads = [(place, *reading.sharpest(place)) for place in places]
    return [reading.panel(place, name, found) for place, name, _, found in heads]


def hard_coded(reading: Reading, *places: str) -> list[Panel]:
    """The heads of the last layer, one for each offset."""
    panels = []
    for place in places:
        layer, weights = reading.layers(place)[-1]
        for offset in dict.fromkeys(layer.offsets):
            found = weights[layer.offsets.index(offset)]
            where = f"{offset:+d}" if offset else "0"
            panels.append(reading.panel(place, f"offset {where}", found))
    return panels


def recurrent(reading: Reading) -> list[Panel]:
    """All heads of the last layer."""
    _, weights = reading.layers("cross")[-1]
    return [
        reading.panel("cross", f"last layer, head {head}", found)
        for head, found in enumerate(weights, start=1)
    ]


def phrase(reading: Reading) -> list[Panel]:
    """What the queries of a head of cross-attention find, by order of n-grams."""
    name, layer, weights = reading.sharpest("cross")
    queries = layer.structure.query_orders
    orders = layer.structure.groups(layer.num_heads)[0].orders
    found = keras.ops.convert_to_numpy(layer.split_scores(weights))  # [T, M, N, S]
    kinds = {1: "tokens", 2: "pairs"}
    return [
        reading.panel(
            "cross",
            f"{name}: {kinds.get(m, f'{m}-grams')} to {kinds.get(n, f'{n}-grams')}",
            found[:, stream, block],
        )
        for stream, m in enumerate(queries)
        for block, n in enumerate(orders)
    ]


def ngrams(reading: Reading) -> list[Panel]:
    """How much the output of the first layer changes when a token is left out.

    There are no weights to draw: the change is that of the norm, in parts of 1.
    """
    model, panels = reading.model, []
    embed = {
        "encoder": model.embeddings.embed_source,
        "decoder": model.embeddings.embed_target,
    }
    for place, ids in zip(embed, reading.inputs.values(), strict=True):
        block = getattr(model, f"{place}_blocks")[0]
        if block.self_attention is None or block.self_attention.has_scores:
            continue
        x = block.self_residual.enter(embed[place](ids))
        length = x.shape[1]
        kept = 1.0 - np.eye(length + 1, length, dtype="float32")  # the last keeps all
        x = x * keras.ops.cast(kept[..., None], x.dtype)
        output = keras.ops.cast(block.self_attention(x, x), "float32")
        change = keras.ops.norm(output[:-1] - output[-1:], axis=-1)
        change = keras.ops.convert_to_numpy(change).T  # [output, left out]
        share = change / np.maximum(change.sum(-1, keepdims=True), 1e-9)
        panels.append(reading.panel(place, "layer 1: what each token changes", share))
    return panels


@dataclass(frozen=True)
class Picture:
    """One picture.

    Attributes:
        layer: name of the class.
        panels: makes the panels.
        run: folder of the run to take; by default the first that has such a layer.
    """

    layer: str
    panels: Callable[[Reading], list[Panel]]
    run: str = ""


PICTURES = {
    "dot_product": Picture(
        "DotProductAttention",
        lambda reading: learned(reading, "encoder", "decoder", "cross"),
        run="base",
    ),
    "hard_coded": Picture(
        "HardCodedAttention",
        lambda reading: hard_coded(reading, "encoder", "decoder"),
        run="hc-sa",
    ),
    "hard_coded_cross": Picture(
        "HardCodedCrossAttention", lambda reading: hard_coded(reading, "cross")
    ),
    "recurrent_cross": Picture("RecurrentCrossAttention", recurrent),
    "phrase": Picture("PhraseAttention", phrase),
    "neural_ngram": Picture("NeuralNgram", ngrams),
    "concatenated_ngram": Picture("ConcatenatedNgram", ngrams),
    "local_attention": Picture(
        "LocalAttention", lambda reading: learned(reading, "encoder", "decoder")
    ),
}


# From panels to files


def draw(panels: Sequence[Panel], path: Path) -> None:
    """Writes the panels, in one or two rows, as one small PNG."""
    highest = max(panel.weights.max() for panel in panels)
    width = len(panels) if len(panels) <= 3 else -(-len(panels) // 2)
    grid = [panels[start : start + width] for start in range(0, len(panels), width)]
    columns = [max(len(p.columns) for p in group) for group in zip(*grid, strict=False)]
    rows = [max(len(panel.rows) for panel in group) for group in grid]
    figure, axes = plt.subplots(
        len(grid),
        width,
        squeeze=False,
        layout="constrained",
        figsize=(CELL * sum(columns) + 0.5 * width + 1.0, CELL * sum(rows) + len(rows)),
        gridspec_kw={"width_ratios": columns, "height_ratios": rows},
    )
    for axis in axes.flat[len(panels) :]:
        axis.remove()
    for number, (axis, panel) in enumerate(zip(axes.flat, panels, strict=False)):
        left = panels[number - 1] if number % width else None
        fill(axis, panel, highest, with_rows=left is None or left.rows != panel.rows)
    bar = figure.colorbar(axes[0, 0].images[0], ax=axes, shrink=0.4, aspect=25)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=7, labelcolor=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DOTS_PER_INCH)
    plt.close(figure)
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLORS).save(path, optimize=True)


def fill(axis, panel: Panel, highest: float, with_rows: bool) -> None:
    """Draws one panel."""
    axis.imshow(panel.weights, cmap="Blues", vmin=0.0, vmax=highest)
    axis.set_anchor("N")
    axis.set_title(panel.title, fontsize=9, color=INK)
    axis.set_xticks(range(len(panel.columns)), panel.columns, rotation=90)
    axis.set_yticks(
        range(len(panel.rows)), panel.rows if with_rows else [""] * len(panel.rows)
    )
    axis.tick_params(length=0, labelsize=8, labelcolor=INK)
    axis.spines[:].set_color("0.8")


def run_of(picture: Picture, runs: Path) -> Path | None:
    """The folder of a trained model that has such layers."""
    named = [runs / picture.run] if picture.run else sorted(runs.iterdir())
    for run in named:
        for folder in (run / "averaged", run / "best"):
            config = folder / "config.json"
            if config.is_file() and f'"{picture.layer}"' in config.read_text("utf-8"):
                return folder
    return None


def main(
    runs: Annotated[
        Path, typer.Option(help="Folder of trained runs, as recipes/train.py writes.")
    ],
    output: Annotated[Path, typer.Option(help="Where to draw to.")] = Path(
        "docs/pictures"
    ),
    only: Annotated[str, typer.Option(help="Draw this variant alone.")] = "",
) -> None:
    """Draw what every attention variant looks at, on one sentence.

    A variant that no run has is passed over.
    """
    for name, picture in PICTURES.items():
        if only not in ("", name):
            continue
        folder = run_of(picture, runs)
        if folder is None:
            typer.echo(f"{name}: no run with {picture.layer} in {runs}")
            continue
        draw(picture.panels(Reading(folder)), output / f"{name}.png")
        typer.echo(f"{name}: drawn from {folder}")


if __name__ == "__main__":
    typer.run(main)
