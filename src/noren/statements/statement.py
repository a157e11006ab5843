"""The protocol of statements: what a published cell means about the true value.

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

    A value that a row does not list has the probability `floor`. Where only ratios inside a cell are known (a
    generalised value under coarsening at random) they are given up to a factor for each cell.
    """

    bounds: NDArray[np.int64]
    value: NDArray[np.int64]
    weight: NDArray[np.float64]
    floor: float = 0.0

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.bounds)

    @property
    def owner(self) -> NDArray[np.int64]:
        """Return the cell of every entry."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def dense(self, d: int) -> NDArray[np.float64]:
        """Return a (cells, d) array: the probability of every cell under every value. For few cells only."""
        out = np.full((len(self), d), self.floor)
        out[self.owner, self.value] = self.weight
        return out

    def listed(self, d: int) -> Likelihood:
        """Return the same with every value listed, if unlisted values have a positive probability."""
        if not self.floor > 0:
            return self
        value = np.tile(np.arange(d), len(self))
        return Likelihood(np.arange(len(self) + 1) * d, value, self.dense(d).ravel())

    def possible(self, d: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the possible values of every cell, as offsets and values."""
        if self.floor > 0:
            return np.arange(len(self) + 1) * d, np.tile(np.arange(d), len(self))
        kept = self.weight > 0
        left = np.concatenate([[0], np.cumsum(kept)])
        return left[self.bounds], self.value[kept]


class Judge(Protocol):
    """Makes a check of a column: one method for each form in which a cell can be checked."""

    def judge_classes(self, statement: Statement, evidence: Any) -> Any:
        """Check cells that form classes, in which the values are counted."""

    def judge_sets(self, statement: Statement, evidence: Any) -> Any:
        """Check cells that are sets of possible values."""

    def judge_members(self, statement: Statement, evidence: Any) -> Any:
        """Check rows that hold one member of a person's set, without links between a person's rows."""

    def judge_changed(self, statement: Statement, evidence: Any) -> Any:
        """Check cells that are one value, which a published design may have changed."""

    def judge_terms(self, statement: Statement, evidence: Any) -> Any:
        """Check cells that are sets of terms, which a knowledge table links to labels."""

    def judge_open(self, statement: Statement, evidence: Any) -> Any:
        """Check cells published exactly whose values are not listed."""


