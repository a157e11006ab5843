"""(t1, ..., tq)-closeness: a set changes no belief by more than t (paper 000, definitions 15, 16)."""

from __future__ import annotations

from collections.abc import Sequence
from math import atanh, inf
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.designs.decoys import DecoyDesign
from noren.errors import ModelDoesNotApply
from noren.models.base import Check, Evidence, Need, Overall, Probes, Promise, SearchRule
from noren.models.class_check import ClassModel, Judged
from noren.models.histograms import Histograms
from noren.models.set_check import CodesCheck
from noren.models.verdict import Basis, Verdict
from noren.schema.hierarchy import Hierarchy
from noren.statements import CellBatch, CodeCells, SetCells, Statement

CHUNK = 1 << 14
TOLERANCE = 1e-9
NEIGHBOURS = 400
CELLS = 1 << 21
"""Entries of a dense table of classes and values that is made at once."""


class TCloseness(ClassModel):
    """The belief of somebody who knows the overall distribution, and sees a published set or a class of records, stays
    within t of it.

    The distance is the earth mover's distance: all values equally far, by rank, or by the height of the lowest common
    ancestor. A set whose likelihood ratio is at most ((1 + t) / (1 - t))^2 keeps it for every distribution; beyond, it
    is judged for the table's own. With sets the bound is about this column's own set; other columns may tell more. A
    class is compared with the whole release. A small distance still permits a rare value to become many times as
    likely.
    """

    model: Literal["t-closeness"] = "t-closeness"
    probing: ClassVar[Probes] = tuple({"t": 0.5, "distance": one} for one in ("equal", "ordered", "tree"))
    parameter: ClassVar[str] = "t"
    higher_is_safer: ClassVar[bool] = False
    relative: ClassVar[bool] = True
    t: float = Field(gt=0, lt=1, description="Largest permitted distance between belief and overall distribution.")
    distance: Literal["equal", "ordered", "tree"] = Field(
        default="equal",
        description="Distance between values: all equal, by rank, or by hierarchy (the last two protect less).",
    )

    @property
    def least_set_size(self) -> int:
        return 1

    @property
    def identity(self) -> str:
        return f"{self.model}/{self.distance}"

    @property
    def holds_of_parts(self) -> bool:
        return self.distance == "equal"

    @property
    def needs(self) -> frozenset[Need]:
        """Return the needs; on sets also the prior, which classes contain themselves."""
        more: dict[str, Need] = {"ordered": "order", "tree": "tree"}
        return frozenset({"prior", more[self.distance]} if self.distance in more else {"prior"})

    @property
    def epsilon_each(self) -> float:
        """Return 4 artanh(t): under a likelihood ratio of ((1 + t) / (1 - t))^2 no prior changes by more than t. With
        distances of at most 1 the earth mover's distance is smaller, so this also holds for orders and trees."""
        return 4 * atanh(self.t)

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule(f"close_{self.distance}", self.t)

    def judge_classes(self, statement: Statement, evidence: Evidence) -> Check:
        check = super().judge_classes(statement, evidence)
        if self.distance == "tree":
            tree_over(statement)
        return check

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        if not isinstance(statement.design, DecoyDesign):
            raise self.refuses(statement)
        overall = evidence.overall.get(statement.name)
        if overall is None and not self.proven_by(statement.design.rho):
            raise ModelDoesNotApply(
                f"t-closeness of {statement.name!r} needs the overall distribution or an estimate of it.",
                hint="Give the original, or verify the release as a recipient.",
            )
        return ClosenessCheck(self, statement, statement.design, overall)

    def judge_changed(self, statement: Statement, evidence: Evidence) -> Check:
        return ChangedCheck(self, statement, evidence.overall.get(statement.name))

    def proven_by(self, rho: float) -> bool:
        """Return whether a likelihood ratio of rho keeps every distribution within t."""
        return largest_move(rho) <= self.t + TOLERANCE

    def levels(self, statement: Statement) -> list[NDArray[np.int64]]:
        """Return the groups of values at every height over which a tree distance sums."""
        if self.distance != "tree":
            return []
        tree = tree_over(statement)
        return [tree.groups(height)[1] for height in range(tree.height)]

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        if self.distance == "ordered":
            moved = ordered_distances(part, overall)
        elif self.distance == "tree":
            levels = self.levels(column)
            moved = sum((equal_distances(part, overall, level) for level in levels), np.zeros(len(part))) / len(levels)
        else:
            moved = equal_distances(part, overall, np.arange(column.d))
        return moved, moved <= self.t + TOLERANCE

    def says(self, achieved: float, smallest: int) -> str:
        return f"no class is further than {achieved:.4g} from the whole release ({self.distance} distance)"

    def promise(self, names: str, sets: bool) -> Promise:
        distance = {
            "equal": "",
            "ordered": " (moving belief to a neighbouring value counts little)",
            "tree": " (moving belief to a related value counts less)",
        }[self.distance]
        seen = "a person's published set" if sets else "the records that match a person"
        return Promise(
            f"Whoever knows the overall distribution of {names} and sees {seen} changes this belief by at most "
            f"{self.t:.4g} of 1{distance}.",
            "The bound is for one column; several columns together may disclose more. A rare value may still "
            "become many times as likely as before.",
        )


