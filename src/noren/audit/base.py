"""What all attacks have in common: the adversary's knowledge stated, a measure of success, a baseline, scenarios.

An attack is a small frozen object whose fields are its options. It runs on a case (a release, and at the holder's also
the original and its policy) and returns one result per target. What rests on the original is for the holder alone.

Several attacks on one case: in their order, and of a large release those beside the others that need none of them.

Most attacks share what a case has read and computed, and follow each other. One that looks at the published cells alone
and draws for a long time runs in a thread of its own meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from noren.ahead import Begun
from noren.audit.sample import MOST, ROWS, Sample, Times, View, counted_view, sample_of
from noren.audit.sets import Sets, estimated, published_sets
from noren.errors import QueryError
from noren.policy.policy import Policy
from noren.progress import Stage, quiet
from noren.release.kept import kept
from noren.release.release import Release
from noren.results import Results, make_frame, one_line, plain

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from noren.engines import Table


T = TypeVar("T")

HOLDER_ONLY = "rests on the original: for the holder only"
ALONE = "Run it on one machine, without an engine"


@dataclass(frozen=True)
class Case:
    """What an attack may look at. Without the original it is what an outsider has."""

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
                "how the original is written is not known.", hint="Give the policy that the release was made with."
            )
        if not self.release.records:
            raise QueryError("the release has no records, so there is nobody to attack.")
        if self.counts and self.original is not None:
            raise QueryError(
                "an attack on counts knows no single person, so the original cannot be looked up in them.",
                hint=f"{ALONE}, or leave out the original.",
            )
        if not self.counts:
            object.__setattr__(self, "release", kept(self.release))

    def remembered(self, key: Any, made: Callable[[], T]) -> T:
        """What was made before under this key, or is made now."""
        if key not in self.memory:
            self.memory[key] = made()
        found: T = self.memory[key]
        return found

    def view(self, columns: Sequence[str]) -> View:
        """The published rows, or the different ones of these columns where they are counted."""
        if not self.counts:
            return View(self.release)
        return self.remembered(("view", tuple(columns)), lambda: counted_view(self.release, columns))

    def demand_counts(self, attack: Attack) -> None:
        """Refuse an attack that counts do not suffice for."""
        if self.counts and attack.needs_rows is not None:
            raise QueryError(f"the {attack.name} attack does not run on counts: {attack.needs_rows}.", hint=f"{ALONE}.")

    @property
    def sets(self) -> dict[str, Sets]:
        """The published decoy sets of every column, where a row is one person's."""
        return self.remembered("sets", lambda: published_sets(self.release))

    def estimate(self, names: Sequence[str]) -> NDArray[np.float64]:
        """The distribution over some columns together, as anybody estimates it from the release."""
        return self.remembered(("estimate", *names), lambda: estimated(self.release, names))

    @property
    def measured_rows(self) -> Sample:
        """The published rows that are measured."""
        return self.remembered("rows", lambda: sample_of(self.release.rows, self.most))

    def measured_lines(self, times: Times) -> Sample:
        """The lines that are measured: of counted rows all."""
        return self.measured_rows if times is None else sample_of(len(times), 0)

    def measured(self, people: int) -> Sample:
        """The people of the original who are measured."""
        return self.remembered(("sample", people), lambda: sample_of(people, self.most))


