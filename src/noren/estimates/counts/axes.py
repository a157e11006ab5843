"""One attribute of a cross tabulation: its published cells, their likelihood, and the grouping of base values.

An axis asks the column's statement everything: whether a cell is the truth, how it was drawn, which values it leaves
possible and with which probability. What follows is one of three ways to read it: *exact* (the cell says the value),
*drawn* (a published design made it, so its likelihood is known), *coarse* (a generalised value or a group).

Survey weights: how many people of the population every record stands for.

They are scaled to a mean of 1 and the mean is kept beside them, so that all that counts records (stopping rules, least
sizes) stays as it is; sums are multiplied by it when they are reported. Unequal weights cost precision: Kish's design
effect n sum w^2 / (sum w)^2 is by what factor the variance of a mean exceeds that of as many records of equal weight,
where the weights have nothing to do with what is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import Groups
from noren.errors import ModelDoesNotApply, QueryError, ReleaseError
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import (
    Cells,
    CodeCells,
    Design,
    ExactStatement,
    Likelihood,
    MemberStatement,
    SetCells,
    SetStatement,
    Statement,
)
from noren.statements.design import Scoring


@dataclass(frozen=True, eq=False)
class Weights:
    """Survey weights of all requested rows."""

    name: str
    of: NDArray[np.float64]
    """Scaled: their mean is 1."""
    unit: float
    """The mean that they were divided by."""

    @classmethod
    def scaled(cls, name: str, numbers: NDArray[np.float64]) -> Weights:
        """Scale the weights; raise if they are invalid."""
        if not np.isfinite(numbers).all() or numbers.min(initial=1.0) <= 0:
            raise ReleaseError(
                f"the weights {name!r} are not all numbers above 0.",
                hint="Ask the holder for the release again, or count records with weighted=False.",
            )
        unit = float(numbers.mean()) if len(numbers) else 1.0
        return cls(name, numbers / unit, unit)

    @property
    def design_effect(self) -> float:
        """Return Kish's design effect: how much precision unequal weights cost."""
        return float(np.mean(self.of**2)) if len(self.of) else 1.0

    @property
    def assumes(self) -> str:
        """Return the assumption behind a weighted number."""
        effect = f"design effect {self.design_effect:.2f}"
        return (
            f"a record counts for as many people as {self.name!r} says ({effect}; records are treated as independent)"
        )

    def assumes_without(self, suppressed: int) -> str:
        """Return the weights for a table with this number of suppressed people, whose weights are unknown."""
        if not suppressed:
            return self.assumes
        return (
            f"{self.assumes}; the {suppressed:,} suppressed people are not counted, because their weights are unknown"
        )


AGAIN = "Ask the holder for the release again."


@dataclass(frozen=True)
class Classes:
    """Which records have equal quasi-identifiers in every column of the release that its method generalised."""

    of: NDArray[np.int64]
    """The class of every row that is asked about."""
    sizes: NDArray[np.int64]
    """How many rows each class has in the whole release."""


