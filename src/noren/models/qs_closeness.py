"""QS t-closeness (paper 001, definition 4): the beliefs from a group's terms stay close to the prior."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from noren.models.base import Probes, Promise
from noren.models.term_check import Beliefs, Judged, TermModel


class QSCloseness(TermModel):
    """In every group the beliefs in labels lie within t of the prior beliefs.

    The prior is the knowledge table's, where it gives one; otherwise it is estimated from the original. With "l2" the
    distance is Euclidean, as in the paper: no single belief rises by more than t. With "emd" it is the earth mover's
    distance with all labels equally far apart: no set of labels becomes likelier by more than t.
    """

    model: Literal["qs-closeness"] = "qs-closeness"
    probing: ClassVar[Probes] = ({"t": 1.0}, {"t": 1.0, "distance": "emd"})
    parameter: ClassVar[str] = "t"
    relative: ClassVar[bool] = True
    t: float = Field(gt=0, le=2, description="Largest permitted distance between a group's beliefs and the prior.")
    distance: Literal["l2", "emd"] = Field(
        default="l2", description="Euclidean, as in the paper, or the earth mover's distance (stricter)."
    )

    def judge_beliefs(self, found: Beliefs) -> Judged:
        distance = found.euclidean if self.distance == "l2" else found.moved
        return distance, distance <= self.t + found.rounding

    def says(self, achieved: float, found: Beliefs) -> str:
        linked = found.euclidean_linked if self.distance == "l2" else found.moved_linked
        worst = float(linked.max(initial=0.0))
        words = f"no group is further than {achieved:.4g} from the prior ({self.distance}), so no belief rises by more "
        words += f"than {found.rise:.4g}"
        if found.unlinked:
            words += f"; among linked records only, the distance is at most {worst:.4g}"
        return words

    def promise(self, names: str, sets: bool) -> Promise:
        single = "no set of labels" if self.distance == "emd" else "no single label"
        return Promise(
            f"Somebody who finds the records that match a person and links their {names} to labels with the "
            f"knowledge table believes nearly the same as before: {single} becomes likelier by more than "
            f"{self.t:.4g} (on a scale from 0 to 1).",
            "A guess may still become slightly better. An adversary with another knowledge table is not limited.",
        )
