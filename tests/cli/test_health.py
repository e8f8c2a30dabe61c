"""Each kind of damage to a run, a model or a corpus is found, with what works still."""

import json
import shlex
import shutil

import pytest

from keras_attnvariants.cli import health
from keras_attnvariants.cli.doctor import DAMAGED
from keras_attnvariants.cli.doctor import NOTE
from keras_attnvariants.serving import SavedTranslator
from keras_attnvariants.serving import export
from keras_attnvariants.serving import saved as saved_models
from keras_attnvariants.serving.verification import ProcessorError
from keras_attnvariants.trained import adapters
from keras_attnvariants.trained import load_model
from keras_attnvariants.trained.adapters import Adapter
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.folders import new_folder
from tests.serving.tools import LIMITS
from tests.serving.tools import sharp_model
from tests.serving.tools import sign
from tests.training import toy

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that has ended: two states, three checkpoints, best and averaged."""
    folder = tmp_path_factory.mktemp("doctor") / "run"
    toy.run(folder, toy.toy_config(steps=24), bleu=False, tokenizer=toy.toy_tokenizer())
    return folder


@pytest.fixture
def run(trained, tmp_path):
    """A copy of it to damage."""
    return shutil.copytree(trained, tmp_path / "run")


def cut(path):
    path.write_bytes(path.read_bytes()[:-7])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def states(run):
    return sorted((run / "state").iterdir())


def of_state(found, state):
    return {
        finding.name: finding for finding in found.findings if finding.state == state
    }


def test_a_healthy_run(run):
    found = health.examine_run(run)
    assert not found.damaged and found.kind == "a run"
    names = {finding.name for finding in found.findings}
    assert {"config.json", "tokenizer.model", "log.jsonl", "best", "averaged"} <= names
    assert found.usable == [
        f"kav translate --model {run / 'best'}",
        f"kav translate --model {run / 'averaged'}",
        "kav train with the same options continues at update 24",
    ]
    assert not of_state(found, NOTE)


@pytest.mark.parametrize("harm", [cut, flip, lambda path: path.unlink()])
@pytest.mark.parametrize("name", ["model.weights.h5", "config.json", "manifest.json"])
def test_a_damaged_model_of_a_run(run, name, harm):
    harm(run / "best" / name)
    found = health.examine_run(run)
    [(where, finding)] = of_state(found, DAMAGED).items()
    assert where == "best" and (name in finding.text or "manifest" in finding.text)
    assert finding.advice
    assert found.usable[0] == f"kav translate --model {run / 'averaged'}"
    assert not any("best" in line for line in found.usable)


@pytest.mark.parametrize("harm", [cut, flip])
def test_a_damaged_state_is_passed_over(run, harm):
    old, new = states(run)
    harm(new / "variables.npz")
    found = health.examine_run(run)
    assert list(of_state(found, DAMAGED)) == [f"state/{new.name}"]
    step = json.loads((old / "progress.json").read_text())["step"]
    assert found.usable[-1].endswith(f"continues at update {step}")


def test_without_an_intact_state_nothing_can_be_continued(run):
    for path in states(run):
        cut(path / "progress.json")
    found = health.examine_run(run)
    assert len(of_state(found, DAMAGED)) == len(states(run)) + 1 == 3
    assert not any("kav train" in line for line in found.usable)


def test_a_run_without_states(run):
    shutil.rmtree(run / "state")
    found = health.examine_run(run)
    assert not found.damaged
    assert not any("kav train" in line for line in found.usable)


@pytest.mark.parametrize("harm", [cut, lambda path: path.write_text("{}")])
def test_damaged_settings(run, harm):
    harm(run / "config.json")
    found = health.examine_run(run)
    assert list(of_state(found, DAMAGED)) == ["config.json"]
    assert not any("kav train" in line for line in found.usable)
    assert len(found.usable) == 2


@pytest.mark.parametrize("harm", [cut, flip, lambda path: path.unlink()])
def test_a_changed_tokenizer(run, harm):
    harm(run / "tokenizer.model")
    found = health.examine_run(run)
    [finding] = of_state(found, DAMAGED).values()
    assert finding.name == "tokenizer.model"
    assert "tokenizer.model" in finding.text


def test_a_damaged_log(run):
    log = run / "log.jsonl"
    with log.open("a") as file:
        file.write('{"event": "per')
    assert not health.examine_run(run).damaged  # a resume removes the rest of a line
    log.write_text("nonsense\n" + log.read_text())
    assert "Line 1" in of_state(health.examine_run(run), DAMAGED)["log.jsonl"].text
    log.unlink()
    assert of_state(health.examine_run(run), DAMAGED)["log.jsonl"].text == "missing"


def test_damaged_and_missing_checkpoints(run):
    first, *_ = sorted((run / "checkpoints").iterdir())
    flip(first / "weights.npz")
    found = health.examine_run(run)
    assert list(of_state(found, DAMAGED)) == [f"checkpoints/{first.name}"]
    shutil.rmtree(run / "checkpoints")
    assert not health.examine_run(run).damaged


def test_leftovers_of_a_killed_process(run):
    (run / "tmp-best-1234").mkdir()
    found = health.examine_run(run)
    assert not found.damaged
    assert (run / "tmp-best-1234").is_dir()  # a doctor changes nothing


def test_a_run_before_its_first_validation(run):
    for name in ("best", "averaged", "checkpoints"):
        shutil.rmtree(run / name)
    (run / "log.jsonl").write_text("")
    found = health.examine_run(run)
    assert not found.damaged
    assert [line.split()[1] for line in found.usable] == ["train"]


def test_models(run):
    model = run / "best"
    found = health.examine_model(model)
    assert not found.damaged
    assert found.usable == [f"kav translate --model {model}"]
    flip(model / "tokenizer.model")
    found = health.examine_model(model)
    assert "tokenizer.model" in of_state(found, DAMAGED)["best"].text
    assert found.usable == []


def test_adapters(run):
    adapter, model = run / "adapter", load_model(run / "best").model
    settings = Adapter("../best", adapters.weights_sha256(model), 1, "toy")
    adapters.save_adapter(adapter, model, model, settings)
    found = health.examine(str(adapter))
    assert not found.damaged
    assert found.usable == [f"kav translate --model {adapter}"]
    cut(adapter / "adapter.npz")
    assert health.examine(str(adapter)).damaged


def test_folders_with_spaces_are_quoted(run):
    model = (run / "best").rename(run / "best of 'all'")
    [line] = health.examine_model(model).usable
    assert shlex.split(line) == ["kav", "translate", "--model", str(model)]


def test_kinds_of_folders(run, tmp_path):
    assert health.examine(str(run)).kind == "a run"
    assert health.examine(str(run / "best")).kind == "a model"
    (run / "best" / "manifest.json").unlink()
    assert health.examine(str(run / "best")).kind == "a model"
    (tmp_path / "nothing").mkdir()
    with pytest.raises(ValueError, match="Give the folder of a run.*nothing"):
        health.examine(str(tmp_path / "nothing"))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A SavedModel in five versions, of which the first is intact."""
    folder = tmp_path_factory.mktemp("saved")
    first = export(sharp_model("hc-sa"), None, folder, **LIMITS)
    for number in "2345":
        shutil.copytree(first, folder / number)
    cut(folder / "2" / "saved_model.pb")
    sign(folder / "2")
    (folder / "3" / "unlisted").touch()
    (folder / "4" / "saved_model.pb").unlink()
    [data] = (folder / "5" / "variables").glob("*.data-*")
    cut(data)
    sign(folder / "5")
    return folder


