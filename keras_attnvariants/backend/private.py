"""The private parts of other packages that this one cannot do without.

One function each, named for what it does. `setup.cfg` bounds the versions of these
packages because of them.
"""

import io
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np


def is_in_xla_context() -> bool:
    """Whether TensorFlow is tracing a graph that XLA will compile.

    No public function tells. Without this one, cached states would be written by an
    operator that XLA does not have.
    """
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    graph = tf.compat.v1.get_default_graph()
    return bool(control_flow_util.GraphOrParentsInXlaContext(graph))


def is_functional(model: keras.Model) -> bool:
    """Whether a model is a graph of layers, as `keras.Model(inputs, outputs)` is.

    Keras has no public name for the class of such models. Without this function, only
    an error of `keras.models.clone_model` would tell them from others.
    """
    from keras.src.models import Functional

    return isinstance(model, Functional)


def nested_layers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """The layer itself, and all layers in it at any depth.

    The public `Model.layers` lists the direct parts of a model only, and a layer has no
    such list. Without this function, half-precision decoding would cast every matrix
    anew at each position.
    """
    return list(layer._flatten_layers())


def weights_to_cast(layer: keras.layers.Layer) -> tuple[str, ...]:
    """The attributes of a layer that hold weights which it casts at each call.

    The public properties `kernel` and `embeddings` cannot be set. Without this
    function, the layers of copies for decoding would cast these matrices at each
    position.
    """
    if isinstance(layer, keras.layers.EinsumDense):
        return "_kernel", "bias"
    return ("_embeddings",) if isinstance(layer, keras.layers.Embedding) else ()


def weights_file(model: keras.Model) -> memoryview:
    """The bytes that `model.save_weights` writes, without the optimizer's variables.

    HDF5 ends the whole process when the disk is full, and the public method writes to
    a path only. Without this function, saving a model could not promise an error.
    """
    from keras.src.saving import saving_lib

    file = io.BytesIO()
    store = saving_lib.H5IOStore(file, mode="w")
    saving_lib._save_state(
        model,
        weights_store=store,
        assets_store=None,
        inner_path="",
        visited_saveables={id(getattr(model, "optimizer", None))},
    )
    store.close()
    return file.getbuffer()


def load_weights_file(model: keras.Model, file: io.BytesIO) -> None:
    """Loads the weights in a file as `model.load_weights` does.

    The public method opens a path. Without this function, the file that is read could
    be another one than the file whose digest was checked.

    Raises:
        ValueError: the weights are those of another model.
    """
    from keras.src.saving import saving_lib

    failed: set[Any] = set()
    errors: dict[Any, Any] = {}
    store = saving_lib.H5IOStore(file, mode="r")
    saving_lib._load_state(
        model,
        weights_store=store,
        assets_store=None,
        inner_path="",
        visited_saveables=set(),
        failed_saveables=failed,
        error_msgs=errors,
    )
    store.close()
    if failed:
        saving_lib._raise_loading_failure(errors)


def sentence_statistics(
    metric: Any, hypotheses: Sequence[str], references: Sequence[str]
) -> np.ndarray:
    """The counts of a metric of sacrebleu in each sentence, float64 `[n, k]`.

    The counts add up: the score of a corpus is that of their sum. The public methods
    return scores, and those of BLEU and TER some counts, those of chrF none. Without
    this function, each sample of a bootstrap would compare all texts anew.
    """
    found = metric._extract_corpus_statistics(hypotheses, [references])
    return np.array(found, "float64")


def score_of_statistics(metric: Any, sums: np.ndarray) -> float:
    """The score of a metric of sacrebleu from a sum of `sentence_statistics`, `[k]`."""
    return float(metric._compute_score_from_stats(sums).score)


def forget_variables_without_values() -> None:
    """Drops variables that were created in a scope without values from Keras' list.

    Keras gives all of them values when it next leaves a `StatelessScope`, and has no
    public way to say that they are not wanted. Without this function, the arrays of a
    model that was only counted, or refused for its size, would be allocated later.
    """
    from keras.src.backend.common import global_state

    global_state.set_global_attribute("uninitialized_variables", [])


def optimizer_index(optimizer: keras.optimizers.Optimizer, variable: Any) -> int:
    """The place of a variable among those that an optimizer was built for.

    An optimizer gets the variable of the backend, of which only Keras knows whose it
    is. Without this function, moving averages could not be found by their variable.
    """
    return int(optimizer._get_variable_index(variable))


def adam_moments(
    optimizer: keras.optimizers.Adam, variable: Any
) -> tuple[keras.Variable, keras.Variable]:
    """The first and the second moment that Adam keeps of a variable.

    The public `variables` lists them by names that may change. Without this function,
    updates could not be one operation for each variable.
    """
    index = optimizer_index(optimizer, variable)
    return optimizer._momentums[index], optimizer._velocities[index]


def restart_draws(oracle: Any, seed: int) -> None:
    """Let a Bayesian oracle draw as if it had just been made with this seed.

    Its state does not hold how far its generator is. Without this function, a search
    that was killed would go on with other points than one that was not.
    """
    oracle._random_state = np.random.RandomState(seed)


def random_trials(oracle: Any) -> int:
    """Number of different points that one pass of Hyperband over its brackets draws.

    No public method tells. Without this function, Hyperband would end after a few short
    trials in a space that is too small for it.
    """
    brackets = range(oracle._get_num_brackets())
    return sum(oracle._get_size(bracket, 0) for bracket in brackets)


def oracle_server(oracle: Any) -> Any:
    """A gRPC server, not started, that answers keras-tuner's workers with an oracle.

    keras-tuner's public way blocks until all workers have asked once more, which those
    that died never do. Without this function, lost workers could not be noticed.
    """
    from concurrent.futures import ThreadPoolExecutor

    import grpc
    from keras_tuner.src import protos
    from keras_tuner.src.distribute.oracle_chief import OracleServicer

    # Otherwise two chiefs could share a port.
    options = [("grpc.so_reuseport", 0)]
    server = grpc.server(ThreadPoolExecutor(max_workers=8), options=options)
    protos.get_service_grpc().add_OracleServicer_to_server(
        OracleServicer(oracle), server
    )
    return server


def web_application(server: Any) -> Any:
    """The application of FastAPI in an `MLServer` that has not started.

    MLServer takes no middleware. Without this function, a request would be translated
    to its end when its sender has left, and its size would have no limit.
    """
    return server._rest_server._app
