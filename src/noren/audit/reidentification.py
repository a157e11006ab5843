"""Re-identification: the probability of naming a published record correctly.

Three adversaries (El Emam and Dankar 2008, Dankar and El Emam 2010). The prosecutor knows that a person is in the
table: 1 / f for a class of f records. The journalist wants to name anybody, from a register of the population: 1 / F
for F people of the population who match the class. The marketer names as many as possible: the expected share of right
names is the mean of these, classes / records for one who knows who is in the table. Population uniqueness is estimated
by published models (see `population`).

The population as the adversary has it: a table of everybody, quasi-identifiers as in the original.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.base import Attack, AttackResult, Case, Lines, Scenario
from noren.audit.people import known_people, person_lines, read_texts
from noren.audit.sample import Times, mean
from noren.audit.sample import sizes as sizes_of
from noren.audit.targets import (
    finder_for,
    in_release,
    key_names,
    owners_of,
    published_classes,
    quasi_statements,
    raw_classes,
)
from noren.engines.finding import Matches
from noren.errors import QueryError
from noren.metrics.population import Uniqueness, expected_inverse, uniqueness
from noren.release.published import Published
from noren.release.release import Release
from noren.schema.domain import MISSING, OTHER, Domain
from noren.sources.source import open_source


@dataclass(frozen=True)
class Census:
    """The size of the population, and how many of its people match every published class."""

    people: int
    matches: NDArray[np.int64]


def read_census(table: Any, release: Published, names: list[str], own: Matches) -> Census:
    """Count the population's people who match each class of the release."""
    source = open_source(table)
    absent = [name for name in names if name not in source.columns]
    if absent:
        raise QueryError(
            f"{source.name}: the population has no column {absent[0]!r}.",
            hint="It needs every quasi-identifier that the release publishes.",
        )
    if wide := [name for name in names if release.column(name).column.is_open]:
        raise QueryError(f"column {wide[0]!r} has too many values to find people by.", hint="Give it bins.")
    read = read_texts(source, names)
    codes = {name: published_codes(release.column(name).domain, [*texts])[mine] for name, (texts, mine) in read.items()}
    people = len(codes[names[0]])
    if not people:
        raise QueryError(f"{source.name}: the population has no records.")
    finder, asked = finder_for(release, names, codes)
    counts = np.zeros(release.rows, np.int64)
    for part in finder.candidates(asked, people):
        times = np.bincount(part.of, minlength=len(part.bounds) - 1)
        np.add.at(counts, part.order, np.repeat(times, np.diff(part.bounds)))
    return Census(people, counts[own.order[own.bounds[:-1]]])


def published_codes(domain: Domain, texts: list[Any]) -> NDArray[np.int64]:
    """Return texts as codes of a published domain, -1 for unknown ones; the last code is a missing cell."""
    missing, other = domain.index.get(MISSING, -1), domain.index.get(OTHER, -1)
    if domain.edges is None or domain.measure is not None:
        found = np.array(domain.find([*map(str, texts)]), np.int64)
        return np.append(np.where(found < 0, other if domain.edges is None else -1, found), missing)
    edges = np.asarray(domain.edges)
    numbers = np.array([_number(text) for text in texts], float)
    slots = np.searchsorted(edges, numbers, side="right") - 1
    slots[numbers == edges[-1]] = len(edges) - 2
    inside = np.isfinite(numbers) & (slots >= 0) & (slots < len(edges) - 1)
    return np.append(np.where(inside, slots, other), missing).astype(np.int64)


