"""Comparisons in folders: refusals, repeated work, and kills, which change nothing.

Runs are made up here, except in one test, which trains.
"""

import errno
import json
import lzma
import os
import re
import shutil
import signal
import sys
import time

import pytest

from keras_attnvariants import experiments
from keras_attnvariants import training
from keras_attnvariants.evaluation import corpus_score
from keras_attnvariants.experiments import comparison
from keras_attnvariants.experiments import comparison_folder
from keras_attnvariants.experiments import result_files
from keras_attnvariants.experiments.comparison_folder import Run
from keras_attnvariants.experiments.comparison_folder import RunRecord
from keras_attnvariants.experiments.page.ranking import cost_values
from keras_attnvariants.experiments.results import RunResult
from keras_attnvariants.presets import registry
from keras_attnvariants.training import run_settings
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.locks import FolderInUseError
from keras_attnvariants.utils.locks import lock_folder
from keras_attnvariants.utils.records import write_record
from tests.experiments.toy import SYSTEMS
from tests.experiments.toy import toy_file

WRITE_PAGE = "keras_attnvariants.experiments.page.write_page"
# Without speed and analyses, which need a model.
BARE = {
    "runs = 1": "runs = 0",
    'names = ["locality", "activation-shares", "bleu-by-length"]': "",
    "attention_sentences = 1": "",
}
# Sentences of another split in place of those of the test set.
SHOWN = {"[decoding]": '[shown]\nsplit = "validation"\n\n[decoding]'}


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, corpus_cache):
    monkeypatch.setenv("KAV_CACHE", str(corpus_cache))


@pytest.fixture
def jobs(monkeypatch):
    """Jobs that make up a run instead of training one."""
    done = []

    def run_jobs(jobs, *options):
        for job in jobs:
            done.append(job.name)
            make_up(*job.function.args)
        return {}

    monkeypatch.setattr(comparison, "run_jobs", run_jobs)
    return done


@pytest.fixture
def pages(monkeypatch):
    """The pages that would be written; writing them takes seconds."""
    written = []
    monkeypatch.setattr(WRITE_PAGE, lambda *arguments: written.append(arguments))
    return written


@pytest.fixture
def compare(tmp_path, corpus_folder, jobs, pages):
    """Runs the comparison of the toys, with changes of its file."""

    def run(systems=SYSTEMS, data=corpus_folder, options=None, top="", **changes):
        path = toy_file(tmp_path, data, systems, top, **{**BARE, **changes})
        compared = experiments.Comparison.from_file(path, tmp_path / "out")
        return compared.run(**(options or {}))

    return run


def make_up(run: Run) -> None:
    """A run whose translations get a little worse with every seed."""
    (run.path / "best").mkdir(parents=True, exist_ok=True)
    (run.path / "best" / "manifest.json").write_text("{}")
    (run.path / "config.json").write_text("{}")
    event = {"event": "period", "step": 4, "seconds": 1.0, "val_loss": 2.0, "loss": 3.0}
    (run.path / "log.jsonl").write_text(f"{json.dumps(event)}\n")
    name = run.system.name
    record = RunRecord(RunResult(name, run.seed, 4, 1.0, 0.9, 8.0, 700.0, 2.0))
    for test in run.folder.settings.translated:
        lines = run.folder.pairs(test)[1]
        kept = len(lines) - run.seed - len(name)
        path = run.translation(test)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join([*lines[:kept], *["wrong words"] * (len(lines) - kept)])
        path.write_text(f"{text}\n", "utf-8")
        record.translations[test.name] = run.digest(test)
    write_record(run.record_path, record)


