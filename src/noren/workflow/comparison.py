"""What a comparison returns: its candidates in order, as a table and as a chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isnan, log10
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
        from noren.workflow.comparison import frontier

        return frontier([candidate for candidate in self if candidate.holds and candidate.terms is None])

    @property
    def chosen(self) -> Candidate | None:
        """The one to adopt: the best; of a grid, the bend of the frontier, where risk and error are both low."""
        from noren.workflow.comparison import bend

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


WIDTH, HEIGHT = 640, 420
MARGIN = 0.08
"""Room around the points, as a share of the axis."""
LETTER, LINE = 5.4, 13.0
"""Pixels of a letter and of a line of a label."""
POINT = 7.0
STEPS = (0, -1, 1)
"""Lines by which a label may move up or down."""
FAR = 20.0
"""Errors that differ by more than this factor stand on a logarithmic axis."""

Box = tuple[float, float, float, float]


def frontier(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that no other beats in both risk and error, the least risk first."""
    out: list[Candidate] = []
    known = [one for one in candidates if isfinite(one.query_loss)]
    for one in sorted(known, key=lambda c: (c.risk, c.query_loss)):
        if not out or one.query_loss < out[-1].query_loss - 1e-12:
            out.append(one)
    return out


def bend(candidates: Sequence[Candidate]) -> Candidate | None:
    """The point of a frontier nearest to least risk and least error, both axes as the map shows them."""
    if not candidates:
        return None
    heights = _heights([one.query_loss for one in candidates])
    risks = [one.risk for one in candidates]

    def far(at: int) -> float:
        x = (risks[at] - min(risks)) / ((max(risks) - min(risks)) or 1.0)
        y = (heights[at] - min(heights)) / ((max(heights) - min(heights)) or 1.0)
        return x * x + y * y

    return candidates[min(range(len(candidates)), key=far)]


def _far_apart(errors: Sequence[float]) -> bool:
    return bool(errors) and min(errors) > 0 and max(errors) > FAR * min(errors)


def _heights(errors: Sequence[float]) -> list[float]:
    """Where errors stand on their axis."""
    return [log10(error) for error in errors] if _far_apart(errors) else list(errors)


def map_chart(candidates: Sequence[Candidate]) -> Any:
    """Risk against error, a line through the frontier, its points labelled as far as labels have room."""
    import altair as alt

    shown = [one for one in candidates if isfinite(one.query_loss)]
    best = frontier(shown)
    far = _far_apart([one.query_loss for one in shown])
    x, y = _span([one.risk for one in shown]), _span(_heights([one.query_loss for one in shown]))
    rows = [
        {
            "candidate": one.called,
            "method": one.title,
            "risk": one.risk,
            "error": one.query_loss,
            "smallest": one.smallest_class,
            "worst": one.worst_share,
        }
        for one in shown
    ]
    words = "Share of people whose secret is guessed right"
    if any(one.belief is None for one in shown):
        words = "Largest share of one secret value in a class" if all(one.belief is None for one in shown) else words
    across = alt.X("risk:Q", title=words, scale=alt.Scale(domain=list(x), nice=False, zero=False))
    edges = [10**end for end in y] if far else list(y)
    scale = alt.Scale(domain=edges, nice=False, type="log" if far else "linear")
    down = alt.Y("error:Q", title="Mean relative error of count queries", scale=scale)
    tips = [alt.Tooltip(f"{name}:{kind}") for name, kind in zip(rows[0], "NNQQQQ", strict=True)] if rows else []
    points = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, size=90, opacity=0.85)
        .encode(
            x=across,
            y=down,
            color=alt.Color("method:N", title="Method"),
            shape=alt.Shape("method:N", title="Method"),
            tooltip=tips,
        )
    )
    edge = [{"risk": one.risk, "error": one.query_loss, "order": at} for at, one in enumerate(best)]
    line = (
        alt.Chart(alt.Data(values=edge))
        .mark_line(color="#666666", strokeDash=[4, 3], strokeWidth=1.2)
        .encode(x=across, y=down, order="order:Q")
    )
    labels = (
        alt.Chart(alt.Data(values=_labels(best, shown, x, y, far)))
        .mark_text(align="left", baseline="middle", fontSize=11)
        .encode(x=across, y=down, text="label:N")
    )
    return (line + points + labels).properties(width=WIDTH, height=HEIGHT, title="Risk and loss of the candidates")


def _span(values: Sequence[float]) -> tuple[float, float]:
    """An axis with room around its values."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = (high - low) * MARGIN or max(abs(high), 1.0) * MARGIN
    return max(0.0, low - room) if low >= 0 else low - room, high + room


def _labels(
    best: Sequence[Candidate], shown: Sequence[Candidate], x: tuple[float, float], y: tuple[float, float], far: bool
) -> list[dict[str, Any]]:
    """Where the labels of the frontier stand: beside their points, clear of all points and of each other.

    One that has no room is left out; its point still says its name when it is touched.
    """

    def pixel(one: Candidate) -> tuple[float, float]:
        height = log10(one.query_loss) if far else one.query_loss
        return (one.risk - x[0]) / (x[1] - x[0]) * WIDTH, (1 - (height - y[0]) / (y[1] - y[0])) * HEIGHT

    taken: list[Box] = []
    for one in shown:
        across, down = pixel(one)
        taken.append((across - POINT, down - POINT, across + POINT, down + POINT))
    out = []
    for one in best:
        across, down = pixel(one)
        wide = LETTER * len(one.called)
        for step in STEPS:
            for left in (across + POINT + 3, across - POINT - 3 - wide):
                middle = down + step * LINE
                box = (left, middle - LINE / 2, left + wide, middle + LINE / 2)
                if _inside(box) and not any(_meet(box, other) for other in taken):
                    taken.append(box)
                    height = y[0] + (1 - middle / HEIGHT) * (y[1] - y[0])
                    risk = x[0] + left / WIDTH * (x[1] - x[0])
                    out.append({"label": one.called, "risk": risk, "error": 10**height if far else height})
                    break
            else:
                continue
            break
    return out


def _inside(box: Box) -> bool:
    return box[0] >= 0 and box[1] >= 0 and box[2] <= WIDTH and box[3] <= HEIGHT


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
