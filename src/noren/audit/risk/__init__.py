"""Risks of the raw table: who is unique, in which columns, and who breaks the requirements of a policy.

People are counted, not rows, where the policy says whose rows are whose.

A record of survey weight w was drawn with chance 1 / w. Of a class with f records, whose weights add up to F, the
population's size is f plus a negative binomial number with chance p = f / F (Benedetti and Franconi 1998; sdcMicro's
individual risk), so a sample unique is alone in the population with chance 1 / w, and E[1 / size] is the chance that a
match is right. A weight is computed from what a person told, so it is counted as a quasi-identifier, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.risk.raw import (
    MOST_COLUMNS,
    WITHIN,
    Combination,
    Near,
    RawColumn,
    RawTable,
    class_sizes,
    dis_scores,
    find_uniques,
    near,
    read_raw,
)
from noren.errors import DataError, ModelDoesNotApply, QueryError
from noren.metrics.population import expected_inverse, uniqueness
from noren.models.verdict import Verdict, Verdicts
from noren.policy.options import PeopleOptions
from noren.policy.policy import Policy
from noren.policy.resolve import open_table
from noren.progress import Stage, quiet
from noren.ragged import runs
from noren.release.store import names_people
from noren.results import Shown, make_frame, plain
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.sources.source import Source, open_source
from noren.workflow.foreign import foreign_table
from noren.workflow.prepare import read_policy
from noren.workflow.truth import overall_distributions
from noren.workflow.verify import check

if TYPE_CHECKING:
    import polars as pl


LISTED = 20
"""Combinations that plain data lists; `frame` has all."""
CHARTED = 12
NEARLY = 0.01
"""A share of people that is not worth another column."""


@dataclass(frozen=True)
class Look:
    """The number of people who share their quasi-identifiers with `least` to `most` people, themselves included."""

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
    """The contribution of one quasi-identifier to uniqueness."""

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
    """Estimated population uniques, if the table is a random sample of this share of the population."""

    fraction: float
    population: int
    uniques: float
    share: float
    way: str


@dataclass(frozen=True)
class WeightsRisk:
    """What survey weights disclose if they are published with the quasi-identifiers."""

    column: str
    distinct: int
    alone: int
    """People whom the weight alone makes unique."""
    uniques_without: int
    uniques_with: int
    """People who are unique with all quasi-identifiers, without the weight and with it."""
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
    """The risk of households: 1 - product of (1 - risk of a member)."""

    households: int
    alone: int
    """Households with a member who is unique."""
    mean_person: float
    mean_household: float
    """Mean over people of the risk of their household, as sdcMicro counts it."""
    below: tuple[tuple[int, int], ...]
    """Pairs (k, households whose smallest k is below it)."""


@dataclass(frozen=True, repr=False, eq=False)
class Risk(Shown):
    """The risks of a raw table, before anything is released.

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
        """Return the combinations that make most people unique, without those of which a part does nearly as well."""
        out: list[Combination] = []
        for one in sorted(self.combinations, key=lambda c: (len(c.columns), -c.alone)):
            parts = [kept for kept in out if set(kept.columns) < set(one.columns)]
            if one.alone > max((part.alone for part in parts), default=0) + NEARLY * self.people:
                out.append(one)
        return sorted(out, key=lambda c: (-c.alone, len(c.columns)))[:count]

    def to_dict(self) -> dict[str, Any]:
        """Figures about all people together, for JSON: no row is named."""
        told: dict[str, Any] = plain(
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
        return told

    def chart(self) -> Any:
        """Return a chart of equivalence class sizes and of the combinations that make most people unique."""
        import altair as alt

        looks = [{"k": one.words, "people": one.people, "order": at} for at, one in enumerate(self.looks)]
        best = [{"columns": " + ".join(one.columns), "share": one.share} for one in self.top(CHARTED)]
        alike = (
            alt.Chart(alt.Data(values=looks), title="People by the size of their equivalence class")
            .mark_bar(color="#0072B2")
            .encode(
                x=alt.X(
                    "k:N",
                    sort=alt.SortField("order"),
                    title="People with the same quasi-identifiers (k)",
                    axis=alt.Axis(labelAngle=0),
                ),
                y=alt.Y("people:Q", title="People"),
                tooltip=["k:N", "people:Q"],
            )
            .properties(width=460, height=240)
        )
        telling = (
            alt.Chart(alt.Data(values=best), title="Columns that make most people unique")
            .mark_bar(color="#D55E00")
            .encode(
                y=alt.Y("columns:N", sort=None, title=None, axis=alt.Axis(labelLimit=320)),
                x=alt.X(
                    "share:Q", title="Share of unique people", axis=alt.Axis(format="%"), scale=alt.Scale(domainMin=0)
                ),
                tooltip=["columns:N", alt.Tooltip("share:Q", format=".1%")],
            )
            .properties(width=460)
        )
        return alt.vconcat(alike, telling)

    def _subject(self) -> str:
        return self.name

    def _headline(self) -> str:
        alone = f"{self.uniques:,} of {self.people:,} people are unique ({self.unique_share:.1%})"
        return f"{alone}, smallest k {self.smallest}"

    def _notes(self) -> Sequence[str]:
        return (*self.notes, "The figures are computed from the original: do not publish them.")


# ---------------------------------------------------------------------- measuring


QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)
STEPS = (1, 2, 3, 5, 10, 20, 50)
"""Where the distribution of k is cut."""
FRACTIONS = (0.01, 0.1, 0.5)
"""Sampling fractions that are tried where none is given."""
DIS_FRACTION = 0.01
"""The sampling fraction of DIS-SUDA scores where none is given, as in sdcMicro."""


