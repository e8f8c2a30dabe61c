"""A client of TensorFlow Serving that starts quickly, without TensorFlow."""

from keras_attnvariants.serving.calls import Signature as Signature
from keras_attnvariants.serving.calls import TensorSpec as TensorSpec
from keras_attnvariants.serving.client.client import Client as Client
from keras_attnvariants.serving.client.exchange import AccessError as AccessError
from keras_attnvariants.serving.client.exchange import DeadlineError as DeadlineError
from keras_attnvariants.serving.client.exchange import (
    InvalidRequestError as InvalidRequestError,
)
from keras_attnvariants.serving.client.exchange import (
    MessageTooLargeError as MessageTooLargeError,
)
from keras_attnvariants.serving.client.exchange import (
    ModelNotFoundError as ModelNotFoundError,
)
from keras_attnvariants.serving.client.exchange import (
    ServerBusyError as ServerBusyError,
)
from keras_attnvariants.serving.client.exchange import (
    ServerUnavailableError as ServerUnavailableError,
)
from keras_attnvariants.serving.client.exchange import ServingError as ServingError
