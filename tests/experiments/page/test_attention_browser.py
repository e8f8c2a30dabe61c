import base64
import dataclasses
import json
import zlib

from keras_attnvariants.experiments.page.rendering import attention_data
from tests.experiments import made_up


def read(text):
    return json.loads(zlib.decompress(base64.b64decode(text)))


def test_the_browser_has_all_weights_of_all_systems():
    result = made_up.comparison()
    systems = read(attention_data(result))
    assert [system["name"] for system in systems] == ["base", "hc-sa", "sh-x"]
    for system in systems:
        own = [layer for layer in result.attention if layer.system == system["name"]]
        found = [
            layer for sentence in system["sentences"] for layer in sentence["layers"]
        ]
        assert found == json.loads(json.dumps(list(map(vars, own))))
    assert systems[0]["sentences"][0]["text"] == made_up.SOURCES[0]


def test_fewer_sentences():
    [system, *_] = read(attention_data(made_up.comparison(), most=1))
    assert [sentence["text"] for sentence in system["sentences"]] == [
        made_up.SOURCES[0]
    ]


def test_without_weights_there_is_no_browser():
    result = dataclasses.replace(made_up.comparison(), attention=())
    assert attention_data(result) == ""
