"""Exports for runtimes other than TensorFlow: ONNX and CTranslate2."""

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.utils.folders import FolderWriter

TOKENIZER, TARGET_TOKENIZER = "tokenizer.model", "target_tokenizer.model"


def write_tokenizers(draft: FolderWriter, tokenizer: Tokenizer) -> dict[str, str]:
    """Writes the SentencePiece model of sources, and that of targets if it differs.

    Returns:
        The names of the files, as `source_tokenizer` and `target_tokenizer`.
    """
    draft.write_bytes(TOKENIZER, tokenizer.model_bytes)
    names = {"source_tokenizer": TOKENIZER, "target_tokenizer": TOKENIZER}
    if tokenizer.target is not tokenizer:
        draft.write_bytes(TARGET_TOKENIZER, tokenizer.target.model_bytes)
        names["target_tokenizer"] = TARGET_TOKENIZER
    return names
