"""A made-up parallel corpus, and files of any quality."""

from pathlib import Path

SUBJECTS = ["the cat", "a dog", "the old man", "my sister", "one bird", "the teacher"]
VERBS = ["sees", "likes", "finds", "calls", "hears"]
OBJECTS = ["a house", "the river", "two trees", "some bread", "the long road home"]
OTHER_VOWELS = str.maketrans("aeiou", "äöüie")


def toy_pairs(count):
    """Different sentences of one to four clauses, each with its translation."""
    pairs = []
    for i in range(count):
        clauses = (
            (SUBJECTS[(i + j) % 6], VERBS[(3 * i + j) % 5], OBJECTS[(i + 2 * j) % 5])
            for j in range(1 + i * i % 4)
        )
        source = f"{' and '.join(map(' '.join, clauses))} {i}"
        pairs.append((source, source.translate(OTHER_VOWELS)))
    return pairs


def write_pairs(folder: Path, split: str, pairs, languages=("en", "de")):
    folder.mkdir(parents=True, exist_ok=True)
    for side, language in enumerate(languages):
        text = "".join(pair[side] + "\n" for pair in pairs)
        (folder / f"{split}.{language}").write_text(text, encoding="utf-8")


def spoil(path: Path, damage: str):
    """Damages a file: drops its last byte, changes a byte, or removes the file."""
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    else:
        content[len(content) // 2] ^= damage == "flip"
        path.write_bytes(content[:-1] if damage == "cut" else content)


def write_bytes(folder: Path, split: str, source: bytes, target: bytes):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{split}.en").write_bytes(source)
    (folder / f"{split}.de").write_bytes(target)
