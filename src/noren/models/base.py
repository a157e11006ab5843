"""The base of privacy models and of their checks.

A model says everything about itself in one file: its parameters, what it needs to know about a column, how it is
checked on each kind of cell, what searches may rely on, which figure `measure` reports, and what it promises in words.
A check sees only published cells, batch by batch, plus what the evidence says about the design and, for the holder,
about the original. It shares no code with the method that made the cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from noren.errors import ModelDoesNotApply, ReleaseError, list_columns
from noren.models.verdict import Basis, Verdict
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.statements import CellBatch, Statement

if TYPE_CHECKING:
    from noren.models.classes import Classes, PeopleValues

Need = Literal["order", "tree", "distance", "prior", "knowledge"]
QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)


@dataclass(frozen=True)
class Overall:
    """The distribution of a column in the whole table, and its source."""

    shares: NDArray[np.float64]
    basis: Basis
    std_error: NDArray[np.float64] | None = None
    """Standard errors of the shares, where they are estimated."""
    people: PeopleValues | None = None
    """Who has which value, where people with several rows are published in groups."""


@dataclass(frozen=True)
class Evidence:
    """The evidence for a verdict besides the cells, for one pass over them."""

    columns: Mapping[str, Statement]
    overall: Mapping[str, Overall]
    people: bool = False
    """Whether the batches say whose row each is, so that people are counted and not rows."""
    _classes: dict[Any, Classes] = field(default_factory=dict, init=False, repr=False, compare=False)

    def exact_columns(self) -> tuple[str, ...]:
        """Return the columns published exactly, which link the rows of one person."""
        return tuple(name for name, column in self.columns.items() if column.is_exact)

    def quasi_identifiers(self, apart_from: str = "") -> tuple[str, ...]:
        """Return the columns by which a person could be found, except one."""
        return tuple(name for name, column in self.columns.items() if column.role in QUASI and name != apart_from)

    def secrets(self) -> tuple[Statement, ...]:
        """Return the columns that need protection."""
        return tuple(column for column in self.columns.values() if column.role.needs_requirement)

    def classes(self, column: str | None = None, keys: Sequence[str] | None = None) -> Classes:
        """Return the classes in which a sensitive column is checked; with None, the classes without a sensitive column.

        Checks that ask for the same classes share them, so that every batch is grouped once; the classes alone are
        those of a column that was asked for before. Raises ModelDoesNotApply where a column that should define the
        classes is published in sets.
        """
        from noren.models.classes import make_classes

        if keys is None:
            own = column is not None and self.columns[column].is_class
            keys = () if own else self.quasi_identifiers(column or "")
        wanted = (column, tuple(keys))
        if wanted not in self._classes:
            same = [found for (_, other), found in self._classes.items() if column is None and other == wanted[1]]
            self._classes[wanted] = same[0] if same else make_classes(self, column, tuple(keys))
        return self._classes[wanted]


class Accumulator(ABC):
    """A protocol: gathers evidence from batches of cells; two accumulators of parts of a table can be merged."""

    needs: tuple[str, ...]
    """The columns it must see."""

    @abstractmethod
    def observe(self, batch: CellBatch) -> None:
        """Add the cells of some records."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Add the evidence of another accumulator of the same kind."""


class Check(Accumulator):
    """Gathers evidence about one column and concludes with a verdict."""

    show: int = 0
    """How many shortfalls the verdict is to name."""

    def __init__(self, model: Any, column: str) -> None:
        self.model = model
        self.column = column
        self.needs = (column,)
        self.records = 0
        self.breaches = 0

    def merge(self, other: Self) -> None:
        """Add the counts of another part of the table."""
        self.records += other.records
        self.breaches += other.breaches

    @property
    def parts(self) -> Sequence[Accumulator]:
        """Return the accumulators of the check: itself, or one that several checks share."""
        return (self,)

    @abstractmethod
    def verdict(self) -> Verdict: ...

    def conclude(
        self,
        achieved: float,
        holds: bool | None,
        basis: Basis,
        records: int,
        breaches: int,
        statement: str,
        **more: Any,
    ) -> Verdict:
        """Return the verdict on the check's column."""
        given = {"required": self.model.required, **more}
        return Verdict(
            model=self.model.model,
            column=self.column,
            achieved=achieved,
            holds=holds,
            basis=basis,
            records=records,
            breaches=breaches,
            statement=statement,
            **given,
        )

    def of_rows(self, verdict: Verdict) -> Verdict:
        """Return the remark of a verdict if people may have several rows, which the release does not link."""
        return verdict


