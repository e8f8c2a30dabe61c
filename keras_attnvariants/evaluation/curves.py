"""Learning curves of runs as a picture, and their best values as a table.

Needs matplotlib, which only those who draw have to install.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.table import Table
from rich.text import Text

from keras_attnvariants.utils.progress import clock

# One record of a log each.
Events = Sequence[Mapping[str, Any]]

INK = "0.25"
COLORS = ("#4a78a8", "#c44e52", "#55a868", "#8172b3", "#cc8b3c", "#64b5cd")
DOTS_PER_INCH = 110
# Without the date of drawing, equal figures are equal files.
METADATA = {".svg": {"Date": None}}


THIN = {"linewidth": 0.9, "alpha": 0.55}
BOLD = {"linewidth": 1.6, "marker": "o", "markersize": 3}
PLAIN = {"linewidth": 0.9}
# By the title of a pair of axes, the entries of the log that are drawn, and how.
PLOTS: dict[str, dict[str, dict[str, Any]]] = {
    "loss (thin: training, bold: validation)": {"loss": THIN, "val_loss": BOLD},
    "validation BLEU": {"val_bleu": BOLD},
    "learning rate": {"learning_rate": PLAIN},
    "target tokens per second": {"tokens_per_second": PLAIN},
}


def series(events: Events, name: str) -> tuple[list[int], list[float]]:
    """Updates and values of an entry of the log, where it has a finite value.

    The training loss is that of the lines about updates: a period starts it anew.
    """
    # At the end of a period both lines have the loss.
    kinds = ("updates",) if name == "loss" else ("updates", "period")
    found = [
        (event["step"], event[name])
        for event in events
        if event["event"] in kinds and event.get(name) is not None
    ]
    return [step for step, _ in found], [value for _, value in found]


def draw_curves(runs: Mapping[str, Events]) -> Figure:
    """The learning curves of runs, one color each.

    Args:
        runs: the records of their logs by name.

    Raises:
        ValueError: no log has a record of an update or a validation.
    """
    plots = {
        title: lines
        for title, lines in PLOTS.items()
        if any(series(run, name)[0] for run in runs.values() for name in lines)
    }
    if not plots:
        raise ValueError(
            f"There is nothing to plot before the first updates. Received: {list(runs)}"
        )
    rows = -(-len(plots) // 2)
    figure = Figure(figsize=(9.0, 2.9 * rows + 0.3), layout="constrained")
    for number, (title, lines) in enumerate(plots.items(), start=1):
        axis = figure.add_subplot(rows, min(len(plots), 2), number)
        for color, (run, events) in enumerate(runs.items()):
            label: str | None = run
            for name, style in lines.items():
                steps, values = series(events, name)
                if steps:
                    style = {"color": COLORS[color % len(COLORS)], **style}
                    axis.plot(steps, values, label=label, **style)
                    label = None  # one entry of the legend for each run
        decorate(axis, title)
    if len(runs) > 1:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=3, frameon=False
        )
    return figure


def decorate(axis: Any, title: str, across: str = "updates", up: str = "") -> None:
    """Title, labels of the axes, grid and quiet axes."""
    axis.set_title(title, fontsize=10, color=INK, loc="left")
    axis.set_xlabel(across, fontsize=9, color=INK)
    axis.set_ylabel(up, fontsize=9, color=INK)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axis.grid(color="0.92")
    axis.tick_params(length=0, labelsize=8, labelcolor=INK)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color("0.8")


def save_picture(figure: Figure, path: Path) -> None:
    """Saves a figure in the format that the end of its name says, such as `.png`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Text as text: it can be searched, and copied from.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "curves"}):
        figure.savefig(path, dpi=DOTS_PER_INCH, metadata=METADATA.get(path.suffix))


def summary(runs: Mapping[str, Events]) -> Table:
    """The progress of runs, a row each, for `rich`."""
    table = Table("run", "updates", "time", "lowest loss", "highest BLEU", "tokens/s")
    for name, events in runs.items():
        _, speeds = series(events, "tokens_per_second")
        table.add_row(
            Text(name, overflow="fold"),
            f"{max(event['step'] for event in events):,}",
            clock(max(event.get("seconds", 0.0) for event in events)),
            best(events, "val_loss", min, 3),
            best(events, "val_bleu", max, 2),
            f"{sorted(speeds)[len(speeds) // 2]:,.0f}" if speeds else "–",
        )
    table.caption = "Loss and BLEU are those of validations"
    return table


def best(events: Events, name: str, choose: Any, decimals: int) -> str:
    """The best value of an entry, and its update."""
    steps, values = series(events, name)
    if not values:
        return "–"
    value = choose(values)
    return f"{value:.{decimals}f} at {steps[values.index(value)]:,}"
