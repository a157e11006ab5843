"""The raw table's risk, before anything is released: who is alone, with which columns, and what breaks a policy now.

The table is read as it stands (`raw`); people are counted, not rows, where the policy says whose rows are whose. Then
who is alone with which combination of columns (`uniques`), who is alone near the own numbers (`nearness`), how many are
unique in the population, and which requirements of the policy the raw table breaks.

What survey weights tell about risk: who is unique in the population, and whom the weight itself finds.

A record of weight w was drawn with chance 1 / w. Of a class with f records, whose weights add up to F, the population's
size is f plus a negative binomial number with chance p = f / F (Benedetti and Franconi 1998; what sdcMicro calls the
individual risk), so that a sample unique is alone in the population with chance p = 1 / w, and E[1 / size] is the
chance that a match is right.

A weight is computed from what a person told (stratum, region, age, who answered). Whoever can compute it knows it: so
it is counted as a quasi-identifier, too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.risk.raw import (
    MOST_COLUMNS,
    WITHIN,
    RawColumn,
    RawTable,
    class_sizes,
    dis_scores,
    find_uniques,
    near,
    read_raw,
)
from noren.audit.risk.result import ColumnRisk, HouseholdRisk, Look, PopulationRisk, Risk, SpecialUniques, WeightsRisk
from noren.errors import DataError, ModelDoesNotApply, QueryError
from noren.metrics.population import expected_inverse, uniqueness
from noren.models.verdict import Verdict, Verdicts
from noren.policy.options import PeopleOptions
from noren.policy.policy import Policy
from noren.policy.resolve import open_table
from noren.progress import Stage, quiet
from noren.release.store import names_people
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.sources.source import Source, open_source
from noren.workflow.foreign import foreign_table
from noren.workflow.prepare import read_policy
from noren.workflow.truth import overall_distributions
from noren.workflow.verify import check

QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)
STEPS = (1, 2, 3, 5, 10, 20, 50)
"""Where the distribution of k is cut."""
FRACTIONS = (0.01, 0.1, 0.5)
"""Sampling fractions that are tried where none is given."""
DIS_FRACTION = 0.01
"""The sampling fraction of DIS-SUDA scores where none is given, as in sdcMicro."""


@dataclass(frozen=True)
class Asked:
    """Which columns find people, which are secret, and whose rows are whose."""

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
    """What an adversary who knows quasi-identifiers exactly finds in a table as it is.

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
        raise QueryError(f"fraction = {fraction:g} is no share of a population.", hint="Give a number in (0, 1].")
    if size < 1:
        raise QueryError(f"size = {size} is no number of columns.", hint="Give 1 or more.")
    if not within > 0:
        raise QueryError(f"within = {within:g} is no width.", hint="Give a positive share of a standard deviation.")
    asked = _asked(data, rules, tuple(quasi), tuple(sensitive), weight)
    with stage("Reading", None):
        people = asked.people
        table = read_raw(asked.source, asked.quasi, asked.declared, people.key, people.household, asked.decimal)
        weighed = None if asked.weight is None else read_weights(asked.source, asked.weight, asked.decimal)
    with stage("Looking for uniques", None):
        found = find_uniques(table, size)
    everything = range(len(asked.quasi))
    sizes, of = class_sizes(table, everything)
    k = _least_by_person(table, sizes[of])
    dis = dis_scores(found.scores, sizes, len(asked.quasi), fraction or DIS_FRACTION)
    chance = 1 / k if fraction is None else expected_inverse(k, fraction)
    by_weight = None if weighed is None else weight_risk(table, weighed, sizes, of)
    if by_weight is not None and fraction is None:
        chance = _most_by_person(table, by_weight.chance)
    household, of_household = _household(table, k, chance)
    scored = found.scores > 0
    verdicts, skipped = ((), {}) if rules is None else _requirements(data, rules)
    notes = list(asked.notes)
    if found.size < min(size, len(asked.quasi)):
        notes.append(
            f"combinations of up to {found.size} columns were looked at, not {size}: {len(asked.quasi)} columns have "
            "too many; name fewer quasi-identifiers to go further"
        )
    if any(column.missing for column in table.columns):
        notes.append("missing cells equal each other and differ from every value")
    if verdicts and table.persons < table.n:
        notes.append("where requirements are broken, a person with rows in several classes counts once in each")
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
    """The columns that are named, else those of the policy, else those that `noren init` would draft."""
    source = open_source(data) if policy is None else open_table(data, policy)
    if policy is not None:
        roles: dict[str, Role] = {name: column.role for name, column in policy.attributes.items()}
        notes: tuple[str, ...] = ()
    elif quasi:
        roles, notes = {}, ()
    else:
        from noren.policy.proposal import draft

        drafted = tomllib.loads(draft(source))["attributes"]
        roles = {name: Role(given["role"] if isinstance(given, dict) else given) for name, given in drafted.items()}
        notes = ("roles as `noren init` drafts them: name quasi-identifiers, or give a policy",)
    found = quasi or tuple(name for name in source.columns if roles.get(name) in QUASI)
    if not found:
        raise QueryError("no column finds people.", hint="Name quasi-identifiers: --quasi age,sex,zip.")
    if len(set(found)) < len(found):
        raise QueryError("a quasi-identifier is named twice.", hint="Name every column once.")
    secret = sensitive or tuple(name for name in source.columns if name in roles and roles[name].needs_requirement)
    if policy is None:
        return Asked(source, found, secret, weight=weight, notes=notes)
    weight = weight or policy.weight
    return Asked(source, found, secret, policy.people, policy.attributes, policy.data.decimal, weight, notes)


