"""How a requirement is met. A method sees coded columns and decides; it never publishes.

Two kinds. A `DesignMethod` sees summaries alone (how often each value occurs) and returns a decoy design per column,
which the engine applies batch by batch. A `RecodingMethod` sees the codes of all quasi-identifiers and sensitive
columns and returns for every record what is published instead. Whatever either decides is verified by code it does
not share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from noren.cells import GroupTable, TermCells
from noren.designs.any import Design
from noren.errors import Problem
from noren.models.base import Model
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import Nodes
from noren.schema.roles import Role

Layout = Literal["sets", "records", "general"]
RandomOrder = Callable[[int], NDArray[np.int64]]
"""A uniformly random order of n things, from a cryptographic stream."""
Watch = Callable[[int, int, float], None]
"""Told how many groups are done, of how many, and what they cost on average."""


@dataclass(frozen=True)
class ColumnFacts:
    """What a method may know about a column: its role, its domain and how often each value occurs."""

    name: str
    role: Role
    domain: Domain
    counts: NDArray[np.int64]
    distances: NDArray[np.float64] | None = None
    hierarchy: Hierarchy | None = None


@dataclass(frozen=True)
class Decision:
    """The decoy design of every column that is not published as it is, and remarks for the holder."""

    designs: Mapping[str, Design]
    notes: Sequence[str] = field(default=())


@dataclass(frozen=True)
class TermColumn:
    """A set-valued column. Its domain begins with the terms of the knowledge; what follows are unknown terms."""

    name: str
    domain: Domain
    knowledge: Knowledge
    cells: TermCells


@dataclass(frozen=True)
class CodedTable:
    """The columns that decide: quasi-identifiers and sensitive columns of n records, as codes into their domains."""

    n: int
    columns: Mapping[str, ColumnFacts]
    codes: Mapping[str, NDArray]
    terms: Mapping[str, TermColumn] = field(default_factory=dict)
    """Quasi-sensitive columns. Those with one and the same knowledge are read together by an adversary."""

    @property
    def quasi(self) -> tuple[str, ...]:
        """Quasi-identifiers, in the order of the policy."""
        roles = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)
        return tuple(name for name, facts in self.columns.items() if facts.role in roles)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Sensitive columns, in the order of the policy."""
        return tuple(name for name, facts in self.columns.items() if facts.role.needs_requirement)


@dataclass(frozen=True)
class Suppressed:
    """How good the suppression of terms is known to be, group by group, for the columns of one knowledge table."""

    columns: tuple[str, ...]
    search: str
    records: NDArray[np.int64]
    """Records of every group."""
    cost: NDArray[np.float64]
    """Inverse weighted cost of every group (equation 2), 0 to 1."""
    lower_bound: NDArray[np.float64]
    """What that cost is proven to be at least."""
    optimal: NDArray[np.bool_]
    """Whether no cheaper removal exists."""
    searched: NDArray[np.bool_]
    """Whether the group did not hold as it was."""
    entries: int
    """Terms of all published records before."""
    removed: int
    """How many of them are not published."""
    nodes: int
    seconds: float

    @property
    def totals(self) -> dict[str, Any]:
        """What the search found, in all."""
        return {
            "columns": list(self.columns),
            "search": self.search,
            "groups": len(self.cost),
            "searched": int(self.searched.sum()),
            "proven": int((self.searched & self.optimal).sum()),
            "mean_cost": self.mean_cost,
            "gap": self.gap,
            "removed": self.removed,
            "entries": self.entries,
        }

    @property
    def mean_cost(self) -> float:
        return float(self.cost.mean()) if len(self.cost) else 0.0

    @property
    def mean_cost_of_records(self) -> float:
        """The same over records: what a record's group costs on average."""
        return float((self.cost * self.records).sum() / max(1, int(self.records.sum())))

    @property
    def gap(self) -> float:
        """By how much the mean cost may exceed the least possible for these groups, as a share of it."""
        least = float(self.lower_bound.mean()) if len(self.cost) else 0.0
        if self.mean_cost <= least:
            return 0.0
        return self.mean_cost / least - 1 if least > 0 else float("inf")

    @property
    def note(self) -> str:
        """One line for the holder."""
        names, many = ", ".join(self.columns), int(self.searched.sum())
        proven = int((self.optimal & self.searched).sum())
        text = f"{names}: {many:,} of {len(self.cost):,} groups gave up terms, {self.removed:,} of {self.entries:,}"
        text += f"; {proven:,} of these removals are proven to be the cheapest"
        if proven == many:
            return text
        if self.gap == float("inf"):
            return f"{text}; how much less the others could cost is not known"
        return f"{text}, all together cost at most {self.gap:.1%} more than the least"


@dataclass(frozen=True)
class NodeColumn:
    """A generalised column: data[i] is the node that record i publishes."""

    nodes: Nodes
    data: NDArray


@dataclass(frozen=True)
class GroupColumn:
    """A column taken apart: data[i] is the group of record i, and the table tells what each group holds."""

    table: GroupTable
    data: NDArray


@dataclass(frozen=True)
class Recoding:
    """What is published instead of the codes. Columns that are not named pass as they are."""

    columns: Mapping[str, NodeColumn | GroupColumn]
    keep: NDArray[np.bool_] | None = None
    """Which records are published; None for all."""
    notes: Sequence[str] = field(default=())
    terms: Mapping[str, TermCells] = field(default_factory=dict)
    """What is published of every record's terms; columns that are not named keep all."""
    suppressed: Sequence[Suppressed] = ()


class Method(BaseModel, ABC):
    """A way to make a release. Its fields are the options of `[method]`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str

    @property
    def layout(self) -> Layout:
        """One row per person with sets, one shuffled row per possible value, or one row per person with nodes."""
        return "sets"

    @abstractmethod
    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        """What is wrong before any data is seen."""


class DesignMethod(Method):
    """A method that draws decoys by a published design."""

    @abstractmethod
    def decide(self, columns: Mapping[str, ColumnFacts], requirements: Sequence[Model]) -> Decision:
        """Choose the parameters. Raises PolicyError with everything that makes it impossible."""


class RecodingMethod(Method):
    """A method that generalises, groups or suppresses records."""

    suppression: float = Field(
        default=0.0, ge=0, lt=1, description="Largest share of records that may be dropped to keep the others precise."
    )

    needs_hierarchies: ClassVar[bool] = False
    """Whether every quasi-identifier must have a hierarchy; an automatic one is made where the policy gives none."""

    @property
    def layout(self) -> Layout:
        return "general"

    @property
    def wants_hierarchies(self) -> bool:
        """`needs_hierarchies`, for methods whose options decide it."""
        return self.needs_hierarchies

    @abstractmethod
    def recode(self, table: CodedTable, requirements: Sequence[Model], order: RandomOrder) -> Recoding:
        """Choose what is published. Raises RequirementNotMet with what is reachable where that falls short."""

    def recode_watched(
        self, table: CodedTable, requirements: Sequence[Model], order: RandomOrder, watch: Watch
    ) -> Recoding:
        """`recode`, telling somebody how far it is. Most methods are too quick to have anything to tell."""
        return self.recode(table, requirements, order)
