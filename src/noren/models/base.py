"""What must hold, and how it is checked.

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

from noren.errors import ModelDoesNotApply
from noren.models.verdict import Basis, Verdict
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.statements import CellBatch, Statement

if TYPE_CHECKING:
    from noren.models.classes import Classes
    from noren.models.people_groups import PeopleValues

Need = Literal["order", "tree", "distance", "prior", "knowledge"]
QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)


@dataclass(frozen=True)
class Overall:
    """The distribution of a column in the whole table, and where it was taken from."""

    shares: NDArray[np.float64]
    basis: Basis
    std_error: NDArray[np.float64] | None = None
    """Standard errors of the shares, where they are estimated."""
    people: PeopleValues | None = None
    """Who has which value, where people with several rows are published in groups."""


@dataclass(frozen=True)
class Evidence:
    """What a verdict may rest on besides the cells, for one pass over them."""

    columns: Mapping[str, Statement]
    overall: Mapping[str, Overall]
    people: bool = False
    """Whether the batches say whose row each is, so that people are counted and not rows."""
    _classes: dict[Any, Classes] = field(default_factory=dict, init=False, repr=False, compare=False)

    def exact_columns(self) -> tuple[str, ...]:
        """Columns published as they are: what ties the rows of one person together."""
        return tuple(name for name, column in self.columns.items() if column.is_exact)

    def quasi_identifiers(self, apart_from: str = "") -> tuple[str, ...]:
        """Columns by which a person could be found, except one."""
        return tuple(name for name, column in self.columns.items() if column.role in QUASI and name != apart_from)

    def secrets(self) -> tuple[Statement, ...]:
        """Columns that something must protect."""
        return tuple(column for column in self.columns.values() if column.role.needs_requirement)

    def classes(self, column: str | None = None, keys: Sequence[str] | None = None) -> Classes:
        """The classes in which a sensitive column is judged, or with None the classes alone.

        Checks that ask for the same classes share them, so that every batch is grouped once. Raises ModelDoesNotApply
        where a column that should define the classes is published in sets.
        """
        from noren.models.classes import make_classes

        if keys is None:
            own = column is not None and self.columns[column].is_class
            keys = () if own else self.quasi_identifiers(column or "")
        wanted = (column, tuple(keys))
        if wanted not in self._classes:
            self._classes[wanted] = make_classes(self, column, tuple(keys))
        return self._classes[wanted]


class Accumulator(ABC):
    """Gathers what it needs of the cells, batch by batch. Those of two parts of a table merge into one."""

    needs: tuple[str, ...]
    """The columns it must see."""

    @abstractmethod
    def observe(self, batch: CellBatch) -> None:
        """Take in the cells of some records."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Take in what another one of the same making has seen."""


class Check(Accumulator):
    """Accumulates evidence about one column and ends in a verdict."""

    show: int = 0
    """How many shortfalls the verdict is to name."""

    def __init__(self, column: str) -> None:
        self.column = column
        self.needs = (column,)

    @property
    def parts(self) -> Sequence[Accumulator]:
        """What gathers the cells: the check itself, or something that several checks share."""
        return (self,)

    @abstractmethod
    def verdict(self) -> Verdict: ...

    @property
    def is_apart(self) -> bool:
        """Whether it judges classes that can be judged some here and some there (`findings`, `settled`)."""
        return False

    def of_rows(self, verdict: Verdict) -> Verdict:
        """What the verdict says where people may have several rows and nobody knows whose they are."""
        return verdict


class SearchRule(NamedTuple):
    """A requirement as the searches of methods understand it: which rule of the kernel, and its two numbers."""

    rule: str
    first: float
    second: float = 0.0


class Promise(NamedTuple):
    """What a requirement promises in a sentence a lawyer understands, and what it leaves open."""

    says: str
    leaves_open: str


NAMED_COLUMNS = 6
"""Columns that a sentence names; of more, the last are counted."""
CLASS = "Among the records that could be a person's"
KNOWS_SHARES = "It does not limit somebody who knows how common the values are, or who can rule some of them out."


