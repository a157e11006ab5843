"""The interactive chart of an answer: pointing at a mark shows its groups, estimate, interval and records.

Labels are drawn as texts of an SVG; none of them becomes markup. What is taken along as PNG or SVG is the library's
own picture of the same figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from nicegui import ui

from noren.estimates import BLUES, PALETTE
from noren.results import visible
from noren_studio.texts import recipient as words
from noren_studio.theme import between, chart_look, readable_on, tip, tip_look, tokens
from noren_studio.work.answering import NIGHT

MOST_MARKS, MOST_GROUPS, MOST_CELLS = 60, 6, 1_500
"""Bars, colours and cells of a heat map that a reader can still tell apart."""
LABELLED = 150
"""Cells whose figures are written into them."""
LONGEST = 26
"""Characters of a label on an axis; the whole of it is in what hovering shows."""
Row = Sequence[Any]


def hovered(answer: Mapping[str, Any], question: Mapping[str, Any], dark: bool | None, described: str) -> bool:
    """Draw the answer if possible; return False if only the library's picture can show it."""
    made = options_of(answer, question.get("chart", "auto"), dark)
    if made is None:
        return False
    options, height = made
    chart = ui.echart(options, renderer="svg").style(f"height: {height}px; width: 100%")
    chart.props("role=img data-chart").props["aria-label"] = visible(described)
    return True


def options_of(answer: Mapping[str, Any], chart: str, dark: bool | None) -> tuple[dict[str, Any], int] | None:
    """Return the chart's options and height: bars or points with intervals, grouped bars, or a heat map."""
    found = Figures.of(answer)
    if found is None or not found.rows or answer["total"] > len(answer["rows"]):
        return None
    if len(found.by) == 2 and answer["verb"] == "estimate":
        inner = len(found.labels(1))
        if chart == "grouped" and inner <= MOST_GROUPS and len(found.labels(0)) <= MOST_MARKS:
            return _grouped(found, dark)
        return _heat_map(found, dark) if chart in ("auto", "heatmap") and len(found.rows) <= MOST_CELLS else None
    if len(found.by) > 2 or len(found.rows) > MOST_MARKS or chart not in ("auto", "bar"):
        return None
    return _marks(found, dark, bars=answer["verb"] == "estimate")


class Figures:
    """An answer as marks: groups, estimates, and intervals."""

    def __init__(self, by: Sequence[str], value: str, heads: Sequence[str], rows: Sequence[Row]) -> None:
        self.by, self.value, self.heads, self.rows = by, value, heads, rows
        self._at = {name: at for at, name in enumerate(heads)}

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Figures | None:
        """Make the marks; None if no column is an estimate with an interval."""
        heads, numbers = list(answer["heads"]), set(answer["numbers"])
        if "low" not in heads or "high" not in heads or not answer["rows"]:
            return None
        by = list(answer["by"]) or [name for at, name in enumerate(heads) if at not in numbers][:1]
        rest = [name for at, name in enumerate(heads) if at in numbers and name not in by]
        rows = [row for row in answer["rows"] if row[heads.index(rest[0])] is not None]
        return cls(by, rest[0], heads, rows) if answer["verb"] != "count" else None

    def cell(self, row: Row, name: str) -> Any:
        return row[self._at[name]]

    def labels(self, at: int) -> list[str]:
        return list(dict.fromkeys(str(self.cell(row, self.by[at])) for row in self.rows))

    def label(self, row: Row) -> str:
        return " / ".join(str(self.cell(row, name)) for name in self.by) or words.ALL_RECORDS

    def interval(self, row: Row) -> tuple[float, float] | None:
        low, high = self.cell(row, "low"), self.cell(row, "high")
        return None if low is None or high is None else (low, high)

    def tip(self, row: Row) -> str:
        """Return the tooltip of a mark."""
        lines = [f"{name}: {visible(self.cell(row, name))}" for name in self.by]
        ends = self.interval(row)
        lines.append(f"{words.MEASURED.get(self.value, self.value)}: {_figure(self.cell(row, self.value))}")
        if ends is not None:
            lines.append(words.between(_figure(ends[0]), _figure(ends[1])))
        lines += [f"{words.MEASURED.get(name, name)}: {_figure(self.cell(row, name))}" for name in self.heads
                  if name not in (*self.by, self.value, "low", "high")]  # fmt: skip
        return "\n".join(lines)


