"""A made-up comparison of the size of a real one: 14 systems, three seeds."""

import dataclasses
import math
import random

from keras_attnvariants.experiments import results as e
from tests.experiments import made_up

BLEU = {
    "base": 37.25,
    "hc-sa": 37.62,
    "sh-x": 35.62,
    "hc-all": 27.66,
    "context": 36.9,
    "accumulated-weights": 37.1,
    "expanded-full": 36.4,
    "homogeneous-conv-kv": 37.0,
    "interleaved-query-k": 35.2,
    "neural-ngram": 37.4,
    "local-attention": 37.2,
    "concatenated-ngram": 36.8,
    "lowest-2-ngram": 37.9,
    "lstm": 31.3,
}
# Milliseconds per update.
SPEED = dict(
    zip(
        BLEU,
        (129, 110, 78, 98, 231, 154, 193, 199, 483, 128, 145, 160, 131, 90),
        strict=True,
    )
)
SEEDS = (1, 2, 3)
LOOKED_INTO = (
    "base",
    "hc-sa",
    "sh-x",
    "context",
    "interleaved-query-k",
    "neural-ngram",
)
SENTENCES = (
    ("The lighthouse keeper counts the ships.",
     "Der Leuchtturmwärter zählt die Schiffe."),
    ("My neighbour keeps seven bees in a matchbox.",
     "Mein Nachbar hält sieben Bienen in einer Streichholzschachtel."),
    ("Nobody remembers who planted the crooked pear tree.",
     "Niemand weiß noch, wer den krummen Birnbaum gepflanzt hat."),
    ("Before the shop opens, the baker whistles the same waltz twice, and the cat on "
     "the counter pretends to be asleep.",
     "Bevor der Laden öffnet, pfeift der Bäcker zweimal denselben Walzer, und die "
     "Katze auf dem Tresen stellt sich schlafend."),
    ("The last bus leaves at nine.",
     "Der letzte Bus fährt um neun."),
    ("A clock that nobody winds hangs above the stairs of the old town hall, where "
     "the archive smells of apples and of rain every autumn.",
     "Eine Uhr, die niemand aufzieht, hängt über der Treppe des alten Rathauses, wo "
     "das Archiv jeden Herbst nach Äpfeln und nach Regen riecht."),
    ("<script>alert('a sentence')</script> & \u202eright to left\u202c",
     "</script><b>fett</b> & שלום עולם"),
)  # fmt: skip
WRONG = ("Hut", "ein", "eine", "Mann", "etwas", "steht", "an", "und", "großer", "der")


def comparison() -> e.ComparisonResult:
    """Figures near those of docs/RESULTS.md, drawn from a seed."""
    draw = random.Random(1)
    names = list(BLEU)
    small = made_up.comparison()
    systems = tuple(
        e.SystemResult(
            name=name,
            preset=f"kav/{name}/multi30k",
            parameters=int(1_575_424 * (0.7 + 0.05 * n)),
            changes={"dropout": 0.3} if n == 3 else {},
            sentences_per_second=5000 / SPEED[name],
            output_tokens_per_second=60000 / SPEED[name],
        )
        for n, name in enumerate(names)
    )
    scores = tuple(
        score(draw, name, test_set.name, metric)
        for test_set in small.test_sets
        for metric in small.metrics
        for name in names
    )
    return dataclasses.replace(
        small,
        title="Attention variants on Multi30k",
        systems=systems,
        seeds=SEEDS,
        missing=(),
        test_sets=(
            e.TestSet("test2016", 1000, "split test2016"),
            e.TestSet("test2017", 1000, "split test2017"),
        ),
        runs=tuple(run(draw, name, seed) for name in names for seed in SEEDS),
        scores=scores,
        differences=tuple(differences(draw, scores)),
        analyses=tuple(analyses(draw)),
        samples=tuple(samples(draw, names)),
        attention=tuple(attention(draw)),
        origin=dataclasses.replace(
            small.origin,
            comparison='title = "Attention variants on Multi30k"\nseeds = [1, 2, 3]\n'
            + "".join(f'\n[systems.{name}]\npreset = "kav/{name}/multi30k"\n'
                      for name in names),
        ),
    )  # fmt: skip


def run(draw: random.Random, name: str, seed: int) -> e.RunResult:
    points = []
    for update in range(100, 6001, 100):
        ready = 1 - math.exp(-update / 1800)
        points.append(
            e.CurvePoint(update, update / 8, loss=7 - 4 * ready + draw.gauss(0, 0.04))
        )
        if update % 250 == 0:
            points.append(
                e.CurvePoint(
                    update,
                    update / 8,
                    validation_loss=7 - 0.113 * BLEU[name] * ready
                    + draw.gauss(0, 0.02),
                    validation_score=BLEU[name] * ready + draw.gauss(0, 0.3),
                )
            )  # fmt: skip
    seconds = 6 * SPEED[name] + draw.gauss(0, 5)
    return e.RunResult(
        system=name,
        seed=seed,
        updates=6000,
        seconds=seconds,
        cpu_seconds=0.97 * seconds,
        tokens_per_second=900_000 / SPEED[name],
        memory_mib=900 + SPEED[name],
        validation_loss=points[-1].validation_loss,
        curve=tuple(points),
    )


