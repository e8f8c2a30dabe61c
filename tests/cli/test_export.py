"""`kav export`: errors are reported before any work; test_end_to_end exports."""

import json
import subprocess
import sys

import pytest

from keras_attnvariants.serving import precision as precisions
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout


def test_a_folder_without_a_model(kav, tmp_path):
    result = kav("export", "--model", tmp_path, "--output", tmp_path / "out")
    check_error(result, "manifest.json", str(tmp_path))
    assert not (tmp_path / "out").exists()


def test_options_out_of_range(kav, run_folder, tmp_path):
    options = ("--model", run_folder, "--output", tmp_path / "out")
    check_error(kav("export", *options, "--max-tokens", 4000), "`max_tokens`", "4000")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_signatures_by_name_and_their_translators(kav, run_folder, tmp_path):
    names = ("translate_with", "sample")
    chosen = [option for name in names for option in ("--signature", name)]
    exported = ("--output", tmp_path, "--beam-size", 2, "--precision", "float32")
    exported = (*exported, *chosen)
    lines = stdout(kav("export", "--model", run_folder, *exported)).splitlines()
    assert [line.split(":")[0].strip() for line in lines[2:-1]] == [
        "serving_default",
        *names,
    ]
    info = json.loads((tmp_path / "1/assets.extra/model_info.json").read_text())
    assert list(info["signatures"]) == ["serving_default", *names]
    for options in (
        ["--sample", "--temperature", 1.5, "--top-k", 9, "--seed", 3],
        ["--no-repeat-ngram", 1],
    ):
        call = ("translate", "be la ba le be la", "", "la be", *options)
        expected = stdout(
            kav(
                *call, "--model", run_folder, "--beam-size", 2, "--precision", "float32"
            )
        )
        assert stdout(kav(*call, "--saved-model", tmp_path)) == expected


def test_a_signature_that_does_not_exist(kav, run_folder, tmp_path):
    options = ("--model", run_folder, "--output", tmp_path / "out")
    result = kav("export", *options, "--signature", "sing")
    check_error(result, "`signatures`", "'translate_with'", "'sing'")
    assert not list(tmp_path.rglob("saved_model.pb"))


@pytest.mark.slow
def test_the_precision_of_an_export_is_printed(kav, run_folder, tmp_path, monkeypatch):
    faster = {"model": ("bfloat16", 0.543)}

    def faster_floats(model):
        assert model.name and model.quantization is None
        return faster["model"]

    monkeypatch.setattr(precisions, "faster_floats", faster_floats)
    cost = "a search in bfloat16 takes 0.54 of the time in float32"
    for precision, found in (
        ("auto", f"computes in bfloat16: {cost}\n"),
        ("float32", "computes in float32\n"),
        ("int8-weights", ", 8-bit integers\n"),
    ):
        options = ("--output", tmp_path / precision, "--precision", precision)
        assert found in stdout(kav("export", "--model", run_folder, *options))
    faster["model"] = "float32", None
    options = ("--output", tmp_path / "here")
    printed = stdout(kav("export", "--model", run_folder, *options))
    assert "float32: here, bfloat16 would also round partial sums\n" in printed


def test_integers_need_a_processor_that_multiplies_them_exactly(
    kav, run_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr("keras_attnvariants.backend.is_onednn_exact", lambda: False)
    options = ("--output", tmp_path / "out", "--precision", "int8")
    result = kav("export", "--model", run_folder, *options)
    check_error(result, "AVX512-VNNI", "`int8-weights` runs anywhere")
    assert not list(tmp_path.rglob("saved_model.pb"))


@pytest.mark.parametrize(
    ("format", "options"),
    [
        ("onnx", ["--max-batch", 3, "--shortlist", "list.npz", "--signature", "score"]),
        ("onnx", ["--precision", "int8"]),
        ("onnx", ["--ids-only", "--version", 2, "--deployment", "deploy"]),
        ("ctranslate2", ["--beam-size", 3]),
    ],
)
def test_options_that_only_saved_models_have(kav, tmp_path, format, options):
    place = ("--model", "kav/base/tatoeba-en-de", "--output", tmp_path / "out")
    result = kav("export", *place, "--format", format, *options)
    names = [option for option in options if str(option).startswith("--")]
    check_error(result, f"--format {format} has no such options", *names)
    assert not list(tmp_path.iterdir())


def test_a_precision_that_ctranslate2_does_not_have(kav, tmp_path):
    place = ("--model", "kav/base/tatoeba-en-de", "--output", tmp_path / "out")
    result = kav("export", *place, "--format", "ctranslate2", "--precision", "bfloat16")
    check_error(result, "`--precision` must be one of 'auto'", "'bfloat16'")


def test_folders_of_other_formats_must_be_new(kav, tmp_path):
    place = ("--model", "kav/base/tatoeba-en-de", "--output", tmp_path)
    check_error(kav("export", *place, "--format", "onnx"), "`--output` must not exist")


def test_a_layer_that_ctranslate2_does_not_have(kav, tmp_path):
    pytest.importorskip("ctranslate2", reason="needs its extra")
    place = ("--model", "kav/hc-sa/tatoeba-en-de", "--output", tmp_path / "out")
    result = kav("export", *place, "--format", "ctranslate2")
    check_error(result, "encoder_0 self_attention is HardCodedAttention")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_other_formats_translate_as_the_model(kav, tmp_path):
    pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")
    ctranslate2 = pytest.importorskip("ctranslate2", reason="needs its extra")
    import sentencepiece

    texts = ["Where is the station?", "I have lost my key.", "It is raining."]
    model = ("--model", "kav/base/tatoeba-en-de")
    # CTranslate2 normalises scores in another way.
    search = ("--beam-size", 4, "--length-penalty", 0)
    expected = stdout(kav("translate", *texts, *model, *search)).splitlines()
    for format in ("onnx", "ctranslate2"):
        options = ["--output", tmp_path / format, "--format", format]
        options += search if format == "onnx" else ()
        assert "tokenizer.model (0.3 MB)" in stdout(kav("export", *model, *options))
    program = [sys.executable, tmp_path / "onnx" / "translate.py", *texts]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == expected
    folder = tmp_path / "ctranslate2"
    tokenizer = sentencepiece.SentencePieceProcessor(str(folder / "tokenizer.model"))
    found = ctranslate2.Translator(str(folder), compute_type="float32").translate_batch(
        tokenizer.encode(texts, out_type=str), beam_size=4, length_penalty=0
    )
    assert [tokenizer.decode(each.hypotheses[0]) for each in found] == expected
