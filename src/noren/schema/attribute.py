"""What a policy says about one column."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, InstanceOf, Tag, field_validator, model_validator

from noren.schema.hierarchy import Hierarchy, value_text
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role


class HierarchySpec(BaseModel):
    """A hierarchy written inside the policy: exactly one of these ways."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    csv: str | None = Field(default=None, description="File in ARX's layout: value;parent;...;root per line.")
    tree: dict[str, Any] | None = Field(default=None, description="Nested table: inner nodes are keys, values lists.")
    prefix: tuple[int, ...] | None = Field(default=None, description="Prefix lengths to keep, falling: [3, 1].")
    widths: tuple[float, ...] | None = Field(default=None, description="Interval widths, each a multiple: [5, 10].")
    intervals: tuple[tuple[float, ...], ...] | None = Field(default=None, description="Interval edges per level.")

    @model_validator(mode="after")
    def _one_way(self) -> HierarchySpec:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"a hierarchy is written in one way, got {given or 'none'}")
        return self


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

    csv: str = Field(description="CSV file of label,term pairs (also weight, prior), or a matrix of labels and terms.")
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
    return "MatrixSpec" if isinstance(given, dict | MatrixSpec) else "name"


AnyHierarchy = Annotated[
    Annotated[InstanceOf[Hierarchy], Tag("Hierarchy")] | Annotated[HierarchySpec, Tag("HierarchySpec")],
    Discriminator(_hierarchy_form),
]
AnyDistance = Annotated[
    Annotated[Literal["equal", "ordinal", "numeric", "tree"], Tag("name")]
    | Annotated[MatrixSpec, Tag("MatrixSpec")]
    | Annotated[SemilatticeSpec, Tag("SemilatticeSpec")],
    Discriminator(_distance_form),
]
AnyKnowledge = Annotated[
    Annotated[InstanceOf[Knowledge], Tag("Knowledge")] | Annotated[KnowledgeSpec, Tag("KnowledgeSpec")],
    Discriminator(_knowledge_form),
]
VALUE_OPTIONS = ("values", "bins", "hierarchy")
TERM_OPTIONS = ("separator", "columns", "knowledge")


class Attribute(BaseModel):
    """Role, domain and meaning of one column."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    role: Role = Field(description="What the column is: " + ", ".join(Role) + ".")
    values: tuple[str, ...] | None = Field(default=None, description="The domain, in its order.")
    bins: tuple[float, ...] | None = Field(default=None, description="Rising edges; the column becomes intervals.")
    hierarchy: AnyHierarchy | None = Field(default=None, description="Generalisation hierarchy.")
    distance: AnyDistance = Field(default="equal", description="How far apart two values are.")
    min_count: int = Field(default=1, ge=1, description="Values with fewer records are rare (domains from data).")
    rare: Literal["merge", "refuse"] = Field(default="refuse", description="Merge rare values, or refuse the table.")
    missing: Literal["category", "drop", "reject"] = Field(
        default="category", description="Missing cells: a category of their own, drop the record, or refuse."
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
    def _set_valued(self) -> Attribute:
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
    def _consistent(self) -> Attribute:
        if self.values is not None:
            if len(set(self.values)) != len(self.values):
                raise ValueError("values repeats an entry")
            if not self.values:
                raise ValueError("values is empty")
            if "" in self.values:
                raise ValueError("values holds an empty text, which means a missing cell and is never true")
            if self.bins is not None:
                raise ValueError("give values or bins, not both")
        if self.bins is not None and (len(self.bins) < 2 or not all(a < b for a, b in pairwise(self.bins))):
            raise ValueError(f"bins must rise and hold at least two edges, got {list(self.bins)}")
        if self.distance == "tree" and self.hierarchy is None:
            raise ValueError("distance 'tree' needs a hierarchy")
        return self


def identifier() -> Attribute:
    """A column that names a person; dropped from every release."""
    return Attribute(role=Role.IDENTIFIER)


def quasi_identifier(**options: Any) -> Attribute:
    """A column that others may know, and that is no secret."""
    return Attribute(role=Role.QUASI_IDENTIFIER, **options)


def sensitive(**options: Any) -> Attribute:
    """A secret column."""
    return Attribute(role=Role.SENSITIVE, **options)


def sensitive_quasi_identifier(**options: Any) -> Attribute:
    """A column that both finds people and is a secret."""
    return Attribute(role=Role.SENSITIVE_QUASI_IDENTIFIER, **options)


def quasi_sensitive(**options: Any) -> Attribute:
    """Sets of harmless terms that outside knowledge links to secrets."""
    return Attribute(role=Role.QUASI_SENSITIVE, **options)


def plain(**options: Any) -> Attribute:
    """A harmless column, published as it is."""
    return Attribute(role=Role.PLAIN, **options)
