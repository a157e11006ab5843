"""What an adversary with a knowledge table believes about each of many people, and figures over all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.engines.finding import Matches
from noren.ragged import in_order, offsets_of, owners
from noren.schema.knowledge import Knowledge
from noren.statements import TermCells

if TYPE_CHECKING:
    import polars as pl

CERTAIN = 0.999
TIE = 1e-12


@dataclass(frozen=True)
class Inferred:
    """One entry per person, or per published row."""

    groups: NDArray[np.int64]
    """How many groups could hold the person; 0 leaves the adversary with the prior."""
    candidates: NDArray[np.int64]
    """How many records could be the person's."""
    linked_records: NDArray[np.int64]
    """How many of these are linked to a label at all."""
    labels: NDArray[np.int64]
    """How many labels are believed in."""
    belief: NDArray[np.float64]
    """The largest belief in one label."""
    top: NDArray[np.int64]
    """The first label that is believed so; -1 for none."""
    ties: NDArray[np.int64]
    """How many labels are believed so."""
    belief_linked: NDArray[np.float64]
    """The largest belief where records that are linked to nothing are left out instead of counted as doubt."""
    rise: NDArray[np.float64]
    """The largest difference between a belief and its prior (equation 1)."""
    truth_belief: NDArray[np.float64] | None = None
    truth_prior: NDArray[np.float64] | None = None
    right: NDArray[np.float64] | None = None
    """The chance that the best guess is right: 1 over the ties if the truth is among them."""

    def frame(self, rows: NDArray[np.int64], adversary: Adversary) -> pl.DataFrame:
        """One line per person."""
        import polars as pl

        names = pl.Series([*adversary.knowledge.labels, None], dtype=pl.String)
        top = np.where(self.top < 0, len(adversary.knowledge.labels), self.top)
        columns: dict[str, pl.Series] = {"record": pl.Series(rows)}
        for one in fields(self):
            found = getattr(self, one.name)
            if one.name == "top":
                columns["linked"] = pl.Series(self.labels > 0)
                columns["label"] = names.gather(top)
            elif found is not None:
                columns[one.name] = pl.Series(found).fill_nan(None) if found.dtype.kind == "f" else pl.Series(found)
        return pl.DataFrame(columns)

    def summary(self, adversary: Adversary) -> dict[str, float]:
        """Figures over all people."""
        n = max(1, len(self.belief))
        doubt = 1 - self.linked_records / np.maximum(1, self.candidates)
        out = {
            "mean_belief": float(self.belief.sum() / n),
            "max_belief": float(self.belief.max(initial=0.0)),
            "certain": float((self.belief >= CERTAIN).sum() / n),
            "above_half": float((self.belief > 0.5 + TIE).sum() / n),
            "mean_rise": float(self.rise.sum() / n),
            "max_rise": float(self.rise.max(initial=-1.0)),
            "mean_labels": float(self.labels.sum() / n),
            "linked": float((self.labels > 0).sum() / n),
            "mean_unlinked_records": float(doubt[self.groups > 0].mean()) if (self.groups > 0).any() else 0.0,
            "mean_belief_linked": float(self.belief_linked.sum() / n),
            "max_belief_linked": float(self.belief_linked.max(initial=0.0)),
            "without_group": int((self.groups == 0).sum()),
        }
        if self.right is not None and self.truth_belief is not None:
            out |= {"right": float(np.nanmean(self.right)), "mean_truth_belief": float(np.nanmean(self.truth_belief))}
        return out