Probes = Sequence[Mapping[str, Any]]
"""Parameters with which a model is measured."""


class SearchRule(NamedTuple):
    """A requirement in the form that searches of methods use: the rule of the kernel, and its two numbers."""

    rule: str
    first: float
    second: float = 0.0


class Promise(NamedTuple):
    """The guarantee of a requirement in plain words, and what it does not cover."""

    says: str
    leaves_open: str


NAMED_COLUMNS = 6
"""Columns that a sentence names; of more, the last are counted."""
CLASS = "Among the records that match a person"
KNOWS_SHARES = "It does not limit an adversary who knows the frequencies of the values or can rule some of them out."


class Model(BaseModel, ABC):
    """A privacy requirement on one or several columns, each judged separately."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    on: tuple[str, ...] = Field(min_length=1, description="The column, or the columns, that must be protected.")

    @field_validator("on", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("on")
    @classmethod
    def _distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("on names a column twice")
        return value

    parameter: ClassVar[str] = "l"
    """The field that a verdict compares with."""
    about: ClassVar[Literal["columns", "classes", "terms", "release"]] = "columns"
    """Whether it protects the columns it names, what classes they form, what their terms are
    linked to, or is judged on the whole release: no method looks for it, and it protects nothing by itself."""
    coarsening_preserves: ClassVar[bool]
    """Whether two classes that satisfy the model, put together, satisfy it, the rest of the release being the same."""
    higher_is_safer: ClassVar[bool] = True
    """Whether the worst figure is the smallest, or the largest."""
    relative: ClassVar[bool] = False
    """Whether something is compared with the whole table, which dropping records would change."""
    limits_share: ClassVar[bool] = False
    """Whether it limits the share of one value in a class, and so what somebody who finds the class believes."""
    together: ClassVar[bool] = False
    """Whether several columns are taken together; else the model speaks of each on its own."""
    invariant: ClassVar[bool] = False
    """Whether people must stay among the same values in every release, which a register tells."""
    separates: ClassVar[bool] = False
    """Whether the values of a published set must lie apart, as `separation` says."""
    knows_shares: ClassVar[bool] = False
    """Whether it bounds somebody who knows public shares of the values, which `shares_of` gives."""
    counts_values: ClassVar[bool] = False
    """Whether a published set must hold enough different values, so that it speaks of parts of tuples as well."""
    probing: ClassVar[Probes] = ()
    """Parameters with which it is measured on every column."""
    figure_ignores: ClassVar[frozenset[str]] = frozenset()
    """Parameters that do not change the figure that is measured."""
    grounds: ClassVar[frozenset[str]] = frozenset()
    """Cells that it speaks about by a `check` of its own, as the reference calls them."""
    of_mechanism: ClassVar[bool] = False
    """Whether it bounds what the rule of a method tells: no method looks for it, and only the original settles it."""
    hopeless: ClassVar[float | None] = None
    """A figure that no parameter reaches: larger parameters need not be measured then."""

    # ------------------------------------------------------------------ parameters

    @property
    def required(self) -> float:
        """Return the required value, which a verdict compares with the achieved one."""
        return float(getattr(self, self.parameter))

    @property
    def stands(self) -> int:
        """The knowledge of the adversary against whom the model protects: 0 looks for a row, 1 counts values in a class
        or a set, 2 also knows their frequencies, 3 reads all published columns."""
        return {"classes": 0, "release": 3}.get(self.about, 2 if self.relative else 1)

    @property
    def identity(self) -> str:
        """Return the identity of the requirement. Two requirements with the same identity on one column differ only in
        strength."""
        return self.model

    def parameters(self) -> dict[str, Any]:
        """Return the parameters without name and columns."""
        return self.model_dump(mode="json", exclude={"model", "on"})

    @property
    def needs(self) -> frozenset[Need]:
        """Return what the model needs to know about a column besides its values: an order, a tree, a distance or a
        prior."""
        return frozenset()

    @property
    def holds_of_parts(self) -> bool:
        """Return whether a bound for tuples also holds for their parts."""
        return False

    # ------------------------------------------------------------------ checking

    def check(self, statement: Statement, evidence: Evidence) -> Check:
        """Return the check of one column; raise ModelDoesNotApply for cells that the model cannot judge."""
        found: Check = statement.judged_by(self, evidence)
        return found

    def checks(self, evidence: Evidence) -> list[Check]:
        """Return all checks of the requirement."""
        return [self.check(evidence.columns[name], evidence) for name in self.on]

    def judge_classes(self, statement: Statement, evidence: Evidence) -> Check:
        raise self.refuses(statement)

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        raise self.refuses(statement)

    def judge_members(self, statement: Statement, evidence: Evidence) -> Check:
        raise self.refuses(statement)

    def judge_changed(self, statement: Statement, evidence: Evidence) -> Check:
        raise self.refuses(statement)

    def judge_terms(self, statement: Statement, evidence: Evidence) -> Check:
        raise self.refuses(statement)

    def judge_open(self, statement: Statement, evidence: Evidence) -> Check:
        raise self.refuses(statement)

    @property
    def judges_sets(self) -> bool:
        """Whether the model can judge a column that is published as sets."""
        return type(self).judge_sets is not Model.judge_sets

    @property
    def judges_changed(self) -> bool:
        """Whether the model can judge a column whose values were changed at random."""
        return type(self).judge_changed is not Model.judge_changed

    @property
    def judges_classes(self) -> bool:
        """Whether the model can judge classes of records."""
        return type(self).judge_classes is not Model.judge_classes

    @property
    def judges_left_out(self) -> bool:
        """Whether the model can judge suppressed people; models of drawn cells cannot."""
        return (self.judges_classes or self.about == "terms") and not self.of_mechanism

    def left_out_checks(self, evidence: Evidence) -> list[Check]:
        """Return the checks of the suppressed people, who are one class with the values of the original."""
        return self.checks(evidence)

    def refuses(self, statement: Statement, because: str = "") -> ModelDoesNotApply:
        """Return the error for a column that the model cannot judge."""
        hints = []
        if self.judges_sets or type(self).judge_members is not Model.judge_members:
            hints.append("columns published as sets of possible values")
        if self.judges_classes:
            hints.append("classes of records with equal quasi-identifiers, or on groups")
        hint = f"It is checked on {', and on '.join(hints)}."
        if self.judges_classes and statement.design is not None:
            hint += ' Methods that form them are "sweep", "mondrian", "incognito" and "anatomy".'
        if self.about == "terms":
            hint = "It is checked on columns of the role 'quasi-sensitive'."
        return ModelDoesNotApply(
            f"{self.model} makes no statement about column {statement.name!r}, which is {statement.words}{because}.",
            hint=hint,
        )

    # ------------------------------------------------------------------ what methods may rely on

    @property
    def least_set_size(self) -> int:
        """Return the smallest set size that the model permits; 1 if any size is permitted."""
        return ceil(self.required) if self.judges_sets else 1

    @property
    def most_belief(self) -> float:
        """Return the largest belief in one value of a set that the model permits under a uniform prior."""
        return 1.0

    @property
    def epsilon_each(self) -> float:
        """Return the largest epsilon of one column's draw at which the model holds for every distribution; infinite if
        any does."""
        return inf

    @property
    def epsilon_together(self) -> float:
        """Return the largest sum of the epsilons of its columns' draws; infinite if it does not limit the sum."""
        return inf

    @property
    def least_class_size(self) -> int:
        """Return the smallest class of records that the model permits, whatever their secrets."""
        return 1

    @property
    def largest_share(self) -> float | None:
        """Return the largest share of one value that it permits in a class; None if it sets no limit."""
        return None

    @property
    def search_rule(self) -> SearchRule | None:
        """Return the rule for searches of methods that form classes; None if they cannot meet the model."""
        return None

    @property
    def met_by(self) -> str:
        """Return the name of a method that can meet the model; empty if there is none."""
        if self.about == "terms":
            return "suppress"
        if self.judges_sets:
            return "decoys"
        if self.judges_changed:
            return "pram"
        return "mondrian" if self.search_rule is not None else ""

    @property
    def method_hint(self) -> str:
        """Return the hint for a method that cannot meet the model."""
        if self.met_by:
            return f'Use [method] name = "{self.met_by}".'
        return "No method looks for this model: give it a search_rule, or a judge_sets."

    def separation(self, column: Column) -> tuple[NDArray[np.float64], float]:
        """Return the distances between the values of a column, and the distance that values of one set must have."""
        raise NotImplementedError(self.model)

    def shares_of(self, column: Column) -> NDArray[np.float64]:
        """Return the public shares of a column's values that an adversary may know."""
        raise NotImplementedError(self.model)

    # ------------------------------------------------------------------ measuring

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        """Return the model with arbitrary parameters, to measure what a column (with None: the table) reaches."""
        return [] if statement is None else [cls(on=statement.name, **given) for given in cls.probing]

    @property
    def measured_parameter(self) -> str:
        """Return the parameter that `measuring` gives."""
        return self.parameter

    def measuring(self, evidence: Evidence) -> Check:
        """Return the check that measures the parameter that a table reaches."""
        (check,) = self.checks(evidence)
        return check

    # ------------------------------------------------------------------ words

    @abstractmethod
    def promise(self, names: str, sets: bool) -> Promise:
        """Return what is guaranteed about these columns, and what is not; `sets` says that they are published as
        sets."""

    def promise_about(self, columns: Sequence[str], sets: bool) -> Promise:
        """Return the promise about these columns."""
        if len(columns) > NAMED_COLUMNS:
            columns = (*columns[: NAMED_COLUMNS - 1], f"{len(columns) - NAMED_COLUMNS + 1} more columns")
        names = ", ".join(columns[:-1]) + " and " + columns[-1] if len(columns) > 1 else "".join(columns)
        return self.promise(f"each of {names}" if len(columns) > 1 and not self.together else names, sets)


