"""What `risk` returns: figures about the raw table, for the first talk with the data owner. For the holder only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from noren.audit.risk.raw import Combination, Near
from noren.models.verdict import Verdict, Verdicts
from noren.results import Shown, make_frame, plain

if TYPE_CHECKING:
    import polars as pl

LISTED = 20
"""Combinations that plain data lists; `frame` has all."""
CHARTED = 12
NEARLY = 0.01
"""A share of people that is not worth another column."""


@dataclass(frozen=True)
class Look:
    """People who share their quasi-identifiers with `least` to `most` people, themselves among them."""

    least: int
    most: int | None
    people: int

    @property
    def words(self) -> str:
        if self.most is None:
            return f"{self.least} or more"
        return f"{self.least}" if self.most == self.least else f"{self.least} to {self.most}"


@dataclass(frozen=True)
class ColumnRisk:
    """What one quasi-identifier adds."""

    column: str
    distinct: int
    missing: int
    alone: float
    """Share of people whom its value alone makes unique."""
    contribution: float
    """Share of all SUDA scores that rests on it."""
    uniques_without: int
    """People who would still be alone if it were left out."""


@dataclass(frozen=True)
class PopulationRisk:
    """Population uniques, if the table is a random sample of this share of the people."""

    fraction: float
    population: int
    uniques: float
    share: float
    way: str


@dataclass(frozen=True)
class WeightsRisk:
    """What survey weights give away if they are published beside the quasi-identifiers."""

    column: str
    distinct: int
    alone: int
    """People whom the weight alone makes unique."""
    uniques_without: int
    uniques_with: int
    """People who are alone with all quasi-identifiers, without the weight and with it."""
    design_effect: float
    """Kish's: what unequal weights cost a recipient."""


@dataclass(frozen=True)
class SpecialUniques:
    """Minimal sample uniques and SUDA scores."""

    size: int
    """Columns of the largest combinations that were looked at."""
    rows: int
    """Rows with a minimal sample unique."""
    by_size: tuple[int, ...]
    """Minimal sample uniques of one column, of two, ..."""
    highest: float
    mean: float
    """Mean score of the rows that have one."""
    dis_highest: float
    """Largest DIS-SUDA score: the chance that a match of this row is right."""


@dataclass(frozen=True)
class HouseholdRisk:
    """Finding one member finds the household: its risk is 1 - product of (1 - risk of a member)."""

    households: int
    alone: int
    """Households with a member who is alone."""
    mean_person: float
    mean_household: float
    """Mean over people of the risk of their household, as sdcMicro counts it."""
    below: tuple[tuple[int, int], ...]
    """Pairs (k, households whose smallest k is below it)."""


@dataclass(frozen=True, repr=False, eq=False)
class Risk(Shown):
    """The risk of a table as it is, before anything is released.

    `frame` has one row per combination of columns; `records` one per row of the table, in its order, with k, SUDA
    score, DIS-SUDA score and the risk of the household.
    """

    name: str
    rows: int
    people: int
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    uniques: int
    """People whom nobody equals in all quasi-identifiers."""
    smallest: int
    mean_risk: float
    """Mean over people of 1 / k: the share that an adversary who picks at random among equals finds."""
    looks: Sequence[Look]
    columns: Sequence[ColumnRisk]
    combinations: Sequence[Combination]
    special: SpecialUniques
    population: Sequence[PopulationRisk]
    near: Sequence[Near]
    verdicts: Verdicts[Verdict]
    """Every requirement of the policy, as the raw table meets it."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Requirements that say nothing about a raw table, and why."""
    household: HouseholdRisk | None = None
    weights: WeightsRisk | None = None
    notes: Sequence[str] = ()
    records: pl.DataFrame = field(default=None)  # type: ignore[assignment]

    @property
    def unique_share(self) -> float:
        return self.uniques / max(1, self.people)

    @property
    def frame(self) -> pl.DataFrame:
        kinds = {"columns": str, "size": int, "alone": int, "share": float, "minimal": int}
        rows = (vars(c) | {"columns": ", ".join(c.columns), "size": len(c.columns)} for c in self.combinations)
        return make_frame(kinds, rows)

    def top(self, count: int = LISTED) -> list[Combination]:
        """The combinations that most people are alone with, without those of which a part does nearly as well."""
        out: list[Combination] = []
        for one in sorted(self.combinations, key=lambda c: (len(c.columns), -c.alone)):
            parts = [kept for kept in out if set(kept.columns) < set(one.columns)]
            if one.alone > max((part.alone for part in parts), default=0) + NEARLY * self.people:
                out.append(one)
        return sorted(out, key=lambda c: (-c.alone, len(c.columns)))[:count]

    def to_dict(self) -> dict[str, Any]:
        """Figures about all people together, for JSON: no row is named."""
        return plain(
            {
                "table": self.name,
                "rows": self.rows,
                "people": self.people,
                "quasi_identifiers": self.quasi,
                "sensitive": self.sensitive,
                "uniques": self.uniques,
                "unique_share": self.unique_share,
                "smallest_k": self.smallest,
                "mean_risk": self.mean_risk,
                "k": [asdict(one) for one in self.looks],
                "columns": [asdict(one) for one in self.columns],
                "combinations": [asdict(one) for one in self.top()],
                "special_uniques": asdict(self.special),
                "population": [asdict(one) for one in self.population],
                "near": [asdict(one) for one in self.near],
                "requirements": [one.to_dict() for one in self.verdicts],
                "skipped": dict(self.skipped),
                "household": None if self.household is None else asdict(self.household),
                "weights": None if self.weights is None else asdict(self.weights),
                "notes": self.notes,
            }
        )

    def chart(self) -> Any:
        """How many people look alike, and the combinations that most are alone with."""
        import altair as alt

        looks = [{"k": one.words, "people": one.people, "order": at} for at, one in enumerate(self.looks)]
        best = [{"columns": " + ".join(one.columns), "share": one.share} for one in self.top(CHARTED)]
        alike = (
            alt.Chart(alt.Data(values=looks), title="People by how many share their quasi-identifiers")
            .mark_bar(color="#0072B2")
            .encode(
                x=alt.X(
                    "k:N", sort=alt.SortField("order"), title="People who look alike (k)", axis=alt.Axis(labelAngle=0)
                ),
                y=alt.Y("people:Q", title="People"),
                tooltip=["k:N", "people:Q"],
            )
            .properties(width=460, height=240)
        )
        telling = (
            alt.Chart(alt.Data(values=best), title="Columns that most people are alone with")
            .mark_bar(color="#D55E00")
            .encode(
                y=alt.Y("columns:N", sort=None, title=None, axis=alt.Axis(labelLimit=320)),
                x=alt.X(
                    "share:Q", title="Share of people alone", axis=alt.Axis(format="%"), scale=alt.Scale(domainMin=0)
                ),
                tooltip=["columns:N", alt.Tooltip("share:Q", format=".1%")],
            )
            .properties(width=460)
        )
        return alt.vconcat(alike, telling)

    def _subject(self) -> str:
        return self.name

    def _headline(self) -> str:
        alone = f"{self.uniques:,} of {self.people:,} people are alone ({self.unique_share:.1%})"
        return f"{alone}, smallest k {self.smallest}"

    def _notes(self) -> Sequence[str]:
        return (*self.notes, "Figures rest on the original: keep them with the holder.")
