"""Charts of estimates: every mark shows its uncertainty, and values are in the order of their domain.

Bars carry the interval as a whisker; a heat map puts a cross on cells whose interval reaches zero, because a
colour alone cannot say "this may be nothing". Colours are safe for colour-blind readers and survive a grey print.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from noren.errors import QueryError, list_columns
from noren.files import keep_out, write_whole
from noren.results import visible

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["auto", "bar", "grouped", "heatmap"]

SUFFIXES = (".html", ".png", ".svg", ".json")
MEASURES = ("count", "std_error", "low", "high")
FACETS = 6  # panels a reader still compares
GROUPS = 6  # colours a reader still tells apart
GROUPED_BARS = 48
LABELLED_CELLS = 150
MANY_CELLS = 5_000
SHARED = 3  # bars from which one line stands for the upper bound that all of them have

# Okabe and Ito's palette without yellow (too pale on white), dark enough to print
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#8C510A")
BLUES = ("#EEF3F8", "#A9CCE3", "#4A90C2", "#1B5E9B", "#0B2F5B")  # each darker than the one before, in grey too
INK, SOFT, RULE = "#222222", "#666666", "#DDDDDD"
FONT = "DejaVu Sans, Noto Sans, Arial, sans-serif"


def chart(
    frame: pl.DataFrame,
    by: Sequence[str],
    *,
    kind: Kind = "auto",
    title: str | None = None,
    subtitle: str | None = None,
    order: Mapping[str, Sequence[str]] | None = None,
) -> Any:
    """Return an Altair chart of estimated counts with their intervals, over one, two or three columns.

    frame: the columns `by` and count, std_error, low, high; one row per cell. kind "auto" takes bars for one column,
    grouped bars for two small ones, else a heat map. A third column becomes panels. order: the values of a column as
    they should stand; a column without one keeps the order of its first appearance in the frame.
    """
    data = _checked(frame, by, kind)
    orders = {column: _order(data, column, (order or {}).get(column)) for column in by}
    by = list(by)
    if len(by) >= 2 and kind == "auto" and len(orders[by[1]]) > len(orders[by[0]]) and len(orders[by[0]]) <= GROUPS:
        by[0], by[1] = by[1], by[0]  # the column with fewer values becomes the colour
    kind = _kind(kind, by, orders)
    if len(by) == 3 and len(orders[by[2]]) > FACETS:
        raise QueryError(
            f"{by[2]!r} has {len(orders[by[2]])} values; a chart has at most {FACETS} panels.",
            hint="Choose a column with fewer values as the third, or filter the estimate first.",
        )
    panels = len(orders[by[2]]) if len(by) == 3 else 1
    axes = _Axes(by, orders, panels)
    layers = _heatmap(data, axes) if kind == "heatmap" else _bars(data, axes)
    notes = [subtitle or ""]
    if kind == "heatmap" and _unsure(data).any():
        notes.append("× the interval contains zero: there may be no such record")
    if data.height > MANY_CELLS:
        notes.append(f"{data.height:,} cells: point at one to read it")
    return _dressed(layers, data, axes, title or _title(by), [note for note in notes if note])


def chart_suffix(path: Path) -> str:
    """Return the file type of a chart; raise if the type is unknown, or the path is in a release."""
    keep_out(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise QueryError(
            f"a chart cannot be written as {suffix or 'a file without a suffix'!r}.",
            hint=f"Use one of {', '.join(SUFFIXES)}.",
        )
    return suffix


def save_chart(chart: Any, path: str | os.PathLike[str]) -> Path:
    """Write a chart as .html (opens without a network), .png (twice the screen's resolution), .svg or .json.

    The file appears whole or not at all: it is written aside and renamed.
    """
    target = Path(path)
    return write_whole(target, rendered(chart, chart_suffix(target)))


def rendered(chart: Any, suffix: str) -> bytes:
    """Render the file's content. Texts of labels are escaped for the page and the renderer.

    In a page every `<` of the specification becomes an escape of its script, so that no label closes it. The renderer
    puts the specification in by itself, so a mark that occurs in no label stands for the sign on the way.
    """
    text = json.dumps(_visible(chart.to_dict()), ensure_ascii=False)
    if suffix == ".json":
        return text.encode()
    import vl_convert as vlc

    if suffix == ".html":
        mark = next(c for c in map(chr, range(0xE000, 0xF8FF)) if c not in text)
        page = str(vlc.vegalite_to_html(text.replace("<", mark), bundle=True))
        return page.replace(mark, "\\u003c").encode()
    if suffix == ".svg":
        return str(vlc.vegalite_to_svg(text)).encode()
    return bytes(vlc.vegalite_to_png(text, scale=2))


def _visible(part: Any, name: str = "") -> Any:
    """Return a specification with visible control characters, some of which stop the renderer.

    In the titles of axes it reads a backslash as an escape once more, so another stroke stands for it there.
    """
    if isinstance(part, dict):
        return {visible(key): _visible(item, key) for key, item in part.items()}
    if isinstance(part, list | tuple):
        return [_visible(item) for item in part]
    if not isinstance(part, str):
        return part
    return visible(part.replace("\\", "\N{REVERSE SOLIDUS OPERATOR}") if name == "title" else part)


def _checked(frame: pl.DataFrame, by: Sequence[str], kind: str) -> pl.DataFrame:
    """Return the frame with its `by` columns as text, or raise an error that says what is missing."""
    import polars as pl

    if not 1 <= len(by) <= 3 or len(set(by)) != len(by):
        raise QueryError(
            f"a chart shows one, two or three different columns. Got {len(by)}.", hint="Name fewer columns."
        )
    if missing := [column for column in (*by, *MEASURES) if column not in frame.columns]:
        raise QueryError(f"the estimate has no column {missing[0]!r}.", hint=f"It has {list_columns(frame.columns)}.")
    if not frame.height:
        raise QueryError("the estimate has no cells to draw.", hint="Widen the query.")
    if kind not in ("auto", "bar", "grouped", "heatmap"):
        raise QueryError(f"there is no chart of kind {kind!r}.", hint="Use auto, bar, grouped or heatmap.")
    if (kind == "bar" and len(by) != 1) or (kind in ("grouped", "heatmap") and len(by) == 1):
        wanted = "one column" if kind == "bar" else "two or three columns"
        raise QueryError(f"a chart of kind {kind!r} shows {wanted}. Got {len(by)}.", hint="Leave kind at auto.")
    labels = (pl.col(column).cast(pl.String).fill_null("(missing)") for column in by)
    return frame.select(*labels, *(pl.col(name).cast(pl.Float64).fill_nan(None) for name in MEASURES))


def _order(data: pl.DataFrame, column: str, given: Sequence[str] | None) -> list[str]:
    """Return the values that occur, in the order of the domain; values outside it come last."""
    seen = data[column].unique(maintain_order=True).to_list()
    if given is None:
        return seen
    named = [str(value) for value in given]
    rank = {value: place for place, value in enumerate(named)}
    return sorted(seen, key=lambda value: rank.get(value, len(named)))


def _kind(kind: Kind, by: Sequence[str], orders: Mapping[str, Sequence[str]]) -> Literal["bar", "grouped", "heatmap"]:
    if kind != "auto":
        return kind
    if len(by) == 1:
        return "bar"
    sizes = sorted(len(orders[column]) for column in by[:2])
    return "grouped" if sizes[0] <= GROUPS and sizes[0] * sizes[1] <= GROUPED_BARS else "heatmap"


def _title(by: Sequence[str]) -> str:
    return "Estimated records by " + " and ".join(by[:2]) + (f", for each {by[2]}" if len(by) == 3 else "")


@dataclass(frozen=True)
class _Axes:
    """The columns and the order of their values; the chart's data call them a, b and c."""

    by: Sequence[str]
    orders: Mapping[str, Sequence[str]]
    panels: int

    def values(self, place: int) -> list[str]:
        return list(self.orders[self.by[place]])

    def longest(self, place: int) -> int:
        return max(len(value) for value in self.values(place))


def _bars(data: pl.DataFrame, axes: _Axes) -> list[Any]:
    """Horizontal bars, so that long labels stay readable, with a whisker from low to high.

    Where high is the same for every bar it is drawn once, as a line that no bar passes.
    """
    import altair as alt

    rows = axes.values(0)
    inner = axes.values(1) if len(axes.by) > 1 else [""]
    if len(inner) == 1:
        thick = _between(720 / len(rows), 9.5 if len(rows) <= 150 else 4, 18)
        step = thick * 1.32
    else:
        thick = _between(640 / (len(rows) * len(inner)), 6, 13)
        step = thick * (len(inner) * 1.1 + 0.9)
    place = alt.Y(
        "a:N",
        sort=rows,
        title=axes.by[0],
        scale=alt.Scale(paddingInner=0.18 if len(inner) > 1 else 0.24, paddingOuter=0.12),
        axis=alt.Axis(labelOverlap=step < 11.5, ticks=False, domain=False),
    )
    size: dict[str, Any] = {"width": 460 if axes.panels == 1 else 250, "height": alt.Step(step, **{"for": "position"})}
    base = alt.Chart().properties(**size).encode(y=place)
    bars = base.mark_bar(color=PALETTE[0], cornerRadiusEnd=1.5)
    if len(inner) > 1:
        colours = list(PALETTE) if len(inner) <= len(PALETTE) else None
        scale = alt.Scale(domain=inner, range=colours) if colours else alt.Scale(domain=inner, scheme="tableau20")
        base = base.encode(yOffset=alt.YOffset("b:N", sort=inner, scale=alt.Scale(paddingInner=0.12)))
        legend = alt.Legend(title=axes.by[1], symbolLimit=0)
        bars = base.mark_bar(cornerRadiusEnd=1.5).encode(color=alt.Color("b:N", sort=inner, scale=scale, legend=legend))
    zero = {"condition": {"test": "datum.value === 0", "value": SOFT}, "value": RULE}
    axis = alt.Axis(
        format=",.0f",
        tickCount=6 if axes.panels == 1 else 4,
        gridColor=zero,
        labelFlush=False,
        domain=False,
        ticks=False,
    )
    length = alt.X("count:Q", title="estimated records", axis=axis)
    whiskers = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
    end: dict[str, Any] = {
        "color": INK,
        "opacity": 1,
        "thickness": 1.1,
        "size": _between(thick * 0.45, 2, 7),
        "orient": "vertical",
    }
    drawn = bars.encode(x=length, tooltip=_tooltip(axes))
    low = whiskers.mark_tick(**end).encode(x="low:Q")
    if (most := _ceiling(data, axes)) is not None:
        return [
            *_under_ceiling(whiskers, most),
            drawn,
            whiskers.mark_rule(color=INK).encode(x="low:Q", x2="count:Q"),
            low,
        ]
    rule = whiskers.mark_rule(color=INK, strokeWidth=1.1).encode(x="low:Q", x2="high:Q")
    return [drawn, rule, low, whiskers.mark_tick(**end).encode(x="high:Q")]


def _ceiling(data: pl.DataFrame, axes: _Axes) -> float | None:
    """Return the value that every bar may reach, if it is the same for all, as for suppressed terms."""
    highs = data["high"].unique()
    if len(axes.by) > 1 or data.height < SHARED or len(highs) > 1 or highs[0] is None:
        return None
    return float(highs[0])


def _under_ceiling(whiskers: Any, most: float) -> list[Any]:
    """Draw one line at the value that all bars may reach, and faint rules up to it, instead of a whisker on every
    bar."""
    import altair as alt

    once = alt.Chart(alt.InlineData(values=[{}]))
    line = once.mark_rule(color=SOFT, strokeDash=[5, 3]).encode(x=alt.datum(most))
    text = once.mark_text(text=f"at most {most:,.0f}", color=SOFT, align="right", baseline="bottom", dy=-4)
    label = text.encode(x=alt.datum(most), y=alt.value(0))
    return [whiskers.mark_rule(color=RULE, strokeWidth=1.1).encode(x="count:Q", x2="high:Q"), line, label]


def _heatmap(data: pl.DataFrame, axes: _Axes) -> list[Any]:
    """One cell per pair, darker for more records; numbers where they fit, a cross where the interval reaches zero."""
    import altair as alt

    rows, columns = axes.values(0), axes.values(1)
    labelled = len(rows) * len(columns) <= LABELLED_CELLS and axes.panels == 1
    largest = float(data["count"].max() or 0)  # type: ignore[arg-type]
    width = 52 if labelled else _between(640 / len(columns), 5, 26)
    height = 26 if labelled else _between(560 / len(rows), 5, 22)
    slanted = axes.longest(1) * 6.2 > width
    x_axis = alt.Axis(
        labelAngle=-40 if slanted else 0, labelOverlap=width < 14, labelLimit=180, ticks=False, domain=False, grid=False
    )
    y_axis = alt.Axis(labelOverlap=height < 11, ticks=False, domain=False, grid=False)
    base = (
        alt.Chart()
        .properties(width=alt.Step(width), height=alt.Step(height))
        .encode(
            x=alt.X("b:N", sort=columns, title=axes.by[1], axis=x_axis),
            y=alt.Y("a:N", sort=rows, title=axes.by[0], axis=y_axis),
        )
    )
    # Estimates may fall below zero; the scale does not: nothing is paler than "no records".
    scale = alt.Scale(range=list(BLUES), interpolate="lab", domain=[0, largest if largest > 0 else 1], clamp=True)
    legend = alt.Legend(title="records", format=",.0f", gradientLength=160, tickCount=5)
    border: dict[str, Any] = {"stroke": "white", "strokeWidth": 1 if min(width, height) > 9 else 0}
    cells = base.mark_rect(**border).encode(
        color=alt.Color("count:Q", scale=scale, legend=legend), tooltip=_tooltip(axes)
    )
    shade = alt.condition(f"datum.count > {0.55 * largest}", alt.value("white"), alt.value(INK))
    cross = base.transform_filter("datum.unsure").mark_text(
        text="×",
        fontSize=_between(min(width, height) * 0.5, 5, 11),
        dx=width / 2 - 7 if labelled else 0,
        dy=6 - height / 2 if labelled else 0,
    )
    layers = [cells, cross.encode(color=shade)]
    if labelled:
        layers.append(base.mark_text(fontSize=11).encode(text=alt.Text("count:Q", format=",.0f"), color=shade))
    return layers


def _tooltip(axes: _Axes) -> list[Any]:
    import altair as alt

    names = [alt.Tooltip(f"{'abc'[place]}:N", title=column) for place, column in enumerate(axes.by)]
    figures = (("count", "estimate"), ("low", "interval from"), ("high", "to"), ("std_error", "standard error"))
    return names + [alt.Tooltip(f"{field}:Q", title=title, format=",.1f") for field, title in figures]


def _unsure(data: pl.DataFrame) -> pl.Series:
    """Return cells that may be empty: the interval starts at or below zero, or is unknown."""
    return (data["low"] <= 0).fill_null(True)


def _dressed(layers: list[Any], data: pl.DataFrame, axes: _Axes, title: str, notes: list[str]) -> Any:
    """Combine layers, data, panels and the house style in one chart. Altair does not limit the rows of inline data."""
    import altair as alt

    letters = dict(zip(axes.by, "abc", strict=False))
    values = data.with_columns(_unsure(data).alias("unsure")).rename(letters).to_dicts()
    picture = alt.layer(*layers)
    if len(axes.by) == 3:
        header = alt.Header(labelFontSize=12, labelFontWeight="bold", labelColor=INK, labelAnchor="start", title=None)
        facet = alt.Facet("c:N", sort=axes.values(2), header=header)
        columns = 2 if axes.panels in (2, 4) else 3
        picture = picture.facet(facet=facet, columns=columns, data=alt.InlineData(values=values), spacing=26)
        # each panel its own x axis: a last row that is not full would leave one under an empty place
        picture = picture.resolve_axis(x="independent")
    else:
        picture = picture.properties(data=alt.InlineData(values=values))
    lines = textwrap.wrap(title, 64)
    small = [line for note in notes for line in textwrap.wrap(note, 92)]
    return (
        picture.properties(title=alt.TitleParams(text=lines, subtitle=small or alt.Undefined), padding=14)
        .configure(font=FONT, background="white")
        .configure_view(stroke=None)
        .configure_title(
            anchor="start",
            frame="bounds",
            fontSize=15,
            subtitleFontSize=11.5,
            color=INK,
            subtitleColor=SOFT,
            offset=14,
            subtitlePadding=5,
            subtitleLineHeight=15,
        )
        .configure_axis(
            labelColor=INK,
            titleColor=SOFT,
            labelFontSize=11,
            titleFontSize=11.5,
            titleFontWeight="normal",
            labelLimit=260,
            gridColor=RULE,
            titlePadding=10,
            labelPadding=5,
        )
        .configure_legend(
            labelColor=INK,
            titleColor=SOFT,
            labelFontSize=11,
            titleFontSize=11.5,
            titleFontWeight="normal",
            labelLimit=240,
            offset=16,
        )
    )


def _between(value: float, low: float, high: float) -> float:
    return max(low, min(high, value))
