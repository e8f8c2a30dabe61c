"""Translating files."""

import contextlib
import json

import numpy as np
import pytest

from keras_attnvariants import beam as package
from keras_attnvariants.beam import translation as module
from keras_attnvariants.serving.folders import INFO
from keras_attnvariants.serving.translator import Status
from tests.beam.conftest import HERE
from tests.beam.conftest import PAIRS
from tests.beam.conftest import files_of

TOO_LONG = "x" * 81


class Reversing:
    """Writes texts backwards; finds nothing for "none" and truncates "cut"."""

    info = {"options": {"max_characters": 80}}

    def predict(self, inputs):
        texts = inputs["text"]
        assert all(text.strip() for text in texts)
        none, ok = int(Status.NOTHING_FOUND), int(Status.OK)
        return {
            "translations": np.array([text[::-1] for text in texts], object),
            "status": np.array([none if text == "none" else ok for text in texts]),
            "truncated": np.array([text == "cut" for text in texts]),
        }


@pytest.fixture
def reversing(monkeypatch, tmp_path):
    """Loads `Reversing` in place of any model; the list has an entry for each load."""
    loaded = []

    def load(path):
        loaded.append(path)
        return Reversing()

    module._loaded.cache_clear()
    monkeypatch.setattr("keras_attnvariants.serving.saved.SavedTranslator", load)
    (tmp_path / "model" / INFO).parent.mkdir(parents=True)
    (tmp_path / "model" / INFO).touch()
    yield loaded
    module._loaded.cache_clear()


LINES = [b"one", b"\xff", b"", b"a\0b", b"none", TOO_LONG.encode(), b"cut", b"\xc3\xa9"]
EXPECTED = ["eno", "", "", "", "", "", "", "\u00e9"]
REASONS = {
    1: "invalid UTF-8",
    3: "NUL",
    4: "the search found no translation",
    5: "more than 80 characters",
    6: "too many tokens",
}


def test_bad_lines_have_reasons_and_the_others_translations():
    assert module.translated(LINES, Reversing()) == (EXPECTED, REASONS)
    assert module.translated([], Reversing()) == ([], {})
    assert module.translated(["\u3000".encode()], Reversing()) == ([""], {})


def test_a_part_is_translated_block_by_block(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "LINES_PER_BLOCK", 3)
    (tmp_path / "a").write_bytes(b"\n".join(LINES))
    [part] = module.engine.parts_of(tmp_path / "a", tmp_path / "p", 1000)
    counts = module.translate_part(part, Reversing())
    reasons = {f"bad: {reason}": 1 for reason in REASONS.values()}
    assert counts == {"lines translated": 3, **reasons}
    record = json.loads((tmp_path / "p-000000.json").read_text())
    assert record == {"texts": EXPECTED, "bad": [list(bad) for bad in REASONS.items()]}


def test_files_are_translated_line_by_line(beam, monkeypatch, reversing, tmp_path):
    monkeypatch.setattr("keras_attnvariants.beam.translation.SMALLEST_PART", 50)
    monkeypatch.setattr(module, "LINES_PER_BLOCK", 3)
    (tmp_path / "a").write_bytes(b"\n".join(LINES * 5) + b"\n")
    (tmp_path / "b").write_text("".join(f"{source}\n" for source, _ in PAIRS))
    (tmp_path / "empty").touch()
    files = [tmp_path / name for name in ("a", "b", "empty")]
    output = tmp_path / "out"
    found = package.translate_files(files, tmp_path / "model", output, options=HERE)
    assert (output / "a").read_text("utf-8").split("\n")[:-1] == EXPECTED * 5
    lines = (output / "b").read_text("utf-8").splitlines()
    longest = Reversing.info["options"]["max_characters"]
    assert lines == [s[::-1] if len(s) <= longest else "" for s, _ in PAIRS]
    assert (output / "empty").read_bytes() == b""
    bad = [line.split("\t") for line in (output / "a.bad.tsv").read_text().splitlines()]
    assert bad == [
        [str(1 + 8 * i + line), reason]
        for i in range(5)
        for line, reason in REASONS.items()
    ]
    assert [(entry.file, entry.lines) for entry in found] == [
        (output / "a", 40),
        (output / "b", 60),
        (output / "empty", 0),
    ]
    assert found[0].bad == {reason: 5 for reason in REASONS.values()}
    assert not found[2].bad and not (output / "empty.bad.tsv").exists()
    assert not [path for path in output.iterdir() if path.is_dir()]
    assert reversing == [str(tmp_path / "model")]


def test_a_file_may_be_called_parts(monkeypatch, reversing, tmp_path):
    def for_each(steps, namespace, parts, do):
        for part in parts:
            module.translate_part(part, Reversing())

    monkeypatch.setattr(module.engine, "check_beam", lambda: None)
    pipeline = contextlib.nullcontext
    monkeypatch.setattr(module.engine, "pipeline", lambda *given: pipeline())
    monkeypatch.setattr(module.engine, "for_each", for_each)
    (tmp_path / "parts").write_text("one\n")
    output = tmp_path / "out"
    package.translate_files(
        [tmp_path / "parts"], tmp_path / "model", output, options=HERE
    )
    assert (output / "parts").read_text() == "eno\n"


@pytest.mark.parametrize(
    ("files", "output", "error", "message"),
    [
        ([], "out", ValueError, "at least one file"),
        (["a", "nowhere"], "out", FileNotFoundError, "no such file. .*nowhere"),
        (["a", "more/a"], "out", ValueError, "names that differ. Received: 2 files a"),
        (["a"], "more", ValueError, "`output` must not exist yet. Received: .*more"),
    ],
)
def test_wrong_calls(monkeypatch, tmp_path, files, output, error, message):
    monkeypatch.setattr("keras_attnvariants.beam.engine.check_beam", lambda: None)
    (tmp_path / "more").mkdir()
    for name in ("a", "more/a"):
        (tmp_path / name).touch()
    paths = [tmp_path / name for name in files]
    with pytest.raises(error, match=message):
        package.translate_files(paths, tmp_path / "model", tmp_path / output)


@pytest.fixture
def exported(tmp_path_factory, tokenizer):
    """A tiny untrained model with sharp outputs."""
    from keras_attnvariants import serving
    from tests.serving.tools import sharp_model

    model = sharp_model("hc-sa", vocabulary_size=tokenizer.vocabulary_size)
    limits = {"max_batch": 16, "max_characters": 200, "max_tokens": 60}
    folder = tmp_path_factory.mktemp("exported")
    return serving.export(model, tokenizer, folder, signatures=(), **limits)


@pytest.mark.slow
def test_two_processes_translate_as_one_does(beam, exported, monkeypatch, tmp_path):
    monkeypatch.setattr("keras_attnvariants.beam.translation.SMALLEST_PART", 700)
    sources = [source.encode() for source, _ in PAIRS]
    (tmp_path / "a").write_bytes(b"\n".join([*sources, *LINES]))
    (tmp_path / "b").write_bytes(b"\n".join(sources[::-1]))
    files = [tmp_path / "a", tmp_path / "b"]
    for workers in (1, 2):
        output = tmp_path / f"out-{workers}"
        found = package.translate_files(files, exported, output, workers=workers)
        assert [entry.lines for entry in found] == [68, 60]
        assert set(found[0].bad.values()) == {1}
    assert files_of(tmp_path / "out-1") == files_of(tmp_path / "out-2")
    from keras_attnvariants.serving import SavedTranslator

    expected = SavedTranslator(exported).translate([s.decode() for s in sources[::-1]])
    assert (tmp_path / "out-2" / "b").read_text("utf-8").splitlines() == expected
