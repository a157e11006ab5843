"""The manifest of a release: an allow-list of fields.

The manifest never holds a secret, an identifier, or anything computed from the exact distribution of a protected
column: a verdict that rests on the original publishes whether it holds, not the figure. A column is a discriminated
union on its form: the statement's own file says which fields it has.

Manifests of earlier formats are upgraded step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite, prod
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from noren.designs import read_design
from noren.errors import NorenError
from noren.models.verdict import verdict_line
from noren.schema.column import Column, DistanceTable
from noren.schema.domain import MISSING, Domain, DomainSource, bin_labels, fits_kind, whole_domain
from noren.schema.extents import MEASURE
from noren.schema.hierarchy import Hierarchy, rises
from noren.schema.kinds import Kind
from noren.schema.roles import Role
from noren.schema.tuples import Member, TupleDomain, tuple_parts
from noren.statements import FORMS, Statement

FORMAT = 5
MOST_WHOLE = 100_000
"""Whole numbers between the ends of a published column at most."""
MOST_RECORDS = 2**53
MOST_MARGIN_CELLS = 100_000
LATER = ("weight", "margins", "most_rows", "mechanism")
"""Fields that came after the format; left out where they say nothing."""
MOST_COUNTERFEITS = 10
"""Entries that are nobody's, as a multiple of the records."""

VERSION = r"^\d{1,2}(\.\d{1,2}){0,2}((a|b|rc)\d{1,2})?(\.(post|dev)\d{1,3})?$"
"""Numbers, and no words for anything else."""


def _finite_or_text(edge: float) -> float | str:
    """Return an open end in a form for JSON."""
    return edge if isfinite(edge) else str(edge)


