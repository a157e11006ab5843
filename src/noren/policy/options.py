"""The small sections of a policy: input, people, sample, margins, randomness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from noren.errors import Problem
from noren.methods.base import Method
from noren.policy.problems import no_column
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.secret import KeyRule
from noren.secret.key import Case, Spaces, Unicode
from noren.secret.publication import Repeat

KEY_SHARE, KEY_LEAST = 0.05, 10
"""A column with fewer different values than this, of the records or in all, names no people: it is only dropped."""
MOST_ROWS = 1000
"""Rows of one person at most, where a policy bounds them."""


class DataOptions(BaseModel):
    """How the input is written. Missing options are detected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    separator: str | None = Field(default=None, min_length=1, max_length=1, description="Column separator of a CSV.")
    encoding: str | None = Field(default=None, description="Text encoding of a CSV, for example utf-8 or cp1252.")
    missing_values: tuple[str, ...] = Field(default=(), description="Texts that mean 'missing', besides empty cells.")
    decimal: Literal[".", ","] | None = Field(default=None, description="The decimal mark in all columns.")


class PeopleOptions(BaseModel):
    """Which rows belong to one person. Requirements count people, not rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: tuple[str, ...] = Field(
        default=(),
        description="The column, or columns together, that identify a person; an identifier is not published.",
    )
    household: str | None = Field(
        default=None,
        description="The column that identifies a household (`noren risk` reports the risk of finding any member).",
    )
    rows: Literal["people", "independent"] = Field(
        default="people",
        description="'independent' states that every row is a different person, although an identifier repeats.",
    )
    most_rows: int | None = Field(
        default=None,
        ge=1,
        le=MOST_ROWS,
        description=(
            "Largest number of rows of one person. It is published, so that recipients' errors allow for it; use a "
            "number that is known without the data. A table where somebody has more rows is refused. Needs `key`."
        ),
    )

    @field_validator("key", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_way(self) -> PeopleOptions:
        if self.key and self.rows == "independent":
            raise ValueError('give either the key of people or rows = "independent", not both')
        if self.most_rows is not None and not self.key:
            raise ValueError("most_rows needs the key of people")
        return self


class DependenceOptions(BaseModel):
    """How much one published column may disclose about a protected one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    most: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description=(
            "Largest share of people whose protected value another column may make certain; 1 switches the check off."
        ),
    )


class RandomnessOptions(BaseModel):
    """Several releases of the same people: a secret, its register, and the key of people.

    The same person with the same value gets the same decoys in every release; what was released of whom is registered.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    record_key: str | None = Field(default=None, description="Column that identifies a person, unique in the table.")
    secret: str | None = Field(
        default=None, description="Secret file, made with `noren secret`; its register is in the same folder."
    )
    fingerprint: str | None = Field(default=None, description="Fingerprint of the secret; any other secret is refused.")
    mode: Literal["memoised", "fresh"] = Field(
        default="memoised",
        description=(
            "'fresh' draws new decoys although there is a secret: the release is registered, and refused if its people "
            "are in the register already."
        ),
    )
    repeat: Repeat = Field(
        default="refuse",
        description="What happens if two releases of one person could be intersected: refuse, or allow.",
    )
    budget: float | None = Field(
        default=None,
        gt=0,
        description="Largest total epsilon of the noised margins of all releases under this secret.",
    )
    columns: dict[str, str] = Field(
        default_factory=dict,
        description=(
            "For a renamed column, its name in the register. A column's own name declares it new, although it has the "
            "values of another column."
        ),
    )
    key_unicode: Unicode = Field(default="NFKC", description="Unicode form in which keys are compared, or 'keep'.")
    key_spaces: Spaces = Field(
        default="trim", description="Whether surrounding and doubled spaces of a key are ignored (trim) or kept (keep)."
    )
    key_case: Case = Field(
        default="fold", description="Whether upper and lower case count as equal (fold) or not (keep)."
    )

    @property
    def rule(self) -> KeyRule:
        """Return how people are identified, for the register."""
        key = str(self.record_key)
        return KeyRule(self.columns.get(key, key), self.key_unicode, self.key_spaces, self.key_case)


class SampleOptions(BaseModel):
    """Publish a random sample instead of everybody. Requirements are checked on the sample and do not count the
    sampling as protection."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Probability with which every record is in the sample; by default all records are.",
    )


