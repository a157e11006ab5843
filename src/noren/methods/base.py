"""How a requirement is met. A method turns a Table into a Plan; it never publishes.

A `DrawingMethod` needs summaries alone (how often each value occurs) and gives every column a design, by which the
engine draws batch by batch. A `ClassMethod` sees the codes of all quasi-identifiers and sensitive columns and
says for every record what is published instead. Whatever either decides is verified by code it does not share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from noren.engines import Group, Plan, RandomOrder, Recode, Records, Table
from noren.engines.left_out import Members
from noren.engines.records import pinned
from noren.engines.shuffle import permutation
from noren.errors import Problem, RequirementNotMet
from noren.methods.cover import automatic_hierarchy, is_automatic
from noren.methods.left_out import completed, without
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.schema.roles import Role
from noren.secret import Keystream

UNSAFE = "they would not meet every requirement as one class, and absence shows"
LAST = "it would have taken the last record of a value that stays possible"

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule


def secret_order(n: int) -> NDArray[np.int64]:
    """A uniformly random order that nobody can predict."""
    return permutation(n, Keystream())


class Method(BaseModel, ABC):
    """A way to make a release. Its fields are the options of `[method]`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    on: tuple[str, ...] = Field(
        default=(),
        description="The columns it treats, where several methods make one release together; all, if none is named.",
    )

    sentence: ClassVar[str]
    """What it does, in one sentence for a reader of the release."""
    forms_classes: ClassVar[bool]
    """Whether it makes records look alike, so that quasi-identifiers are judged in classes."""
    chooses: ClassVar[bool] = False
    """Whether it only chooses among other methods, and is none to choose itself."""
    leaves_out_terms: ClassVar[bool] = False
    """Whether terms are left out, as few as suffice."""
    first_phase: ClassVar[bool] = False
    """Whether it can form the groups in which `suppress` leaves out terms."""

    @field_validator("on", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @property
    def title(self) -> str:
        """Name and the settings that differ from the default: "sweep chunk=16"."""
        return " ".join([self.name, *_words(self.changed)])

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that differ from the default."""
        return self.model_dump(exclude_defaults=True, exclude={"name", "on"}, exclude_none=True)

    @property
    def settings(self) -> dict[str, bool | int | float | str]:
        """The settings of one word that differ from the default. No release names them; a rule may depend on them."""
        return {name: value for name, value in self.changed.items() if isinstance(value, bool | int | float | str)}

    @abstractmethod
    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        """What is wrong before any data is seen."""

    @abstractmethod
    def plan(self, table: Table, *, meter: Meter = silent) -> Plan:
        """Decide what is published. Raises where the requirements cannot be met, with what is reachable."""

    def mechanism(self) -> Rule | None:
        """How an adversary who knows the method replays it, or why there is nothing to replay."""
        return None

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        """The method with the settings worth a try when a holder compares, or leaves the choice to Noren."""
        return ()


class DrawingMethod(Method):
    """A method that draws decoys by a published design."""

    forms_classes: ClassVar[bool] = False


class ClassMethod(Method):
    """A method that generalises, groups or suppresses records."""

    forms_classes: ClassVar[bool] = True
    needs_hierarchies: ClassVar[bool] = False
    """Whether every quasi-identifier must have a hierarchy; an automatic one is made where the policy gives none."""
    hides_quasi: ClassVar[bool] = True
    """Whether quasi-identifiers are changed; a method that leaves them exact shows who is in the table."""

    whole_people: ClassVar[bool] = True
    """Whether classes are made of people where they have several rows, all rows of a person in one; else it groups
    people by itself."""

    makes_intervals: ClassVar[bool] = False
    """Whether it makes intervals of its own where the policy gives no hierarchy."""
    apart: ClassVar[bool] = False
    """Whether parts of a table that does not fit one machine can be decided each by itself."""

    suppression: float = Field(
        default=0.0, ge=0, lt=1, description="Largest share of records that may be dropped to keep the others precise."
    )

    @property
    def wants_hierarchies(self) -> bool:
        """`needs_hierarchies`, for methods whose options decide it."""
        return self.needs_hierarchies

    @abstractmethod
    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        """Choose what is published. Raises RequirementNotMet with what is reachable where that falls short."""

    def for_parts(self, table: Table) -> ClassMethod:
        """The method with all decided that only the whole table can tell, before its parts are decided."""
        return self

    def decided_part(self, records: Records, requirements: Sequence[Model], order: RandomOrder) -> Plan:
        """What is published of a part of a table; nobody is left out."""
        return self.recode(records, requirements, order)

    def plan(self, table: Table, *, meter: Meter = silent) -> Plan:
        """Decide on the records in a secret uniform order, so that no tie is broken by their place in the table."""
        records, places = self.seen(table.records), secret_order(table.n)
        members = Members.of(table).taken(places)
        found = self.decided(records.taken(places), table.requirements, secret_order, members, meter)
        return replace(found.placed(places, table.n), records=records)

    def decided(
        self,
        records: Records,
        requirements: Sequence[Model],
        order: RandomOrder,
        members: Members,
        meter: Meter = silent,
    ) -> Plan:
        """What is chosen for records in a secret order; for whole people, where they have several rows."""
        if records.people is None or records.terms or not self.whole_people:
            return self.settled(records, requirements, order, members, meter)
        from noren.methods.whole_people import plan_for_people

        found = plan_for_people(
            records, members, lambda some, others: self.settled(some, requirements, order, others, meter)
        )
        left = 0 if found.keep is None else int((~found.keep).sum())
        if left <= int(self.suppression * records.n + 1e-9):
            return found
        everybody = self.model_copy(update={"suppression": 0.0})  # the people left out have too many of the rows
        return everybody.decided(records, requirements, order, members, meter)

    def settled(
        self,
        records: Records,
        requirements: Sequence[Model],
        order: RandomOrder,
        members: Members,
        meter: Meter = silent,
    ) -> Plan:
        """What `recode` chooses, where those who are left out meet every requirement as one class.

        People join them class by class, as far as may be; where that does not help, nobody is left out.
        """
        found = self.recode(records, requirements, order, meter)
        if found.keep is None:
            return found
        out = completed(found, records, members, int(self.suppression * records.n + 1e-9), order)
        if out is None:
            return self._everybody(records, requirements, order, meter, UNSAFE)
        more = int(out.sum() - (~found.keep).sum())
        joined = (f"{more:,} more records were left out, so that who is missing tells nothing",) if more else ()
        found = replace(without(found, records, out), notes=(*found.notes, *joined))
        if not _loses_a_secret(records, found) and self.looks_back(records, found):
            found = self._rest(records, np.flatnonzero(~out), requirements, order, meter, joined)
        if found.keep is not None and _loses_a_secret(records, found):
            return self._everybody(records, requirements, order, meter, LAST)
        return found

    def looks_back(self, records: Records, plan: Plan) -> bool:
        """Whether what is published of the others still shows those who are left out: groups that held them, or
        intervals that were made to hold them."""
        if any(isinstance(one, Group) for one in plan.treatments.values()):
            return True
        return self.makes_intervals and any(is_automatic(records.columns[name]) for name in records.quasi)

    def _rest(
        self,
        records: Records,
        rows: NDArray[np.int64],
        requirements: Sequence[Model],
        order: RandomOrder,
        meter: Meter,
        notes: Sequence[str],
    ) -> Plan:
        """Some of the records, published as if they had been all."""
        alone = self.model_copy(update={"suppression": 0.0})
        try:
            found = alone.recode(pinned(records).taken(rows), requirements, order, meter)
        except RequirementNotMet:
            return self._everybody(records, requirements, order, meter, UNSAFE)
        left = f"{records.n - len(rows):,} of {records.n:,} records are left out"
        return replace(found.placed(rows, records.n), notes=(*found.notes, left, *notes))

    def _everybody(
        self, records: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter, why: str
    ) -> Plan:
        """The plan that leaves out nobody."""
        try:
            found = self.model_copy(update={"suppression": 0.0}).recode(records, requirements, order, meter)
        except RequirementNotMet as error:
            message = f"{error.message} People who are left out do not help: {why}."
            raise RequirementNotMet(message, hint=error.hint) from None
        return replace(found, notes=(*found.notes, f"nobody was left out, because {why}"))

    def seen(self, records: Records) -> Records:
        """The records with an automatic hierarchy where the method needs one and the policy gives none."""
        if not self.wants_hierarchies:
            return records
        return records.over(
            {
                name: column.met(name, column.domain, hierarchy=automatic_hierarchy(column, records.codes[name]))
                for name, column in records.columns.items()
                if column.tree is None and column.role is Role.QUASI_IDENTIFIER
            }
        )


def _loses_a_secret(records: Records, plan: Plan) -> bool:
    """Whether a general value would stand for a secret that no published record has."""
    if plan.keep is None:
        return False
    for name in records.sensitive:
        left = np.bincount(records.codes[name][plan.keep], minlength=records.columns[name].d)
        if isinstance(plan.of(name), Recode) and not left.all():
            return True
    return False


def _words(settings: Mapping[str, Any], prefix: str = "") -> list[str]:
    out = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            out += _words(value, f"{prefix}{name}.")
        else:
            out.append(f"{prefix}{name}={str(value).lower() if isinstance(value, bool) else value}")
    return out
