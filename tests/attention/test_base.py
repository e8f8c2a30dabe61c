"""What every variant has from the base class."""

import pytest

from keras_attnvariants import attention

WIDTH = 18  # not a multiple of the examples' four heads
HAVE_HEADS = sorted(
    name for name, v in attention.variants().items() if "num_heads" in v.examples[0]
)


@pytest.mark.parametrize("name", HAVE_HEADS)
def test_heads_that_do_not_divide_the_width_need_a_width_of_their_own(name):
    variant = attention.get(name)
    options = dict(variant.examples[0])
    if name == "NeuralNgram":  # by slices, no width of a head would do
        options["head_input"] = "full"
    layer = variant.cls(**options)
    argument = "key_dim" if hasattr(layer, "key_dim") else "value_dim"
    message = f"`num_heads` .*`{argument}` .*Received: num_heads=4, width={WIDTH}"
    with pytest.raises(ValueError, match=message):
        layer.build((None, None, WIDTH))
    variant.cls(**options, **{argument: 5}).build((None, None, WIDTH))
