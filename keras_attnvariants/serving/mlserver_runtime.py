"""An exported model in MLServer, for machines without TensorFlow Serving.

Needs `mlserver`, which only those who serve with it have to install. `kav serve` starts
it; `implementation` in a `model-settings.json` can also name the runtime, as
`keras_attnvariants.serving.mlserver_runtime.TranslationRuntime`.
"""

import asyncio
import re

from mlserver import MLModel
from mlserver import ModelSettings
from mlserver.codecs import StringCodec
from mlserver.errors import InferenceError
from mlserver.errors import MLServerError
from mlserver.types import InferenceRequest
from mlserver.types import InferenceResponse
from mlserver.types import MetadataTensor

from keras_attnvariants.serving.mlserver_requests import MAX_BYTES
from keras_attnvariants.serving.mlserver_requests import Turns
from keras_attnvariants.serving.saved import SavedTranslator
from keras_attnvariants.utils.checks import check_positive

INPUT, OUTPUT = "text", "translations"
_TEXT = StringCodec.ContentType
MAX_SENTENCES = 1024
SECONDS = 30.0
# It goes into the headers of the response.
_ID = re.compile(r"[!-~]{1,200}")


class TranslationRuntime(MLModel):
    """Translates the input `text`, strings `[B]`, to `translations`, strings `[B]`.

    A request is checked before others are batched with it, so that a wrong one fails
    alone. It has at most 1,024 sentences, or as many of the longest that the model
    reads as fit into 1 MB, if that is fewer. Large requests are translated in parts,
    with other requests in between.

    It reads these settings of MLServer: `parameters.uri`, the folder that `export`
    wrote; `max_batch_time`; and in `parameters.extra` `timeout`, seconds for a request
    (30).
    """

    def __init__(self, settings: ModelSettings) -> None:
        # MLServer would merge requests before they are checked.
        super().__init__(settings.model_copy(update={"max_batch_size": 0}))
        extra = settings.parameters.extra or {}
        self._timeout = check_positive("timeout", extra.get("timeout", SECONDS))

    async def load(self) -> bool:
        """Loads the model and translates once, so that no request waits for that."""
        # Not in the event loop, which answers health checks.
        translator = await asyncio.to_thread(self._open)
        limits = translator.info["options"]
        longest = limits["max_characters"]
        self._max_sentences = min(MAX_SENTENCES, max(MAX_BYTES // longest, 1))
        self._turns = Turns(
            translator.translate,
            max_batch=limits["max_batch"],
            longest=longest,
            max_wait=self.settings.max_batch_time,
        )
        self.inputs = [MetadataTensor(name=INPUT, datatype="BYTES", shape=[-1])]
        self.outputs = [MetadataTensor(name=OUTPUT, datatype="BYTES", shape=[-1])]
        return True

    def _open(self) -> SavedTranslator:
        translator = SavedTranslator(self.settings.parameters.uri)
        if not translator.reads_text:
            raise ValueError(
                "This runtime takes texts: serve models of recordings with TensorFlow "
                f"Serving. Received: {translator.path}"
            )
        translator.translate(["."])
        return translator

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """The translations of a request.

        Raises:
            InferenceError: the request is wrong, which is status 400.
            MLServerError: the request timed out, which is status 504.
        """
        if payload.id and not _ID.fullmatch(payload.id):
            raise InferenceError(
                "`id` must have at most 200 characters of ASCII without spaces. "
                f"Received: {payload.id!r:.80}"
            )
        texts = texts_of(payload, self._max_sentences)
        try:
            async with asyncio.timeout(self._timeout):
                found = await self._turns.translate(texts)
        except TimeoutError:
            raise MLServerError(
                f"`{INPUT}` was not translated within {self._timeout:g} seconds: send "
                f"fewer or shorter sentences. Received: {len(texts):,}",
                504,
            ) from None
        return InferenceResponse(
            id=payload.id,
            model_name=self.name,
            model_version=self.version,
            outputs=[StringCodec.encode_output(OUTPUT, found)],
        )


def texts_of(payload: InferenceRequest, max_sentences: int) -> list[str]:
    """The texts of a request; invalid UTF-8 becomes `?` or U+FFFD.

    Raises:
        InferenceError: it has other inputs, or the input differs from its description.
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
        (0 < count <= max_sentences, f"hold 1 to {max_sentences:,} sentences", count),
        (all(isinstance(x, str | bytes) for x in values), "hold strings", values),
    ):
        if not is_right:
            raise InferenceError(f"`{INPUT}` must {wanted}. Received: {received!r:.80}")
    encoded = (
        x.encode("utf-8", "replace") if isinstance(x, str) else x for x in values
    )
    return [text.decode("utf-8", "replace") for text in encoded]