def test_a_comparison_from_the_file_to_the_tables(
    compare, tmp_path, jobs, corpus_folder, pages
):
    result = compare(options={"command": "kav compare …"})
    # Early results compare all systems.
    assert jobs == ["base 1", "hc 1", "base 2", "hc 2"]
    assert result.missing == ()
    assert result.budget == "4 updates"
    score = result.score("base", "test", "BLEU")
    folder = tmp_path / "out"
    for seed, value in zip(score.seeds, score.values, strict=True):
        lines = (folder / f"translations/test/base-{seed}.txt").read_text().split("\n")
        references = (corpus_folder / "test.yy").read_text().split("\n")[:-1]
        expected = corpus_score("bleu", lines[:-1], references)
        assert value == pytest.approx(expected.value, abs=1e-9)
        assert score.signature == expected.signature
    assert result.difference("hc", "test", "BLEU").difference > 0
    assert experiments.ComparisonResult.read(folder / result_files.RESULTS) == result
    assert pages == [(result, folder / result_files.PAGE)]
    for name in ("systems.csv", "runs.csv", "scores.csv", "differences.csv"):
        assert (folder / name).read_text().count("\n") > 2
    assert (folder / "comparison.toml").read_text() == result.origin.comparison


def test_a_missing_package_is_reported_before_any_work(compare, jobs, monkeypatch):
    monkeypatch.setattr(result_files, "NEEDED", ("scipy", "no_such_package"))
    with pytest.raises(ValueError, match="no_such_package, not installed.*compare"):
        compare()
    assert jobs == []


def test_finished_work_is_not_repeated(compare, tmp_path, jobs):
    first = compare()
    jobs.clear()
    again = compare()
    assert jobs == []
    assert again.scores == first.scores
    (tmp_path / "out" / "translations" / "test" / "hc-2.txt").unlink()
    compare()
    assert jobs == ["hc 2"]


def test_records_stand_for_runs_that_are_gone(compare, tmp_path, jobs):
    options = {"records": tmp_path / "records"}
    first = compare(options=options, **SHOWN)
    names = sorted(path.name for path in (tmp_path / "records").iterdir())
    assert names == [
        *(f"{name}-{seed}.json.xz" for name in ("base", "hc") for seed in "12"),
        "tokenizer.model",
    ]
    shutil.rmtree(tmp_path / "out")
    jobs.clear()
    # A record replaces a run that was only begun, and decides the precision.
    begun = tmp_path / "out" / "runs" / "base" / "seed-1"
    begun.mkdir(parents=True)
    (begun / "log.jsonl").write_text("{}\n")
    second = compare(options=options, **SHOWN)
    assert jobs == []
    for part in ("runs", "scores", "differences", "samples"):
        assert getattr(first, part) == getattr(second, part)
    # A run without a record is trained again.
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "records" / "hc-2.json.xz").unlink()
    assert compare(options=options, **SHOWN).scores == first.scores
    assert jobs == ["hc 2"]


def test_records_keep_translations_that_a_comparison_no_longer_needs(
    compare, tmp_path, jobs
):
    options = {"records": tmp_path / "records"}
    first = compare(options=options, **SHOWN)
    jobs.clear()
    for changes in ({}, SHOWN):
        shutil.rmtree(tmp_path / "out")
        last = compare(options=options, **changes)
    assert jobs == []
    assert last.samples == first.samples


def test_runs_go_on_with_the_vocabulary_of_the_records(
    compare, tmp_path, jobs, monkeypatch
):
    options = {"records": tmp_path / "records"}
    compare(options=options)
    vocabulary = (tmp_path / "out" / "tokenizer.model").read_bytes()
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "records" / "hc-2.json.xz").unlink()
    monkeypatch.setattr(run_settings, "learn_vocabulary", pytest.fail)
    compare(options=options)
    assert (tmp_path / "out" / "tokenizer.model").read_bytes() == vocabulary
    assert jobs[-1] == "hc 2"


def test_a_record_of_other_settings_is_refused(compare, tmp_path):
    options = {"records": tmp_path / "records"}
    compare(options=options)
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(
        training.DifferentSettingsError, match=r"base-1.json.xz.*updates"
    ):
        compare(options=options, **{"updates = 4": "updates = 6"})


def test_a_record_decides_the_precision(compare, tmp_path, jobs, monkeypatch):
    options = {"records": tmp_path / "records"}
    automatic = {'precision = "float32"': ""}
    monkeypatch.setattr(comparison_folder, "faster_precision", lambda: "float32")
    compare(options=options, **automatic)
    shutil.rmtree(tmp_path / "out")
    jobs.clear()
    monkeypatch.setattr(comparison_folder, "faster_precision", lambda: "mixed_bfloat16")
    compare(options=options, **automatic)
    assert jobs == []


