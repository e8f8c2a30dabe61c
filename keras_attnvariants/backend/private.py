"""The private parts of other packages that this package needs.

Each has one function, named after its purpose. They are the reason why `setup.cfg`
bounds the versions of these packages. If a later release of Keras or TensorFlow lacks a
private part, there is one warning, and a public way replaces it.
"""

import functools
import io
import time
import warnings
from collections.abc import Callable
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from typing import ParamSpec
from typing import TypeVar

import keras
import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


def with_fallback(
    fallback: Callable[..., Any],
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator that calls another function, with a warning, if parts are missing.

    Args:
        fallback: takes the same arguments and needs no private parts.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except (ImportError, AttributeError, TypeError) as error:
                warnings.warn(
                    f"Keras {keras.__version__} and its backend lack what "
                    f"`{function.__name__}` of keras_attnvariants uses ({error}): a "
                    "slower public way replaces it. `kav doctor` says which releases "
                    "were tested",
                    stacklevel=1,
                )
            return fallback(*args, **kwargs)

        return call

    return decorate


# Functions that XLA can compile also run without XLA.
@with_fallback(lambda: True)
def is_in_xla_context() -> bool:
    """Whether TensorFlow is tracing a graph that XLA will compile.

    No public function tells this. Without this one, cached states would be written by
    an operator that XLA does not have.
    """
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    graph = tf.compat.v1.get_default_graph()
    return bool(control_flow_util.GraphOrParentsInXlaContext(graph))


@with_fallback(lambda model: type(model).__name__ == "Functional")
def is_functional(model: keras.Model) -> bool:
    """Whether a model is a graph of layers, as `keras.Model(inputs, outputs)` is.

    Keras has no public name for the class of such models. Without this function, only
    an error of `keras.models.clone_model` would distinguish them from others.
    """
    from keras.src.models import Functional

    return isinstance(model, Functional)


def layers_in_attributes(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """The result of `nested_layers`, found by looking at all attributes."""
    for each in (found := [layer]):
        for value in keras.tree.flatten(list(vars(each).values())):
            if isinstance(value, keras.layers.Layer) and value not in found:
                found.append(value)
    return found


@with_fallback(layers_in_attributes)
def nested_layers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """The layer itself, and all layers in it at any depth.

    The public `Model.layers` lists only the direct parts of a model, and a layer has no
    such list. Without this function, half-precision decoding would cast every matrix
    again at each position.
    """
    return list(layer._flatten_layers())


def weights_to_cast(layer: keras.layers.Layer) -> tuple[str, ...]:
    """The attributes that hold the weights that a layer casts at each call.

    The public properties `kernel` and `embeddings` cannot be set. Without this
    function, the layers of copies for decoding would cast these matrices at each
    position.
    """
    if isinstance(layer, keras.layers.EinsumDense | keras.layers.Conv1D):
        return "_kernel", "bias"
    return ("_embeddings",) if isinstance(layer, keras.layers.Embedding) else ()


def weights_file(model: keras.Model) -> memoryview:
    """The bytes that `model.save_weights` writes, without the optimizer's variables.

    HDF5 ends the whole process when the disk is full, and the public method writes only
    to a path. Without this function, a failed save might not raise an error.
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


def sentence_statistics(
    metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> np.ndarray:
    """The counts of a sacrebleu metric for each sentence, float64 `[n, k]`.

    The counts are additive: their sum gives the score of a corpus. The public methods
    return scores, with some counts for BLEU and TER and none for chrF. Without this
    function, each sample of a bootstrap would compare all texts again.
    """
    found = metric._extract_corpus_statistics(hypotheses, references)
    return np.array(found, "float64")


def score_of_statistics(metric: Any, sums: np.ndarray) -> float:
    """The score of a sacrebleu metric, from a sum of `sentence_statistics`, `[k]`."""
    return float(metric._compute_score_from_stats(sums).score)


@with_fallback(lambda: None)
def forget_variables_without_values() -> None:
    """Drops variables that were created in a scope without values from Keras' list.

    Keras gives all of them values when it next leaves a `StatelessScope`, and has no
    public way to prevent this. Without this function, the arrays of a model that was
    only counted, or refused for its size, would be allocated later.
    """
    from keras.src.backend.common import global_state

    global_state.set_global_attribute("uninitialized_variables", [])


def start_with_zeros(variables: Sequence[keras.Variable]) -> None:
    """Lets variables that have no values yet begin with zeros.

    The initializer is an argument of the layer that makes a variable. Without this
    function, loading a model would draw millions of unused random numbers, which takes
    a third of the time.
    """
    for variable in variables:
        variable._initializer = keras.initializers.Zeros()


@with_fallback(lambda optimizer, variable: None)
def adam_moments(
    optimizer: keras.optimizers.Adam, variable: Any
) -> tuple[keras.Variable, keras.Variable] | None:
    """The first and second moments of a variable in Adam, if they are found.

    The public `variables` lists them by names that may change. Without this function,
    updates could not be one operation for each variable.
    """
    index = optimizer._get_variable_index(variable)
    return optimizer._momentums[index], optimizer._velocities[index]


def moving_averages(optimizer: keras.optimizers.Optimizer) -> list[keras.Variable]:
    """The averages that an optimizer with `use_ema` keeps of the trainable variables.

    The public `variables` lists them by names that may change. Without this function,
    a validation could not use averages instead of the weights.
    """
    return list(optimizer._model_variables_moving_average)


def place_oracle(oracle: Any, folder: Path) -> None:
    """Lets an oracle write its trials into the folder of a search.

    A tuner of keras-tuner does this; an oracle without one writes nowhere.
    """
    oracle._set_project_dir(folder.parent, folder.name)


def restart_draws(oracle: Any, seed: int) -> None:
    """Lets a Bayesian oracle draw as if it had just been made with this seed.

    Its state does not include the position of its random generator. Without this
    function, a search that was killed would continue with other points than one that
    was not.
    """
    oracle._random_state = np.random.RandomState(seed)


def web_application(server: Any) -> Any:
    """The application of FastAPI in an `MLServer` that has not started.

    MLServer accepts no middleware. Without this function, requests would be translated
    to the end after their senders have disconnected, and could have any size.
    """
    return server._rest_server._app


@with_fallback(lambda seconds: None)
def delay_end_of_jax_service(seconds: float) -> None:
    """Makes process 0 of a JAX program wait before it stops the program's service.

    JAX stops it as soon as all processes have signed off. If one of its threads is then
    about to ask gRPC for the next request, gRPC aborts the process, whose work was done
    ("Check failed: queue.Pop() == nullptr"). JAX has no setting for this.
    """
    from jax._src.distributed import global_state

    service = global_state.service
    if service is None:
        return

    def shutdown() -> None:
        time.sleep(seconds)
        service.shutdown()

    global_state.service = SimpleNamespace(shutdown=shutdown)
