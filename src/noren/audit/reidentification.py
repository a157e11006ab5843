"""Re-identification: how surely a published record can be given a name.

Three adversaries (El Emam and Dankar 2008, Dankar and El Emam 2010). The prosecutor knows that a person is in the
table: 1 / f for a class of f records. The journalist wants to name anybody, from a register of the population: 1 / F
for F people of the population who match the class. The marketer names as many as possible: the expected share of right
names is the mean of these, classes / records for one who knows who is in the table. Population uniqueness is estimated
by published models (see `population`).

The population as the adversary has it: a table of everybody, quasi-identifiers as they stand in the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.base import Attack, AttackResult, Case, Scenario
from noren.audit.people import known_people
from noren.audit.sample import ROWS, Sample, Times, mean
from noren.audit.sample import sizes as sizes_of
from noren.audit.targets import alike, finder_for, in_release, key_names, published_classes, quasi_statements
from noren.engines.finding import Matches
from noren.errors import QueryError
from noren.metrics.population import Uniqueness, expected_inverse, uniqueness
from noren.release.published import Published
from noren.release.release import Release
from noren.schema.domain import MISSING, OTHER, Domain


@dataclass(frozen=True)
class Census:
    """How many people the population has, and how many of them every published class covers."""

    people: int
    matches: NDArray[np.int64]


def read_census(table: Any, release: Published, names: list[str], own: Matches) -> Census:
    """Count the population's people who match each class of the release."""
    from noren.sources.source import open_source
    from noren.statements.encode import as_dictionary

    source = open_source(table)
    absent = [name for name in names if name not in source.columns]
    if absent:
        raise QueryError(
            f"{source.name}: the population has no column {absent[0]!r}.",
            hint="It needs every quasi-identifier that the release publishes.",
        )
    parts: dict[str, list[NDArray[np.int64]]] = {name: [] for name in names}
    for batch in source.batches(names):
        for name in names:
            column = release.column(name).column
            if column.is_open:
                raise QueryError(f"column {name!r} has too many values to find people by.", hint="Give it bins.")
            texts, positions = as_dictionary(batch.column(name), name)
            parts[name].append(published_codes(column.domain, texts.to_pylist())[positions])
    codes = {name: np.concatenate(found) for name, found in parts.items() if found}
    people = len(codes[names[0]]) if codes else 0
    if not people:
        raise QueryError(f"{source.name}: the population has no records.")
    finder, asked = finder_for(release, names, codes)
    counts = np.zeros(release.rows, np.int64)
    for part in finder.candidates(asked, people):
        times = np.bincount(part.of, minlength=len(part.bounds) - 1)
        np.add.at(counts, part.order, np.repeat(times, np.diff(part.bounds)))
    return Census(people, counts[own.order[own.bounds[:-1]]])


def published_codes(domain: Domain, texts: list[Any]) -> NDArray[np.int64]:
    """Texts as codes of a published domain, -1 for those it lacks; the last entry is the code of a missing cell."""
    index = domain.index
    missing, other = index.get(MISSING, -1), index.get(OTHER, -1)
    if domain.edges is None and (domain.hidden or domain.has_ends):
        return np.array([*(other if code < 0 else code for code in domain.find([*map(str, texts)])), missing], np.int64)
    if domain.measure is not None:
        return np.array([*domain.find([*map(str, texts)]), missing], np.int64)
    if domain.edges is None:
        return np.array([*(index.get(str(text), other) for text in texts), missing], np.int64)
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


TITLES = {
    "max_risk": "largest risk",
    "mean_risk": "mean risk (marketer)",
    "unique": "unique",
    "at_risk": "at risk",
    "max_journalist": "largest, journalist",
    "mean_journalist": "mean, journalist",
    "population_unique": "unique in the population",
}
SHARES = ("mean_risk", "unique", "at_risk", "mean_journalist", "population_unique")


