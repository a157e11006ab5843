"""Mondrian: cut the table into classes as long as every class meets every requirement (LeFevre et al., ICDE 2006).

Each cut is the one that lowers the loss most: over all quasi-identifiers and all positions, what both sides lose in
all columns together (the normalised certainty penalty, NCP). A ranked column is cut between two values, a column
without order between two values of its list or one value against the rest, a column with a hierarchy one node against
the rest. All requirements that methods understand survive merging classes, so a table that fails as a whole cannot be
cut, and a cut whose sides hold never has to be taken back.

Afterwards, records move to neighbouring classes where that lowers the loss and all requirements still hold, and the
classes are cut again.

Suppression drops single records after that, never whole classes: a record goes if the others of its class gain more
than 1, which is what a dropped record loses itself, and if its class still meets every requirement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

from noren.errors import Problem, RequirementNotMet
from noren.methods.base import CodedTable, RandomOrder, Recoding, RecodingMethod
from noren.methods.cover import cover
from noren.methods.requirements import class_problems
from noren.models.base import Model
from noren.schema.roles import Role


class Mondrian(RecodingMethod):
    """Recursive cuts by least loss, for any combination of requirements on classes."""

    name: Literal["mondrian"] = "mondrian"
    strict: bool = Field(
        default=True,
        description="Whether a cut keeps records with equal values in its column together; without, ties may part.",
    )
    refinement: int = Field(
        default=2,
        ge=0,
        le=100,
        description="Rounds after the cuts in which records move to neighbouring classes where that lowers the loss; "
        "0 keeps the classes apart as they were cut.",
    )
    weights: dict[str, float] = Field(
        default_factory=dict,
        description="How much the loss in a quasi-identifier counts; 1 for those that are not named.",
    )

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        found = class_problems(self.name, roles, requirements, self.suppression)
        for column, weight in self.weights.items():
            where = f"method.weights.{column}"
            if roles.get(column) is not Role.QUASI_IDENTIFIER:
                found.append(Problem(where, f"{column!r} is no quasi-identifier.", "Name quasi-identifiers only."))
            elif not 0 < weight < float("inf"):
                found.append(Problem(where, f"weight {weight} is not positive.", "Give a number above 0, such as 2."))
        return found

    def recode(self, table: CodedTable, requirements: Sequence[Model], order: RandomOrder) -> Recoding:
        from noren.methods.mondrian_classes import classes_of

        if (reason := unreachable(table, requirements)) is not None:
            message, hint = reason
            raise RequirementNotMet(message, hint=hint)
        classes, count = classes_of(table, requirements, order, self)
        columns = {name: cover(table.columns[name], table.codes[name], classes, count) for name in table.quasi}
        keep = classes >= 0
        if keep.all():
            return Recoding(columns)
        dropped = int((~keep).sum())
        note = f"{dropped} of {table.n} records are dropped, because the others of their classes gain more by it."
        return Recoding(columns, keep, (note,))


def unreachable(table: CodedTable, requirements: Sequence[Model]) -> tuple[str, str] | None:
    """Why not even one class of all records meets the requirements, and what would help; None if it does."""
    from noren.methods.requirements import compiled

    for model in requirements:
        rules = compiled(table, [model])
        hists = np.zeros((max(1, len(rules.sensitive)), rules.reference.shape[1]))
        for j, name in enumerate(rules.sensitive):
            hists[j, : rules.values[j]] = np.bincount(table.codes[name], minlength=rules.values[j])
        if not rules.holds(hists, table.n):
            return _shortfall(table, model, model.parameters())
    return None


def _shortfall(table: CodedTable, model: Model, given: Mapping[str, Any]) -> tuple[str, str]:
    records = f"{table.n} record{'s' if table.n != 1 else ''}"
    if (k := given.get("k", 0)) > table.n:
        return (
            f"{model.model} with k={k} asks for more than the {records} of the table.",
            f"Set k to at most {table.n}.",
        )
    head = f"{model.model} does not hold even if all {records} form one class"
    for name in model.on:
        counts = np.bincount(table.codes[name]) if table.n else np.zeros(1, np.int64)
        values = int((counts > 0).sum())
        asked = given.get("l", given.get("p", 0))
        if asked > values:
            kind = "l" if "l" in given else "p"
            return f"{head}: {name!r} has {values} values.", f"Set {kind} to at most {values}."
        if model.model == "frequency-l-diversity" and counts.max() * asked > table.n:
            largest = table.n // int(counts.max())
            message = f"{head}: the commonest value of {name!r} has {counts.max() / table.n:.1%} of them."
            hint = f"Set l to at most {largest}." if largest > 1 else 'Use [method] name = "decoys".'
            return message, hint
    return f"{head}.", "Ask for less protection, or leave out the columns that cannot reach it."