def _figure(cell: Any) -> str:
    if not isinstance(cell, int | float):
        return "-" if cell is None else visible(cell)
    return f"{cell:,.0f}" if abs(cell) >= 1000 or float(cell).is_integer() else f"{cell:.4g}"


def _short(label: str) -> str:
    shown = visible(label)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


# ---------------------------------------------------------------------- bars and points


def _marks(found: Figures, dark: bool | None, bars: bool) -> tuple[dict[str, Any], int]:
    """Draw one mark for each row, named on the left, with its interval as a line."""
    colours = tokens(dark)
    data = [
        {
            "value": found.cell(row, found.value) if bars else [found.cell(row, found.value), at],
            "tooltip": {"formatter": tip(found.tip(row))},
        }
        for at, row in enumerate(found.rows)
    ]
    series = {
        "type": "bar" if bars else "scatter",
        "data": data,
        "barMaxWidth": 18,
        "symbolSize": 10,
        "itemStyle": {"color": colours["bar"]},
        "markLine": _lines([(at, found.interval(row)) for at, row in enumerate(found.rows)], colours["ink"]),
    }
    ends = [end for row in found.rows for end in found.interval(row) or ()]
    value = _value_axis(words.MEASURED.get(found.value, found.value), colours, ends, zero=bars)
    names = _name_axis([_short(found.label(row)) for row in found.rows], " / ".join(found.by), colours)
    return _chart([series], value, {**names, "inverse": True}, dark), 26 * len(found.rows) + 96


def _lines(intervals: Sequence[tuple[float, tuple[float, float] | None]], colour: str) -> dict[str, Any]:
    """Draw intervals as lines; unknown ones are omitted."""
    data = [[{"coord": [ends[0], at]}, {"coord": [ends[1], at]}] for at, ends in intervals if ends is not None]
    look = {"type": "solid", "color": colour, "width": 1.4}
    return {"silent": True, "symbol": ["none", "none"], "lineStyle": look, "data": data, "animation": False}


def _grouped(found: Figures, dark: bool | None) -> tuple[dict[str, Any], int]:
    """Bars side by side, one colour for each label of the second column."""
    colours, outer, inner = tokens(dark), found.labels(0), found.labels(1)
    cells = {(str(found.cell(row, found.by[0])), str(found.cell(row, found.by[1]))): row for row in found.rows}
    series = []
    for at, label in enumerate(inner):
        data = [
            {"value": found.cell(row, found.value), "tooltip": {"formatter": tip(found.tip(row))}}
            if row is not None
            else "-"
            for row in (cells.get((one, label)) for one in outer)
        ]
        paint = NIGHT.get(PALETTE[at], PALETTE[at]) if dark else PALETTE[at]
        series.append({"type": "bar", "name": _short(label), "data": data, "itemStyle": {"color": paint}})
    value = _value_axis(words.MEASURED.get(found.value, found.value), colours, [0.0], zero=True)
    value = {name: item for name, item in value.items() if name not in ("min", "max", "interval")}
    made = _chart(series, value, {**_name_axis(list(map(_short, outer)), found.by[0], colours), "inverse": True}, dark)
    made["legend"] = {"top": 0, "textStyle": {"color": colours["ink"]}}
    made["grid"]["top"] = 34
    return made, max(200, 14 * len(outer) * len(inner) + 110)


