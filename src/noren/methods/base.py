"""How a requirement is met. A method decides from summaries; it never sees a record while it decides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from noren.designs.decoys import DecoyDesign
from noren.errors import Problem
from noren.models.base import Model
from noren.schema.domain import Domain
from noren.schema.roles import Role


@dataclass(frozen=True)
class ColumnFacts:
    """What a method may know about a column: its role, its domain and how often each value occurs."""

    name: str
    role: Role
    domain: Domain
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class Decision:
    """The decoy design of every column that is not published as it is, and remarks for the holder."""

    designs: Mapping[str, DecoyDesign]
    notes: Sequence[str] = field(default=())


class Method(BaseModel, ABC):
    """A way to make a release. Its fields are the options of `[method]`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str

    @abstractmethod
    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        """What is wrong before any data is seen."""

    @abstractmethod
    def decide(self, columns: Mapping[str, ColumnFacts], requirements: Sequence[Model]) -> Decision:
        """Choose the parameters. Raises PolicyError with everything that makes it impossible."""
