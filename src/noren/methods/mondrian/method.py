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
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.engines import Plan, RandomOrder, Records
from noren.errors import Problem
from noren.methods.base import FEW_PEOPLE, ClassMethod, Method
from noren.methods.blind import WHY, blind_classes, blind_problems
from noren.methods.cover import cover
from noren.methods.requirements import class_problems, demand_reachable
from noren.models import KAnonymity
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule


class Mondrian(ClassMethod):
    """Divide the table by recursive cuts with the least loss, for any combination of requirements on classes."""

    name: Literal["mondrian"] = "mondrian"
    sentence: ClassVar[str] = (
        "Records are divided into groups by recursive cuts, and each group is published with values that cover its "
        "records."
    )
    first_phase: ClassVar[bool] = True
    strict: bool = Field(
        default=True,
        description=("If true, a cut never separates records with equal values of the cut column."),
    )
    refinement: int = Field(
        default=2,
        ge=0,
        le=100,
        description=(
            "Number of rounds after the cuts in which records move to neighbouring classes to lower the loss; 0 moves "
            "none."
        ),
    )
    exchange: bool = Field(
        default=True,
        description=(
            "Permits cuts that leave records with too frequent secrets in the larger class, so that classes overlap. "
            "This affects only requirements that compare classes with the whole table; it is used if it lowers the "
            "loss."
        ),
    )
    weights: dict[str, float] = Field(
        default_factory=dict,
        description="Weight of each quasi-identifier in the loss; 1 by default.",
    )
    blind: bool | None = Field(
        default=None,
        description=(
            "Form classes from quasi-identifiers only, with the smallest class size at which every class meets the "
            "requirements, and assign their records to groups at random; secrets influence only that published size. "
            f"By default used only for tables of at most {FEW_PEOPLE} people, in which somebody who tries every "
            "possible table could otherwise learn secrets for certain."
        ),
    )

    def mechanism(self) -> Rule:
        if self.blind:
            from noren.methods.mechanism.rule import Silent

            return Silent(WHY)
        from noren.methods.mechanism.refusals import Refusals, mondrian_parts

        cuts = Refusals("a class is cut wherever all parts meet all requirements", mondrian_parts)
        if not self.exchange:
            return cuts
        from noren.methods.mechanism.refusals import Stays

        narrow = "if classes are compared with the whole table, a record is in the narrowest class that permits it"
        return Stays(f"{cuts.says}; {narrow}", cuts)

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        found = class_problems(self.name, roles, requirements, self.suppression, terms=True)
        found += blind_problems(self.name, requirements) if self.blind else []
        for column, weight in self.weights.items():
            where = f"method.weights.{column}"
            if roles.get(column) is not Role.QUASI_IDENTIFIER:
                found.append(Problem(where, f"{column!r} is not a quasi-identifier.", "Give quasi-identifiers only."))
            elif not 0 < weight < float("inf"):
                found.append(Problem(where, f"weight {weight} is not positive.", "Give a number above 0, such as 2."))
        return found

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls(suppression=suppression), cls(strict=False, suppression=suppression)]

    def _is_blind(self, table: Records, requirements: Sequence[Model]) -> bool:
        """Return whether secrets must not influence the cuts."""
        if self.blind is not None or table.n > FEW_PEOPLE:
            return bool(self.blind)
        guarded = any(model.about == "columns" for model in requirements)
        return guarded and not blind_problems(self.name, requirements)

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        from noren.methods.mondrian.classes import classes_of

        demand_reachable(table, requirements)
        if self._is_blind(table, requirements):

            def cut(size: int, same: RandomOrder) -> tuple[NDArray[np.int64], int]:
                return classes_of(table, [KAnonymity(k=max(2, size))], same, self)

            classes, count, facts = blind_classes(table, requirements, order, cut)
        else:
            facts = {}
            classes, count = classes_of(table, requirements, order, self)
        columns = {name: cover(table.columns[name], table.codes[name], classes, count) for name in table.quasi}
        keep = classes >= 0
        if keep.all():
            return Plan(columns, facts=facts)
        dropped = int((~keep).sum())
        note = f"{dropped} of {table.n} records are suppressed, which makes the rest of their classes more precise."
        return Plan(columns, keep, (note,), facts=facts)