def _number(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return float("nan")


SHARES = ("mean_risk", "unique", "at_risk", "mean_journalist", "population_unique")


class Reidentification(Attack):
    """Match people with records by quasi-identifiers."""

    knows: ClassVar[str] = "a person"
    adversary: ClassVar[str] = (
        "knows exact quasi-identifiers: of a person who is in the table (prosecutor), of everybody in the population "
        "(journalist), or of all people in the table (marketer)"
    )
    success: ClassVar[str] = (
        "the chance of naming a record correctly: 1 over the number of matching records (or matching people of the "
        "population); the mean over all records is the marketer's expected share of correct names"
    )
    needs_rows: ClassVar[str | None] = None
    measure: ClassVar[str] = "risk"
    shares: ClassVar[tuple[str, ...]] = SHARES
    titles: ClassVar[Mapping[str, str]] = {
        "max_risk": "largest risk",
        "mean_risk": "mean risk (marketer)",
        "unique": "unique",
        "at_risk": "at risk",
        "max_journalist": "largest, journalist",
        "mean_journalist": "mean, journalist",
        "population_unique": "unique in the population",
    }

    name: Literal["reidentification"] = "reidentification"
    threshold: float = Field(
        default=0.2, gt=0, lt=1, description=("A record with a risk above this counts as at risk.")
    )
    fraction: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Share of the population that is in the table; by default the table is the whole population.",
    )
    population: Any = Field(
        default=None, description="A table of the population with the quasi-identifiers written as in the original."
    )

    @classmethod
    def applies(cls, release: Release) -> str | None:
        if not quasi_statements(release):
            return "the release has no quasi-identifier"
        if not key_names(release)[0]:
            return "every quasi-identifier is published as sets or groups, so that no record can be matched exactly"
        return None

    def run(self, case: Case) -> list[AttackResult]:
        self.demand(case.release)
        release = case.release
        names, lost = key_names(release)
        notes = []
        if lost:
            listed = ", ".join(map(repr, lost))
            notes.append(
                f"{listed}: published as sets or groups and not matched, so the figures are too low for an "
                "adversary who knows these columns"
            )
        with case.stage("Matching records", None):
            found = self._published(case, names)
            scenarios = self._people(case, found, names, notes) if case.original is not None else []
            scenarios.append(self._rows(found, case.row_lines(found.times)))
        facts = {"threshold": self.threshold, "classes": len(found.sizes), "quasi_identifiers": names}
        return [
            self.make_result(
                target=tuple(names),
                baseline=self._before(release.records, found),
                scenarios=scenarios,
                facts=facts | _basis(found),
                notes=(*notes, *self._notes(found)),
            )
        ]

    def _published(self, case: Case, names: list[str]) -> FoundClasses:
        view = case.view(names)
        release, times = view.release, view.times
        own = published_classes(case, names, release)
        # a release of shuffled members has several rows of every person, all in one class
        sizes = sizes_of(own.bounds, own.order, times) // case.release.rows_per_record
        of = owners_of(own)
        if self.population is None:
            fraction = self.fraction or 1.0
            inverse, estimate = expected_inverse(sizes, fraction), uniqueness(sizes, fraction)
            return FoundClasses(of, sizes, fraction, inverse, estimate, times=times)
        census = read_census(self.population, release, names, own)
        fraction = self.fraction or min(1.0, case.release.records / census.people)
        people = census.matches
        # a class for which the census has too few people is no safer than the table makes it
        journalist = np.where(people > 0, 1 / np.maximum(1, np.maximum(people, sizes)), 0.0)
        single = float((people == 1).sum())
        known = Uniqueness(census.people, {"counted": single}, "counted")
        return FoundClasses(of, sizes, fraction, journalist, known, census, times)

    # ------------------------------------------------------------------ scenarios

    def _rows(self, found: FoundClasses, lines: Lines) -> Scenario:
        sizes = found.sizes[found.of]
        risk, journalist = 1 / sizes, found.journalist[found.of]
        # of all rows: the figures cost nothing
        summary = self._summary(risk, journalist, found.uniqueness, found.times)
        some = lines.some
        columns = {"candidates": some[sizes], "risk": some[risk], "journalist": some[journalist]}
        return lines.scenario("release-rows", "this release, row by row", summary, columns)

    def _people(self, case: Case, found: FoundClasses, names: list[str], notes: list[str]) -> list[Scenario]:
        """Compute the figures of the same people in the raw table and in the release."""
        people = known_people(case)
        lines = person_lines(case, people)
        who = lines.some
        raw = raw_classes(case, people, people.quasi)
        sizes, of = np.diff(raw.bounds), owners_of(raw)
        inverse, estimate = expected_inverse(sizes, found.fraction), uniqueness(sizes, found.fraction)
        summary = self._summary(1 / sizes[of], inverse[of], estimate) | {"without_group": 0}
        of = who[of]
        columns = {"groups": np.ones(len(who), np.int64), "candidates": sizes[of], "risk": 1 / sizes[of]}
        out = [lines.scenario("raw", "raw table", summary, columns | {"journalist": inverse[of]})]
        groups, records, journalist = np.zeros(len(who), np.int64), np.zeros(len(who), np.int64), np.zeros(len(who))
        for part in in_release(case, people, names, who):
            groups[part.people], records[part.people] = part.groups[part.of], np.diff(part.bounds)[part.of]
            mean = np.add.reduceat(found.journalist[found.of[part.order]], part.bounds[:-1]) / np.diff(part.bounds)
            journalist[part.people] = mean[part.of]
        records //= case.release.rows_per_record
        risk = np.divide(1.0, records, out=np.zeros(len(records)), where=records > 0)
        lost = int((records == 0).sum())
        summary = self._summary(risk, journalist, found.uniqueness) | {"without_group": who.scaled(lost)}
        columns = {"groups": groups, "candidates": records, "risk": risk, "journalist": journalist}
        out.append(lines.scenario("release", "this release", summary, columns, SHARES[:4]))
        notes += [*who.note(), *_estimated("population uniques of the raw table", estimate, found.fraction)]
        if lost:
            notes.append(f"{who.count(lost)} people match no published record and cannot be named")
        return out

    def _summary(self, risk: NDArray, journalist: NDArray, found: Uniqueness, times: Times = None) -> dict[str, float]:
        return {
            "mean_risk": mean(risk, times),
            "max_risk": float(risk.max()),
            "unique": mean(risk >= 1, times),
            "at_risk": mean(risk > self.threshold + 1e-12, times),
            "mean_journalist": mean(journalist, times),
            "max_journalist": float(journalist.max()),
            "at_risk_journalist": mean(journalist > self.threshold + 1e-12, times),
            "population_unique": found.share,
        }

    def _before(self, records: int, found: FoundClasses) -> dict[str, float]:
        """Compute the figures of naming records at random."""
        chance, among = np.array([1 / records]), np.array([1 / found.uniqueness.population])
        return self._summary(chance, among, Uniqueness(found.uniqueness.population, {"before": 0.0}, "before"))

    def _notes(self, found: FoundClasses) -> list[str]:
        if found.census is not None:
            short = int((found.census.matches < found.sizes).sum())
            return [f"{short:,} published classes hold more records than the population has people"] if short else []
        if self.fraction is None:
            return [
                (
                    "without a fraction or a population the table counts as the whole population; this is the worst "
                    "case, in which journalist and prosecutor risk are equal"
                )
            ]
        return _estimated("population uniques", found.uniqueness, self.fraction)


