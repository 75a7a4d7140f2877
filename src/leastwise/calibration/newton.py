"""Damped Newton minimisation for all calibrators.

``minimise`` is the only Newton loop of this package: the blends of classes and labels and the recalibration maps
are all fitted with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray

#: Armijo constant of the line search, and the largest number of halvings of a step.
ARMIJO, HALVINGS = 1e-4, 40


def minimise(
    value_at: Callable[[Array], tuple[Array, Any]],
    step_at: Callable[[Array, Any], tuple[Array, Array]],
    theta: Array,
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    rounding: float = 1e-13,
    max_steps: int = 100,
) -> tuple[Array, Any]:
    """Minimise G convex functions of p parameters each by damped Newton steps, all functions at once.

    Each function has its own line search: its step s is halved until the Armijo condition
    ``f(theta + t s) <= f(theta) - 1e-4 t d`` holds, with the Newton decrement ``d = -gradient's``. A function whose
    step cannot be shortened enough keeps its parameters.

    Parameters
    ----------
    value_at : callable
        From theta of shape (G, p) to the G values, and anything that ``step_at`` can use.
    step_at : callable
        From theta and the second result of ``value_at`` to gradients and Newton steps, both of shape (G, p).
    theta : ndarray of shape (G, p)
        Where to start.
    atol, rtol : float
        Stop after a step with all decrements ``d <= atol + rtol * |value|``.
    rounding : float
        Relative rounding error of the values, by which the line search allows them to rise.
    max_steps : int

    Returns
    -------
    theta : ndarray of shape (G, p)
    state
        The second result of ``value_at`` there.
    """
    value, state = value_at(theta)
    for _ in range(max_steps):
        gradient, step = step_at(theta, state)
        decrement = -np.sum(gradient * step, axis=1)
        length = np.ones(len(theta))
        for _ in range(HALVINGS):
            new, new_state = value_at(theta + length[:, None] * step)
            allowed = value - ARMIJO * length * decrement + rounding * np.abs(value)
            worse = ~(new <= allowed)
            if not worse.any():
                break
            length[worse] /= 2
        else:
            length[worse] = 0
            if not length.any():
                return theta, state
            new, new_state = value_at(theta + length[:, None] * step)
        theta, value, state = theta + length[:, None] * step, new, new_state
        if np.all(decrement <= atol + rtol * np.abs(value)):
            break
    return theta, state


def nonnegative_step(gradient: Array, H: Array, theta: Array, use_second: bool = True) -> Array:
    """Newton steps of two parameters that stay at zero or above.

    The exact minimum of each quadratic model over ``theta >= 0``: the best of its interior minimum, the minima on the
    two sides, and the corner.

    Parameters
    ----------
    gradient, theta : ndarray of shape (G, 2)
    H : ndarray of shape (G, 2, 2)
    use_second : bool
        False keeps the second parameter at zero.
    """
    H = regularised(H)
    (a, b), (x, y) = gradient.T, -theta.T
    aa, ab, bb = H[:, 0, 0], H[:, 0, 1], H[:, 1, 1]
    steps = [(x, y), (-(a + ab * y) / aa, y)]
    if use_second:
        det = aa * bb - ab**2
        det = np.where(det > 0, det, np.inf)
        steps += [(x, -(b + ab * x) / bb), ((ab * b - bb * a) / det, (ab * a - aa * b) / det)]
    S = np.array(steps)
    u, v = S[:, 0], S[:, 1]
    value = a * u + b * v + (aa * u**2 + bb * v**2) / 2 + ab * u * v
    value[(u < x) | (v < y)] = np.inf
    return S[value.argmin(axis=0), :, np.arange(len(theta))]


def regularised(H: Array) -> Array:
    """Matrices of shape (G, p, p) with a diagonal at rounding level added, so that each has an inverse."""
    p = H.shape[-1]
    return H + (1e-12 * np.trace(H, axis1=1, axis2=2) + 1e-100)[:, None, None] * np.eye(p)
