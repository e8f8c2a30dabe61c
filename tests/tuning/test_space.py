"""Search spaces, their points, and the arguments that points stand for."""

import pytest
from keras_tuner import HyperParameters

from keras_attnvariants import attention
from keras_attnvariants import presets
from keras_attnvariants import tuning
from keras_attnvariants.tuning.dimensions import Range
from keras_attnvariants.tuning.dimensions import draw
from tests.tuning.toy import toy_preset

PRESET = presets.get("kav/hc-sa/multi30k")
PLACES = {"encoder": "encoder_attention", "decoder": "decoder_attention"}


def space(**parts):
    return tuning.SearchSpace(**parts)


@pytest.mark.parametrize(
    "name, layers, points",
    [
        ("you2020/offsets", 4, 4),
        ("loem2022/layer-hybrids", 4, 5),
        ("loem2022/layer-hybrids", 6, 7),
    ],
)
def test_a_space_by_name_has_the_sizes_of_its_paper(name, layers, points):
    preset = toy_preset("kav/hc-sa/multi30k", num_layers=layers)
    named = tuning.named_space(name, preset)
    assert named.points(preset) == points
    named.check(preset)


def test_settings_of_all_points():
    named = tuning.named_space("you2020/offsets", PRESET)
    space = named.with_training(batch_tokens=512, learning_rate=2e-3)
    assert space.points(PRESET) == 4
    hyperparameters = {p.name: p.values[0] for p in space.hyperparameters(PRESET).space}
    arguments = space.arguments(PRESET, {**hyperparameters, "offsets": "ll | lc"})
    assert arguments.batch_tokens == 512
    peak = arguments.settings["learning_rate"]
    assert float(peak(999)) == pytest.approx(2e-3)  # the 1000th update
    assert arguments.sizes == named.arguments(PRESET, {"offsets": "ll | lc"}).sizes
    with pytest.raises(ValueError, match="already has the dimension learning_rate"):
        space.with_training(learning_rate=1e-3)
    with pytest.raises(ValueError, match="Did you mean 'batch_tokens'"):
        named.with_training(batch_token=512)


def test_the_offsets_are_those_of_table_6():
    named = tuning.named_space("you2020/offsets", PRESET)
    sizes = named.arguments(PRESET, {"offsets": "ll | lc"}).sizes
    layers = [entry["config"]["offsets"] for entry in sizes["encoder_attention"]]
    assert layers == [[-1, -1], [-1, 1], [-1, 1], [-1, -1]]
    assert sizes["decoder_attention"]["config"]["offsets"] == [-1, 0]


def test_the_hybrids_have_ngrams_in_the_lowest_layers():
    named = tuning.named_space("loem2022/layer-hybrids", PRESET)
    for count in range(5):
        sizes = named.arguments(PRESET, {"lowest": f"m = {count}"}).sizes
        for place in PLACES.values():
            names = [entry["class_name"] for entry in sizes[place]]
            kinds = [name.rpartition(">")[2] for name in names]
            attention_above = ["DotProductAttention"] * (4 - count)
            assert kinds == ["NeuralNgram"] * count + attention_above


@pytest.mark.parametrize("role", ["encoder", "decoder", "cross"])
def test_every_registered_variant_can_be_searched(role):
    everything = space(attention={role: "all"})
    [place] = [
        dimension
        for dimension in everything.hyperparameters(PRESET).space
        if dimension.name == role
    ]
    assert set(place.values) == set(attention.variants(role))
    everything.check(PRESET)


def test_options_of_a_variant_are_searched_where_it_is_chosen():
    candidates = ["DotProductAttention", {"variant": "LocalAttention", "n": [3, 5]}]
    both = space(attention={"encoder": candidates})
    # A name alone is one point, also where tests have further examples.
    assert both.points(PRESET) == 1 + 2
    everything = space(attention={"encoder": "all"})
    assert everything.points(PRESET) > len(attention.variants("encoder"))
    values = {"encoder": "LocalAttention", "encoder/LocalAttention/n": 5}
    layer = both.arguments(PRESET, values).sizes["encoder_attention"]
    assert layer["config"]["n"] == 5 and layer["config"]["num_heads"] == 4


def test_layers_are_chosen_one_by_one_as_far_as_there_are_any():
    candidates = ["DotProductAttention", "none"]
    layers = {"sizes": {"num_layers": [1, 3]}, "attention": {"encoder": candidates}}
    mixed = space(**layers, per_layer=True)
    names = [d.name for d in mixed.hyperparameters(PRESET).space]
    assert [f"encoder/{i}" in names for i in range(4)] == [True, True, True, False]
    values = {"num_layers": 1, "encoder/0": "none"}
    assert mixed.arguments(PRESET, values).sizes["encoder_attention"] == [None]


@pytest.mark.parametrize(
    "numbers, points",
    [
        ([1, 2], 3 + 3**2),
        (Range(1, 2), 3 + 3**2),
        (Range(1, 3), 3 + 3**2 + 3**3),
        (Range(1, 3, step=2), 3 + 3**3),
        (Range(1, 3, log=True), 3 + 3**2 + 3**3),
    ],
)
def test_points_of_layers_in_a_number_that_is_searched(numbers, points):
    candidates = ["DotProductAttention", {"variant": "LocalAttention", "n": [2, 3]}]
    layers = {"sizes": {"num_layers": numbers}, "attention": {"encoder": candidates}}
    assert space(**layers, per_layer=True).points(PRESET) == points
    assert space(sizes={"num_layers": numbers}).points(PRESET) < 4


