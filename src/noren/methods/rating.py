"""Rating (Liu et al.): separate groups of values for every protected column, independent of the other columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from noren.engines import Plan, RandomOrder, Records
from noren.errors import Problem
from noren.methods.anatomy import served, served_problems, taken_apart
from noren.methods.base import ClassMethod, Method
from noren.methods.requirements import USE_FOR_TERMS
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule


class Rating(ClassMethod):
    """Publish a group number instead of every protected cell, and a table with the values of each group.

    Every column has its own l. Sensitive columns that also identify are protected like any other; columns without a
    requirement stay as they are. Records of values that are too common are dropped up to the suppression limit,
    chosen by chance.
    """

    name: Literal["rating"] = "rating"
    sentence: ClassVar[str] = (
        "Each protected column is published as numbers of groups, and a second table lists the values of each group."
    )
    hides_quasi: ClassVar[bool] = False
    whole_people: ClassVar[bool] = False

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.rule import Silent

        return Silent(
            "groups are drawn at random from the records of each value; which record has which value is not published"
        )

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        found = served_problems(self.name, requirements)
        if not any(served(model) for model in requirements):
            message = "the method 'rating' needs a requirement on every column that it protects."
            found.append(Problem("require", message, 'Add [[require]] with model = "frequency-l-diversity".'))
        for column, role in roles.items():
            if role is Role.QUASI_SENSITIVE:
                message = f"the method 'rating' cannot protect a column of role {role.value!r}."
                found.append(Problem(f"attributes.{column}.role", message, USE_FOR_TERMS))
        return found

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls(suppression=suppression)]

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        return taken_apart(table, requirements, self.suppression, order)