def test_runs_with_another_vocabulary_are_named(compare, tmp_path):
    compare()
    config = tmp_path / "out" / "runs" / "hc" / "seed-2" / "config.json"
    config.write_text('{"tokenizer": "another"}')
    with pytest.raises(ValueError, match="hc 2 has another vocabulary"):
        compare()


SETTINGS_CUT = b'{"settings.json": "{}", "runs/hc/settings.json": "{"}'


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"junk",
        *map(lzma.compress, (b"[1, 2]", b"{}", SETTINGS_CUT)),
        "cut",
        "base-1",
        "hc-2",
    ],
)
def test_a_damaged_record_is_named(compare, tmp_path, content):
    options = {"records": tmp_path / "records"}
    compare(options=options)
    shutil.rmtree(tmp_path / "out")
    path = tmp_path / "records" / "hc-1.json.xz"
    if content == "cut":
        content = path.read_bytes()[:200]
    elif isinstance(content, str):
        content = path.with_name(f"{content}.json.xz").read_bytes()
    path.write_bytes(content)
    with pytest.raises(DamagedFolderError, match=r"not a record of hc 1.*hc-1.json.xz"):
        compare(options=options)


def test_a_restored_run_has_no_weights_for_a_new_translation(
    compare, tmp_path, monkeypatch
):
    options = {"records": tmp_path / "records"}
    compare(options=options)
    shutil.rmtree(tmp_path / "out")
    monkeypatch.setattr(comparison, "run_jobs", run_jobs_here)
    with pytest.raises(DamagedFolderError, match="base 1 has no weights"):
        compare(options=options, **{"beam_size = 2": "beam_size = 3"})


def test_systems_and_seeds_can_be_added(compare, jobs):
    compare()
    jobs.clear()
    more = SYSTEMS + '\n[systems.lstm]\npreset = "kav/sh-x/multi30k"\n'
    compare(more, **{"[1, 2]": "[1, 2, 3]"})
    assert jobs == ["lstm 1", "lstm 2", "base 3", "hc 3", "lstm 3"]


def test_one_system_only_and_scores_only(compare, jobs):
    result = compare(options={"only": ["hc"]})
    assert jobs == ["hc 1", "hc 2"]
    assert result.missing == ("base 1", "base 2")
    assert result.differences == ()
    jobs.clear()
    result = compare(options={"score_only": True})
    assert jobs == []
    assert result.score("hc", "test", "BLEU") is not None
    assert result.score("base", "test", "BLEU") is None


def test_summaries_without_a_model_are_no_systems(compare):
    task = {"[test_sets]": 'task = "summarisation"\n[test_sets]'}
    result = compare(**task)
    assert [system.name for system in result.systems] == ["base", "hc"]
    assert result.untrained == ("lead-1", "oracle")
    assert {row.system for row in result.differences} == {"hc"}
    for name in result.untrained:
        assert result.score(name, "test", "ROUGE-1").deviation is None
    assert "parameters" in cost_values(result)
    assert cost_values(result)["parameters"].keys() == {"base", "hc"}


def test_another_beam_translates_again_and_trains_nothing(compare, jobs):
    compare()
    jobs.clear()
    compare(**{"beam_size = 2": "beam_size = 3"})
    assert jobs == ["base 1", "hc 1", "base 2", "hc 2"]  # do_run finds them trained


@pytest.mark.parametrize(
    "old, new, phrases",
    [
        ("updates = 4", "updates = 5", ["`budget.updates` 5 instead of 4"]),
        ("num_heads = 2", "num_heads = 4", ["`options.num_heads` 4 instead of 2"]),
        (
            "warmup_steps = 2",
            "warmup_steps = 2\nbeta_1 = 0.8",
            ["`training.beta_1` 0.8 instead of None"],
        ),
        ("size = 50", "size = 60", ["`vocabulary.size` 60 instead of 50"]),
        ("kav/hc-sa/bible", "kav/sh-x/bible", ["runs/hc", "`preset`"]),
        ('"float32"', '"mixed_bfloat16"', ["`run.precision`"]),
    ],
)
def test_other_settings_are_refused_for_existing_runs(compare, jobs, old, new, phrases):
    compare()
    jobs.clear()
    with pytest.raises(training.DifferentSettingsError) as caught:
        compare(**{old: new})
    for phrase in phrases:
        assert phrase in str(caught.value)
    assert jobs == []
    compare()


