"""Distances between estimated and true counts, with their units; smaller is better.

Definitions 7 to 9 of paper 000 are on counts; divided by the number of records they are on relative frequencies, and
figures of the two kinds cannot be compared. Each function takes estimate and truth of the same shape (any number of
attributes) and returns a plain number; `Loss` carries name, unit and value where a table of results is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Unit = Literal["counts", "relative frequencies"]
LossFunction = Callable[[ArrayLike, ArrayLike, bool], float]


@dataclass(frozen=True)
class Loss:
    """One measured loss: name, unit and amount."""

    name: str
    unit: Unit
    value: float


def l1_loss(estimate: ArrayLike, truth: ArrayLike, relative: bool) -> float:
    """Return the sum of absolute differences (Definition 7). Relative: 0 to 2 if both have N records."""
    x_hat, x = _scaled(estimate, truth, relative)
    return float(np.abs(x - x_hat).sum())


def l2_loss(estimate: ArrayLike, truth: ArrayLike, relative: bool) -> float:
    """Return the square root of the sum of squared differences (Definition 8)."""
    x_hat, x = _scaled(estimate, truth, relative)
    return float(np.sqrt(((x - x_hat) ** 2).sum()))


def hellinger_loss(estimate: ArrayLike, truth: ArrayLike, relative: bool) -> float:
    """Return sqrt(sum (sqrt x - sqrt xhat)^2 / 2) (Definition 9), which gives small cells more weight.

    Negative estimates, which linear inversion may give, count as 0.
    """
    x_hat, x = _scaled(estimate, truth, relative)
    return float(np.sqrt(((np.sqrt(x) - np.sqrt(np.maximum(x_hat, 0))) ** 2).sum() / 2))


def mse_loss(estimate: ArrayLike, truth: ArrayLike, relative: bool) -> float:
    """Return the mean of squared differences over all cells (paper 003, equation 18, is the relative one)."""
    x_hat, x = _scaled(estimate, truth, relative)
    return float(((x - x_hat) ** 2).mean())


METRICS: dict[str, LossFunction] = {
    "l1": l1_loss,
    "l2": l2_loss,
    "hellinger": hellinger_loss,
    "mse": mse_loss,
}


def measure(name: str, estimate: ArrayLike, truth: ArrayLike, *, relative: bool = True) -> Loss:
    """Return the named loss with its unit."""
    if name not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}. Got {name!r} instead.")
    unit: Unit = "relative frequencies" if relative else "counts"
    return Loss(name, unit, METRICS[name](estimate, truth, relative))


def _scaled(estimate: ArrayLike, truth: ArrayLike, relative: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both arrays, divided by the true number of records if requested."""
    x_hat, x = np.asarray(estimate, np.float64), np.asarray(truth, np.float64)
    if x_hat.shape != x.shape:
        raise ValueError(f"estimate and truth differ in shape: {x_hat.shape} and {x.shape}.")
    if not x.size:
        raise ValueError("there are no cells to compare.")
    if x.min() < 0:
        raise ValueError("true counts must be at least 0.")
    if not (np.isfinite(x_hat).all() and np.isfinite(x).all()):
        raise ValueError("estimate and truth must be finite numbers.")
    if not relative:
        return x_hat, x
    if not x.any():
        raise ValueError("a table without records has no relative frequencies.")
    return x_hat / x.sum(), x / x.sum()