def score(draw, name: str, test_set: str, metric: str) -> e.ScoreSummary:
    bleu = BLEU[name] - (5 if test_set == "test2017" else 0)
    center = {"BLEU": bleu, "chrF2": 30 + 0.8 * bleu, "TER": 85 - bleu}[metric]
    values = tuple(center + draw.gauss(0, 0.25) for _ in SEEDS)
    mean = sum(values) / 3
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / 2)
    return e.ScoreSummary(
        name, test_set, metric, SEEDS, values, mean, deviation,
        mean - 2.48 * deviation, mean + 2.48 * deviation,
        made_up.SIGNATURE if metric == "BLEU" else f"nrefs:1|metric:{metric}",
    )  # fmt: skip


def differences(draw, scores):
    base = {(s.test_set, s.metric): s.mean for s in scores if s.system == "base"}
    for found in scores:
        if found.system == "base":
            continue
        value = found.mean - base[found.test_set, found.metric]
        p = math.exp(-abs(value) / 0.2) * 0.7 + draw.random() * 0.01
        yield e.Difference(
            found.system, found.test_set, found.metric, value,
            value - 0.9, value + 0.9, p * 1.5, min(1, p * 6), p * 1.4, min(1, p * 5),
            p, min(1, p * 4), p * 1.1, min(1, p * 4.4), value - 0.45, value + 0.45,
        )  # fmt: skip


def analyses(draw):
    small = made_up.analyses()
    kinds = {table.analysis: table for table in small}
    heads = [
        (place, layer, head)
        for place in ("encoder", "decoder", "cross")
        for layer in range(1, 5)
        for head in range(1, 5)
    ]
    for name in LOOKED_INTO:
        rows = [
            (*head, abs(draw.gauss(0.5 + 0.5 * head[1], 0.6)), draw.gauss(0, 1),
             *[draw.random() / 7 for _ in range(7)], 12000)
            for head in heads
        ]  # fmt: skip
        yield dataclasses.replace(
            kinds["locality"], system=name, rows=tuple(rows), sentences=1000
        )
    for name in LOOKED_INTO:
        rows = [
            ("encoder", layer, d, 0.5 / (1 + abs(d)) ** (2 / layer + 0.5))
            for layer in range(1, 5)
            for d in range(-10, 11)
        ]
        yield dataclasses.replace(
            kinds["distance"], system=name, rows=tuple(rows), sentences=1000
        )
    for name in LOOKED_INTO:
        rows = [
            (*head, 1 + 2 * draw.random(), 0.3 + draw.random() / 3, 12000)
            for head in heads
        ]
        yield dataclasses.replace(
            kinds["entropy"], system=name, rows=tuple(rows), sentences=1000
        )
    rows = []
    for number in range(5):
        for name in BLEU:
            bleu = BLEU[name] - number
            value = BLEU[name] - BLEU["base"] - (number if name == "hc-all" else 0)
            value += draw.gauss(0, 0.3)
            bounds = (
                (None,) * 3 if name == "base" else (value, value - 1.2, value + 1.2)
            )
            rows.append(
                ("words of the reference", 10.0 * number, 10.0 * number + 10, 200, name,
                 bleu, bleu - 2, bleu + 2, *bounds)
            )  # fmt: skip
    yield dataclasses.replace(kinds["bleu-by-length"], rows=tuple(rows), sentences=1000)


def samples(draw, names):
    for number, (source, reference) in enumerate(SENTENCES):
        translations = {}
        for name in names:
            wrong = max(0.02, (40 - BLEU[name]) / 30)
            words = [
                draw.choice(WRONG) if draw.random() < wrong else word
                for word in reference.split()
            ]
            translations[name] = " ".join(words)
        yield e.SampleSentence("test2016", number, source, reference, translations)


def attention(draw):
    for name in LOOKED_INTO:
        for number, (source, target) in enumerate(SENTENCES):
            sources, targets = source.split(), target.split()
            axes = {
                "encoder": (sources, sources),
                "decoder": (("<s>", *targets), ("<s>", *targets)),
                "cross": ((*targets, "</s>"), sources),
            }
            for place, (queries, keys) in axes.items():
                for layer in range(1, 5):
                    heads = [matrix(draw, queries, keys) for _ in range(4)]
                    yield e.AttentionLayer(
                        name, "test2016", number, place, layer, tuple(queries),
                        tuple(keys), heads,
                    )  # fmt: skip
                    if name == "interleaved-query-k":
                        for query in (1, 2):
                            for key in (1, 2):
                                yield e.AttentionLayer(
                                    name, "test2016", number, place, layer,
                                    tuple(queries), tuple(keys),
                                    (matrix(draw, queries, keys),), query, key, True,
                                )  # fmt: skip


def matrix(draw, queries, keys):
    rows = []
    offset, width = draw.choice((-1, 0, 1)), 0.4 + 2 * draw.random()
    for i in range(len(queries)):
        center = i * len(keys) / len(queries) + offset
        row = [
            math.exp(-(((j - center) / width) ** 2)) + 0.02 * draw.random()
            for j in range(len(keys))
        ]
        total = sum(row)
        # As analyses keep them.
        rows.append([round(value / total, 3) for value in row])
    return rows
