"""A client of TensorFlow Serving that starts in a moment: no TensorFlow in it."""

from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import TensorSpec
from keras_attnvariants.serving.client.client import Client
from keras_attnvariants.serving.client.exchange import AccessError
from keras_attnvariants.serving.client.exchange import DeadlineError
from keras_attnvariants.serving.client.exchange import InvalidRequestError
from keras_attnvariants.serving.client.exchange import MessageTooLargeError
from keras_attnvariants.serving.client.exchange import ModelNotFoundError
from keras_attnvariants.serving.client.exchange import ServerBusyError
from keras_attnvariants.serving.client.exchange import ServerUnavailableError
from keras_attnvariants.serving.client.exchange import ServingError

__all__ = [
    "AccessError",
    "Client",
    "DeadlineError",
    "InvalidRequestError",
    "MessageTooLargeError",
    "ModelNotFoundError",
    "ServerBusyError",
    "ServerUnavailableError",
    "ServingError",
    "Signature",
    "TensorSpec",
]
