"""A client of TensorFlow Serving that starts in a moment: no TensorFlow in it."""

from keras_attnvariants.serving.client.client import AsyncClient
from keras_attnvariants.serving.client.client import Client
from keras_attnvariants.serving.client.errors import AccessError
from keras_attnvariants.serving.client.errors import DeadlineError
from keras_attnvariants.serving.client.errors import InvalidRequestError
from keras_attnvariants.serving.client.errors import MessageTooLargeError
from keras_attnvariants.serving.client.errors import ModelNotFoundError
from keras_attnvariants.serving.client.errors import ServerBusyError
from keras_attnvariants.serving.client.errors import ServerUnavailableError
from keras_attnvariants.serving.client.errors import ServingError
from keras_attnvariants.serving.client.tensors import Signature
from keras_attnvariants.serving.client.tensors import TensorSpec

__all__ = [
    "AccessError",
    "AsyncClient",
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
