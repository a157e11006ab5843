"""Mondrian: cut the table into classes as long as every class meets every requirement (LeFevre et al., ICDE 2006).

Each cut is the one that lowers the loss most: over all quasi-identifiers and all positions, what both sides lose in
all columns together (the normalised certainty penalty, NCP). A ranked column is cut between two values, a column
without order between two values of its list or one value against the rest, a column with a hierarchy one node against
the rest. All requirements that methods understand survive merging classes, so a table that fails as a whole cannot be
cut, and a cut whose sides hold never has to be taken back.

Quasi-sensitive terms are published in full: where a requirement is about what they are linked to, classes stay so
large that their terms together reveal little enough.

Where a requirement compares classes with the whole table (closeness, likeness, disclosure), such cuts soon fail: each
side has too much of some secret. There, cuts are tried too that leave the records which are too much behind, in a class
that stays as wide as it was and is cut by something else (after SABRE, Cao et al. 2011, which fills classes by the
table's shares); and what loses less is kept.

Afterwards, records move to neighbouring classes where that lowers the loss and all requirements still hold, and the
classes are cut again.

Suppression drops single records after that, never whole classes: a record goes if the others of its class gain more
than 1, which is what a dropped record loses itself, and if its class still meets every requirement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.engines import Plan, RandomOrder, Records
from noren.errors import Problem, RequirementNotMet
from noren.methods.base import ClassMethod, Method
from noren.methods.blind import WHY, blind_classes, blind_problems
from noren.methods.cover import cover
from noren.methods.requirements import class_problems
from noren.models import KAnonymity
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule


class Mondrian(ClassMethod):
    """Recursive cuts by least loss, for any combination of requirements on classes."""

    name: Literal["mondrian"] = "mondrian"
    sentence: ClassVar[str] = (
        "Records are divided into groups by recursive cuts, and each group gets values that cover its records."
    )
    first_phase: ClassVar[bool] = True
    apart: ClassVar[bool] = True
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
    exchange: bool = Field(
        default=True,
        description="Where a requirement compares classes with the whole table: whether a cut may leave records of too "
        "common secrets behind, so that classes overlap. Both ways are tried, and what loses less is kept.",
    )
    weights: dict[str, float] = Field(
        default_factory=dict,
        description="How much the loss in a quasi-identifier counts; 1 for those that are not named.",
    )
    blind: bool = Field(
        default=False,
        description="Make classes from quasi-identifiers alone, for a class size that grows until every class holds, "
        "and deal their records to groups at random; the size is published, and what secrets decide is that number "
        "alone.",
    )

    def mechanism(self) -> Rule:
        if self.blind:
            from noren.methods.mechanism.rule import Silent

            return Silent(WHY)
        from noren.methods.mechanism.refusals import Refusals, mondrian_parts

        cuts = Refusals("a class is cut wherever all parts meet all requirements", mondrian_parts)
        if not self.exchange:
            return cuts
        from noren.methods.mechanism.stays import Stays

        narrow = "where classes are compared with the whole table, a record is in the narrowest that can take it"
        return Stays(f"{cuts.says}; {narrow}", cuts)

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        found = class_problems(self.name, roles, requirements, self.suppression, terms=True)
        found += blind_problems(self.name, requirements) if self.blind else []
        for column, weight in self.weights.items():
            where = f"method.weights.{column}"
            if roles.get(column) is not Role.QUASI_IDENTIFIER:
                found.append(Problem(where, f"{column!r} is no quasi-identifier.", "Name quasi-identifiers only."))
            elif not 0 < weight < float("inf"):
                found.append(Problem(where, f"weight {weight} is not positive.", "Give a number above 0, such as 2."))
        return found

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls(suppression=suppression), cls(strict=False, suppression=suppression)]

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        from noren.methods.mondrian.classes import classes_of

        if (reason := unreachable(table, requirements)) is not None:
            message, hint = reason
            raise RequirementNotMet(message, hint=hint)
        if self.blind:

            def cut(size: int, same: RandomOrder) -> tuple[NDArray[np.int64], int]:
                return classes_of(table, [KAnonymity(k=size)], same, self)

            classes, count, facts = blind_classes(table, requirements, order, cut)
        else:
            facts = {}
            classes, count = classes_of(table, requirements, order, self)
        columns = {name: cover(table.columns[name], table.codes[name], classes, count) for name in table.quasi}
        keep = classes >= 0
        if keep.all():
            return Plan(columns, facts=facts)
        dropped = int((~keep).sum())
        note = f"{dropped} of {table.n} records are dropped, because the others of their classes gain more by it."
        return Plan(columns, keep, (note,), facts=facts)


def unreachable(table: Records, requirements: Sequence[Model]) -> tuple[str, str] | None:
    """Why not even one class of all records meets the requirements, and what would help; None if it does."""
    from noren.methods.requirements import compiled

    for model in requirements:
        if model.about == "terms":
            if (reason := _terms_shortfall(table, model)) is not None:
                return reason
            continue
        asked = compiled(table, [model])
        hists = np.zeros_like(asked.rules.reference)
        for j, name in enumerate(asked.sensitive):
            counts = np.bincount(table.codes[name])
            hists[j, : len(counts)] = counts
        if not asked.holds(hists, table.n):
            return _shortfall(table, model, model.parameters())
    return None


def _shortfall(table: Records, model: Model, given: Mapping[str, Any]) -> tuple[str, str]:
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


def _terms_shortfall(table: Records, model: Model) -> tuple[str, str] | None:
    """What the terms of all records together reveal, where that is more than a requirement permits."""
    from noren.methods.suppress.beliefs import linkages, measure_groups

    everyone, whole = np.arange(table.n), np.array([0, table.n])
    for found in linkages(table, [model]):
        for rule, unlinked in found.rules:
            cells, rank = found.cells, rule.l if rule.kind == "cl" else 1
            measures = measure_groups(
                everyone, whole, cells.offsets, cells.data, found.knowledge, found.alpha, l=rank, unlinked=unlinked
            )
            if rule.holds(measures).all():
                continue
            _, peak, tail, square, moved = measures[0].tolist()
            records = f"{table.n} record{'s' if table.n != 1 else ''}"
            where = " and ".join(repr(name) for name in found.names)
            head = f"{model.model} on {where} does not hold even if all {records} form one class: "
            other = 'or use [method] name = "suppress".'
            if rule.kind == "cl":
                said = f"the top label is believed with {peak:.4g}, those from rank {rank} on with {tail:.4g} together."
                ask = f"Set c to at least {_up(peak / tail)}," if tail > 0 else "Lower l,"
                return head + said, f"{ask} {other}"
            distance = square**0.5 if rule.metric == "l2" else moved
            said = f"their beliefs lie {distance:.4g} from the prior."
            return head + said, f"Set t to at least {_up(distance)}, {other}"
    return None


def _up(number: float) -> str:
    """Four digits after the point, rounded so that the bound is enough."""
    return f"{np.ceil(number * 1e4 - 1e-6) / 1e4:g}"
