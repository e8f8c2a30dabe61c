"""Tables of the measurements of beam search: rows, bars and explanations."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from statistics import median

from arithmetic import MultiplyAdds
from measuring import TableRow
from measuring import ratio

# A program's name and its precision.
Key = tuple[str, str]

OURS = "ours"
CTRANSLATE2 = "CTranslate2"
HUGGING_FACE = "Hugging Face"

# Our tokens per second over theirs, by batch; for Hugging Face, over its best.
BARS = {
    (CTRANSLATE2, "float32"): {64: 1.2},
    (CTRANSLATE2, "int8"): {64: 0.9},
    HUGGING_FACE: {1: 1.2, 16: 1.4, 64: 1.6},
}

VARIANT_BARS = {"hc-sa": 1.15, "sh-x": 1.35}

PEERS_TEXT = (
    "Three programs decode with one Transformer of random weights, in the form of "
    "MarianMT. Each makes the same number of steps and returns all hypotheses. Ours "
    "ends them with EOS in the last step; the others do not have to, and are never "
    "allowed EOS. *Same outputs* counts the sentences whose hypotheses, as a set "
    "and without the last token, equal those of the first row; with random weights, "
    "a precision below float32 soon changes them. The times of loading and of the "
    "first run, which may compile, are not part of the other figures. A bar is the "
    "ratio that ours must reach in one of its precisions; for Hugging Face, the faster "
    "of its precisions counts."
)

VARIANTS_TEXT = (
    "Beam search with variants of You et al. 2020 in their large size, with random "
    "weights. The ceiling is the ratio of the multiply-adds of one decoding step, "
    "vocabulary projection included: the gain of a variant if only arithmetic took "
    "time. The encoder's work is part of the times but not of the ceiling. The "
    "paper's ratio is that of sentences per second on its GPU."
)


@dataclass
class Measured:
    """The outputs and times of one program for one batch.

    Attributes:
        load: seconds from the model on disk to one that can decode.
        first: seconds of the first run.
        ids: all hypotheses of all sentences, `[B][K][N]`.
        seconds: seconds of the timed runs.
    """

    load: float
    first: float
    ids: list = field(repr=False)
    seconds: list[float] = field(default_factory=list)


def same_outputs(ids: list, others: list, tokens: int) -> int:
    """The number of sentences whose hypotheses start with the same tokens."""

    def starts(sentence) -> set[tuple[int, ...]]:
        return {tuple(hypothesis[:tokens]) for hypothesis in sentence}

    pairs = zip(ids, others, strict=True)
    return sum(starts(own) == starts(other) for own, other in pairs)


def peer_rows(
    measured: Mapping[Key, Measured], batch: int, steps: int, bars: Mapping = BARS
) -> list[TableRow]:
    """One row per program and precision; outputs are compared with the first."""
    ours = [key for key in measured if key[0] == OURS]
    reference = measured[ours[0]].ids
    rows = []
    for key, own in measured.items():
        speeds = {
            column(precision): ratio(own.seconds, measured[mine].seconds)
            for mine in ours
            for precision in mine[1:]
        }
        same = same_outputs(reference, own.ids, steps - 1)
        rows.append(
            {
                "batch": batch,
                "program": key[0],
                "precision": key[1],
                "tokens per second": batch * steps / median(own.seconds),
                **speeds,
                "bar": bar(key, batch, measured, bars),
                "same outputs": f"{same} of {batch}",
                "seconds to load": own.load,
                "of the first run": own.first,
            }
        )
    return rows


def column(precision: str) -> str:
    """The title of the column of our speed in a precision."""
    return f"ours in {precision} / it"


def bar(
    key: Key, batch: int, measured: Mapping[Key, Measured], bars: Mapping = BARS
) -> float | None:
    """The ratio that our speed must reach to this program's, if there is one."""
    rivals = [other for other in measured if other[0] == key[0] == HUGGING_FACE]
    if rivals:
        best = min(rivals, key=lambda rival: median(measured[rival].seconds))
        return bars.get(HUGGING_FACE, {}).get(batch) if key == best else None
    return bars.get(key, {}).get(batch)


@dataclass
class VariantTimes:
    """The times of one variant, with its arithmetic and its published speed.

    Attributes:
        seconds: seconds of the timed runs.
        encoder_seconds: seconds of the encoder alone, in the same rounds.
        step: the arithmetic of one decoding step.
        published: sentences per second in the paper, if it gives them.
    """

    seconds: list[float]
    encoder_seconds: list[float]
    step: MultiplyAdds
    published: float | None


def variant_rows(variants: Mapping[str, VariantTimes], tokens: int) -> list[TableRow]:
    """One row per variant; the others are compared with the first.

    Args:
        variants: times of the variants by name.
        tokens: tokens in the translations of the whole batch.
    """
    base = next(iter(variants.values()))
    return [
        {
            "variant": name,
            "tokens per second": tokens / median(own.seconds),
            "ratio": ratio(base.seconds, own.seconds),
            "bar": VARIANT_BARS.get(name),
            "ceiling": base.step.total / own.step.total,
            "the paper's": own.published
            and base.published
            and own.published / base.published,
            "million multiply-adds per step": own.step.total / 1e6,
            "encoder's share": ratio(own.encoder_seconds, own.seconds),
        }
        for name, own in variants.items()
    ]
