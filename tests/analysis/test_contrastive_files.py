"""Contrastive pairs from folders and from JSON, in both formats and damaged."""

import gzip
import json

import pytest

from keras_attnvariants import analysis

ENTRIES = [
    {
        "source": "he sings",
        "reference": "er singt",
        "origin": "made up",
        "errors": [
            {"type": "subj-verb-agreement", "contrastive": "er singen", "distance": 1},
            {"type": "auxiliary", "contrastive": "er wird", "frequency": 3},
        ],
    },
    {"source": '¡ü"]}', "reference": "ß", "errors": []},
    {
        "source": "no",
        "reference": "nein",
        "errors": [{"type": "auxiliary", "contrastive": "kein", "distance": None}],
    },
]
PAIRS = [
    ("he sings", "er singt", "er singen", "subj-verb-agreement", 1),
    ("he sings", "er singt", "er wird", "auxiliary", None),
    ("no", "nein", "kein", "auxiliary", None),
]


def write(folder, name, **parts):
    for part, text in parts.items():
        path = folder / f"{name}.{part}.{'en' if part == 'src' else 'de'}.gz"
        path.write_bytes(gzip.compress(text.encode()))


def test_a_folder(tmp_path):
    write(tmp_path, "verb.mt", src="a\nb\n", correct="c\nd\n", incorrect="e\nf\n")
    write(tmp_path, "noun", src="g\n", correct="h\n", incorrect="i\n")
    assert list(analysis.read_contrastive(tmp_path)) == [
        ("g", "h", "i", "noun", None),
        ("a", "c", "e", "verb.mt", None),
        ("b", "d", "f", "verb.mt", None),
    ]


@pytest.mark.parametrize("indent", [None, 2])
def test_lingeval(indent, tmp_path):
    path = tmp_path / "lingeval97.json"
    path.write_text(json.dumps(ENTRIES, indent=indent, ensure_ascii=False), "utf-8")
    assert list(analysis.read_contrastive(path)) == PAIRS


def test_unequal_lines(tmp_path):
    write(tmp_path, "noun", src="g\nh\n", correct="h\n", incorrect="i\ni\n")
    with pytest.raises(ValueError, match="noun.correct.de.gz ended before line 2"):
        list(analysis.read_contrastive(tmp_path))


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="<category>.src.<language>"):
        list(analysis.read_contrastive(tmp_path))
    write(tmp_path, "noun", src="g\n", correct="h\n")
    with pytest.raises(FileNotFoundError, match="noun.incorrect.<language>"):
        list(analysis.read_contrastive(tmp_path))
    with pytest.raises(FileNotFoundError, match="no such file"):
        list(analysis.read_contrastive(tmp_path / "nowhere.json"))


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("", "EOF .* of .*pairs.json"),
        ("{}", "a valid array"),
        ("[", "EOF while parsing a list"),
        ('[{"source": "a"', "EOF while parsing an object"),
        ("[" * 100_000, "recursion limit"),
        ("[1]", "an object. Received: 0 of"),
        ('[{"source": "a"}]', "required. Received: 0 > reference of"),
        ('[{"source": 1, "reference": "b", "errors": [{}]}]', "string.*0 > source"),
        (json.dumps(ENTRIES).replace("1}", '"far"}'), "0 > errors > 0 > distance"),
    ],
)
def test_damaged_json(text, phrase, tmp_path):
    path = tmp_path / "pairs.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=phrase):
        list(analysis.read_contrastive(path))


def test_the_real_pairs(data_folder):
    pairs = analysis.read_contrastive(data_folder / "contrastive-distil-lingeval")
    first = next(pairs)
    assert first.category == "clause_omission.human"
    assert len(first.reference) > len(first.contrastive)
    assert sum(1 for _ in pairs) == 65_561