class Reidentification(Attack):
    """Match people with records by quasi-identifiers."""

    adversary: ClassVar[str] = (
        "knows exact quasi-identifiers: of a person who is in the table (prosecutor), of everybody in the population "
        "(journalist), or of all people in the table (marketer)"
    )
    success: ClassVar[str] = (
        "the chance to name a record rightly, 1 over the records, or people of the population, that match; the mean "
        "over all records is the share of right names that a marketer expects"
    )
    needs_rows: ClassVar[str | None] = None

    name: Literal["reidentification"] = "reidentification"
    threshold: float = Field(default=0.2, gt=0, lt=1, description="Records with a risk above this are at risk.")
    fraction: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Which share of the population is in the table; without it the table is taken for all of it.",
    )
    population: Any = Field(
        default=None, description="A table of the population with the quasi-identifiers as they stand in the original."
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
                f"{listed}: published as sets or groups and not matched; who knows them finds fewer records, so the "
                "figures of the release are too low for that adversary"
            )
        with case.stage("Matching records", None):
            found = self._published(case, names)
            scenarios = self._people(case, found, names, notes) if case.original is not None else []
            scenarios.append(self._rows(found, case.measured_lines(found.times)))
        facts = {"threshold": self.threshold, "classes": len(found.sizes), "quasi_identifiers": names}
        return [
            self.make_result(
                target=tuple(names),
                baseline=self._before(release.records, found),
                scenarios=scenarios,
                titles=TITLES,
                measure="risk",
                shares=SHARES,
                facts=facts | _basis(found),
                notes=(*notes, *self._notes(found)),
            )
        ]

    def _published(self, case: Case, names: list[str]) -> FoundClasses:
        view = case.view(names)
        release, times = view.release, view.times
        key = ("rows alike", tuple(names), release.columns if case.counts else ())
        own = case.remembered(key, lambda: published_classes(release, names))
        # a release of shuffled members has several rows of every person, all in one class
        sizes = sizes_of(own.bounds, own.order, times) // case.release.rows_per_record
        of = np.empty(release.rows, np.int64)
        of[own.people] = own.of
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

    def _rows(self, found: FoundClasses, some: Sample) -> Scenario:
        import polars as pl

        sizes = found.sizes[found.of]
        risk, journalist = 1 / sizes, found.journalist[found.of]
        # of all rows: the figures cost nothing
        summary = self._summary(risk, journalist, found.uniqueness, found.times)
        lines = {"candidates": some[sizes], "risk": some[risk], "journalist": some[journalist]}
        head = {"record": some.lines + 1} | ({} if found.times is None else {ROWS: found.times})
        frame = pl.DataFrame(head | lines)
        title = "this release, row by row"
        return Scenario("release-rows", title, "row", summary, frame, holder_only=False, of=some.of)

    def _people(self, case: Case, found: FoundClasses, names: list[str], notes: list[str]) -> list[Scenario]:
        """The same people in the raw table and in the release."""
        people = known_people(case)
        who = case.measured(people.n)
        quasi = tuple(people.quasi)
        raw = case.remembered(("people alike", quasi), lambda: alike(people.keys(quasi), people.n))
        sizes = np.diff(raw.bounds)
        of = np.empty(people.n, np.int64)
        of[raw.people] = raw.of
        inverse = expected_inverse(sizes, found.fraction)
        estimate = uniqueness(sizes, found.fraction)
        summary = self._summary(1 / sizes[of], inverse[of], estimate)
        one, numbers, of = np.ones(len(who), np.int64), who[people.rows], who[of]
        out = [self._scenario("raw", "raw table", numbers, one, sizes[of], inverse[of], estimate, who, summary)]
        groups, records, journalist = np.zeros(len(who), np.int64), np.zeros(len(who), np.int64), np.zeros(len(who))
        for part in in_release(case, people, names, who):
            groups[part.people], records[part.people] = part.groups[part.of], np.diff(part.bounds)[part.of]
            mean = np.add.reduceat(found.journalist[found.of[part.order]], part.bounds[:-1]) / np.diff(part.bounds)
            journalist[part.people] = mean[part.of]
        records //= case.release.rows_per_record
        title = "this release"
        out.append(self._scenario("release", title, numbers, groups, records, journalist, found.uniqueness, who))
        notes += [*who.note(), *_estimated("population uniques of the raw table", estimate, found.fraction)]
        if lost := int((records == 0).sum()):
            notes.append(f"{who.count(lost)} people match no published record and cannot be named")
        return out

    def _scenario(
        self,
        name: str,
        title: str,
        numbers: NDArray,
        groups: NDArray,
        records: NDArray,
        journalist: NDArray,
        estimate: Uniqueness,
        who: Sample,
        all_: dict[str, float] | None = None,
    ) -> Scenario:
        """`all_` are the figures of everybody, where they are known; else those of the people who are measured."""
        import polars as pl

        risk = np.divide(1.0, records, out=np.zeros(len(records)), where=records > 0)
        lines = {"groups": groups, "candidates": records, "risk": risk, "journalist": journalist}
        summary = self._summary(risk, journalist, estimate) if all_ is None else all_
        summary |= {"without_group": who.scaled(int((records == 0).sum()))}
        bounds = who.bounds(summary, SHARES[:4]) if all_ is None else {}
        frame = pl.DataFrame({"record": numbers} | lines)
        return Scenario(name, title, "person", summary, frame, True, bounds, who.of)

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
        """A name drawn at random for every record."""
        chance, among = np.array([1 / records]), np.array([1 / found.uniqueness.population])
        return self._summary(chance, among, Uniqueness(found.uniqueness.population, {"before": 0.0}, "before"))

    def _notes(self, found: FoundClasses) -> list[str]:
        if found.census is not None:
            short = int((found.census.matches < found.sizes).sum())
            return [f"{short:,} published classes hold more records than the population has people"] if short else []
        if self.fraction is None:
            return [
                "without a fraction or a population the table is taken for the whole population, which is the worst "
                "case: the journalist is then a prosecutor"
            ]
        return _estimated("population uniques", found.uniqueness, self.fraction)


@dataclass(frozen=True)
class FoundClasses:
    """The classes of a release: of every row its class, of every class its records and the journalist's risk."""

    of: NDArray[np.int64]
    sizes: NDArray[np.int64]
    fraction: float
    journalist: NDArray[np.float64]
    uniqueness: Uniqueness
    census: Census | None = None
    times: Times = None
    """How many rows every one of `of` stands for, where they are counted."""


def _estimated(what: str, found: Uniqueness, fraction: float) -> list[str]:
    """Which model an estimate rests on, and what it supposes."""
    words = {"pitman": "Pitman's model", "zayatz": "Zayatz's model", "snb": "the slide negative binomial model"}
    if found.chosen not in words:
        return []
    return [
        f"{what} are estimated by {words[found.chosen]}, as the decision rule of Dankar et al. chooses at a fraction "
        f"of {fraction:.3g}, supposing that the table is a random sample"
    ]


def _basis(found: FoundClasses) -> dict[str, Any]:
    """Where the journalist's figures are from."""
    estimate = found.uniqueness
    where = "the population given" if found.census is not None else "an estimate"
    out: dict[str, Any] = {"fraction": found.fraction, "population": estimate.population, "journalist_from": where}
    return out | {"estimator": estimate.chosen, "population_uniques": dict(estimate.ways)}
