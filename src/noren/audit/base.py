"""The base of all attacks: the adversary's stated knowledge, a measure of success, a baseline, scenarios.

An attack is a small frozen object whose fields are its options. It runs on a case (a release, and at the holder's also
the original and its policy) and returns one result per target. What rests on the original is for the holder alone.
Attacks share what a case has read and computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from noren.audit.sample import MOST, ROWS, Sample, Times, View, counted_view, sample_of
from noren.audit.sets import Sets, estimated, published_sets
from noren.errors import QueryError
from noren.policy.policy import Policy
from noren.progress import Stage, quiet
from noren.release.release import Release, keep_cells
from noren.results import Results, make_frame, one_line, plain

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from noren.engines import Table


T = TypeVar("T")

HOLDER_ONLY = "computed from the original: for the holder only"
KNOWLEDGE = {
    "a person": "knows one person's quasi-identifiers",
    "the row": "knows which row is the person's",
    "more": "knows the method, who is in the table or further releases",
    "everybody else": "knows everybody else's secrets, which is rare",
}
"""What adversaries know, the least first: attacks run, and their results stand, in this order."""
ALONE = "Run it on one machine, without an engine"


@dataclass(frozen=True)
class Case:
    """The data that an attack may use. Without the original, these are the data of an outsider."""

    release: Release
    policy: Policy | None = None
    original: Any = None
    stage: Stage = quiet
    most: int = MOST
    """People, or rows, that are measured; of more, so many at random. 0 measures all."""
    counts: bool = False
    """Whether the store counts different rows elsewhere: attacks get these counts and no single row."""
    memory: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    """What one attack read or computed and another can use: the original is read once."""
    met: Callable[[], Table] | None = field(default=None, repr=False, compare=False)
    """The original as it met its policy, where somebody has read it already."""

    def __post_init__(self) -> None:
        if self.original is not None and self.policy is None:
            raise QueryError(
                "the original cannot be read without a policy.", hint="Give the policy that the release was made with."
            )
        if not self.release.records:
            raise QueryError("the release has no records, so there is nobody to attack.")
        if self.counts and self.original is not None:
            raise QueryError(
                "an attack on counts has no rows, so people of the original cannot be found in them.",
                hint=f"{ALONE}, or run it without the original.",
            )
        if not self.counts:
            object.__setattr__(self, "release", keep_cells(self.release))

    def remembered(self, key: Any, made: Callable[[], T]) -> T:
        """Return the cached object of this key, or make it."""
        if key not in self.memory:
            self.memory[key] = made()
        found: T = self.memory[key]
        return found

    def view(self, columns: Sequence[str]) -> View:
        """Return the published rows, or their distinct combinations of these columns if rows were counted."""
        if not self.counts:
            return View(self.release)
        return self.remembered(("view", tuple(columns)), lambda: counted_view(self.release, columns))

    @property
    def sets(self) -> dict[str, Sets]:
        """Return the published decoy sets of every column, if a row belongs to one person."""
        return self.remembered("sets", lambda: published_sets(self.release))

    def estimate(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return the joint distribution of some columns, as a recipient estimates it from the release."""
        return self.remembered(("estimate", *names), lambda: estimated(self.view(names).repeated(), names))

    @property
    def measured_rows(self) -> Sample:
        """The published rows that are measured."""
        return self.remembered("rows", lambda: sample_of(self.release.rows, self.most))

    def row_lines(self, times: Times = None, holder_only: bool = False) -> Lines:
        """Return the published rows that are measured; all if rows were counted."""
        some = self.measured_rows if times is None else sample_of(len(times), 0)
        return Lines("row", some.lines + 1, some, holder_only, times)

    def measured(self, people: int) -> Sample:
        """The people of the original who are measured."""
        return self.remembered(("sample", people), lambda: sample_of(people, self.most))