class PublishedMeaning(BaseModel):
    """The published meaning of a column: the allow-list of its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    name: str
    role: Role
    kind: Kind
    values: tuple[str, ...] | None = None
    domain_source: DomainSource | None = None
    edges: tuple[Annotated[float, PlainSerializer(_finite_or_text)], ...] | None = None
    top: float | None = Field(default=None, allow_inf_nan=False, description="Numbers from here up are one value.")
    bottom: float | None = Field(default=None, allow_inf_nan=False, description="Numbers below are one value.")
    measure: str | None = Field(
        default=None, pattern=MEASURE, description="Values to which the edges refer: those that published cells show."
    )
    integers: tuple[int, int] | None = Field(
        default=None,
        description="All whole numbers from the first to below the second are values, whether or not they occur.",
    )
    hidden: tuple[str, ...] = Field(
        default=(), description="Values that replace others which no cell shows and nobody declared."
    )
    hierarchy: tuple[tuple[str, ...], ...] | None = None
    distance: Literal["ordinal", "numeric", "tree"] | DistanceTable | None = Field(
        default=None, description="Distances between values, where a requirement depends on them."
    )
    members: tuple[PublishedMeaning, ...] | None = Field(
        default=None, min_length=2, description="The columns that are protected together; the values are their tuples."
    )
    differ: tuple[str, ...] | None = Field(
        default=None, description="Columns in which any two tuples of a set differ, where a requirement demands it."
    )

    @model_validator(mode="after")
    def _of_tuples(self) -> PublishedMeaning:
        if self.members is None:
            if self.differ:
                raise ValueError("only tuples have members that differ")
            return self
        names = [member.name for member in self.members]
        if len({*names, self.name}) != len(names) + 1 or not set(self.differ or ()) <= set(names):
            raise ValueError("a member has a name of its own, and those that differ are members")
        if self.kind != "string" or self.values is None or any(m.members or m.values is None for m in self.members):
            raise ValueError("tuples are texts of their members' values")
        known = [set(member.values or ()) for member in self.members]
        for value in self.values:
            if any(part not in own for part, own in zip(tuple_parts(value, len(names)), known, strict=True)):
                raise ValueError("a tuple has a part that its member does not list")
        return self

    @model_validator(mode="after")
    def _fits(self) -> PublishedMeaning:
        values = self.values or ()
        if len(set(values)) != len(values):
            raise ValueError("a column lists its values, each once")
        if isinstance(self.distance, tuple) and {len(self.distance), *map(len, self.distance)} != {len(values)}:
            raise ValueError("the distances are not a square table over the values")
        if self.hierarchy is not None:
            ragged = any(len(level) != len(values) for level in self.hierarchy)
            if self.hierarchy[:1] != (self.values,) or ragged:
                raise ValueError("the hierarchy is not over the values")
            try:
                Hierarchy(self.hierarchy)
            except NorenError:
                raise ValueError("the hierarchy is not a tree") from None
        if not fits_kind(values, self.kind):
            raise ValueError("the values are not of the kind")
        self._fits_edges(values)
        if not set(self.hidden) <= set(values):
            raise ValueError("what stands for others is a value")
        if self.edges is not None and (self.top is not None or self.bottom is not None):
            raise ValueError("a column has edges or open ends")
        return self

    def _fits_edges(self, values: tuple[str, ...]) -> None:
        if self.integers is not None:
            low, high = self.integers
            if not 0 <= high - low <= MOST_WHOLE or max(abs(low), abs(high)) > MOST_RECORDS:
                raise ValueError("the whole numbers do not rise, or are too many")
            ends = (None if self.bottom is None else low, None if self.top is None else high)
            if ends != (self.bottom, self.top) or set(values) - {MISSING} or self.edges is not None:
                raise ValueError("the ends are not those of the whole numbers")
        if self.measure is not None and self.edges is None:
            raise ValueError("a measure is of edges")
        if self.edges is None:
            return
        if not rises(self.edges) or (self.measure is not None and set(values[len(self.edges) - 1 :]) - {MISSING}):
            raise ValueError("the edges do not rise")
        try:
            labels = bin_labels(self.edges, self.measure)
        except (ValueError, OverflowError):
            raise ValueError("the edges are not values of their measure") from None
        if values[: len(self.edges) - 1] != labels:
            raise ValueError("the edges are not those of the values")

    @classmethod
    def of(cls, column: Column) -> PublishedMeaning:
        if column.is_open:
            return cls(name=column.name, role=column.role, kind="string")
        domain, named = column.domain, column.distance if isinstance(column.distance, str | tuple) else "equal"
        tuples = domain.trim_members() if isinstance(domain, TupleDomain) else None
        return cls(
            members=None if tuples is None else tuple(cls.of(_member(column, one)) for one in tuples.members),
            differ=(tuples.differ or None) if tuples is not None else None,
            name=column.name,
            role=column.role,
            kind=domain.kind,
            values=domain.values if domain.integers is None else ((MISSING,) if domain.has_missing else ()),
            domain_source=domain.source,
            edges=domain.edges,
            top=domain.top,
            bottom=domain.bottom,
            measure=domain.measure,
            integers=domain.integers,
            hidden=domain.hidden,
            hierarchy=None if column.tree is None else column.tree.levels,
            distance=None if named == "equal" else named,
        )

    def column(self) -> Column:
        """Return the column with its published meaning."""
        domain = None
        if self.values is not None:
            domain = self._domain(self.values)
        if self.members is not None and self.values is not None:
            made = [member.column() for member in self.members]
            members = tuple(Member(one.name, one.domain, one.tree) for one in made)
            source = self.domain_source or "data"
            domain = TupleDomain(self.values, self.kind, source, members=members, differ=self.differ or ())
        tree = None if self.hierarchy is None else Hierarchy(self.hierarchy)
        found = Column.model_construct(
            role=self.role, values=None, bins=None, hierarchy=tree, distance=self.distance or "equal", min_count=1,
            rare="refuse", missing="category", knowledge=None, separator=None, columns=None, unknown="reject",
        )  # fmt: skip
        return found.over(self.name, domain)

    def _domain(self, values: tuple[str, ...]) -> Domain:
        if self.integers is not None:
            return whole_domain(*self.integers, self.bottom is not None, self.top is not None, MISSING in values)
        return Domain(
            values, self.kind, self.domain_source or "data", edges=self.edges, top=self.top, bottom=self.bottom,
            measure=self.measure, hidden=self.hidden,
        )  # fmt: skip


def _member(column: Column, member: Member) -> Column:
    """Return a member of a composite as a separate column."""
    return Column(role=column.role).over(member.name, member.domain, hierarchy=member.tree)


def write_column(statement: Statement) -> dict[str, Any]:
    """Return a published column as the manifest writes it: form, meaning, and the fields of the form."""
    meaning = PublishedMeaning.of(statement.column).model_dump(mode="json", exclude_none=True)
    if not meaning["hidden"]:
        del meaning["hidden"]
    return {"form": statement.form, **meaning, **statement.manifest_fields()}


def read_column(given: Any) -> Statement:
    """Read a column of a manifest; raise ValueError if it is invalid."""
    if isinstance(given, Statement):
        return given
    form = given.get("form") if isinstance(given, Mapping) else None
    if not isinstance(form, str) or form not in FORMS:
        raise ValueError("a column has a form that this version knows")
    known = set(PublishedMeaning.model_fields)
    meaning = PublishedMeaning.model_validate({name: value for name, value in given.items() if name in known})
    if (meaning.values is not None) != FORMS[form].lists_values:
        raise ValueError("a column lists its values, unless its form has none")
    fields = {name: value for name, value in given.items() if name not in known and name != "form"}
    return FORMS[form].parse(meaning.column(), fields, read_design)


PublishedColumn = Annotated[Statement, PlainValidator(read_column), PlainSerializer(write_column, return_type=dict)]


class VerdictEntry(BaseModel):
    """The published form of a verdict."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    model: str
    column: str
    required: float
    achieved: float | None = Field(
        description="Omitted where it would disclose something about the exact distribution."
    )
    holds: bool
    basis: str

    def __repr__(self) -> str:
        return verdict_line(self)

    def to_dict(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


class UsedMethod(BaseModel):
    """A method that made some columns of the release."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    name: str
    on: tuple[str, ...] = Field(default=(), description="The columns it produced; all, if empty.")
    class_size: int | None = Field(
        default=None, ge=1, description="The class size of a blind method, which is all that secrets influenced."
    )
    chosen: str | None = Field(default=None, description="The method that `auto` chose.")

    @property
    def facts(self) -> dict[str, int | str]:
        """Return the published facts about the run, besides the method's name."""
        said = {"class_size": self.class_size, "chosen": self.chosen}
        return {name: value for name, value in said.items() if value is not None}

    @model_serializer(mode="wrap")
    def _what_is_said(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serialise the method; most have only a name."""
        return {name: value for name, value in write(self).items() if value is not None}


class PublishedMargin(BaseModel):
    """Counts of a few columns with discrete Laplace noise."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    of: tuple[str, ...] = Field(min_length=1, max_length=4, description="The columns, in the order of the counts.")
    epsilon: float = Field(gt=0, le=20, allow_inf_nan=False, description="Its share of everybody's privacy budget.")
    sensitivity: int = Field(ge=2, le=2000, description="Largest total change of the counts if one person is replaced.")
    counts: tuple[int, ...] = Field(
        max_length=MOST_MARGIN_CELLS,
        description="One count for every combination of the columns' values; the last column varies fastest.",
    )

    @property
    def scale(self) -> float:
        """Return the scale of the noise."""
        from noren.designs.central import scale_of

        return scale_of(self.sensitivity, self.epsilon)


class Manifest(BaseModel):
    """Everything that a release publishes besides the cells."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, ser_json_inf_nan="constants")

    format: Literal[5] = 5
    noren: str = Field(pattern=VERSION, description="Version of the software that made the release.")
    title: str = ""
    records: int = Field(ge=0, le=MOST_RECORDS, description="Number of records.")
    suppressed: int = Field(
        default=0, ge=0, le=MOST_RECORDS, description="Number of people suppressed to protect the others."
    )
    rows_are_people: bool = Field(
        default=True,
        description="Whether every record is a different person; otherwise people may have several records.",
    )
    most_rows: int | None = Field(
        default=None, ge=1, le=1000, description="Largest number of records of one person, if declared."
    )
    sample: float | None = Field(
        default=None, gt=0, lt=1, description="Probability with which a record of the table is in the release."
    )
    weight: str | None = Field(
        default=None, description="The column of survey weights: how many people of the population a record stands for."
    )
    margins: tuple[PublishedMargin, ...] = Field(
        default=(), max_length=100, description="Counts under central differential privacy."
    )
    columns: tuple[PublishedColumn, ...]
    requirements: tuple[dict[str, Any], ...]
    methods: tuple[UsedMethod, ...]
    randomness: Literal["fresh", "memoised"]
    mechanism: Literal["ignored"] | None = Field(
        default=None, description="Whether the policy ignores what an adversary learns by replaying the method."
    )
    verdicts: tuple[VerdictEntry, ...]

    @model_validator(mode="after")
    def _fits(self) -> Manifest:
        if len({column.name for column in self.columns}) != len(self.columns):
            raise ValueError("two columns have the same name")
        if self.rows_per_record > 1 and not all(c.is_exact for c in self.columns if c.rows_per_record == 1):
            raise ValueError("shuffled members stand beside exact columns alone")
        self._fits_margins()
        if self.rows_are_people and self.most_rows is not None:
            raise ValueError("records are people, or a person has several")
        if self.weight is not None:
            named = [column for column in self.columns if column.name == self.weight]
            if len(named) != 1 or not named[0].is_exact or named[0].role is not Role.PLAIN:
                raise ValueError("the weight is a plain column, published exactly")
        if any(column.fake_entries > MOST_COUNTERFEITS * self.records for column in self.columns):
            raise ValueError("there are far more counterfeits than records")
        stems = list(dict.fromkeys(column.side for column in self.columns if column.side is not None))
        for kind in {stem.rsplit("-", 1)[0] for stem in stems}:
            numbers = [stem for stem in stems if stem.rsplit("-", 1)[0] == kind]
            if numbers != [kind] and numbers != [f"{kind}-{number}" for number in range(1, len(numbers) + 1)]:
                raise ValueError("the side tables are not numbered from 1 on")
        return self

    def _fits_margins(self) -> None:
        known = {column.name: column for column in self.columns}
        for margin in self.margins:
            if len(set(margin.of)) < len(margin.of) or not set(margin.of) <= set(known):
                raise ValueError("a margin is of columns of the release, each once")
            columns = [known[name] for name in margin.of]
            if any(one.column.is_open or not (one.is_exact or one.design is not None) for one in columns):
                raise ValueError("a margin is of columns that are drawn or exact")
            if len(margin.counts) != prod(one.d for one in columns):
                raise ValueError("a margin has one count for every combination")
            if any(abs(count) > MOST_RECORDS for count in margin.counts):
                raise ValueError("a count is too large")

    @property
    def spent(self) -> float:
        """Return the sum of the epsilons of all margins."""
        return sum(margin.epsilon for margin in self.margins)

    @model_serializer(mode="wrap")
    def _what_is_said(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serialise without absent parts, so that a manifest stays as earlier versions wrote it."""
        return {name: value for name, value in write(self).items() if name not in LATER or value}

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same content."""
        return isinstance(other, Manifest) and self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]

    @property
    def rows_per_record(self) -> int:
        """Return the number of rows that one person has in the published table."""
        return prod(column.rows_per_record for column in self.columns)

    @property
    def counterfeits(self) -> int:
        """Return the number of counterfeits: entries of group tables that belong to nobody."""
        return sum(column.fake_entries for column in self.columns)

    def column(self, name: str) -> Statement:
        return next(column for column in self.columns if column.name == name)


Block = Mapping[str, Any]
EARLY = (
    "name", "role", "form", "kind", "values", "domain_source", "edges", "hierarchy", "design", "distance", "nodes",
    "groups", "knowledge",
)  # fmt: skip
"""The fields of a column in the order in which version 0.1 wrote them."""


def upgrade_manifest(block: Block) -> Block:
    """Return the manifest in the present format; unknown formats stay unchanged. Raises ValueError if it is
    inconsistent."""
    while (upgrade := _upgrade(block)) is not None:
        block = upgrade(block)
    return block


def known_format(block: Block) -> bool:
    return block.get("format") == FORMAT or _upgrade(block) is not None


def early_order(block: Block) -> Block:
    """Return the manifest of version 0.1 with the fields of its columns in their present order."""
    columns, present = [], ("form", *PublishedMeaning.model_fields)
    for column in block["columns"]:
        early = list(column) == [name for name in EARLY if name in column]
        order = [*(name for name in present if name in column), *column] if early else list(column)
        columns.append({name: column[name] for name in dict.fromkeys(order)})
    return {**block, "columns": columns}


def _upgrade(block: Block) -> Callable[[Block], Block] | None:
    number = block.get("format")
    return UPGRADES.get(number) if isinstance(number, int) else None


def _from_1(block: Block) -> Block:
    """Upgrade format 1 (version 0.1), which had one layout for the whole table, one method, and empty fields."""
    out = dict(block)
    layout, method, columns = out.pop("layout", "sets"), out.pop("method"), out["columns"]
    groups = 0
    made = []
    for entry in columns:
        column = {name: value for name, value in dict(entry).items() if value is not None}
        if column["form"] == "value":
            column["form"] = "exact"
        if column["form"] == "group":
            groups += 1
            column["number"] = groups
        made.append(column)
    forms = {column["form"] for column in made}
    fits = {
        "sets": forms <= {"exact", "open", "set"},
        "records": forms <= {"exact", "open", "member"} and "member" in forms,
        "general": forms <= {"exact", "open", "node", "group", "terms"},
    }
    if not fits.get(layout, False):
        raise ValueError("the layout does not fit the columns")
    if set(method) != {"name"}:
        raise ValueError("the method has more fields than its name")
    return out | {"format": 2, "columns": made, "methods": [{"name": method["name"]}]}


LATER_FIELDS = {2: {"measure", "integers", "hidden", "tight"}, 3: {"sets"}, 4: set[str]()}
"""Fields of columns that the next format added: format 2 listed every value under generalised values, format 3 wrote
every set as a list, and format 4 did not rename columns of numbers of sets and groups."""


def _from_later(block: Block) -> Block:
    """Upgrade a format that lacks some fields of columns."""
    number = block["format"]
    if any(LATER_FIELDS[number] & set(column) for column in block["columns"]):
        raise ValueError("a column has a field of a later format")
    return {**block, "format": number + 1}


UPGRADES: dict[Any, Callable[[Block], Block]] = {1: _from_1, **dict.fromkeys(LATER_FIELDS, _from_later)}
