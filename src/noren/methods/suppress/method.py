"""Quasi-sensitive terms in two phases (paper 001): generalise into groups, then suppress terms group by group.

The first phase is any method of the library that generalises, for k-anonymity and whatever else is required of the
classic columns; with k = 1 and no such requirement records stay as they are and only those with equal quasi-identifiers
form a group. The second phase searches, for every group whose terms reveal too much, the cheapest terms to leave out. A
group that not even the loss of all terms can fix is merged with its nearest neighbour or dropped, as the policy says;
it is never published.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from noren.engines import Plan, RandomOrder, Records
from noren.errors import Problem
from noren.methods.base import ClassMethod
from noren.methods.requirements import class_problems
from noren.models import KAnonymity
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule


class Balance(BaseModel):
    """A limit on one of the two losses; the other is minimised."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    generalisation: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description=(
            "Largest mean loss of quasi-identifiers (NCP); within it, as few terms as possible are suppressed."
        ),
    )
    terms: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description=(
            "Largest mean cost per record of suppressed terms; within it, values are generalised as little as possible."
        ),
    )

    @model_validator(mode="after")
    def _one(self) -> Balance:
        if (self.generalisation is None) == (self.terms is None):
            raise ValueError("give a budget for generalisation or for terms")
        return self


class Suppress(ClassMethod):
    """Generalise quasi-identifiers and then suppress terms, or choose both together under a budget."""

    name: Literal["suppress"] = "suppress"
    sentence: ClassVar[str] = "Values are generalised, and terms that would disclose too much are suppressed."
    leaves_out_terms: ClassVar[bool] = True
    k: int = Field(default=1, ge=1, description="Smallest size of the groups; 1 leaves quasi-identifiers unchanged.")
    generalise: str | dict[str, Any] = Field(
        default="mondrian", description="Method that forms the groups: its name, or a table with its name and options."
    )
    search: Literal["best", "adaptive", "depth-first"] = Field(
        default="best",
        description=(
            "How terms are chosen: the best known search, with a proof where possible; the paper's adaptive search; or "
            "the paper's baseline."
        ),
    )
    seconds: float | None = Field(
        default=2.0,
        gt=0,
        allow_inf_nan=False,
        description="Largest search time for one group in seconds; the best result so far is then used. No "
        "limit if another one is given.",
    )
    total_seconds: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Largest search time for all groups together in seconds, divided equally.",
    )
    nodes: int | None = Field(
        default=None,
        ge=1,
        description=(
            "Search nodes for one group, instead of seconds; the result then does not depend on the machine's speed."
        ),
    )
    cost: Literal["inverse", "terms"] = Field(
        default="inverse",
        description="Cost of suppressing a term: 1 over the remaining terms of its record, or the term's own weight.",
    )
    term_weights: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=dict, description='Weights of terms with cost = "terms"; 1 by default.'
    )
    infeasible: Literal["merge", "drop", "refuse"] = Field(
        default="merge",
        description=(
            "Groups for which no suppression of terms suffices: merge them with the nearest group, drop them (within "
            "suppression), or refuse."
        ),
    )
    balance: Balance | None = Field(
        default=None,
        description=("Limits the loss by generalisation or by suppressed terms, and minimises the other."),
    )

    @field_validator("generalise")
    @classmethod
    def _known(cls, value: str | dict[str, Any]) -> str | dict[str, Any]:
        from noren.methods import METHODS

        name = value if isinstance(value, str) else value.get("name")
        known = [name for name, kind in METHODS.items() if kind.first_phase]
        if name not in known:
            raise ValueError(f"no first phase {name!r}; known: {', '.join(known)}")
        if isinstance(value, dict) and "suppression" in value:
            raise ValueError("suppression is an option of the whole method, not of its first phase")
        return value

    @model_validator(mode="after")
    def _bounded(self) -> Suppress:
        other = self.nodes is not None or self.total_seconds is not None
        if other and "seconds" not in self.model_fields_set:
            object.__setattr__(self, "seconds", None)
        if self.seconds is None and self.total_seconds is None and self.nodes is None:
            raise ValueError("a search needs a limit: seconds, total_seconds or nodes")
        if self.term_weights and self.cost != "terms":
            raise ValueError('term_weights require cost = "terms"')
        if self.balance is not None and self.cost != "inverse":
            raise ValueError("balance uses the cost of the paper; remove cost, or balance")
        return self

    @property
    def grouping(self) -> ClassMethod:
        """Return the method that forms the groups."""
        from noren.methods import METHODS

        options = {"name": self.generalise} if isinstance(self.generalise, str) else dict(self.generalise)
        made = METHODS[options["name"]].model_validate(options | {"suppression": self.suppression})
        assert isinstance(made, ClassMethod)
        return made

    def prices(self, knowledge: Knowledge, codes: int) -> NDArray[np.float64] | None:
        """Return the price of the terms of a knowledge table, by code, followed by unknown terms; None for equation
        2."""
        if self.cost == "inverse":
            return None
        known = len(knowledge.terms)
        out = np.ones(max(codes, known))
        out[:known] = [self.term_weights.get(term, 1.0) for term in knowledge.terms]
        return out

    def looks_back(self, records: Records, plan: Plan) -> bool:
        return self.balance is None and self.grouping.looks_back(records, plan)

    @property
    def changed(self) -> dict[str, Any]:
        """Return the changed settings, always with k."""
        return {"k": self.k, **super().changed}

    def classic(self, requirements: Sequence[Model]) -> list[Model]:
        """Return the requirements on the first phase: all except those on terms, and groups of at least k."""
        asked = [model for model in requirements if model.about != "terms"]
        largest = max([1, *(model.least_class_size for model in asked if not model.on)])
        return [*asked, KAnonymity(k=self.k)] if self.k > largest else asked

    def mechanism(self) -> Rule | None:
        """Return the rule by which the groups are formed; suppressed terms have a separate one."""
        if self.balance is None:
            return self.grouping.mechanism()
        from noren.methods.mechanism.refusals import Refusals, mondrian_parts

        return Refusals(
            "groups come from a tree of cuts and are cut wherever suppression suffices in all parts", mondrian_parts
        )

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        found = []
        terms = [model for model in requirements if model.about == "terms"]
        if not terms:
            message = "the method 'suppress' suppresses quasi-sensitive terms, but no requirement is on such a column."
            hint = 'Add [[require]] with model = "qs-diversity" or "qs-closeness", or use "mondrian".'
            found.append(Problem("method.name", message, hint))
        seen: dict[str, Model] = {}
        for number, model in enumerate(requirements, 1):
            for name in model.on if model.about == "terms" else ():
                if name in seen:
                    message = f"the method 'suppress' meets one requirement per column of terms, but {name!r} has two."
                    found.append(Problem(f"require[{number}].on", message, 'Keep one, or use "mondrian".'))
                seen[name] = model
        try:
            first = self.grouping
        except ValueError as error:
            return [*found, Problem("method.generalise", f"these are not options of the method: {_first_line(error)}.")]
        classic = self.classic(requirements)
        plain = {name: role for name, role in roles.items() if role is not Role.QUASI_SENSITIVE}
        if classic and self.balance is None:
            more = first.problems(plain, classic)
        else:
            more = class_problems(self.name, plain, classic, self.suppression)
        return found + [_renumber(problem, classic, requirements) for problem in more]

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        from noren.methods.suppress.groups import suppress_terms

        found = suppress_terms(self, table, self._first(table, requirements, order, meter), requirements, meter)
        budget = None if self.balance is None else self.balance.terms
        spent = max((figure.mean_cost_of_records for figure in found.searches), default=0.0)
        if budget is not None and spent > budget + 1e-9:
            note = (
                f"suppressed terms cost {spent:.4f} per record, more than the budget of {budget:g}; allow a longer "
                "search"
            )
            return replace(found, notes=[*found.notes, note])
        return found

    def _first(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter) -> Plan:
        classic = self.classic(requirements)
        if self.balance is not None:
            from noren.methods.suppress.balance import NODES, balance_losses
            from noren.methods.suppress.groups import cover_classes, report_progress

            found = balance_losses(
                table,
                requirements,
                order,
                k=self.k,
                generalisation=self.balance.generalisation,
                terms=self.balance.terms,
                nodes=NODES if self.nodes is None else self.nodes,
                progress=report_progress(meter),
            )
            return cover_classes(table, Plan({}), found.classes, found.count)
        return self.grouping.recode(table, classic, order) if classic else Plan({})


def _renumber(problem: Problem, classic: Sequence[Model], requirements: Sequence[Model]) -> Problem:
    """Return the problem with its requirement's number among all of them."""
    at = re.match(r"require\[(\d+)\]", problem.where)
    if at is None or int(at[1]) > len(classic) or (model := classic[int(at[1]) - 1]) not in requirements:
        return problem
    number = next(i for i, other in enumerate(requirements, 1) if other is model)
    return replace(problem, where=f"require[{number}]{problem.where[at.end() :]}")


def _first_line(error: Exception) -> str:
    """Return pydantic's message without its links."""
    found: list[Any] = getattr(error, "errors", list)()
    return f"{'.'.join(map(str, found[0]['loc']))}: {found[0]['msg']}" if found else str(error)
