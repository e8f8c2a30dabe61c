"""The private parts of keras-tuner do what their functions say."""

import grpc
import numpy as np
import pytest
from keras_tuner import HyperParameters
from keras_tuner import Objective
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.oracles import BayesianOptimizationOracle
from keras_tuner.oracles import HyperbandOracle
from keras_tuner.oracles import RandomSearchOracle

from keras_attnvariants.tuning import private
from keras_attnvariants.tuning.chief import free_address
from keras_attnvariants.utils.processes import environment

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
LOSS = Objective("val_loss", "min")


def space():
    hyperparameters = HyperParameters()
    hyperparameters.Float("x", 0.0, 1.0)
    return hyperparameters


def end(oracle, trial, loss):
    oracle.update_trial(trial.trial_id, {"val_loss": loss})
    trial.status = "COMPLETED"
    oracle.end_trial(trial)


def test_a_bayesian_oracle_draws_as_if_it_were_new(tmp_path):
    found = []
    for name in ("asked", "new"):
        options = {"hyperparameters": space(), "num_initial_points": 1, "seed": 5}
        oracle = BayesianOptimizationOracle(LOSS, 9, **options)
        assert isinstance(oracle._random_state, np.random.RandomState)
        BaseTuner(oracle, directory=tmp_path, project_name=name)
        for loss in (1.0, 2.0):
            end(oracle, oracle.create_trial("a"), loss)
        if name == "asked":
            oracle.populate_space("2")
        private.restart_draws(oracle, 5)
        found.append(oracle.populate_space("2")["values"])
    assert found[0] == found[1]


@pytest.mark.parametrize("epochs, factor", [(9, 3), (4, 2)])
def test_hyperband_draws_so_many_random_points(tmp_path, epochs, factor):
    oracle = HyperbandOracle(
        LOSS, max_epochs=epochs, factor=factor, hyperparameters=space(), seed=1
    )
    needed = private.random_trials(oracle)
    BaseTuner(oracle, directory=tmp_path, project_name="search")
    drawn = 0
    while (trial := oracle.create_trial("a")).status != "STOPPED":
        drawn += trial.hyperparameters.values["tuner/initial_epoch"] == 0
        end(oracle, trial, 0.0)
    assert drawn == needed


def test_workers_of_keras_tuner_are_answered(tmp_path):
    oracle = RandomSearchOracle(LOSS, max_trials=2, hyperparameters=space(), seed=1)
    BaseTuner(oracle, directory=tmp_path, project_name="search")
    address = free_address()
    server = private.oracle_server(oracle)
    server.add_insecure_port(address)
    server.start()
    host, port = address.split(":")
    names = {"IP": host, "PORT": port}
    variables = {f"KERASTUNER_ORACLE_{key}": value for key, value in names.items()}
    try:
        with environment(**variables, KERASTUNER_TUNER_ID="first"):
            worker = BaseTuner(oracle, directory=tmp_path, project_name="search")
        assert worker.oracle is not oracle
        trial = worker.oracle.create_trial("first")
        assert oracle.ongoing_trials["first"].trial_id == trial.trial_id
        with pytest.raises(RuntimeError):
            private.oracle_server(oracle).add_insecure_port(address)
        with pytest.raises(grpc.RpcError):
            worker.oracle.get_trial("7")
    finally:
        server.stop(grace=None).wait()