@dataclass(frozen=True, eq=False)
class Statement(ABC):
    """A published column, and what its cells mean about the true values."""

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
        """Return the number of base values of the domain; 0 for an open one."""
        return self.column.d

    def over(self, column: Column) -> Self:
        """Return the same statement about a column with another role, hierarchy or distance."""
        return replace(self, column=column)

    @property
    def description(self) -> str:
        """Describe how the column is published: "a set of 3 of 7 values"."""
        return "as it is"

    # ------------------------------------------------------------------ what it may rest on besides

    @property
    def design(self) -> Design | None:
        """Return the design with which the cells were drawn, or None."""
        return None

    @property
    def table(self) -> GroupTable | None:
        """Return the table of the groups' values, if cells are groups."""
        return None

    @property
    def fakes(self) -> NDArray[np.int64]:
        """Return how many entries of every group's table are counterfeits, if cells are groups."""
        return np.zeros(0, np.int64)

    @property
    def fake_entries(self) -> int:
        """Return the number of counterfeits in all groups together."""
        return 0

    @property
    def nodes(self) -> Nodes | None:
        """Return the generalised values, if cells are generalised."""
        return None

    @property
    def tightness(self) -> Tight | None:
        """Return what certainly occurs in every class under its generalised value; None if unknown."""
        return None

    @property
    def terms(self) -> tuple[str, ...] | None:
        """Return the domain of terms, if cells are sets of terms; None if a record has one value."""
        return None

    @property
    def rows_per_record(self) -> int:
        """Return the number of rows of a person."""
        return 1

    @property
    def values_per_record(self) -> int:
        """Return the approximate number of values in a cell, for the size of batches."""
        return 1

    # ------------------------------------------------------------------ what it says about the truth

    @property
    @abstractmethod
    def kinds(self) -> int | None:
        """Return the number of possible distinct cells, or None if cells are not numbered."""

    @abstractmethod
    def likelihood(self, cells: Cells) -> Likelihood | None:
        """Return P(cell | value) for every cell; None if cells are not about single values."""

    def possible(self, cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return the base values that are possible for every cell: entries bounds[i] <= e < bounds[i + 1] are cell
        i's."""
        found = self.likelihood(cells)
        return None if found is None else found.possible(self.d)

    def count_possible(self, cells: Cells) -> NDArray[np.int64]:
        """Return how many base values each cell leaves possible."""
        found = self.possible(cells)
        assert found is not None
        return np.diff(found[0])

    def different(self, cells: Cells) -> NDArray[np.int64]:
        """Return how many different values each cell names."""
        return self.count_possible(cells)

    def members(self, cells: Cells) -> NDArray:
        """Return an (n, values) array: the values in every drawn cell, in ascending order."""
        return np.asarray(self.check_cells(cells))[:, None]

    @abstractmethod
    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        """Return whether each cell covers its record's true value."""

    def tally(self, cells: Cells) -> NDArray[np.int64]:
        """Return the counts of a batch from which possible counts follow; tallies of batches are added."""
        found = self.possible(cells)
        assert found is not None
        return np.bincount(found[1], minlength=self.d).astype(np.int64)

    def possible_counts(self, tally: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many records may have every base value, given the tally of all cells."""
        return tally

    def shares(self, tally: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return the distribution of the published records, given the tally of all cells; None if it must be
        estimated."""
        return None

    def position(self, cells: Cells) -> NDArray[np.float64]:
        """Return the position of every cell on a line, to test the order of rows; NaN for a missing one."""
        return np.asarray(self.check_cells(cells), np.float64)

    # ------------------------------------------------------------------ how it is judged

    @abstractmethod
    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        """Return the judge's check for cells of this form."""

    @abstractmethod
    def check_cells(self, cells: Any) -> Any:
        """Return the cells; raise if they are not as the statement says."""

    def key(self, cells: Cells) -> Any:
        """Return a number (or a text) for every record, equal if the cells are equal."""
        raise self.unlike()

    def unlike(self) -> ModelDoesNotApply:
        """Return the error if classes are required of cells that form none."""
        return ModelDoesNotApply(
            f"column {self.name!r} is {self.words}, so equivalence classes cannot be formed.",
            hint="Publish every quasi-identifier exactly, generalised or in groups.",
        )

    def label(self, code: Any) -> str:
        """Return the text of the cell with this number."""
        return f"{self.form} {code}"

    def disagrees(self, what: str) -> ModelDoesNotApply:
        return ModelDoesNotApply(f"column {self.name!r} {what}")

    def find_misnamed(self, hierarchy: Hierarchy | None = None) -> list[str]:
        """Return generalised values whose names do not match what they cover, by themselves or by an auditor's
        hierarchy."""
        return []

    # ------------------------------------------------------------------ how it is written

    @abstractmethod
    def to_arrow(self, cells: Any) -> Any:
        """Return the column as a reader sees it."""

    @abstractmethod
    def from_arrow(self, column: Any) -> Cells:
        """Return cells from a file's column; refuse anything that the statement does not allow."""

    def written_out(self) -> Statement:
        """Return the same statement with every cell written out, if a Parquet file stores common ones once."""
        return self

    def to_parquet(self, cells: Any) -> Any:
        """Return the column of a Parquet file, if it differs from what readers see."""
        return self.to_arrow(cells)

    def from_parquet(self, column: Any) -> Cells:
        """Return cells from the column of a Parquet file."""
        return self.from_arrow(column)

    @property
    def parquet_title(self) -> str:
        """Return the column's name in a Parquet file: another name if its numbers are no values."""
        return self.name

    @property
    def csv_title(self) -> str:
        """Return the column's name in a CSV file: another name if its cells look like values."""
        return self.name

    def to_csv(self, cells: Any) -> Any:
        """Return the column of a CSV file."""
        return self.to_arrow(cells)

    def from_csv(self, column: Any) -> Cells:
        """Return cells from the column of a CSV file."""
        return self.from_arrow(column)

    @property
    def texts_path(self) -> str | None:
        """Return the paths of texts in a Parquet file that are best read as a dictionary."""
        return None

    @abstractmethod
    def field(self) -> dict[str, Any]:
        """Return the description of the column in a data package."""

    # ------------------------------------------------------------------ in the manifest

    def manifest_fields(self) -> dict[str, Any]:
        """Return the manifest's fields besides the column itself."""
        return {}

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        """Parse a statement of a manifest; raise ValueError for unknown fields."""
        cls.demand(fields)
        return cls(column)

    @classmethod
    def demand(cls, fields: Mapping[str, Any], *names: str) -> None:
        """Refuse fields other than these, and missing ones."""
        if set(fields) != set(names):
            raise ValueError(f"the form {cls.form!r} has the fields {', '.join(names) or 'of every column only'}")

    # ------------------------------------------------------------------ what stands beside the data

    @property
    def side(self) -> str | None:
        """Return the name of the side table that the statement needs, without suffix; None if it needs none."""
        return None

    def side_columns(self) -> dict[str, Any]:
        """Return the side table as Arrow columns."""
        return {}

    def side_title(self, names: Sequence[str]) -> str:
        """Describe the side table of these columns."""
        return ""

    def side_words(self, names: str) -> str:
        """Describe the side table for the README, with names that are already quoted."""
        return f"what is known about {names}"

    def side_fields(self) -> list[dict[str, Any]]:
        """Return the columns of the side table in a data package."""
        return []

    @property
    def side_texts(self) -> str | None:
        """Return the paths of texts in the side table's Parquet file that are read as a dictionary."""
        return None

    @property
    def side_key(self) -> str | None:
        """Return the column of the side table that the cells refer to."""
        return None

    def read_side(self, columns: Mapping[str, Any]) -> Any:
        """Return the content of the side table's columns; raise ValueError if they are invalid."""
        return None

    def with_side(self, found: Any) -> Statement:
        """Return the statement with the content of its side table."""
        return self
