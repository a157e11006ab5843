"""What must hold, and how it is checked.

A model declares its parameters once and makes one check per column. A check sees only published cells, batch by
batch, plus what the evidence says about the design and, for the holder, about the original. It shares no code with
the method that made the cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from noren.cells import CellBatch, Cells, GroupTable, SetCells
from noren.designs.any import Design
from noren.errors import ModelDoesNotApply
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import Nodes
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.models.classes import Classes

Form = Literal["value", "set", "open", "member", "node", "group", "terms"]
"""A member is one value of a record's set, in a release of shuffled rows without set numbers. A node is a general
value; a group is the number of a group whose values are listed beside the records; terms are a set of any size."""
CLASS_FORMS: tuple[Form, ...] = ("value", "node", "group")
"""Forms of a sensitive column whose values are judged class by class."""
FORM_WORDS: dict[Form, str] = {
    "value": "published exactly",
    "open": "published exactly",
    "set": "published as sets",
    "member": "published as shuffled members",
    "node": "published as general values",
    "group": "published as groups of values",
    "terms": "published as sets of terms",
}
Basis = Literal["the release alone", "the published design", "the original", "an estimate from the release"]


@dataclass(frozen=True)
class PublishedColumn:
    """What the manifest says about a published column."""

    name: str
    form: Form
    d: int
    design: Design | None = None
    ordered: bool = False
    distances: NDArray[np.float64] | None = None
    hierarchy: Hierarchy | None = None
    role: Role | None = None
    nodes: Nodes | None = None
    """The general values of a generalised column; its d counts the base values under them."""
    groups: GroupTable | None = None
    """What the groups hold, where the column names groups; its d counts the base values in them."""
    labels: tuple[str, ...] = ()
    """What the d base values are called; for messages that name classes."""
    terms: tuple[str, ...] = ()
    """The d terms of a set-valued column."""
    knowledge: Knowledge | None = None
    """What links the terms to labels. Columns with one and the same knowledge are read together."""


@dataclass(frozen=True)
class Overall:
    """The distribution of a column in the whole table, and where it was taken from."""

    shares: NDArray[np.float64]
    basis: Basis
    std_error: NDArray[np.float64] | None = None
    """Standard errors of the shares, where they are estimated."""


@dataclass(frozen=True)
class Evidence:
    """What a verdict may rest on besides the cells, for one pass over them."""

    columns: Mapping[str, PublishedColumn]
    overall: Mapping[str, Overall]
    _classes: dict[Any, Classes] = field(default_factory=dict, init=False, repr=False, compare=False)

    def exact_columns(self) -> tuple[str, ...]:
        """Columns published as they are: what ties the rows of one person together."""
        return tuple(name for name, column in self.columns.items() if column.form in ("value", "open"))

    def quasi_identifiers(self, apart_from: str = "") -> tuple[str, ...]:
        """Columns by which a person could be found, except one."""
        roles = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)
        return tuple(name for name, column in self.columns.items() if column.role in roles and name != apart_from)

    def classes(self, column: str | None = None, keys: Sequence[str] | None = None) -> Classes:
        """The classes in which a sensitive column is judged, or with None the classes alone.

        Checks that ask for the same classes share them, so that every batch is grouped once. Raises ModelDoesNotApply
        where a column that should define the classes is published in sets.
        """
        from noren.models.classes import make_classes

        if keys is None:
            grouped = column is not None and self.columns[column].form == "group"
            keys = () if grouped else self.quasi_identifiers(column or "")
        wanted = (column, tuple(keys))
        if wanted not in self._classes:
            self._classes[wanted] = make_classes(self, column, tuple(keys))
        return self._classes[wanted]


@dataclass(frozen=True)
class Verdict:
    """One requirement on one column: what was asked, what was found, and on which ground.

    `holds` is None where an estimate is too uncertain to say; the statement then tells what would settle it.
    """

    model: str
    column: str
    required: float
    achieved: float
    holds: bool | None
    basis: str
    records: int
    breaches: int
    statement: str
    short: int = 0
    """Classes or groups that fall short, where the model judges those."""
    shortfalls: Sequence[Shortfall] = ()
    """Some of them, the worst first, where they were asked for."""


@dataclass(frozen=True)
class Shortfall:
    """A class that falls short: what its records publish, how many they are, and what was found in it."""

    keys: Mapping[str, str]
    records: int
    achieved: float


class Check(ABC):
    """Accumulates evidence about one column and ends in a verdict."""

    show: int = 0
    """How many shortfalls the verdict is to name."""

    def __init__(self, column: str) -> None:
        self.column = column
        self.needs: tuple[str, ...] = (column,)

    @abstractmethod
    def observe(self, cells: Cells) -> None: ...

    def observe_batch(self, batch: CellBatch) -> None:
        """The cells of all columns that the check needs; most need their own alone."""
        self.observe(batch[self.column])

    @abstractmethod
    def verdict(self) -> Verdict: ...


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
    forms: ClassVar[tuple[Form, ...]]
    """The forms of a column that the model makes a statement about."""
    about: ClassVar[Literal["columns", "classes", "terms"]] = "columns"
    """Whether it protects the columns it names, how records look alike in them, or what their terms are linked to."""
    coarsening_preserves: ClassVar[bool]
    """Whether two classes that satisfy the model, put together, satisfy it, the rest of the release being the same."""

    @property
    def required(self) -> float:
        """The value that a verdict compares with."""
        return float(getattr(self, self.parameter))

    @property
    def least_set_size(self) -> int:
        """Smallest set of values that a cell may publish under this model; 1 where it does not matter."""
        return ceil(self.required) if "set" in self.forms else 1

    def parameters(self) -> dict[str, Any]:
        """The parameters without name and columns."""
        return self.model_dump(mode="json", exclude={"model", "on"})

    @abstractmethod
    def check(self, column: PublishedColumn, evidence: Evidence) -> Check:
        """A check of one column. Raises ModelDoesNotApply for a form the model says nothing about."""

    def checks(self, evidence: Evidence) -> list[Check]:
        return [self.check(evidence.columns[name], evidence) for name in self.on]

    def refuse_form(self, column: PublishedColumn, because: str = "") -> ModelDoesNotApply:
        """The error for a column whose form the model says nothing about."""
        sets = "set" in self.forms or "member" in self.forms
        classes = any(form in self.forms for form in CLASS_FORMS)
        hints = []
        if sets:
            hints.append("columns published as sets of possible values")
        if classes:
            hints.append("classes of records with equal quasi-identifiers, or on groups")
        hint = f"It is checked on {', and on '.join(hints)}."
        if classes and column.form in ("set", "member"):
            hint += ' Methods that form them are "sweep", "mondrian", "incognito" and "anatomy".'
        if self.forms == ("terms",):
            hint = "It is checked on columns of the role 'quasi-sensitive'."
        return ModelDoesNotApply(
            f"{self.model} makes no statement about column {column.name!r}, which is "
            f"{FORM_WORDS[column.form]}{because}.",
            hint=hint,
        )


def checked_sets(cells: Cells, column: str, d: int) -> SetCells:
    """The cells as sets of distinct values of the domain. A check does not take that on trust."""
    if not isinstance(cells, SetCells) or cells.d != d:
        raise ModelDoesNotApply(f"column {column!r} does not hold sets over its {d} values.")
    if not len(cells):
        return cells
    if int(cells.data.max()) >> d if cells.is_mask else int(cells.data.max()) >= d:
        raise ModelDoesNotApply(f"column {column!r} holds a value outside its domain.")
    if not cells.is_mask and (cells.data[:, 1:] <= cells.data[:, :-1]).any():
        raise ModelDoesNotApply(f"column {column!r} holds a set that repeats a value or is out of order.")
    return cells


class SetSizeCheck(Check):
    """Every published set holds enough distinct values of the domain.

    In the un-aggregated form (the product of a record's sets) a class for column j takes, from every record that
    falls into it, one row per value of that record's set. A value therefore comes at most once per record, and its
    share is at most records / sum of set sizes <= 1 / (smallest set): Theorem 2 for sets of any sizes. The
    smallest set is thus a lower bound of what each class achieves, and exact for a class of one record.
    """

    def __init__(self, model: Model, column: PublishedColumn, required: float, means: str) -> None:
        super().__init__(column.name)
        self.model = model
        self.d = column.d
        self.required = required
        self.means = means
        self.smallest: int | None = None
        self.records = 0
        self.breaches = 0

    def observe(self, cells: Cells) -> None:
        sizes = checked_sets(cells, self.column, self.d).sizes()
        if not len(sizes):
            return
        self.records += len(sizes)
        self.breaches += int((sizes < self.required - 1e-9).sum())
        least = int(sizes.min())
        self.smallest = least if self.smallest is None else min(self.smallest, least)

    def verdict(self) -> Verdict:
        achieved = self.smallest or 0
        return Verdict(
            model=self.model.model,
            column=self.column,
            required=self.required,
            achieved=achieved,
            holds=self.records > 0 and self.breaches == 0,
            basis="the release alone",
            records=self.records,
            breaches=self.breaches,
            statement=self.means.format(achieved=achieved),
        )


def columns_of(models: Sequence[Model]) -> set[str]:
    """All columns that some requirement names."""
    return {name for model in models for name in model.on}
