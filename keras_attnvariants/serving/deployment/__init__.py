"""Files with which an exported model is run: containers, limits, rollout."""

from keras_attnvariants.serving.deployment.files import write_deployment

__all__ = ["write_deployment"]
