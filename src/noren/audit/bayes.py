"""The Bayesian attack on decoy sets: how likely is each value, given a record's set and what is known besides.

First stands the adversary who combines all published columns of the record, exact ones, general ones and sets, with how
they go together learned from the other people of the release (`noren.estimates.belief`, as `belief` asks). Below,
to see where it comes from: how common the values are; how they go together with columns that are published exactly or
as general values; and the record's other sets. All of it can be estimated from the release by anybody, and that is what
an outsider's figures rest on. The holder's rest on the exact distributions, which no adversary knows better.

Which other columns tell most about a decoy column, by what is published alone.

For every pair of values the number of records whose cells hold both is compared with what independence would give;
the sum of squared deviations in standard units, less what chance contributes on average, ranks the columns. It needs
no estimate of the joint distribution, so that only the best columns are worth one.

What an adversary knows besides the sets of one column: distributions before the sets are seen, and other evidence.

From below: how common the values are; how they go with columns that are published exactly or as general values; what
the record's other sets say. What all published columns say at once is worked out in `noren.estimates.belief`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, tanh
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from noren.audit.base import Attack, AttackResult, Case, Scenario
from noren.audit.people import People, known_people
from noren.audit.sample import LEVEL, Sample, mean_bounds, wilson
from noren.audit.sets import (
    CERTAIN,
    SURE,
    TIE,
    Believed,
    ByRow,
    Sets,
    believe,
    constant,
    drawn_anew,
    drawn_statements,
    tabulated,
)
from noren.audit.targets import Place, key_statements, likelihood, place_people
from noren.errors import QueryError
from noren.estimates import believed
from noren.release.release import Release
from noren.statements import Cells, CodeCells, Design, Statement

Joint = Callable[[Sequence[str]], NDArray[np.float64]]
"""The distribution over some columns together."""


@dataclass(frozen=True)
class Knows:
    """What the adversary knows besides the column's own sets."""

    name: str
    title: str
    prior: ByRow
    evidence: ByRow
    epsilon: float
    """How much the sets together can tell: the sum of their epsilons."""


@dataclass(frozen=True)
class Attacked:
    """Records that are attacked: their sets, the codes of their other columns, and where distributions come from."""

    sets: Mapping[str, Sets]
    keys: Mapping[str, NDArray[np.int64]]
    """What columns say that are published exactly or as general values, by number."""
    joint: Joint
    shrink: float
    covers: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """(cells, values) of every column of general values: which values each of its cells covers."""
    of: int | None = None
    """Records that distributions come from, where these are a sample of them."""

    @property
    def records(self) -> int:
        """Records that distributions come from."""
        return len(next(iter(self.sets.values()))) if self.of is None else self.of

    def some(self, sample: Sample) -> Attacked:
        """The same of the records that are measured."""
        if sample.whole:
            return self
        sets = {name: one.take(sample.lines) for name, one in self.sets.items()}
        return replace(self, sets=sets, keys={name: sample[codes] for name, codes in self.keys.items()}, of=sample.n)


def knowledge_of(table: Attacked, name: str, given: Sequence[str], beside: str | None) -> Iterator[Knows]:
    """Everything that the adversary may know, from the overall distribution up."""
    own = table.sets[name]
    overall = table.joint([name])
    shown = f"{'published' if {*given} & {*table.covers} else 'exact'} {' and '.join(given)}"
    start, epsilon = constant(overall), own.design.epsilon
    yield Knows("overall", "overall distribution", start, own.likelihood, epsilon)
    known: ByRow = start
    told: ByRow = own.likelihood
    if given:
        known = conditional(table, name, given, overall)
        yield Knows("given", f"with {shown}", known, own.likelihood, epsilon)
    if beside is not None:
        other = table.sets[beside]
        told = _both(own, other, table.joint([name, beside]))
        epsilon = epsilon + other.design.epsilon
        yield Knows("beside", f"with the sets of {beside}", start, told, epsilon)
    if given and beside is not None:
        yield Knows("together", f"with {shown} and the sets of {beside}", known, told, epsilon)


