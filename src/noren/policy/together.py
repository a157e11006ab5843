"""Columns that disclose each other and are hidden together: parsing, and their composite columns.

The members leave the policy's columns and one composite column takes their place, so that every other room sees one
column. A requirement on a member becomes one on the composite: where it asks for different values, any two tuples of
a set must differ in that member; closeness of tuples is closeness of every member already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, ValidationError, field_validator, model_validator

from noren.errors import Problem
from noren.methods.base import Method
from noren.models.base import Model
from noren.policy.problems import from_validation, no_column
from noren.schema.column import Column, MatrixSpec
from noren.schema.hierarchy import value_text
from noren.schema.roles import Role
from noren.schema.tuples import MOST_MEMBERS, tuple_name, tuple_text

BOTH = Role.SENSITIVE_QUASI_IDENTIFIER


class Together(BaseModel):
    """Columns that are hidden as one: their values are the tuples that occur, and decoys are whole tuples."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[str, ...] = Field(
        min_length=2, max_length=MOST_MEMBERS, description="The columns that disclose each other."
    )
    name: str = Field(default="", description="Name of the composite column; by default the column names joined by +.")
    role: Literal[Role.SENSITIVE, Role.SENSITIVE_QUASI_IDENTIFIER] | None = Field(
        default=None, description="Role of the composite; by default it follows from the columns."
    )
    values: tuple[tuple[str, ...], ...] | None = Field(
        default=None, min_length=1, description="The tuples that may occur; by default those of the table."
    )
    min_count: int | None = Field(
        default=None,
        ge=1,
        description="Tuples with fewer records are rare; by default the largest min_count of the columns.",
    )
    rare: Literal["merge", "refuse"] | None = Field(
        default=None, description="Merge rare tuples, or refuse the table; by default as the columns say."
    )
    distance: InstanceOf[MatrixSpec] | None = Field(
        default=None, description='How far apart two tuples are, for semantic diversity: { matrix = "file.csv" }.'
    )
    differ: tuple[str, ...] = Field(
        default=(),
        description=("Columns in which any two tuples of a set must differ; requirements on these columns add to it."),
    )

    @field_validator("values", mode="before")
    @classmethod
    def _texts(cls, given: Any) -> Any:
        if not isinstance(given, list | tuple) or not all(isinstance(row, list | tuple) for row in given):
            return given
        return tuple(tuple(value_text(part) for part in row) for row in given)

    @field_validator("distance", mode="before")
    @classmethod
    def _matrix(cls, given: Any) -> Any:
        return MatrixSpec.model_validate(given) if isinstance(given, Mapping) else given

    @model_validator(mode="after")
    def _fits(self) -> Together:
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("together names a column twice")
        if any(len(row) != len(self.columns) for row in self.values or ()):
            raise ValueError(f"every tuple of values has {len(self.columns)} parts, one for each column")
        strange = [name for name in self.differ if name not in self.columns]
        if strange:
            raise ValueError(f"differ names {strange[0]!r}, which is none of the columns")
        return self

    @property
    def title(self) -> str:
        return self.name or tuple_name(self.columns)

    @property
    def is_plain(self) -> bool:
        """Return whether a list of columns describes the group completely."""
        return self == Together(columns=self.columns)


def read_groups(given: Any) -> tuple[list[Together], list[Problem]]:
    """Read the groups of columns from one list of names, lists of names, or tables."""
    if isinstance(given, Mapping | Together):
        given = [given]
    if not isinstance(given, list | tuple):
        return [], [Problem("together", "must be a list of columns.", 'For example: together = ["zip", "town"]')]
    if given and all(isinstance(one, str) for one in given):
        given = [given]
    out: list[Together] = []
    problems: list[Problem] = []
    for number, one in enumerate(given, 1):
        where = "together" if len(given) == 1 else f"together[{number}]"
        fields = {"columns": one} if isinstance(one, list | tuple) else one
        try:
            out.append(fields if isinstance(fields, Together) else Together.model_validate(fields))
        except ValidationError as error:
            problems += from_validation(where, error, Together)
    return out, problems


def spelled(attributes: Mapping[str, Column]) -> dict[str, Column]:
    """Return every declared column, with members instead of their composite."""
    out: dict[str, Column] = {}
    for name, column in attributes.items():
        out |= column.members or {name: column}
    return out


def composites(attributes: Mapping[str, Column]) -> dict[str, tuple[str, ...]]:
    """Return the members of every composite."""
    return {name: tuple(column.members) for name, column in attributes.items() if column.members}