def test_versions_of_a_saved_model(saved):
    found = health.examine(str(saved))
    damaged = of_state(found, DAMAGED)
    assert list(damaged) == ["2", "3", "4", "5"]
    for version, finding in damaged.items():
        assert "export the model again" in finding.text and not finding.advice
        with pytest.raises(DamagedFolderError) as refused:
            SavedTranslator(saved / version)
        assert finding.text == str(refused.value)
    assert found.usable == [f"kav translate --saved-model {saved / '1'}"]


def test_a_saved_model_without_its_graph_is_one(saved):
    found = health.examine(str(saved / "4"))
    assert found.kind == "a SavedModel" and found.damaged


def test_a_saved_model_that_this_processor_would_run_wrongly(saved, monkeypatch):
    def refuse(folder):
        raise ProcessorError("Integers are not exact here: use another processor.")

    monkeypatch.setattr(saved_models, "check", refuse)
    found = health.examine_saved_model(saved / "1")
    [finding] = of_state(found, DAMAGED).values()
    assert finding.text == "Integers are not exact here: use another processor."
    assert not found.usable


@pytest.fixture
def corpus(corpus_folder, tmp_path, monkeypatch):
    """A copy to damage."""
    monkeypatch.setenv("KAV_CACHE", str(tmp_path / "cache"))
    return shutil.copytree(corpus_folder, tmp_path / "corpus")