SECTIONS: dict[str, type[BaseModel]] = {
    "data": DataOptions,
    "people": PeopleOptions,
    "dependence": DependenceOptions,
    "randomness": RandomnessOptions,
    "sample": SampleOptions,
}
"""The small tables by the name under which a policy has them."""
MOST_COLUMNS = 4


class Margin(BaseModel):
    """Counts of one or a few columns, each with discrete Laplace noise of scale 2 rows / epsilon."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    of: tuple[str, ...] = Field(
        min_length=1, max_length=MOST_COLUMNS, description="The columns whose combinations of values are counted."
    )
    epsilon: float = Field(
        gt=0,
        le=20,
        description="Privacy budget of this table: the largest change, by one person, in the log-odds of any answer.",
    )
    rows: int = Field(
        default=1,
        ge=1,
        le=MOST_ROWS,
        description=(
            "Largest number of rows of one person, equal to [people] most_rows if that is given. A table where "
            "somebody has more rows is refused."
        ),
    )

    @field_validator("of", mode="before")
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @property
    def sensitivity(self) -> int:
        """Return the largest total change of the counts if one person is replaced by another."""
        return 2 * self.rows


def with_rows(margins: Sequence[Margin], people: PeopleOptions) -> tuple[Margin, ...]:
    """Return the margins with the policy's number of rows per person, unless they set it."""
    most = people.most_rows
    return tuple(
        margin if most is None or "rows" in margin.model_fields_set else margin.model_copy(update={"rows": most})
        for margin in margins
    )


def margin_problems(
    margins: Sequence[Margin], attributes: Mapping[str, Column], methods: Sequence[Method], people: PeopleOptions
) -> list[Problem]:
    """Return the problems of a policy's margins."""
    out: list[Problem] = []
    seen: dict[frozenset[str], int] = {}
    for number, margin in enumerate(margins, 1):
        where = f"margins[{number}]"
        for name in margin.of:
            if name not in attributes:
                out.append(no_column(f"{where}.of", name, attributes))
            elif attributes[name].role.is_dropped or attributes[name].role is Role.QUASI_SENSITIVE:
                message = f"{name!r} has the role {attributes[name].role} and has no values to count."
                out.append(Problem(f"{where}.of", message, "Choose columns that are published value by value."))
        if len(set(margin.of)) < len(margin.of):
            out.append(Problem(f"{where}.of", "a column is named twice."))
        if frozenset(margin.of) in seen:
            message = f"these columns are already in margins[{seen[frozenset(margin.of)]}]."
            out.append(Problem(f"{where}.of", message, "Give one of them the sum of both epsilons."))
        seen.setdefault(frozenset(margin.of), number)
        if people.key and "rows" not in margin.model_fields_set:
            message = "people may have several rows, and the noise depends on how many."
            out.append(
                Problem(
                    f"{where}.rows", message, "Declare the largest number of rows of one person, for example rows = 5."
                )
            )
        if people.most_rows not in (None, margin.rows):
            message = f"rows = {margin.rows} contradicts most_rows = {people.most_rows} under [people]."
            out.append(Problem(f"{where}.rows", message, "Remove rows; most_rows applies to margins, too."))
    if margins and any(getattr(method, "suppression", 0.0) > 0 for method in methods):
        message = (
            "which people are suppressed depends on everybody, so noise cannot hide one person's contribution to the "
            "margins."
        )
        out.append(Problem("margins", message, "Set suppression = 0, or publish no margins."))
    return out