@dataclass(frozen=True)
class Asked:
    """The roles of the columns, and the person of every row."""

    source: Source
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    people: PeopleOptions = field(default_factory=PeopleOptions)
    declared: Mapping[str, Column] = field(default_factory=dict)
    decimal: str | None = None
    weight: str | None = None
    notes: tuple[str, ...] = ()


def risk(
    data: Any,
    policy: Policy | str | Path | None = None,
    quasi: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    *,
    size: int = MOST_COLUMNS,
    within: float = WITHIN,
    fraction: float | None = None,
    weight: str | None = None,
    stage: Stage = quiet,
) -> Risk:
    """Measure what a raw table discloses to an adversary who knows the exact quasi-identifiers.

    Columns are those of the policy, or those named; without both, as `noren init` would draft them. `size` bounds the
    combinations of columns, `within` is half the interval of linking by distance in standard deviations, `fraction`
    says which share of the population the table holds. `weight` names survey weights (the policy's, if it has some):
    then every record's own chance of being unique in the population follows from how many people it stands for.

    >>> import noren as nr
    >>> import polars as pl
    >>> people = pl.DataFrame({"town": ["Ulm", "Ulm", "Bonn", "Bonn"], "age": [30, 30, 30, 41]})
    >>> found = nr.risk(people, quasi=["town", "age"])
    >>> found.uniques, found.top(1)[0].columns
    (2, ('town', 'age'))
    """
    rules = None if policy is None else read_policy(policy)
    if fraction is not None and not 0 < fraction <= 1:
        raise QueryError(f"fraction = {fraction:g} is not a share between 0 and 1.", hint="Give a number in (0, 1].")
    if size < 1:
        raise QueryError(f"size = {size} is not a number of columns.", hint="Give 1 or more.")
    if not within > 0:
        raise QueryError(
            f"within = {within:g} is not a positive width.", hint="Give a positive share of a standard deviation."
        )
    asked = _asked(data, rules, tuple(quasi), tuple(sensitive), weight)
    with stage("Reading", None):
        people = asked.people
        table = read_raw(asked.source, asked.quasi, asked.declared, people.key, people.household, asked.decimal)
        weighed = None if asked.weight is None else read_weights(asked.source, asked.weight, asked.decimal)
    with stage("Looking for uniques", None):
        found = find_uniques(table, size)
    everything = range(len(asked.quasi))
    sizes, of = class_sizes(table, everything)
    k = _by_person(table, sizes[of], np.minimum)
    dis = dis_scores(found.scores, sizes, len(asked.quasi), fraction or DIS_FRACTION)
    chance = 1 / k if fraction is None else expected_inverse(k, fraction)
    by_weight = None if weighed is None else weight_risk(table, weighed, sizes, of)
    if by_weight is not None and fraction is None:
        chance = _by_person(table, by_weight.chance, np.maximum)
    household, of_household = _household(table, k, chance)
    scored = found.scores > 0
    verdicts, skipped = ((), {}) if rules is None else _requirements(data, rules)
    notes = list(asked.notes)
    if found.size < min(size, len(asked.quasi)):
        notes.append(
            f"combinations of up to {found.size} columns were examined instead of {size}, because "
            f"{len(asked.quasi)} columns have too many; give fewer quasi-identifiers for larger combinations"
        )
    if any(column.missing for column in table.columns):
        notes.append("missing cells equal each other and differ from every value")
    if verdicts and table.persons < table.n:
        notes.append("among broken requirements, a person with rows in several classes counts once in each class")
    alone = {one.columns[0]: one.share for one in found.combinations if len(one.columns) == 1}
    with stage("Numbers and population", None):
        distances = near(table, within)
        tried = [fraction] if fraction else [] if by_weight is not None else FRACTIONS
        population = [_population(sizes, one) for one in tried]
        population += [] if by_weight is None else [by_weight.population]
    return Risk(
        name=asked.source.name,
        rows=table.n,
        people=table.persons,
        quasi=asked.quasi,
        sensitive=asked.sensitive,
        uniques=int((k == 1).sum()),
        smallest=int(k.min()),
        mean_risk=float((1 / k).mean()),
        looks=_looks(k),
        columns=[
            ColumnRisk(
                column.name,
                column.d - bool(column.missing),
                column.missing,
                alone[column.name],
                float(found.contributions[i]),
                _uniques(table, [j for j in everything if j != i]),
            )
            for i, column in enumerate(table.columns)
        ],
        combinations=found.combinations,
        special=SpecialUniques(
            found.size,
            int(scored.sum()),
            found.by_size,
            float(found.scores.max()),
            float(found.scores[scored].mean()) if scored.any() else 0.0,
            float(dis.max()),
        ),
        population=population,
        near=distances,
        verdicts=Verdicts(verdicts),
        skipped=skipped,
        household=household,
        weights=None if by_weight is None else by_weight.told,
        notes=notes,
        records=_records(table, sizes[of], found.scores, dis, of_household),
    )