@dataclass(frozen=True)
class FoundClasses:
    """The classes of a release: the class of every row, the records and the journalist's risk of every class."""

    of: NDArray[np.int64]
    sizes: NDArray[np.int64]
    fraction: float
    journalist: NDArray[np.float64]
    uniqueness: Uniqueness
    census: Census | None = None
    times: Times = None
    """How many rows every one of `of` stands for, where they are counted."""


def _estimated(what: str, found: Uniqueness, fraction: float) -> list[str]:
    """Describe the model of an estimate and its assumption."""
    words = {"pitman": "Pitman's model", "zayatz": "Zayatz's model", "snb": "the slide negative binomial model"}
    if found.chosen not in words:
        return []
    return [
        (
            f"{what} are estimated by {words[found.chosen]}, which the decision rule of Dankar et al. selects for a "
            f"sampling fraction of {fraction:.3g}; this assumes a random sample"
        )
    ]


def _basis(found: FoundClasses) -> dict[str, Any]:
    """Describe the basis of the journalist's figures."""
    estimate = found.uniqueness
    where = "the population given" if found.census is not None else "an estimate"
    out: dict[str, Any] = {"fraction": found.fraction, "population": estimate.population, "journalist_from": where}
    return out | {"estimator": estimate.chosen, "population_uniques": dict(estimate.ways)}
