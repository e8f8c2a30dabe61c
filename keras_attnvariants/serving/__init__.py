"""Export of models as SavedModels and in other formats, and clients that use them.

The names in `__all__` are imported when they are first used: a client needs no
TensorFlow.
"""

from typing import TYPE_CHECKING

from keras_attnvariants.utils.importing import late_names

if TYPE_CHECKING:
    from keras_attnvariants.serving.client import Client as Client
    from keras_attnvariants.serving.exporting import export as export
    from keras_attnvariants.serving.folders import write_deployment as write_deployment
    from keras_attnvariants.serving.formats.ctranslate2_folder import (
        export_ctranslate2 as export_ctranslate2,
    )
    from keras_attnvariants.serving.formats.onnx_folder import (
        export_onnx as export_onnx,
    )
    from keras_attnvariants.serving.graphs import operators as operators
    from keras_attnvariants.serving.saved import SavedTranslator as SavedTranslator
    from keras_attnvariants.serving.translator import (
        SavedTranslation as SavedTranslation,
    )
    from keras_attnvariants.serving.translator import Status as Status
    from keras_attnvariants.serving.translator import TargetScore as TargetScore
    from keras_attnvariants.serving.verification import verify as verify

# The module that defines each public name.
_HOME = {
    "Client": "client",
    "SavedTranslation": "translator",
    "SavedTranslator": "saved",
    "Status": "translator",
    "TargetScore": "translator",
    "export": "exporting",
    "export_ctranslate2": "formats.ctranslate2_folder",
    "export_onnx": "formats.onnx_folder",
    "operators": "graphs",
    "verify": "verification",
    "write_deployment": "folders",
}

__all__ = [*_HOME]


__getattr__ = late_names(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