class Judgement:
    """The checks of some requirements, with their accumulators."""

    def __init__(self, checks: Sequence[Check], show: int = 0, several: bool = False) -> None:
        self.checks = list(checks)
        self.several = several
        parts: dict[int, Accumulator] = {}
        for check in self.checks:
            check.show = show
            parts |= {id(part): part for part in check.parts}
        self.parts = list(parts.values())

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Statement],
        requirements: Sequence[Model],
        overall: Mapping[str, Overall] | None = None,
        show: int = 0,
        people: bool = False,
        several: bool = False,
    ) -> Judgement:
        """Make the checks for a table with these columns. Judgements made from the same arguments can be merged.

        With `people`, batches hold the hidden column that says whose row each is, and people are counted. With
        `several`, people may have several rows and nothing says whose they are.
        """
        evidence = Evidence(columns, overall or {}, people)
        absent = sorted({name for model in requirements for name in model.on} - evidence.columns.keys())
        if absent:
            raise ReleaseError(
                f"the requirements name columns that the release does not have: {', '.join(map(repr, absent))}.",
                hint=f"It has {list_columns(evidence.columns)}.",
            )
        # who counts classes alone asks last, and counts those in which a secret is judged
        order = sorted(range(len(requirements)), key=lambda place: requirements[place].about == "classes")
        made = {place: requirements[place].checks(evidence) for place in order}
        return cls([check for place in sorted(made) for check in made[place]], show, several)

    @property
    def needs(self) -> set[str]:
        """Return the columns that the checks read."""
        return {name for part in self.parts for name in part.needs}

    def observe(self, batch: CellBatch) -> None:
        """Add the cells of some records."""
        for part in self.parts:
            part.observe(batch)

    def merge(self, other: Judgement) -> None:
        """Add the evidence from another part of the table."""
        for own, one in zip(self.parts, other.parts, strict=True):
            own.merge(one)

    def verdicts(self) -> list[Verdict]:
        """Return the verdict of every check."""
        found = [check.verdict() for check in self.checks]
        return [check.of_rows(one) for check, one in zip(self.checks, found, strict=True)] if self.several else found


def select_searchable(models: Iterable[Model], choosing: bool = False) -> tuple[Model, ...]:
    """Return the requirements that methods search for; the others are only checked on the result.

    About what a mechanism tells only a method that chooses among others can do something.
    """
    return tuple(model for model in models if model.about != "release" and (choosing or not model.of_mechanism))


def columns_of(models: Sequence[Model]) -> set[str]:
    """Return all columns of the requirements."""
    return {name for model in models for name in model.on}
