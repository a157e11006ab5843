"""What an attack returns: one result per target, as a table and as a chart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from noren.audit.base import HOLDER_ONLY, AttackResult
from noren.results import Results, make_frame, one_line, plain

if TYPE_CHECKING:
    import polars as pl

COLUMNS: dict[str, type] = {
    "attack": str,
    "target": str,
    "scenario": str,
    "title": str,
    "by": str,
    "lines": int,
    "holder_only": bool,
}


@dataclass(frozen=True, repr=False, eq=False)
class Attacks(Results[AttackResult]):
    """What an adversary gains about every target.

    `frame` has one row per result and scenario: how many people or rows were looked at, then the figures by name.
    """

    @property
    def holder_only(self) -> bool:
        """Whether some figure rests on the original."""
        return any(result.holder_only for result in self)

    @property
    def frame(self) -> pl.DataFrame:
        found = [(result, scenario) for result in self for scenario in result.scenarios]
        figures = {name: float for _, scenario in found for name in scenario.summary if name not in COLUMNS}
        rows = (
            {**scenario.summary, "attack": result.attack, "target": "+".join(result.target)}
            | {"scenario": scenario.name, "title": scenario.title, "by": scenario.by}
            | {"lines": scenario.lines, "holder_only": scenario.holder_only}
            for result, scenario in found
        )
        return make_frame(COLUMNS | figures, rows)

    def chart(self) -> Any:
        """The charts of all results, one below the other."""
        from noren.audit.chart import chart

        return chart(*self)

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain data, for JSON; the lines about people and rows are in `records()` of each result."""
        return {"results": [plain(result.to_dict()) for result in self]}

    def _headline(self) -> str:
        if not self:
            return "nothing was attacked"
        names = ", ".join(dict.fromkeys(result.attack for result in self))
        targets = ", ".join(dict.fromkeys("+".join(result.target) for result in self))
        scenarios = sum(len(result.scenarios) for result in self)
        secret = "; holder only" if self.holder_only else ""
        count = f"{scenarios} scenario{'' if scenarios == 1 else 's'}"
        return f"{one_line(names, 30)} on {one_line(targets, 40)}, {count}{secret}"

    def _notes(self) -> tuple[str, ...]:
        notes = dict.fromkeys(f"{note}." for result in self for note in result.notes)
        return (*notes, *([f"Some of this {HOLDER_ONLY}."] if self.holder_only else []))
