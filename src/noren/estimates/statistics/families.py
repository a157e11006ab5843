"""Families of regression: how the mean follows from the linear predictors, and how it varies.

All have their canonical link, so that the score of a record is (y - mean) times its columns. `q` linear predictors are
one, except of the multinomial, which has one for each class but the first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Family(ABC):
    """mean(eta), the derivative of the mean, and the log likelihood up to what does not depend on eta."""

    name: str
    link: str

    @abstractmethod
    def mean(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """(cells, q) of (cells, q)."""

    @abstractmethod
    def slope(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """(cells, q, q): d mean / d eta."""

    @abstractmethod
    def gain(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """(cells,): the log likelihood of a record."""


class Gaussian(Family):
    def mean(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        return eta

    def slope(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ones((*mean.shape, 1))

    def gain(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        return -((y - eta)[:, 0] ** 2) / 2


class Poisson(Family):
    def mean(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(np.minimum(eta, 50.0))

    def slope(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        return mean[..., None]

    def gain(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        return (y * eta - self.mean(eta))[:, 0]


class Multinomial(Family):
    """Classes against the first; of two classes it is the binomial."""

    def mean(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        top = np.maximum(eta.max(axis=1, keepdims=True), 0.0)
        parts = np.exp(eta - top)
        return np.asarray(parts / (np.exp(-top) + parts.sum(axis=1, keepdims=True)))

    def slope(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        return mean[:, :, None] * (np.eye(mean.shape[1]) - mean[:, None, :])

    def gain(self, y: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        top = np.maximum(eta.max(axis=1), 0.0)
        whole = top + np.log(np.exp(-top) + np.exp(eta - top[:, None]).sum(axis=1))
        return (y * eta).sum(axis=1) - whole


FAMILIES: Mapping[str, Family] = {
    "gaussian": Gaussian("gaussian", "identity"),
    "binomial": Multinomial("binomial", "logit"),
    "poisson": Poisson("poisson", "log"),
    "multinomial": Multinomial("multinomial", "logit"),
}
