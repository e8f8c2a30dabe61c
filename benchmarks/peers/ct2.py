"""CTranslate2, as a program that decodes."""

from importlib.metadata import version
from pathlib import Path

import ctranslate2
import numpy as np

from keras_attnvariants.serving.formats.ctranslate2_spec import transformer_spec

VERSIONS = {"ctranslate2": version("ctranslate2")}


def folder(options) -> Path:
    """Folder of the converted model."""
    return Path(options["weights"] + ".ct2")


def convert(options) -> None:
    """Writes the model in the format of CTranslate2."""
    if folder(options).exists():
        return
    sizes = options["sizes"]
    layers = sizes["num_layers"]
    words = vocabulary(sizes["vocabulary_size"])
    with np.load(options["weights"]) as weights:
        spec = transformer_spec(
            dict(weights),
            (layers, layers),
            sizes["num_heads"],
            words,
            words,
            scale=sizes["hidden_dim"] ** 0.5,
        )
    spec.config.decoder_start_token = words[2]
    spec.validate()
    folder(options).mkdir()
    spec.save(str(folder(options)))


def vocabulary(size: int) -> list[str]:
    """Words that are their own ids, except the special ones."""
    special = ["<blank>", "<unk>", "<s>", "</s>"]
    return special + [str(i) for i in range(len(special), size)]


class Engine:
    """Beam search of CTranslate2."""

    def __init__(self, options):
        self.translator = ctranslate2.Translator(
            str(folder(options)),
            device=options["device"],
            compute_type=options["precision"],
            inter_threads=1,
            intra_threads=options["threads"],
        )
        self.beams = options["beams"]
        self.words = vocabulary(options["sizes"]["vocabulary_size"])
        self.places = {word: i for i, word in enumerate(self.words)}

    def inputs(self, sources) -> list[list[str]]:
        return [[self.words[i] for i in row] for row in sources]

    def search(self, inputs, steps: int):
        return self.translator.translate_batch(
            inputs,
            beam_size=self.beams,
            num_hypotheses=self.beams,
            min_decoding_length=steps,
            max_decoding_length=steps,
        )

    def ids(self, found) -> list:
        return [
            [[self.places[word] for word in words] for words in result.hypotheses]
            for result in found
        ]