@dataclass(frozen=True)
class Adversary:
    """A knowledge table and what is believed about anybody before a release."""

    knowledge: Knowledge
    alpha: NDArray[np.float64]
    prior: bool = False
    """Whether a record that is linked to nothing tells the prior; otherwise it tells nothing."""

    @cached_property
    def _best(self) -> NDArray[np.bool_]:
        """The labels that are most believed in before."""
        return np.asarray((self.alpha >= self.alpha.max() - TIE) & (self.alpha > 0))

    def _guessed(self, truth: NDArray[np.int64]) -> NDArray[np.float64]:
        """The chance of guessing right by the prior alone; not a number where the truth is not known."""
        chance = self._best / max(1, int(self._best.sum()))
        return np.where(truth < 0, np.nan, chance[truth])

    def baseline(self, truth: NDArray[np.int64] | None) -> dict[str, float]:
        """The figures of `Inferred.summary` before anything is published."""
        peak = float(self.alpha.max())
        out = {
            "mean_belief": peak,
            "max_belief": peak,
            "certain": float(peak >= CERTAIN),
            "above_half": float(peak > 0.5 + TIE),
            "mean_rise": 0.0,
            "max_rise": 0.0,
            "mean_labels": float((self.alpha > 0).sum()),
        }
        if truth is not None:
            known = truth[truth >= 0]
            out |= {"right": float(np.nanmean(self._guessed(truth)))}
            out |= {"mean_truth_belief": float(self.alpha[known].mean())}
        return out

    def in_groups(self, cells: TermCells, order: NDArray, bounds: NDArray, truth: NDArray[np.int64] | None) -> Inferred:
        """Everybody's own group: the records of the table are the people."""
        groups = len(bounds) - 1
        found = Matches(order, owners(bounds), np.ones(groups, np.int64), order, bounds)
        return self.in_table(cells, [found], len(cells), truth)

    def in_table(
        self, cells: TermCells, found: Iterable[Matches], people: int, truth: NDArray[np.int64] | None
    ) -> Inferred:
        """What the records that could be each person's tell; where there are none, the prior."""
        out = self._unmoved(people, truth)
        for part in found:
            self._ask(cells, part, truth, out)
        return out

    def _unmoved(self, people: int, truth: NDArray[np.int64] | None) -> Inferred:
        """Everybody as before the release."""
        nothing = np.zeros(people, np.int64)
        peak, ties = float(self.alpha.max()), int(self._best.sum())
        top = int(np.argmax(self._best)) if ties else -1
        out = Inferred(
            groups=nothing,
            candidates=nothing.copy(),
            linked_records=nothing.copy(),
            labels=np.full(people, int((self.alpha > 0).sum())),
            belief=np.full(people, peak),
            top=np.full(people, top),
            ties=np.full(people, ties),
            belief_linked=np.full(people, peak),
            rise=np.zeros(people),
        )
        if truth is None:
            return out
        before = np.where(truth < 0, np.nan, self.alpha[truth])
        known = {"truth_belief": before, "truth_prior": before.copy(), "right": self._guessed(truth)}
        return Inferred(**{one.name: getattr(out, one.name) for one in fields(out)[:9]}, **known)

    def _ask(self, cells: TermCells, part: Matches, truth: NDArray[np.int64] | None, out: Inferred) -> None:
        from noren.audit import kernels as kernel

        sets = len(part.bounds) - 1
        by_set = in_order(part.of)
        people, of = part.people[by_set], part.of[by_set]
        if truth is None:
            asked, asked_bounds = np.empty(0, np.int64), np.zeros(sets + 1, np.int64)
        else:
            asked = truth[people]
            asked_bounds = offsets_of(np.bincount(of, minlength=sets))
        knowledge = self.knowledge
        told, answers = kernel.attack_groups(
            part.order, part.bounds, cells.offsets, cells.data, *knowledge.links,
            np.asarray(self.alpha, np.float64), self.prior, asked_bounds, asked,
        )  # fmt: skip
        out.groups[people] = part.groups[of]
        out.candidates[people] = np.diff(part.bounds)[of]
        places = {
            "linked_records": kernel.LINKED,
            "labels": kernel.LABELS,
            "belief": kernel.PEAK,
            "top": kernel.TOP,
            "ties": kernel.TIES,
            "belief_linked": kernel.PEAK_LINKED,
            "rise": kernel.RISE,
        }
        for name, place in places.items():
            getattr(out, name)[people] = told[of, place]
        if truth is not None and out.truth_belief is not None and out.right is not None:
            out.truth_belief[people] = answers[:, 0]
            # where nothing is linked, the best guess is that of before
            guess = np.where(told[of, kernel.PEAK] > 0, answers[:, 1], self._guessed(asked))
            out.right[people] = guess
