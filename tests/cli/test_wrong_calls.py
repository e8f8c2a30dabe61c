"""Every wrong call gives one line and exit code 2, before any work is done."""

import shutil

import pytest

from keras_attnvariants import training
from keras_attnvariants.cli import analyse
from keras_attnvariants.cli import export
from keras_attnvariants.cli import systems
from keras_attnvariants.training import run_settings
from tests.cli.conftest import check_error
from tests.experiments.toy import toy_file

# In a call, CORPUS is a folder with a parallel corpus, RUN looks like the folder of a
# run, SAVED like a SavedModel, COMPARISON describes a comparison, FILE is a file, and
# HERE is an empty folder.
TRAIN = "--data CORPUS --source xx --target yy --run HERE/run --layers 1"
TEAM = "--coordinator here --processes 2"
EVALUATE = "--data CORPUS --source xx --target yy --model RUN"
EVALUATE_SAVED = "--data CORPUS --source xx --target yy --saved-model SAVED"
EXPORT = "--model RUN --output HERE/saved"
TRANSLATE = "text --model RUN"
SHORTLIST = "--model RUN --data CORPUS --source xx --target yy --output HERE/list.npz"
ANALYSE = "RUN --output HERE/out --data CORPUS"
LOCALITY = f"{ANALYSE} --source xx --target yy --analysis locality"

TUNE = "--data CORPUS --source xx --target yy --search HERE/search"
OFFSETS = f"{TUNE} --space you2020/offsets"

COMPARE = "COMPARISON --folder HERE/out"

