"""Derivatives of a naive reference, by central differences in float64."""

STEP = 1e-5


def directional_derivative(function, arrays, name, direction):
    """Slope of the scalar `function(arrays)` when one array moves.

    An error `e` in a gradient shows up as `e . u` along a random direction `u`,
    so a few directions test every entry at the cost of a few evaluations.
    """

    def moved(step):
        return function({**arrays, name: arrays[name] + step * direction})

    return (moved(STEP) - moved(-STEP)) / (2 * STEP)
