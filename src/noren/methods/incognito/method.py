"""Full-domain generalisation: every quasi-identifier has one level of its hierarchy for all records.

Incognito (LeFevre, DeWitt, Ramakrishnan 2005) for any class-wise requirement. The result is the best there is: no
other choice of levels that meets the requirements has a smaller loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from noren.engines import Plan, RandomOrder, Recode, Records
from noren.errors import Problem, RequirementNotMet
from noren.methods.base import ClassMethod, Method
from noren.methods.incognito.lattice import OF_CLASSES, Loss
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.schema.nodes import Tree
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.incognito.search import FullDomain
    from noren.methods.mechanism.rule import Rule

Level = Annotated[int, Field(ge=0)]
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Incognito(ClassMethod):
    """Generalise every quasi-identifier to one level, with the least chosen loss. Classes that fail may be
    suppressed."""

    name: Literal["incognito"] = "incognito"
    sentence: ClassVar[str] = (
        "Every column is published at one level of its hierarchy; of all levels that meet the requirements, the ones "
        "with the least loss."
    )
    first_phase: ClassVar[bool] = True
    makes_intervals: ClassVar[bool] = True
    loss: Loss = Field(
        default="granularity",
        description=(
            "What is minimised: granularity (share of the hierarchy's leaves under a cell), ncp (the same, with "
            "widths for numbers), entropy, height (sum of levels), discernibility or class-size."
        ),
    )
    weights: dict[str, Weight] = Field(
        default_factory=dict, description="Weight of each quasi-identifier in the loss; 1 by default."
    )

    levels: dict[str, Level] = Field(
        default_factory=dict,
        description=(
            "Fixed levels, 0 for the values themselves: { age = 2, zip = 1 }; levels of other columns are "
            "searched. `noren compare --levels` lists the best."
        ),
    )

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.refusals import Levels

        return Levels("every column is at the lowest level at which all classes meet all requirements")

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        from noren.methods.requirements import class_problems

        found = class_problems(self.name, roles, requirements, self.suppression)
        if self.weights and self.loss in OF_CLASSES:
            message = f"the loss {self.loss!r} depends on class sizes only and takes no weights of columns."
            found.append(Problem("method.weights", message, 'Remove weights, or use loss = "granularity".'))
        for name in self.weights:
            if roles.get(name) is not Role.QUASI_IDENTIFIER:
                message = f"{name!r} is not a quasi-identifier of this policy."
                found.append(Problem(f"method.weights.{name}", message, "Give weights for quasi-identifiers only."))
        for name in self.levels:
            if roles.get(name) is not Role.QUASI_IDENTIFIER:
                message = f"{name!r} is not a quasi-identifier of this policy."
                found.append(Problem(f"method.levels.{name}", message, "Give levels for quasi-identifiers only."))
        return found

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls(suppression=suppression)]

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        """Search the lattice of levels. The result is deterministic."""
        found = self._found(table, requirements)
        fixed = f" (fixed: {', '.join(self.levels)})" if self.levels else ""
        levels = told(found.trees, found.levels)
        notes = [f"levels: {levels}{fixed}; {found.classes:,} classes; {self.loss} loss {found.loss:.6g}"]
        if found.dropped:
            notes.append(f"{found.dropped:,} of {table.n:,} records dropped")
        return Plan(raised(table, found.trees, found.levels), found.keep if found.dropped else None, notes)

    def _found(self, table: Records, requirements: Sequence[Model]) -> FullDomain:
        from noren.methods.incognito.search import best_full_domain, fixed_full_domain
        from noren.methods.requirements import compiled, demand_reachable

        rules = compiled(table, requirements)
        if self.levels:
            return fixed_full_domain(table, rules, self.levels, self.loss, self.suppression, self.weights)
        try:
            return best_full_domain(table, rules, self.loss, self.suppression, self.weights)
        except RequirementNotMet:
            demand_reachable(table, requirements)
            raise


def raised(table: Records, trees: Mapping[str, Tree], levels: Mapping[str, int]) -> dict[str, Recode]:
    """Generalise every quasi-identifier to its level."""
    return {name: Recode(tree.nodes, tree.at[levels[name]][table.codes[name]]) for name, tree in trees.items()}


def told(trees: Mapping[str, Tree], levels: Mapping[str, int]) -> str:
    """Return the levels in words."""
    return ", ".join(f"{name} {levels[name]} of {tree.height}" for name, tree in trees.items())
