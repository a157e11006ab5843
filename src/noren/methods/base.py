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
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from noren.cells import GroupTable
from noren.designs.any import Design
from noren.errors import Problem
from noren.models.base import Model
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Nodes
from noren.schema.roles import Role

Layout = Literal["sets", "records", "general"]
RandomOrder = Callable[[int], NDArray[np.int64]]
"""A uniformly random order of n things, from a cryptographic stream."""


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
class CodedTable:
    """The columns that decide: quasi-identifiers and sensitive columns of n records, as codes into their domains."""

    n: int
    columns: Mapping[str, ColumnFacts]
    codes: Mapping[str, NDArray]

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

    @abstractmethod
    def recode(self, table: CodedTable, requirements: Sequence[Model], order: RandomOrder) -> Recoding:
        """Choose what is published. Raises RequirementNotMet with what is reachable where that falls short."""
