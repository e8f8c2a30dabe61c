"""Draw the attention weights of every variant on one sentence."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from typing import Any
from typing import NamedTuple

import keras
import numpy as np
import typer

import keras_attnvariants as kav
from keras_attnvariants.evaluation import attention_maps as maps
from keras_attnvariants.evaluation.attention_maps import Panel
from keras_attnvariants.evaluation.attention_maps import figure_of
from keras_attnvariants.evaluation.attention_maps import save
from keras_attnvariants.utils.chunks import chunks

SOURCE = "A man in a red jacket rides a horse on the beach."
TARGET = "Ein Mann in einer roten Jacke reitet am Strand auf einem Pferd."


class Head(NamedTuple):
    """One head: numbers of its layer and of the head, the layer, weights `[T, …]`."""

    depth: int
    number: int
    layer: keras.layers.Layer
    weights: np.ndarray

    def __str__(self) -> str:
        return f"layer {self.depth}, head {self.number}"


class AttentionExample(maps.AttentionExample):
    """The attention weights of a model on the sentence, for the layers of one class.

    Args:
        folder: the model folder, as `save_model` writes it.
        layer: class name of the attention layers to draw.
    """

    def __init__(self, folder: Path, layer: str):
        self.layer = layer
        model, tokenizer = kav.load_model(folder)
        super().__init__(model, tokenizer, SOURCE, TARGET)

    def layers(self, place: str) -> list[tuple[int, keras.layers.Layer, Any]]:
        """Number, layer and weights `[H, …]`, if any, of each layer with this role."""
        role = "cross" if place == "cross" else "self"
        is_encoder = place == "encoder"
        blocks = self.model.encoder_blocks if is_encoder else self.model.decoder_blocks
        found = [
            (depth, getattr(block, f"{role}_attention"), self.scores[block.name])
            for depth, block in enumerate(blocks, start=1)
        ]
        return [
            (depth, layer, scores[role][0] if role in scores else None)
            for depth, layer, scores in found
            if type(layer).__name__ == self.layer
        ]

    def heads(self, place: str) -> list[Head]:
        """All heads with this role."""
        return [
            Head(depth, number, layer, weights)
            for depth, layer, found in self.layers(place)
            for number, weights in enumerate(found, start=1)
        ]

    def sharpest(self, place: str) -> list[Head]:
        """The head with the largest weights; none if there are no such layers.

        For cross-attention, it is in the upper half: lower heads follow the last input
        token rather than the token that is predicted.
        """
        heads = self.heads(place)
        if place == "cross":
            heads = heads[len(heads) // 2 :]
        return sorted(heads, key=lambda head: -head.weights.max(-1).mean())[:1]


# The panels of each variant


def learned(example: AttentionExample, *places: str) -> list[Panel]:
    """The sharpest head for each role."""
    return [
        example.panel(place, str(head), head.weights)
        for place in places
        for head in example.sharpest(place)
    ]


def hard_coded(example: AttentionExample, *places: str) -> list[Panel]:
    """The heads of the last layer, one for each offset."""
    panels = []
    for place in places:
        for _, layer, weights in example.layers(place)[-1:]:
            for offset in dict.fromkeys(layer.offsets):
                where = f"offset {offset:+d}" if offset else "offset 0"
                found = weights[layer.offsets.index(offset)]
                panels.append(example.panel(place, where, found))
    return panels


def recurrent(example: AttentionExample) -> list[Panel]:
    """All heads of the last layer."""
    heads = example.heads("cross")
    last = heads[-heads[-1].number :]
    return [example.panel("cross", str(head), head.weights) for head in last]


def phrase(example: AttentionExample) -> list[Panel]:
    """The weights of one head of cross-attention, by query and order of n-grams."""
    [head] = example.sharpest("cross")
    structure, panels = head.layer.structure, []
    groups = structure.groups(head.layer.num_heads)
    orders = [group.orders for group in groups for _ in range(group.num_heads)]
    found = keras.ops.convert_to_numpy(head.layer.split_scores(head.weights))
    for stream, m in enumerate(structure.query_orders):
        for block, n in enumerate(orders[head.number - 1]):
            what = f"{head}: {grams(m)} to {grams(n)}"
            panels.append(example.panel("cross", what, found[:, stream, block]))
    return panels


def lstm(example: AttentionExample) -> list[Panel]:
    """The decoder's only head."""
    weights = example.scores["decoder"]["cross"][0, 0]
    return [example.panel("cross", "previous state", weights)]


