"""QS t-closeness (paper 001, definition 4): what a group's terms reveal stays close to what was known before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from noren.models.base import Model, Promise
from noren.models.term_check import Beliefs, Judged, TermModel
from noren.statements import Statement


class QSCloseness(TermModel):
    """In every group the beliefs in labels lie within t of the prior beliefs.

    The prior is the knowledge table's, where it gives one; otherwise it is estimated from the original. With "l2" the
    distance is Euclidean, as in the paper: no single belief rises by more than t. With "emd" it is the earth mover's
    distance with all labels equally far apart: no set of labels becomes likelier by more than t.
    """

    model: Literal["qs-closeness"] = "qs-closeness"
    parameter: ClassVar[str] = "t"
    relative: ClassVar[bool] = True
    t: float = Field(gt=0, le=2, description="Largest permitted distance between a group's beliefs and the prior.")
    distance: Literal["l2", "emd"] = Field(
        default="l2", description="Euclidean, as in the paper, or the earth mover's distance (stricter)."
    )

    def judged(self, found: Beliefs) -> Judged:
        distance = found.euclidean if self.distance == "l2" else found.moved
        return distance, distance <= self.t + found.rounding

    def says(self, achieved: float, found: Beliefs) -> str:
        linked = found.euclidean_linked if self.distance == "l2" else found.moved_linked
        worst = float(linked.max(initial=0.0))
        words = f"no group lies further than {achieved:.4g} from the prior ({self.distance}); no belief rises by more "
        words += f"than {found.rise:.4g}"
        if found.unlinked:
            words += f"; counting linked records alone, the distance is at most {worst:.4g}"
        return words

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        if statement is None:
            return []
        return [cls(on=statement.name, t=1.0), cls(on=statement.name, t=1.0, distance="emd")]

    def promise(self, names: str, sets: bool) -> Promise:
        single = "no set of labels" if self.distance == "emd" else "no single label"
        return Promise(
            f"Whoever finds the records that could be a person's and links their {names} to labels with the knowledge "
            f"table ends close to what was believed before: {single} becomes likelier by more than {self.t:.4g} of 1.",
            "A guess may still become a little better than before. Somebody with another knowledge table is not "
            "limited.",
        )