def _least_by_person(table: RawTable, k: NDArray[np.int64]) -> NDArray[np.int64]:
    """The smallest class of every person."""
    if table.people is None:
        return k
    out = np.full(table.persons, np.iinfo(np.int64).max)
    np.minimum.at(out, table.people, k)
    return out


def _most_by_person(table: RawTable, chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest chance of every person."""
    if table.people is None:
        return chance
    out = np.zeros(table.persons)
    np.maximum.at(out, table.people, chance)
    return out


def _looks(k: NDArray[np.int64]) -> list[Look]:
    out = []
    for at, least in enumerate(STEPS):
        most = STEPS[at + 1] - 1 if at + 1 < len(STEPS) else None
        people = int(((k >= least) & (k <= (most if most is not None else k.max()))).sum())
        out.append(Look(least, most, people))
    return out


def _uniques(table: RawTable, chosen: Sequence[int]) -> int:
    """People alone with some of the columns."""
    sizes, of = class_sizes(table, chosen)
    return table.person_of(sizes[of] == 1)


def _population(sizes: NDArray[np.int64], fraction: float) -> PopulationRisk:
    found = uniqueness(sizes, fraction)
    return PopulationRisk(fraction, found.population, found.uniques, found.share, found.chosen)


def _household(
    table: RawTable, k: NDArray[np.int64], chance: NDArray[np.float64]
) -> tuple[HouseholdRisk | None, NDArray[np.float64] | None]:
    """The risk of every household from those of its people, and of every row's household."""
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
    """Every requirement on the raw table, each by itself; why one says nothing, where it does not apply."""
    if not policy.require:
        return [], {}
    foreign = foreign_table(data, policy, suppressed=None)
    verdicts: list[Verdict] = []
    skipped: dict[str, str] = {}
    for model in policy.require:
        if model.of_mechanism:
            skipped[f"{model.model} on {', '.join(model.on)}"] = "it is about how a release is made."
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
    """The weights of all rows; refuses what is none, without a cell."""
    column = read_raw(source, [name], {}, decimal=decimal).columns[0]
    numbers = column.numbers
    if numbers is None or not np.isfinite(numbers).all() or numbers.min() <= 0:
        bad = column.codes.size if numbers is None else int((~(np.isfinite(numbers) & (numbers > 0))).sum())
        raise DataError(
            f"{source.name}: {bad:,} records have no weight {name!r} above 0.",
            hint="Give every record a number above 0; leave out records that stand for nobody.",
        )
    return column


@dataclass(frozen=True, eq=False)
class ByWeight:
    """What weights say: of everybody, and of every row."""

    population: PopulationRisk
    told: WeightsRisk
    chance: NDArray[np.float64]
    """(rows,) E[1 / size of the class in the population]."""


def weight_risk(table: RawTable, column: RawColumn, sizes: NDArray[np.int64], of: NDArray[np.int64]) -> ByWeight:
    """Population uniques and the risk of every row by its weight; and what the weight itself gives away."""
    assert column.numbers is not None
    weights = _by_person(table, column.numbers)
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


def _by_person(table: RawTable, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weight of every person: the largest of their rows', which have the same in a table of people."""
    if table.people is None:
        return weights
    out = np.zeros(table.persons)
    np.maximum.at(out, table.people, weights)
    return out


def _of_class(table: RawTable, weights: NDArray[np.float64], of: NDArray[np.int64], classes: int) -> NDArray:
    """How many people of the population the people of every class stand for."""
    if table.people is None:
        return np.bincount(of, weights, classes)
    pairs = np.unique(of * np.int64(table.persons) + table.people)
    return np.bincount(pairs // table.persons, weights[pairs % table.persons], classes)


def _inverse(sizes: NDArray[np.int64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """E[1 / size] of every class, on a grid of chances: cautious, for it rises with the chance."""
    edges = np.exp(np.linspace(np.log(max(float(share.min()), 1e-9)), 0.0, PARTS))
    place = np.minimum(np.searchsorted(edges, share), PARTS - 1)
    out = np.empty(len(sizes))
    for step in np.unique(place):
        rows = place == step
        out[rows] = expected_inverse(sizes[rows], float(edges[step]))
    return out