def grams(order: int) -> str:
    """A name for n-grams of an order."""
    return {1: "tokens", 2: "pairs"}.get(order, f"{order}-grams")


def ngrams(example: AttentionExample) -> list[Panel]:
    """The change in the output of the first layer when a token is zeroed.

    These layers have no weights to draw. The change is measured by its norm, relative
    to the largest change in the row.
    """
    embed = {
        "encoder": example.model.embeddings.embed_source,
        "decoder": example.model.embeddings.embed_target,
    }
    panels = []
    for place, ids in zip(embed, example.inputs.values(), strict=True):
        block = getattr(example.model, f"{place}_blocks")[0]
        if type(block.self_attention).__name__ != example.layer:
            continue
        x = block.self_residual.sublayer_input(embed[place](ids))
        length = x.shape[1]
        # Row i zeroes token i; the last row keeps all tokens.
        kept = 1.0 - np.eye(length + 1, length, dtype="float32")
        x = x * keras.ops.cast(kept[..., None], x.dtype)
        output = keras.ops.cast(block.self_attention(x, x), "float32")
        change = keras.ops.norm(output[:-1] - output[-1:], axis=-1)
        change = keras.ops.convert_to_numpy(change).T  # [output, left out]
        share = change / np.maximum(change.max(-1, keepdims=True), 1e-9)
        share = share.round(4)  # products may round the rows of a batch differently
        panels.append(example.panel(place, "layer 1: what each token changes", share))
    return panels


@dataclass(frozen=True)
class Picture:
    """One picture.

    Attributes:
        layer: class name of the attention layer.
        panels: makes the panels.
        run: name of the preferred run; if it does not exist or does not have such
            layers, the first run that has them is used.
    """

    layer: str
    panels: Callable[[AttentionExample], list[Panel]]
    run: str = ""


PICTURES = {
    "dot_product": Picture(
        "DotProductAttention",
        lambda example: learned(example, "encoder", "decoder", "cross"),
        run="base",
    ),
    "hard_coded": Picture(
        "HardCodedAttention",
        lambda example: hard_coded(example, "encoder", "decoder"),
        run="hc-sa",
    ),
    "hard_coded_cross": Picture(
        "HardCodedCrossAttention",
        lambda example: hard_coded(example, "cross"),
        run="hc-all",
    ),
    "recurrent_cross": Picture(
        "RecurrentCrossAttention", recurrent, run="accumulated-weights"
    ),
    "phrase": Picture("PhraseAttention", phrase, run="interleaved-query-k"),
    "neural_ngram": Picture("NeuralNgram", ngrams, run="neural-ngram"),
    "concatenated_ngram": Picture("ConcatenatedNgram", ngrams),
    "local_attention": Picture(
        "LocalAttention",
        lambda example: learned(example, "encoder", "decoder"),
        run="local-attention",
    ),
    "linear": Picture(
        "LinearAttention",
        lambda example: learned(example, "encoder", "decoder"),
        run="linear",
    ),
    "seq2seq_lstm": Picture("Seq2SeqLSTM", lstm, run="lstm"),
}


def run_of(picture: Picture, runs: Path) -> Path | None:
    """The folder of a trained model that has the layers of a picture, or `None`."""
    for run in (runs / picture.run, *sorted(runs.iterdir())):
        for folder in (run / "averaged", run / "best"):
            config = folder / "config.json"
            if config.is_file() and f'"{picture.layer}"' in config.read_text("utf-8"):
                return folder
    return None


def main(
    runs: Annotated[
        Path, typer.Option(help="Folder of trained runs, as kav train writes.")
    ],
    output: Annotated[Path, typer.Option(help="Folder of the pictures.")] = Path(
        "docs/pictures"
    ),
    only: Annotated[str, typer.Option(help="Draw only this variant.")] = "",
) -> None:
    """Draw the attention weights of every variant on one sentence.

    Variants without a run are skipped.
    """
    for name, picture in PICTURES.items():
        if only not in ("", name):
            continue
        folder = run_of(picture, runs)
        if folder is None:
            typer.echo(f"{name}: no run with {picture.layer} in {runs}")
            continue
        panels = picture.panels(AttentionExample(folder, picture.layer))
        # In one or two rows.
        across = len(panels) if len(panels) <= 3 else -(-len(panels) // 2)
        save(figure_of([*chunks(panels, across)]), output / f"{name}.png")
        typer.echo(f"{name}: drawn from {folder}")


if __name__ == "__main__":
    typer.run(main)
