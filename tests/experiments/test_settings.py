"""Errors in the file of a comparison are reported in one line, with their key."""

import re
import tomllib
from dataclasses import fields
from dataclasses import is_dataclass

import pytest

from keras_attnvariants.experiments import checked_tables
from keras_attnvariants.experiments import settings
from keras_attnvariants.experiments.settings import read_settings
from tests.experiments.toy import SYSTEMS
from tests.experiments.toy import toy_file


def test_the_template_is_right_as_it_is(tmp_path):
    path = tmp_path / "comparison.toml"
    checked_tables.write_template(path)
    read = read_settings(path)
    assert [system.name for system in read.systems] == ["base", "hc-sa"]
    assert read.budget.updates == 6000
    with pytest.raises(FileExistsError, match="comparison.toml"):
        checked_tables.write_template(path)


def test_the_template_explains_every_key():
    text = checked_tables.TEMPLATE.read_text("utf-8")
    explained = set(re.findall(r"^(?:# )?\[?([a-z_0-9]+)(?=\]| = |\.)", text, re.M))
    explained |= set(re.findall(r"([a-z_0-9]+) = ", text))
    tables = [value for value in vars(settings).values() if is_dataclass(value)]
    assert settings.ScoreSettings in tables
    known = {
        field.metadata["name"] or field.name
        for table in tables
        for field in fields(table)
        if field.metadata
    }
    known |= {field.name for field in fields(settings.Budget)} | settings.TRAINING
    assert known - explained == set()


def test_the_values_behind_a_number_sign_are_right_as_well():
    """Exceptions: there is one budget of three, and example folders do not exist."""
    text = checked_tables.TEMPLATE.read_text("utf-8")
    # Keys, tables and second lines of lists, as opposed to sentences.
    text = re.sub(r"^# (?=\[\w+\]|[\w-]+ = |         )", "", text, flags=re.M)
    text = re.sub(r"^(minutes|tokens) = .*$", "", text, flags=re.M)
    values = tomllib.loads(text)
    values["analyses"]["systems"] = ["base", "hc-sa"]
    read = settings.parse(text, values)
    assert read.vocabulary.size == 2000
    assert read.vocabulary.subwords == {
        "model_type": "unigram",
        "character_coverage": 1.0,
    }
    assert read.test_sets[1].data == "folder"
    assert read.systems[1].changes == {"num_heads": 8, "learning_rate": 1e-3}
    assert read.systems[1].training["batch_tokens"] == 2048
    assert read.analyses.sentences == 1000
    assert (read.shown.data, read.shown.split) == ("folder", "test")


def test_options_of_a_system_replace_those_of_all(tmp_path):
    systems = SYSTEMS + "options = {hidden_dim = 16}\ntraining = {beta_1 = 0.8}\n"
    base, hc = read_settings(toy_file(tmp_path, tmp_path, systems)).systems
    assert (base.options["hidden_dim"], hc.options["hidden_dim"]) == (8, 16)
    assert (base.options["num_layers"], hc.options["num_layers"]) == (1, 1)
    assert hc.training["batch_tokens"] == 512
    assert hc.changes == {"hidden_dim": 16, "beta_1": 0.8}


