"""Noised margins: a few counts of low order that are published beside the cells, under central differential privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from noren.errors import Problem
from noren.methods.base import Method
from noren.policy.options import MOST_ROWS, PeopleOptions
from noren.policy.problems import closest_column
from noren.schema.column import Column
from noren.schema.roles import Role

MOST_COLUMNS = 4


class Margin(BaseModel):
    """Counts of one or a few columns, each with discrete Laplace noise of scale 2 rows / epsilon."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    of: tuple[str, ...] = Field(
        min_length=1, max_length=MOST_COLUMNS, description="The columns whose combinations are counted."
    )
    epsilon: float = Field(
        gt=0,
        le=20,
        description="What this table spends: how much one person may change the odds of any answer, as a logarithm.",
    )
    rows: int = Field(
        default=1,
        ge=1,
        le=MOST_ROWS,
        description="Most rows that one person has, as [people] most_rows says where that is given; a table where "
        "somebody has more is refused.",
    )

    @field_validator("of", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @property
    def sensitivity(self) -> int:
        """How much all counts together change at most if one person is replaced by another."""
        return 2 * self.rows


def with_rows(margins: Sequence[Margin], people: PeopleOptions) -> tuple[Margin, ...]:
    """The margins, where they do not say it, with the rows that the policy gives every person."""
    most = people.most_rows
    return tuple(
        margin if most is None or "rows" in margin.model_fields_set else margin.model_copy(update={"rows": most})
        for margin in margins
    )


def margin_problems(
    margins: Sequence[Margin], attributes: Mapping[str, Column], methods: Sequence[Method], people: PeopleOptions
) -> list[Problem]:
    """What a policy's margins contradict."""
    out: list[Problem] = []
    seen: dict[frozenset[str], int] = {}
    for number, margin in enumerate(margins, 1):
        where = f"margins[{number}]"
        for name in margin.of:
            if name not in attributes:
                out.append(
                    Problem(f"{where}.of", f"no column {name!r} in [attributes].", closest_column(name, attributes))
                )
            elif attributes[name].role.is_dropped or attributes[name].role is Role.QUASI_SENSITIVE:
                message = f"{name!r} is {attributes[name].role}: it has no values to count."
                out.append(Problem(f"{where}.of", message, "Name columns that are published value by value."))
        if len(set(margin.of)) < len(margin.of):
            out.append(Problem(f"{where}.of", "a column is named twice."))
        if frozenset(margin.of) in seen:
            message = f"these columns stand already in margins[{seen[frozenset(margin.of)]}]."
            out.append(Problem(f"{where}.of", message, "Give one of them the sum of both epsilons."))
        seen.setdefault(frozenset(margin.of), number)
        if people.key and "rows" not in margin.model_fields_set:
            message = "people may have several rows, and how many decides how much noise one person needs."
            out.append(
                Problem(f"{where}.rows", message, "Say how many rows a person has at most, for example rows = 5.")
            )
        if people.most_rows not in (None, margin.rows):
            message = f"rows = {margin.rows}, and [people] says most_rows = {people.most_rows}."
            out.append(Problem(f"{where}.rows", message, "Leave rows out: most_rows holds for margins, too."))
    if margins and any(getattr(method, "suppression", 0.0) > 0 for method in methods):
        message = "who is left out depends on everybody, so that no noise hides one person's part in the margins."
        out.append(Problem("margins", message, "Set suppression = 0, or publish no margins."))
    return out
