"""Train a translation model on two text files with `compile` and `fit` of Keras.

    python recipes/train_on_two_files.py corpus.en corpus.de my-model

Line i of the second file translates line i of the first. Everything that a
`kav train` run adds (resuming, averaging, validation by BLEU) is left out for brevity.
"""

import argparse
from pathlib import Path

import keras
import tensorflow as tf

import keras_attnvariants as kav
from keras_attnvariants.utils.lines import text_lines

MAX_TOKENS = 64  # longer pairs are left out
HELD_OUT = 200  # pairs for validation, from the end of the files


def read_lines(path: Path) -> list[str]:
    """The lines of a file, split only at newlines."""
    with path.open("rb") as file:
        return list(text_lines(file))


def make_dataset(
    tokenizer: kav.Tokenizer, sources: list[str], targets: list[str], batch_size: int
) -> tf.data.Dataset:
    """Batches of similar lengths: inputs, labels, and weights of 1 on real tokens."""
    tokenize = tokenizer.tf_tokenizer().tokenize

    def element(source: tf.Tensor, target: tf.Tensor) -> tuple:
        source_ids, target_ids = tokenize(source), tokenize(target)
        inputs = {
            "source_ids": source_ids,
            # The decoder sees BOS y and predicts y EOS.
            "target_ids": tf.concat([[tokenizer.bos_id], target_ids], 0),
        }
        labels = tf.concat([target_ids, [tokenizer.eos_id]], 0)
        return inputs, labels, tf.ones_like(labels, tf.float32)

    def length(inputs: dict, labels: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        return tf.maximum(tf.size(inputs["source_ids"]), tf.size(labels))

    dataset = tf.data.Dataset.from_tensor_slices((sources, targets))
    dataset = dataset.shuffle(len(sources), seed=1).map(element)
    dataset = dataset.filter(lambda *pair: length(*pair) <= MAX_TOKENS)
    dataset = dataset.bucket_by_sequence_length(
        length,
        bucket_boundaries=[17, 33],
        bucket_batch_sizes=[batch_size, batch_size // 2 or 1, batch_size // 4 or 1],
    )
    # Keras needs the number of batches, which is the same in every epoch.
    batches = sum(1 for _ in dataset)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(batches))
    return dataset.prefetch(tf.data.AUTOTUNE)


def build_model(vocabulary_size: int) -> kav.Transformer:
    """A small Transformer: fixed self-attention, learned cross-attention."""
    return kav.Transformer(
        vocabulary_size=vocabulary_size,
        num_layers=3,
        hidden_dim=256,
        intermediate_dim=512,
        encoder_attention=kav.HardCodedAttention(num_heads=4, offsets=(-1, 1)),
        decoder_attention=kav.HardCodedAttention(num_heads=4, offsets=(-1, 0)),
        cross_attention=kav.DotProductAttention(num_heads=4),
        dropout=0.1,
    )


def main() -> None:
    """Trains and saves a model, and translates a line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path, help="text file to translate from")
    parser.add_argument("target", type=Path, help="text file to translate into")
    parser.add_argument("model", type=Path, help="folder to save the model to")
    parser.add_argument("--vocabulary-size", type=int)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()

    sources, targets = read_lines(options.source), read_lines(options.target)
    if len(sources) != len(targets):
        parser.error(f"{len(sources)} source lines, but {len(targets)} target lines")
    tokenizer = kav.Tokenizer.train(
        [options.source, options.target],
        options.vocabulary_size or 4000,
        may_shrink=options.vocabulary_size is None,
    )
    held_out = min(HELD_OUT, len(sources) // 10)
    training, validation = (
        make_dataset(tokenizer, sources[part], targets[part], options.batch_size)
        for part in (slice(None, -held_out), slice(-held_out, None))
    )

    model = build_model(tokenizer.vocabulary_size)
    model.compile(
        optimizer=keras.optimizers.Adam(
            kav.training.NoamSchedule.from_peak(1e-3, warmup_steps=400), beta_2=0.98
        ),
        loss=kav.training.LabelSmoothedCrossEntropy(smoothing=0.1),
        weighted_metrics=[kav.training.Perplexity()],
        jit_compile=False,
    )
    model.fit(
        training,
        validation_data=validation,
        epochs=options.epochs,
        shuffle=False,  # the dataset does that
    )

    kav.save_model(model, options.model, tokenizer)
    translator = kav.Translator(model, tokenizer, beam_size=4, xla=False)
    print(f"{sources[-1]}\n-> {translator.translate([sources[-1]])[0]}")
    print(f"Next: kav translate --model {options.model} 'A sentence.'")


if __name__ == "__main__":
    main()
