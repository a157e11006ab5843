"""The papers' layouts as charts: panels of lines or bars, tiles for what was drawn in three dimensions.

Our own line is always blue, thick and underneath, so that a line that coincides with it is still seen. Points that are
means may carry their standard error: a thin upright line of two of them each way.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noren.estimates.counts.plots import BLUES, FONT, INK, PALETTE, RULE, SOFT

if TYPE_CHECKING:
    import polars as pl

OTHERS = (*PALETTE[1:], "#7F7F7F", "#B22222", "#5E4FA2", "#BCBD22", "#1B1B1B", "#66C2A5")
LETTERS = {
    "l": "diversity l", "t": "closeness t", "t^2": "closeness t^2", "k": "group size k", "d": "distance d",
    "g": "quasi-identifiers asked, g", "s": "selectivity s", "c": "bound c",
}  # fmt: skip
"""A letter alone under an axis can be taken for a stroke of it."""
MOST_TICKS = 24
LOW, HIGH = "two errors below", "two errors above"
DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3], [4, 2], [1, 3], [8, 4])


def lines(
    frame: pl.DataFrame,
    *,
    x: str,
    y: str,
    series: str,
    title: str,
    ours: Sequence[str] = (),
    order: Sequence[str] | None = None,
    panel: str | None = None,
    panels: Sequence[str] | None = None,
    columns: int = 3,
    x_title: str | None = None,
    y_title: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
    ordinal: bool = False,
    shared_y: bool = True,
    error: str | None = None,
    note: str = "",
    size: tuple[int, int] = (230, 180),
) -> Any:
    """Points joined by lines, one colour a series, one panel a value of `panel`. Empty y values leave a gap.

    ordinal: x is a list of settings, not a number. shared_y: all panels have one scale. error: standard errors of y.
    """
    import altair as alt

    data, names, places = _data(frame, x, y, series, panel, order, panels, log_y, error)
    x_axis = alt.X(
        f"{_field(x)}:{'O' if ordinal else 'Q'}",
        title=_lettered(x if x_title is None else x_title),
        sort=None,
        scale=alt.Undefined if ordinal else alt.Scale(type="log" if log_x else "linear", zero=False, nice=not log_x),
        axis=alt.Axis(labelAngle=_angle(data, x)) if ordinal else _ticks(data, x, panel, log_x),
    )
    kept = [point for point in data if point[y] is not None]
    base = alt.Chart().encode(
        x=x_axis,
        y=_y(y, y_title, log_y),
        color=_colour(series, names, ours),
        tooltip=[*( [alt.Tooltip(f"{_field(panel)}:N")] if panel else []), alt.Tooltip(f"{_field(series)}:N"),
                 alt.Tooltip(f"{_field(x)}:{'O' if ordinal else 'Q'}"), alt.Tooltip(f"{_field(y)}:Q", format=".4g")],
    )  # fmt: skip
    dashes = alt.Scale(domain=names, range=[DASHES[0] if n in ours else DASHES[i % 7] for i, n in enumerate(names)])
    dash = alt.StrokeDash(f"{_field(series)}:N", scale=dashes, legend=None)
    mine = _is_ours(series, ours)
    under = base.transform_filter(mine).mark_line(strokeWidth=4).encode(strokeDash=dash)
    over = base.transform_filter(f"!({mine})").mark_line(strokeWidth=1.6).encode(strokeDash=dash)
    below = base.transform_filter(mine).mark_point(filled=True, size=52, opacity=1)
    above = base.transform_filter(f"!({mine})").mark_point(filled=True, size=26, opacity=1)
    layers = [under, below, over, above]
    if error is not None:
        layers.insert(0, base.mark_rule(strokeWidth=1.2).encode(y=alt.Y(f"{LOW}:Q"), y2=alt.Y2(f"{HIGH}:Q")))
    picture = alt.layer(*layers).properties(width=size[0], height=size[1])
    return _dressed(picture, kept, title, note, panel, places, columns, shared_y)


def bars(
    frame: pl.DataFrame,
    *,
    x: str,
    y: str,
    series: str,
    title: str,
    ours: Sequence[str] = (),
    order: Sequence[str] | None = None,
    panel: str | None = None,
    panels: Sequence[str] | None = None,
    columns: int = 3,
    x_title: str | None = None,
    y_title: str | None = None,
    log_y: bool = False,
    shared_y: bool = True,
    error: str | None = None,
    note: str = "",
    height: int = 180,
    step: float = 9,
) -> Any:
    """Grouped bars: groups along x in order of appearance, one colour a series. On a log scale bars are points."""
    import altair as alt

    data, names, places = _data(frame, x, y, series, panel, order, panels, log_y, error)
    kept = [point for point in data if point[y] is not None]
    base = alt.Chart().encode(
        x=alt.X(f"{_field(x)}:O", title=_lettered(x if x_title is None else x_title), sort=None,
                axis=alt.Axis(labelAngle=_angle(data, x), labelLimit=150)),
        xOffset=alt.XOffset(f"{_field(series)}:N", sort=names),
        y=_y(y, y_title, log_y),
        color=_colour(series, names, ours, "circle" if log_y else "square"),
        tooltip=[alt.Tooltip(f"{_field(series)}:N"), alt.Tooltip(f"{_field(x)}:O"),
                 alt.Tooltip(f"{_field(y)}:Q", format=".4g")],
    )  # fmt: skip
    marks = base.mark_point(filled=True, size=46, opacity=1) if log_y else base.mark_bar()
    layers = [marks]
    if error is not None:
        layers.append(base.mark_rule(strokeWidth=1.2).encode(y=alt.Y(f"{LOW}:Q"), y2=alt.Y2(f"{HIGH}:Q")))
    picture = alt.layer(*layers).properties(width=alt.Step(step, **{"for": "offset"}), height=height)
    return _dressed(picture, kept, title, note, panel, places, columns, shared_y)


def tiles(
    frame: pl.DataFrame,
    *,
    x: str,
    y: str,
    value: str,
    title: str,
    panel: str | None = None,
    panels: Sequence[str] | None = None,
    columns: int = 3,
    x_title: str | None = None,
    y_title: str | None = None,
    value_title: str | None = None,
    labels: bool = True,
    label_format: str = ".2f",
    log: bool = False,
    note: str = "",
    cell: tuple[float, float] = (34, 22),
) -> Any:
    """A plane of cells, darker for more: what a paper draws as a surface. An empty value leaves the cell blank."""
    import altair as alt

    data, _, places = _data(frame, x, value, y, panel, None, panels, log)
    kept = [point for point in data if point[value] is not None and not (log and point[value] <= 0)]
    found = [point[value] for point in kept] or [1.0]
    low, high = (min(found) if log else min(0.0, *found, 0.0)), max(found)
    scale = alt.Scale(type="log" if log else "linear", range=list(BLUES), interpolate="lab",
                      domain=[low, high if high > low else low + 1])  # fmt: skip
    plain = alt.Axis(ticks=False, domain=False, grid=False, labelAngle=0, labelOverlap=True)
    base = alt.Chart().encode(
        x=alt.X(f"{_field(x)}:O", title=_lettered(x if x_title is None else x_title), sort=None, axis=plain),
        y=alt.Y(f"{_field(y)}:O", title=_lettered(y if y_title is None else y_title), sort=None, axis=plain),
    )
    legend = alt.Legend(title=value if value_title is None else value_title, gradientLength=120, tickCount=4)
    rects = base.mark_rect(stroke="white" if labels else None).encode(
        color=alt.Color(f"{_field(value)}:Q", scale=scale, legend=legend),
        tooltip=[alt.Tooltip(f"{_field(x)}:O"), alt.Tooltip(f"{_field(y)}:O"),
                 alt.Tooltip(f"{_field(value)}:Q", format=".4g")],
    )  # fmt: skip
    layers = [rects]
    if labels:
        dark = (low * high) ** 0.5 if log else low + 0.55 * (high - low)
        shade = alt.condition(f"datum[{value!r}] > {dark}", alt.value("white"), alt.value(INK))
        layers.append(base.mark_text(fontSize=9.5).encode(
            text=alt.Text(f"{_field(value)}:Q", format=label_format), color=shade))  # fmt: skip
    picture = alt.layer(*layers).properties(width=alt.Step(cell[0]), height=alt.Step(cell[1]))
    return _dressed(picture, kept, title, note, panel, places, columns, True)


def _field(name: str | None) -> str:
    """A column's name as Vega reads it: dots and brackets would mean a path."""
    return (
        (name or "")
        .replace("\\", "\\\\")
        .replace(".", "\\.")
        .replace("[", "\\[")
        .replace("]", "\\]")
        .replace(":", "\\:")
    )


