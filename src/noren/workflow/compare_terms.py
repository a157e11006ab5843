"""The trade-off between suppressed terms and generalised quasi-identifiers, candidate by candidate (paper 001, section
4.3).

All candidates face the same queries and the same prior beliefs, so their figures compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any

from noren.engines import Records
from noren.errors import QueryError
from noren.methods.base import Method
from noren.methods.suppress import Suppress
from noren.metrics.general import GeneralTable
from noren.metrics.queries import WorkloadError, workload_error
from noren.metrics.term_losses import TermWorkload, estimated_term_counts, term_workload, true_term_counts
from noren.models.base import Model
from noren.workflow.draft import Draft
from noren.workflow.losses import beliefs_before, term_losses

if TYPE_CHECKING:
    from noren.workflow.comparison import Candidate

DIMENSIONS = (1, 3, 5)
"""The paper's qd: conditions on quasi-identifiers beside the one on terms."""
QUERIES = 1000
CELLS = 100_000_000
"""Records times queries, at most: huge tables get fewer queries instead of hours."""
SELECTIVITY = 0.5

ENDS = {
    "removal": "term removal only",
    "both": "generalisation, then suppression of terms",
    "generalisation": "generalisation only",
    "own": "the policy's method",
}


@dataclass(frozen=True)
class TermFigures:
    """The figures of one candidate about quasi-sensitive terms."""

    way: str
    """"removal", "generalisation" or "both"."""
    own: bool
    """Whether this is the policy's own method."""
    on_curve: bool
    """Whether only k and the time bound set it apart: `suppress` in two phases."""
    k: int | None
    """Smallest group of the first phase, where there is one."""
    seconds_per_group: float | None
    average_group: float
    searched: int
    """Groups that did not hold with all their terms."""
    proven: int
    """How many of these lose provably as little as possible."""
    gap: float
    """By how much the mean cost may exceed the least possible for these groups, as a share of it."""
    queries: Mapping[int, WorkloadError] = field(default_factory=dict)
    """qd -> error of count queries with qd conditions on quasi-identifiers and one on terms."""
    before: Mapping[str, float] = field(default_factory=dict)
    """How far beliefs would rise without any protection."""

    @property
    def query_loss(self) -> float:
        """Return the mean error of the queries with the fewest conditions; NaN if no query has an answer."""
        return next((error.mean for error in self.queries.values()), float("nan"))

    def plain(self) -> dict[str, Any]:
        out = asdict(self)
        out["queries"] = {str(number): asdict(error) for number, error in self.queries.items()}
        return out


