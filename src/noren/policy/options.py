"""The small tables of a policy: how the input is written, who is a person, how chance repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from noren.errors import Problem
from noren.methods.base import Method
from noren.policy.problems import closest_column
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.secret import KeyRule
from noren.secret.key import Case, Spaces, Unicode
from noren.secret.publication import Repeat

MOST_ROWS = 1000
"""Rows of one person at most, where a policy bounds them."""


class DataOptions(BaseModel):
    """How the input is written. What is not given is sniffed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    separator: str | None = Field(default=None, min_length=1, max_length=1, description="Column separator of a CSV.")
    encoding: str | None = Field(default=None, description="Text encoding of a CSV, for example utf-8 or cp1252.")
    missing_values: tuple[str, ...] = Field(default=(), description="Texts that mean 'missing', besides empty cells.")
    decimal: Literal[".", ","] | None = Field(default=None, description="The mark before decimals in all columns.")


class PeopleOptions(BaseModel):
    """Whose rows are whose. Requirements count people, not rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: tuple[str, ...] = Field(
        default=(), description="The column, or columns together, that name a person; never published by itself."
    )
    household: str | None = Field(
        default=None, description="The column that names a household: finding one member finds it (`noren risk`)."
    )
    rows: Literal["people", "independent"] = Field(
        default="people",
        description="'independent' says that every row is a person of its own, although an identifier repeats.",
    )
    most_rows: int | None = Field(
        default=None,
        ge=1,
        le=MOST_ROWS,
        description="Most rows that one person has, published so that recipients' errors allow for them: say what is "
        "known without the data; a table where somebody has more is refused. Needs `key`.",
    )

    @field_validator("key", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_way(self) -> PeopleOptions:
        if self.key and self.rows == "independent":
            raise ValueError("give the key of people, or say that rows are independent, not both")
        if self.most_rows is not None and not self.key:
            raise ValueError("most_rows bounds the rows of a person, so give the key of people, too")
        return self


class DependenceOptions(BaseModel):
    """How much one published column may tell about a protected one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    most: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="Largest share of people whose protected value another column may make certain; 1 asks nothing.",
    )


class RandomnessOptions(BaseModel):
    """Several releases of the same people: a secret, its register, and who is who.

    The same person with the same value gets the same decoys in every release; what was released of whom is registered.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    record_key: str | None = Field(default=None, description="Column that names a person, unique in the table.")
    secret: str | None = Field(
        default=None, description="Secret file, made with `noren secret`; its register lies beside it."
    )
    fingerprint: str | None = Field(
        default=None, description="Fingerprint of the only secret allowed; another one is refused."
    )
    mode: Literal["memoised", "fresh"] = Field(
        default="memoised",
        description="'fresh' draws new decoys under a secret: the release is registered, and refused for people whom "
        "the register knows.",
    )
    repeat: Repeat = Field(
        default="refuse",
        description="What happens where two releases of one person could be intersected: refused, or allowed.",
    )
    budget: float | None = Field(
        default=None,
        gt=0,
        description="Largest sum of the epsilons of noised margins of all releases under this secret.",
    )
    columns: dict[str, str] = Field(
        default_factory=dict,
        description="The name under which the register knows a column that was renamed; its own name says that it is "
        "a new column, although its values are those of another.",
    )
    key_unicode: Unicode = Field(default="NFKC", description="In which form keys are compared, or 'keep'.")
    key_spaces: Spaces = Field(
        default="trim", description="Whether spaces around a key and doubled ones are left out: trim, or keep."
    )
    key_case: Case = Field(default="fold", description="Whether capital and small letters are the same: fold, or keep.")

    @property
    def rule(self) -> KeyRule:
        """How people are told apart, as a register knows it."""
        key = str(self.record_key)
        return KeyRule(self.columns.get(key, key), self.key_unicode, self.key_spaces, self.key_case)


class SampleOptions(BaseModel):
    """Publish a random sample instead of everybody. Requirements are judged on the sample, without credit for it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float | None = Field(
        default=None, gt=0, lt=1, description="Probability with which every record is in the sample; all, if left out."
    )


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