def _asked(
    data: Any, policy: Policy | None, quasi: tuple[str, ...], sensitive: tuple[str, ...], weight: str | None
) -> Asked:
    """Return the named columns, or those of the policy, or those that `noren init` would draft."""
    source = open_source(data) if policy is None else open_table(data, policy)
    people = PeopleOptions()
    if policy is not None:
        roles: dict[str, Role] = {name: column.role for name, column in policy.attributes.items()}
        notes: tuple[str, ...] = ()
    elif quasi:
        roles, notes = {}, ()
    else:
        from noren.policy.proposal import propose, study

        drafted = propose(study(source))
        roles, people = {name: one.role for name, one in drafted.guesses.items()}, PeopleOptions(**drafted.people)
        notes = ("roles as `noren init` drafts them: name quasi-identifiers, or give a policy",)
    found = quasi or tuple(name for name in source.columns if roles.get(name) in QUASI)
    if not found:
        raise QueryError("no quasi-identifier is given.", hint="Name quasi-identifiers: --quasi age,sex,zip.")
    if len(set(found)) < len(found):
        raise QueryError("a quasi-identifier is named twice.", hint="Name every column once.")
    secret = sensitive or tuple(name for name in source.columns if name in roles and roles[name].needs_requirement)
    if policy is None:
        return Asked(source, found, secret, people, weight=weight, notes=notes)
    weight = weight or policy.weight
    return Asked(source, found, secret, policy.people, policy.attributes, policy.data.decimal, weight, notes)


def _by_person(table: RawTable, figures: NDArray, worst: np.ufunc) -> NDArray:
    """Return the worst figure over each person's rows."""
    if table.people is None:
        return figures
    order = np.argsort(table.people, kind="stable")
    return np.asarray(worst.reduceat(figures[order], runs(table.people[order])[:-1]))


def _looks(k: NDArray[np.int64]) -> list[Look]:
    out = []
    for at, least in enumerate(STEPS):
        most = STEPS[at + 1] - 1 if at + 1 < len(STEPS) else None
        people = int(((k >= least) & (k <= (most if most is not None else k.max()))).sum())
        out.append(Look(least, most, people))
    return out


def _uniques(table: RawTable, chosen: Sequence[int]) -> int:
    """Count the people who are unique in some columns."""
    sizes, of = class_sizes(table, chosen)
    return table.person_of(sizes[of] == 1)


def _population(sizes: NDArray[np.int64], fraction: float) -> PopulationRisk:
    found = uniqueness(sizes, fraction)
    return PopulationRisk(fraction, found.population, found.uniques, found.share, found.chosen)


def _household(
    table: RawTable, k: NDArray[np.int64], chance: NDArray[np.float64]
) -> tuple[HouseholdRisk | None, NDArray[np.float64] | None]:
    """Compute the risk of every household from its members, and the household of every row."""
    if table.households is None:
        return None, None
    home = table.households
    person = np.arange(table.n) if table.people is None else table.people
    count = int(home.max()) + 1
    pairs = np.unique(home * np.int64(table.persons) + person)
    where, who = pairs // table.persons, pairs % table.persons
    with np.errstate(divide="ignore"):
        safe = np.zeros(count)
        np.add.at(safe, where, np.log1p(-np.minimum(chance[who], 1.0)))
    risks = 1 - np.exp(safe)
    least = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(least, where, k[who])
    below = tuple((limit, int((least < limit).sum())) for limit in (2, 3, 5, 10))
    found = HouseholdRisk(count, below[0][1], float(chance[who].mean()), float(risks[where].mean()), below)
    return found, risks[home]


