"""The private parts of keras-tuner that the package cannot do without.

One function each, named for what it does. `setup.cfg` bounds the version of keras-tuner
because of them.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np


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
