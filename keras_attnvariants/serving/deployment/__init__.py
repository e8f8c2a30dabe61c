"""What TensorFlow Serving reads beside the model, and what it takes to run it."""

from keras_attnvariants.serving.deployment.batching import write_batching
from keras_attnvariants.serving.deployment.files import write_deployment
from keras_attnvariants.serving.deployment.warm_up import write_warm_up

__all__ = ["write_batching", "write_deployment", "write_warm_up"]
