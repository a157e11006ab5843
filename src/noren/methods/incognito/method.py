"""Full-domain generalisation: every quasi-identifier climbs to one level of its hierarchy, the same for all records.

Incognito (LeFevre, DeWitt, Ramakrishnan 2005) for any class-wise requirement. The result is the best there is: no
other choice of levels that meets the requirements has a smaller loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from noren.engines import Plan, RandomOrder, Recode, Records, Table
from noren.errors import Problem
from noren.methods.base import ClassMethod, Method
from noren.methods.cover import automatic_hierarchy
from noren.methods.incognito.losses import OF_CLASSES, Loss
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.schema.nodes import Tree, tree_of
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.incognito.search import FullDomain
    from noren.methods.mechanism.rule import Rule

Level = Annotated[int, Field(ge=0)]
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Incognito(ClassMethod):
    """One level per quasi-identifier, optimal for the chosen loss. Classes that fail may be dropped."""

    name: Literal["incognito"] = "incognito"
    sentence: ClassVar[str] = "Every column is published at one level of its hierarchy, the least lossy that suffices."
    first_phase: ClassVar[bool] = True
    apart: ClassVar[bool] = True
    makes_intervals: ClassVar[bool] = True
    loss: Loss = Field(
        default="granularity",
        description=(
            "What is minimised: granularity (share of the hierarchy's leaves that a cell leaves open), ncp (the same, "
            "widths for numbers), entropy, height (levels climbed), discernibility or class-size."
        ),
    )
    weights: dict[str, Weight] = Field(
        default_factory=dict, description="How much each quasi-identifier counts in the loss; 1 where it is not named."
    )

    levels: dict[str, Level] = Field(
        default_factory=dict,
        description=(
            "Levels that are fixed, 0 for the values themselves: { age = 2, zip = 1 }; columns that are not named are "
            "searched. `noren compare --levels` lists the best."
        ),
    )

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.refusals import Levels

        return Levels("every column stands at the lowest level at which all classes meet all requirements")

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        from noren.methods.requirements import class_problems

        found = class_problems(self.name, roles, requirements, self.suppression)
        if self.weights and self.loss in OF_CLASSES:
            message = f"the loss {self.loss!r} depends on classes alone and knows no weights of columns."
            found.append(Problem("method.weights", message, 'Leave weights out, or use loss = "granularity".'))
        for name in self.weights:
            if roles.get(name) is not Role.QUASI_IDENTIFIER:
                message = f"{name!r} is not a quasi-identifier of this policy."
                found.append(Problem(f"method.weights.{name}", message, "Weights belong to quasi-identifiers."))
        for name in self.levels:
            if roles.get(name) is not Role.QUASI_IDENTIFIER:
                message = f"{name!r} is not a quasi-identifier of this policy."
                found.append(Problem(f"method.levels.{name}", message, "Levels belong to quasi-identifiers."))
        return found

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls(suppression=suppression)]

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        """Search the lattice of levels. Nothing is random here: the best levels follow from the table."""
        found = self._found(table, requirements)
        fixed = f" (fixed: {', '.join(self.levels)})" if self.levels else ""
        levels = told(found.trees, found.levels)
        notes = [f"levels: {levels}{fixed}; {found.classes:,} classes; {self.loss} loss {found.loss:.6g}"]
        if found.dropped:
            notes.append(f"{found.dropped:,} of {table.n:,} records dropped")
        return Plan(raised(table, found.trees, found.levels), found.keep if found.dropped else None, notes)

    def _found(self, table: Records, requirements: Sequence[Model]) -> FullDomain:
        from noren.methods.incognito.search import best_full_domain, fixed_full_domain
        from noren.methods.requirements import compiled

        rules = compiled(table, requirements)
        if self.levels:
            return fixed_full_domain(table, rules, self.levels, self.loss, self.suppression, self.weights)
        return best_full_domain(table, rules, self.loss, self.suppression, self.weights)

    def for_parts(self, table: Table) -> Incognito:
        """With the levels fixed that are best for all records, found from the different tuples of them."""
        from noren.methods.apart import DecidePart

        seen = DecidePart.of(table, self)
        tuples, times = table.histogram(list(seen.columns))
        records = seen.seen({name: tuples[:, i] for i, name in enumerate(seen.columns)})
        found = self._found(replace(records, times=times), table.requirements)
        return self.model_copy(update={"levels": dict(found.levels)})

    def decided_part(self, records: Records, requirements: Sequence[Model], order: RandomOrder) -> Plan:
        """The levels that were found; whether they hold is no matter of a part, whose classes go on in others."""
        trees = {
            name: tree_of(automatic_hierarchy(records.columns[name], records.codes[name])) for name in records.quasi
        }
        return Plan(raised(records, trees, self.levels), notes=(f"levels: {told(trees, self.levels)}",))


def raised(table: Records, trees: Mapping[str, Tree], levels: Mapping[str, int]) -> dict[str, Recode]:
    """Every quasi-identifier at its level."""
    return {name: Recode(tree.nodes, tree.at[levels[name]][table.codes[name]]) for name, tree in trees.items()}


def told(trees: Mapping[str, Tree], levels: Mapping[str, int]) -> str:
    """The levels in words."""
    return ", ".join(f"{name} {levels[name]} of {tree.height}" for name, tree in trees.items())
