"""The result of a comparison: its candidates in order, as a table and as a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan, log10
from typing import TYPE_CHECKING, Any

from noren.methods.base import Method
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.policy.toml import method_lines
from noren.results import WIDTH as LINE_WIDTH
from noren.results import Results, make_frame, one_line, plain
from noren.workflow.compare_terms import TermFigures, curve_chart

if TYPE_CHECKING:
    import polars as pl


Setting = Mapping[str, float]
"""Parameters of requirements: k = 5, l = 3."""


@dataclass(frozen=True)
class Candidate:
    """One candidate of a comparison. `failure` says why a method publishes nothing; the figures are then empty."""

    title: str
    methods: tuple[Method, ...]
    seconds: float
    failure: str = ""
    verdicts: Sequence[Verdict] = ()
    records: int = 0
    suppressed: int = 0
    smallest_class: float = 0.0
    """Records that share all published quasi-identifiers, at least: 1 / this bounds re-identification."""
    worst_share: float = 0.0
    """Largest share of one secret value in a class: the certainty of an adversary who finds the class."""
    belief: float | None = None
    """Share of people whose secret is guessed right from all published columns, as `belief` and `audit bayes` do."""
    query_loss: float = 0.0
    losses: dict[str, float] | None = None
    classification: dict[str, float] | None = None
    """Decision trees and rules for a target column, where one was asked for."""
    terms: TermFigures | None = None
    """What suppressed terms cost and leave to believe, where the policy has quasi-sensitive columns."""
    setting: Setting = field(default_factory=dict)
    """The parameters that were asked for, where a grid of them was tried."""
    policy: Policy | None = None
    """The whole policy that makes this release."""
    notes: Sequence[str] = ()

    def __repr__(self) -> str:
        told = f"query error {self.query_loss:.3f}" if self.holds else f"publishes nothing: {self.failure}"
        return f"<{one_line(f'Candidate {self.title}: {told}', LINE_WIDTH - 2)}>"

    @property
    def holds(self) -> bool:
        return not self.failure

    @property
    def called(self) -> str:
        """Return method and setting: "mondrian, k = 5"."""
        return ", ".join([self.title, *(f"{name} = {value:g}" for name, value in self.setting.items())])

    @property
    def risk(self) -> float:
        """Return the risk on the map: the share of right guesses, or the largest share of one value in a class."""
        return self.worst_share if self.belief is None else self.belief

    @property
    def snippet(self) -> str:
        """Return the lines that adopt this candidate in a policy."""
        head = "[method]" if len(self.methods) == 1 else "[[method]]"
        return "\n\n".join("\n".join([head, *method_lines(method, changed=True)]) for method in self.methods)

    def figures(self) -> dict[str, Any]:
        """Return the candidate as plain data."""
        out: dict[str, Any] = {"method": self.title, "holds": self.holds, "seconds": self.seconds}
        if self.setting:
            out["setting"] = dict(self.setting)
        if self.failure:
            return out | {"failure": self.failure}
        more = {} if self.terms is None else {"terms": self.terms.plain()}
        return (
            out
            | more
            | {
                "records": self.records,
                "suppressed": self.suppressed,
                "smallest_class": self.smallest_class,
                "worst_share": self.worst_share,
                "belief": self.belief,
                "query_loss": self.query_loss,
                "losses": self.losses,
                "classification": self.classification,
                "verdicts": [vars(verdict) for verdict in self.verdicts],
                "policy": self.snippet,
            }
        )


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
class Comparison(Results[Candidate]):
    """The candidates of a comparison, lowest share of right guesses first, failures last. For the holder only.

    `frame` has one row per candidate: its figures, then every loss and what classification costs, by name.
    """

    @property
    def best(self) -> Candidate | None:
        """Return the recommended candidate: among those that meet every requirement, the one with the smallest query
        error."""
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
        """Return the candidates that no other beats in both risk and error, smallest risk first."""
        return frontier([candidate for candidate in self if candidate.holds and candidate.terms is None])

    @property
    def chosen(self) -> Candidate | None:
        """Return the candidate to adopt: the best, or for a grid the bend of the frontier."""
        swept = any(candidate.setting for candidate in self)
        return (bend(self.frontier) if swept else None) or self.best

    def chart(self) -> Any:
        """Return a chart of risk against loss, one point per candidate that meets every requirement; for terms, the
        trade-off curve."""
        if any(candidate.terms is not None for candidate in self):
            return curve_chart(self)
        return map_chart([candidate for candidate in self if candidate.holds])

    def to_dict(self) -> dict[str, Any]:
        """Every candidate's figures as plain data, for JSON."""
        return {"candidates": [plain(candidate.figures()) for candidate in self]}

    def _headline(self) -> str:
        good = sum(candidate.holds for candidate in self)
        text = f"{good} of {len(self)} candidates hold{'s' if good == 1 else ''}"
        best = self.best
        return text if best is None else f"{text}; best {one_line(best.title, 40)}, query error {best.query_loss:.3f}"

    def _notes(self) -> tuple[str, ...]:
        return ("The figures are computed from the original: do not publish them.",)


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
    """Return the candidates that no other beats in both risk and error, smallest risk first."""
    out: list[Candidate] = []
    known = [one for one in candidates if isfinite(one.query_loss)]
    for one in sorted(known, key=lambda c: (c.risk, c.query_loss)):
        if not out or one.query_loss < out[-1].query_loss - 1e-12:
            out.append(one)
    return out


def bend(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the point of a frontier nearest to the smallest risk and error, on the axes of the map."""
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
    """Return the positions of errors on their axis."""
    return [log10(error) for error in errors] if _far_apart(errors) else list(errors)


def map_chart(candidates: Sequence[Candidate]) -> Any:
    """Draw risk against error, a line through the frontier, and labels where there is room."""
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
    """Return an axis range with room around its values."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = (high - low) * MARGIN or max(abs(high), 1.0) * MARGIN
    return max(0.0, low - room) if low >= 0 else low - room, high + room


def _labels(
    best: Sequence[Candidate], shown: Sequence[Candidate], x: tuple[float, float], y: tuple[float, float], far: bool
) -> list[dict[str, Any]]:
    """Return the positions of the frontier's labels, clear of points and other labels.

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