def test_another_corpus_is_refused(compare, corpus_folder, tmp_path):
    compare()
    other = tmp_path / "other"
    other.mkdir()
    for file in corpus_folder.iterdir():
        text = file.read_text("utf-8")
        if file.name.startswith("train"):
            text = "one more\n" + text
        (other / file.name).write_text(text, "utf-8")
    with pytest.raises(training.DifferentSettingsError, match=r"`corpus\.train`"):
        compare(data=other)


@pytest.mark.parametrize(
    "systems, phrase",
    [
        ("kav/hc-sb/bible", "System 'hc' does not build: .*kav/hc-sa/bible"),
        ("kav/base/digits", "'hc' does not build: .*'translation' has texts"),
        ('kav/hc-sa/bible"\noptions = {heads = 3}#', "'hc' does not build"),
        ('kav/hc-sa/bible"\noptions = {num_heads = 3}#', "'hc' does not build: .*=3"),
        (
            'kav/hc-sa/bible"\ntraining = {label_smoothing = 2}#',
            "'hc' does not build: `label_smoothing` must",
        ),
        (
            'kav/hc-sa/bible"\ntraining = {batch_tokens = "4"}#',
            "'hc' does not build: `batch_tokens` must",
        ),
        (
            'kav/hc-sa/bible"\ntraining = {score_sentences = -1}#',
            "'hc' does not build: `score_sentences` must",
        ),
    ],
)
def test_a_system_that_does_not_build_is_refused_at_once(
    compare, jobs, tmp_path, systems, phrase
):
    with pytest.raises(ValueError, match=phrase):
        compare(SYSTEMS.replace("kav/hc-sa/bible", systems))
    assert jobs == []
    assert not (tmp_path / "out").exists()


OWN_PRESET = """
from dataclasses import replace
from keras_attnvariants import presets

presets.register(replace(presets.get("kav/hc-sa/bible"), name="own/hc-sa/bible"))
"""
OWN_SYSTEM = SYSTEMS.replace("kav/hc-sa/bible", "own/hc-sa/bible")


def test_a_preset_of_a_module_in_the_working_directory(
    compare, jobs, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_presets", dict(registry._presets))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_preset.py").write_text(OWN_PRESET)
    with pytest.raises(ValueError, match="'hc' does not build"):
        compare(OWN_SYSTEM)
    with pytest.raises(ValueError, match="`import` cannot be imported.*no_preset"):
        compare(OWN_SYSTEM, top='import = ["no_preset"]')
    result = compare(OWN_SYSTEM, top='import = ["own_preset"]')
    assert result.system("hc").preset == "own/hc-sa/bible"
    assert "hc 2" in jobs


