"""One attribute of a cross tabulation: its published cells, what they say, and how base values are put together.

An axis asks the column's statement everything: whether a cell is the truth, how it was drawn, which values it leaves
possible and with which probability. What follows is one of three ways to read it: *exact* (the cell says the value),
*drawn* (a published design made it, so its likelihood is known), *coarse* (a general value or a group).

Survey weights: how many people of the population every record stands for.

They are scaled to a mean of 1 and the mean is kept beside them, so that all that counts records (stopping rules, least
sizes) stays as it is; sums are multiplied by it when they are reported. Unequal weights cost precision: Kish's design
effect n sum w^2 / (sum w)^2 is by what factor the variance of a mean exceeds that of as many records of equal weight,
where the weights have nothing to do with what is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    """One weight for every row that is asked about."""

    name: str
    of: NDArray[np.float64]
    """Scaled: their mean is 1."""
    unit: float
    """The mean that they were divided by."""

    @classmethod
    def scaled(cls, name: str, numbers: NDArray[np.float64]) -> Weights:
        """Refuses what is no weight: a release that was made by this package has none."""
        if not np.isfinite(numbers).all() or numbers.min(initial=1.0) <= 0:
            raise ReleaseError(
                f"the weights {name!r} are not all numbers above 0.",
                hint="Ask the holder for the release again, or count records: weighted=False.",
            )
        unit = float(numbers.mean()) if len(numbers) else 1.0
        return cls(name, numbers / unit, unit)

    @property
    def design_effect(self) -> float:
        """Kish's: how much of the precision of as many equal records unequal weights cost."""
        return float(np.mean(self.of**2)) if len(self.of) else 1.0

    @property
    def assumes(self) -> str:
        """What a weighted number rests on, besides."""
        effect = f"design effect {self.design_effect:.2f}"
        return f"a record stands for as many people as {self.name!r} says ({effect}; records are weighed independently)"

    def assumes_without(self, suppressed: int) -> str:
        """The same of a table that so many people were left out of, whose weights nobody knows."""
        if not suppressed:
            return self.assumes
        return f"{self.assumes}; the {suppressed:,} people left out are not counted, for their weights are not known"


AGAIN = "Ask the holder for the release again."
ALIKE = 1e-8
"""Members of a set whose likelihoods differ by less, relatively, weigh the same."""


