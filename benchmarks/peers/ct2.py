"""CTranslate2, as a program that decodes."""

from importlib.metadata import version
from pathlib import Path

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec

VERSIONS = {"ctranslate2": version("ctranslate2")}


def folder(options) -> Path:
    """Folder of the converted model."""
    return Path(options["weights"] + ".ct2")


def convert(options) -> None:
    """Writes the model as CTranslate2 reads it."""
    if folder(options).exists():
        return
    weights = np.load(options["weights"])
    sizes = options["sizes"]
    layers = sizes["num_layers"]
    spec = TransformerSpec.from_config(
        (layers, layers), sizes["num_heads"], pre_norm=False
    )
    for i in range(layers):
        fill_block(spec.encoder.layer[i], Named(weights, f"encoder_{i}"))
        fill_block(spec.decoder.layer[i], Named(weights, f"decoder_{i}"))
    embeddings = weights["embeddings/target/embeddings"]
    for side in (spec.encoder, spec.decoder):
        side.position_encodings.encodings = weights["positions"]
    spec.encoder.embeddings[0].weight = embeddings
    spec.decoder.embeddings.weight = embeddings
    spec.decoder.projection.weight = embeddings
    words = vocabulary(len(embeddings))
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.decoder_start_token = words[2]
    spec.validate()
    folder(options).mkdir()
    spec.save(str(folder(options)))


def vocabulary(size: int) -> list[str]:
    """Words that are their own ids, except the special ones."""
    special = ["<blank>", "<unk>", "<s>", "</s>"]
    return special + [str(i) for i in range(len(special), size)]


class Named:
    """The weights of one block by name."""

    def __init__(self, weights, block: str):
        self.weights = weights
        self.block = block

    def __getitem__(self, name: str) -> np.ndarray:
        return self.weights[f"{self.block}/{name}"]

    def linear(self, spec, layer: str, *names: str) -> None:
        """Fills one dense layer with several, side by side."""
        kernels = [self[f"{layer}/{name}/kernel"].T for name in names]
        spec.weight = np.ascontiguousarray(np.concatenate(kernels))
        spec.bias = np.concatenate([self[f"{layer}/{name}/bias"] for name in names])

    def norm(self, spec, residual: str) -> None:
        """Fills a normalisation."""
        spec.gamma = self[f"{residual}/norm/gamma"]
        spec.beta = self[f"{residual}/norm/beta"]


def fill_block(spec, block: Named) -> None:
    """Fills an encoder or a decoder block."""
    attention = spec.self_attention
    block.linear(attention.linear[0], "self_attention", "query", "key", "value")
    block.linear(attention.linear[1], "self_attention", "output")
    block.norm(attention.layer_norm, "self_residual")
    if hasattr(spec, "attention"):
        attention = spec.attention
        block.linear(attention.linear[0], "cross_attention", "query")
        block.linear(attention.linear[1], "cross_attention", "key", "value")
        block.linear(attention.linear[2], "cross_attention", "output")
        block.norm(attention.layer_norm, "cross_residual")
    block.linear(spec.ffn.linear_0, "feed_forward", "intermediate")
    block.linear(spec.ffn.linear_1, "feed_forward", "output")
    block.norm(spec.ffn.layer_norm, "ff_residual")


class Engine:
    """Beam search as CTranslate2 has it."""

    def __init__(self, options):
        self.translator = ctranslate2.Translator(
            str(folder(options)),
            device="cpu",
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
