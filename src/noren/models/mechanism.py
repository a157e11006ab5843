"""The model `mechanism`: a limit on beliefs of somebody who knows how the release was made."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from noren.models.base import Check, Evidence, Model, Promise
from noren.models.verdict import Verdict
from noren.statements import CellBatch, Statement

ASK_THE_HOLDER = "only the holder can replay the method: give the original and its policy"


class Mechanism(Model):
    """Somebody who knows the method, the policy and everybody's quasi-identifiers believes no secret above `most`.

    The form of a release has reasons: who was moved, which class was not cut. What follows from them is computed by the
    rule that the method names, people by people, with the original. No method searches for it; a release that fails is
    not published, and `blind = true` of mondrian and hilbert leaves nothing to conclude.
    """

    model: Literal["mechanism"] = "mechanism"
    parameter: ClassVar[str] = "most"
    coarsening_preserves: ClassVar[bool] = False
    higher_is_safer: ClassVar[bool] = False
    of_mechanism: ClassVar[bool] = True
    most: float = Field(gt=0, lt=1, description="Largest belief in any secret, for somebody who replays the method.")

    def judge_classes(self, statement: Statement, evidence: Evidence) -> Check:
        return MechanismCheck(self, statement.name)

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            "Somebody who knows how the release was made, and the quasi-identifiers of everybody in it, believes "
            f"no person's value of {names} with more than {self.most:.4g}.",
            "It assumes an adversary who knows no secret beforehand and thinks all assignments that fit the "
            "published classes equally likely.",
        )


class MechanismCheck(Check):
    """The check without the original: always undecided."""

    def observe(self, batch: CellBatch) -> None:
        self.records += len(batch[self.column])

    def verdict(self) -> Verdict:
        return self.conclude(0.0, None, "the release alone", self.records, 0, ASK_THE_HOLDER)
