"""How a requirement is met. A method decides from summaries; it never sees a record while it decides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from noren.designs.any import Design
from noren.errors import Problem
from noren.models.base import Model
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role


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


class Method(BaseModel, ABC):
    """A way to make a release. Its fields are the options of `[method]`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str

    @property
    def layout(self) -> Literal["sets", "records"]:
        """One row per person with sets, or one shuffled row per possible value."""
        return "sets"

    @abstractmethod
    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        """What is wrong before any data is seen."""

    @abstractmethod
    def decide(self, columns: Mapping[str, ColumnFacts], requirements: Sequence[Model]) -> Decision:
        """Choose the parameters. Raises PolicyError with everything that makes it impossible."""
