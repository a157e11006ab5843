"""All requirements on a published table, judged together in one pass. Judgements of the parts of a table merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from noren.errors import ReleaseError, list_columns
from noren.models.base import Accumulator, Check, Evidence, Model, Overall
from noren.models.classes import AlikeClasses, ClassFindings
from noren.models.verdict import Verdict
from noren.statements import CellBatch, Statement

NOTHING = ClassFindings(0, 0, 0.0, 0, 0, 0)


class Judgement:
    """The checks of some requirements, and what they gather."""

    def __init__(self, checks: Sequence[Check], show: int = 0, several: bool = False) -> None:
        self.checks = list(checks)
        self.several = several
        parts: dict[int, Accumulator] = {}
        for check in self.checks:
            check.show = show
            parts |= {id(part): part for part in check.parts}
        self.parts = list(parts.values())

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Statement],
        requirements: Sequence[Model],
        overall: Mapping[str, Overall] | None = None,
        show: int = 0,
        people: bool = False,
        several: bool = False,
    ) -> Judgement:
        """The judgement of a table with these columns. One made from the same arguments merges with it.

        With `people`, batches hold the hidden column that says whose row each is, and people are counted. With
        `several`, people may have several rows and nothing says whose they are.
        """
        evidence = Evidence(columns, overall or {}, people)
        absent = sorted({name for model in requirements for name in model.on} - evidence.columns.keys())
        if absent:
            raise ReleaseError(
                f"the requirements name columns that the release does not have: {', '.join(map(repr, absent))}.",
                hint=f"It has {list_columns(evidence.columns)}.",
            )
        return cls([check for model in requirements for check in model.checks(evidence)], show, several)

    @property
    def needs(self) -> set[str]:
        """The columns that it must see."""
        return {name for part in self.parts for name in part.needs}

    def observe(self, batch: CellBatch) -> None:
        """Take in the cells of some records."""
        for part in self.parts:
            part.observe(batch)

    def merge(self, other: Judgement) -> None:
        """Take in what the judgement of another part of the table has seen."""
        for own, one in zip(self.parts, other.parts, strict=True):
            own.merge(one)

    def apart(self) -> list[int]:
        """The parts whose classes can be judged in lots, because no check of theirs needs all of them at once."""
        alone = [p for p, part in enumerate(self.parts) if type(part) is AlikeClasses]
        return [p for p in alone if all(c.is_apart for c in self.checks if self.parts[p] in c.parts)]

    def found(self, part: int) -> dict[int, ClassFindings]:
        """What the checks of a part found in the classes that it has, by the number of the check."""
        mine = [(n, check) for n, check in enumerate(self.checks) if self.parts[part] in check.parts]
        return {number: check.findings() for number, check in mine}  # type: ignore[attr-defined]

    def verdicts(self, found: Mapping[int, Sequence[ClassFindings]] | None = None) -> list[Verdict]:
        """All verdicts; those of checks whose classes were judged in lots from what was found there."""
        return [
            check.of_rows(verdict) if self.several else verdict
            for number, check in enumerate(self.checks)
            for verdict in [check.verdict() if number not in (found or {}) else _settled(check, (found or {})[number])]
        ]


def _settled(check: Any, found: Sequence[ClassFindings]) -> Verdict:
    whole = NOTHING
    for one in found:
        whole = whole.joined(one, check.model.higher_is_safer, check.show)
    verdict: Verdict = check.settled(whole)
    return verdict
