"""Charts of an attack: the distribution of beliefs over people, and summary figures."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from noren.audit.base import HOLDER_ONLY, AttackResult, Scenario
from noren.audit.sample import ROWS
from noren.estimates.counts.plots import FONT, INK, PALETTE, RULE, SOFT

STEPS = 400
"""Points of a curve, at most."""
BEFORE = "before any release"
GREY = "#8A8A8A"
DASHES = ([7, 3], [2, 2], [9, 3, 2, 3], [5, 2])
BAR = 13


def chart(*results: AttackResult) -> Any:
    """Return one picture per result, one below the other."""
    import altair as alt

    pictures = [_picture(result) for result in results]
    whole = pictures[0]
    if len(pictures) > 1:
        whole = alt.vconcat(*pictures, spacing=50).resolve_scale(
            color="independent", strokeDash="independent", yOffset="independent"
        )
    return (
        whole.properties(padding=14)
        .configure(font=FONT, background="white")
        .configure_view(stroke=None)
        .configure_title(
            anchor="start", fontSize=15, subtitleFontSize=11.5, color=INK, subtitleColor=SOFT, offset=16,
            subtitlePadding=5, subtitleLineHeight=15,
        )
        .configure_axis(
            labelColor=INK, titleColor=SOFT, labelFontSize=11, titleFontSize=11.5, titleFontWeight="normal",
            gridColor=RULE, labelLimit=260, titlePadding=10,
        )
        .configure_legend(labelColor=INK, titleColor=SOFT, labelFontSize=11, titleFontSize=11.5, labelLimit=260)
    )  # fmt: skip


def _picture(result: AttackResult) -> Any:
    """Draw the curve of every scenario on the left and the shares on the right; the baseline is grey."""
    import altair as alt

    names = [BEFORE, *(scenario.title for scenario in result.shown)]
    colours = [GREY, *_colours(len(names) - 1)]
    scale = alt.Scale(domain=names, range=colours)
    picture = alt.hconcat(_curves(result, names, scale), _bars(result, names, scale), spacing=40)
    subtitle = textwrap.wrap(f"the adversary {result.adversary}", 110, break_on_hyphens=False)
    if result.holder_only:
        subtitle.append(HOLDER_ONLY)
    title = f"The {result.attack} attack on {' and '.join(result.target)}"
    return picture.properties(title=alt.TitleParams(text=title, subtitle=subtitle))


def _colours(count: int) -> list[str]:
    """One colour per scenario; the release itself, the last, has the first of the palette."""
    others = [PALETTE[1 + i % (len(PALETTE) - 1)] for i in range(count - 1)]
    return [*others, PALETTE[0]]


def steps(scenario: Scenario, measure: str) -> list[tuple[float, float]]:
    """Return points (x, share of lines with a measure of at least x), thinned to what a reader can see."""
    frame = scenario.frame.sort(measure)
    found = frame[measure].to_numpy()
    rows = frame[ROWS].to_numpy() if ROWS in frame.columns else np.ones(len(found), np.int64)
    below = np.concatenate(([0], np.cumsum(rows)))
    marks = np.unique(np.ceil(np.clip(found, 0, 1) * STEPS - 1e-9) / STEPS)
    places = np.searchsorted(found, marks - 1 / STEPS + 1e-9, side="left")
    above = (below[-1] - below[places]) / max(1, int(below[-1]))
    points = [(0.0, 1.0), *zip(marks.tolist(), above.tolist(), strict=True)]
    return [*points, (points[-1][0], 0.0)]


def _curves(result: AttackResult, names: list[str], scale: Any) -> Any:
    import altair as alt

    before = result.baseline[f"mean_{result.measure}"]
    lines = {BEFORE: [(0.0, 1.0), (before, 1.0), (before, 0.0)]}
    lines |= {scenario.title: steps(scenario, result.measure) for scenario in result.shown}
    values = [
        {"table": name, "x": x, "share": share, "place": place}
        for name, points in lines.items()
        for place, (x, share) in enumerate(points)
    ]
    people = "people" if result.shown[0].by == "person" else "published rows"
    between = [DASHES[i % len(DASHES)] for i in range(len(names) - 2)]
    dashes = alt.Scale(domain=names, range=[[1, 0], *between, [1, 0]])
    legend = alt.Legend(title=None, orient="bottom", columns=2, symbolStrokeWidth=2.5, symbolSize=200)
    axis = alt.Axis(format="%", tickCount=5, domain=False, ticks=False, labelPadding=6)
    return (
        alt.Chart(alt.InlineData(values=values))
        .mark_line(interpolate="step-before", strokeWidth=2.2)
        .encode(
            x=alt.X("x:Q", title=f"largest {result.measure}", scale=alt.Scale(domain=[0, 1]), axis=_plain()),
            y=alt.Y(
                "share:Q",
                title=f"{people} with at least this {result.measure}",
                scale=alt.Scale(domain=[0, 1]),
                axis=axis,
            ),
            color=alt.Color("table:N", sort=names, scale=scale, legend=legend),
            strokeDash=alt.StrokeDash("table:N", sort=names, scale=dashes, legend=legend),
            order="place:Q",
        )
        .properties(width=380, height=_height(result))
    )


def _bars(result: AttackResult, names: list[str], scale: Any) -> Any:
    import altair as alt

    found = [(BEFORE, result.baseline), *((scenario.title, scenario.summary) for scenario in result.shown)]
    titles = [result.titles.get(share, share.replace("_", " ")) for share in result.shares]
    values = [
        {"figure": title, "table": name, "share": figures[share]}
        for name, figures in found
        for share, title in zip(result.shares, titles, strict=True)
    ]
    base = alt.Chart(alt.InlineData(values=values)).encode(
        y=alt.Y("figure:N", sort=titles, title=None, axis=alt.Axis(ticks=False, domain=False)),
        yOffset=alt.YOffset("table:N", sort=names, scale=alt.Scale(paddingInner=0.1)),
    )
    length = alt.X("share:Q", title="share, or mean belief", scale=alt.Scale(domain=[0, 1]), axis=_plain())
    bars = base.mark_bar(cornerRadiusEnd=1.5).encode(
        x=length, color=alt.Color("table:N", sort=names, scale=scale), tooltip=["table:N", "figure:N", "share:Q"]
    )
    words = base.mark_text(align="left", dx=4, fontSize=10, color=INK).encode(
        x=length, text=alt.Text("share:Q", format=".2f")
    )
    return (bars + words).properties(width=300, height=_height(result))


def _height(result: AttackResult) -> int:
    """Return the height that bars and curves need."""
    return max(220, len(result.shares) * (len(result.shown) + 2) * BAR)


def _plain() -> Any:
    import altair as alt

    return alt.Axis(tickCount=5, domain=False, ticks=False, format=".1f", labelFlush=False, labelPadding=6)
