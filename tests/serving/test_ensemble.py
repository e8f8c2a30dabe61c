"""An ensemble is exported like a model, with the weights of all members."""

import numpy as np
import pytest

from keras_attnvariants.decoding import Ensemble
from keras_attnvariants.serving import export
from tests.serving.tools import LIMITS
from tests.serving.tools import translate_here


@pytest.mark.slow
def test_an_ensemble_is_served(models, found, tokenizer, texts, server, tmp_path):
    ensemble = Ensemble([models["hc-sa"], models["lstm"]])
    path = export(
        ensemble, tokenizer, tmp_path, beam_size=2, signatures=["score"], **LIMITS
    )
    served = server.call(path, "serving_default", text=texts[:12])
    ensemble.search_settings = type(ensemble.search_settings)(
        2, ensemble.search_settings.length_penalty
    )
    hypotheses, expected = translate_here(ensemble, tokenizer, texts[:12])
    assert served["translations"].tolist() == expected
    np.testing.assert_allclose(
        served["scores"], np.asarray(hypotheses.scores)[:, 0], atol=1e-3, rtol=1e-3
    )
    alone = [found[variant][1][:12] for variant in ("hc-sa", "lstm")]
    assert expected not in alone
    scored = server.call(path, "score", source=texts[:12], target=expected)
    assert scored["lengths"].min() >= 1 and (scored["log_probs"] < 0).all()