class Gathered:
    """The parts of a policy with members under the names of their composites."""

    def __init__(
        self,
        attributes: Mapping[str, Column],
        require: Mapping[int, Model],
        methods: Sequence[Method],
        groups: Sequence[Together],
        broken: Iterable[str] = (),
    ) -> None:
        self.attributes = dict(attributes)
        self.require = dict(require)
        self.methods = tuple(methods)
        self.groups: list[Together] = []
        self.problems: list[Problem] = []
        self._owner: dict[str, str] = {}
        self.broken = set(broken)
        for number, group in enumerate(groups, 1):
            where = "together" if len(groups) == 1 else f"together[{number}]"
            self._add(group, where)

    def _add(self, group: Together, where: str) -> None:
        title = group.title
        known = self.attributes.get(title)
        if known is not None and tuple(known.members) == group.columns:  # gathered already: a policy made of another
            self._judge_methods(group)
            self.groups.append(group)
            return
        found = self._problems(group, where)
        self.problems += found
        if found or self.broken & set(group.columns):
            self.broken |= {title}
            return
        members = {name: self.attributes[name] for name in group.columns}
        asked = self._asked(group)
        self.problems += self._bare(group, members)
        group = group.model_copy(update={"differ": tuple(n for n in group.columns if n in {*group.differ, *asked})})
        composite = _composite(group, members)
        place = list(self.attributes).index(min(group.columns, key=list(self.attributes).index))
        left = [(name, column) for name, column in self.attributes.items() if name not in members]
        before = sum(name not in members for name in list(self.attributes)[:place])
        self.attributes = dict([*left[:before], (title, composite), *left[before:]])
        self._owner |= dict.fromkeys(group.columns, title)
        self.require = {number: self._moved(model) for number, model in self.require.items()}
        drawn = any(set(method.on) & members.keys() for method in self.methods if not method.forms_classes)
        self.methods = tuple(self._moved(method, title if drawn else "") for method in self.methods)
        self._judge_methods(group)
        self.groups.append(group)

    def _problems(self, group: Together, where: str) -> list[Problem]:
        out = []
        for name in group.columns:
            if name in self._owner:
                message = f"{name!r} belongs to {self._owner[name]!r} already."
                out.append(Problem(where, message, "List the column in one group only."))
            elif name not in self.attributes:
                if name not in self.broken:
                    out.append(no_column(where, name, self.attributes))
            elif self.attributes[name].role.is_dropped or self.attributes[name].role is Role.QUASI_SENSITIVE:
                message = f"{name!r} has the role {self.attributes[name].role} and has no single values."
                out.append(Problem(where, message, "Remove it from the list."))
        if out or self.broken & set(group.columns):
            return out
        if not any(self.attributes[name].role.needs_requirement for name in group.columns):
            message = f"none of {', '.join(map(repr, group.columns))} is a secret, so there is nothing to protect."
            out.append(Problem(where, message, "Give one of them the role 'sensitive', and add a requirement on it."))
        if group.title in self.attributes:
            message = f"{group.title!r} is a column already."
            out.append(Problem(f"{where}.name", message, "Give the composite another name."))
        return out

    def _asked(self, group: Together) -> list[str]:
        """Return members for which a requirement demands several possible values."""
        out: list[str] = []
        for number, model in self.require.items():
            named = [name for name in model.on if name in group.columns]
            if not named or model.about == "classes" or model.holds_of_parts:
                continue
            if not model.counts_values:
                message = f"{model.model} cannot judge {named[0]!r}, a part of the tuples of {group.title!r}."
                hint = f'Require it on = "{group.title}"'
                if "distance" in model.needs:
                    hint += ', whose distance = { matrix = "file.csv" } says how far apart tuples are'
                if "order" in model.needs or "tree" in model.needs:
                    hint = 'Use distance = "equal", which bounds the others'
                self.problems.append(Problem(f"require[{number}].on", message, hint + "."))
            out += named
        return out

    def _bare(self, group: Together, members: Mapping[str, Column]) -> list[Problem]:
        """Return the problem of secrets without a requirement on them or on whole tuples."""
        named = {name for model in self.require.values() if model.about != "classes" for name in model.on}
        if group.title in named:
            return []
        return [
            Problem(
                f"attributes.{name}",
                f"a column of role {column.role} needs a requirement, because tuples of {group.title!r} may agree "
                "in it.",
                f'Add [[require]] with on = "{name}" or on = "{group.title}", or give it the role \'plain\'.',
            )
            for name, column in members.items()
            if column.role.needs_requirement and name not in named
        ]

    def _judge_methods(self, group: Together) -> None:
        """Report members that must differ under a method of classes, which handles whole tuples only."""
        grouping = [m for m in self.methods if m.forms_classes and (not m.on or group.title in m.on)]
        drawn = any(group.title in m.on for m in self.methods if not m.forms_classes)
        if group.differ and grouping and not drawn:
            message = (
                f"{', '.join(map(repr, group.differ))} must differ inside {group.title!r}, but the method "
                f"{grouping[0].name!r} judges only whole tuples."
            )
            hint = f'Require it on = "{group.title}", or use decoys for it: [[method]] name = "decoys".'
            self.problems.append(Problem("together", message, hint))

    def _moved(self, part: Any, drawn: str = "") -> Any:
        """Return a requirement or method with composites in place of members; a drawn composite forms no classes."""
        on = tuple(dict.fromkeys(self._owner.get(name, name) for name in part.on))
        if drawn and part.forms_classes:
            on = tuple(name for name in on if name != drawn)
        return part if on == tuple(part.on) else part.model_copy(update={"on": on})


def _composite(group: Together, members: Mapping[str, Column]) -> Column:
    """Return the composite column: a secret, and also a quasi-identifier if a member is one."""
    found = any(column.role in (Role.QUASI_IDENTIFIER, BOTH) for column in members.values())
    rare = group.rare or ("merge" if any(column.rare == "merge" for column in members.values()) else "refuse")
    column = Column(
        role=group.role or (BOTH if found else Role.SENSITIVE),
        values=None if group.values is None else tuple(tuple_text(row) for row in group.values),
        min_count=group.min_count or max(column.min_count for column in members.values()),
        rare=rare,
        distance=group.distance or "equal",
    )
    return column.of_members(members, group.differ)
