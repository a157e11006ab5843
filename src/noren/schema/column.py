"""The description of a column, from the policy to the release.

A policy declares a column: its role, and where it matters its domain, hierarchy, distance or knowledge. When policy and
table meet, the declaration is completed by what the table showed (`Column.over`): a name, a domain, a hierarchy over
its values. A release publishes what of that a recipient needs. It is the same object all the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    InstanceOf,
    PrivateAttr,
    Tag,
    field_validator,
    model_validator,
)

from noren.schema.confusables import count_lookalikes
from noren.schema.distance import DISTANCES
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy, HierarchyError, value_text
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role

DistanceTable = tuple[tuple[float, ...], ...]
"""Distances between the values of a domain, row by row."""


class HierarchySpec(BaseModel):
    """A hierarchy written inside the policy, in exactly one of these forms."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    csv: str | None = Field(default=None, description="File in ARX's layout: value;parent;...;root per line.")
    tree: dict[str, Any] | None = Field(default=None, description="Nested table: inner nodes are keys, values lists.")
    prefix: tuple[int, ...] | None = Field(default=None, description="Prefix lengths to keep, falling: [3, 1].")
    widths: tuple[float, ...] | None = Field(default=None, description="Interval widths, each a multiple: [5, 10].")
    intervals: tuple[tuple[float, ...], ...] | None = Field(default=None, description="Interval edges per level.")
    calendar: tuple[Literal["week", "month", "quarter", "year", "decade"], ...] | None = Field(
        default=None, description='Spans of dates, growing: ["month", "year"].'
    )
    quantiles: tuple[int, ...] | None = Field(
        default=None, description="Numbers of intervals with about equally many people, falling: [8, 4, 2]."
    )
    frequency: tuple[int, ...] | None = Field(
        default=None, description="Values with fewer records than this are merged, level by level: [20, 100]."
    )

    @model_validator(mode="after")
    def _one_way(self) -> HierarchySpec:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"a hierarchy needs exactly one of its forms, got {given or 'none'}")
        return self

    @property
    def counts_records(self) -> bool:
        """Return whether the tree depends on how often values occur, not only on the values."""
        return self.quantiles is not None or self.frequency is not None

    def over(self, values: Sequence[str], counts: NDArray[np.int64]) -> Hierarchy:
        """Apply a rule to the values, and if necessary to their counts."""
        if self.quantiles is not None:
            return Hierarchy.from_quantiles(values, counts, self.quantiles)
        if self.frequency is not None:
            return Hierarchy.from_frequency(values, counts, self.frequency)
        if self.prefix is not None:
            return Hierarchy.from_prefixes(values, self.prefix)
        if self.calendar is not None:
            return Hierarchy.from_calendar(values, self.calendar)
        if self.widths is not None:
            return Hierarchy.from_widths(values, self.widths)
        if self.tree is not None:
            return Hierarchy.from_tree(self.tree)
        if self.intervals is None:
            raise HierarchyError("a file is not a rule.", hint="Read it with Hierarchy.read_csv.")
        return Hierarchy.from_edges(values, self.intervals)


class MatrixSpec(BaseModel):
    """A distance given as a table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    matrix: str = Field(description="CSV file: header of values, then one line of distances per value.")


class SemilatticeSpec(BaseModel):
    """A distance given by a hierarchy in which a value may have several parents."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    semilattice: str = Field(description="CSV file of child,parent pairs, one per line.")


