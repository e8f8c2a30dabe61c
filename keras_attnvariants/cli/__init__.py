"""The command `kav`: train, evaluate, translate, export, list presets and corpora.

Commands import Keras and TensorFlow only when they run: `kav train --help` needs
neither.
"""

from keras_attnvariants.cli import analyse
from keras_attnvariants.cli import catalogue
from keras_attnvariants.cli import demo
from keras_attnvariants.cli import doctor
from keras_attnvariants.cli import evaluate
from keras_attnvariants.cli import export
from keras_attnvariants.cli import foreign
from keras_attnvariants.cli import serve
from keras_attnvariants.cli import train
from keras_attnvariants.cli import translate
from keras_attnvariants.cli import tune
from keras_attnvariants.cli.commands import group
from keras_attnvariants.cli.commands import program
from keras_attnvariants.cli.commands import root

__all__ = ["app"]

app = program(
    root,
    train.train,
    tune.tune,
    evaluate.compare,
    evaluate.evaluate,
    translate.translate,
    translate.transcribe,
    export.shortlist,
    export.export,
    foreign.import_,
    serve.serve,
    demo.demo,
    analyse.attention,
    analyse.analyse,
    catalogue.presets,
    catalogue.corpora,
    doctor.doctor,
)
app.add_typer(group(catalogue.models, catalogue.push))
