"""A made-up comparison of three systems and two seeds, for tests of its display."""

import math

from keras_attnvariants.experiments import results as e

SYSTEMS = ("base", "hc-sa", "sh-x")
SEEDS = (1, 2)
METRICS = ("BLEU", "chrF2", "TER")
TEST_SETS = ("test2016", "test2017")
SOURCES = (
    "A man rides a red bike.",
    "Two dogs & <b>a cat</b> run.",
    "<script>alert('no')</script>",
)
REFERENCES = (
    "Ein Mann fährt ein rotes Rad.",
    "Zwei Hunde & <b>eine Katze</b> rennen.",
    "=SUM(A1) <img src=x onerror=alert(1)>",
)
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


def comparison(**changes) -> e.ComparisonResult:
    """All fields are filled; corpora and names have text that a page must escape."""
    fields = {
        "title": "Made up <for tests>",
        "data": "multi30k",
        "source_language": "en",
        "target_language": "de",
        "budget": "6,000 updates",
        "baseline": "base",
        "seeds": SEEDS,
        "confidence": 0.95,
        "metrics": METRICS,
        "test_sets": tuple(
            e.TestSet(name, 3, f"split {name} of multi30k") for name in TEST_SETS
        ),
        "systems": tuple(system(i, name) for i, name in enumerate(SYSTEMS)),
        "runs": tuple(
            run(i, name, seed) for i, name in enumerate(SYSTEMS) for seed in SEEDS
        ),
        "missing": ("lstm 1", "lstm 2"),
        "scores": tuple(
            score(i, name, test_set, metric)
            for test_set in TEST_SETS
            for metric in METRICS
            for i, name in enumerate(SYSTEMS)
        ),
        "differences": tuple(
            difference(i, name, test_set, metric)
            for test_set in TEST_SETS
            for metric in METRICS
            for i, name in enumerate(SYSTEMS[1:], start=1)
        ),
        "points": tuple(
            e.PointResult(
                "validation",
                share,
                tuple(score(i, s, "", "BLEU") for i, s in enumerate(SYSTEMS)),
                tuple(difference(i, s, "", "BLEU") for i, s in enumerate(SYSTEMS) if i),
            )
            for share in (0.5, 1.0)
        ),
        "analyses": analyses(),
        "samples": tuple(
            e.SampleSentence(
                "test2016",
                number,
                source,
                reference,
                {name: translation(i, reference) for i, name in enumerate(SYSTEMS)},
            )
            for number, (source, reference) in enumerate(
                zip(SOURCES, REFERENCES, strict=True)
            )
        ),
        "attention": tuple(attention()),
        "origin": e.Origin(
            command="kav compare comparison.toml --folder runs/comparison",
            comparison='title = "Made up <for tests>"\n',
            versions={"keras_attnvariants": "0.1.0", "keras": "3.15.0"},
            hardware={"machine": "x86_64", "processors": "2"},
            corpus={"train": "0" * 64, "test2016": "1" * 64},
            date="2026-11-22 20:00:00+00:00",
            settings={"at_once": 2, "threads": 1, "precision": "mixed_bfloat16"},
        ),
    }
    return e.ComparisonResult(**{**fields, **changes})


def system(i: int, name: str) -> e.SystemResult:
    return e.SystemResult(
        name=name,
        preset=f"kav/{name}/multi30k",
        parameters=1_575_424 - 200_000 * i,
        changes={"dropout": 0.3} if i else {},
        sentences_per_second=40.0 + 10 * i,
        output_tokens_per_second=400.0 + 100 * i,
    )


def run(i: int, name: str, seed: int) -> e.RunResult:
    points = [
        e.CurvePoint(update, update / 8, loss=6 - math.log(update / 50) - 0.1 * i)
        for update in range(100, 6001, 100)
    ]
    points += [
        e.CurvePoint(
            update,
            update / 8,
            validation_loss=6.2 - math.log(update / 60) + 0.02 * seed,
            validation_score=math.log(update) * 4,
        )
        for update in range(600, 6001, 600)
    ]
    points.sort(key=lambda point: point.update)
    return e.RunResult(
        system=name,
        seed=seed,
        updates=6000,
        seconds=750.0 + 10 * seed - 90 * i,
        cpu_seconds=740.0 + 10 * seed - 80 * i,
        tokens_per_second=8000.0 + 500 * i,
        memory_mib=900.0 + 20 * i,
        validation_loss=2.61 + 0.02 * i,
        curve=tuple(points),
    )


def score(i: int, name: str, test_set: str, metric: str) -> e.ScoreSummary:
    mean = {"BLEU": 31.0, "chrF2": 55.0, "TER": 52.0}[metric] + 0.5 * i
    return e.ScoreSummary(
        system=name,
        test_set=test_set,
        metric=metric,
        seeds=SEEDS,
        values=(mean - 0.2, mean + 0.2),
        mean=mean,
        deviation=0.2828,
        low=mean - 2.54,
        high=mean + 2.54,
        signature=SIGNATURE,
    )


