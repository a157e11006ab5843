"""A published cell is a statement about a true value.

A statement says what the codes of a published column mean: which values they leave possible, with which probability
each would have been published, how they are written, and on which ground a requirement can be judged on them. Every
form of cell is one file beside this one; no other room asks which form a column has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from noren.errors import ModelDoesNotApply
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.statements.batch import Cells

if TYPE_CHECKING:
    from noren.schema.domain import Domain
    from noren.schema.hierarchy import Hierarchy
    from noren.schema.nodes import Nodes, Tight
    from noren.statements.design import Design
    from noren.statements.group import GroupTable

ReadDesign = Callable[[Any], "Design"]
"""Makes a design from what a manifest says of it; raises ValueError for anything that is none."""


@dataclass(frozen=True)
class Likelihood:
    """P(cell | value) of some cells as sparse rows: entries bounds[i] <= e < bounds[i + 1] belong to cell i.

    A value that a row does not list has the probability `floor`. Where only ratios inside a cell are known (a general
    value under coarsening at random) they are given up to a factor for each cell.
    """

    bounds: NDArray[np.int64]
    value: NDArray[np.int64]
    weight: NDArray[np.float64]
    floor: float = 0.0

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.bounds)

    @property
    def owner(self) -> NDArray[np.int64]:
        """The cell of every entry."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def dense(self, d: int) -> NDArray[np.float64]:
        """(cells, d): the probability of every cell under every value. For few cells only."""
        out = np.full((len(self), d), self.floor)
        out[self.owner, self.value] = self.weight
        return out

    def listed(self, d: int) -> Likelihood:
        """The same with every value listed, where values that are not listed have a chance as well."""
        if not self.floor > 0:
            return self
        value = np.tile(np.arange(d), len(self))
        return Likelihood(np.arange(len(self) + 1) * d, value, self.dense(d).ravel())

    def possible(self, d: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The values that every cell leaves possible, as bounds and values."""
        if self.floor > 0:
            return np.arange(len(self) + 1) * d, np.tile(np.arange(d), len(self))
        kept = self.weight > 0
        left = np.concatenate([[0], np.cumsum(kept)])
        return left[self.bounds], self.value[kept]


class Judge(Protocol):
    """Who makes a check of a column: one way for each ground on which a cell can be judged."""

    def judge_classes(self, statement: Statement, evidence: Any) -> Any:
        """Cells that make classes: what the records of a class hold is known, value by value."""

    def judge_sets(self, statement: Statement, evidence: Any) -> Any:
        """Every cell is a set of possible values."""

    def judge_members(self, statement: Statement, evidence: Any) -> Any:
        """Every row holds one member of a person's set, and nothing ties a person's rows together."""

    def judge_changed(self, statement: Statement, evidence: Any) -> Any:
        """Every cell is one value that may have been changed, by a published design."""

    def judge_terms(self, statement: Statement, evidence: Any) -> Any:
        """Every cell is a set of terms that knowledge links to labels."""

    def judge_open(self, statement: Statement, evidence: Any) -> Any:
        """Cells published as they are, whose values are not listed."""


@dataclass(frozen=True, eq=False)
class Statement(ABC):
    """What the cells of one published column say about the truth."""

    column: Column

    form: ClassVar[str]
    """The name in a manifest."""
    words: ClassVar[str]
    """The form in a sentence: "published as sets"."""
    is_exact: ClassVar[bool] = False
    """Whether a cell is the truth itself."""
    is_key: ClassVar[bool] = False
    """Whether records can be found by their cells and look alike if the cells are equal."""
    is_class: ClassVar[bool] = False
    """Whether the records with equal cells are a class by themselves, whatever their other columns say."""
    hides: ClassVar[bool] = False
    """Whether a cell leaves several values possible."""
    lists_values: ClassVar[bool] = True
    """Whether the column has a list of its values; where it has none, no value is ever named."""

    # ------------------------------------------------------------------ the column behind it

    @cached_property
    def name(self) -> str:
        return self.column.name

    @cached_property
    def role(self) -> Role:
        return self.column.role

    @cached_property
    def domain(self) -> Domain:
        return self.column.domain

    @cached_property
    def d(self) -> int:
        """Base values of the domain; 0 for an open one."""
        return self.column.d

    def over(self, column: Column) -> Self:
        """The same statement about a column of another meaning: role, hierarchy, distance."""
        return replace(self, column=column)

    @property
    def description(self) -> str:
        """How the column is published, with its numbers, for a reader: "a set of 3 of 7 values"."""
        return "as it is"

    # ------------------------------------------------------------------ what it may rest on besides

    @property
    def design(self) -> Design | None:
        """How the cells were drawn, where chance decided."""
        return None

    @property
    def table(self) -> GroupTable | None:
        """What the groups hold, where cells name groups."""
        return None

    @property
    def fakes(self) -> NDArray[np.int64]:
        """How many entries of every group's table are nobody's, where cells name groups."""
        return np.zeros(0, np.int64)

    @property
    def fake_entries(self) -> int:
        """The same in all groups together."""
        return 0

    @property
    def nodes(self) -> Nodes | None:
        """The general values, where cells are such."""
        return None

    @property
    def tightness(self) -> Tight | None:
        """What certainly occurs in every class under its general value; None where nothing is said."""
        return None

    @property
    def terms(self) -> tuple[str, ...] | None:
        """The terms that cells hold any number of; None where a record has one value."""
        return None

    @property
    def rows_per_record(self) -> int:
        """Rows that one person has."""
        return 1

    @property
    def values_per_record(self) -> int:
        """Values that one cell holds about, for the size of batches."""
        return 1

    # ------------------------------------------------------------------ what it says about the truth

    @property
    @abstractmethod
    def kinds(self) -> int | None:
        """How many different cells there may be, numbered from 0; None where they are not numbered."""

    @abstractmethod
    def likelihood(self, cells: Cells) -> Likelihood | None:
        """P(cell | value) for every cell; None where cells do not speak of single values."""

    def possible(self, cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """The base values that every cell leaves possible: entries bounds[i] <= e < bounds[i + 1] are cell i's."""
        found = self.likelihood(cells)
        return None if found is None else found.possible(self.d)

    def spread(self, cells: Cells) -> NDArray[np.int64]:
        """How many base values each cell leaves possible."""
        found = self.possible(cells)
        assert found is not None
        return np.diff(found[0])

    def different(self, cells: Cells) -> NDArray[np.int64]:
        """How many different values each cell names."""
        return self.spread(cells)

    def members(self, cells: Cells) -> NDArray:
        """(n, values): the values that every drawn cell names, in ascending order."""
        return np.asarray(self.checked(cells))[:, None]

    @abstractmethod
    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        """Whether each cell leaves its record's truth possible."""

    def tally(self, cells: Cells) -> NDArray[np.int64]:
        """What must be counted of a batch to know how often every value is possible; tallies of batches add up."""
        found = self.possible(cells)
        assert found is not None
        return np.bincount(found[1], minlength=self.d).astype(np.int64)

    def possible_counts(self, tally: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many records may have every base value, given the tally of all cells."""
        return tally

    def shares(self, tally: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """How the published records are distributed, given the tally of all cells; None where it must be estimated."""
        return None

    def position(self, cells: Cells) -> NDArray[np.float64]:
        """Where every cell stands on a line, to see whether rows are in an order; NaN for a missing one."""
        return np.asarray(self.checked(cells), np.float64)

    # ------------------------------------------------------------------ how it is judged

    @abstractmethod
    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        """The judge's check for cells of this form."""

    @abstractmethod
    def checked(self, cells: Any) -> Any:
        """The cells, if they are what the statement says: a check takes nothing on trust."""

    def key(self, cells: Cells) -> Any:
        """A number (or a text) for every record, equal where the cells are equal."""
        raise self.unlike()

    def unlike(self) -> ModelDoesNotApply:
        """The error where classes are asked for in cells that do not make any."""
        return ModelDoesNotApply(
            f"column {self.name!r} is {self.words}, so nobody can say which records look alike.",
            hint="Classes need every quasi-identifier published exactly, generalised or in groups.",
        )

    def label(self, code: Any) -> str:
        """What the cell of this number says, for people."""
        return f"{self.form} {code}"

    def disagrees(self, what: str) -> ModelDoesNotApply:
        return ModelDoesNotApply(f"column {self.name!r} {what}")

    def misnamed(self, hierarchy: Hierarchy | None = None) -> list[str]:
        """General values whose names do not say what they cover, by themselves or by an auditor's hierarchy."""
        return []

    # ------------------------------------------------------------------ how it is written

    @abstractmethod
    def to_arrow(self, cells: Any) -> Any:
        """The column as a reader sees it."""

    @abstractmethod
    def from_arrow(self, column: Any) -> Cells:
        """Cells from a file's column; anything the statement does not allow is refused."""

    def written_out(self) -> Statement:
        """The same with every cell written out, where a Parquet file keeps what many share once."""
        return self

    def to_parquet(self, cells: Any) -> Any:
        """The column of a Parquet file, where it is kept otherwise than readers see it."""
        return self.to_arrow(cells)

    def from_parquet(self, column: Any) -> Cells:
        """Cells from the column of a Parquet file."""
        return self.from_arrow(column)

    @property
    def csv_title(self) -> str:
        """What a CSV file writes over the column, where nothing else tells its cells from values."""
        return self.name

    def to_csv(self, cells: Any) -> Any:
        """The column of a CSV file."""
        return self.to_arrow(cells)

    def from_csv(self, column: Any) -> Cells:
        """Cells from the column of a CSV file."""
        return self.from_arrow(column)

    @property
    def texts_path(self) -> str | None:
        """Where a Parquet file holds texts that are best read as a dictionary."""
        return None

    @abstractmethod
    def field(self) -> dict[str, Any]:
        """The column in a data package."""

    # ------------------------------------------------------------------ in the manifest

    def published(self) -> dict[str, Any]:
        """What the manifest says besides the column itself."""
        return {}

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        """The statement that a manifest describes. Raises ValueError for fields that it does not have."""
        cls.demand(fields)
        return cls(column)

    @classmethod
    def demand(cls, fields: Mapping[str, Any], *names: str) -> None:
        """Refuse fields besides these, and missing ones."""
        if set(fields) != set(names):
            raise ValueError(f"the form {cls.form!r} has the fields {', '.join(names) or 'of every column only'}")

    # ------------------------------------------------------------------ what stands beside the data

    @property
    def side(self) -> str | None:
        """The name of the side table that the statement needs, without suffix; None if it needs none."""
        return None

    def side_columns(self) -> dict[str, Any]:
        """The side table as Arrow columns."""
        return {}

    def side_title(self, names: Sequence[str]) -> str:
        """What the side table tells about the columns of these names, which share it."""
        return ""

    def side_words(self, names: str) -> str:
        """The same as a line of the page for people, with names that are quoted already."""
        return f"what is known about {names}"

    def side_fields(self) -> list[dict[str, Any]]:
        """The columns of the side table in a data package."""
        return []

    @property
    def side_texts(self) -> str | None:
        """Where the side table, as a Parquet file, holds texts that are read as a dictionary."""
        return None

    @property
    def side_key(self) -> str | None:
        """The column of the side table that the cells refer to."""
        return None

    def read_side(self, columns: Mapping[str, Any]) -> Any:
        """What the columns of the side table say. Raises ValueError where they are none."""
        return None

    def with_side(self, found: Any) -> Statement:
        """The statement with what its side table says."""
        return self
