"""Published decoy sets as evidence: how likely each set is under every true value, and what is then believed.

The likelihood comes from the published design alone. Sets of different columns are drawn independently given the
truth, so their likelihoods multiply; what ties them together is the joint distribution of the true values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.cells import SetCells
from noren.designs.any import Design, draw_columns
from noren.designs.decoys import DecoyDesign
from noren.release.answers import answer
from noren.release.release import Release
from noren.secret import Keystream, Secret

if TYPE_CHECKING:
    import polars as pl

CELLS_AT_ONCE = 1 << 22
TIE = 1e-9
CERTAIN = 0.999


@dataclass(frozen=True)
class Sets:
    """The sets of one decoy column: rows of codes in ascending order."""

    name: str
    design: Design
    labels: tuple[str, ...]
    codes: NDArray

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: NDArray) -> Sets:
        return Sets(self.name, self.design, self.labels, self.codes[rows])

    def likelihood(self, rows: slice | NDArray) -> NDArray[np.float64]:
        """(rows, values): P(set | value) up to a factor of each row."""
        return likelihood(self.design, self.codes[rows])


def likelihood(design: Design, codes: NDArray) -> NDArray[np.float64]:
    """P(set | value) for every value of the domain, up to a factor of each row."""
    places = codes.astype(np.int64)
    if isinstance(design, DecoyDesign):
        out = np.full((len(codes), design.d), 1 / design.rho)
        np.put_along_axis(out, places, 1.0, axis=1)
        return out
    out = np.zeros((len(codes), design.d))
    np.put_along_axis(out, places, design.set_weights(codes), axis=1)
    return out


def published_sets(release: Release) -> dict[str, Sets]:
    """The sets of every decoy column of a release that has one row per person."""
    out = {}
    for entry in release.manifest.columns:
        if entry.form == "set" and entry.design is not None:
            cells = release.cells([entry.name])[entry.name]
            assert isinstance(cells, SetCells)
            out[entry.name] = Sets(entry.name, entry.design, entry.values or (), cells.codes(entry.design.eta))
    return out


def drawn_anew(sets: Mapping[str, Sets], truth: Mapping[str, NDArray], salt: str = "") -> dict[str, Sets]:
    """Sets for these true codes by the published designs, the same in every audit.

    They are never published, so a stream that anybody can repeat is right here.
    """
    stream = Keystream(Secret(bytes(32)), salt=f"audit/{salt}".encode())
    out = {}
    for name, one in sets.items():
        cells = draw_columns({name: one.design}, {name: truth[name].astype(np.int64)}, stream)[name]
        out[name] = Sets(name, one.design, one.labels, cells.codes(one.design.eta))
    return out


def estimated(release: Release, names: Sequence[str]) -> NDArray[np.float64]:
    """The distribution over some columns together as any recipient estimates it, one dimension per column."""
    counts = np.maximum(answer(release, names, {}, None, 0.95, False, None).counts, 0.0)
    return np.asarray(counts / max(float(counts.sum()), 1e-300))


def tabulated(codes: Sequence[NDArray], shape: Sequence[int]) -> NDArray[np.float64]:
    """The same from the original."""
    flat = np.ravel_multi_index([part.astype(np.int64) for part in codes], tuple(shape))
    counts = np.bincount(flat, minlength=int(np.prod(shape))).astype(float)
    return np.asarray(counts.reshape(tuple(shape)) / counts.sum())


@dataclass(frozen=True)
class Beliefs:
    """What is believed about each record, one entry each."""

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

    def frame(self, record: NDArray, labels: Sequence[str]) -> pl.DataFrame:
        import polars as pl

        columns = {"record": pl.Series(record), "value": pl.Series(labels, dtype=pl.String).gather(self.top)}
        for name in ("belief", "before", "left", "moved", "truth_belief", "truth_before", "right", "right_before"):
            found = getattr(self, name)
            if found is not None:
                columns[name] = pl.Series(found)
        return pl.DataFrame(columns)

    def summary(self, l: int) -> dict[str, float]:  # noqa: E741  the papers' letter
        """Figures over all records; l is the size of a set."""
        out = {
            "mean_belief": float(self.belief.mean()),
            "max_belief": float(self.belief.max()),
            "mean_before": float(self.before.mean()),
            "certain": float((self.belief >= CERTAIN).mean()),
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


Rows = Callable[[slice], NDArray[np.float64]]
"""Beliefs or likelihoods of a run of records: (rows, values)."""


def believe(records: int, d: int, prior: Rows, evidence: Rows, truth: NDArray | None = None) -> Beliefs:
    """Bayes' rule for every record: prior times likelihood, over the values of one column.

    A set that is impossible under the prior leaves the adversary with its likelihood alone: the prior was wrong.
    """
    top = np.zeros(records, np.int64)
    left = np.zeros(records, np.int64)
    named = ("belief", "before", "moved", "truth_belief", "truth_before", "right", "right_before")
    kept = named if truth is not None else named[:3]
    out = {name: np.zeros(records) for name in kept}
    for rows in portions(records, d):
        before, told = prior(rows), evidence(rows)
        after = before * told
        total = after.sum(axis=1, keepdims=True)
        lost = total[:, 0] <= 0
        if lost.any():
            after[lost] = told[lost]
            total = after.sum(axis=1, keepdims=True)
        after = after / np.maximum(total, 1e-300)
        best, guess = _best(after), _best(before)
        top[rows] = best.argmax(axis=1)
        left[rows] = (after > 0).sum(axis=1)
        out["belief"][rows], out["before"][rows] = after.max(axis=1), before.max(axis=1)
        out["moved"][rows] = np.abs(after - before).sum(axis=1) / 2
        if truth is not None:
            mine = truth[rows].astype(np.int64)[:, None]
            for name, of in (("truth_belief", after), ("truth_before", before)):
                out[name][rows] = np.take_along_axis(of, mine, axis=1)[:, 0]
            for name, these in (("right", best), ("right_before", guess)):
                hit = np.take_along_axis(these, mine, axis=1)[:, 0]
                out[name][rows] = hit / np.maximum(1, these.sum(axis=1))
    return Beliefs(top, left=left, **out)


def _best(of: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The likeliest values of every row."""
    peak = of.max(axis=1, keepdims=True)
    return np.asarray(of >= peak * (1 - TIE))


def portions(records: int, d: int) -> Iterator[slice]:
    """Runs of rows whose beliefs fit into memory together."""
    step = max(1, CELLS_AT_ONCE // max(1, d))
    for start in range(0, records, step):
        yield slice(start, min(records, start + step))


def constant(prior: NDArray[np.float64]) -> Rows:
    """The same beliefs about everybody."""
    return lambda rows: np.broadcast_to(prior, (rows.stop - rows.start, len(prior))).copy()
