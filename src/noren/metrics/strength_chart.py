"""The bounds of several requirements on the shares of the commonest values, as in paper 004's figure 4."""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from noren.metrics.strength import TOLERANCE, checked_requirement, envelope, largest_c, psi

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#222222")
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [1, 0])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")


def curves(m: int, tau: float, l: int) -> dict[str, list[float]]:
    """Bound on F(k), k = 1..m: (tau, l), the weakest simple and recursive ones that imply it, the strongest of all."""
    checked_requirement(tau, l, m)
    k = np.arange(1, m + 1)
    out = {f"({tau:g}, {l})-diversity": psi(k, tau, l).tolist()}
    out[f"simple {l}-diversity"] = np.minimum(1.0, k / l).tolist()
    for size in dict.fromkeys((l, m)):
        c = largest_c(m, size, tau, l)
        if c * (m - size + 1) > 1 + TOLERANCE:
            out[f"recursive ({c:.3g}, {size})-diversity"] = envelope(m, c, size).tolist()
    out[f"strongest: (1/{m}, {m})-diversity"] = (k / m).tolist()
    return out


def strength_chart(m: int, tau: float, l: int) -> Any:
    """Largest share of the k commonest values against k; a line below another is the stronger requirement."""
    import altair as alt
    import polars as pl

    lines = curves(m, tau, l)
    names = list(lines)
    rows = [
        {"k": k, "bound": bound, "requirement": name}
        for name, bounds in lines.items()
        for k, bound in enumerate(bounds, start=1)
    ]
    legend = alt.Legend(title="requirement", labelLimit=260, symbolSize=90, symbolStrokeWidth=2)
    ticks = alt.Axis(values=list(range(1, m + 1)) if m <= 30 else alt.Undefined, format="d", grid=False)
    base = alt.Chart(pl.DataFrame(rows)).encode(
        x=alt.X("k:Q", title="k, number of commonest sensitive values", axis=ticks, scale=alt.Scale(domain=[1, m])),
        y=alt.Y("bound:Q", title="largest share of a class they may hold", scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("requirement:N", sort=names, scale=alt.Scale(domain=names, range=list(_some(COLOURS, names)))),
    )
    dash = alt.StrokeDash(
        "requirement:N", sort=names, scale=alt.Scale(domain=names, range=list(_some(DASHES, names))), legend=legend
    )
    shape = alt.Shape(
        "requirement:N", sort=names, scale=alt.Scale(domain=names, range=list(_some(SHAPES, names))), legend=legend
    )
    title = alt.TitleParams(
        f"Requirements that imply ({tau:g}, {l})-diversity, {m} values",
        subtitle="lower is stronger; recursive ones at the largest c that is still enough",
        anchor="start",
    )
    picture = base.mark_line(strokeWidth=2).encode(strokeDash=dash) + base.mark_point(filled=True, size=45).encode(
        shape=shape
    )
    return picture.properties(width=460, height=320, title=title)


def save_strength_chart(m: int, tau: float, l: int, path: Path) -> None:
    from noren.estimates.counts.plots import save_chart

    save_chart(strength_chart(m, tau, l), path)


def _some(items: tuple[Any, ...], names: list[str]) -> tuple[Any, ...]:
    """One item per line; the last, plain one is for the strongest requirement."""
    return (*items[: len(names) - 1], items[-1])
