"""What a column means, from the policy to the release.

A policy declares a column: its role, and where it matters its domain, hierarchy, distance or knowledge. When policy and
table meet, the declaration is completed by what the table showed (`Column.met`): a name, a domain, a hierarchy over
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
    """A hierarchy written inside the policy: exactly one of these ways."""

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
        default=None, description="Numbers of intervals of about as many people each, falling: [8, 4, 2]."
    )
    frequency: tuple[int, ...] | None = Field(
        default=None, description="Values that fewer records have are put together, level by level: [20, 100]."
    )

    @model_validator(mode="after")
    def _one_way(self) -> HierarchySpec:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"a hierarchy is written in one way, got {given or 'none'}")
        return self

    @property
    def counts_records(self) -> bool:
        """Whether the tree follows from how often values occur, and not from the values alone."""
        return self.quantiles is not None or self.frequency is not None

    def over(self, values: Sequence[str], counts: NDArray[np.int64]) -> Hierarchy:
        """What a rule makes of the values themselves, and where it says so of how often they occur."""
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
            raise HierarchyError("a file is no rule.", hint="Read it with Hierarchy.read_csv.")
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
        default=None, description="CSV file of label,prior: how likely each label is before any release."
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
        default=None, description="What the texts write down; sniffed if left out."
    )
    format: str | None = Field(
        default=None, min_length=2, description="How dates are written, as strftime has it: '%d.%m.%Y'."
    )
    decimal: Literal[".", ","] | None = Field(
        default=None, description="The mark before decimals; sniffed if left out."
    )
    missing_values: tuple[str, ...] = Field(
        default=(), description="Texts that mean 'missing' in this column, besides those of [data]."
    )
    values: tuple[str, ...] | None = Field(default=None, description="The domain, in its order; others are an error.")
    bins: tuple[float, ...] | BinRule | None = Field(
        default=None,
        description="Rising edges; the column becomes intervals. Or a rule: 'width:10', 'quantiles:8'.",
    )
    top: float | None = Field(default=None, description="Values from here up become one open interval.")
    bottom: float | None = Field(default=None, description="Values below become one open interval.")
    hierarchy: AnyHierarchy | None = Field(
        default=None, description="Which values belong together, level by level: a file (ARX's layout), or a table."
    )
    distance: AnyDistance = Field(default="equal", description="How far apart two values are.")
    min_count: int = Field(default=1, ge=1, description="Values with fewer records are rare (domains from data).")
    rare: Literal["merge", "refuse"] = Field(default="refuse", description="Merge rare values, or refuse the table.")
    missing: Literal["category", "drop", "reject"] = Field(
        default="category", description="Missing cells: a category of their own, drop the record, or refuse."
    )

    weight: bool = Field(
        default=False,
        description="Survey weights: how many people of the population a record stands for (one plain column).",
    )
    knowledge: AnyKnowledge | None = Field(
        default=None, description="Which terms belong to which secret label: a CSV file of label,term pairs."
    )
    separator: str | None = Field(
        default=None, min_length=1, description="What stands between the terms of a cell, for example ';'."
    )
    columns: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="Yes/no columns that together are the set: a column name is a term."
    )
    unknown: Literal["reject", "drop", "keep"] = Field(
        default="reject",
        description="Terms that the knowledge does not name: refuse the table, leave them out, or publish them.",
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
            raise ValueError(f"a quasi-sensitive column holds sets of terms and has no {strange[0]}")
        if not terms and (strange or self.unknown != "reject"):
            raise ValueError(f"{(*strange, 'unknown')[0]} is for columns of the role 'quasi-sensitive'")
        if terms and (self.min_count > 1 or self.distance != "equal"):
            raise ValueError("a quasi-sensitive column has neither min_count nor distance")
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
            raise ValueError("a weight is a column of the role 'plain': it is published as it is")
        strange = [name for name in ("values", "bins", "hierarchy", "top", "bottom") if getattr(self, name) is not None]
        if strange or self.min_count > 1:
            raise ValueError(f"a weight is published as it is and has no {(*strange, 'min_count')[0]}")
        if self.kind not in (None, "integer", "number"):
            raise ValueError("a weight is a column of numbers")
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Column:
        if self.values is not None:
            if len(set(self.values)) != len(self.values):
                raise ValueError("values repeats an entry")
            if not self.values:
                raise ValueError("values is empty")
            if "" in self.values:
                raise ValueError("values holds an empty text, which means a missing cell and is never true")
            if alike := count_lookalikes(self.values):
                raise ValueError(f"values holds {alike} entries that look like others: write each value in one way")
            if self.bins is not None:
                raise ValueError("give values or bins, not both")
        if isinstance(self.bins, tuple) and (len(self.bins) < 2 or not all(a < b for a, b in pairwise(self.bins))):
            raise ValueError(f"bins must rise and hold at least two edges, got {list(self.bins)}")
        if self.format is not None and self.kind not in ("date", "datetime"):
            raise ValueError("format says how dates are written, and needs kind = 'date' or 'datetime'")
        ends = self.top is not None or self.bottom is not None
        if ends and (isinstance(self.bins, tuple) or self.values is not None):
            raise ValueError("top and bottom are ends of numbers as they are, or of bins that a rule makes")
        if ends and self.kind not in (None, "integer", "number"):
            raise ValueError("top and bottom are for columns of numbers")
        if self.top is not None and self.bottom is not None and self.bottom >= self.top:
            raise ValueError(f"bottom = {self.bottom:g} is not below top = {self.top:g}")
        if self.distance == "tree" and self.hierarchy is None:
            raise ValueError("distance 'tree' needs a hierarchy")
        return self

    # ------------------------------------------------------------------ after the table was met

    def met(self, name: str, domain: Domain | None, **resolved: Any) -> Self:
        """The column with a name and a domain, and with what else the table or its files made of the declaration."""
        found = self.model_copy(update=resolved)
        found._name = name
        found._domain = domain
        for made in ("distances",):
            found.__dict__.pop(made, None)
        return found

    def of_members(self, members: Mapping[str, Column], differ: Sequence[str]) -> Self:
        """The column as a composite: its values are tuples of the members' values."""
        found = self.model_copy()
        found._members = dict(members)
        found._differ = tuple(differ)
        return found

    @property
    def members(self) -> Mapping[str, Column]:
        """The columns that a policy hides together under this one; none where it stands for itself."""
        return self._members

    @property
    def differ(self) -> tuple[str, ...]:
        """Members in which any two tuples of a set must differ."""
        return self._differ

    @property
    def name(self) -> str:
        return self._name

    @property
    def is_open(self) -> bool:
        """Whether the column has more values than are ever listed."""
        return self._domain is None

    @property
    def domain(self) -> Domain:
        """The values the column may take. An open column has none to list."""
        if self._domain is None:
            raise ValueError(f"column {self.name!r} has an open domain")
        return self._domain

    @property
    def d(self) -> int:
        """How many values the domain lists; 0 for an open one."""
        return 0 if self._domain is None else len(self._domain)

    @property
    def tree(self) -> Hierarchy | None:
        """The hierarchy over the values, once it is there: one that is only declared has no values yet."""
        return self.hierarchy if isinstance(self.hierarchy, Hierarchy) else None

    @property
    def known(self) -> Knowledge:
        """What links the terms of a quasi-sensitive column to labels."""
        if not isinstance(self.knowledge, Knowledge):
            raise ValueError(f"column {self.name!r} has no knowledge table")
        return self.knowledge

    @property
    def edges(self) -> tuple[float, ...] | None:
        """Declared bin edges; a rule makes them from the data."""
        return self.bins if isinstance(self.bins, tuple) else None

    @property
    def is_ordered(self) -> bool:
        """Whether the order of the values means something."""
        return self._domain is not None and self._domain.is_ordered

    @cached_property
    def distances(self) -> NDArray[np.float64] | None:
        """How far apart any two values are; None where all are equally far, or the domain is not listed."""
        if self._domain is None or self.distance == "equal":
            return None
        if isinstance(self.distance, tuple):
            return np.array(self.distance)
        if isinstance(self.distance, str):
            return DISTANCES[self.distance](self._domain, self.tree)
        return None


def identifier() -> Column:
    """A column that names a person; dropped from every release."""
    return Column(role=Role.IDENTIFIER)


def drop() -> Column:
    """A column that no release is to show, without the claim that it names people."""
    return Column(role=Role.DROP)


def quasi_identifier(**options: Any) -> Column:
    """A column that others may know, and that is no secret."""
    return Column(role=Role.QUASI_IDENTIFIER, **options)


def sensitive(**options: Any) -> Column:
    """A secret column."""
    return Column(role=Role.SENSITIVE, **options)


def sensitive_quasi_identifier(**options: Any) -> Column:
    """A column that both finds people and is a secret."""
    return Column(role=Role.SENSITIVE_QUASI_IDENTIFIER, **options)


def quasi_sensitive(**options: Any) -> Column:
    """Sets of harmless terms that outside knowledge links to secrets."""
    return Column(role=Role.QUASI_SENSITIVE, **options)


def plain(**options: Any) -> Column:
    """A harmless column, published as it is."""
    return Column(role=Role.PLAIN, **options)
