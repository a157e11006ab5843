"""What the mechanism reveals: nobody's secret may be believed too much by whoever knows how the release was made."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from noren.models.base import Check, Evidence, Model, Promise
from noren.models.verdict import Verdict
from noren.statements import CellBatch, Statement

ASK_THE_HOLDER = "only the holder can replay the method: give the original and its policy"


class Mechanism(Model):
    """Whoever knows the method, the policy and everybody's quasi-identifiers believes no secret above `most`.

    The form of a release has reasons: who was moved, which class was not cut. What follows from them is computed by the
    rule that the method names, people by people, with the original. No method searches for it; a release that fails is
    not published, and `blind = true` of mondrian and hilbert leaves nothing to conclude.
    """

    model: Literal["mechanism"] = "mechanism"
    parameter: ClassVar[str] = "most"
    coarsening_preserves: ClassVar[bool] = False
    higher_is_safer: ClassVar[bool] = False
    of_mechanism: ClassVar[bool] = True
    most: float = Field(gt=0, lt=1, description="Largest belief in anybody's secret, knowing the method and its rule.")

    def judge_classes(self, statement: Statement, evidence: Evidence) -> Check:
        return MechanismCheck(self, statement)

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"Somebody who knows how the release was made, and by which columns people can be found in it, believes "
            f"nobody's value of {names} with more than {self.most:.4g}.",
            "It supposes that all secrets which the published classes permit are alike to this person, who knows "
            "nobody's secret beforehand.",
        )


class MechanismCheck(Check):
    """What cells alone say about it: nothing."""

    def __init__(self, model: Mechanism, statement: Statement) -> None:
        super().__init__(statement.name)
        self.model = model
        self.rows = 0

    def observe(self, batch: CellBatch) -> None:
        self.rows += len(batch[self.column])

    def merge(self, other: MechanismCheck) -> None:
        self.rows += other.rows

    def verdict(self) -> Verdict:
        return Verdict(
            model=self.model.model,
            column=self.column,
            required=self.model.most,
            achieved=0.0,
            holds=None,
            basis="the release alone",
            records=self.rows,
            breaches=0,
            statement=ASK_THE_HOLDER,
        )
