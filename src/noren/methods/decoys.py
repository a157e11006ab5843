"""The method of papers 000 and 002: hide every sensitive value in a random set of decoys.

Diversity alone: p = 1, eta = l, the parameters of least expected error (Theorem 1). Closeness and local privacy: the
largest likelihood ratio that they permit for every distribution, and for it the eta of least expected error, both
functions of the requirement and the size of the domain. With diversity too: eta from l upwards. Columns without a
requirement pass unchanged. A bound on informed belief has a design of its own (`methods/informed.py`).

The paper searches p in the exact counts instead (`prior = "data"`). It is larger, and p and eta are published: they
then tell about the counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, floor, inf, log, prod
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from noren.designs.decoys import DecoyDesign, largest_p
from noren.engines import Draw, Plan, Table
from noren.errors import PolicyError, Problem
from noren.methods.base import DrawingMethod, Method
from noren.methods.budgets import Drawn, epsilons
from noren.methods.decoy_designs import alike, decide_informed, decide_semantic, decide_tuples, must_differ
from noren.models.base import Model
from noren.models.t_closeness import TCloseness
from noren.progress import Meter, silent
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.statements import Design

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule
MOST_ROWS_EACH = 1_000
"""Combinations of several columns' members beyond which shuffled records are refused."""
EPSILON_STEP = 0.1
"""The grid to which `prior = "data"` rounds down: p is published and a function of the exact counts."""


