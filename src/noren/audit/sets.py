"""Published decoy sets as evidence: their likelihood under every true value, and the resulting beliefs.

The likelihood comes from the published design alone. Sets of different columns are drawn independently given the
truth, so their likelihoods multiply; what ties them together is the joint distribution of the true values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noren.designs import draw_columns
from noren.release.published import Published
from noren.secret import Keystream, Secret
from noren.statements import Cells, Design, Statement

CELLS_AT_ONCE = 1 << 22
AT_ONCE = 1 << 16
"""Sets that are counted at once."""
TIE = 1e-9
CERTAIN = 0.999
SURE = 0.9


@dataclass(frozen=True)
class Sets:
    """The sets of one decoy column, row by row."""

    statement: Statement
    cells: Cells

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def name(self) -> str:
        return self.statement.name

    @property
    def labels(self) -> tuple[str, ...]:
        return self.statement.domain.values

    @property
    def design(self) -> Design:
        design = self.statement.design
        assert design is not None
        return design

    @cached_property
    def codes(self) -> NDArray:
        """Return the members of every set in ascending order, as a (rows, eta) array."""
        return self.statement.members(self.cells)

    @cached_property
    def pairs(self) -> NDArray[np.float64]:
        """Count the sets that contain both of two values; the diagonal counts those that contain one."""
        distinct, number = self.cells.distinct()
        counts = np.bincount(number, minlength=len(distinct)).astype(np.float64)
        codes, d = Sets(self.statement, distinct).codes.astype(np.int64), self.design.d
        out = np.zeros((d, d))
        for start in range(0, len(codes), AT_ONCE):
            part = np.zeros((len(codes[start : start + AT_ONCE]), d))
            np.put_along_axis(part, codes[start : start + AT_ONCE], 1.0, axis=1)
            out += part.T @ (part * counts[start : start + AT_ONCE, None])
        return out

    def take(self, rows: NDArray) -> Sets:
        return Sets(self.statement, self.cells.take(rows))

    def replaced(self, rows: NDArray, others: Sets, places: NDArray) -> Sets:
        """Return a copy in which these rows have the sets at `places` of `others`."""
        order = np.arange(len(self))
        order[rows] = len(self) + places
        return Sets(self.statement, type(self.cells).concat([self.cells, others.cells]).take(order))

    def likelihood(self, rows: slice | NDArray) -> NDArray[np.float64]:
        """Return P(set | value) as a (rows, values) array, scaled so that the largest entry of a row is 1."""
        found = self.statement.likelihood(self.cells.take(rows))
        assert found is not None
        out = found.dense(self.statement.d)
        return np.asarray(out / np.maximum(out.max(axis=1, keepdims=True), 1e-300))


def drawn_statements(release: Published) -> list[Statement]:
    """Return the columns of sets in which each row is one person's."""
    return [one for one in release.statements if one.design is not None and one.rows_per_record == 1]


def published_sets(release: Published) -> dict[str, Sets]:
    """The sets of every decoy column of a release that has one row per person."""
    return {one.name: Sets(one, release.cells([one.name])[one.name]) for one in drawn_statements(release)}


def drawn_anew(sets: Mapping[str, Sets], truth: Mapping[str, NDArray], salt: str = "") -> dict[str, Sets]:
    """Draw sets for these true codes by the published designs, reproducibly.

    They are never published, so a stream that anybody can repeat is right here.
    """
    stream = Keystream(Secret(bytes(32)), salt=f"audit/{salt}".encode())
    out = {}
    for name, one in sets.items():
        cells = draw_columns({name: one.design}, {name: truth[name].astype(np.int64)}, stream)[name]
        out[name] = Sets(one.statement, cells)
    return out


def estimated(release: Published, names: Sequence[str]) -> NDArray[np.float64]:
    """Estimate the joint distribution of some columns as a recipient would, one dimension per column."""
    from noren.estimates.counts.axes import Axis
    from noren.estimates.counts.tabulate import tabulate

    cells = release.cells(names)
    counts = tabulate([Axis(name, release.column(name), cells[name]) for name in names]).counts
    counts = np.maximum(counts, 0.0)
    return np.asarray(counts / counts.sum() if counts.sum() > 0 else np.full(counts.shape, 1 / counts.size))


def tabulated(codes: Sequence[NDArray], shape: Sequence[int]) -> NDArray[np.float64]:
    """Compute the joint distribution from the original."""
    flat = np.ravel_multi_index([part.astype(np.int64) for part in codes], tuple(shape))
    counts = np.bincount(flat, minlength=int(np.prod(shape))).astype(float)
    return np.asarray(counts.reshape(tuple(shape)) / counts.sum())