def test_test_sets_without_sentences(compare, corpus_folder, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    for language in ("xx", "yy"):
        (empty / f"test.{language}").write_text("")
        (empty / f"blank.{language}").write_text("\n\n")
    for split in ("test", "blank"):
        line = f'test = {{data = "{empty}", split = "{split}"}}'
        with pytest.raises(ValueError, match=f"Test set 'test'.*{split}|is empty"):
            compare(**{'test = "test"': line})
    with pytest.raises(ValueError, match="Test set 'test'.*no such split"):
        compare(**{'test = "test"': 'test = "test2017"'})
    with pytest.raises(FileNotFoundError, match="no such folder"):
        compare(**{'test = "test"': f'test = {{data = "{empty}/no", split = "a"}}'})


@pytest.mark.parametrize(
    ("name", "key"),
    [("contrastive", "contrastive"), ("alignment-errors", "alignments")],
)
def test_missing_data_of_an_analysis_are_named_before_any_training(
    compare, tmp_path, jobs, name, key
):
    names = 'names = ["locality", "activation-shares", "bleu-by-length"]'
    gone = {names: f'names = ["{name}"]\nsystems = ["hc"]\n{key} = "{tmp_path}/gone"'}
    with pytest.raises(ValueError, match=f"Analysis '{name}': .*gone"):
        compare(**gone)
    assert jobs == []
    compare(**gone, options={"only": ["base"]})  # is not analysed
    assert jobs == ["base 1", "base 2"]
    compare(**gone, options={"score_only": True})


def test_points_have_the_name_of_the_test_set(compare):
    result = compare(
        **{'test = "test"': 'first = "test"', "samples = 20": "points = 1"}
    )
    assert [point.test_set for point in result.points] == ["validation", "first"]


def test_sentences_that_are_shown_are_not_scored(compare, corpus_folder):
    result = compare(**SHOWN)
    assert [test.name for test in result.test_sets] == ["test"]
    assert {score.test_set for score in result.scores} == {"test"}
    sources = (corpus_folder / "validation.xx").read_text().split("\n")
    assert [sample.source for sample in result.samples] == [sources[0], sources[10]]
    assert {sample.test_set for sample in result.samples} == {"shown"}


def test_shown_sentences_can_be_added(compare, jobs):
    compare()
    jobs.clear()
    compare(**SHOWN)
    assert len(jobs) == 4


def test_sentences_that_are_shown_do_not_hold_up_the_scores(compare):
    scores = compare().scores
    result = compare(options={"score_only": True}, **SHOWN)
    assert result.scores == scores
    assert not result.missing
    # None of them has been translated.
    assert all(not sample.translations for sample in result.samples)


def test_translations_that_are_cut_short_are_named(compare, tmp_path):
    compare()
    path = tmp_path / "out" / "translations" / "test" / "hc-2.txt"
    path.write_text("one line\n")
    with pytest.raises(DamagedFolderError, match="hc-2.txt must have 20 lines"):
        compare()


def test_one_comparison_at_a_time(compare, tmp_path):
    with lock_folder(tmp_path / "out"), pytest.raises(FolderInUseError):
        compare()


def test_failures_are_reported_and_the_rest_is_written(
    compare, tmp_path, monkeypatch, jobs
):
    def run_jobs(given, *options):
        job, *others = given
        for other in others:
            make_up(*other.function.args)
        return {job.name: "no memory"}

    monkeypatch.setattr(comparison, "run_jobs", run_jobs)
    with pytest.raises(experiments.IncompleteError, match="base 1 failed: no memory"):
        compare()
    result = experiments.ComparisonResult.read(tmp_path / "out" / "results.json")
    assert result.missing == ("base 1",)
    assert result.score("base", "test", "BLEU").seeds == (2,)
    difference = result.difference("hc", "test", "BLEU")
    assert difference.both_low is None
    assert difference.interval[2] == "sentences"


def test_a_full_disk_leaves_the_results_that_were_there(compare, tmp_path, monkeypatch):
    compare()
    before = (tmp_path / "out" / "results.json").read_bytes()

    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("keras_attnvariants.utils.files.NewFile.write", full)
        with pytest.raises(OSError, match="No space left"):
            compare()
    assert (tmp_path / "out" / "results.json").read_bytes() == before
    names = [path.name for path in (tmp_path / "out").iterdir()]
    assert not [name for name in names if re.match("tmp-|lock", name)]


@pytest.fixture
def kav_compare(forks, corpus_cache):
    """The command in a process of its own."""

    def start(path, folder):
        words = "keras_attnvariants", "compare", path, "--folder", folder
        return forks.start(*words, cwd=path.parent, KAV_CACHE=str(corpus_cache))

    return start


def run_jobs_here(jobs, *options):
    """Does jobs in this process, which saves the imports for each."""
    for job in jobs:
        job.function(lambda done, text: None)
    return {}


def compare_here(path, folder):
    """An undisturbed comparison in one process, without its page."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(comparison, "run_jobs", run_jobs_here)
        patched.setattr(WRITE_PAGE, lambda *arguments: None)
        return experiments.Comparison.from_file(path, folder).run()


def copy_runs(undisturbed, folder):
    """The runs and translations with seed 2, as if no other had been requested yet."""
    others = "seed-1", "*-1.txt", "examination.json", "results.json", "analyses"
    shutil.copytree(undisturbed, folder, ignore=shutil.ignore_patterns(*others))
    (folder / "tokenizer.model").unlink()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_kill_changes_nothing(tmp_path, corpus_folder, kav_compare, monkeypatch):
    """Two systems and seeds: killed and continued in processes, undisturbed in one.

    One system has a preset that a module registers, which each process imports.

    The runs with seed 2 were there before the kill, and are those of the undisturbed.
    """
    analyses = {'"locality", "activation': '"locality", "heat-maps", "activation'}
    (tmp_path / "own_preset.py").write_text(OWN_PRESET)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_presets", dict(registry._presets))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_preset", raising=False)
    top = 'import = ["own_preset"]'
    changes = SHOWN | analyses | {"examples = 2": "examples = 2\npoints = 2"}
    path = toy_file(tmp_path, corpus_folder, OWN_SYSTEM, top, **changes)
    compare_here(path, tmp_path / "undisturbed")
    folder = tmp_path / "killed"
    copy_runs(tmp_path / "undisturbed", folder)
    killed = kav_compare(path, folder)
    # In the middle of two trainings, or between their end and the translations.
    wait_for(killed, lambda: any(folder.glob("runs/*/seed-1/state/state-*")))
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    assert not (folder / "results.json").exists()
    continued = kav_compare(path, folder)
    out, err = continued.communicate()
    assert continued.returncode == 0, err
    assert "Results:" in out
    first, second = (
        experiments.ComparisonResult.read(tmp_path / name / "results.json")
        for name in ("undisturbed", "killed")
    )
    assert second.missing == ()
    assert first.scores == second.scores
    assert first.differences == second.differences
    assert first.points == second.points
    points = [(point.test_set, point.share) for point in first.points]
    assert points == [(name, s) for name in ("validation", "test") for s in (0.5, 1.0)]
    early, late = first.points[-2:]
    assert early.scores != late.scores
    # The finished models are those of the last validation.
    assert late.scores[0].values == first.score("base", "test", "BLEU").values
    assert first.samples == second.samples
    assert first.attention == second.attention
    assert first.analyses == second.analyses
    curves = [[(p.update, p.loss) for p in r.curve] for r in (*first.runs,)]
    assert curves == [[(p.update, p.loss) for p in r.curve] for r in (*second.runs,)]
    check_content(first)
    page = (tmp_path / "killed" / "report.html").read_text("utf-8")
    assert "Toys" in page


def wait_for(process, condition) -> None:
    """Returns when a condition holds; fails if the process ends before."""
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def check_content(result) -> None:
    """Costs, analyses and weights are those of the runs."""
    for system in ("base", "hc"):
        costs = result.costs(system)
        assert all(value and value > 0 for value in costs.values()), costs
        assert costs["updates"] == 4
    assert all(run.memory_mib > 100 for run in result.runs)
    tables = {(t.analysis, t.system): t for t in result.analyses}
    assert set(tables) == {
        ("locality", "base"),
        ("locality", "hc"),
        ("heat-maps", "base"),
        ("heat-maps", "hc"),
        ("activation-shares", "base"),
        ("activation-shares", "hc"),
        ("bleu-by-length", ""),
    }
    assert tables["locality", "base"].columns[:3] == ("place", "layer", "head")
    assert tables["locality", "base"].source == "You et al. 2020, Fig. 2"
    assert tables["locality", "base"].sentences == 10
    assert tables["locality", "base"].test_set == "test"
    assert tables["heat-maps", "base"].test_set == "shown"
    # Analyses for which a model has no data say so.
    assert tables["activation-shares", "hc"].rows == ()
    assert "phrases" in tables["activation-shares", "hc"].note
    places = {(layer.system, layer.place) for layer in result.attention}
    assert ("base", "cross") in places
    for layer in result.attention:
        assert layer.test_set == "shown"
        assert len(layer.heads) == 2
        assert len(layer.heads[0]) == len(layer.queries)
        assert {len(row) for row in layer.heads[0]} == {len(layer.keys)}
        number = layer.number
        assert number in [s.number for s in result.samples]
