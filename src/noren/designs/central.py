"""Discrete Laplace noise for counts that a holder publishes under central differential privacy.

P(noise = k) is proportional to exp(-|k| / scale). With scale = sensitivity / epsilon, where the sensitivity is the most
that all counts together change if one person is replaced by another, the noised counts are epsilon-differentially
private (Ghosh, Roughgarden, Sundararajan 2009; Canonne, Kamath, Steinke 2020). The noise is drawn by OpenDP, in exact
arithmetic from the system's secure randomness: no floating-point sampler, whose last bits would tell the count.
"""

from __future__ import annotations

from math import expm1

import numpy as np
from numpy.typing import NDArray

from noren.errors import PolicyError, Problem

SLACK = 1 + 1e-9
"""The scale is rounded up by this much, so that rounding never spends more than was asked for."""


def scale_of(sensitivity: int, epsilon: float) -> float:
    """The scale of the noise."""
    return sensitivity / epsilon * SLACK


def noise_variance(scale: float) -> float:
    """Return the variance of discrete Laplace noise: 2 q / (1 - q)^2 with q = exp(-1 / scale)."""
    gone = -expm1(-1 / scale)
    return 2 * (1 - gone) / gone**2


def noised(counts: NDArray[np.int64], sensitivity: int, epsilon: float) -> NDArray[np.int64]:
    """Add noise to the counts; raise PolicyError if OpenDP is missing."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise PolicyError(
            [Problem("margins", "noised margins need OpenDP.", 'Install it: pip install "noren[dp]"')], source="policy"
        ) from None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    draw = dp.m.make_laplace(*space, scale=scale_of(sensitivity, epsilon))
    if not draw.map(sensitivity) <= epsilon:
        raise PolicyError(
            [
                Problem(
                    "margins", f"noise for epsilon = {epsilon:g} cannot be drawn exactly.", "Choose a larger epsilon."
                )
            ]
        )
    return np.array(draw(counts.ravel().tolist()), np.int64).reshape(counts.shape)
