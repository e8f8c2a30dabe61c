"""An exported model, as a program that decodes, with TensorFlow alone."""

import tensorflow as tf

VERSIONS = {"tensorflow": tf.__version__}


def convert(options) -> None:
    """Imports TensorFlow Text for models of texts; another process exported them."""
    if "text" in options:
        import tensorflow_text  # noqa: F401


class Engine:
    """An exported model: its signature for token ids, or the one for a given text."""

    def __init__(self, options):
        self.loaded = tf.saved_model.load(options["path"])
        self.text = options.get("text")
        name = "translate_ids" if self.text is None else "serving_default"
        self.translate = self.loaded.signatures[name]

    def inputs(self, sources):
        if self.text is not None:
            return {"text": tf.constant([self.text])}
        lengths = tf.fill([len(sources)], len(sources[0]))
        return {"source_ids": tf.constant(sources), "lengths": lengths}

    def search(self, inputs, steps: int):
        """Translations; the export decides the number of steps."""
        found = self.translate(**inputs)
        return {name: values.numpy() for name, values in found.items()}

    def ids(self, found) -> list:
        return found["ids"][:, None].tolist() if "ids" in found else []
