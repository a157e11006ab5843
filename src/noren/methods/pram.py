"""PRAM: every protected cell is published as one value, which may have been changed at random.

With t-closeness on a column, the true value is kept as often as the bound for every distribution permits
(rho <= ((1 + t) / (1 - t))^2); a budget of local privacy is split over its columns. Columns without a requirement are
changed where `keep` names them: that blurs them and promises nothing that could be verified, so they are `plain` or
quasi-identifiers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, inf
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, field_validator

from noren.designs.pram import PramDesign, rounded_parts
from noren.engines import Change, Plan, Table
from noren.errors import PolicyError, Problem
from noren.methods.base import DrawingMethod
from noren.methods.budgets import Drawn, epsilons
from noren.models.base import Model, columns_of
from noren.progress import Meter, silent
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule


class Pram(DrawingMethod):
    """Keep each value with a published probability, or replace it by a value drawn with published shares."""

    name: Literal["pram"] = "pram"
    sentence: ClassVar[str] = "Values of some columns are changed at random, with published probabilities."
    keep: dict[str, float] = Field(
        default_factory=dict,
        description="Probability that a value is kept, by column; by default it follows from the requirements.",
    )
    prior: Literal["uniform", "data"] = Field(
        default="uniform",
        description=(
            'How other values are drawn: with equal probability ("any"), or by the rounded distribution of the column '
            '("data"), which discloses it.'
        ),
    )
    grid: int = Field(
        default=50,
        ge=10,
        le=10_000,
        description=(
            'Number of parts to which prior = "data" rounds a distribution; fewer if a part would be of few people.'
        ),
    )

    @field_validator("keep")
    @classmethod
    def _probabilities(cls, value: dict[str, float]) -> dict[str, float]:
        if any(not 0 < keep < 1 for keep in value.values()):
            raise ValueError(
                "keep must be above 0 and below 1: 1 would change nothing, and 0 would publish no information"
            )
        return value

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.rule import Silent

        return Silent("values are changed for each record independently of all others")

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        found = []
        for number, model in enumerate(requirements, 1):
            if not model.judges_changed:
                message = f"the method 'pram' changes values, which {model.model} cannot judge."
                hint = 'Require t-closeness or local-privacy, or use another method, for example "decoys".'
                found.append(Problem(f"require[{number}].model", message, hint))
        for name in self.keep:
            if name not in roles:
                found.append(Problem(f"method.keep.{name}", "no such column in [attributes]."))
            elif roles[name].is_dropped or roles[name] is Role.QUASI_SENSITIVE:
                message = f"a column of role {roles[name].value!r} has no single values to change."
                found.append(Problem(f"method.keep.{name}", message, "Remove it."))
        if not self.keep and not any(model.on for model in requirements):
            message = "the method 'pram' has no column to change."
            found.append(Problem("method.keep", message, "Add t-closeness on a column, or keep = { column = 0.8 }."))
        return found

    def plan(self, table: Table, *, meter: Meter = silent) -> Plan:
        required = columns_of(table.requirements)
        problems: list[Problem] = []
        changes: dict[str, Change] = {}
        notes: list[str] = []
        parts: dict[str, tuple[int, ...] | None] = {}
        drawn: dict[str, Drawn] = {}
        for name in dict.fromkeys([*self.keep, *(name for model in table.requirements for name in model.on)]):
            column = table.columns.get(name)
            if column is None or column.is_open or column.d < 2:
                what = "has too many values to list" if column is None or column.is_open else "has a single value"
                problems.append(Problem(f"attributes.{name}", f"{name!r} {what}, so it cannot be changed at random."))
                continue
            parts[name] = rounded_parts(table.counts[name], self.grid) if self.prior == "data" else None
            keep, limit = self.keep.get(name), min([inf, *(m.epsilon_each for m in table.requirements if name in m.on)])
            fixed = None if keep is None else PramDesign(d=column.d, keep=keep, parts=parts[name]).epsilon
            drawn[name] = Drawn(column.d, most=1, limit=limit, fixed=fixed)
        if problems:
            raise PolicyError(problems)
        for name, limit in epsilons(table.requirements, drawn).items():
            if name in self.keep:
                design = PramDesign(d=drawn[name].d, keep=self.keep[name], parts=parts[name])
            else:
                design = PramDesign.within(drawn[name].d, exp(limit), parts[name])
            changes[name] = Change(design)
            notes.append(f"{name}: kept with probability {design.keep:.4g}, epsilon {design.epsilon:.3g}")
            if design.tells:
                notes.append(f"{name}: {design.tells}")
            if name not in required:
                notes.append(f"{name}: no requirement covers it, so nothing is guaranteed")
        return Plan(changes, notes=notes)
