"""All requirements on a published table, judged together in one pass. Judgements of the parts of a table merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from noren.cells import CellBatch, Statement
from noren.errors import ReleaseError
from noren.models.base import Accumulator, Check, Evidence, Model, Overall
from noren.models.verdict import Verdict


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
                hint=f"It has {', '.join(evidence.columns)}.",
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

    def verdicts(self) -> list[Verdict]:
        found = [(check, check.verdict()) for check in self.checks]
        return [check.of_rows(verdict) if self.several else verdict for check, verdict in found]
