"""The design of paper 000 for one table: the best set size and coin under which every set stays within t.

The product does not search: parameters found in the counts disclose them. The experiments do, as the paper does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.designs import DecoyDesign
from noren.designs.closeness import Distance, LargestP, largest_ps
from noren.errors import PolicyError, Problem


@dataclass(frozen=True)
class ClosenessSearch:
    """The design with the smallest expected L2 error among those that keep every set within t.

    worst: max_Z H(Z) at the chosen eta, or a bound from above, which keeps the guarantee and may cost accuracy.
    """

    design: DecoyDesign
    rho: float
    worst: float
    exact: bool


def largest_p(counts: NDArray[np.int64], t: float, eta: int, distance: Distance) -> LargestP:
    """The largest p with D(A, B) <= t for every set of `eta` values."""
    options, d = largest_ps(counts, t, distance), len(counts)
    if not 1 <= eta <= d:
        raise ValueError(f"eta must lie between 1 and the {d} values of the domain. Got {eta} instead.")
    if eta == d:  # the whole domain is published every time: nothing is learnt
        return LargestP(eta, 1.0, 1.0, 0.0, True)
    return options[eta - 1]


def search(counts: NDArray[np.int64], t: float, distance: Distance, *, smallest_eta: int = 1) -> ClosenessSearch:
    """The best (eta, p) with smallest_eta <= eta < d under which every set stays within t of A.

    Equation 9's expected L2 error falls with p and, for a given p, rises with eta; it is a function of
    eta / (p^2 (d - eta)) whatever the number of records, so that is what is minimised. Ties go to the smaller eta.
    """
    options, d = largest_ps(counts, t, distance), len(counts)
    if smallest_eta < 1:
        raise ValueError(f"smallest_eta must be at least 1. Got {smallest_eta} instead.")
    if d == 1:  # a domain of one value has no secret
        return ClosenessSearch(DecoyDesign.exact(1), 1.0, 0.0, True)
    if smallest_eta >= d:
        raise PolicyError(
            [
                Problem(
                    "",
                    f"sets of {smallest_eta} values from a domain of {d} carry no information.",
                    "Lower l, declare a larger domain, or publish the whole domain as every set (eta = d).",
                )
            ]
        )
    best = min(options[smallest_eta - 1 :], key=lambda option: (option.eta / (d - option.eta)) ** 0.5 / option.p)
    design = DecoyDesign(d=d, eta=best.eta, p=best.p)
    return ClosenessSearch(design, best.rho, best.worst, best.exact)