def difference(i: int, name: str, test_set: str, metric: str) -> e.Difference:
    return e.Difference(
        system=name,
        test_set=test_set,
        metric=metric,
        difference=0.5 * i,
        low=0.5 * i - 0.8,
        high=0.5 * i + 0.8,
        bootstrap=0.01 * i,
        bootstrap_holm=0.02,
        randomization=0.02 * i,
        randomization_holm=0.04,
        sentence_low=0.5 * i - 0.4,
        sentence_high=0.5 * i + 0.4,
        dunnett=0.04,
        detectable=1.25,
        seeds_needed=9,
        both_low=0.5 * i - 0.6,
        both_high=0.5 * i + 0.6,
    )


def translation(i: int, reference: str) -> str:
    words = reference.split()
    return " ".join(words[:-i] if i else words)


def analyses() -> tuple[e.AnalysisTable, ...]:
    """A table of each kind that a page draws, with the columns of the real ones."""
    places = ("encoder", "decoder", "cross")
    heads = [(p, layer, head) for p in places for layer in (1, 2) for head in (1, 2)]

    def of(name, analysis, title, columns, rows, source, finding):
        return e.AnalysisTable(
            analysis=analysis,
            title=title,
            system=name,
            seed=1,
            test_set="test2016",
            columns=tuple(columns.split()),
            rows=tuple(rows),
            sentences=3,
            skipped=0,
            source=source,
            finding=finding,
            definition="The first of equal weights is the largest.",
        )

    tables = []
    for name in SYSTEMS[:2]:
        tables += [
            of(
                name,
                "locality",
                "Distance of the largest weight, in tokens",
                "place layer head distance signed left_3 left_2 left_1 "
                "itself right_1 right_2 right_3 tokens",
                [
                    (*head, 1.0 + 0.3 * n, -0.2 * n, *[0.1] * 3, 0.3, *[0.1] * 3, 42)
                    for n, head in enumerate(heads)
                ],
                "You et al. 2020, Fig. 2",
                "Heads of the first encoder layer look 1 or 2 tokens away.",
            ),
            of(
                name,
                "distance",
                "Weight by distance",
                "place layer distance weight",
                [
                    ("encoder", layer, d, 0.4 / (1 + abs(d)) / layer)
                    for layer in (1, 2)
                    for d in range(-10, 11)
                ],
                "Loem et al. 2022, Fig. 1",
                "Most weight is on neighbours, in lower layers more so.",
            ),
            of(
                name,
                "entropy",
                "Entropy of heads",
                "place layer head entropy relative tokens",
                [(*head, 1.5 + 0.1 * n, 0.6, 42) for n, head in enumerate(heads)],
                "",
                "",
            ),
        ]
    tables.append(
        of(
            "",
            "bleu-by-length",
            "BLEU by length of the reference",
            "by low high sentences system bleu bleu_low bleu_high difference "
            "difference_low difference_high",
            [
                ("words of the reference", 10.0 * b, 10.0 * b + 10, 100, name)
                + (31.0 - b, 29.0 - b, 33.0 - b)
                + ((0.5 * i, -0.5, 1.5) if i else (None, None, None))
                for b in range(3)
                for i, name in enumerate(SYSTEMS)
            ],
            "You et al. 2020, Fig. 4",
            "hc-sa is flat; hc-all falls with length.",
        )
    )
    return tuple(tables)


def attention():
    """Weights of two systems on the first two sentences, and quadrants of one."""
    for i, name in enumerate(SYSTEMS[:2]):
        for number in (0, 1):
            source = tuple(SOURCES[number].split())
            target = tuple(REFERENCES[number].split())
            axes = {
                "encoder": (source, source),
                "decoder": (("<s>", *target), ("<s>", *target)),
                "cross": ((*target, "</s>"), source),
            }
            for place, (queries, keys) in axes.items():
                heads = [matrix(queries, keys, i + h) for h in range(2)]
                for layer in (1, 2):
                    yield e.AttentionLayer(
                        name, "test2016", number, place, layer, queries, keys, heads
                    )
    source = tuple(SOURCES[0].split())
    for query_order in (1, 2):
        for key_order in (1, 2):
            yield e.AttentionLayer(
                "sh-x",
                "test2016",
                0,
                "encoder",
                1,
                source,
                source,
                [matrix(source, source, query_order + key_order)],
                query_order,
                key_order,
                is_quadrant=True,
            )


def matrix(queries, keys, shift: int) -> list[list[float]]:
    """Rows that sum to 1."""
    rows = []
    for i in range(len(queries)):
        row = [1.0 / (1 + abs(i + shift - j)) for j in range(len(keys))]
        rows.append([round(value / sum(row), 3) for value in row])
    return rows
