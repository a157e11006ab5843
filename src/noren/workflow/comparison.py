"""What a comparison returns: its candidates in order, as a table and as a chart."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from noren.results import Results, make_frame, one_line, plain

if TYPE_CHECKING:
    import polars as pl

    from noren.workflow.compare import Candidate

COLUMNS: dict[str, type] = {
    "method": str,
    "setting": str,
    "holds": bool,
    "failure": str,
    "seconds": float,
    "records": int,
    "suppressed": int,
    "smallest_class": float,
    "worst_share": float,
    "belief": float,
    "query_loss": float,
}


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Results["Candidate"]):
    """Candidates side by side, fewest right guesses first, those that publish nothing last. For the holder only.

    `frame` has one row per candidate: its figures, then every loss and what classification costs, by name.
    """

    @property
    def best(self) -> Candidate | None:
        """The one to adopt: of those that hold, the one with the least error of count queries."""
        good = [candidate for candidate in self if candidate.holds]
        return min(good, key=lambda one: (isnan(one.query_loss), one.query_loss), default=None)

    @property
    def frame(self) -> pl.DataFrame:
        measured = [(one.losses or {}) | (one.classification or {}) for one in self]
        columns = COLUMNS | {name: float for figures in measured for name in figures if name not in COLUMNS}
        lines = []
        for one, figures in zip(self, measured, strict=True):
            setting = ", ".join(f"{name} = {value:g}" for name, value in one.setting.items())
            lines.append(figures | one.figures() | {"setting": setting or None})
        return make_frame(columns, lines)

    @property
    def frontier(self) -> list[Candidate]:
        """Those that no other beats in both risk and error, the least risk first."""
        from noren.workflow.risk_map import frontier

        return frontier([candidate for candidate in self if candidate.holds and candidate.terms is None])

    @property
    def chosen(self) -> Candidate | None:
        """The one to adopt: the best; of a grid, the bend of the frontier, where risk and error are both low."""
        from noren.workflow.risk_map import bend

        swept = any(candidate.setting for candidate in self)
        return (bend(self.frontier) if swept else None) or self.best

    def chart(self) -> Any:
        """Risk against loss, one point per candidate that holds; the trade-off curve where terms may be left out."""
        from noren.workflow.compare import chart

        return chart(self)

    def to_dict(self) -> dict[str, Any]:
        """Every candidate's figures as plain data, for JSON."""
        return {"candidates": [plain(candidate.figures()) for candidate in self]}

    def _headline(self) -> str:
        good = sum(candidate.holds for candidate in self)
        text = f"{good} of {len(self)} candidates hold{'s' if good == 1 else ''}"
        best = self.best
        return text if best is None else f"{text}; best {one_line(best.title, 40)}, query error {best.query_loss:.3f}"

    def _notes(self) -> tuple[str, ...]:
        return ("Figures rest on the original: keep them with the holder.",)
