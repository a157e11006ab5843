"""How far each column is to be trusted beside the others.

Each column's evidence is raised to a power between 0 and 2. Columns that say the same share one; a column that is
noise gets none. The powers are those under which people's own cells are foreseen best by the tables that were learned
without them, so that beliefs are as sure as they prove right, and no surer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from noren.estimates.belief.evidence import Evidence
from noren.estimates.belief.pairs import Pair
from noren.ragged import offsets_of

ASKED, LEAST_ASKED = 4_000, 500
"""Records whose own cells are foreseen: fewer where domains are large."""
MOST_ENTRIES = 1 << 19
"""Records times values up to which all of them are asked."""
MOST_POWER = 2.0
PRICE = 3.0
"""Log-likelihood that a power of 1 must gain, so that columns that say something by chance alone get none."""


def powers(
    own: Evidence, pairs: Sequence[Pair], priors: NDArray[np.float64], fold: NDArray[np.int64]
) -> NDArray[np.float64]:
    """One power for every pair. priors: (folds, values)."""
    from scipy.optimize import minimize

    asked = _asked(len(fold), own.d)
    start, told = np.log(np.maximum(priors[fold[asked]], 1e-300)), np.zeros((len(pairs), len(asked), own.d))
    for number in range(len(priors)):
        mine = np.flatnonzero(fold[asked] == number)
        bounds, value = offsets_of(np.full(len(mine), own.d)), np.tile(np.arange(own.d), len(mine))
        for at, pair in enumerate(pairs):
            told[at, mine] = pair.told(number, asked[mine], bounds, value).reshape(len(mine), own.d)
    likely = np.full((len(asked), own.d), own.cells.floor)
    bounds, value, weight = own.listed(asked)
    likely[np.repeat(np.arange(len(asked)), np.diff(bounds)), value] = weight

    def loss(power: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logs = start + np.tensordot(power, told, 1)
        before = np.exp(logs - logs.max(axis=1, keepdims=True))
        before /= before.sum(axis=1, keepdims=True)
        after = before * likely
        total = np.maximum(after.sum(axis=1, keepdims=True), 1e-300)
        slope = after / total - before
        gain = np.tensordot(told, slope, ([1, 2], [0, 1]))
        return PRICE * float(power.sum()) - float(np.log(total).sum()), PRICE - gain

    first = np.full(len(pairs), 0.5)
    found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=[(0.0, MOST_POWER)] * len(pairs))
    return np.asarray(found.x)


def _asked(records: int, width: int) -> NDArray[np.int64]:
    """Records spread over the whole table."""
    count = min(records, max(LEAST_ASKED, min(ASKED, MOST_ENTRIES // max(1, width))))
    return np.unique(np.linspace(0, records - 1, count).astype(np.int64))
