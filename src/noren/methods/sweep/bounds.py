"""The requirements of SWEEP on every sensitive column, and the column's nodes, for its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.errors import RequirementNotMet
from noren.methods.sweep.kernels.select import TOLERANCE, Sensitive
from noren.models.base import Model
from noren.ragged import offsets_of
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Tree, tree_of

DIVERSITY = ("tau-l-diversity", "frequency-l-diversity", "distinct-l-diversity")
SERVED = (*DIVERSITY, "k-anonymity")

TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Bound:
    """The limits psi(1), psi(2), ... of one sensitive column, and how many base values a class must have."""

    name: str
    tree: Tree
    psi: NDArray[np.float64]
    least: int
    weights: NDArray[np.float64]

    @property
    def alone(self) -> Sensitive:
        """Return the arrays of this column only."""
        return arrays([self])

    def met_by(self, nodes: NDArray[np.int64]) -> bool:
        """Return whether a class of records with these nodes meets the limits, as `raise_values` checks it."""
        mine = self.alone
        count = np.bincount(nodes, minlength=len(self.tree.nodes))
        induced = np.zeros(len(self.weights))
        for above, share in zip(mine.chain.T, mine.share.T, strict=True):
            induced += np.where(above >= 0, count[above] * share, 0.0)
        summed = np.cumsum(np.sort(induced)[::-1][: len(self.psi)])
        within = summed <= (self.psi[: len(summed)] + TOLERANCE) * len(nodes)
        return bool(not len(nodes) or (within.all() and (induced > 0).sum() >= self.least))


def bounds_of(table: Records, requirements: Sequence[Model]) -> list[Bound]:
    """Return one bound per sensitive column with a requirement; raise RequirementNotMet if it cannot be reached."""
    out = []
    for name in table.sensitive:
        mine = [model for model in requirements if model.model in DIVERSITY and name in model.on]
        if not mine:
            continue
        facts = table.columns[name]
        values = facts.domain.values
        least = max(int(model.parameters()["l"]) for model in mine)
        if least > len(values):
            asked = f"l = {least} exceeds the {len(values)} values that {name!r} has in this table."
            reach = (
                f"The largest l that can be reached is {len(values)}." if len(values) > 1 else "No l can be reached."
            )
            raise RequirementNotMet(asked, hint=reach)
        psi = np.ones(max(1, least - 1))
        weights = np.ones(len(values))
        for model in mine:
            given = model.parameters()
            if model.model != "distinct-l-diversity":
                tau = given.get("tau", 1 / given["l"])
                psi = np.minimum(psi, ceilings(tau, given["l"], len(psi), given.get("ceilings")))
            weights = np.array([(given.get("weights") or {}).get(value, 1.0) for value in values]) * weights
        hierarchy = facts.tree or Hierarchy((values,))
        out.append(Bound(name, tree_of(hierarchy), psi, least, weights))
    return out


def ceilings(
    tau: float,
    l: int,  # noqa: E741
    count: int,
    given: Sequence[float] | None = None,
) -> NDArray[np.float64]:
    """Return psi(1), ..., psi(count) of (tau,l)-diversity, linear unless given."""
    if given is not None:
        return np.concatenate([given, np.ones(count)])[:count]
    k = np.arange(1, count + 1)
    return np.minimum(1.0, tau + (1 - tau) * (k - 1) / (l - 1))


def arrays(bounds: Sequence[Bound]) -> Sensitive:
    """Return several columns one after the other, with base values and nodes numbered consecutively."""
    deepest = max(bound.tree.height for bound in bounds) + 1
    values = [len(bound.weights) for bound in bounds]
    first = offsets_of(values)
    chain = np.full((first[-1], deepest), -1, np.int64)
    share = np.zeros((first[-1], deepest))
    psi = np.ones((len(bounds), max(len(bound.psi) for bound in bounds)))
    members, lengths, before = [], [], 0
    for j, bound in enumerate(bounds):
        nodes = bound.tree.nodes
        flat, start = nodes.flat_members()
        weight, alike = np.add.reduceat(bound.weights[flat], start[:-1]), 1 / np.diff(start)
        members.append(flat + first[j])
        lengths.append(np.diff(start))
        for a in range(values[j]):
            above = list(dict.fromkeys(bound.tree.at[:, a].tolist()))
            chain[first[j] + a, : len(above)] = np.array(above) + before
            whole = weight[above]  # where nothing under a node has a weight, its values are equally likely
            share[first[j] + a, : len(above)] = np.where(
                whole > 0, bound.weights[a] / np.maximum(whole, TINY), alike[above]
            )
        psi[j, : len(bound.psi)] = bound.psi
        before += len(nodes)
    member_start = offsets_of(np.concatenate(lengths))
    least = np.array([bound.least for bound in bounds], np.int64)
    return Sensitive(first, chain, share, np.concatenate(members).astype(np.int64), member_start, psi, least)


def combinations(bounds: Sequence[Bound], nodes: Sequence[NDArray]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the combination of sensitive nodes of every record, and (combinations, columns) the nodes.

    For one column the combinations are its nodes.
    """
    if len(bounds) == 1:
        return nodes[0], np.arange(len(bounds[0].tree.nodes))[:, None]
    before = offsets_of([len(bound.tree.nodes) for bound in bounds])[:-1]
    code = np.zeros(len(nodes[0]), np.int64)
    for bound, mine in zip(bounds, nodes, strict=True):
        _, code = np.unique(code * len(bound.tree.nodes) + mine, return_inverse=True)
    _, rows = np.unique(code, return_index=True)
    return code, np.stack([mine[rows] + start for mine, start in zip(nodes, before, strict=True)], axis=1)