def damaged(found):
    return {f.name: f for f in found.findings if f.state == DAMAGED}


LANGUAGES = ("xx", "yy")


def test_a_healthy_corpus(corpus):
    (corpus / "README.md").write_text("About it.\n")
    found = health.examine(str(corpus), LANGUAGES)
    assert not found.damaged
    assert "train" in {finding.name for finding in found.findings}
    assert not any(finding.state == NOTE for finding in found.findings)


def test_unequal_numbers_of_lines(corpus):
    with (corpus / "train.xx").open("a") as file:
        file.write("one more\n")
    found = health.examine_corpus(str(corpus), LANGUAGES)
    text = damaged(found)["corpus"].text
    assert "601 lines in" in text and f"600 lines in {corpus / 'train.yy'}" in text
    assert found.usable == []


@pytest.mark.parametrize("name", ["train.xx.gz", "valid.xx"])
def test_two_files_of_one_split(corpus, name):
    (corpus / name).write_bytes((corpus / "train.xx").read_bytes())
    found = health.examine_corpus(str(corpus), LANGUAGES)
    assert any("Two files for split" in f.text for f in damaged(found).values())
    assert found.usable == []


@pytest.mark.parametrize(
    ("data", "phrase"),
    [
        (bytes(range(256)) * 100, "binary"),
        ("für und wider\n".encode("latin-1") * 600, "UTF-8"),
        ("für und wider\n".encode("utf-16") * 600, "UTF-16"),
        (b"\x1f\x8b broken", "Broken gzip"),
        (b"", "the same number of lines"),
        (b"\n \n" * 300, "600 empty"),
    ],
)
def test_damaged_files(corpus, data, phrase):
    (corpus / "train.yy").write_bytes(data)
    finding = damaged(health.examine_corpus(str(corpus), LANGUAGES))["corpus"]
    assert phrase in finding.text and str(corpus / "train.yy") in finding.text


def test_splits_that_are_incomplete(corpus):
    (corpus / "test.yy").unlink()
    for language in LANGUAGES:
        (corpus / f"train.{language}").unlink()
    (corpus / "test.zz").touch()
    found = health.examine_corpus(str(corpus), LANGUAGES)
    notes = {f.name: f.text for f in found.findings if f.state == NOTE}
    assert not found.damaged
    assert "test: left out" in notes["corpus"] and "scoring" in notes["train"]


def test_tables(tmp_path):
    table = tmp_path / "pairs.tsv"
    pairs = [f"{number}\tb\n" for number in range(300)]
    table.write_text("".join([*pairs, "c\n"]))
    found = health.examine(str(table), LANGUAGES)
    assert not found.damaged
    assert any("1 not two columns" in finding.text for finding in found.findings)
    table.write_text("".join(pair.replace("\t", " ") for pair in pairs))
    found = health.examine(str(table), LANGUAGES)
    assert "no usable pair" in damaged(found)["pairs.tsv"].text and not found.usable


def test_corpora_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KAV_CACHE", str(tmp_path))
    folder = tmp_path / "sources" / "bible-de-en-de-en"
    with new_folder(folder) as writer:
        for language in ("de", "en"):
            writer.write_bytes(f"train.{language}", b"Haus\n")
    found = health.examine("bible-de-en", ("de", "en"))
    assert not found.damaged and found.findings[0].name == "train"
    with pytest.raises(ValueError, match="has the languages de, en"):
        health.examine("bible-de-en", ("de", "ja"))