def _requirements(data: Any, policy: Policy) -> tuple[list[Verdict], dict[str, str]]:
    """Check every requirement on the raw table separately; a reason if it does not apply."""
    if not policy.require:
        return [], {}
    foreign = foreign_table(data, policy, suppressed=None)
    verdicts: list[Verdict] = []
    skipped: dict[str, str] = {}
    for model in policy.require:
        if model.of_mechanism:
            skipped[f"{model.model} on {', '.join(model.on)}"] = (
                "this requirement concerns how a release is made, so a raw table cannot break it."
            )
            continue
        overall = overall_distributions(foreign, [model])
        try:
            verdicts += check(foreign, [model], overall, people=names_people(foreign.store))
        except ModelDoesNotApply as error:
            skipped[f"{model.model} on {', '.join(model.on) or 'quasi-identifiers'}"] = error.message
    return verdicts, skipped


def _records(
    table: RawTable,
    k: NDArray[np.int64],
    scores: NDArray[np.float64],
    dis: NDArray[np.float64],
    household: NDArray[np.float64] | None,
) -> Any:
    import polars as pl

    columns: dict[str, Any] = {"row": np.arange(1, table.n + 1), "k": k, "suda": scores, "dis_suda": dis}
    if household is not None:
        columns["household_risk"] = household
    return pl.DataFrame(columns)


PARTS = 400
"""Chances p at which E[1 / size] is worked out; between them it is read off."""


def read_weights(source: Source, name: str, decimal: str | None) -> RawColumn:
    """Return the weights of all rows; raise if one is invalid, without naming a cell."""
    column = read_raw(source, [name], {}, decimal=decimal).columns[0]
    numbers = column.numbers
    if numbers is None or not np.isfinite(numbers).all() or numbers.min() <= 0:
        bad = column.codes.size if numbers is None else int((~(np.isfinite(numbers) & (numbers > 0))).sum())
        raise DataError(
            f"{source.name}: {bad:,} records have no weight {name!r} above 0.",
            hint="Give every record a number above 0 and remove records of weight 0.",
        )
    return column


@dataclass(frozen=True, eq=False)
class ByWeight:
    """The figures from survey weights, for everybody and for every row."""

    population: PopulationRisk
    told: WeightsRisk
    chance: NDArray[np.float64]
    """(rows,) E[1 / size of the class in the population]."""


def weight_risk(table: RawTable, column: RawColumn, sizes: NDArray[np.int64], of: NDArray[np.int64]) -> ByWeight:
    """Compute population uniques and the risk of every row from its weight, and what the weight itself discloses."""
    assert column.numbers is not None
    weights = _by_person(table, column.numbers, np.maximum)  # rows of a person have the same
    total = float(weights.sum())
    people = _of_class(table, weights, of, len(sizes))
    share = np.minimum(sizes / np.maximum(people, 1e-300), 1.0)
    uniques = float(share[sizes == 1].sum())
    population = max(table.persons, round(total))
    both = RawTable(table.name, table.n, (*table.columns, column), table.people)
    with_weight, _ = class_sizes(both, range(len(both.columns)))
    alone, _ = class_sizes(both, [len(table.columns)])
    told = WeightsRisk(
        column.name,
        column.d,
        int((alone == 1).sum()),
        int((sizes == 1).sum()),
        int((with_weight == 1).sum()),
        float(len(weights) * np.square(weights).sum() / total**2),
    )
    found = PopulationRisk(table.persons / population, population, uniques, uniques / population, "weights")
    return ByWeight(found, told, _inverse(sizes, share)[of])


def _of_class(table: RawTable, weights: NDArray[np.float64], of: NDArray[np.int64], classes: int) -> NDArray:
    """Estimate how many people of the population each class represents."""
    if table.people is None:
        return np.bincount(of, weights, classes)
    pairs = np.unique(of * np.int64(table.persons) + table.people)
    return np.bincount(pairs // table.persons, weights[pairs % table.persons], classes)


def _inverse(sizes: NDArray[np.int64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute E[1 / size] of every class on a grid of probabilities, which overestimates slightly."""
    edges = np.exp(np.linspace(np.log(max(float(share.min()), 1e-9)), 0.0, PARTS))
    place = np.minimum(np.searchsorted(edges, share), PARTS - 1)
    out = np.empty(len(sizes))
    for step in np.unique(place):
        rows = place == step
        out[rows] = expected_inverse(sizes[rows], float(edges[step]))
    return out
