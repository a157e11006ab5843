"""The similarity attack: similar values in a class disclose what they have in common.

Stomach ulcer, gastritis and stomach cancer are three values and one secret. The adversary guesses a node of the
column's hierarchy instead of a value, level by level, or for numbers and ordered values an interval: how much of the
class lies within some distance. Certain at a low level is nearly as bad as certain of the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from noren.audit.class_attack import CERTAIN, TIE, ClassAttack, Columns, belief_in, best_guess
from noren.audit.sample import Times, mean
from noren.audit.targets import Target, attackable
from noren.models.histograms import Histograms
from noren.release.release import Release
from noren.schema.domain import MISSING, OTHER, Domain
from noren.statements import Statement

MEMORY = "similarity"
NO_MEANING = "have neither a hierarchy with inner nodes nor an order"
FAR = 2.0
"""Where the special categories lie on a line of length 1: near to nothing."""


@dataclass(frozen=True)
class Meanings:
    """The levels at which a value may be guessed, from fine to coarse; level 0 are the values themselves."""

    titles: tuple[str, ...]
    groups: tuple[NDArray[np.int64], ...] = ()
    """For every level of a hierarchy the node of each value."""
    labels: tuple[Sequence[str], ...] = ()
    places: NDArray[np.float64] | None = None
    """Where the values lie on a line of length 1, for intervals."""
    widths: tuple[float, ...] = ()


class Similarity(ClassAttack):
    """Find a person's class and guess what its sensitive values have in common."""

    knows: ClassVar[str] = "a person"
    adversary: ClassVar[str] = (
        "knows that a person is in the table, the person's exact quasi-identifiers, and what the sensitive values "
        "mean (the column's hierarchy, or the distance of numbers); for decoy sets, also which row belongs to the "
        "person"
    )
    success: ClassVar[str] = (
        "the largest belief in one node of the hierarchy (or in one interval) at the chosen level, and the lowest "
        "level at which the adversary is certain"
    )
    titles: ClassVar[Mapping[str, str]] = {
        "certain": "certain of the meaning",
        "certain_value": "certain of the value",
        "mean_belief": "mean belief",
        "max_belief": "largest belief",
        "mean_gain": "mean gain",
        "mean_level": "mean level",
    }
    truth_titles: ClassVar[Mapping[str, str]] = {"right": "right meaning"}
    shares: ClassVar[tuple[str, ...]] = ("certain", "certain_value", "mean_belief")

    name: Literal["similarity"] = "similarity"
    level: int = Field(
        default=1,
        ge=0,
        description=("Level of the hierarchy at which beliefs are measured: 0 the value, 1 its parent."),
    )
    by: Literal["auto", "hierarchy", "interval"] = Field(
        default="auto", description="What similar values share: a node, or an interval where there is no hierarchy."
    )
    widths: tuple[float, ...] = Field(
        default=(0.05, 0.1, 0.2), description="Intervals of levels 1, 2, ... as shares of the column's whole range."
    )

    @field_validator("widths")
    @classmethod
    def _rising(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if not value or any(not 0 <= width < 1 for width in value) or sorted(value) != list(value):
            raise ValueError("widths rise and lie between 0 and 1")
        return value

    @classmethod
    def applies(cls, release: Release) -> str | None:
        if (reason := super().applies(release)) is not None:
            return reason
        if not any(has_meaning(one) for one in attackable(release)):
            return f"the values of {attackable(release)[0].name!r} {NO_MEANING}"
        return None

    def suits(self, statement: Statement) -> str | None:
        meanings = self._meanings(statement)
        if meanings is None:
            return f"its values {NO_MEANING}"
        if self.level >= len(meanings.titles):
            return f"its levels are 0 to {len(meanings.titles) - 1}, and level {self.level} was asked for"
        return None

    def _meaning(self, target: Target) -> Meanings:
        """Return the levels of a column that `suits` the attack."""
        if MEMORY not in target.memory:
            target.memory[MEMORY] = self._meanings(target.statement)
        found: Meanings = target.memory[MEMORY]
        return found

    def _meanings(self, statement: Statement) -> Meanings | None:
        """Return the levels of the published hierarchy, or intervals if the values are ordered."""
        tree = statement.column.tree
        if tree is not None and self.by != "interval":
            levels = [tree.groups(height) for height in range(tree.height)]
            if len(levels) > 1:
                titles = ("value", *(f"level {height}" for height in range(1, len(levels))))
                return Meanings(titles, tuple(groups for _, groups in levels), tuple(names for names, _ in levels))
        if self.by == "hierarchy" or not statement.domain.is_ordered:
            return None
        titles = ("value", *(f"within {width:.3g} of the range" for width in self.widths))
        return Meanings(titles, places=places(statement.domain), widths=(0.0, *self.widths))

    # ------------------------------------------------------------------ figures

    def concludes(self, told: Histograms, target: Target) -> Columns:
        meanings = self._meaning(target)
        found: Columns = {}
        beliefs, prior = [], []
        for level in range(len(meanings.titles)):
            best = self._best(told, meanings, level)
            beliefs.append(best["belief"])
            prior.append(float(self._best(target.before(), meanings, level)["belief"][0]))
            if level == self.level:
                found = {"belief": best["belief"], "meaning": best["value"], "ties": best["ties"]}
        found["gain"] = found["belief"] - prior[self.level]
        sure = np.stack([belief >= CERTAIN for belief in beliefs])
        found["level"] = np.where(sure.any(axis=0), sure.argmax(axis=0), len(beliefs))
        return found | {f"belief_{level}": belief for level, belief in enumerate(beliefs)}

    def _best(self, told: Histograms, meanings: Meanings, level: int) -> Columns:
        if meanings.places is not None:
            return best_interval(told, meanings.places, meanings.widths[level])
        return best_guess(told.merge_values(meanings.groups[level]))

    def compares(self, told: Histograms, found: Columns, target: Target, of: NDArray, truth: NDArray) -> Columns:
        meanings = self._meaning(target)
        if meanings.places is not None:
            reach = meanings.places[truth] - meanings.places[found["meaning"][of]]
            return {"right": ((reach >= -1e-9) & (reach <= meanings.widths[self.level] + 1e-9)).astype(float)}
        groups = meanings.groups[self.level]
        inside = belief_in(told.merge_values(groups), of, groups[truth], int(groups.max()) + 1)
        best = inside >= found["belief"][of] - TIE
        return {"truth_belief": inside, "right": np.where(best, 1 / found["ties"][of], 0.0)}

    def sums(self, lines: Columns, target: Target, times: Times = None) -> dict[str, float]:
        meanings = self._meaning(target)
        belief = lines["belief"]
        out = {
            "certain": mean(belief >= CERTAIN, times),
            "certain_value": mean(lines["belief_0"] >= CERTAIN, times),
            "mean_belief": mean(belief, times),
            "max_belief": float(belief.max()),
            "mean_gain": mean(lines["gain"], times),
            "max_gain": float(lines["gain"].max()),
            "mean_level": mean(lines["level"], times),
            "min_level": int(lines["level"].min()),
        }
        for level in range(len(meanings.titles)):
            found = lines[f"belief_{level}"]
            out |= {f"certain_{level}": mean(found >= CERTAIN, times), f"mean_belief_{level}": mean(found, times)}
        return out | ({"right": mean(lines["right"], times)} if "right" in lines else {})

    def labels(self, target: Target) -> dict[str, Sequence[str]]:
        meanings = self._meaning(target)
        return {"meaning": target.labels if meanings.places is not None else meanings.labels[self.level]}

    def facts(self, target: Target) -> dict[str, Any]:
        meanings = self._meaning(target)
        return {"level": self.level, "levels": list(meanings.titles)}

    def notes(self, target: Target, rows: Columns) -> list[str]:
        meanings = self._meaning(target)
        out = [f"levels: {', '.join(f'{i} {title}' for i, title in enumerate(meanings.titles))}"]
        if meanings.places is not None:
            out.append("an interval is named by its lowest value")
        return out


def has_meaning(statement: Statement) -> bool:
    """Return whether values of a column may be similar."""
    tree = statement.column.tree
    return statement.domain.is_ordered or (tree is not None and tree.height > 1)


def places(domain: Domain) -> NDArray[np.float64]:
    """Place ordered values on a line of length 1 by number or rank; special values are far from all others."""
    special = np.array([value in (MISSING, OTHER) for value in domain.values])
    plain = tuple(value for value in domain.values if value not in (MISSING, OTHER))
    found = Domain(plain, domain.kind, domain.source, edges=domain.edges).numbers
    if found is None:
        found = np.arange(len(plain), dtype=float)
    span = float(found.max() - found.min()) if len(found) else 0.0
    out = FAR * (1.0 + np.arange(len(domain)))
    out[~special] = (found - found.min()) / span if span else 0.0
    return np.asarray(out, np.float64)


def best_interval(told: Histograms, where: NDArray[np.float64], width: float) -> Columns:
    """Return the interval of this width with the largest belief in every set: belief, first value, and ties."""
    place = where[told.value]
    order = np.lexsort((place, told.owner))
    owner, place, share, value = told.owner[order], place[order], told.share[order], told.value[order]
    apart = float(where.max()) + 2.0
    line = owner * apart + place
    stop = np.searchsorted(line, line + width + 1e-9, side="right")
    reach = np.concatenate(([0.0], np.cumsum(share)))
    held = np.minimum(1.0, reach[stop] - reach[:-1])
    belief = told.largest(held)
    first = np.maximum.reduceat(
        np.where(held >= belief[owner] - TIE, -np.arange(len(held)), -len(held)), told.starts[:-1]
    )
    return {"belief": belief, "value": value[-first], "ties": np.ones(len(told), np.int64)}