class Model(BaseModel, ABC):
    """A privacy requirement on one or several columns, each on its own."""

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
    """Whether it protects the columns it names, how records look alike in them, what their terms are linked to, or is
    judged on the whole release: no method looks for it, and it protects nothing by itself."""
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
    counts_values: ClassVar[bool] = False
    """Whether a published set must hold enough different values, so that it speaks of parts of tuples as well."""
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
        """The value that a verdict compares with."""
        return float(getattr(self, self.parameter))

    @property
    def stands(self) -> int:
        """How much the adversary knows against whom it holds: 0 looks for a row, 1 counts values in a class or a set, 2
        also knows how common they are, 3 reads all that is published."""
        return {"classes": 0, "release": 3}.get(self.about, 2 if self.relative else 1)

    @property
    def identity(self) -> str:
        """Two requirements of one identity on one column are the same, but for their strength."""
        return self.model

    def parameters(self) -> dict[str, Any]:
        """The parameters without name and columns."""
        return self.model_dump(mode="json", exclude={"model", "on"})

    @property
    def needs(self) -> frozenset[Need]:
        """What it must know about a column besides its values."""
        return frozenset()

    @property
    def holds_of_parts(self) -> bool:
        """Whether what holds of tuples holds of their parts: putting values together moves no belief further."""
        return False

    # ------------------------------------------------------------------ checking

    def check(self, statement: Statement, evidence: Evidence) -> Check:
        """A check of one column. Raises ModelDoesNotApply for cells the model says nothing about."""
        found: Check = statement.judged_by(self, evidence)
        return found

    def checks(self, evidence: Evidence) -> list[Check]:
        """All checks of the requirement."""
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
        """Whether it makes a statement about a column that is published as sets."""
        return type(self).judge_sets is not Model.judge_sets

    @property
    def judges_changed(self) -> bool:
        """Whether it makes a statement about a column whose values were changed at random."""
        return type(self).judge_changed is not Model.judge_changed

    @property
    def judges_classes(self) -> bool:
        """Whether it makes a statement about classes of records."""
        return type(self).judge_classes is not Model.judge_classes

    @property
    def judges_left_out(self) -> bool:
        """Whether it makes a statement about people who are left out; one about drawn cells alone makes none."""
        return (self.judges_classes or self.about == "terms") and not self.of_mechanism

    def left_out_checks(self, evidence: Evidence) -> list[Check]:
        """The checks of those who are left out: a class, in which everybody has what they have in the original."""
        return self.checks(evidence)

    def refuses(self, statement: Statement, because: str = "") -> ModelDoesNotApply:
        """The error for a column about which the model says nothing."""
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
        """Smallest set of values that a cell may publish under this model; 1 where it does not matter."""
        return ceil(self.required) if self.judges_sets else 1

    @property
    def most_belief(self) -> float:
        """Largest belief in one value of a set, all values believed alike before, that the model permits."""
        return 1.0

    @property
    def epsilon_each(self) -> float:
        """Largest epsilon of one column's draw at which the model holds whatever the distribution; infinite if any."""
        return inf

    @property
    def epsilon_together(self) -> float:
        """Largest sum of the epsilons of its columns' draws; infinite where it does not ask for one."""
        return inf

    @property
    def least_class_size(self) -> int:
        """Smallest class of records that the model permits, whatever their secrets."""
        return 1

    @property
    def largest_share(self) -> float | None:
        """The largest share of one value that it permits in a class; None where it names none."""
        return None

    @property
    def search_rule(self) -> SearchRule | None:
        """The rule by which methods that form classes look for them; None where they cannot."""
        return None

    @property
    def met_by(self) -> str:
        """A method whose cells the model judges and can be looked for in; empty where no method looks for it."""
        if self.about == "terms":
            return "suppress"
        if self.judges_sets:
            return "decoys"
        if self.judges_changed:
            return "pram"
        return "mondrian" if self.search_rule is not None else ""

    @property
    def method_hint(self) -> str:
        """What to do where a method does not look for the model."""
        if self.met_by:
            return f'Use [method] name = "{self.met_by}".'
        return "No method looks for this model: give it a search_rule, or a judge_sets."

    def separation(self, column: Column) -> tuple[NDArray[np.float64], float]:
        """Distances between the values of a column, and how far those of one set must lie apart."""
        raise NotImplementedError(self.model)

    # ------------------------------------------------------------------ measuring

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        """The model with parameters that do not matter, to see what a column (with None: the table) achieves."""
        return ()

    @property
    def measured(self) -> str:
        """The parameter that the figure of `measuring` stands for."""
        return self.parameter

    def measuring(self, evidence: Evidence) -> Check:
        """The check whose figure is what a table achieves."""
        (check,) = self.checks(evidence)
        return check

    # ------------------------------------------------------------------ words

    @abstractmethod
    def promise(self, names: str, sets: bool) -> Promise:
        """What is promised about the columns of these names, and what is not; `sets`: published as such."""

    def promised(self, columns: Sequence[str], sets: bool) -> Promise:
        """The promise about these columns."""
        if len(columns) > NAMED_COLUMNS:
            columns = (*columns[: NAMED_COLUMNS - 1], f"{len(columns) - NAMED_COLUMNS + 1} more columns")
        names = ", ".join(columns[:-1]) + " and " + columns[-1] if len(columns) > 1 else "".join(columns)
        return self.promise(f"each of {names}" if len(columns) > 1 and not self.together else names, sets)


def searched(models: Iterable[Model], choosing: bool = False) -> tuple[Model, ...]:
    """The requirements that methods look for; the others are only judged on what they make.

    About what a mechanism tells only a method that chooses among others can do something.
    """
    return tuple(model for model in models if model.about != "release" and (choosing or not model.of_mechanism))


def columns_of(models: Sequence[Model]) -> set[str]:
    """All columns that some requirement names."""
    return {name for model in models for name in model.on}