@dataclass(frozen=True)
class Axis:
    """One attribute: `groups` maps a base value's code to a reported group 0..n_groups-1, or to -1 for "not counted";
    None reports every base value. A condition is an axis whose admitted values all map to group 0.

    `weights` say in which proportion the values that a cell leaves open are expected; equally often unless given.
    """

    name: str
    statement: Statement
    cells: Cells
    groups: NDArray[np.int64] | None = None
    n_groups: int | None = None
    weights: NDArray | None = None
    classes: Classes | None = None
    """What the rows' classes are, where the column says what certainly occurs in them."""

    def __post_init__(self) -> None:
        d, reported = self.d, self.grouping.of
        if reported.shape != (d,) or reported.min(initial=0) < -1 or reported.max(initial=-1) >= self.size:
            raise QueryError(
                f"The groups of {self.name!r} do not fit its {d} values and {self.size} groups.",
                hint="Give one group number, or -1, for every value of the domain.",
            )
        if self.weights is not None:
            weights = np.asarray(self.weights, np.float64)
            if weights.shape != (d,) or not np.isfinite(weights).all() or weights.min(initial=0.0) < 0:
                raise QueryError(
                    f"The weights of {self.name!r} must be {d} numbers of at least 0.",
                    hint="Give one weight for every value of the domain.",
                )

    @classmethod
    def exact(
        cls, name: str, codes: NDArray, d: int, groups: NDArray | None = None, n_groups: int | None = None
    ) -> Axis:
        """Return a column of known codes 0..d-1."""
        return cls(name, ExactStatement(numbered_column(name, d)), CodeCells(d, codes), groups, n_groups)

    @classmethod
    def drawn(
        cls, name: str, cells: SetCells, design: Design, groups: NDArray | None = None, n_groups: int | None = None
    ) -> Axis:
        """Return a column of sets over values 0..d-1 that this design drew."""
        return cls(name, SetStatement(numbered_column(name, design.d), design), cells, groups, n_groups)

    @classmethod
    def shuffled(
        cls, name: str, codes: NDArray, design: Design, groups: NDArray | None = None, n_groups: int | None = None
    ) -> Axis:
        """Return a column of single members of sets drawn by this design, in shuffled rows."""
        statement = MemberStatement(numbered_column(name, design.d), design)
        return cls(name, statement, CodeCells(design.d, codes), groups, n_groups)

    # ------------------------------------------------------------------ what its cells say

    @cached_property
    def d(self) -> int:
        """Return the number of base values."""
        return self.statement.d

    @cached_property
    def is_exact(self) -> bool:
        """Return whether the cell is the value: published exactly, or from a domain of one value."""
        design = self.statement.design
        return self.statement.is_exact or self.d == 1 or (design is not None and design.is_exact)

    @cached_property
    def is_drawn(self) -> bool:
        """Return whether the cell was drawn by a published design."""
        return self.statement.design is not None and not self.is_exact

    @cached_property
    def is_coarse(self) -> bool:
        """Return whether the cell leaves values open without a random design."""
        return not self.is_exact and self.statement.design is None

    @cached_property
    def is_tight(self) -> bool:
        """Return whether every class is known, with the values that certainly occur in it."""
        return self.is_coarse and self.classes is not None and self.statement.tightness in ("ends", "members")

    @cached_property
    def is_blind(self) -> bool:
        """Return whether every set is equally likely under every value (eta = d or p = 0), so that nothing can be
        estimated."""
        return self.is_drawn and self.design.is_blind

    @cached_property
    def is_shuffled(self) -> bool:
        """Return whether every row is one member of a set, in shuffled order."""
        return self.statement.rows_per_record > 1

    @cached_property
    def design(self) -> Design:
        """Return the design that drew the cells."""
        design = self.statement.design
        assert design is not None
        return design

    @cached_property
    def distinct(self) -> tuple[Cells, NDArray[np.int32]]:
        """Return the distinct cells, and the number of every row's cell."""
        cells, ids = self.cells.distinct()
        try:
            self.statement.check_cells(cells)
        except ModelDoesNotApply as error:
            raise QueryError(error.message, hint=error.hint or AGAIN) from None
        return cells, ids.astype(np.int32)

    @cached_property
    def rows(self) -> Likelihood:
        """Return P(cell | value) of the distinct cells, as sparse rows."""
        try:
            found = self.statement.likelihood(self.distinct[0])
        except ModelDoesNotApply as error:
            raise QueryError(error.message, hint=error.hint or AGAIN) from None
        if found is None:
            raise QueryError(f"The cells of {self.name!r} are not about single values.", hint="Ask for another column.")
        return found

    @cached_property
    def codes(self) -> NDArray:
        """Return the value of every cell of an exact axis."""
        if self.d == 1:
            return np.zeros(len(self.cells), np.uint8)
        return self.rows.possible(self.d)[1][self.distinct[1]]

    @cached_property
    def drawn_rows(self) -> Likelihood:
        """Return drawn cells as sparse rows without impossible members, scaled so that the likeliest is 1."""
        rows = self.rows
        top = float(rows.weight.max(initial=0.0)) or 1.0
        bounds, value = Likelihood(rows.bounds, rows.value, rows.weight).possible(self.d)
        if rows.floor == 0 and np.any(impossible := np.diff(bounds) == 0):
            raise QueryError(
                f"{int(impossible.sum()):,} distinct sets of {self.name!r} cannot come from its design "
                f"({self.design.title}, l = {self.design.eta}).",
                hint="Pass the design from the release's manifest; if you did, the release was altered.",
            )
        return Likelihood(bounds, value, rows.weight[rows.weight > 0] / top, rows.floor / top)

    # ------------------------------------------------------------------ what is reported

    @cached_property
    def grouping(self) -> Groups:
        """Return the grouping of base values."""
        if self.groups is None:
            return Groups(np.arange(self.d, dtype=np.int64), self.d, is_identity=True)
        of = np.asarray(self.groups, np.int64)
        return Groups(of, int(of.max(initial=-1)) + 1 if self.n_groups is None else self.n_groups)

    @cached_property
    def size(self) -> int:
        """Return the number of reported groups."""
        return self.grouping.size

    @cached_property
    def scoring(self) -> Scoring:
        """Return the scores of a drawn axis' sets for its groups."""
        return self.design.inversion.scoring(self.grouping)

    @property
    def ill_conditioned(self) -> str:
        """Describe what the sets of a drawn axis leave undetermined; empty if nothing."""
        if self.is_blind or not self.design.inversion.undetermined:
            return ""
        return (
            f"The sets of {self.name!r} (l = {self.design.eta}, {self.d} values) do not determine its counts "
            f"({self.design.inversion.undetermined} of {self.d} independent sums are undetermined), so "
            f"{int(self.scoring.lost.sum())} of its {self.size} reported groups have bounds instead of intervals."
        )


def numbered_column(name: str, d: int) -> Column:
    """Return a column of d values that are named by their numbers."""
    return Column(role=Role.PLAIN).over(name, Domain(tuple(map(str, range(d)))))