@dataclass(frozen=True)
class Classes:
    """Which records look alike in every column of the release that its method generalised."""

    of: NDArray[np.int64]
    """The class of every row that is asked about."""
    sizes: NDArray[np.int64]
    """How many rows each class has in the whole release."""
    nodes: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """What each class publishes in every such column."""
    points: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Where that lies among the column's values, from 0 to 1: which classes are neighbours."""


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
                    f"The weights of {self.name!r} are not {d} numbers from 0 up.",
                    hint="Give one weight for every value of the domain.",
                )

    @classmethod
    def exact(
        cls, name: str, codes: NDArray, d: int, groups: NDArray | None = None, n_groups: int | None = None
    ) -> Axis:
        """A column of known codes 0..d-1, whatever its values are called."""
        return cls(name, ExactStatement(numbered_column(name, d)), CodeCells(d, codes), groups, n_groups)

    @classmethod
    def drawn(
        cls, name: str, cells: SetCells, design: Design, groups: NDArray | None = None, n_groups: int | None = None
    ) -> Axis:
        """A column of sets that this design drew over values 0..d-1, whatever they are called."""
        return cls(name, SetStatement(numbered_column(name, design.d), design), cells, groups, n_groups)

    @classmethod
    def shuffled(
        cls, name: str, codes: NDArray, design: Design, groups: NDArray | None = None, n_groups: int | None = None
    ) -> Axis:
        """A column of single members of sets that this design drew, in rows of which nobody knows who belongs where."""
        statement = MemberStatement(numbered_column(name, design.d), design)
        return cls(name, statement, CodeCells(design.d, codes), groups, n_groups)

    # ------------------------------------------------------------------ what its cells say

    @cached_property
    def d(self) -> int:
        """Base values."""
        return self.statement.d

    @cached_property
    def is_exact(self) -> bool:
        """The cell says the value: published as it is, or a domain with nothing to hide."""
        design = self.statement.design
        return self.statement.is_exact or self.d == 1 or (design is not None and design.is_exact)

    @cached_property
    def is_drawn(self) -> bool:
        """Chance decided the cell, by a published design."""
        return self.statement.design is not None and not self.is_exact

    @cached_property
    def is_coarse(self) -> bool:
        """The cell leaves values open, and nothing about which ones is random by design."""
        return not self.is_exact and self.statement.design is None

    @cached_property
    def is_tight(self) -> bool:
        """Every class is known, and which values certainly occur in it."""
        return self.is_coarse and self.classes is not None and self.statement.tightness in ("ends", "members")

    @cached_property
    def is_blind(self) -> bool:
        """Every set is as likely under every value (eta = d or p = 0): nothing can be learnt along this axis."""
        return self.is_drawn and self.design.is_blind

    @cached_property
    def is_shuffled(self) -> bool:
        """Every row holds one member of a set, and nobody knows which rows belong together."""
        return self.statement.rows_per_record > 1

    @cached_property
    def design(self) -> Design:
        """How the cells were drawn."""
        design = self.statement.design
        assert design is not None
        return design

    @cached_property
    def distinct(self) -> tuple[Cells, NDArray[np.int32]]:
        """The different cells, and for every row the number of its cell among them."""
        cells, ids = self.cells.distinct()
        try:
            self.statement.checked(cells)
        except ModelDoesNotApply as error:
            raise QueryError(error.message, hint=AGAIN) from None
        return cells, ids.astype(np.int32)

    @cached_property
    def rows(self) -> Likelihood:
        """P(cell | value) of the different cells, as sparse rows."""
        try:
            found = self.statement.likelihood(self.distinct[0])
        except ModelDoesNotApply as error:
            raise QueryError(error.message, hint=AGAIN) from None
        if found is None:
            raise QueryError(
                f"The cells of {self.name!r} do not speak of single values.", hint="Ask for another column."
            )
        return found

    @cached_property
    def codes(self) -> NDArray:
        """The value of every cell of an exact axis."""
        if self.d == 1:
            return np.zeros(len(self.cells), np.uint8)
        return self.rows.possible(self.d)[1][self.distinct[1]]

    @cached_property
    def sets(self) -> tuple[NDArray[np.int32], NDArray[np.float64] | None]:
        """The different sets of a drawn axis as rows of codes, and what their members weigh, each set's largest put at
        1; None if all members weigh alike."""
        rows, eta = self.rows, self.design.eta
        sets, weight = rows.value.reshape(-1, eta).astype(np.int32), rows.weight.reshape(-1, eta)
        top = weight.max(axis=1, keepdims=True)
        if np.any(top <= 0):
            raise QueryError(
                f"{int((top <= 0).sum()):,} distinct sets of {self.name!r} cannot come from its design "
                f"({self.design.title}, l = {eta}).",
                hint="Pass the design from the release's manifest; if you did, the release was altered.",
            )
        weight = weight / top
        return sets, None if np.all(weight > 1 - ALIKE) else weight

    # ------------------------------------------------------------------ what is reported

    @cached_property
    def grouping(self) -> Groups:
        """How base values are put together."""
        if self.groups is None:
            return Groups(np.arange(self.d, dtype=np.int64), self.d, is_identity=True)
        of = np.asarray(self.groups, np.int64)
        return Groups(of, int(of.max(initial=-1)) + 1 if self.n_groups is None else self.n_groups)

    @cached_property
    def size(self) -> int:
        """Number of reported groups."""
        return self.grouping.size

    @cached_property
    def scoring(self) -> Scoring:
        """The scores of a drawn axis' sets for its groups."""
        return self.design.inversion.scoring(self.grouping)

    @property
    def ill_conditioned(self) -> str:
        """What the sets of a drawn axis leave undetermined; empty if nothing."""
        if self.is_blind or not self.design.inversion.undetermined:
            return ""
        return (
            f"The sets of {self.name!r} (l = {self.design.eta}, {self.d} values) leave "
            f"{self.design.inversion.undetermined} of {self.d} independent sums of its counts undetermined: "
            f"{int(self.scoring.lost.sum())} of its {self.size} reported groups have bounds instead of intervals."
        )


def numbered_column(name: str, d: int) -> Column:
    """A column of d values that are called by their numbers."""
    return Column(role=Role.PLAIN).met(name, Domain(tuple(map(str, range(d)))))