def _data(
    frame: pl.DataFrame, x: str, y: str, series: str, panel: str | None, order: Sequence[str] | None,
    panels: Sequence[str] | None, log: bool, error: str | None = None,
) -> tuple[list[dict[str, Any]], list[str], list[str]]:  # fmt: skip
    """Rows to draw, the series and the panels in their order. Where a scale is logarithmic, zero cannot be drawn."""
    import polars as pl

    kept = frame.select(list(dict.fromkeys(name for name in (x, y, series, panel, error) if name is not None)))
    number = pl.col(y).cast(pl.Float64, strict=False)
    if kept[y].dtype.is_numeric():
        kept = kept.with_columns(pl.when(number.is_finite() & ((number > 0) | (not log))).then(number).alias(y))
    names = list(order) if order is not None else [str(v) for v in kept[series].unique(maintain_order=True)]
    places = [] if panel is None else [str(v) for v in kept[panel].unique(maintain_order=True)]
    if error is not None:
        kept = kept.with_columns(_whiskers(y, error, log)).drop(error)
    return kept.to_dicts(), names, list(panels) if panels is not None else places


def _whiskers(y: str, error: str, log: bool) -> list[Any]:
    """Two standard errors each way; on a logarithmic scale as a factor, which never reaches zero."""
    import polars as pl

    two = 2 * pl.col(error).fill_null(0.0).fill_nan(0.0)
    if log:
        factor = (two / pl.col(y)).exp()
        return [(pl.col(y) / factor).alias(LOW), (pl.col(y) * factor).alias(HIGH)]
    return [(pl.col(y) - two).alias(LOW), (pl.col(y) + two).alias(HIGH)]