WRONG = {
    "basline": ('baseline = "base"', 'basline = "base"', "Did you mean 'baseline'"),
    "no baseline": ('baseline = "base"', "", "`baseline` is missing"),
    "unknown baseline": (
        'baseline = "base"',
        'baseline = "bas"',
        "Did you mean 'base'",
    ),
    "seeds twice": ("[1, 2]", "[1, 1]", "1 twice"),
    "no seeds": ("[1, 2]", "[]", "`seeds` must be a list"),
    "negative seed": ("[1, 2]", "[-1]", "`seeds` must be an integer >= 0"),
    "huge seed": ("[1, 2]", "[4294967296]", "below 2^31"),
    "no TOML": ("[corpus]", "[corpus", "is not a TOML file"),
    "key of a table": (
        "source =",
        "sorce =",
        "[corpus] has no 'sorce'. Did you mean 'sour",
    ),
    "no data": ('source = "xx"', "", "`corpus.source` is missing"),
    "no text": ('source = "xx"', "source = 3", "`corpus.source` must be a text"),
    "table": ("[budget]", "[bugdet]", "Did you mean 'budget'"),
    "two budgets": ("updates = 4", "updates = 4\nminutes = 1", "[budget]"),
    "no budget": ("updates = 4", "", "must be one of `updates`"),
    "number": ("updates = 4", 'updates = "4"', "`updates` must be a positive integer"),
    "training": ("batch_tokens", "batch_token", "Did you mean 'batch_tokens'"),
    "metric": ("samples = 20", 'metrics = ["bleau"]', "Did you mean 'bleu'"),
    "tokenizer": ("samples = 20", 'tokenize = "14a"', "'13a'"),
    "confidence": (
        "samples = 20",
        "confidence = 95",
        "`scores.confidence` must be at least 0 and below 1",
    ),
    "precision": ('"float32"', '"float31"', "Did you mean 'float32'"),
    "at once": ("at_once = 2", "at_once = 0", "`run.at_once` must be a positive"),
    "analysis": ('"locality"', '"localty"', "Did you mean 'locality'"),
    "test set": ("sentences = 10", 'test_set = "tset"', "Did you mean 'test'"),
    "no data for it": ('"locality"', '"contrastive"', "`analyses.contrastive` is miss"),
    "system": ("[systems.hc]", "[systems.hc]\nprest = 1", "Did you mean 'preset'"),
    "no preset": ('preset = "kav/hc-sa/bible"', "", "`systems.hc.preset` is missing"),
    "slash": ("[systems.hc]", '[systems."h/c"]', "without slashes"),
    "backslash": ("[systems.hc]", "[systems.'h\\c']", "without slashes"),
    "dots": ("[systems.hc]", '[systems.".."]', "begin with a letter or digit"),
    "no name": ("[systems.hc]", '[systems.""]', "begin with a letter or digit"),
    "line break": ("[systems.hc]", '[systems."h\\nc"]', "control characters"),
    "long name": ("[systems.hc]", f"[systems.{61 * 'x'}]", "at most 60 characters"),
    "same folder": ("[systems.hc]", "[systems.BASE]", "'base' and 'BASE'"),
    "no test set": ('test = "test"', "", "`test_sets` must have at least one"),
    "slash in one": ('test = "test"', '"a/b" = "test"', "without slashes"),
    "split": ('test = "test"', 'test = {splt = "a"}', "Did you mean 'split'"),
    "shown": ("[decoding]", "[shown]\ndata = 'a'\n[decoding]", "`shown.split` is mis"),
    "shown without a split": (
        "[decoding]",
        "[shown]\n[decoding]",
        "`shown.split` is mis",
    ),
    "shown as a test set": (
        'test = "test"\n',
        'shown = "test"\n[shown]\nsplit = "a"\n',
        "'shown' and 'shown'",
    ),
    "no list of modules": (
        "[corpus]",
        "import = 'a'\n[corpus]",
        "`import` must be a list",
    ),
    "shown twice": (
        'test = "test"\n',
        'Shown = "test"\n[shown]\nsplit = "a"\n',
        "'Shown' and 'shown'",
    ),
    "points between validations": (
        "examples = 2",
        "points = 3",
        "`budget.validations` must be a multiple of `scores.points`",
    ),
}


@pytest.mark.parametrize("old, new, phrase", WRONG.values(), ids=WRONG)
def test_a_wrong_file(tmp_path, old, new, phrase):
    path = toy_file(tmp_path, tmp_path, **{old: new})
    with pytest.raises(ValueError, match=re.escape(phrase)) as caught:
        read_settings(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_comparison_without_systems(tmp_path):
    with pytest.raises(ValueError, match="`systems` must have at least one"):
        read_settings(toy_file(tmp_path, tmp_path, systems=""))


def test_names_are_different_as_folders(tmp_path):
    systems = SYSTEMS.replace("[systems.base]", '[systems."a b"]')
    systems = systems.replace("[systems.hc]", '[systems."a:b"]')
    path = toy_file(tmp_path, tmp_path, systems, **{'"base"': '"a b"'})
    with pytest.raises(ValueError, match="'a b' and 'a:b'"):
        read_settings(path)


def test_validation_as_the_first_test_set_has_one_translation_for_each_point(tmp_path):
    changes = {
        'test = "test"': 'validation = "validation"',
        "[scores]": "[scores]\npoints = 2",
    }
    path = toy_file(tmp_path, tmp_path, **changes)
    names = [test.name for test in read_settings(path).translated]
    assert names == ["validation", "validation at 1 of 2", "validation at 2 of 2"]