def make_lines(columns: Mapping[str, NDArray], called: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Make a frame of figures; `called` gives the labels of columns of codes (-1 for none)."""
    import polars as pl

    out = {}
    for name, figures in columns.items():
        if name in called:
            texts = pl.Series([*called[name], None], dtype=pl.String)
            out[name] = texts.gather(np.where(figures < 0, len(called[name]), figures))
        else:
            out[name] = pl.Series(figures).fill_nan(None) if figures.dtype.kind == "f" else pl.Series(figures)
    return pl.DataFrame(out)


@dataclass(frozen=True)
class Scenario:
    """One table that the adversary might have, and the figures of the attack on it."""

    name: str
    title: str
    by: Literal["person", "row"]
    """Lines of the frame: the original's people in their order, or the published rows, which are nobody's."""
    summary: Mapping[str, float]
    frame: pl.DataFrame
    holder_only: bool
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Confidence bounds of the figures that are simulated, or measured on a sample."""
    of: int | None = None
    """How many people or rows there are, where only a sample of them was measured."""

    @property
    def lines(self) -> int:
        """Number of people or rows that were measured; a line of the frame may represent several equal rows."""
        return int(self.frame[ROWS].sum()) if ROWS in self.frame.columns else self.frame.height

    def to_dict(self) -> dict[str, Any]:
        """Return the figures without the lines."""
        plain: dict[str, Any] = {"name": self.name, "title": self.title, "by": self.by, "lines": self.lines}
        plain |= {} if self.of is None else {"of": self.of}
        plain |= {"holder_only": self.holder_only, "summary": dict(self.summary)}
        return plain | ({"bounds": dict(self.bounds)} if self.bounds else {})


@dataclass(frozen=True)
class Lines:
    """The people, or the published rows, that an attack measures: the lines of its frames."""

    by: Literal["person", "row"]
    numbers: NDArray
    """Their numbers, from 1 on."""
    some: Sample
    holder_only: bool
    times: Times = None
    """How many published rows every line stands for, where they are counted."""

    def scenario(
        self,
        name: str,
        title: str,
        summary: Mapping[str, float],
        columns: Mapping[str, NDArray],
        shares: Sequence[str] = (),
        labels: Mapping[str, Sequence[str]] | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
    ) -> Scenario:
        """Make the scenario of these lines; `shares` get bounds if only a sample was measured."""
        head = {"record": self.numbers} | ({} if self.times is None else {ROWS: self.times})
        frame = make_lines(head | dict(columns), labels or {})
        more = self.some.bounds(summary, shares) | dict(bounds or {})
        return Scenario(name, title, self.by, summary, frame, self.holder_only, more, self.some.of)


@dataclass(frozen=True)
class AttackResult:
    """The result of one attack on one target."""

    attack: str
    target: tuple[str, ...]
    """The columns whose secrets are attacked."""
    adversary: str
    success: str
    baseline: Mapping[str, float]
    """The same figures before anything is published."""
    scenarios: tuple[Scenario, ...]
    titles: Mapping[str, str]
    """What the figures are called, those that a reader should see first."""
    measure: str
    """The column of the frames that is drawn as a distribution."""
    shares: tuple[str, ...]
    """Figures between 0 and 1 that are drawn as bars and written in percent."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the attack rests on: sizes, parameters, where the prior is from."""
    notes: tuple[str, ...] = ()
    knows: str = "more"
    """What the adversary knows, as `KNOWLEDGE` lists it."""

    def __repr__(self) -> str:
        count = f"{len(self.scenarios)} scenario{'' if len(self.scenarios) == 1 else 's'}"
        secret = "; holder only" if self.holder_only else ""
        return f"<AttackResult: {self.attack} on {one_line('+'.join(self.target), 50)}, {count}{secret}>"

    @property
    def holder_only(self) -> bool:
        return any(scenario.holder_only for scenario in self.scenarios)

    def scenario(self, name: str) -> Scenario:
        for found in self.scenarios:
            if found.name == name:
                return found
        raise QueryError(f"no scenario {name!r}.", hint=f"There are {', '.join(s.name for s in self.scenarios)}.")

    @property
    def shown(self) -> tuple[Scenario, ...]:
        """The scenarios to compare: people if the original is known, otherwise published rows."""
        people = tuple(scenario for scenario in self.scenarios if scenario.by == "person")
        return people or self.scenarios

    def to_dict(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "knows": self.knows,
            "target": list(self.target),
            "adversary": self.adversary,
            "success": self.success,
            "holder_only": self.holder_only,
            "facts": dict(self.facts),
            "baseline": dict(self.baseline),
            "scenarios": [scenario.to_dict() for scenario in self.scenarios],
            "notes": list(self.notes),
        }

    def records(self) -> pl.DataFrame:
        """Return the lines of all scenarios, one below the other."""
        import polars as pl

        parts = []
        for found in self.scenarios:
            head = {"attack": self.attack, "target": "+".join(self.target), "scenario": found.name, "by": found.by}
            marks = [pl.lit(text).alias(name) for name, text in head.items()]
            parts.append(found.frame.select(*marks, pl.lit(found.holder_only).alias("holder_only"), pl.all()))
        return pl.concat(parts, how="diagonal")

    def chart(self) -> Any:
        """Return a chart of the measure's distribution and the shares, for every scenario."""
        from noren.audit.chart import chart

        return chart(self)


class Attack(BaseModel, ABC):
    """An attack on a release. Its fields are the options, with help and range."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    adversary: ClassVar[str]
    """What the adversary knows."""
    success: ClassVar[str]
    """What is measured."""
    knows: ClassVar[str]
    """How much the adversary knows, as `KNOWLEDGE` lists it."""
    titles: ClassVar[Mapping[str, str]]
    """What the figures are called, those that a reader should see first."""
    truth_titles: ClassVar[Mapping[str, str]] = {"right": "right guess"}
    """The same of figures that rest on people's true values."""
    shares: ClassVar[tuple[str, ...]]
    """Figures between 0 and 1 that are drawn as bars and written in percent."""
    truth_shares: ClassVar[tuple[str, ...]] = ("right",)
    measure: ClassVar[str] = "belief"
    """The column of the frames that is drawn as a distribution."""
    needs_rows: ClassVar[str | None] = "it looks at single rows"
    """Why the counts of different rows do not suffice for it, as part of a sentence; None where they do."""

    name: str

    @classmethod
    def applies(cls, release: Release) -> str | None:
        """Return why the attack does not apply to this release, as part of a sentence; None if it applies."""
        return None

    @abstractmethod
    def run(self, case: Case) -> list[AttackResult]:
        """Run the attack and return one result per target; raise if there is nothing to attack."""

    def results(self, case: Case) -> list[AttackResult]:
        """Run the attack; raise if it needs rows and the case has only counts."""
        if case.counts and self.needs_rows is not None:
            raise QueryError(f"the {self.name} attack does not run on counts: {self.needs_rows}.", hint=f"{ALONE}.")
        return self.run(case)

    def demand(self, release: Release) -> None:
        """Raise if the release has nothing that this attack could use."""
        if (reason := self.applies(release)) is not None:
            raise self.refusal(reason)

    def refusal(self, reason: str) -> QueryError:
        """Return the error that explains why there is nothing to attack."""
        return QueryError(f"the {self.name} attack does not apply to this release: {reason}.")

    def make_result(
        self,
        target: Sequence[str],
        baseline: Mapping[str, float],
        scenarios: Sequence[Scenario],
        facts: Mapping[str, Any],
        notes: Iterable[str],
        truth: bool = False,
        titles: Mapping[str, str] | None = None,
        shares: tuple[str, ...] | None = None,
    ) -> AttackResult:
        """Return the result of this attack on one target; with `truth`, figures of right guesses are among them."""
        called = {**(self.titles if titles is None else titles), **(self.truth_titles if truth else {})}
        drawn = (*(self.shares if shares is None else shares), *(self.truth_shares if truth else ()))
        found, said = tuple(scenarios), tuple(notes)
        known = self.adversary, self.success, baseline
        return AttackResult(
            self.name, tuple(target), *known, found, called, self.measure, drawn, facts, said, self.knows
        )


COLUMNS: dict[str, type] = {
    "attack": str,
    "target": str,
    "scenario": str,
    "title": str,
    "by": str,
    "lines": int,
    "holder_only": bool,
}


@dataclass(frozen=True, repr=False, eq=False)
class Attacks(Results[AttackResult]):
    """The results of several attacks: what an adversary learns about every target.

    `frame` has one row per result and scenario: the number of people or rows that were measured, then the figures by
    name.
    """

    @property
    def holder_only(self) -> bool:
        """Whether some figure was computed from the original, so that only the holder may see it."""
        return any(result.holder_only for result in self)

    @property
    def frame(self) -> pl.DataFrame:
        found = [(result, scenario) for result in self for scenario in result.scenarios]
        figures = {name: float for _, scenario in found for name in scenario.summary if name not in COLUMNS}
        rows = (
            {**scenario.summary, "attack": result.attack, "target": "+".join(result.target)}
            | {"scenario": scenario.name, "title": scenario.title, "by": scenario.by}
            | {"lines": scenario.lines, "holder_only": scenario.holder_only}
            for result, scenario in found
        )
        return make_frame(COLUMNS | figures, rows)

    def chart(self) -> Any:
        """The charts of all results, one below the other."""
        from noren.audit.chart import chart

        return chart(*self)

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain data, for JSON; the lines about people and rows are in `records()` of each result."""
        return {"results": [plain(result.to_dict()) for result in self]}

    def _headline(self) -> str:
        if not self:
            return "nothing was attacked"
        names = ", ".join(dict.fromkeys(result.attack for result in self))
        targets = ", ".join(dict.fromkeys("+".join(result.target) for result in self))
        scenarios = sum(len(result.scenarios) for result in self)
        secret = "; holder only" if self.holder_only else ""
        count = f"{scenarios} scenario{'' if scenarios == 1 else 's'}"
        return f"{one_line(names, 30)} on {one_line(targets, 40)}, {count}{secret}"

    def _notes(self) -> tuple[str, ...]:
        notes = dict.fromkeys(f"{note}." for result in self for note in result.notes)
        return (*notes, *([f"Some of this {HOLDER_ONLY}."] if self.holder_only else []))


def order_attacks(attacks: Iterable[Attack]) -> list[Attack]:
    """Return the attacks in their order: those that need the least knowledge come first."""
    return sorted(attacks, key=lambda one: list(KNOWLEDGE).index(one.knows))
