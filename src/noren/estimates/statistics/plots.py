"""Points with intervals, in the house style of the charts of counts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noren.errors import QueryError
from noren.estimates.counts.plots import FONT, INK, PALETTE, RULE, SOFT

if TYPE_CHECKING:
    import polars as pl

MOST = 200


def interval_chart(
    labels: Sequence[str], frame: pl.DataFrame, measure: str, title: str, subtitle: str, zero: float | None
) -> Any:
    """One line per label: a point at the number, a rule from low to high, and a line at `zero` if it is given."""
    import altair as alt

    if len(labels) > MOST:
        raise QueryError(f"a chart of {len(labels):,} lines cannot be read.", hint="Choose fewer groups.")
    rows = [
        {"label": label, "value": row[measure], "low": row["low"], "high": row["high"]}
        for label, row in zip(labels, frame.iter_rows(named=True), strict=True)
        if row[measure] is not None
    ]
    if not rows:
        raise QueryError("there is no number to draw.", hint="Widen the question.")
    order = [row["label"] for row in rows]
    axis = alt.Axis(gridColor=RULE, domain=False, ticks=False)
    place = alt.Y("label:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=320))
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=place).properties(width=440, height=alt.Step(22))
    bars = base.mark_rule(color=INK, strokeWidth=1.3).encode(x=alt.X("low:Q", title=measure, axis=axis), x2="high:Q")
    figures = [alt.Tooltip(f"{name}:Q", format=",.4g") for name in ("value", "low", "high")]
    points = base.mark_point(filled=True, size=60, color=PALETTE[0], opacity=1).encode(
        x=alt.X("value:Q", scale=alt.Scale(zero=False), title=measure, axis=axis),
        tooltip=[alt.Tooltip("label:N"), *figures],
    )
    layers: list[Any] = [bars, points]
    if zero is not None:
        once = alt.Chart(alt.InlineData(values=[{}]))
        layers.insert(0, once.mark_rule(color=SOFT, strokeDash=[4, 3]).encode(x=alt.datum(zero)))
    text = alt.TitleParams(text=textwrap.wrap(title, 64), subtitle=textwrap.wrap(subtitle, 92))
    return (
        alt.layer(*layers)
        .properties(title=text, padding=14)
        .configure(font=FONT, background="white")
        .configure_view(stroke=None)
        .configure_title(anchor="start", frame="bounds", fontSize=15, color=INK, subtitleColor=SOFT, offset=14)
        .configure_axis(labelColor=INK, titleColor=SOFT, labelFontSize=11, titleFontWeight="normal")
    )