def conditional(table: Attacked, name: str, given: Sequence[str], overall: NDArray[np.float64]) -> ByRow:
    """The distribution among records with the same given values, with some of the overall one mixed in."""
    joint = table.joint([name, *given])
    for axis, column in enumerate(given, 1):
        if column in table.covers:
            joint = np.moveaxis(np.tensordot(table.covers[column], joint, (1, axis)), 0, axis)
    sizes = joint.shape[1:]
    counts = joint.reshape(len(overall), -1).T * table.records
    held = counts.sum(axis=1, keepdims=True)
    weight = max(table.shrink, 1e-9)
    shares = (counts + weight * overall) / (held + weight)
    slot = np.ravel_multi_index([table.keys[column] for column in given], sizes)
    return lambda rows: np.asarray(shares[slot[rows]])


def _both(own: Sets, other: Sets, joint: NDArray[np.float64]) -> ByRow:
    """The likelihood of both sets of a record: the other's, averaged over what the own value says about it."""
    mass = joint.sum(axis=1, keepdims=True)
    turn = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
    return lambda rows: np.asarray(own.likelihood(rows) * (other.likelihood(rows) @ turn.T))


def remembered(joint: Joint) -> Joint:
    """The same distribution is worked out once."""
    known: dict[tuple[str, ...], NDArray[np.float64]] = {}

    def found(names: Sequence[str]) -> NDArray[np.float64]:
        key = tuple(names)
        if key not in known:
            known[key] = joint(names)
        return known[key]

    return found


ROWS = 1 << 16
"""Rows that are looked at for the choice."""
MOST_VALUES = 256
MOST_CELLS = 12_000
"""Cells of a joint distribution that is worth estimating."""
CLEARLY = 6.0
"""Standard deviations of chance, at least, before two columns have something to do with each other."""
LEAST_RECORDS = 25
"""Records that a combination of exact values should have on average."""


@dataclass
class Correlates:
    """The columns of a release as indicators of values."""

    sets: Mapping[str, Sets]
    keys: Mapping[str, NDArray[np.int64]]
    """The codes of columns that are published exactly, or as general values."""
    sizes: Mapping[str, int]
    """How many different codes every one of them may have."""
    widths: Mapping[str, int]
    """How many values it takes in a joint distribution."""
    _made: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    @property
    def records(self) -> int:
        return min(ROWS, len(next(iter(self.sets.values()))))

    def _indicators(self, name: str) -> NDArray[np.float32]:
        """(rows, values): membership in standard units, so that sums of products are too."""
        if name not in self._made:
            one = self.sets[name]
            self._made[name] = _standard(members(one.codes[: self.records], one.design.d))
        return self._made[name]

    def with_sets(self, column: str, other: str) -> float:
        """How much more two decoy columns have to do with each other than chance explains, per record."""
        mine, theirs = self._indicators(column), self._indicators(other)
        live = int(mine.any(axis=0).sum()) * int(theirs.any(axis=0).sum())
        return self._excess(mine.T @ theirs, live)

    def with_key(self, column: str, codes: NDArray[np.int64], size: int) -> float:
        """The same for a column of codes, one for every record."""
        mine, n = self._indicators(column), self.records
        share = np.bincount(codes, minlength=size) / n
        spread = np.sqrt(share * (1 - share))
        scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-9)
        together = np.stack([np.bincount(codes, one, minlength=size) for one in mine.T]) * scale
        return self._excess(together, int(mine.any(axis=0).sum()) * int((scale > 0).sum()))

    def _excess(self, together: NDArray, live: int) -> float:
        """0 unless the sum of squares is clearly more than the number of cells, which chance gives on average."""
        found = float((together.astype(np.float64) ** 2).sum()) / self.records - live
        return found / self.records if found > CLEARLY * (2 * live) ** 0.5 else 0.0

    def beside(self, column: str) -> str | None:
        """The decoy column that tells most about another; none if chance explains all."""
        d = self.sets[column].design.d
        fit = [n for n, one in self.sets.items() if n != column and one.design.d * d <= MOST_CELLS and _tells(one)]
        if d > MOST_VALUES:
            return None
        found = {name: self.with_sets(column, name) for name in fit}
        best = max(found, key=lambda name: found[name], default=None)
        return best if best is not None and found[best] > 0 else None

    def given(self, column: str) -> tuple[str, ...]:
        """One column of codes, or two, that tell most about a decoy column."""
        d = self.sets[column].design.d
        if d > MOST_VALUES:
            return ()
        n = len(self.sets[column])
        fit = [m for m, size in self.sizes.items() if 1 < size <= min(MOST_VALUES, n / LEAST_RECORDS)]
        fit = [name for name in fit if self.widths[name] * d <= MOST_CELLS]
        heads = {name: self.keys[name][: self.records] for name in fit}
        alone = {name: self.with_key(column, heads[name], self.sizes[name]) for name in fit}
        first = max(alone, key=lambda name: alone[name], default=None)
        if first is None or alone[first] <= 0:
            return ()
        best: tuple[str, ...] = (first,)
        gain = alone[first]
        for other in fit:
            cells = self.sizes[first] * self.sizes[other]
            many = self.widths[first] * self.widths[other] * d
            if other == first or many > MOST_CELLS or cells > n / LEAST_RECORDS:
                continue
            found = self.with_key(column, heads[first] * self.sizes[other] + heads[other], cells)
            if found > gain:
                best, gain = (first, other), found
        return best