def _lettered(title: str) -> str:
    return LETTERS.get(title, title)


def _angle(data: Sequence[dict[str, Any]], x: str) -> int:
    return -35 if any(len(str(point[x])) > 4 for point in data) else 0


def _ticks(data: Sequence[dict[str, Any]], x: str, panel: str | None, log: bool) -> Any:
    """Ticks where something was measured, if these are few and no panel would show those of another one.

    Ticks are given once for all panels, and each shows what lies inside its range. Elsewhere they are round numbers,
    and whole ones where all places are.
    """
    import altair as alt

    by_panel: dict[Any, set[float]] = {}
    for point in data:
        if isinstance(point[x], (int, float)):
            by_panel.setdefault(None if panel is None else point[panel], set()).add(float(point[x]))
    every = sorted(set().union(*by_panel.values()))
    whole = all(value.is_integer() for value in every)
    own = all(value in mine for mine in by_panel.values() for value in every if min(mine) <= value <= max(mine))
    if own and len(every) <= MOST_TICKS:
        return alt.Axis(labelAngle=0, values=every, labelOverlap=True, format=",d" if whole else "~g")
    step: dict[str, Any] = {"tickMinStep": 1, "format": ",d"} if whole and not log else {}
    return alt.Axis(labelAngle=0, tickCount=6, labelOverlap="greedy", labelSeparation=6, **step)


def _y(y: str, title: str | None, log: bool) -> Any:
    import altair as alt

    scale = alt.Scale(type="log", nice=False, padding=6) if log else alt.Scale(zero=True)
    axis = alt.Axis(format=".0e", tickCount=5) if log else alt.Axis(tickCount=5)
    return alt.Y(f"{_field(y)}:Q", title=y if title is None else title, scale=scale, axis=axis)


def _colour(series: str, names: Sequence[str], ours: Sequence[str], symbol: str = "stroke") -> Any:
    import altair as alt

    others = iter(OTHERS * 3)
    mine = iter((PALETTE[0], "#00395B", "#4F9BD9"))
    colours = [next(mine, PALETTE[0]) if name in ours else next(others) for name in names]
    legend = alt.Legend(title=None, orient="bottom", columns=4, symbolType=symbol, symbolStrokeWidth=3, symbolSize=160)
    return alt.Color(
        f"{_field(series)}:N", sort=list(names), scale=alt.Scale(domain=list(names), range=colours), legend=legend
    )


def _is_ours(series: str, ours: Sequence[str]) -> str:
    return f"indexof({list(ours)!r}, datum[{series!r}]) >= 0"


def _dressed(
    picture: Any, values: list[dict[str, Any]], title: str, note: str, panel: str | None, panels: Sequence[str],
    columns: int, shared_y: bool,
) -> Any:  # fmt: skip
    import altair as alt

    data = alt.InlineData(values=values)
    if panel is None:
        picture = picture.properties(data=data)
    else:
        header = alt.Header(title=None, labelFontSize=11.5, labelFontWeight="bold", labelColor=INK, labelAnchor="start")
        facet = alt.Facet(f"{_field(panel)}:N", sort=list(panels), header=header)
        picture = picture.facet(facet=facet, columns=columns, data=data, spacing=18)
        own = "shared" if shared_y else "independent"
        picture = picture.resolve_axis(x="independent", y=own).resolve_scale(x="independent", y=own)
    subtitle = textwrap.wrap(note, 110) if note else []
    return (
        picture.properties(title=alt.TitleParams(text=title, subtitle=subtitle), padding=12)
        .configure(font=FONT, background="white")
        .configure_view(stroke=None)
        .configure_title(anchor="start", fontSize=14, subtitleFontSize=11, color=INK, subtitleColor=SOFT, offset=12)
        .configure_axis(labelColor=INK, titleColor=SOFT, labelFontSize=10, titleFontSize=11, titleFontWeight="normal",
                        gridColor=RULE, domainColor=SOFT, tickColor=SOFT)
        .configure_legend(labelColor=INK, labelFontSize=11, labelLimit=260)
    )  # fmt: skip
