"""Newton steps of the two parameters of a blend, which are zero or above."""

import numpy as np
import pytest
from scipy.optimize import minimize

from leastwise.calibration.blend import _nonnegative_step


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("side", ["inside", "x", "y", "corner"])
def test_a_step_is_the_best_one_that_keeps_both_parameters_from_below_zero(side, seed):
    """Against a bounded optimiser on the quadratic model; gradients point across the sides."""
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(2, 2))
    H = M @ M.T + 0.1 * np.eye(2)
    at = rng.uniform(0.1, 1, size=2)
    wanted = {"inside": [0.0, 0.0], "x": [-3.0, 0.5], "y": [0.5, -3.0], "corner": [-3.0, -3.0]}[side]
    gradient = -H @ (np.array(wanted) - (at if side != "inside" else 0))
    step = np.array(_nonnegative_step(*gradient, H[0, 0], H[0, 1], H[1, 1], *at))

    def model(s):
        return gradient @ s + s @ H @ s / 2

    found = minimize(model, np.zeros(2), jac=lambda s: gradient + H @ s, bounds=[(-a, None) for a in at], tol=1e-14)
    assert (step >= -at - 1e-12).all()
    assert model(step) <= found.fun + 1e-9 * (1 + abs(found.fun))