class KnowledgeSpec(BaseModel):
    """Outside knowledge that is read from files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    csv: str = Field(description="CSV file of label,term pairs (also weight, prior, pair_weight), or a matrix of both.")
    priors: str | None = Field(
        default=None, description="CSV file of label,prior: the probability of each label before any release."
    )


def _knowledge_form(given: Any) -> str:
    return "Knowledge" if isinstance(given, Knowledge) else "KnowledgeSpec"


def _hierarchy_form(given: Any) -> str:
    return "Hierarchy" if isinstance(given, Hierarchy) else "HierarchySpec"


def _distance_form(given: Any) -> str:
    if isinstance(given, SemilatticeSpec) or (isinstance(given, dict) and "semilattice" in given):
        return "SemilatticeSpec"
    if isinstance(given, tuple | list):
        return "table"
    return "MatrixSpec" if isinstance(given, dict | MatrixSpec) else "name"


AnyHierarchy = Annotated[
    Annotated[InstanceOf[Hierarchy], Tag("Hierarchy")] | Annotated[HierarchySpec, Tag("HierarchySpec")],
    Discriminator(_hierarchy_form),
]
AnyDistance = Annotated[
    Annotated[Literal["equal", "ordinal", "numeric", "tree"], Tag("name")]
    | Annotated[MatrixSpec, Tag("MatrixSpec")]
    | Annotated[SemilatticeSpec, Tag("SemilatticeSpec")]
    | Annotated[DistanceTable, Tag("table")],
    Discriminator(_distance_form),
]
AnyKnowledge = Annotated[
    Annotated[InstanceOf[Knowledge], Tag("Knowledge")] | Annotated[KnowledgeSpec, Tag("KnowledgeSpec")],
    Discriminator(_knowledge_form),
]
VALUE_OPTIONS = ("values", "bins", "hierarchy", "kind", "format", "decimal", "top", "bottom")
BinRule = Annotated[str, Field(pattern=r"^(width|quantiles):[0-9]+(\.[0-9]+)?$")]
"""How bins follow from the data: intervals of a width, or of about as many people each."""
TERM_OPTIONS = ("separator", "columns", "knowledge")


class Column(BaseModel):
    """Role, domain and meaning of one column.

    The fields are what a policy may declare. `name`, `domain` and `tree` are there once the column has met its table;
    an open column (more values than are ever listed) keeps no domain.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    _name: str = PrivateAttr(default="")
    _domain: Domain | None = PrivateAttr(default=None)
    _members: dict[str, Column] = PrivateAttr(default_factory=dict)
    _differ: tuple[str, ...] = PrivateAttr(default=())

    role: Role = Field(description="What the column is: " + ", ".join(Role) + ".")
    kind: Literal["text", "integer", "number", "date", "datetime", "boolean"] | None = Field(
        default=None, description="Type of the values; detected by default."
    )
    format: str | None = Field(
        default=None, min_length=2, description="Format of dates in the notation of strftime: '%d.%m.%Y'."
    )
    decimal: Literal[".", ","] | None = Field(default=None, description="The decimal mark; detected by default.")
    missing_values: tuple[str, ...] = Field(
        default=(), description="Texts that mark a missing value in this column, in addition to those of [data]."
    )
    values: tuple[str, ...] | None = Field(
        default=None, description="The domain, in order; any other value is an error."
    )
    bins: tuple[float, ...] | BinRule | None = Field(
        default=None,
        description="Rising edges; the column becomes intervals. Or a rule: 'width:10', 'quantiles:8'.",
    )
    top: float | None = Field(default=None, description="Values from this number up become one open interval.")
    bottom: float | None = Field(default=None, description="Values below this number become one open interval.")
    hierarchy: AnyHierarchy | None = Field(
        default=None, description="Generalisation level by level: a file (in ARX's layout), or a table."
    )
    distance: AnyDistance = Field(default="equal", description="Distance between values.")
    min_count: int = Field(
        default=1,
        ge=1,
        description="Values with fewer records than this are rare (if the domain is taken from the data).",
    )
    rare: Literal["merge", "refuse"] = Field(default="refuse", description="Merge rare values, or refuse the table.")
    missing: Literal["category", "drop", "reject"] = Field(
        default="category", description="Missing cells: make them a category, drop the record, or refuse the table."
    )

    weight: bool = Field(
        default=False,
        description=(
            "Marks the column of survey weights: the number of people of the population that a record represents (one "
            "plain column)."
        ),
    )
    knowledge: AnyKnowledge | None = Field(
        default=None, description="Knowledge table that links terms to secret labels: a CSV file of label,term pairs."
    )
    separator: str | None = Field(
        default=None, min_length=1, description="Separator of the terms in a cell, for example ';'."
    )
    columns: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="Yes/no columns that together form the set; each column name is a term."
    )
    unknown: Literal["reject", "drop", "keep"] = Field(
        default="reject",
        description="Terms that the knowledge table lacks: refuse the table, drop the terms, or publish them.",
    )

    @field_validator("values", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return tuple(value_text(v) for v in value)

    @field_validator("hierarchy", mode="before")
    @classmethod
    def _file(cls, value: Any) -> Any:
        return HierarchySpec(csv=value) if isinstance(value, str) else value

    @field_validator("knowledge", mode="before")
    @classmethod
    def _knowledge_file(cls, value: Any) -> Any:
        return KnowledgeSpec(csv=value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _set_valued(self) -> Column:
        terms = self.role is Role.QUASI_SENSITIVE
        strange = [name for name in (VALUE_OPTIONS if terms else TERM_OPTIONS) if getattr(self, name) is not None]
        if terms and strange:
            raise ValueError(f"{strange[0]} is not an option of a quasi-sensitive column, which holds sets of terms")
        if not terms and (strange or self.unknown != "reject"):
            raise ValueError(f"{(*strange, 'unknown')[0]} is for columns of the role 'quasi-sensitive'")
        if terms and (self.min_count > 1 or self.distance != "equal"):
            raise ValueError("min_count and distance are not options of a quasi-sensitive column")
        if terms and self.knowledge is None:
            raise ValueError('a quasi-sensitive column needs knowledge, for example knowledge = "diseases.csv"')
        if self.columns is not None and self.separator is not None:
            raise ValueError("give separator or columns, not both")
        if self.columns is not None and len(set(self.columns)) != len(self.columns):
            raise ValueError("columns names a column twice")
        return self

    @model_validator(mode="after")
    def _weighs(self) -> Column:
        if not self.weight:
            return self
        if self.role is not Role.PLAIN:
            raise ValueError("a weight column needs the role 'plain', because weights are published exactly")
        strange = [name for name in ("values", "bins", "hierarchy", "top", "bottom") if getattr(self, name) is not None]
        if strange or self.min_count > 1:
            raise ValueError(
                f"{(*strange, 'min_count')[0]} is not an option of a weight column, which is published exactly"
            )
        if self.kind not in (None, "integer", "number"):
            raise ValueError("a weight column must hold numbers")
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Column:
        if self.values is not None:
            if len(set(self.values)) != len(self.values):
                raise ValueError("values lists an entry twice")
            if not self.values:
                raise ValueError("values is empty")
            if "" in self.values:
                raise ValueError("values contains an empty text, which means a missing cell")
            if alike := count_lookalikes(self.values):
                raise ValueError(
                    f"values contains {alike} entries that look the same as others; write each value in one way"
                )
            if self.bins is not None:
                raise ValueError("give values or bins, not both")
        if isinstance(self.bins, tuple) and (len(self.bins) < 2 or not all(a < b for a, b in pairwise(self.bins))):
            raise ValueError(f"bins need at least two edges in ascending order, got {list(self.bins)}")
        if self.format is not None and self.kind not in ("date", "datetime"):
            raise ValueError("format is for dates and needs kind = 'date' or 'datetime'")
        ends = self.top is not None or self.bottom is not None
        if ends and (isinstance(self.bins, tuple) or self.values is not None):
            raise ValueError("top and bottom apply to numbers without bins, or to bins made by a rule")
        if ends and self.kind not in (None, "integer", "number"):
            raise ValueError("top and bottom are for columns of numbers")
        if self.top is not None and self.bottom is not None and self.bottom >= self.top:
            raise ValueError(f"bottom = {self.bottom:g} is not below top = {self.top:g}")
        if self.distance == "tree" and self.hierarchy is None:
            raise ValueError("distance 'tree' needs a hierarchy")
        return self

    # ------------------------------------------------------------------ after the table was met

    def over(self, name: str, domain: Domain | None, **resolved: Any) -> Self:
        """Return the column completed by its table and files: with name, domain and hierarchy.

        What follows from these is asked for again and again, and is kept until the column is over another domain.
        """
        found = self.model_copy(update=resolved)
        found._name = name
        found._domain = domain
        for kept in ("name", "domain", "is_open", "d", "distances"):
            found.__dict__.pop(kept, None)
        return found

    def of_members(self, members: Mapping[str, Column], differ: Sequence[str]) -> Self:
        """Return the column as a composite whose values are tuples of its members' values."""
        found = self.model_copy()
        found.__dict__.pop("members", None)
        found._members = dict(members)
        found._differ = tuple(differ)
        return found

    @cached_property
    def members(self) -> Mapping[str, Column]:
        """Return the members of a composite column; empty for an ordinary column."""
        return self._members

    @property
    def differ(self) -> tuple[str, ...]:
        """Return the members in which any two tuples of a set must differ."""
        return self._differ

    @cached_property
    def name(self) -> str:
        return self._name

    @cached_property
    def is_open(self) -> bool:
        """Return whether the column has more values than Noren lists."""
        return self._domain is None

    @cached_property
    def domain(self) -> Domain:
        """Return the values that the column may have; an open column has none."""
        if self._domain is None:
            raise ValueError(f"column {self.name!r} has an open domain")
        return self._domain

    @cached_property
    def d(self) -> int:
        """Return the number of values in the domain; 0 for an open column."""
        return 0 if self._domain is None else len(self._domain)

    @property
    def tree(self) -> Hierarchy | None:
        """Return the hierarchy over the values; None until the table has completed it."""
        return self.hierarchy if isinstance(self.hierarchy, Hierarchy) else None

    @property
    def known(self) -> Knowledge:
        """Return the knowledge table that links the terms of a quasi-sensitive column to labels."""
        if not isinstance(self.knowledge, Knowledge):
            raise ValueError(f"column {self.name!r} has no knowledge table")
        return self.knowledge

    @property
    def edges(self) -> tuple[float, ...] | None:
        """Return the declared edges of bins; a rule takes them from the data."""
        return self.bins if isinstance(self.bins, tuple) else None

    @property
    def is_ordered(self) -> bool:
        """Return whether the values have a meaningful order."""
        return self._domain is not None and self._domain.is_ordered

    @cached_property
    def distances(self) -> NDArray[np.float64] | None:
        """Return the distance between any two values; None if all are equally far, or if the domain is open."""
        if self._domain is None or self.distance == "equal":
            return None
        if isinstance(self.distance, tuple):
            return np.array(self.distance)
        if isinstance(self.distance, str):
            return DISTANCES[self.distance](self._domain, self.tree)
        return None


def identifier() -> Column:
    """Declare a column that identifies a person; it is dropped from every release."""
    return Column(role=Role.IDENTIFIER)


def drop() -> Column:
    """Declare a column that is not published, although it does not identify people."""
    return Column(role=Role.DROP)


def quasi_identifier(**options: Any) -> Column:
    """Declare a column that others may know and that is not a secret."""
    return Column(role=Role.QUASI_IDENTIFIER, **options)


def sensitive(**options: Any) -> Column:
    """Declare a secret column."""
    return Column(role=Role.SENSITIVE, **options)


def sensitive_quasi_identifier(**options: Any) -> Column:
    """Declare a column that is both a secret and a quasi-identifier."""
    return Column(role=Role.SENSITIVE_QUASI_IDENTIFIER, **options)


def quasi_sensitive(**options: Any) -> Column:
    """Declare a column with sets of harmless terms that outside knowledge links to secrets."""
    return Column(role=Role.QUASI_SENSITIVE, **options)


def plain(**options: Any) -> Column:
    """Declare a harmless column, which is published exactly."""
    return Column(role=Role.PLAIN, **options)
