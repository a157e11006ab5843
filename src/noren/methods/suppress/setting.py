"""What all groups of a table share when their terms are searched: knowledge, requirement, prior, prices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError
from noren.methods.suppress.beliefs import TOLERANCE, Array, TermRequirement, Unlinked, postings_of
from noren.schema.knowledge import Knowledge

MOST_OPTIONS = 4096


@dataclass(frozen=True)
class Setting:
    """What all groups of a table share."""

    knowledge: Knowledge
    requirement: TermRequirement
    alpha: NDArray[np.float64]
    prior: bool
    key: NDArray[np.int64]
    keys: int
    prices: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        knowledge: Knowledge,
        requirement: TermRequirement,
        alpha: Array | None,
        unlinked: Unlinked,
        prices: Array | None = None,
    ) -> Setting:
        labels = len(knowledge.labels)
        given = np.zeros(labels) if alpha is None else np.asarray(alpha, np.float64)
        closeness = requirement.kind == "t"
        if alpha is None and (closeness or unlinked == "prior"):
            raise NorenError("closeness and unlinked = 'prior' need a prior.", hint="Give alpha, or estimate it.")
        told = [knowledge.label_weights]
        if unlinked == "prior" or (closeness and requirement.metric == "emd"):
            told.append(given)
        if prices is not None and not (np.isfinite(prices).all() and (np.asarray(prices) > 0).all()):
            raise NorenError("a term's price is not a positive number.", hint="Give every term a price above 0.")
        distinct, key = np.unique(np.stack(told), axis=1, return_inverse=True)
        keys = key.ravel().astype(np.int64), distinct.shape[1]
        return cls(knowledge, requirement, given, unlinked == "prior", *keys, prices)

    def rule(self, d: int) -> Any:
        from noren.kernels.term_search import judge as judges

        wanted, alpha = self.requirement, self.alpha
        rest = max(0.0, 1 - float(alpha.sum()))
        square = float((alpha * alpha).sum())
        labels = alpha.size
        if wanted.kind == "cl":
            return judges.Rule(
                judges.CL, float(wanted.c), float(wanted.l), float(d), labels, square, rest, TOLERANCE * d, True
            )
        if wanted.metric == "l2":
            bound, slight = float(d * wanted.t) ** 2, TOLERANCE * d * d
            return judges.Rule(judges.L2, 1.0, bound, float(d), labels, square, rest, slight, None)
        bound, slight = float(d * (1 - wanted.t)), TOLERANCE * d
        return judges.Rule(judges.EMD, 1.0, bound, float(d), labels, square, rest, slight, None)

    def paid(self, codes: Array) -> NDArray[np.float64]:
        """What every entry is worth; nothing where equation 2 counts."""
        return np.zeros(0) if self.prices is None else np.ascontiguousarray(self.prices[codes], np.float64)

    def options(self, bounds: Array, codes: Array) -> Any:
        from noren.kernels.term_search.options import group_options

        postings, paid = postings_of(self.knowledge), self.paid(codes)
        return group_options(bounds, codes, paid, postings, self.key, self.keys, self.alpha, self.prior, MOST_OPTIONS)