def _chart(series: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], dark: bool | None) -> dict[str, Any]:
    return {
        **chart_look(dark),
        "tooltip": tip_look(dark),
        "grid": {"left": 22, "right": 24, "top": 12, "bottom": 40, "containLabel": True},
        "xAxis": x,
        "yAxis": y,
        "series": series,
    }


def _value_axis(name: str, colours: Mapping[str, str], ends: Sequence[float], zero: bool) -> dict[str, Any]:
    """From the lowest end of an interval to the highest: lines of intervals do not widen an axis by themselves."""
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
    step = _round_step((high - low) or abs(high) or 1.0)
    return {
        "type": "value", "name": name, "nameLocation": "middle", "nameGap": 30,
        "min": step * floor(low / step), "max": step * ceil(high / step), "interval": step,
        "axisLabel": {"color": colours["soft"], "hideOverlap": True}, "nameTextStyle": {"color": colours["ink"]},
        "splitLine": {"lineStyle": {"color": colours["rule"]}},
    }  # fmt: skip


def _round_step(span: float) -> float:
    """Return the distance of grid lines: a round number, about six in the range."""
    power = 10.0 ** floor(log10(span / 6))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= span / 6)


def _name_axis(labels: Sequence[str], name: str, colours: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "category", "data": list(labels), "name": _short(name), "nameLocation": "start",
        "nameTextStyle": {"color": colours["ink"], "align": "right"}, "axisTick": {"show": False},
        "axisLabel": {"color": colours["ink"], "interval": 0}, "axisLine": {"lineStyle": {"color": colours["edge"]}},
    }  # fmt: skip


# ---------------------------------------------------------------------- heat map


def _heat_map(found: Figures, dark: bool | None) -> tuple[dict[str, Any], int]:
    """Draw rows by columns, in a stronger colour for more records; with figures where there is room."""
    colours, axes = tokens(dark), (found.labels(0), found.labels(1))
    rows, columns = axes
    scale = [NIGHT[one] for one in BLUES] if dark else list(BLUES)
    most = max((found.cell(row, found.value) for row in found.rows), default=0) or 1
    written = len(found.rows) <= LABELLED
    data = []
    for row in found.rows:
        count = found.cell(row, found.value)
        down_at, across_at = (at.index(str(found.cell(row, name))) for at, name in zip(axes, found.by, strict=True))
        paint = readable_on(between(scale, count / most))
        data.append(
            {
                "value": [across_at, down_at, round(count, 3)],
                "tooltip": {"formatter": tip(found.tip(row))},
                "label": {"show": written, "color": paint, "formatter": _whole(count)},
            }
        )
    across = _name_axis(list(map(_short, columns)), found.by[1], colours)
    across |= {"nameLocation": "middle", "nameGap": 8, "position": "top"}
    across["nameTextStyle"] = {"color": colours["ink"], "align": "center"}
    across["axisLabel"] = {"color": colours["ink"], "interval": 0, "rotate": 32 if len(columns) > 4 else 0}
    series = {"type": "heatmap", "data": data, "itemStyle": {"borderColor": colours["surface"], "borderWidth": 1}}
    down = {**_name_axis(list(map(_short, rows)), found.by[0], colours), "inverse": True}
    made = _chart([series], across, down, dark)
    for axis in ("xAxis", "yAxis"):  # labels of both meet in a corner; hovering names the columns
        del made[axis]["name"]
    made["grid"]["bottom"] = 48
    made["visualMap"] = {
        "min": 0, "max": most, "calculable": False, "orient": "horizontal", "left": "center", "bottom": 0,
        "inRange": {"color": scale}, "textStyle": {"color": colours["soft"]}, "itemHeight": 180, "itemWidth": 12,
        "text": [_whole(most), "0"],
    }  # fmt: skip
    return made, 30 * len(rows) + (188 if len(columns) > 4 else 118)


def _whole(count: float) -> str:
    return f"{count:,.0f}"