CALLS = {
    "compare": [
        ("", "Give a file and --folder"),
        ("COMPARISON", "Give a file and --folder"),
        (f"{COMPARE} extra", "extra"),
        ("HERE/nowhere --folder HERE/out", "no such file"),
        ("FILE --folder HERE/out", "is not a TOML file"),
        ("COMPARISON --folder FILE", "is a file"),
        ("COMPARISON --folder FILE/out", "is a file"),
        (f"{COMPARE} --only bas", "Did you mean 'base'"),
        (f"{COMPARE} --minutes 0", "'--minutes'"),
        (f"{COMPARE} --minutes soon", "--minutes"),
        (f"{COMPARE} --score-only --only base", "--score-only trains nothing"),
        (f"{COMPARE} --folders HERE", "--folders"),
        ("--init FILE", "The file already exists"),
        (f"{COMPARE} --init HERE/new.toml", "--init writes a file"),
        ("--init HERE/new.toml --only base", "--init writes a file"),
        ("--init HERE/new.toml --minutes 5", "--init writes a file"),
        ("--init HERE/new.toml --score-only", "--init writes a file"),
    ],
    "import_": [
        ("", "FORM"),
        ("hf", "folder"),
        ("hf HERE", "--output"),
        ("onnx HERE --output HERE/out", "onnx"),
        ("hf HERE/nowhere --output HERE/out", "FOLDER must be a folder"),
        ("hf FILE --output HERE/out", "FOLDER must be a folder"),
        ("hf RUN --output FILE", "is a file"),
        ("hf CORPUS --output HERE/out", "config.json"),
        ("hf CORPUS --output HERE/out --weights FILE", "are for marian"),
        ("marian CORPUS --output HERE/out", "*.npz"),
        ("marian CORPUS --output HERE/out --weights HERE/no.npz", "no.npz"),
        ("marian CORPUS --output HERE/out --weights FILE", "is not a file of arrays"),
        ("hf CORPUS HERE --output HERE/out", "extra"),
    ],
    "tune": [
        ("", "--data"),
        (f"{TUNE} --updates 5", "--space"),
        (f"{TUNE} --updates 5 --space you2020/ofsets", "you2020/offsets"),
        (OFFSETS, "must be one of `updates`, `minutes` and `tokens`"),
        (f"{OFFSETS} --updates 5 --minutes 1", "2 of them"),
        (f"{OFFSETS} --updates 0", "--updates"),
        (f"{OFFSETS} --minutes 0", "--minutes"),
        (f"{OFFSETS} --updates 5 --trials 0", "--trials"),
        (f"{OFFSETS} --updates 5 --seeds 0", "--seeds"),
        (f"{OFFSETS} --updates 5 --workers 0", "--workers"),
        (f"{OFFSETS} --updates 5 --method grid", "--method"),
        (f"{OFFSETS} --updates 5 --objective chrf", "--objective"),
        (f"{OFFSETS} --updates 5 --batch-tokens 0", "--batch-tokens"),
        (f"{OFFSETS} --updates 5 --score-sentences 9", "needs another --objective"),
        (f"{OFFSETS} --updates 5 --distance 2", "need --from-locality"),
        (f"{OFFSETS} --updates 5 --nearness 0", "need --from-locality"),
    ],
    "train": [
        ("", "--data"),
        ("--data CORPUS --source xx --target yy", "--run"),
        (f"{TRAIN} extra", "extra"),
        (f"{TRAIN} --hidden 8", "--hidden"),
        (f"{TRAIN} --heads 3 --width 16", "num_heads=3"),
        (f"{TRAIN} --preset kav/base/bible --heads 3 --width 16", "num_heads=3"),
        (f"{TRAIN} --preset kav/lstm/multi30k --heads 3", "num_heads"),
        (f"{TRAIN} --heads 0", "--heads"),
        (f"{TRAIN} --layers 0", "--layers"),
        (f"{TRAIN} --width -8", "--width"),
        (f"{TRAIN} --feed-forward 0", "--feed-forward"),
        (f"{TRAIN} --vocabulary-size 0", "--vocabulary-size"),
        (f"{TRAIN} --vocabulary-size 4", "--vocabulary-size"),
        (f"{TRAIN} --steps many", "--steps"),
        (f"{TRAIN} --steps 0", "--steps"),
        (f"{TRAIN} --minutes 0", "'--minutes'"),
        (f"{TRAIN} --minutes nan", "'--minutes'"),
        (f"{TRAIN} --batch-tokens -1", "--batch-tokens"),
        (f"{TRAIN} --learning-rate -1", "'--learning-rate'"),
        (f"{TRAIN} --learning-rate inf", "must be a positive number"),
        (f"{TRAIN} --warmup-steps 0", "--warmup-steps"),
        (f"{TRAIN} --dropout 30", "'--dropout'"),
        (f"{TRAIN} --label-smoothing -0.1", "'--label-smoothing'"),
        (f"{TRAIN} --seed -1", "--seed"),
        (f"{TRAIN} --seed 5000000000", "--seed"),
        (f"{TRAIN} --validate-every 0", "--validate-every"),
        (f"{TRAIN} --score-sentences -1", "--score-sentences"),
        (f"{TRAIN} --precision float3", "float3"),
        (f"{TRAIN} --preset kav/hc-sb/bible", "kav/hc-sa/bible"),
        (f"{TRAIN} --preset kav/hc-sa", "kav/hc-sa/bible"),
        (f"{TRAIN} --run FILE", "is a file"),
        (f"{TRAIN} --run FILE/run", "is a file"),
        (f"{TRAIN} --data HERE/nowhere", "no such folder"),
        (f"{TRAIN} --data bible-en-de", "bible-de-en"),
        (f"{TRAIN} --data HERE", "'xx'"),
        (TRAIN.replace("yy", "zz"), "languages there: xx, yy"),
        (TRAIN.replace("yy", "xx"), "must differ"),
        (TRAIN.replace("xx", "?"), "language code"),
        (f"{TRAIN} --target zz", "--target once for each --data"),
        (f"{TRAIN} --alignments HERE/none", "no such file"),
        (f"{TRAIN} --alignments FILE", "Received: 'one' in line 1 of"),
        (f"{TRAIN} --alignments FILE --alignments FILE", "--alignments once for each"),
        (f"{TRAIN} --alignment-weight 0.1", "--alignment-weight needs --alignments"),
        (f"{TRAIN} --alignments FILE --alignment-weight -1", "'--alignment-weight'"),
        (f"{TRAIN} --devices 0", "--devices"),
        (f"{TRAIN} --devices 2", "KERAS_BACKEND=jax"),
        (f"{TRAIN} --coordinator here:7000", "needs --process and --processes"),
        (f"{TRAIN} --process 1", "need --coordinator"),
        (f"{TRAIN} --processes 2", "need --coordinator"),
        (f"{TRAIN} --processes 1", "--processes"),
        (f"{TRAIN} --wait 5", "need --coordinator"),
        (f"{TRAIN} --model-parallel 2", "needs --devices of more than 1, or --coord"),
        (f"{TRAIN} --devices 1 --model-parallel 2", "--devices of more than 1"),
        (f"{TRAIN} --wait -1", "'--wait'"),
        (f"{TRAIN} {TEAM} --process 2", "`process` must be one of 0, 1"),
        (f"{TRAIN} {TEAM} --process 0", "must be host:port"),
    ],
    "evaluate": [
        ("", "--data"),
        ("--data CORPUS --source xx --target yy", "Give --model, --saved-model"),
        (f"{EVALUATE} extra", "extra"),
        (f"{EVALUATE} --beam 4", "--beam"),
        (f"{EVALUATE} --model HERE/nowhere", "trained model"),
        (f"{EVALUATE} --model HERE", "manifest.json"),
        (f"{EVALUATE} --model FILE", "manifest.json"),
        (f"{EVALUATE} --saved-model RUN", "saved_model.pb"),
        (f"{EVALUATE} --saved-model SAVED --output HERE/lines", "one system only"),
        (f"{EVALUATE} --tokenize nope", "'13a'"),
        (f"{EVALUATE} --sentences 0", "--sentences"),
        (f"{EVALUATE} --sentences -3", "--sentences"),
        (f"{EVALUATE} --beam-size 0", "--beam-size"),
        (f"{EVALUATE} --beam-size 100000", "--beam-size"),
        (f"{EVALUATE} --length-penalty long", "'--length-penalty'"),
        (f"{EVALUATE} --precision float64", "float64"),
        (f"{EVALUATE} --speed-runs -1", "--speed-runs"),
        (f"{EVALUATE} --output HERE/no/lines", "No such folder"),
        (f"{EVALUATE} --output HERE", "must be a file"),
        (f"{EVALUATE} --split valid2", "'train', 'validation', 'test'"),
        (f"{EVALUATE} --data HERE/nowhere", "no such folder"),
        (f"{EVALUATE} --data bible-en-de", "bible-de-en"),
        (f"{EVALUATE} --source zz", "languages there: xx, yy"),
        (f"{EVALUATE_SAVED} --precision int8", "--precision"),
    ],
    "shortlist": [
        ("", "--model"),
        ("--model RUN --output HERE/list.npz", "--data"),
        (f"{SHORTLIST} extra", "extra"),
        (f"{SHORTLIST} --model HERE/nowhere", "trained model"),
        (f"{SHORTLIST} --model FILE", "manifest.json"),
        (f"{SHORTLIST} --data HERE/nowhere", "no such folder"),
        (f"{SHORTLIST} --data bible-en-de", "bible-de-en"),
        (f"{SHORTLIST} --target zz", "languages there: xx, yy"),
        (f"{SHORTLIST} --output HERE", "must be a file"),
        (f"{SHORTLIST} --output HERE/no/list.npz", "No such folder"),
        (f"{SHORTLIST} --candidates 0", "--candidates"),
        (f"{SHORTLIST} --common -1", "--common"),
        (f"{SHORTLIST} --width 500", "--width"),
    ],
    "translate": [
        ("text", "Give one of --model, --saved-model"),
        ("text --beam-size 2", "Give one of --model, --saved-model"),
        (
            f"{TRANSLATE} --saved-model SAVED",
            "Give one of --model, --saved-model",
        ),
        (f"{TRANSLATE} --model HERE/nowhere", "trained model"),
        (f"{TRANSLATE} --model HERE", "manifest.json"),
        ("text --saved-model HERE", "saved_model.pb"),
        ("text --saved-model SAVED --precision int8", "--precision"),
        (f"{TRANSLATE} --input FILE", "either sentences or --input"),
        ("--model RUN --input HERE/nowhere", "No such file"),
        ("--model RUN --input HERE", "Is a directory"),
        ("--model RUN --input FILE --output FILE", "must differ"),
        (f"{TRANSLATE} --output HERE/no/lines", "No such folder"),
        (f"{TRANSLATE} --output HERE", "must be a file"),
        (f"{TRANSLATE} --beam-size 0", "--beam-size"),
        (f"{TRANSLATE} --beam-size 100000", "--beam-size"),
        (f"{TRANSLATE} --beam-size four", "--beam-size"),
        (f"{TRANSLATE} --length-penalty long", "'--length-penalty'"),
        (f"{TRANSLATE} --precision half", "half"),
        (f"{TRANSLATE} --n-best 3", "--n-best"),
        (f"{TRANSLATE} --resume", "--resume needs --output"),
        (f"{TRANSLATE} --resume --output /dev/null", "--resume needs --output"),
        (f"{TRANSLATE} --resume --output /dev/stderr", "--resume needs --output"),
    ],
    "transcribe": [
        ("a.wav", "Give one of --model, --saved-model"),
        ("a.wav --model RUN --server http://x", "Give one of --model, --saved-model"),
        ("a.wav --model HERE/nowhere", "trained model"),
        ("a.wav --model HERE", "manifest.json"),
        ("a.wav --saved-model HERE", "saved_model.pb"),
        ("a.wav --model RUN --input FILE", "or --input"),
        ("--model RUN --input HERE/nowhere", "No such file"),
        ("--model RUN --input FILE --output FILE", "must differ"),
        ("a.wav --model RUN --beam-size 0", "--beam-size"),
        ("a.wav --model RUN --sample", "--sample"),
        ("a.wav --model RUN --resume", "--resume needs --output"),
    ],
    "export": [
        ("", "--model"),
        ("--model RUN", "--output"),
        (f"{EXPORT} extra", "extra"),
        (f"{EXPORT} --model HERE", "manifest.json"),
        (f"{EXPORT} --model HERE/nowhere", "trained model"),
        (f"{EXPORT} --output FILE", "is a file"),
        (f"{EXPORT} --output FILE/saved", "is a file"),
        (f"{EXPORT} --output SAVED --version 1", "`version` must not exist"),
        (f"{EXPORT} --version 0", "--version"),
        (f"{EXPORT} --beam-size 0", "--beam-size"),
        (f"{EXPORT} --beam-size 100000", "--beam-size"),
        (f"{EXPORT} --length-penalty long", "'--length-penalty'"),
        (f"{EXPORT} --n-best 0", "--n-best"),
        (f"{EXPORT} --n-best many", "--n-best"),
        (f"{EXPORT} --max-batch 0", "--max-batch"),
        (f"{EXPORT} --max-characters -1", "--max-characters"),
        (f"{EXPORT} --max-tokens 0", "--max-tokens"),
        (f"{EXPORT} --precision float16", "float16"),
    ],
    "serve": [
        ("", "'path'"),
        ("HERE", "saved_model.pb"),
        ("HERE/nowhere", "saved_model.pb"),
        ("RUN", "saved_model.pb"),
        ("FILE", "saved_model.pb"),
        ("SAVED extra", "extra"),
        ("--saved-model SAVED", "--saved-model"),
        ("SAVED --port 0", "--port"),
        ("SAVED --port http", "--port"),
        ("SAVED --port 8081", "must differ"),
        ("SAVED --metrics-port 70000", "--metrics-port"),
        ("SAVED --max-wait -1", "'--max-wait'"),
        ("SAVED --max-wait nan", "'--max-wait'"),
    ],
    "demo": [
        ("HERE", "manifest.json"),
        ("HERE/nowhere", "trained model"),
        ("RUN HERE", "manifest.json"),
        ("SAVED", "manifest.json"),
        ("FILE", "manifest.json"),
        ("--model RUN", "--model"),
        ("RUN --n-best 0", "--n-best"),
        ("RUN --beam-size 0", "--beam-size"),
        ("RUN --beam-size 100000", "--beam-size"),
        ("RUN --port 0", "--port"),
        ("RUN --port 7860.5", "--port"),
        ("RUN --share", "--share"),
    ],
    "presets": [
        ("no-such-preset", "No preset fits"),
        ("iwslt16 extra", "extra"),
        ("--paper nope", "No preset fits"),
        ("--variant Nope", "No preset fits"),
        ("--papers you2020", "--papers"),
        ("--min-parameters -1", "'--min-parameters'"),
        ("--min-parameters nan", "'--min-parameters'"),
        ("--max-parameters 0", "`max_parameters` must be a positive"),
        ("--max-parameters inf", "infinity"),
        ("--max-parameters small", "--max-parameters"),
        ("--min-parameters 3 --max-parameters 2", "No preset fits"),
    ],
    "doctor": [
        ("--source xx --target yy", "are those of a corpus"),
        ("HERE/nowhere --source xx --target yy", "no such folder"),
        ("RUN extra", "extra"),
        ("HERE", "Give the folder of a run"),
        ("HERE/nowhere", "Give the folder of a run"),
        ("bible-en-de", "a corpus with --source and --target"),
        ("RUN --precision", "--precision is about the machine"),
        ("--precision HERE", "--precision is about the machine"),
        ("--precisions", "--precisions"),
        ("--run RUN", "--run"),
        ("--model RUN", "--model"),
        ("--fix RUN", "--fix"),
        ("/dev/null", "Give the folder of a run"),
    ],
    "attention": [
        ("", "'source'"),
        (f"{TRANSLATE} extra", "extra"),
        ("text --model HERE", "manifest.json"),
        ("text --model HERE/nowhere", "trained model"),
        ("text --model FILE", "manifest.json"),
        (f"{TRANSLATE} --layer 0", "--layer"),
        (f"{TRANSLATE} --layer top", "--layer"),
        (f"{TRANSLATE} --output HERE/picture", "must end in .png"),
        (f"{TRANSLATE} --output HERE/no/picture.png", "No such folder"),
        (f"{TRANSLATE} --head 2", "--head"),
        (f"{TRANSLATE} --translation=", "must not be empty"),
    ],
    "analyse": [
        ("", "'runs'"),
        ("RUN --data CORPUS", "--analysis"),
        ("RUN --analysis locality", "--data"),
        (f"{ANALYSE} --analysis localty", "localty"),
        (f"RUN {LOCALITY}", "Give each model once"),
        (f"HERE {LOCALITY}", "manifest.json"),
        (f"HERE/nowhere {LOCALITY}", "trained model"),
        ("RUN --analysis entropy --data CORPUS", "needs --source and --target"),
        (f"{LOCALITY} --split valid2", "'train', 'validation', 'test'"),
        (f"{LOCALITY} --data HERE/nowhere", "no such folder"),
        (f"{LOCALITY} --source zz", "languages there: xx, yy"),
        (f"{LOCALITY} --sentences 0", "--sentences"),
        (f"{LOCALITY} --output FILE", "is a file"),
        (f"{LOCALITY} --output FILE/out", "is a file"),
        (f"{LOCALITY} --layer 3", "--layer"),
        (f"{LOCALITY} --analysis alignment-errors", "test.align"),
        (f"{ANALYSE} --analysis contrastive", "<category>.src"),
        (f"{LOCALITY} --analysis contrastive", "has no --source"),
        (f"{ANALYSE} --analysis agreement --split test", "and --split"),
        (f"{ANALYSE} --analysis agreement --data FILE", "or a JSON list of objects"),
        (f"{ANALYSE} --analysis agreement --data HERE/nowhere", "no such file"),
    ],
    "corpora": [
        ("extra", "extra"),
        ("bible-de-en", "bible-de-en"),
        ("two extra", "two"),
        ("--list", "--list"),
        ("--name bible-de-en", "--name"),
        ("--source en", "--source"),
        ("--target de", "--target"),
        ("--json", "--json"),
        ("-l", "-l"),
        ("HERE", "unexpected extra argument"),
    ],
}