def largest_move(rho: float) -> float:
    """Return the largest change of any belief, in total variation, under likelihood ratios of at most rho."""
    return 1.0 if rho == inf else (rho**0.5 - 1) / (rho**0.5 + 1)


def tree_over(column: Statement) -> Hierarchy:
    """Return the hierarchy over the column's values."""
    tree = column.column.tree
    if tree is None or len(tree.leaves) != column.d:
        raise ModelDoesNotApply(
            f"t-closeness of {column.name!r} by tree distance needs a hierarchy of its values.",
            hint='Give the column a hierarchy, or set distance = "equal".',
        )
    return tree


def equal_distances(part: Histograms, overall: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return half the sum of |P - Q| over groups of values, for every class. Groups that a class lacks add their Q."""
    merged, shares = part.merge_values(groups), np.bincount(groups, overall)
    q = shares[merged.value]
    return np.asarray((merged.total(np.abs(merged.share - q) - q) + shares.sum()) / 2)


def ordered_distances(part: Histograms, overall: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of |cumulative P - cumulative Q| over all values but the last, divided by their number."""
    d, out = len(overall), np.zeros(len(part))
    ahead = np.cumsum(overall)
    step = max(1, CELLS // d)
    for begin in range(0, len(part) if d > 1 else 0, step):
        end = min(begin + step, len(part))
        entries = slice(part.starts[begin], part.starts[end])
        shares = np.zeros((end - begin, d))
        shares[part.owner[entries] - begin, part.value[entries]] = part.share[entries]
        difference = np.abs(np.cumsum(shares, axis=1) - ahead)
        out[begin:end] = difference[:, :-1].sum(axis=1) / (d - 1)
    return out


class ClosenessCheck(Check):
    """Checks closeness of sets: by the proof from the published design, otherwise by Bayes' theorem and the earth
    mover's distance for every set."""

    def __init__(self, model: TCloseness, column: Statement, design: DecoyDesign, overall: Overall | None) -> None:
        super().__init__(model, column.name)
        self.statement = column
        self.design = design
        self.overall = None if model.proven_by(design.rho) else overall
        """The distribution that it is judged for; None where it holds for every one."""
        self.levels = [] if self.overall is None else model.levels(column)
        self.worst = 0.0
        self.wrong_size = 0
        self.proven = False
        """Whether an excess over t is beyond the error of an estimated distribution."""

    def observe(self, batch: CellBatch) -> None:
        cells: SetCells = self.statement.check_cells(batch[self.column])
        if not len(cells):
            return
        self.records += len(cells)
        sets, times = cells.weigh_sets()
        self.wrong_size += int(times[sets.sizes() != self.design.eta].sum())
        if self.wrong_size or self.overall is None:
            return
        distinct, times = cells.count_sets()
        for start in range(0, len(distinct), CHUNK):
            part = distinct.take(slice(start, start + CHUNK))
            distances = self._distances(part, self.overall.shares)
            self.worst = max(self.worst, float(distances.max()))
            self.breaches += int(times[start : start + CHUNK][distances > self.model.t + TOLERANCE].sum())
            if self.overall.std_error is not None and distances.max() > self.model.t and not self.proven:
                self.proven = self._surely_exceeds(part.take(slice(k := int(distances.argmax()), k + 1)))

    def merge(self, other: Self) -> None:
        super().merge(other)
        self.wrong_size += other.wrong_size
        self.worst = max(self.worst, other.worst)
        self.proven = self.proven or other.proven

    def _surely_exceeds(self, cell: SetCells) -> bool:
        """Return whether one set exceeds t under every distribution near the estimate.

        The neighbours are spread twice as wide as the estimate's own error. A slope would not do: at its largest, the
        distance is flat in the distribution and still only an estimate.
        """
        assert self.overall is not None
        assert self.overall.std_error is not None
        shares, errors = self.overall.shares, self.overall.std_error
        noise = np.random.default_rng(0).standard_normal((NEIGHBOURS, len(shares)))
        nearby = np.maximum(shares + 2 * errors * noise, 0)
        nearby = nearby[nearby.sum(axis=1) > 0]
        return all(self._distances(cell, one / one.sum())[0] > self.model.t for one in nearby)

    def _distances(self, cells: SetCells, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return belief_distances(cells, self.design, shares, self.model.distance, self.levels)

    def verdict(self) -> Verdict:
        t = self.model.t
        basis: Basis = "the published design" if self.overall is None else self.overall.basis
        achieved = largest_move(self.design.rho) if self.overall is None else self.worst
        holds: bool | None = self.records > 0 and not self.wrong_size and not self.breaches
        statement = f"no set moves the overall distribution by more than {achieved:.4g}"
        if self.overall is None:
            statement = f"no set moves any distribution by more than {achieved:.4g} (rho = {self.design.rho:.4g})"
        elif self.overall.std_error is not None and self.breaches and not self.proven:
            holds = None
            statement = f"estimated {achieved:.4g}, within the error of the estimate of {t:g}; the original settles it"
        if self.wrong_size:
            statement = f"{self.wrong_size} sets do not have the {self.design.eta} values of the design"
        return self.conclude(achieved, holds, basis, self.records, self.breaches + self.wrong_size, statement)


class ChangedCheck(CodesCheck):
    """Applies Bayes' theorem to every published value, with the likelihood of the statement."""

    def __init__(self, model: TCloseness, column: Statement, overall: Overall | None) -> None:
        super().__init__(model, column)
        self.overall = overall

    def verdict(self) -> Verdict:
        t, d = self.model.t, self.statement.d
        likely = self.statement.likelihood(CodeCells(d, np.arange(d)))
        assert likely is not None
        rows = likely.dense(d)
        rho = float((rows.max(axis=1) / rows.min(axis=1)).max()) if rows.min() > 0 else inf
        proof = largest_move(rho)
        records, free = int(self.seen.sum()), self.model.proven_by(rho)
        moved = np.full(d, proof)
        if self.overall is not None and not free:
            shares = self.overall.shares
            joint = rows * shares
            belief = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
            moved = moved_beliefs(belief, shares, self.model.distance, self.model.levels(self.statement))
        breaches = int(self.seen[moved > t + TOLERANCE].sum())
        known = self.overall is not None and self.overall.std_error is None
        holds: bool | None = records > 0 and breaches == 0
        basis: Basis = "the published design" if self.overall is None else self.overall.basis
        achieved = float(moved[self.seen > 0].max(initial=0.0))
        statement = f"no published value moves the overall distribution by more than {achieved:.4g}"
        if free:
            basis, breaches = "the published design", 0
            statement = f"no value moves any distribution by more than {achieved:.4g} (rho = {rho:.4g})"
        elif not known and breaches:
            holds = None
            statement = f"estimated {achieved:.4g}; the published design does not prove {t:g}, the original settles it"
        return self.conclude(achieved, holds, basis, records, breaches, statement)


def moved_beliefs(
    belief: NDArray[np.float64],
    shares: NDArray[np.float64],
    distance: str,
    levels: Sequence[NDArray[np.int64]] = (),
) -> NDArray[np.float64]:
    """Return the distance of every row of beliefs from the overall distribution; `levels` are those of a tree."""
    difference = belief - shares[None, :]
    if distance == "tree":
        moved = np.zeros(len(belief))
        for groups in levels:
            member = groups[:, None] == np.arange(int(groups.max()) + 1)[None, :]
            moved += np.abs(difference @ member).sum(axis=1) / 2
        return np.asarray(moved / len(levels))
    if distance == "equal":
        return np.asarray(np.abs(difference).sum(axis=1) / 2)
    if len(shares) == 1:
        return np.zeros(len(belief))
    return np.asarray(np.abs(np.cumsum(difference, axis=1)[:, :-1]).sum(axis=1) / (len(shares) - 1))


def belief_distances(
    cells: SetCells,
    design: DecoyDesign,
    shares: NDArray[np.float64],
    distance: str,
    levels: Sequence[NDArray[np.int64]] = (),
) -> NDArray[np.float64]:
    """Return D[A, B] of every set: B by Bayes' theorem from the design's likelihood and the prior A (equation 12)."""
    n, d = len(cells), cells.d
    inside = np.zeros((n, d), bool)
    np.put_along_axis(inside, cells.codes(design.eta).astype(np.int64), True, axis=1)
    joint = np.where(inside, design.kappa_in, design.kappa_out) * shares[None, :]
    total = joint.sum(axis=1, keepdims=True)
    belief = np.divide(joint, total, out=np.tile(shares, (n, 1)), where=total > 0)
    return moved_beliefs(belief, shares, distance, levels)
