"""Draw how data flows through the package, from a corpus to a served translation."""

from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

INK, PAPER, ACCENT = "0.2", "#eef3f8", "#4a78a8"
WIDTH, HEIGHT, GAP = 2.1, 0.95, 0.42  # size of the boxes and gap, in inches
TRAINING_BOTTOM, LINE, SERVING_BOTTOM = 2.45, 2.1, 0.4
DOTS_PER_INCH = 110


class Step(NamedTuple):
    """One box: its title, the part of the package, and its content with shapes."""

    title: str
    part: str
    content: str


TRAINING = (
    Step("Corpus", "kav.data", "train.en, train.de\nbad lines counted"),
    Step("Token ids", "kav.Tokenizer", "two lists of int32\nper sentence pair"),
    Step("Batch", "kav.data", "source [B, S]\ntarget [B, T], padded"),
    Step("Model", "kav.models", "encoder, decoder:\nlogits [B, T, V]"),
    Step("Update", "kav.training", "loss over real tokens\nmodel.fit, run folder"),
)
SERVING = (
    Step("Text", "kav.serving", "strings [B]\nin a SavedModel"),
    Step("encode", "kav.Transformer", "memory per sentence\nkeys, values [B, H, S, D]"),
    Step("step", "attention variant", "one position, K beams\nstate [B, K, …]"),
    Step("Beam search", "kav.decoding", "best K of 2 K candidates\nids [B, K, T]"),
    Step("Translations", "kav.serving", "strings [B]\nscores [B]"),
)


def main(path: Path = Path(__file__).parent / "pictures" / "overview.png") -> None:
    """Draws both rows, training above serving."""
    width = len(TRAINING) * (WIDTH + GAP) + GAP
    figure = Figure(figsize=(width, 4.1))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(0, 4.1)
    axes.axis("off")
    draw_row(axes, "Training: once", TRAINING, TRAINING_BOTTOM)
    draw_row(axes, "Serving: for every request", SERVING, SERVING_BOTTOM)
    draw_export(axes)
    figure.savefig(path, dpi=DOTS_PER_INCH)


def draw_export(axes: Axes) -> None:
    """Draws the arrow from the last box of training to the first box of serving."""
    start = len(TRAINING) * (WIDTH + GAP) - WIDTH / 2
    middle = SERVING_BOTTOM + HEIGHT / 2
    corners = [(start, TRAINING_BOTTOM), (start, LINE), (GAP / 2, LINE)]
    axes.plot(*zip(*corners, (GAP / 2, middle), strict=True), color=ACCENT, linewidth=1)
    axes.annotate(
        "",
        (GAP, middle),
        (GAP / 2, middle),
        arrowprops={"arrowstyle": "->", "color": ACCENT, "shrinkA": 0},
    )
    label = "kav.save_model, kav.serving.export"
    axes.text(start - 0.1, LINE + 0.07, label, color=ACCENT, fontsize=9, ha="right")


def draw_row(axes: Axes, title: str, steps: tuple[Step, ...], bottom: float) -> None:
    """Draws boxes from left to right, connected by arrows."""
    axes.text(GAP, bottom + HEIGHT + 0.22, title, color=INK, fontsize=11, weight="bold")
    for number, step in enumerate(steps):
        left = GAP + number * (WIDTH + GAP)
        box = FancyBboxPatch(
            (left, bottom),
            WIDTH,
            HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=PAPER,
            edgecolor=ACCENT,
        )
        axes.add_patch(box)
        middle = left + WIDTH / 2
        top = bottom + HEIGHT - 0.19
        axes.text(middle, top, step.title, ha="center", va="center", color=INK)
        axes.text(
            middle, top - 0.2, step.part, ha="center", va="center", color=ACCENT, size=8
        )
        axes.text(
            middle, bottom + 0.27, step.content, ha="center", va="center", size=8.5
        )
        if number:
            axes.annotate(
                "",
                (left, bottom + HEIGHT / 2),
                (left - GAP, bottom + HEIGHT / 2),
                arrowprops={"arrowstyle": "->", "color": INK},
            )


if __name__ == "__main__":
    main()
