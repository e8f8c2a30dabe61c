"""This package, as a program that decodes."""

import keras
import numpy as np

import keras_attnvariants as kav
from peers import model

VERSIONS = {"keras_attnvariants": kav.__version__}

POLICIES = {
    "float32": "float32",
    "bfloat16": "mixed_bfloat16",
    "int8": "mixed_bfloat16",
}


def folder(options) -> str:
    """Folder of the model, saved in the requested precision."""
    return f"{options['weights']}.{options['precision']}"


def convert(options) -> None:
    """Saves the model in the format of this package, unless a preset makes it."""
    keras.config.set_dtype_policy(POLICIES[options["precision"]])
    if "weights" in options:
        made = model.read(options["weights"], options["sizes"])
        if options["precision"] == "int8":
            made.quantize("int8")
        kav.save_model(made, folder(options))


class Engine:
    """Beam search in a compiled function per number of steps.

    On TensorFlow, XLA compiles float32; graphs are faster in the other precisions.
    """

    def __init__(self, options):
        if "weights" in options:
            self.model = kav.load_model(folder(options)).model
        else:
            preset = kav.presets.get(options["preset"])
            self.model = preset.build(**options["sizes"], dropout=0.0)
            if options["precision"] == "int8":
                self.model.quantize("int8")
        self.beams = options["beams"]
        self.xla = options["precision"] == "float32"
        self.compiled = {}

    def inputs(self, sources):
        return sources

    def search(self, inputs, steps: int) -> list[np.ndarray]:
        """Ids `[B, K, N]`; for 0 steps, the context of the source for decoding."""
        if steps not in self.compiled:
            self.compiled[steps] = kav.backend.jit(self.program(steps), xla=self.xla)
        weights = [kav.backend.local_value(each) for each in self.model.variables]
        found = self.compiled[steps](weights, inputs)
        return [np.asarray(x) for x in keras.tree.flatten(found)]

    def program(self, steps: int):
        """The function to compile, of weights and ids.

        The last step can only give EOS. JAX would compile weights that are not
        arguments as constants.
        """
        lengths = {"min_length": steps - 1, "max_length": steps}
        beams = {"beam_size": self.beams, "n_best": self.beams}

        def run(weights, ids):
            pairs = list(zip(self.model.variables, weights, strict=True))
            with keras.StatelessScope(state_mapping=pairs):
                if steps == 0:
                    return self.model.encode(ids)
                return kav.beam_search(self.model, ids, **beams, **lengths).ids

        return run

    def ids(self, found) -> list:
        return found[0].tolist() if len(found) == 1 else []
