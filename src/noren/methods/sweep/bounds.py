"""What SWEEP must reach in every sensitive column, and the column's nodes, as its kernels read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.errors import RequirementNotMet
from noren.models.base import Model
from noren.ragged import offsets_of
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Tree, tree_of

if TYPE_CHECKING:
    from noren.methods.sweep.kernels import Combinations, Sensitive

DIVERSITY = ("tau-l-diversity", "frequency-l-diversity", "distinct-l-diversity")
SERVED = (*DIVERSITY, "k-anonymity")

MASK_WORDS = 16
"""Words of a bit mask over all base values; beyond that they are only counted."""


@dataclass(frozen=True)
class Bound:
    """The ceilings psi(1), psi(2), ... of one sensitive column, and how many base values a class must hold."""

    name: str
    tree: Tree
    psi: NDArray[np.float64]
    least: int
    weights: NDArray[np.float64]

    @property
    def alone(self) -> Sensitive:
        """The column by itself."""
        return arrays([self])

    def met_by(self, nodes: NDArray[np.int64]) -> bool:
        """Whether a class of records with these nodes meets the bound, as `raise_values` judges it."""
        from noren.methods.sweep.kernels.select import TOLERANCE

        mine = self.alone
        count = np.bincount(nodes, minlength=len(self.tree.nodes))
        induced = np.zeros(len(self.weights))
        for above, share in zip(mine.chain.T, mine.share.T, strict=True):
            induced += np.where(above >= 0, count[above] * share, 0.0)
        summed = np.cumsum(np.sort(induced)[::-1][: len(self.psi)])
        within = summed <= (self.psi[: len(summed)] + TOLERANCE) * len(nodes)
        return bool(not len(nodes) or (within.all() and (induced > 0).sum() >= self.least))


def bounds_of(table: Records, requirements: Sequence[Model]) -> list[Bound]:
    """One bound per sensitive column that a requirement names. Raises RequirementNotMet where it is out of reach."""
    out = []
    for name in table.sensitive:
        mine = [model for model in requirements if model.model in DIVERSITY and name in model.on]
        if not mine:
            continue
        facts = table.columns[name]
        values = facts.domain.values
        least = max(int(model.parameters()["l"]) for model in mine)
        if least > len(values):
            asked = f"l = {least} asks for more values than the {len(values)} that {name!r} has in this table."
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
    """psi(1), ..., psi(count) of (tau,l)-diversity, rising evenly unless given."""
    if given is not None:
        return np.concatenate([given, np.ones(count)])[:count]
    k = np.arange(1, count + 1)
    return np.minimum(1.0, tau + (1 - tau) * (k - 1) / (l - 1))


def arrays(bounds: Sequence[Bound]) -> Sensitive:
    """Several columns one after the other: base values and nodes are numbered through."""
    from noren.methods.sweep.kernels import Sensitive

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
        weight = np.add.reduceat(bound.weights[flat], start[:-1])
        members.append(flat + first[j])
        lengths.append(np.diff(start))
        for a in range(values[j]):
            above = list(dict.fromkeys(bound.tree.at[:, a].tolist()))
            chain[first[j] + a, : len(above)] = np.array(above) + before
            share[first[j] + a, : len(above)] = bound.weights[a] / weight[above]
        psi[j, : len(bound.psi)] = bound.psi
        before += len(nodes)
    member_start = offsets_of(np.concatenate(lengths))
    least = np.array([bound.least for bound in bounds], np.int64)
    return Sensitive(first, chain, share, np.concatenate(members).astype(np.int64), member_start, psi, least)


def combinations(bounds: Sequence[Bound], nodes: Sequence[NDArray]) -> tuple[NDArray[np.int64], Combinations]:
    """The combination of sensitive nodes of every record, and all combinations."""
    from noren.methods.sweep.kernels import Combinations

    code, combined = _combined(bounds, nodes)
    return code, Combinations(combined, *_bits(bounds, combined))


def _combined(bounds: Sequence[Bound], nodes: Sequence[NDArray]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The combination of every record, and (combinations, columns) the nodes, numbered through.

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


def _bits(bounds: Sequence[Bound], combined: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The base values under every combination as bit masks, and where each column's words begin.

    If they need too many words, only how many they are in each column, and no words.
    """
    parts, before = [], 0
    if sum(-(-len(bound.weights) // 64) for bound in bounds) > MASK_WORDS:
        sizes = np.concatenate([bound.tree.nodes.sizes for bound in bounds])
        return sizes[combined].astype(np.uint64), np.empty(0, np.int64)
    for j, bound in enumerate(bounds):
        inside = bound.tree.nodes.membership[combined[:, j] - before]
        wide = np.zeros((len(combined), -(-inside.shape[1] // 64) * 64), bool)
        wide[:, : inside.shape[1]] = inside
        parts.append(np.packbits(wide, axis=1, bitorder="little").view("<u8").astype(np.uint64))
        before += len(bound.tree.nodes)
    return np.concatenate(parts, axis=1), offsets_of([part.shape[1] for part in parts])