def make_lines(columns: Mapping[str, NDArray], called: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Figures as a frame; codes (-1 for none) of the columns in `called` by what they are called."""
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
    """One table that the adversary might have had, and what the attack finds in it."""

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
        """How many people or rows were measured; a line of the frame may stand for several rows that look alike."""
        return int(self.frame[ROWS].sum()) if ROWS in self.frame.columns else self.frame.height

    def to_dict(self) -> dict[str, Any]:
        """The figures without the lines."""
        plain: dict[str, Any] = {"name": self.name, "title": self.title, "by": self.by, "lines": self.lines}
        plain |= {} if self.of is None else {"of": self.of}
        plain |= {"holder_only": self.holder_only, "summary": dict(self.summary)}
        return plain | ({"bounds": dict(self.bounds)} if self.bounds else {})


@dataclass(frozen=True)
class AttackResult:
    """What one attack gains about one target."""

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
        """The scenarios that are compared: people where the original is known, else published rows."""
        people = tuple(scenario for scenario in self.scenarios if scenario.by == "person")
        return people or self.scenarios

    def to_dict(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
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
        """All lines of all scenarios, one below the other."""
        import polars as pl

        parts = []
        for found in self.scenarios:
            head = {"attack": self.attack, "target": "+".join(self.target), "scenario": found.name, "by": found.by}
            marks = [pl.lit(text).alias(name) for name, text in head.items()]
            parts.append(found.frame.select(*marks, pl.lit(found.holder_only).alias("holder_only"), pl.all()))
        return pl.concat(parts, how="diagonal")

    def chart(self) -> Any:
        """The distribution of the measure and the shares, every scenario beside the others."""
        from noren.audit.chart import chart

        return chart(self)


class Attack(BaseModel, ABC):
    """A way to learn from a release what it should not tell. Fields are options, with help and range."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    adversary: ClassVar[str]
    """What the adversary knows."""
    success: ClassVar[str]
    """What is measured."""
    stands_apart: ClassVar[bool] = False
    """Whether it takes long and shares nothing with other attacks, so that it may run beside them."""
    needs_rows: ClassVar[str | None] = "it looks at single rows"
    """Why the counts of different rows do not suffice for it, as part of a sentence; None where they do."""

    name: str

    @classmethod
    def applies(cls, release: Release) -> str | None:
        """Why the attack has nothing to attack in this release, as part of a sentence; None where it applies."""
        return None

    @abstractmethod
    def run(self, case: Case) -> list[AttackResult]:
        """One result for every target. Raises where there is nothing to attack."""

    def demand(self, release: Release) -> None:
        """Refuse a release in which there is nothing to attack."""
        if (reason := self.applies(release)) is not None:
            raise self.refusal(reason)

    def refusal(self, reason: str) -> QueryError:
        """The error that says why there is nothing to attack."""
        return QueryError(f"the {self.name} attack does not apply to this release: {reason}.")

    def make_result(
        self,
        target: Sequence[str],
        baseline: Mapping[str, float],
        scenarios: Sequence[Scenario],
        titles: Mapping[str, str],
        shares: tuple[str, ...],
        facts: Mapping[str, Any],
        notes: Iterable[str],
        measure: str = "belief",
    ) -> AttackResult:
        """What this attack gains about one target."""
        found, said = tuple(scenarios), tuple(notes)
        known = self.adversary, self.success, baseline
        return AttackResult(self.name, tuple(target), *known, found, titles, measure, shares, facts, said)


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
    """What an adversary gains about every target.

    `frame` has one row per result and scenario: how many people or rows were looked at, then the figures by name.
    """

    @property
    def holder_only(self) -> bool:
        """Whether some figure rests on the original."""
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


LARGE = 500_000
"""Rows from which on it pays."""
Run = Callable[[], "list[AttackResult]"]


def runs(attacks: Sequence[Attack], case: Case) -> list[Run]:
    """For every attack how to get its results: it then runs, or has begun here. What went wrong is raised there."""
    begun = apart(attacks, case) if len(attacks) > 1 else {}
    return [begun.get(one.name) or partial(_run, one, case) for one in attacks]


def _run(attack: Attack, case: Case) -> list[AttackResult]:
    case.demand_counts(attack)
    return attack.run(case)


def apart(attacks: Sequence[Attack], case: Case) -> dict[str, Run]:
    """Those that stand apart, begun; of a release that is not large, none."""
    if case.release.rows < LARGE:
        return {}
    silent = replace(case, stage=quiet)  # two bars at once are none
    return {one.name: Begun(partial(_run, one, silent)) for one in attacks if one.stands_apart}