def test_training_is_searched():
    dimensions = {"learning_rate": [1e-3, 2e-3], "batch_tokens": [512, 1024]}
    arguments = space(training=dimensions).arguments(
        PRESET, {"learning_rate": 2e-3, "batch_tokens": 1024}
    )
    assert arguments.batch_tokens == 1024
    assert arguments.settings["learning_rate"].peak == pytest.approx(2e-3)


@pytest.mark.parametrize(
    "values, stored, expected",
    [
        ((0.1, 0.3), 0.3, 0.3),
        (Range(0.1, 0.9), 0.30000001192092896, 0.3),
        (([1, 2], [3]), "[3]", [3]),
    ],
)
def test_values_that_a_search_stores_are_found(values, stored, expected):
    """Numbers are stored as they are (in ranges to six digits), others as labels."""
    hyperparameters = HyperParameters()
    hyperparameters.values = {"x": stored}
    assert draw(hyperparameters, "x", values) == expected


@pytest.mark.parametrize(
    "parts, message",
    [
        ({}, "must have a dimension"),
        ({"training": {"learningrate": [1]}}, "Did you mean 'learning_rate'"),
        ({"attention": {"encodr": "all"}}, "Did you mean 'encoder'"),
        (
            {"attention": {"encoder": ["LocalAttentoin"]}},
            "Did you mean 'LocalAttention'",
        ),
        (
            {"attention": {"encoder": [{"variant": "LocalAttention", "m": 3}]}},
            "`LocalAttention` has no 'm'",
        ),
        ({"attention": {}}, "must have a dimension"),
        ({"attention": {"encoder": []}}, "must list different variants"),
        ({"sizes": {"dropout": []}}, "must list different values"),
        ({"sizes": {"dropout": {"min": 0.1}}}, "a table with min, max"),
        (
            {"sizes": {"dropout": {"min": 0.1, "max": 0.3, "step": 0.1, "log": True}}},
            "must have no `step`",
        ),
        ({"attention": 3}, "^`attention` must be a table. Received: 3$"),
        ({"sizes": 3}, "^`sizes` must be a table"),
        (
            {"sizes": {"dropout": {"min": 0.1, "max": 0.3, "log": "no"}}},
            r"^`dropout\.log` must be true or false. Received: 'no'",
        ),
        (
            {"attention": {"encoder": "all"}, "per_layer": "no"},
            "^`per_layer` must be true or false. Received: 'no'",
        ),
        ({"systems": {"a": 3}}, r"^`systems\.a` must be a table"),
        ({"systems": {"a": {"b": 3}}}, r"^`systems\.a\.b` must be a table"),
        ({"attention": {"encoder": 3}}, r"^`attention\.encoder` must list names"),
        ({"attention": {"encoder": [3]}}, r"^`attention\.encoder` must list names"),
        ({"sizes": {"num_layers": Range(1, 2.5)}}, "^`num_layers` .*Received: 2.5"),
        ({"sizes": {"num_layers": [1, "a"]}}, "^`num_layers` must .*Received: 'a'"),
        ({"training": {"batch_tokens": 0}}, "^`batch_tokens` must .*Received: 0"),
        ({"training": {"learning_rate": [1e-3, -1.0]}}, "positive .*Received: -1"),
        ({"training": {"label_smoothing": Range(0.0, 3.0)}}, "^`label_smoothing` must"),
        ({"training": {"warmup_steps": [100, "x"]}}, "^`warmup_steps` must"),
        ({"sizes": {"dropout": Range(0.1, "a")}}, r"^`dropout\.max` must be a finite"),
        (
            {"sizes": {"dropout": Range(0.1, 0.3, step=-1)}},
            r"^`dropout\.step` must be a positive number. Received: -1",
        ),
    ],
)
def test_a_wrong_space_is_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        tuning.SearchSpace.from_dict(parts)


@pytest.mark.parametrize(
    "parts, message",
    [
        ({"sizes": {"hidden_dim": [128, 130]}}, "130"),
        ({"sizes": {"hiden_dim": [128]}}, "hiden_dim"),
        ({"attention": {"cross": ["NeuralNgram"]}}, "cannot .*cross_attention"),
        ({"sizes": {"dropout": Range(0.3, 0.1)}}, "'dropout'.* greater than"),
        ({"sizes": {"dropout": Range(0, 0.1, log=True)}}, "'dropout'.*negative"),
        (
            {
                "sizes": {
                    "hidden_dim": [64, 128, 131],
                    "num_layers": [1, 2, 3, 4],
                    "intermediate_dim": [64, 128, 256],
                    "dropout": [0.1, 0.2, 0.3],
                }
            },
            "width=131",
        ),
        (
            {"attention": {"encoder": [{"variant": "LocalAttention", "n": [3, 0]}]}},
            "`n` must be",
        ),
    ],
)
def test_models_that_cannot_be_built_are_found_before_the_search(parts, message):
    with pytest.raises(ValueError, match=message):
        space(**parts).check(PRESET)


def test_unknown_names_of_spaces():
    with pytest.raises(ValueError, match="Did you mean 'you2020/offsets'"):
        tuning.named_space("you2020/offset", PRESET)
    lstm = presets.get("kav/lstm/multi30k")
    with pytest.raises(ValueError, match="needs a Transformer"):
        tuning.named_space("you2020/offsets", lstm)