class DecoyParameters(BaseModel):
    """Parameters that the holder fixes for one column, instead of those that follow from the requirements."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    eta: int = Field(ge=1, description="Number of values in each published set.")
    p: float = Field(
        default=1.0, ge=0, le=1, description="Probability that the true value is put into the set deliberately."
    )


class Decoys(DrawingMethod):
    """Publish a set of eta possible values for every protected cell."""

    name: Literal["decoys"] = "decoys"
    sentence: ClassVar[str] = (
        "Each protected cell is published as a set of possible values: the true one among randomly drawn decoys."
    )
    parameters: dict[str, DecoyParameters] = Field(
        default_factory=dict,
        description="Fixed eta and p by column; for other columns they follow from the requirements.",
    )

    prior: Literal["any", "data"] = Field(
        default="any",
        description=(
            'The adversary\'s prior for t-closeness: "any", or the table\'s own distribution ("data"). "data" permits '
            "a larger p, but p then follows from the exact counts and discloses something about them."
        ),
    )
    design: Literal["best", "flat", "balanced", "simple", "duplicate-processing", "uniform-sets"] = Field(
        default="best",
        description=(
            'How sets of pairwise distant values are drawn (semantic requirements only). "best" is "flat" unless '
            "`most` permits a design with a smaller error."
        ),
    )
    designs: dict[str, Literal["best", "flat", "balanced", "simple", "duplicate-processing", "uniform-sets"]] = Field(
        default_factory=dict, description="The design by column, where columns differ."
    )
    allow_unidentifiable: bool = Field(
        default=False, description="Publish sets from which the true counts cannot be recovered."
    )
    form: Literal["sets", "records"] = Field(
        default="sets",
        description="One row per person with sets, or one shuffled row per combination of possible values.",
    )

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls()]

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.rule import Silent

        return Silent("decoys are drawn for each record independently of all others")

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        found = []
        protected = {name for model in requirements for name in model.on}
        for name in self.parameters:
            if name not in roles:
                found.append(Problem(f"method.parameters.{name}", "no such column in [attributes]."))
            elif name not in protected:
                found.append(
                    Problem(
                        f"method.parameters.{name}",
                        "parameters for a column that no requirement protects.",
                        "Add a [[require]] on the column, or remove the parameters.",
                    )
                )
        for number, model in enumerate(requirements, 1):
            if not model.judges_sets:
                message = f"the method 'decoys' publishes sets, which {model.model} cannot judge."
                found.append(Problem(f"require[{number}].model", message, model.method_hint))
        semantic = {name for model in requirements if model.separates for name in model.on}
        for name in self.designs:
            if name not in semantic:
                message = "the column has no semantic requirement, so it has no semantic design."
                found.append(
                    Problem(
                        f"method.designs.{name}",
                        message,
                        "Remove the design, or require semantic-diversity of the column.",
                    )
                )
        for name in sorted(semantic & self.parameters.keys()):
            message = "eta and p are fixed by semantic diversity: sets of l values, the truth among them."
            found.append(Problem(f"method.parameters.{name}", message, "Remove the parameters."))
        if self.form == "records" and not (protected and all(model.separates for model in requirements)):
            message = "shuffled records are available only for columns with semantic-diversity or le-diversity."
            found.append(Problem("method.form", message, 'Use form = "sets".'))
        for name, role in roles.items():
            if role is Role.QUASI_SENSITIVE:
                found.append(
                    Problem(
                        f"attributes.{name}.role",
                        "the method 'decoys' cannot protect a quasi-sensitive column.",
                        'Use [method] name = "suppress" or "mondrian".',
                    )
                )
        return found

    def plan(self, table: Table, *, meter: Meter = silent) -> Plan:
        """Determine designs from the requirements and the domains, with `prior = "data"` also from the counts."""
        designs, notes = self.decide(table.columns, table.counts, table.requirements)
        members = self.form == "records"
        rows = prod(design.eta for design in designs.values())
        if members and len(designs) > 1 and rows > MOST_ROWS_EACH:
            message = f"shuffled records would give every person {rows:,} rows, more than {MOST_ROWS_EACH:,}."
            raise PolicyError(
                [Problem("method.form", message, 'Use form = "sets", or protect fewer columns in this form.')]
            )
        return Plan({name: Draw(design, members) for name, design in designs.items()}, notes=notes)

    def decide(
        self, columns: Mapping[str, Column], counts: Mapping[str, NDArray[np.int64]], requirements: Sequence[Model]
    ) -> tuple[dict[str, Design], list[str]]:
        """Return the design of every protected column, and remarks; raise PolicyError with all problems."""
        problems: list[Problem] = []
        designs: dict[str, Design] = {}
        notes: list[str] = []
        by_column: dict[str, list[Model]] = {}
        for model in requirements:
            for name in model.on:
                by_column.setdefault(name, []).append(model)
        limits = self._limits(columns, counts, requirements, by_column)
        for name, models in by_column.items():
            column = columns[name]
            found: Design | Problem
            notes += alike(column)
            if must_differ(column, models) and not any(model.separates for model in models):
                kind = self.designs.get(name, self.design)
                found, remarks = decide_tuples(column, models, kind, self.allow_unidentifiable)
                notes += remarks
            elif any(model.separates for model in models):
                kind = self.designs.get(name, self.design)
                found, remarks = decide_semantic(column, counts[name], models, kind, self.allow_unidentifiable)
                notes += remarks
            elif any(model.knows_shares for model in models) and name not in self.parameters:
                found, note = decide_informed(column, counts[name], models, limits[name])
                notes += [note] if note else []
            else:
                found, note = self._decide_column(column, counts[name], models, limits[name])
                notes += [note] if note else []
            if isinstance(found, Problem):
                problems.append(found)
            else:
                designs[name] = found
        if problems:
            raise PolicyError(problems)
        return designs, notes

    def _limits(
        self,
        columns: Mapping[str, Column],
        counts: Mapping[str, NDArray[np.int64]],
        requirements: Sequence[Model],
        by_column: Mapping[str, Sequence[Model]],
    ) -> dict[str, float]:
        """Return the largest permitted epsilon of every column's sets."""
        drawn = {}
        for name, models in by_column.items():
            d, fixed = columns[name].d, self.parameters.get(name)
            least = max(model.least_set_size for model in models)
            limit = min(model.epsilon_each for model in models)
            if self.prior == "data" and limit < inf and 1 <= least < d:
                limit = searched(counts[name], _closeness(models), least, inf).epsilon
            chosen = None if fixed is None or fixed.eta > d else DecoyDesign(d=d, eta=fixed.eta, p=fixed.p).epsilon
            drawn[name] = Drawn(max(d, 2), min(least, max(d - 1, 1)), limit=limit, fixed=chosen)
        return epsilons(requirements, drawn)

    def _decide_column(
        self, column: Column, counts: NDArray[np.int64], models: Sequence[Model], limit: float
    ) -> tuple[DecoyDesign | Problem, str]:
        name, d = column.name, column.d
        least = max(model.least_set_size for model in models)
        closeness = _closeness(models)
        asks = ", ".join(f"{m.model} {m.required:g}" for m in models)
        fixed = self.parameters.get(name)
        if fixed is not None:
            if fixed.eta > d:
                message = f"eta = {fixed.eta} exceeds the {d} values of {name!r}."
                return Problem(f"method.parameters.{name}.eta", message, f"Choose at most {d}."), ""
            if fixed.eta < least:
                message = f"sets of {fixed.eta} values cannot meet {asks}."
                return Problem(f"method.parameters.{name}.eta", message, f"Choose at least {least}."), ""
            note = f"{name}: eta = d = {d}, so its sets carry no information" if fixed.eta == d else ""
            return DecoyDesign(d=d, eta=fixed.eta, p=fixed.p), note
        if d == 1:
            return Problem(
                f"attributes.{name}",
                f"the column has a single value, so nothing can protect it ({asks} asked).",
                "Drop the column, make it 'plain', or declare a larger domain with values = [...].",
            ), ""
        if least > d:
            return Problem(
                f"require on {name!r}",
                f"{asks}: l exceeds the {d} values of the domain.",
                f"Lower it to at most {d - 1}, or declare a larger domain with values = [...].",
            ), ""
        if least == d:
            return Problem(
                f"require on {name!r}",
                f"{asks}: every set would be the whole domain of {d} values and carry no information.",
                f"Lower it to at most {d - 1}; ask for t-closeness instead, which also protects small domains; or "
                f"set eta = {d} under [method.parameters.{name}] to publish a column without information.",
            ), ""
        if closeness and self.prior == "data":
            design = searched(counts, closeness, least, limit)
            return design, f"{name}: {design.tells}"
        if limit == inf:
            return DecoyDesign(d=d, eta=least), ""
        return DecoyDesign.within(d, exp(limit), least), ""


def searched(counts: NDArray[np.int64], closeness: Sequence[TCloseness], least: int, limit: float) -> DecoyDesign:
    """Return the design with the smallest expected error, with the largest p for each eta that keeps closeness for the
    table's own distribution, rounded down on a grid."""
    from noren.designs.closeness import largest_ps

    d, floor_of = len(counts), min(model.epsilon_each for model in closeness)
    # The equal distance bounds that of a tree from above.
    options = [largest_ps(counts, m.t, "equal" if m.distance == "tree" else m.distance) for m in closeness]
    designs = []
    for eta in range(least, d):
        rho = min(option[eta - 1].rho for option in options)
        epsilon = inf if rho == inf else max(floor_of, floor(log(rho) / EPSILON_STEP) * EPSILON_STEP)
        p = largest_p(d, eta, exp(min(epsilon, limit)) if min(epsilon, limit) < inf else inf)
        designs.append(DecoyDesign(d=d, eta=eta, p=p, prior="data"))
    return min(designs, key=lambda design: design.expected_l2(1))


def _closeness(models: Sequence[Model]) -> list[TCloseness]:
    return [model for model in models if isinstance(model, TCloseness)]