@pytest.fixture
def places(corpus_folder, tmp_path):
    """Files and folders that the names in a call stand for."""
    places = {"CORPUS": corpus_folder}
    for name in ("RUN", "SAVED", "HERE"):
        places[name] = tmp_path / name.lower()
        places[name].mkdir()
    (places["RUN"] / "log.jsonl").touch()
    (places["SAVED"] / "1").mkdir()
    (places["SAVED"] / "1" / "saved_model.pb").touch()
    places["COMPARISON"] = toy_file(tmp_path, corpus_folder)
    places["FILE"] = tmp_path / "file"
    places["FILE"].write_text("one line\n")
    return places


@pytest.fixture
def no_work(monkeypatch):
    """Makes the work of every command raise an error."""

    def work(*args, **kwargs):
        raise AssertionError("the work has begun")

    for module, name in (
        (training, "train_preset"),
        (run_settings, "learn_vocabulary"),
        (systems.SystemOptions, "translators"),
        (export, "load"),
        (analyse, "load"),
    ):
        monkeypatch.setattr(module, name, work)


# keras-tuner imports names that its libraries deprecate.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("command", "call", "phrase"),
    [(name, *call) for name, calls in CALLS.items() for call in calls],
)
def test_a_wrong_call_is_one_line(command, call, phrase, kav, places, no_work):
    for name, path in places.items():
        call = call.replace(name, str(path))
    check_error(kav(command.removesuffix("_"), *call.split()), phrase)
    assert places["FILE"].read_text() == "one line\n"
    assert not any(places["HERE"].iterdir())


def test_there_are_ten_wrong_calls_of_every_command():
    from keras_attnvariants.cli import app

    commands = {command.callback.__name__ for command in app.registered_commands}
    assert commands == set(CALLS)
    assert min(len(calls) for calls in CALLS.values()) >= 10


def test_what_is_right_reaches_the_work(kav, places, no_work):
    shutil.rmtree(places["HERE"])
    for command, call in (
        ("train", TRAIN),
        ("evaluate", f"{EVALUATE} --beam-size 1000"),
        ("translate", TRANSLATE),
        ("export", f"{EXPORT} --output SAVED"),
        ("shortlist", f"{SHORTLIST} --output RUN/list.npz"),
        ("attention", f"{TRANSLATE} --output RUN/picture.png"),
        ("analyse", LOCALITY),
        ("compare", COMPARE),
    ):
        for name, path in places.items():
            call = call.replace(name, str(path))
        result = kav(command, *call.split())
        assert isinstance(result.exception, AssertionError), result.output
