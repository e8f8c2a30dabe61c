"""An exported model in MLServer, for machines without TensorFlow Serving.

Needs `mlserver`, which only those who serve with it have to install. `kav serve` starts
it; `implementation` in a `model-settings.json` can also name the runtime, as
`keras_attnvariants.serving.mlserver_runtime.TranslationRuntime`.
"""

import asyncio
import threading

from mlserver import MLModel
from mlserver import ModelSettings
from mlserver.batching import load_batching
from mlserver.codecs import StringCodec
from mlserver.errors import InferenceError
from mlserver.types import InferenceRequest
from mlserver.types import InferenceResponse
from mlserver.types import MetadataTensor
from mlserver.types import RequestInput

from keras_attnvariants.serving.saved import SavedTranslator

INPUT, OUTPUT = "text", "translations"
_TEXT = StringCodec.ContentType
# Sentences of one request: what one user can make the others wait for.
MAX_SENTENCES = 1024


class TranslationRuntime(MLModel):
    """Translates the input `text`, strings `[B]`, to `translations`, strings `[B]`.

    A request is checked before others are batched with it, so that a wrong one fails
    alone. Batches of more sentences than the model takes at once are split.

    Settings of MLServer that it reads are `parameters.uri`, the folder that `export`
    wrote, `max_batch_size` and `max_batch_time`.
    """

    def __init__(self, settings: ModelSettings) -> None:
        # MLServer would merge requests before they are checked.
        super().__init__(settings.model_copy(update={"max_batch_size": 0}))
        self._batches = _Batches(settings)

    async def load(self) -> bool:
        """Loads the model and translates once, so that nobody waits for that."""
        # Elsewhere than in the event loop, which answers questions about health.
        await asyncio.to_thread(self._batches.open)
        self._batches = await load_batching(self._batches)
        self.inputs = [MetadataTensor(name=INPUT, datatype="BYTES", shape=[-1])]
        self.outputs = [MetadataTensor(name=OUTPUT, datatype="BYTES", shape=[-1])]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """The translations of a request.

        Raises:
            InferenceError: the request is wrong, which is status 400.
        """
        texts = texts_of(payload)
        found = await self._batches.predict(request_of(texts))
        return InferenceResponse(
            id=payload.id,
            model_name=self.name,
            model_version=self.version,
            outputs=found.outputs,
        )


class _Batches(MLModel):
    """Translates requests that MLServer has merged, one batch at a time."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings)
        self._one_at_a_time = threading.Lock()

    def open(self) -> None:
        """Loads the model and translates a sentence."""
        self._translator = SavedTranslator(self.settings.parameters.uri)
        self._translator.translate(["."])

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        texts = StringCodec.decode_input(payload.inputs[0])
        translations = await asyncio.to_thread(self._translate, texts)
        return InferenceResponse(
            model_name=self.name,
            outputs=[StringCodec.encode_output(OUTPUT, translations)],
        )

    def _translate(self, texts: list[str]) -> list[str]:
        with self._one_at_a_time:
            return self._translator.translate(texts)


def request_of(texts: list[str]) -> InferenceRequest:
    """A request for the translations of texts, with nothing else in it."""
    shape = [len(texts), 1]
    return InferenceRequest(
        inputs=[RequestInput(name=INPUT, datatype="BYTES", shape=shape, data=texts)]
    )


def texts_of(payload: InferenceRequest) -> list[str]:
    """The texts of a request.

    Raises:
        InferenceError: it has other inputs, or this one is not what it says it is.
    """
    names = [request_input.name for request_input in payload.inputs]
    if names != [INPUT]:
        raise InferenceError(
            f"A request must have the one input `{INPUT}`. Received: {names!r:.200}"
        )
    [request_input] = payload.inputs
    kind, shape = request_input.datatype, request_input.shape
    content = request_input.parameters and request_input.parameters.content_type
    values = request_input.data.root
    count = len(values) if isinstance(values, list) else 0
    for is_right, wanted, received in (
        (kind == "BYTES", "be of datatype BYTES", kind),
        (content in (None, _TEXT), f"have the content type {_TEXT}, or none", content),
        (isinstance(values, list), "be a list", values),
        (shape in ([count], [count, 1]), f"have the shape [{count}, 1]", shape),
        (0 < count <= MAX_SENTENCES, f"hold 1 to {MAX_SENTENCES:,} sentences", count),
    ):
        if not is_right:
            raise InferenceError(f"`{INPUT}` must {wanted}. Received: {received!r:.80}")
    return [text_of(value, number) for number, value in enumerate(values)]


def text_of(value: object, number: int) -> str:
    """A text, as a string; bytes that are not UTF-8 become U+FFFD.

    Raises:
        InferenceError: it is neither string nor bytes.
    """
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    raise InferenceError(
        f"`{INPUT}` must hold strings. Received: {value!r:.80} at position {number}"
    )
