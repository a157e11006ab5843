"""What all groups of a table share when their terms are searched: knowledge, requirement, prior, prices; and choices of
options, one per record of a group: in which order records are looked at, what a choice costs, what it removes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError
from noren.methods.suppress.beliefs import TOLERANCE, Array, TermRequirement, Unlinked, postings_of
from noren.ragged import chosen, owners, ranges
from noren.schema.knowledge import Knowledge

if TYPE_CHECKING:
    from noren.methods.suppress.kernels.options import GroupOptions

MOST_OPTIONS = 4096
"""Options of a record."""
MOST_WEIGHED, LEAST_WEIGHED = 1 << 14, 16
"""Where pairs have weights, options are many: so many a group, but no fewer a record than the second says."""


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

    @property
    def weighed(self) -> bool:
        """Whether one label that fits may be believed in more than another."""
        return self.knowledge.weights is not None or self.knowledge.pairs is not None

    def rule(self, d: int) -> Any:
        from noren.methods.suppress.kernels import judge as judges

        wanted, labels, (rest, square) = self.requirement, self.alpha.size, self._prior_sums
        if wanted.kind == "cl":
            return judges.Rule(
                judges.CL, float(wanted.c), float(wanted.l), float(d), labels, square, rest, TOLERANCE * d, True
            )
        if wanted.metric == "l2":
            bound, slight = float(d * wanted.t) ** 2, TOLERANCE * d * d
            return judges.Rule(judges.L2, 1.0, bound, float(d), labels, square, rest, slight, None)
        bound, slight = float(d * (1 - wanted.t)), TOLERANCE * d
        return judges.Rule(judges.EMD, 1.0, bound, float(d), labels, square, rest, slight, None)

    @cached_property
    def _prior_sums(self) -> tuple[float, float]:
        """What the prior leaves to no label, and the sum of its squares."""
        return max(0.0, 1 - float(self.alpha.sum())), float((self.alpha * self.alpha).sum())

    def paid(self, codes: Array) -> NDArray[np.float64]:
        """What every entry is worth; nothing where equation 2 counts."""
        return np.zeros(0) if self.prices is None else np.ascontiguousarray(self.prices[codes], np.float64)

    @cached_property
    def _levels(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Labels for which a term has one and the same weight: which of these sets belong to every term, where each
        begins, and its labels."""
        pairs = self.knowledge.pairs
        assert pairs is not None
        term = owners(pairs.start)
        order = np.lexsort((pairs.logs, term))
        ahead = np.flatnonzero(
            np.diff(term[order], prepend=-1) | np.diff(pairs.logs[order], prepend=np.nan).astype(bool)
        )
        first = np.searchsorted(term[order][ahead], np.arange(len(pairs.start)))
        return first, np.append(ahead, len(term)), pairs.of[order]

    def options(self, bounds: Array, codes: Array) -> Any:
        from noren.methods.suppress.kernels.options import Asked, Splits, group_options

        postings, paid = postings_of(self.knowledge), self.paid(codes)
        splits, most = Splits(codes, postings.start, postings.of), MOST_OPTIONS
        if self.knowledge.pairs is not None:
            first, start, of = self._levels
            known = np.unique(codes[(codes >= 0) & (codes < len(first) - 1)])
            splits = Splits(ranges(first[known], first[known + 1]), start, of)
            most = min(most, max(LEAST_WEIGHED, MOST_WEIGHED // max(1, bounds.size - 1)))
        asked = Asked(self.alpha, self.prior, self.requirement.kind == "t", most)
        return group_options(bounds, codes, paid, postings, splits, self.key, self.keys, asked)


def overlap_order(group: GroupOptions) -> NDArray[np.int64]:
    """Records by how much belief they share with others before anything is removed, most first.

    The bound sees an overlap only once both records are fixed, so those should be fixed early.
    """
    d = group.first.size - 1
    own = group.first[:-1]
    some = own[group.flat[own] <= 0]
    laid = ranges(group.at[some], group.at[some + 1])
    belief = np.bincount(group.cls[laid], group.val[laid], minlength=group.size.size)
    lengths = group.at[own + 1] - group.at[own]
    held = ranges(group.at[own], group.at[own + 1])
    c, v = group.cls[held], group.val[held]
    common = group.size[c] * np.maximum(0.0, np.minimum(v, belief[c] - v))
    shared = np.bincount(np.repeat(np.arange(d), lengths), common, minlength=d)
    return np.argsort(-np.rint(shared * 1e9), kind="stable")


def reordered(group: GroupOptions, order: NDArray[np.int64]) -> GroupOptions:
    """The same group with its records in another order."""
    first, take = chosen(group.first, order)
    at, held = chosen(group.at, take)
    return group._replace(
        first=first,
        cost=group.cost[take],
        sets=group.sets[take],
        at=at,
        cls=group.cls[held],
        val=group.val[held],
        flat=group.flat[take],
        complete=group.complete[order],
    )


def choice_cost(group: GroupOptions, choice: NDArray[np.int64]) -> float:
    """What a choice costs, added up as the kernels do."""
    return float(np.cumsum(group.cost[choice])[-1])


def removed_entries(bounds: NDArray[np.int64], kept: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which (record, term) entries are missing from the kept term sets, one row a record."""
    sizes = np.diff(bounds)
    record = np.repeat(np.arange(sizes.size), sizes)
    term = ranges(np.zeros_like(sizes), sizes)
    return np.asarray((kept[record, term >> 6] >> (term & 63).astype(np.uint64)) & np.uint64(1) == 0)