class TermMeasures:
    """Measures drafts of one table by one set of queries."""

    def __init__(self, table: Records, requirements: Sequence[Model], own: Method) -> None:
        self.requirements = requirements
        self.own = own
        self.had = {name: column.cells for name, column in table.terms.items()}
        self._queries: dict[int, tuple[TermWorkload, Any]] | None = None
        self._before: dict[str, float] | None = None

    def of(self, draft: Draft, view: GeneralTable, method: Method) -> tuple[dict[str, float], TermFigures]:
        """Return the losses of a draft's terms, and the other displayed figures."""
        if self._before is None:
            self._before = beliefs_before(draft.records_seen, draft.overall(), view, self.requirements)
        losses = term_losses(draft.records_seen, draft.plan, draft.overall(), view, self.requirements)
        suppressed = draft.plan.searches
        return losses, TermFigures(
            way=_way(method, view),
            own=method == self.own,
            on_curve=isinstance(method, Suppress) and method.balance is None,
            k=method.k if isinstance(method, Suppress) else None,
            seconds_per_group=method.seconds if isinstance(method, Suppress) else None,
            average_group=float(view.sizes.mean()) if len(view.sizes) else 0.0,
            searched=sum(int(part.searched.sum()) for part in suppressed),
            proven=sum(int((part.searched & part.optimal).sum()) for part in suppressed),
            gap=max((part.gap for part in suppressed), default=0.0),
            queries=self._errors(draft, view),
            before=self._before,
        )

    def _errors(self, draft: Draft, view: GeneralTable) -> dict[int, WorkloadError]:
        published = {name: draft.plan.omitted.get(name, cells) for name, cells in self.had.items()}
        out = {}
        for number, (workload, actual) in self._asked(view).items():
            try:
                out[number] = workload_error(actual, estimated_term_counts(view, published, workload))
            except QueryError:
                continue
        return out

    def _asked(self, view: GeneralTable) -> dict[int, tuple[TermWorkload, Any]]:
        """Return the queries and their true answers, which are the same for all candidates."""
        if self._queries is None:
            many = max(50, min(QUERIES, CELLS // view.n))
            self._queries = {}
            for number in DIMENSIONS:
                if number <= len(view.quasi):
                    workload = term_workload(view, self.had, number, many, SELECTIVITY)
                    self._queries[number] = (workload, true_term_counts(view, self.had, workload))
        return self._queries


def _way(method: Method, view: GeneralTable) -> str:
    if not isinstance(method, Suppress):
        return "generalisation"
    generalised = any((column.spread[column.cells[view.keep]] > 1).any() for column in view.quasi_columns())
    return "both" if generalised else "removal"


def curve_chart(candidates: Sequence[Candidate]) -> Any:
    """Draw generalisation against suppressed terms: one point per candidate that holds, with the curve over k."""
    import altair as alt

    rows: list[dict[str, Any]] = []
    for candidate in candidates:
        if candidate.terms is None or not candidate.holds:
            continue
        losses = candidate.losses or {}
        rows.append(
            {
                "method": candidate.title,
                "way": ENDS["own" if candidate.terms.own else candidate.terms.way],
                "ncp": losses["ncp_loss"],
                "cost": losses["term_cost_loss"],
                "rise": losses["belief_rise_mean_loss"],
                "error": None if isnan(candidate.query_loss) else candidate.query_loss,
                "label": _label(candidate.terms),
                "curve": candidate.terms.on_curve,
            }
        )
    axis = alt.Axis(labelExpr="datum.value < 0 ? '' : datum.label", tickCount=8)

    def room(name: str) -> alt.Scale:
        """Return an axis range from a little below 0, so that points and labels stay clear of the axes."""
        most = max([0.01, *(row[name] for row in rows)])
        return alt.Scale(domain=[-0.08 * most, 1.15 * most], nice=False)

    x = alt.X("ncp:Q", title="Generalisation loss of quasi-identifiers (NCP)", scale=room("ncp"), axis=axis)
    y = alt.Y("cost:Q", title="Mean cost of suppressed terms (equation 2)", scale=room("cost"), axis=axis)
    data = alt.Data(values=rows)
    tips = [alt.Tooltip("method:N"), *(alt.Tooltip(f"{name}:Q") for name in ("ncp", "cost", "rise", "error"))]
    curve = alt.FieldOneOfPredicate(field="curve", oneOf=[True])
    line = (
        alt.Chart(data)
        .transform_filter(curve)
        .mark_line(color="#9aa4ae", strokeDash=[4, 3])
        .encode(x=x, y=y, order="ncp:Q")
    )
    ways = [word for word in ENDS.values() if any(row["way"] == word for row in rows)]
    points = (
        alt.Chart(data)
        .mark_point(filled=True, size=130, opacity=0.9)
        .encode(
            x=x,
            y=y,
            color=alt.Color("way:N", title=None, scale=alt.Scale(domain=ways), legend=alt.Legend(orient="bottom")),
            shape=alt.Shape("way:N", title=None, scale=alt.Scale(domain=ways)),
            tooltip=tips,
        )
    )
    words = alt.Chart(data).encode(x=x, y=y, text="label:N")
    above = words.transform_filter(curve).mark_text(align="left", dx=9, dy=-9, color="#1b1f24")
    below = words.transform_filter(~curve).mark_text(align="right", dx=-10, dy=10, color="#57606a")
    title = "Suppressed terms against generalised quasi-identifiers"
    return alt.layer(line, points, above, below).properties(width=560, height=380, title=title)


def _label(figures: TermFigures) -> str:
    """Return the label of a point; the policy's own candidate has a special mark."""
    if figures.own:
        return ""
    words = ENDS["generalisation"] if figures.k is None else f"k={figures.k}"
    if figures.way == "removal":
        words += f", {ENDS['removal']}"
    return words