@dataclass(frozen=True)
class Believed:
    """The beliefs about each record, one entry per record."""

    top: NDArray[np.int64]
    """The likeliest value, the first of equals."""
    belief: NDArray[np.float64]
    before: NDArray[np.float64]
    """The largest belief before the sets were seen."""
    left: NDArray[np.int64]
    """Values that stay possible."""
    moved: NDArray[np.float64]
    """Total variation between the beliefs before and after."""
    truth_belief: NDArray[np.float64] | None = None
    truth_before: NDArray[np.float64] | None = None
    right: NDArray[np.float64] | None = None
    """The chance that the best guess is right: 1 over the ties if the truth is among them."""
    right_before: NDArray[np.float64] | None = None

    def columns(self) -> dict[str, NDArray]:
        """Return the beliefs by name; `value` is a code."""
        found = {"value": self.top} | {one.name: getattr(self, one.name) for one in fields(self)[1:]}
        return {name: part for name, part in found.items() if part is not None}

    def summary(self, l: int) -> dict[str, float]:  # noqa: E741  the papers' letter
        """Return figures over all records; l is the size of a set."""
        out = {
            "mean_belief": float(self.belief.mean()),
            "max_belief": float(self.belief.max()),
            "mean_before": float(self.before.mean()),
            "certain": float((self.belief >= CERTAIN).mean()),
            "sure": float((self.belief > SURE + TIE).mean()),
            "above_half": float((self.belief > 0.5 + TIE).mean()),
            "above_1_l": float((self.belief > 1 / l + TIE).mean()),
            "mean_moved": float(self.moved.mean()),
            "max_moved": float(self.moved.max()),
        }
        if self.right is not None and self.truth_belief is not None:
            out |= {"right": float(self.right.mean()), "mean_truth_belief": float(self.truth_belief.mean())}
        if self.right_before is not None and self.truth_before is not None:
            out["right_before"] = float(self.right_before.mean())
            out["mean_truth_before"] = float(self.truth_before.mean())
        return out


ByRow = Callable[[slice], NDArray[np.float64]]
"""The likelihoods of a run of records: (rows, values)."""


def believe(
    records: int, prior: NDArray[np.float64], evidence: Sequence[ByRow] = (), truth: NDArray | None = None
) -> Believed:
    """Apply Bayes' rule to every record: the prior of one column times the likelihoods of all evidence.

    Evidence that is impossible under the prior leaves the adversary with its likelihood alone: the prior was wrong.
    """
    top, left = np.zeros(records, np.int64), np.zeros(records, np.int64)
    belief, moved, truth_belief, right = (np.zeros(records) for _ in range(4))
    usual = _best(prior[None])[0]
    for rows in portions(records, len(prior)):
        told = np.ones((rows.stop - rows.start, len(prior)))
        for one in evidence:
            told *= one(rows)
        after = prior * told
        total = after.sum(axis=1, keepdims=True)
        after = np.where(total > 0, after, told)
        after /= np.maximum(after.sum(axis=1, keepdims=True), 1e-300)
        best = _best(after)
        top[rows], left[rows] = best.argmax(axis=1), (after > 0).sum(axis=1)
        belief[rows], moved[rows] = after.max(axis=1), np.abs(after - prior).sum(axis=1) / 2
        if truth is not None:
            mine = truth[rows].astype(np.int64)[:, None]
            truth_belief[rows] = np.take_along_axis(after, mine, axis=1)[:, 0]
            right[rows] = np.take_along_axis(best, mine, axis=1)[:, 0] / np.maximum(1, best.sum(axis=1))
    known = Believed(top, belief, np.full(records, prior.max()), left, moved)
    if truth is None:
        return known
    return replace(
        known,
        truth_belief=truth_belief,
        truth_before=prior[truth],
        right=right,
        right_before=usual[truth] / usual.sum(),
    )


def _best(of: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the likeliest value of every row, with ties."""
    peak = of.max(axis=1, keepdims=True)
    return np.asarray(of >= peak * (1 - TIE))


def portions(records: int, d: int) -> Iterator[slice]:
    """Split rows into blocks whose beliefs fit into memory."""
    step = max(1, CELLS_AT_ONCE // max(1, d))
    for start in range(0, records, step):
        yield slice(start, min(records, start + step))