def _tells(one: Sets) -> bool:
    """Whether the sets of a column say anything at all."""
    return one.design.eta < one.design.d and one.design.p > 0


def members(codes: NDArray, d: int) -> NDArray[np.float32]:
    """(rows, values): 1 where a row of codes holds a value."""
    out = np.zeros((len(codes), d), np.float32)
    np.put_along_axis(out, codes.astype(np.int64), np.float32(1), axis=1)
    return out


def _standard(indicators: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean 0 and variance 1 for every value that some and not all rows hold, 0 for the others."""
    share = indicators.mean(axis=0, dtype=np.float64)
    spread = np.sqrt(share * (1 - share))
    scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-9)
    return ((indicators - share) * scale).astype(np.float32)


NEAR = 16
"""Groups of general values that are told apart when columns are chosen."""
SHARES = ("sure", "above_half", "above_1_l", "mean_belief")
TITLES = {
    "mean_belief": "mean belief",
    "max_belief": "largest belief",
    "certain": "certain",
    "sure": "above 0.9",
    "above_half": "above 1/2",
    "mean_before": "without the sets",
}
TRUTH_TITLES = {"right": "right guess", "right_before": "right without the sets"}


class Bayes(Attack):
    """Bayes' rule with the published design as likelihood."""

    adversary: ClassVar[str] = (
        "knows which row is a person's and reads all its published columns, knows the published design, and has "
        "learned from the other people how columns go together; has no secret"
    )
    success: ClassVar[str] = (
        "the largest belief in one value of a record; with the original also how often the likeliest value is true"
    )
    needs_rows: ClassVar[str | None] = (
        "it reads all columns of a row together, and of these nearly every row has others"
    )

    name: Literal["bayes"] = "bayes"
    column: str | None = Field(default=None, description="The decoy column that is attacked; by default all.")
    given: tuple[str, ...] | None = Field(
        default=None,
        max_length=2,
        description="Columns published exactly or as general values, at most two; by default those that tell most.",
    )
    beside: str | None = Field(default=None, description="Another decoy column; by default the one that tells most.")
    shrink: float = Field(
        default=25.0,
        ge=0,
        description="Records of the overall distribution that are mixed into that of every combination of given "
        "values, so that a rare one is not believed blindly.",
    )

    @field_validator("given", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @classmethod
    def applies(cls, release: Release) -> str | None:
        """Why there is nothing to attack; None if there is."""
        if release.rows_per_record > 1:
            return "it publishes the members of sets in shuffled rows, and nobody sees which belong together"
        if not drawn_statements(release):
            return "it publishes no decoy sets"
        return None

    def run(self, case: Case) -> list[AttackResult]:
        release = case.release
        self.demand(case.release)
        rows = self._rows(case)
        some = case.measured_rows
        targets = list(rows.sets) if self.column is None else [self.column]
        self._check(rows, targets)
        shown = rows.some(some)
        correlates = _correlates(release, shown)
        people = None if case.original is None else known_people(case)
        found = None if people is None else self._people(release, rows, people, case.measured(people.n))
        out = []
        statements, cells = _readable(release, found, some)
        with case.stage("Attacking sets", len(targets)) as progress:
            for name in targets:
                given = correlates.given(name) if self.given is None else self.given
                beside = correlates.beside(name) if self.beside is None else self.beside
                everything = _everything(name, statements, cells, found)
                out.append(self._result(name, shown, found, given, beside, everything, some))
                progress(1)
        return out

    def _check(self, rows: Attacked, targets: Sequence[str]) -> None:
        for what, names, known in (
            ("decoy column", targets, rows.sets),
            ("exact or general column", self.given or (), rows.keys),
            ("decoy column", () if self.beside is None else (self.beside,), rows.sets),
        ):
            strange = [name for name in names if name not in known]
            if strange:
                raise QueryError(f"the release has no {what} {strange[0]!r}.", hint=f"It has {', '.join(known)}.")

    def _rows(self, case: Case) -> Attacked:
        """The published rows, and what anybody can estimate."""
        release = case.release
        statements = key_statements(release)
        cells = release.cells([one.name for one in statements]) if statements else {}
        keys, covers = {}, {}
        for one in statements:
            if one.is_exact:
                keys[one.name] = one.key(cells[one.name])
            else:
                distinct, keys[one.name] = cells[one.name].distinct()
                covers[one.name] = likelihood(one, distinct).dense(one.d)
        return Attacked(case.sets, keys, case.estimate, self.shrink, covers)

    def _people(self, release: Release, rows: Attacked, people: People, who: Sample) -> Subjects:
        """Everybody with the sets that are recognisably theirs, or with sets drawn anew."""
        place = place_people(release, people, who)
        truth = {name: people.truth(one.statement, place.who) for name, one in rows.sets.items()}
        drawn = drawn_anew(rows.sets, truth)
        mine = np.flatnonzero(place.recognised)
        sets = {name: one.replaced(mine, rows.sets[name], place.row[mine]) for name, one in drawn.items()}
        keys = {
            one.name: people.truth(one, place.who) if one.is_exact else rows.keys[one.name][place.row]
            for one in key_statements(release)
        }

        def joint(names: Sequence[str]) -> NDArray[np.float64]:
            whose = place.who if who.whole else slice(None)
            codes = [people.published(release.column(name))[whose] for name in names]
            return tabulated(codes, [release.column(name).d for name in names])

        table = Attacked(sets, keys, remembered(joint), self.shrink, rows.covers, who.of)
        return Subjects(table, truth, place, who)

    def _result(
        self,
        name: str,
        rows: Attacked,
        people: Subjects | None,
        given: tuple[str, ...],
        beside: str | None,
        everything: tuple[Believed, Mapping[str, float]],
        some: Sample,
    ) -> AttackResult:
        own = rows.sets[name]
        truth = None if people is None else people.truth[name]
        facts: dict[str, Any] = {"values": own.design.d, "l": own.design.eta, "uniform_belief": 1 / own.design.eta}
        facts |= {"epsilon": own.design.epsilon, "given": list(given), "beside": beside, "shrink": self.shrink}
        limits = {}
        table = rows if people is None else people.table
        place = None if people is None else people.place
        measured = some if people is None else people.who
        whole, used = everything
        others = [one for one in (*rows.keys, *rows.sets) if one != name]
        scenarios = [_scenario("all", "all published columns", whole, own, place, measured)]
        for one in knowledge_of(table, name, given, beside):
            found = believe(len(table.sets[name]), own.design.d, one.prior, one.evidence, truth)
            scenarios.append(_scenario(one.name, one.title, found, own, place, measured))
            limits[one.name] = tanh(one.epsilon / 4)
        if place is not None:
            public = next(knowledge_of(rows, name, (), None))
            found = believe(len(own), own.design.d, public.prior, public.evidence)
            scenarios.append(_scenario(public.name, public.title, found, own, None, some))
            facts["recognised"] = float(place.recognised.mean())
        lead = scenarios[0].summary
        facts["all_columns"] = {
            "columns": list(others),
            "used": dict(used),
            "mean_belief": lead["mean_belief"],
            "sure": lead["sure"],
        }
        facts["all_columns"] |= {key: lead[key] for key in ("right", "right_before") if truth is not None}
        facts |= {"prior": "the original" if people is not None else "an estimate from the release"}
        facts["largest_move_allowed"] = limits
        return self.make_result(
            target=(name,),
            baseline=_baseline(table.joint([name]), own.design.eta, truth),
            scenarios=scenarios,
            titles=TITLES | (TRUTH_TITLES if truth is not None else {}),
            shares=(*SHARES, *(("right",) if truth is not None else ())),
            facts=facts,
            notes=tuple(_notes(own.design, scenarios, facts, place, measured)),
        )


@dataclass(frozen=True)
class Subjects:
    """The people of the original as records that are attacked, with their secrets."""

    table: Attacked
    truth: Mapping[str, NDArray[np.int64]]
    place: Place
    who: Sample


def _readable(release: Release, people: Subjects | None, some: Sample) -> tuple[list[Statement], dict[str, Cells]]:
    """The columns that are combined: of the published rows, or of the people as they stand in the release."""
    if people is None:
        statements = [s for s in release.statements if s.terms is None and s.rows_per_record == 1]
        cells = release.cells([s.name for s in statements])
        return statements, cells if some.whole else {name: part.take(some.lines) for name, part in cells.items()}
    keys, table = key_statements(release), people.table
    cells = {name: one.cells for name, one in table.sets.items()}
    general = [s.name for s in keys if not s.is_exact]
    shown = release.cells(general) if general else {}
    for one in keys:
        row = people.place.row
        cells[one.name] = CodeCells(one.d, table.keys[one.name]) if one.is_exact else shown[one.name].take(row)
    return [s for s in release.statements if s.name in cells], cells


def _everything(
    name: str, statements: Sequence[Statement], cells: Mapping[str, Cells], people: Subjects | None
) -> tuple[Believed, Mapping[str, float]]:
    """What all published columns of a record say together, and the columns that tell it."""
    truth = None if people is None else people.truth[name]
    found = believed(name, statements, cells, truth=truth, knows_row=True, without=True)
    assert found is not None
    assert found.without is not None
    statement = next(one for one in statements if one.name == name)
    left = statement.spread(cells[name])
    before = found.without
    return Believed(
        found.top,
        found.belief,
        before.belief,
        left,
        found.moved,
        found.truth_belief,
        before.truth_belief,
        found.right,
        before.right,
    ), found.used


def _scenario(name: str, title: str, found: Believed, own: Sets, place: Place | None, measured: Sample) -> Scenario:
    import polars as pl

    summary = found.summary(own.design.eta)
    bounds = measured.bounds(summary, SHARES)
    if place is None:
        frame = found.frame(measured.lines + 1, own.labels)
        return Scenario(name + "-rows", title, "row", summary, frame, False, bounds, measured.of)
    frame = found.frame(place.who + 1, own.labels).with_columns(recognised=pl.Series(place.recognised))
    assert found.right is not None
    assert found.truth_belief is not None
    n = len(found.right)
    bounds["right"] = wilson(summary["right"], n)
    bounds["mean_truth_belief"] = mean_bounds(
        summary["mean_truth_belief"], float(found.truth_belief.std() / max(1, n) ** 0.5)
    )
    return Scenario(name, title, "person", summary, frame, True, bounds, measured.of)


def _baseline(overall: NDArray[np.float64], l: int, truth: NDArray | None) -> dict[str, float]:  # noqa: E741
    """The figures of the overall distribution alone."""
    peak = float(overall.max())
    out = {
        "mean_belief": peak,
        "max_belief": peak,
        "mean_before": peak,
        "certain": float(peak >= CERTAIN),
        "sure": float(peak > SURE + TIE),
        "above_half": float(peak > 0.5 + TIE),
        "above_1_l": float(peak > 1 / l + TIE),
        "mean_moved": 0.0,
        "max_moved": 0.0,
    }
    if truth is not None:
        best = overall >= peak * (1 - TIE)
        right = float(best[truth].mean() / best.sum())
        belief = float(overall[truth].mean())
        out |= {"right": right, "right_before": right, "mean_truth_belief": belief, "mean_truth_before": belief}
    return out


def _notes(
    design: Design, scenarios: Sequence[Scenario], facts: Mapping[str, Any], place: Place | None, measured: Sample
) -> Iterator[str]:
    lead, first = scenarios[0].summary, scenarios[1]
    told = facts["all_columns"]
    text = f"from all published columns of a record {lead['sure']:.1%} of the secrets are believed above {SURE:g}"
    text += f", from the own set alone {first.summary['sure']:.1%}"
    if told["used"]:
        ranked = sorted(told["used"], key=lambda name: -told["used"][name])
        text += f"; most is told by {', '.join(ranked[:3])}"
    yield text
    yield from measured.note("rows" if place is None else "people")
    above = first.summary["above_1_l"]
    yield (
        f"a set of {design.eta} equally likely values would leave every belief at 1/{design.eta}; with the overall "
        f"distribution {above:.1%} of records have a value that is believed more"
    )
    if facts["epsilon"] < inf:
        moved, limit = first.summary["max_moved"], facts["largest_move_allowed"][first.name.split("-")[0]]
        yield (
            f"no set by itself can move anybody's beliefs by more than tanh(epsilon/4) = {limit:.3f}; the largest move "
            f"is {moved:.3f}"
        )
    if place is not None:
        yield (
            f"the sets of {facts['recognised']:.1%} of the people are their own, recognised by {place.by}; those of "
            f"the others are drawn anew by the published design; bounds are {LEVEL:.0%}, of Wilson for right guesses"
        )
        if place.lost:
            yield f"{measured.count(place.lost)} of the people fit no published record and are left out here"
    if "right" in told:
        yield (
            f"who reads all published columns at once guesses {told['right']:.1%} of the people right, and "
            f"{told['right_before']:.1%} without the record's own sets"
        )


def _correlates(release: Release, rows: Attacked) -> Correlates:
    """What the other columns have to do with each other; many general values are taken together where they lie near."""
    codes, sizes, widths = dict(rows.keys), {}, {}
    for one in key_statements(release):
        covers = rows.covers.get(one.name)
        sizes[one.name] = widths[one.name] = one.d
        if covers is None:
            continue
        sizes[one.name], widths[one.name] = len(covers), max(covers.shape)
        if len(covers) > NEAR:
            middle = (covers @ np.arange(one.d) / covers.sum(axis=1))[codes[one.name]]
            codes[one.name] = np.searchsorted(np.quantile(middle, np.arange(1, NEAR) / NEAR), middle)
            sizes[one.name] = NEAR
    return Correlates(rows.sets, codes, sizes, widths)
