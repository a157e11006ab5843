"""The base of methods. A method turns a Table into a Plan; it never publishes.

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
from noren.methods.cover import is_automatic
from noren.methods.left_out import completed, without
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.schema.roles import Role
from noren.secret import Keystream

UNSAFE = "as one class they would not meet every requirement, and recipients can see who is missing"
FEW_PEOPLE = 30
"""People up to which somebody may replay a method on every table that fits a release, and so learn secrets that each
class alone does not disclose."""
LAST = "suppression would have removed the last record of a possible value"

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule


def secret_order(n: int) -> NDArray[np.int64]:
    """Return a uniformly random order that nobody can predict."""
    return permutation(n, Keystream())


class Method(BaseModel, ABC):
    """A method that makes a release. Its fields are the options of `[method]`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    on: tuple[str, ...] = Field(
        default=(),
        description="The columns this method treats, where several methods make one release; by default all.",
    )

    sentence: ClassVar[str]
    """What it does, in one sentence for a reader of the release."""
    forms_classes: ClassVar[bool]
    """Whether it makes records have equal quasi-identifiers, so that quasi-identifiers are judged in classes."""
    chooses: ClassVar[bool] = False
    """Whether it only chooses among other methods, and is none to choose itself."""
    leaves_out_terms: ClassVar[bool] = False
    """Whether terms are left out, as few as suffice."""
    first_phase: ClassVar[bool] = False
    """Whether it can form the groups in which `suppress` suppresses terms."""

    @field_validator("on", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @property
    def title(self) -> str:
        """Return the name and the settings that differ from the default, for example "sweep chunk=16"."""
        return " ".join([self.name, *_words(self.changed)])

    @property
    def changed(self) -> dict[str, Any]:
        """Return the settings that differ from the default."""
        return self.model_dump(exclude_defaults=True, exclude={"name", "on"}, exclude_none=True)

    @property
    def settings(self) -> dict[str, bool | int | float | str]:
        """Return the settings of one word that differ from the default. No release names them; a rule may depend on
        them."""
        return {name: value for name, value in self.changed.items() if isinstance(value, bool | int | float | str)}

    @abstractmethod
    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        """Return all problems that can be found without the data."""

    @abstractmethod
    def plan(self, table: Table, *, meter: Meter = silent) -> Plan:
        """Decide what is published; raise, with the reachable parameters, if the requirements cannot be met."""

    def mechanism(self) -> Rule | None:
        """Return how an adversary who knows the method can replay it, or why there is nothing to replay."""
        return None

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        """Return the method with the settings that `compare` and `auto` try."""
        return ()


class DrawingMethod(Method):
    """A method that draws decoys by a published design."""

    forms_classes: ClassVar[bool] = False


class ClassMethod(Method):
    """A method that generalises, groups or suppresses records."""

    forms_classes: ClassVar[bool] = True
    hides_quasi: ClassVar[bool] = True
    """Whether quasi-identifiers are changed; a method that leaves them exact shows who is in the table."""

    whole_people: ClassVar[bool] = True
    """Whether classes are made of people where they have several rows, all rows of a person in one; else it groups
    people by itself."""

    makes_intervals: ClassVar[bool] = False
    """Whether it makes intervals of its own where the policy gives no hierarchy."""
    suppression: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Largest share of records that may be suppressed to keep the others precise.",
    )

    @abstractmethod
    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        """Decide what is published; raise RequirementNotMet, with the reachable parameters, if the requirements cannot
        be met."""

    def plan(self, table: Table, *, meter: Meter = silent) -> Plan:
        """Decide in a secret uniform order of the records, so that no tie is broken by their position in the table."""
        records, places = table.records, secret_order(table.n)
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
        """Decide for records in a secret order; for whole people, if they have several rows."""
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
        """Return the decision of `recode` under which the suppressed people meet every requirement as one class.

        People join them class by class, as far as may be; where that does not help, nobody is left out.
        """
        found = self.recode(records, requirements, order, meter)
        if found.keep is None:
            return found
        out = completed(found, records, members, int(self.suppression * records.n + 1e-9), order)
        if out is None:
            return self._everybody(records, requirements, order, meter, UNSAFE)
        more = int(out.sum() - (~found.keep).sum())
        joined = (
            (f"{more:,} more records were suppressed, so that the suppressed people meet the requirements as a class",)
            if more
            else ()
        )
        found = replace(without(found, records, out), notes=(*found.notes, *joined))
        if not _loses_a_secret(records, found) and self.looks_back(records, found):
            found = self._rest(records, np.flatnonzero(~out), requirements, order, meter, joined)
        if found.keep is not None and _loses_a_secret(records, found):
            return self._everybody(records, requirements, order, meter, LAST)
        return found

    def looks_back(self, records: Records, plan: Plan) -> bool:
        """Return whether the published records still disclose the suppressed people: by groups or intervals that
        contained them."""
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
        """Decide for some of the records as if they were all."""
        alone = self.model_copy(update={"suppression": 0.0})
        try:
            found = alone.recode(pinned(records).taken(rows), requirements, order, meter)
        except RequirementNotMet:
            return self._everybody(records, requirements, order, meter, UNSAFE)
        left = f"{records.n - len(rows):,} of {records.n:,} records are suppressed"
        return replace(found.placed(rows, records.n), notes=(*found.notes, left, *notes))

    def _everybody(
        self, records: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter, why: str
    ) -> Plan:
        """Return the plan without suppression."""
        try:
            found = self.model_copy(update={"suppression": 0.0}).recode(records, requirements, order, meter)
        except RequirementNotMet as error:
            message = f"{error.message} Suppression does not help: {why}."
            raise RequirementNotMet(message, hint=error.hint) from None
        return replace(found, notes=(*found.notes, f"nobody was suppressed, because {why}"))


def _loses_a_secret(records: Records, plan: Plan) -> bool:
    """Return whether a generalised value would cover a secret that no published record has."""
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
