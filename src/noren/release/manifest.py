"""What a release says about itself, field by field on an allow-list.

The manifest never holds a secret, an identifier, or anything computed from the exact distribution of a protected
column: a verdict that rests on the original publishes whether it holds, not the figure.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from noren.designs.any import PublishedDesign
from noren.errors import NorenError
from noren.models.base import Form, PublishedColumn
from noren.schema.distance import DISTANCES
from noren.schema.domain import Domain, DomainSource, Kind, bin_labels, fits_kind
from noren.schema.hierarchy import Hierarchy
from noren.schema.meaning import Meaning
from noren.schema.nodes import Nodes, tree_of
from noren.schema.roles import Role

MOST_RECORDS = 2**53
MOST_GROUPS = 2**40
Code = Annotated[int, Field(ge=-(2**31), le=2**31)]


class ColumnEntry(BaseModel):
    """One published column."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    role: Role
    form: Form
    kind: Kind
    values: tuple[str, ...] | None = None
    domain_source: DomainSource | None = None
    edges: tuple[float, ...] | None = None
    hierarchy: tuple[tuple[str, ...], ...] | None = None
    design: PublishedDesign | None = None
    distance: Literal["ordinal", "numeric", "tree"] | tuple[tuple[float, ...], ...] | None = Field(
        default=None, description="How far apart two values are, where a requirement depends on it."
    )
    nodes: tuple[tuple[str, tuple[tuple[Code, Code], ...]], ...] | None = Field(
        default=None, description="General values that the hierarchy does not name: label and runs of base values."
    )
    groups: int | None = Field(
        default=None, ge=1, le=MOST_GROUPS, description="Number of groups whose ids stand in the column."
    )
    knowledge: int | None = Field(
        default=None, ge=1, le=1000, description="Number of the knowledge table that links the terms of the column."
    )

    @model_validator(mode="after")
    def _fits(self) -> ColumnEntry:
        if isinstance(self.distance, tuple) and {len(self.distance), *map(len, self.distance)} != {self.d}:
            raise ValueError("the distances are not a square table over the values")
        if (self.values is None) != (self.form == "open") or len(set(self.values or ())) != self.d:
            raise ValueError("a column that is not open lists its values, each once")
        if (self.design is not None) != (self.form in ("set", "member")):
            raise ValueError("a column has a design exactly if it publishes sets or their members")
        if (self.groups is not None) != (self.form == "group"):
            raise ValueError("a column has groups exactly if it publishes their ids")
        if (self.knowledge is not None) != (self.form == "terms") or (self.form == "terms" and self.kind != "string"):
            raise ValueError("a column has a knowledge table exactly if it publishes terms")
        if self.form != "node" and self.nodes is not None:
            raise ValueError("only a generalised column has general values")
        if self.form == "node" and (self.nodes is None) == (self.hierarchy is None):
            raise ValueError("a generalised column takes its nodes from a hierarchy or from a list")
        if self.design is not None and self.design.d != self.d:
            raise ValueError("the design is not over the values")
        if self.hierarchy is not None and (self.hierarchy[:1] != (self.values,) or self._ragged):
            raise ValueError("the hierarchy is not over the values")
        if self.values is not None and not fits_kind(self.values, self.kind):
            raise ValueError("the values are not of the kind")
        if self.hierarchy is not None:
            try:
                Hierarchy(self.hierarchy)
            except NorenError:
                raise ValueError("the hierarchy is not a tree") from None
        if self.form == "node" and len(set(self.catalogue.labels)) != len(self.catalogue):
            raise ValueError("two general values have one label")
        if self.edges is not None and self.values[: len(self.edges) - 1] != bin_labels(self.edges):  # type: ignore[index]
            raise ValueError("the edges are not those of the values")
        return self

    @property
    def _ragged(self) -> bool:
        return any(len(level) != self.d for level in self.hierarchy or ())

    @property
    def d(self) -> int:
        return len(self.values) if self.values is not None else 0

    @cached_property
    def catalogue(self) -> Nodes:
        """The nodes of a generalised column."""
        if self.nodes is None:
            assert self.hierarchy is not None
            return tree_of(Hierarchy(self.hierarchy)).nodes
        return Nodes.from_runs(self.d, [label for label, _ in self.nodes], [runs for _, runs in self.nodes])

    @property
    def domain(self) -> Domain:
        if self.values is None:
            raise ValueError(f"column {self.name!r} has an open domain")
        return Domain(self.values, self.kind, self.domain_source or "data", edges=self.edges)

    @property
    def meaning(self) -> Meaning:
        hierarchy = Hierarchy(self.hierarchy) if self.hierarchy is not None else None
        return Meaning(self.name, None if self.values is None else self.domain, hierarchy)

    @property
    def published(self) -> PublishedColumn:
        ordered = self.values is not None and self.domain.is_ordered
        hierarchy = self.meaning.hierarchy
        nodes = self.catalogue if self.form == "node" else None
        return PublishedColumn(
            self.name,
            self.form,
            self.d,
            self.design,
            ordered,
            self.distances,
            hierarchy,
            self.role,
            nodes,
            labels=self.values or (),
            terms=(self.values or ()) if self.form == "terms" else (),
        )

    @property
    def distances(self) -> NDArray[np.float64] | None:
        """The matrix of distances between the values, where they were published."""
        if self.distance is None:
            return None
        if isinstance(self.distance, str):
            return DISTANCES[self.distance](self.domain, self.meaning.hierarchy)
        return np.array(self.distance)


class VerdictEntry(BaseModel):
    """A verdict as it is published."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    column: str
    required: float
    achieved: float | None = Field(description="Left out where it would tell about the exact distribution.")
    holds: bool
    basis: str


class Manifest(BaseModel):
    """Everything that is published besides the cells."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    noren: str = Field(description="Version of the software that made the release.")
    title: str = ""
    records: int = Field(ge=0, le=MOST_RECORDS, description="Number of people.")
    suppressed: int = Field(
        default=0, ge=0, le=MOST_RECORDS, description="Number of people left out to protect the others."
    )
    layout: Literal["sets", "records", "general"] = Field(
        default="sets",
        description="One row per person with sets or with general values, or one shuffled row per possible value.",
    )
    columns: tuple[ColumnEntry, ...]
    requirements: tuple[dict[str, Any], ...]
    method: dict[str, Any]
    randomness: Literal["fresh", "memoised"]
    verdicts: tuple[VerdictEntry, ...]

    @model_validator(mode="after")
    def _fits(self) -> Manifest:
        if len({entry.name for entry in self.columns}) != len(self.columns):
            raise ValueError("two columns have one name")
        forms = [entry.form for entry in self.columns if entry.design is not None]
        general = any(entry.form in ("node", "group", "terms") for entry in self.columns)
        fits = {
            "sets": "member" not in forms and not general,
            "records": forms == ["member"] and not general,
            "general": not forms,
        }
        if not fits[self.layout]:
            raise ValueError("the layout does not fit the columns")
        tables = {entry.knowledge for entry in self.columns if entry.knowledge is not None}
        if tables != set(range(1, len(tables) + 1)):
            raise ValueError("the knowledge tables are not numbered from 1 on")
        return self

    def column(self, name: str) -> ColumnEntry:
        return next(entry for entry in self.columns if entry.name == name)
